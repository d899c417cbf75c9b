// Draw exactly: the same words lead to the same answers as in discreet's own kernels.
// A source is a function that returns so many fresh random bytes.

const MOST_AT_ONCE = 65536;

/** Return random bytes of the operating system. */
export function systemBytes(count) {
  const bytes = new Uint8Array(count);
  for (let start = 0; start < count; start += MOST_AT_ONCE) {
    crypto.getRandomValues(bytes.subarray(start, start + MOST_AT_ONCE));
  }
  return bytes;
}

function word(source, count) {
  let value = 0n;
  for (const byte of source(count)) value = (value << 8n) | BigInt(byte);
  return value;
}

/** Return the last outcome of a row that starts at or before a random 64-bit word. */
export function drawFromRow(starts, source = systemBytes) {
  const drawn = word(source, 8);
  let [below, above] = [0, starts.length];
  while (above - below > 1) {
    const middle = (below + above) >> 1;
    if (starts[middle] <= drawn) below = middle;
    else above = middle;
  }
  return below;
}

/** Return the distance to the next cell that pretends: binary digits that are set independently. */
export function drawGap({ high, low }, source = systemBytes) {
  const firsts = source(high.length);
  let gap = 0;
  for (let digit = 0; digit < high.length; digit += 1) {
    const lead = Number(high[digit] >> 56n);
    const set = firsts[digit] === lead ? breakTie(high[digit], low[digit], source) : firsts[digit] < lead;
    if (set) gap += 2 ** digit;
  }
  return gap;
}

function breakTie(high, low, source) {
  const [drawn, rest] = [word(source, 7), BigInt.asUintN(56, high)];
  return drawn === rest ? word(source, 8) < low : drawn < rest;
}

/** Return a whole number below `bound`, all equally likely; a word that is too large is drawn again. */
export function uniformBelow(bound, source = systemBytes) {
  const bits = (BigInt(bound) - 1n).toString(2).length;
  if (bound <= 1) return 0;
  const mask = (1n << BigInt(bits)) - 1n;
  for (;;) {
    const drawn = word(source, Math.ceil(bits / 8)) & mask;
    if (drawn < BigInt(bound)) return Number(drawn);
  }
}

/** Return which of `cells` empty cells pretend to be rated, rising. */
export function pretendingCells(gap, cells, source = systemBytes) {
  const found = [];
  for (let place = drawGap(gap, source); place < cells; place += drawGap(gap, source) + 1) found.push(place);
  return found;
}

/** Return `count` of `total` items, rising, all sets equally likely (Floyd's algorithm). */
export function sampleItems(total, count, source = systemBytes) {
  const chosen = new Set();
  for (let last = total - count; last < total; last += 1) {
    const drawn = uniformBelow(last + 1, source);
    chosen.add(chosen.has(drawn) ? last : drawn);
  }
  return [...chosen].sort((one, other) => one - other);
}
