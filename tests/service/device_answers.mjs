// Answer questions about the device's modules: one JSON object in, one out. Whole numbers travel as text.
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

globalThis.crypto ??= webcrypto; // node 18 has it, under another name
const device = await import(pathToFileURL(process.argv[2]));
const asked = JSON.parse(readFileSync(0, "utf8"));
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const words = (texts) => BigUint64Array.from(texts.map(BigInt));
const played = (hex) => {
  const script = bytes(hex);
  let at = 0;
  return (count) => {
    if (at + count > script.length) throw new RangeError("The script is used up.");
    at += count;
    return script.subarray(at - count, at);
  };
};
const hex = (some) => Buffer.from(some).toString("hex");
const open = (text) => device.openCampaign(new TextEncoder().encode(text));

const answers = {
  names: () => Object.keys(device).sort(),
  rows: ({ starts, scripts }) => scripts.map((script) => device.drawFromRow(words(starts), played(script))),
  gaps: ({ high, low, scripts }) =>
    scripts.map((script) => device.drawGap({ high: words(high), low: words(low) }, played(script))),
  uniform: ({ bound, scripts }) => scripts.map((script) => device.uniformBelow(bound, played(script))),
  powers: ({ numbers }) =>
    numbers.map((number) => {
      const { top, bottom } = device.fractionOf(number);
      return [device.expBelow(top, bottom), device.expAbove(top, bottom)].map(String);
    }),
  open: async ({ text }) => {
    try {
      const campaign = await open(text);
      return { digest: hex(campaign.digest), ratio: [campaign.ratio.top, campaign.ratio.bottom].map(String) };
    } catch (error) {
      return { refused: error.message, known: error instanceof device.CampaignError };
    }
  },
  ratings: async ({ text, sender, pairs }) => hex(device.writeRatings(await open(text), bytes(sender), pairs)),
  catalog: async ({ text, sender, answer }) => hex(device.writeCatalog(await open(text), bytes(sender), answer)),
  envelope: ({ message }) => hex(device.inEnvelope(bytes(message))),
  answered: async ({ text, rating, count }) => {
    const campaign = await open(text);
    return Array.from({ length: count }, () => device.answerRating(campaign, rating));
  },
  request: async ({ text, sender, code, script }) =>
    device.requestToken(await open(text), bytes(sender), code, script ? played(script) : undefined),
  requestUnder: async ({ modulus, digest, sender, script }) => {
    const invitations = { modulus: BigInt(`0x${modulus}`), size: modulus.length / 2 };
    try {
      return await device.requestToken({ digest: bytes(digest), invitations }, bytes(sender), "code", played(script));
    } catch (error) {
      return { refused: error.message };
    }
  },
  token: async ({ text, sender, request, signature }) => {
    try {
      return await device.tokenOf(await open(text), bytes(sender), request, { signature });
    } catch (error) {
      return { refused: error.message };
    }
  },
  cells: async ({ text, history, people }) => {
    const campaign = await open(text);
    return Array.from({ length: people }, () => device.answerCatalog(campaign, history));
  },
};

const told = [];
for (const { what, ...rest } of asked) told.push(await answers[what](rest));
process.stdout.write(JSON.stringify(told));
