// Score all items for one user from the parts of a model. Only released numbers and the own history are used.

// The logistic function at this multiple is nearly the normal distribution, as in the library.
const LOGISTIC = 1.702;
// Where the table of the normal distribution begins and ends, and its points a unit.
const [LEAST, MOST, PER_UNIT] = [-36, 9, 32];
// Shown stars are compressed smoothly near the ends of the scale, within about this fraction of it.
const SOFTNESS = 0.05;

/**
 * Return the score of every item, and expected stars where the model knows them.
 * A history is { items, ratings, times, now }: places in the catalog, ratings or null, times or null if it has no order,
 * and when the list is requested, in seconds since 1970 or null.
 */
export function scoreAll(parts, count, history) {
  const total = new Float64Array(count);
  const found = { stars: null };
  for (const part of parts) SCORERS[part.kind](part, history, total, found);
  return { scores: Float32Array.from(total), stars: found.stars, scale: found.scale };
}

const SCORERS = {
  popularity({ arrays: { bias } }, _, total) {
    for (let item = 0; item < total.length; item += 1) total[item] += bias.data[item];
  },
  embedding(part, history, total) {
    const { own, known } = embedded(part, history);
    addProducts(part.arrays.vectors, own, total);
    part.arrays.penalty?.data.forEach((value, item) => (total[item] -= known * value));
  },
  confidence(part, history, total) {
    addProducts(part.arrays.vectors, confident(part, history), total);
  },
  "item-item": addFromItems,
  "next-items": blendNext,
  ratings: addStars,
  liking: addLiking,
};

// Epoch times by unit: least number, next larger one, units per second. Smaller numbers are only positions.
const EPOCHS = [[1e8, 1e11, 1], [1e11, 1e14, 1e3], [1e14, 1e17, 1e6], [1e17, 2 ** 63, 1e9]];
const DAY = 86400;
// A pause begins to count after so many usual gaps, which are one step; more steps than the last number count like it.
const [GAPS_PER_STEP, MOST_STEPS] = [10, 30];

export function epochSeconds(time) {
  const unit = EPOCHS.find(([low, high]) => time >= low && time < high);
  return unit === undefined ? NaN : time / unit[2];
}

/** Return how many of a user's own usual steps have passed since the latest interaction; 0 if times are only positions. */
export function missedSteps({ times, now }) {
  if (times === null || times.length === 0 || !Number.isFinite(now)) return 0;
  const seconds = times.map(epochSeconds);
  const [first, last] = seconds.reduce(([least, most], time) => [Math.min(least, time), Math.max(most, time)], [Infinity, -Infinity]);
  const steps = (now - last) / ((GAPS_PER_STEP * (last - first + DAY)) / times.length) - 1;
  return Number.isNaN(steps) ? 0 : Math.min(Math.max(steps, 0), MOST_STEPS);
}

/**
 * Return the weight of each item of a history by its rank from the latest; items of one time share theirs.
 * Without times, or if nothing fades, all weigh the same. Missed steps add to all ranks.
 */
export function recency({ items, times }, { fading, evenly }, missed = 0) {
  const count = items.length;
  if (times === null || fading === 0) return new Float64Array(count).fill(Math.max(count, 1) ** -evenly);
  const order = Uint32Array.from(items.keys()).sort((one, other) => times[one] - times[other] || one - other);
  const weights = new Float64Array(count);
  for (let start = 0, stop; start < count; start = stop) {
    let sum = 0;
    for (stop = start; stop < count && times[order[stop]] === times[order[start]]; stop += 1) sum += (count - stop + missed) ** -fading;
    for (let at = start; at < stop; at += 1) weights[order[at]] = sum / (stop - start);
  }
  return weights;
}

/** Return a row of a matrix in full numbers. */
function rowOf({ shape: [, width], data, rows, columns }, item) {
  const row = Float64Array.from(data.subarray(item * width, (item + 1) * width));
  if (rows !== null) for (let at = 0; at < width; at += 1) row[at] *= rows[item] * columns[at];
  return row;
}

