// Write messages as discreet reads them, in an envelope whose size tells little.

const VERSION = 2;
const SENDER_BYTES = 16;
const BLOCK = 512;

const letters = (text) => Array.from(text, (letter) => letter.charCodeAt(0));

function varint(number) {
  const out = [];
  let rest = number;
  while (rest >= 0x80) {
    out.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return [...out, rest];
}

const little = (number, width) => Array.from({ length: width }, (_, at) => Math.floor(number / 256 ** at) % 256);

function head(magic, campaign, sender) {
  if (sender.length !== SENDER_BYTES) throw new RangeError("A sender is named by 16 bytes.");
  return [...letters(magic), VERSION, ...campaign.digest, ...sender];
}

/** Return the message that carries codes by item number; it tells nothing of the order they were given in. */
export function writeRatings(campaign, sender, answers) {
  const pairs = [...answers].sort(([one], [other]) => one - other);
  const width = campaign.outcomes <= 256 ? 1 : 2;
  const out = [...head("DSCR", campaign, sender), ...varint(pairs.length)];
  pairs.forEach(([item], at) => out.push(...varint(item - (at === 0 ? 0 : pairs[at - 1][0]))));
  for (const [, code] of pairs) out.push(...little(code, width));
  return Uint8Array.from(out);
}

/** Return the message that carries the one answer to a campaign over a catalog. */
export function writeCatalog(campaign, sender, { asked, items, codes }) {
  const sampled = asked ?? [];
  const out = [...head("DSCA", campaign, sender), ...little(sampled.length, 4), ...little(items.length, 4)];
  for (const item of [...sampled, ...items]) out.push(...little(item, 4));
  for (const code of codes) out.push(...little(code, 2));
  return Uint8Array.from(out);
}

/** Return a message behind its length and before zeros, up to the next multiple of 512 bytes. */
export function inEnvelope(message) {
  const out = new Uint8Array(Math.ceil((message.length + 4) / BLOCK) * BLOCK);
  out.set(little(message.length, 4));
  out.set(message, 4);
  return out;
}
