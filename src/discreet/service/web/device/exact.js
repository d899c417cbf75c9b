// Compare probabilities with e^epsilon in whole numbers. No floating-point number decides anything here.

const DIGITS = 320n;
/** One, in units of 2^-320. */
export const ONE = 1n << DIGITS;

/** Return the exact fraction that a positive double is. */
export function fractionOf(number) {
  if (!(number > 0 && Number.isFinite(number))) throw new RangeError("A positive number was expected.");
  let top = number;
  let power = 0n;
  while (!Number.isInteger(top)) {
    top *= 2;
    power += 1n;
  }
  return { top: BigInt(top), bottom: 1n << power };
}

const halved = (top, bottom) => {
  let times = 0n;
  while (top > bottom << times) times += 1n;
  return times;
};

/** Return e^(top/bottom) in units of 2^-320, rounded down. */
export function expBelow(top, bottom) {
  const times = halved(top, bottom);
  const x = (top << DIGITS) / (bottom << times);
  let [term, sum] = [ONE, ONE];
  for (let k = 1n; term > 0n; k += 1n) {
    term = ((term * x) >> DIGITS) / k;
    sum += term;
  }
  for (let turn = 0n; turn < times; turn += 1n) sum = (sum * sum) >> DIGITS;
  return sum;
}

/** Return e^(top/bottom) in units of 2^-320, rounded up. */
export function expAbove(top, bottom) {
  const times = halved(top, bottom);
  const x = (top << DIGITS) / (bottom << times) + 1n;
  let [term, sum] = [ONE, ONE];
  for (let k = 1n; term > 1n; k += 1n) {
    term = ((term * x) >> DIGITS) / k + 1n;
    sum += term;
  }
  // What is left of the series is less than its last term.
  sum += 4n;
  for (let turn = 0n; turn < times; turn += 1n) sum = ((sum * sum) >> DIGITS) + 1n;
  return sum;
}

/** Return the largest quotient of two entries of one column, over all columns. */
export function largestRatio(rows) {
  let [top, bottom] = [1n, 1n];
  for (let column = 0; column < rows[0].length; column += 1) {
    let most = rows[0][column];
    let least = most;
    for (const row of rows) {
      if (row[column] > most) most = row[column];
      if (row[column] < least) least = row[column];
    }
    if (least <= 0n) throw new RangeError("An answer is possible for one secret and not for another.");
    if (most * bottom > top * least) [top, bottom] = [most, least];
  }
  return { top, bottom };
}

/** Tell whether a ratio is at most e^epsilon. */
export function keeps({ top, bottom }, epsilon) {
  const { top: above, bottom: below } = fractionOf(epsilon);
  return top * ONE <= expBelow(above, below) * bottom;
}