/** Add to each item the product of its row with a vector. */
function addProducts({ shape: [count, width], data, rows, columns }, vector, total) {
  const own = columns === null ? vector : vector.map((value, at) => value * columns[at]);
  for (let item = 0, at = 0; item < count; item += 1) {
    let sum = 0;
    for (let factor = 0; factor < width; factor += 1, at += 1) sum += own[factor] * data[at];
    total[item] += rows === null ? sum : rows[item] * sum;
  }
}

function embedded({ arrays: { vectors, mean, spread }, ridge, ...numbers }, history) {
  const weights = recency(history, numbers, missedSteps(history));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const place = new Float64Array(vectors.shape[1]);
  history.items.forEach((item, index) => {
    const weight = Math.fround(weights[index]);
    rowOf(vectors, item).forEach((value, at) => (place[at] += weight * value));
  });
  const own = place.map((value, at) => (value - sum * mean.data[at]) / (sum * spread.data[at] + ridge));
  // The part of the embedding that the history determines, by how much users differ along each direction.
  let [seen, whole] = [0, 0];
  for (const one of spread.data) {
    seen += (one * sum * one) / (sum * one + ridge);
    whole += one;
  }
  return { own, known: whole > 0 ? seen / whole : 0 };
}

function confident({ arrays: { vectors, gram }, alpha, regularization }, { items }) {
  const size = vectors.shape[1];
  if (items.length === 0) return new Float64Array(size);
  const system = Array.from({ length: size }, (_, at) => {
    const row = new Float64Array(size + 1);
    row.set(gram.data.subarray(at * size, (at + 1) * size));
    row[at] += regularization;
    return row;
  });
  for (const item of items) addSquare(system, rowOf(vectors, item), alpha, 1 + alpha);
  return solve(system);
}

function addFromItems({ arrays: { starts, columns, values }, weight, ...numbers }, history, total) {
  const weights = recency(history, numbers);
  history.items.forEach((item, index) => {
    const scale = weight * Math.fround(weights[index]) * (values.rows === null ? 1 : values.rows[item]);
    for (let at = starts.data[item]; at < starts.data[item + 1]; at += 1) total[columns.data[at]] += scale * values.data[at];
  });
}

/** Mix the probabilities of a part's items with what the weights of the history's items say of them. */
function blendNext({ arrays, blend: share, ...numbers }, history, total) {
  const blend = share / Math.sqrt(1 + missedSteps(history));
  const own = arrays.items.data;
  const follows = following(arrays, history, numbers, total.length).map((sum) => Math.max(sum, 0));
  const sum = follows.reduce((all, one) => all + one, 0);
  if (!(sum > 0)) return;
  let most = -Infinity;
  for (const item of own) most = Math.max(most, total[item]);
  let exponents = 0;
  for (const item of own) exponents += Math.exp(total[item] - most);
  const [together, kept] = [Math.log(exponents) + most, Math.log1p(-blend)];
  for (let item = 0; item < total.length; item += 1) total[item] += kept;
  own.forEach((item, at) => {
    if (follows[at] === 0) return;
    const [base, next] = [total[item], Math.log(follows[at] / sum) + together + Math.log(blend)];
    total[item] = Math.max(base, next) + Math.log1p(Math.exp(-Math.abs(base - next)));
  });
}

/** Add up rows of weights in single precision and in the order of items, as the library does. */
function following({ items, starts, columns, values }, history, numbers, count) {
  const rows = new Int32Array(count).fill(-1);
  items.data.forEach((item, row) => (rows[item] = row));
  const weights = recency(history, numbers, missedSteps(history));
  const order = Uint32Array.from(history.items.keys()).sort((one, other) => history.items[one] - history.items[other]);
  const sums = new Float32Array(items.data.length);
  for (const index of order) {
    const row = rows[history.items[index]];
    if (row < 0) continue;
    const weight = Math.fround(weights[index]);
    const scale = values.rows === null ? 1 : values.rows[row];
    for (let at = starts.data[row]; at < starts.data[row + 1]; at += 1) {
      sums[columns.data[at]] += Math.fround(weight * Math.fround(scale * values.data[at]));
    }
  }
  return Float64Array.from(sums);
}

