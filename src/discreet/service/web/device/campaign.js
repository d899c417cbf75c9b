// Read a campaign as coming from a stranger: name it by its hash, and recompute what it promises.

import { ONE, expAbove, expBelow, fractionOf, keeps, largestRatio } from "./exact.js";

const WORDS = 1n << 64n;
const UNIT = 1n << 128n;
const MOST_CHECKED = 1 << 22;
// No honest key has a prime factor below; a key of such factors would mark requests and tokens alike.
const LEAST_FACTOR = 1 << 16;

/** Say why a campaign was refused. */
export class CampaignError extends Error {}

/** Return the campaign behind the bytes that a service sends; throw unless it keeps what it promises. */
export async function openCampaign(bytes) {
  let record;
  try {
    record = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new CampaignError("This is not a campaign: its text cannot be read.");
  }
  if (record?.format !== "discreet-campaign" || record.version !== 2) {
    throw new CampaignError("This is not a campaign of a version that this page understands.");
  }
  let campaign;
  try {
    campaign = { ...readRecord(record), digest: new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)) };
    campaign.ratio = ratioOf(campaign);
  } catch (error) {
    if (error instanceof CampaignError) throw error;
    throw new CampaignError("This campaign's tables are damaged.");
  }
  if (!keeps(campaign.ratio, campaign.epsilon)) {
    throw new CampaignError("This campaign's sampling tables reveal more than its stated epsilon, so it was rejected. Nothing was answered.");
  }
  return Object.freeze(campaign);
}

function readRecord(record) {
  const { kind, name, items, mechanism, draws } = record;
  const { epsilon } = mechanism;
  demand(kind === "ratings" || kind === "catalog", "This campaign is of a kind that this page does not know.");
  demand(typeof name === "string" && name !== "" && Array.isArray(items) && items.length > 0, "It names no items.");
  demand(Number.isFinite(epsilon) && epsilon >= 1e-6 && epsilon <= 700, "Its epsilon is not a usable number.");
  const { ratings, outcomes } = draws;
  demand(Array.isArray(ratings) && ratings.length >= 2 && ratings.every(Number.isFinite), "Its scale is damaged.");
  demand(ratings.every((rating, at) => at === 0 || rating > ratings[at - 1]), "Its scale does not rise.");
  demand(Number.isInteger(outcomes) && outcomes >= 2 && outcomes <= 65536, "Its answers are damaged.");
  demand(Number.isFinite(draws.first) && draws.width > 0, "Its answers are damaged.");
  const invitations = invitationKey(record.invitations);
  const shared = { kind, name, epsilon, items: items.map(String), ratings, outcomes, invitations };
  const shown = { first: draws.first, width: draws.width };
  if (kind === "ratings") {
    demand(Number.isInteger(record.max_reports) && record.max_reports > 0, "It sets no limit of reports.");
    return { ...shared, ...shown, maxReports: record.max_reports, rows: rowsOf(draws.starts, ratings.length, outcomes) };
  }
  const answers = record.answers ?? null;
  demand(answers === null || (Number.isInteger(answers) && answers >= 1 && answers <= items.length), "It asks for no items.");
  return { ...shared, ...shown, answers, gap: gapOf(draws.gap), ...cellTables(draws, ratings, outcomes) };
}

/** Return the key under which tokens of invited devices are signed, or null if anybody may send. */
function invitationKey(record) {
  if (record === undefined) return null;
  const { modulus, ...rest } = record ?? {};
  // An exponent of its own would not be the one that tokens are checked with.
  demand(Object.keys(rest).length === 0, "Its key of invitations is damaged.");
  const fits = typeof modulus === "string" && /^[89a-f][0-9a-f]*[13579bdf]$/.test(modulus);
  demand(fits && modulus.length % 2 === 0, "Its key of invitations is damaged.");
  demand(modulus.length >= 512 && modulus.length <= 1024, "Its key of invitations has a wrong size.");
  const number = BigInt(`0x${modulus}`);
  demand(!hasSmallFactor(number), "Its key of invitations has small factors: requests and tokens could be matched.");
  return Object.freeze({ modulus: number, size: modulus.length / 2 });
}

function hasSmallFactor(number) {
  const composite = new Uint8Array(LEAST_FACTOR);
  for (let prime = 2; prime < LEAST_FACTOR; prime += 1) {
    if (composite[prime]) continue;
    if (number % BigInt(prime) === 0n) return true;
    for (let multiple = prime * prime; multiple < LEAST_FACTOR; multiple += prime) composite[multiple] = 1;
  }
  return false;
}

