// Recommend on this device: the model comes here, what was said does not leave.

const HEADER = 32;
// The logistic function at this multiple is nearly the normal distribution; ratings deviate from predictions by
// about this part of half the scale. Both are those of the library.
const LOGISTIC = 1.702;
const DEVIATION = 0.45;

/** Read item vectors as the service publishes them. */
export function readVectors(buffer) {
  const view = new DataView(buffer);
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  const version = view.getUint32(4, true);
  if (magic !== "DSCV" || (version !== 1 && version !== 2)) throw new RangeError("This is not a model for browsers.");
  const [items, factors] = [view.getUint32(8, true), view.getUint32(12, true)];
  const [mean, low, high, power] = [16, 20, 24, 28].map((at) => view.getFloat32(at, true));
  const floats = new Float32Array(buffer, HEADER);
  const end = 1 + factors + items + items * factors;
  if (floats.length !== end + (version === 2 ? 1 + items : 0)) throw new RangeError("This model is damaged.");
  return {
    items, factors, mean, low, high, power,
    ridge: floats.subarray(0, 1 + factors),
    bias: floats.subarray(1 + factors, 1 + factors + items),
    vectors: floats.subarray(1 + factors + items, end),
    liking: version === 2 ? floats[end] : 0,
    counts: version === 2 ? floats.subarray(end + 1) : null,
  };
}

const rowOf = ({ factors, vectors }, item) => [1, ...vectors.subarray(item * factors, (item + 1) * factors)];

/** Return the bias and the factors that fit a history best, a small ridge problem. */
export function foldIn(model, history) {
  const size = 1 + model.factors;
  const scale = Math.max(history.length, 1) ** model.power;
  const system = Array.from({ length: size }, (_, at) => {
    const row = new Float64Array(size + 1);
    row[at] = scale * model.ridge[at];
    return row;
  });
  for (const [item, rating] of history) {
    const row = rowOf(model, item);
    const rest = rating - model.mean - model.bias[item];
    for (let one = 0; one < size; one += 1) {
      for (let other = 0; other < size; other += 1) system[one][other] += row[one] * row[other];
      system[one][size] += row[one] * rest;
    }
  }
  return solve(system);
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

/** Return what a list is sorted by: logarithms of counts and the odds of liking; without counts the stars. */
function ranking(model, stars) {
  if (model.counts === null) return stars;
  const popularity = model.counts.map((count) => Math.exp(count));
  const total = popularity.reduce((sum, one) => sum + one, 0);
  const usual = stars.reduce((sum, one, item) => sum + one * (popularity[item] / total), 0);
  const steep = LOGISTIC / ((DEVIATION * (model.high - model.low)) / 2);
  const liked = (one) => -Math.log1p(Math.exp(steep * (usual - one)));
  return stars.map((one, item) => model.counts[item] + model.liking * liked(one));
}

/** Return the best `k` items that are not in the history: [item, expected rating, score], by falling score. */
export function recommend(model, history, k) {
  const own = foldIn(model, history);
  const seen = new Set(history.map(([item]) => item));
  const stars = Array.from({ length: model.items }, (_, item) => {
    const personal = rowOf(model, item).reduce((sum, value, at) => sum + value * own[at], 0);
    return model.mean + model.bias[item] + personal;
  });
  const scores = ranking(model, stars);
  const best = [...scores.keys()].filter((item) => !seen.has(item)).sort((one, other) => scores[other] - scores[one]);
  const inside = (one) => Math.min(model.high, Math.max(model.low, one));
  return best.slice(0, k).map((item) => [item, inside(stars[item]), scores[item]]);
}