/** Find the bias and the factors that fit the ratings best, a small ridge problem, and the stars that follow. */
function addStars({ arrays: { bias, vectors, ridge }, mean, low, high, power, weight }, { items, ratings }, total, found) {
  const size = ridge.data.length;
  const scale = Math.max(items.length, 1) ** power;
  const system = Array.from({ length: size }, (_, at) => {
    const row = new Float64Array(size + 1);
    row[at] = scale * ridge.data[at];
    return row;
  });
  items.forEach((item, index) => {
    addSquare(system, Float64Array.of(1, ...rowOf(vectors, item)), 1, ratings[index] - mean - bias.data[item]);
  });
  const own = items.length === 0 ? new Float64Array(size) : solve(system);
  const stars = Float64Array.from(bias.data, (value) => mean + value + own[0]);
  addProducts(vectors, own.subarray(1), stars);
  Object.assign(found, { own, mean, stars: Float32Array.from(stars), scale: { low, high } });
  if (weight !== 0) stars.forEach((value, item) => (total[item] += weight * value));
}

function addLiking({ arrays: { usual, table, slopes }, usual: kind, link, weight, deviation }, { ratings }, total, found) {
  const { own, mean, stars } = found;
  const average =
    kind === "own"
      ? (ratings.reduce((all, rating) => all + rating, 0) + mean) / (ratings.length + 1)
      : own.reduce((all, value, at) => all + value * usual.data[1 + at], usual.data[0]);
  const liked = link === "normal" ? (above) => logNormal(above, table.data, slopes.data) : logLogistic;
  for (let item = 0; item < total.length; item += 1) {
    total[item] = Math.fround(total[item]) + weight * liked((stars[item] - average) / deviation);
  }
}

/** Return the logarithm of the normal distribution: a cubic between points of a table. */
function logNormal(number, table, slopes) {
  if (number < LEAST) {
    const square = number * number;
    return 2.5 / (square * square) - 1 / square - square / 2 - Math.log(-number * Math.sqrt(2 * Math.PI));
  }
  if (!(number < MOST)) return 0;
  const place = (number - LEAST) * PER_UNIT;
  const left = Math.min(Math.floor(place), table.length - 2);
  const [part, rest] = [place - left, 1 - (place - left)];
  const before = rest * rest * ((1 + 2 * part) * table[left] + part * slopes[left]);
  return before + part * part * ((1 + 2 * rest) * table[left + 1] - rest * slopes[left + 1]);
}

const softplus = (value) => Math.max(value, 0) + Math.log1p(Math.exp(-Math.abs(value)));
const logLogistic = (above) => -softplus(-LOGISTIC * above);

/** Return stars inside the scale as users read them; a soft clip keeps very good items apart. */
export function shownStars(stars, { low, high }) {
  const soft = Math.max((high - low) * SOFTNESS, 1e-150);
  const inside = stars - soft * softplus((stars - high) / soft) + soft * softplus((low - stars) / soft);
  return Math.min(high, Math.max(low, inside));
}

function addSquare(system, row, weight, target) {
  const size = row.length;
  for (let one = 0; one < size; one += 1) {
    for (let other = 0; other < size; other += 1) system[one][other] += weight * row[one] * row[other];
    system[one][size] += row[one] * target;
  }
}

/** Solve a positive definite system, given with its right side as the last column. */
function solve(system) {
  const size = system.length;
  for (let pivot = 0; pivot < size; pivot += 1) {
    for (let below = pivot + 1; below < size; below += 1) {
      const share = system[below][pivot] / system[pivot][pivot];
      for (let at = pivot; at <= size; at += 1) system[below][at] -= share * system[pivot][at];
    }
  }
  const found = new Float64Array(size);
  for (let row = size - 1; row >= 0; row -= 1) {
    let rest = system[row][size];
    for (let at = row + 1; at < size; at += 1) rest -= system[row][at] * found[at];
    found[row] = rest / system[row][row];
  }
  return found;
}