function cellTables(draws, ratings, outcomes) {
  if (draws.starts !== undefined) {
    demand(outcomes === ratings.length, "Its answers are damaged.");
    return { rows: rowsOf(draws.starts, ratings.length, outcomes + 1) };
  }
  const { half, reach } = draws;
  demand(Number.isInteger(half) && half >= 1 && ratings.length === 2 * half + 1, "Its scale is damaged.");
  demand(Number.isInteger(reach) && reach > half && outcomes === 2 * reach + 1, "Its answers are damaged.");
  demand(ratings.length * outcomes <= MOST_CHECKED, "This campaign is too large for a browser to check.");
  const [noise] = rowsOf(draws.noise, 1, 2 * (half + reach) + 1);
  return { coin: rowsOf(draws.coin, 1, 2)[0], noise, half, reach };
}

function demand(ok, sentence) {
  if (!ok) throw new CampaignError(sentence);
}

function wordsOf(text) {
  const raw = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  demand(raw.length % 8 === 0, "This campaign's tables are damaged.");
  const view = new DataView(raw.buffer);
  return BigUint64Array.from({ length: raw.length / 8 }, (_, at) => view.getBigUint64(8 * at));
}

function rowsOf(text, count, size) {
  const words = wordsOf(text);
  demand(words.length === count * size && words.length <= MOST_CHECKED, "This campaign's tables are damaged.");
  const rows = Array.from({ length: count }, (_, row) => words.subarray(row * size, (row + 1) * size));
  const rises = (row) => row[0] === 0n && row.every((start, at) => at === 0 || start > row[at - 1]);
  demand(rows.every(rises), "This campaign's tables are damaged.");
  return rows;
}

/** Return the digits of gaps; refuse any that do not make cells pretend independently, all alike. */
function gapOf({ scale, high, low }) {
  const [upper, lower] = [wordsOf(high), wordsOf(low)];
  const { top, bottom } = fractionOf(scale);
  demand(upper.length === lower.length && upper.length >= 1 && upper.length <= 62, "Its gaps are damaged.");
  demand(2 ** upper.length >= 88 * scale, "Its gaps cannot grow long enough.");
  upper.forEach((word, digit) => {
    const chance = (word << 64n) | lower[digit];
    const exponent = bottom << BigInt(digit);
    if (exponent > 100n * top) return demand(chance === 0n, "Its gaps are not those of its scale.");
    const least = (UNIT * ONE) / (ONE + expAbove(exponent, top)) - 1n;
    const most = (UNIT * ONE) / (ONE + expBelow(exponent, top)) + 1n;
    return demand(least <= chance && chance <= most, "Its gaps are not those of its scale.");
  });
  return { high: upper, low: lower };
}

const countsOf = (starts) => Array.from(starts, (start, at) => (at + 1 < starts.length ? starts[at + 1] : WORDS) - start);

function ratioOf(campaign) {
  if (campaign.kind === "ratings") return largestRatio(campaign.rows.map(countsOf));
  return largestRatio(campaign.rows ? starRows(campaign) : numberRows(campaign));
}

/** Return the exact chance that an empty cell pretends: no digit of the gap before it is set. */
function pretends({ high, low }) {
  let [top, bottom] = [1n, 1n];
  high.forEach((word, digit) => {
    top *= UNIT - ((word << 64n) | low[digit]);
    bottom *= UNIT;
  });
  return { top, bottom };
}

/** Return the rows of rated cells and that of an empty one, silence first, over a common denominator. */
function starRows({ rows, gap, outcomes }) {
  const { top, bottom } = pretends(gap);
  const stars = BigInt(outcomes);
  const empty = [(bottom - top) * WORDS * stars, ...Array(outcomes).fill(top * WORDS)];
  return [...rows.map((row) => countsOf(row).map((count) => count * bottom * stars)), empty];
}

function numberRows({ coin, noise, half, reach, gap }) {
  const { top, bottom } = pretends(gap);
  const [silent, told] = countsOf(coin);
  const ends = [...noise, WORDS];
  const mass = (report, rating) => {
    const at = report - rating + half + reach;
    return ends[report === reach ? noise.length : at + 1] - ends[report === -reach ? 0 : at];
  };
  const reports = Array.from({ length: 2 * reach + 1 }, (_, at) => at - reach);
  const rated = [];
  for (let rating = -half; rating <= half; rating += 1) {
    rated.push([silent * WORDS * bottom, ...reports.map((report) => told * mass(report, rating) * bottom)]);
  }
  const empty = [(bottom - top) * WORDS * WORDS, ...reports.map((report) => top * mass(report, 0) * WORDS)];
  return [...rated, empty];
}
