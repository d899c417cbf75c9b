// Recommend on this device: the model comes here, what was said does not leave.

const HEADER = 32;

/** Read item vectors as the service publishes them. */
export function readVectors(buffer) {
  const view = new DataView(buffer);
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  if (magic !== "DSCV" || view.getUint32(4, true) !== 1) throw new RangeError("This is not a model for browsers.");
  const [items, factors] = [view.getUint32(8, true), view.getUint32(12, true)];
  const [mean, low, high, power] = [16, 20, 24, 28].map((at) => view.getFloat32(at, true));
  const floats = new Float32Array(buffer, HEADER);
  if (floats.length !== 1 + factors + items + items * factors) throw new RangeError("This model is damaged.");
  return {
    items, factors, mean, low, high, power,
    ridge: floats.subarray(0, 1 + factors),
    bias: floats.subarray(1 + factors, 1 + factors + items),
    vectors: floats.subarray(1 + factors + items),
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

/** Return the best `k` items that are not in the history: [item, predicted rating], best first. */
export function recommend(model, history, k) {
  const own = foldIn(model, history);
  const seen = new Set(history.map(([item]) => item));
  const scored = [];
  for (let item = 0; item < model.items; item += 1) {
    if (seen.has(item)) continue;
    const personal = rowOf(model, item).reduce((sum, value, at) => sum + value * own[at], 0);
    scored.push([item, model.mean + model.bias[item] + personal]);
  }
  const best = scored.sort(([, one], [, other]) => other - one).slice(0, k);
  return best.map(([item, score]) => [item, Math.min(model.high, Math.max(model.low, score))]);
}
