// Read the file of a model: a header in JSON, and arrays. It may come from anybody, so all of it is checked.

const MAGIC = "DSCB";
const VERSION = 1;
const HEAD = 16;
const MOST_BYTES = 2 ** 26;
const MOST_ITEMS = 2 ** 24;
const TYPES = {
  int8: Int8Array, uint16: Uint16Array, uint32: Uint32Array, float16: Uint16Array, float32: Float32Array, float64: Float64Array,
};
// What each kind of part is made of: the shapes of its arrays, in sizes that all must agree on.
const ARRAYS = {
  popularity: { bias: ["items"] },
  embedding: { vectors: ["items", "factors"], mean: ["factors"], spread: ["factors"] },
  confidence: { vectors: ["items", "factors"], gram: ["factors", "factors"] },
  ratings: { bias: ["items"], vectors: ["items", "factors"], ridge: ["own"] },
  "item-item": { starts: ["rows"], columns: ["entries"], values: ["entries"] },
  "next-items": { items: ["paired"], starts: ["rows"], columns: ["entries"], values: ["entries"] },
  liking: {},
};
const NUMBERS = {
  popularity: [],
  embedding: ["ridge", "fading", "evenly"],
  confidence: ["alpha", "regularization"],
  ratings: ["mean", "low", "high", "power", "weight"],
  "item-item": ["fading", "evenly", "weight"],
  "next-items": ["blend", "fading", "evenly"],
  liking: ["weight", "deviation"],
};

/** Say that a file is not what it should be. */
export class BundleError extends Error {}

const require = (ok, sentence = "This model is damaged.") => {
  if (!ok) throw new BundleError(sentence);
};
const isCount = (value, most) => Number.isInteger(value) && value >= 0 && value <= most;

/** Return the header and the parts of a model's file, with arrays in place of their descriptions. */
export function readModel(buffer) {
  require(buffer.byteLength >= HEAD && buffer.byteLength <= MOST_BYTES, "This is not a model for devices.");
  const view = new DataView(buffer);
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  require(magic === MAGIC && view.getUint32(4, true) === VERSION, "This is not a model for devices.");
  const length = view.getUint32(8, true);
  require(length % 8 === 0 && HEAD + length <= buffer.byteLength);
  const header = parsed(new TextDecoder().decode(new Uint8Array(buffer, HEAD, length)));
  require(isCount(header?.items, MOST_ITEMS) && Array.isArray(header.parts) && header.parts.length <= 16);
  const read = header.parts.map((part) => readPart(part, buffer, HEAD + length, header.items));
  const stars = read.findIndex(({ kind }) => kind === "ratings");
  require(read.every(({ kind }, place) => kind !== "liking" || (stars >= 0 && stars < place)));
  return { ...header, parts: read };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new BundleError("This model is damaged.");
  }
}

function readPart(part, buffer, base, items) {
  require(Object.hasOwn(ARRAYS, part?.kind), "This model needs a newer version of this program.");
  require(NUMBERS[part.kind].every((name) => Number.isFinite(part[name])) && part.arrays instanceof Object);
  const arrays = {};
  const sizes = { items };
  for (const [name, entry] of Object.entries(part.arrays)) arrays[name] = readArray(entry, buffer, base);
  for (const [name, shape] of Object.entries(ARRAYS[part.kind])) {
    require(Object.hasOwn(arrays, name) && arrays[name].shape.length === shape.length);
    shape.forEach((size, at) => require((sizes[size] ??= arrays[name].shape[at]) === arrays[name].shape[at]));
  }
  // Files of earlier versions have the penalty in the popularity.
  if (part.kind === "embedding") require((arrays.penalty?.data.length ?? items) === items);
  if (part.kind === "ratings") require(sizes.own === 1 + sizes.factors);
  if (part.kind === "item-item") checkRows(arrays, items);
  if (part.kind === "next-items") checkNext(part, arrays, items);
  if (part.kind === "liking") checkLiking(part, arrays);
  return { ...part, arrays };
}

function readArray(entry, buffer, base) {
  require(Object.hasOwn(TYPES, entry?.type) && Array.isArray(entry.shape) && entry.shape.length <= 2);
  require(entry.shape.every((size) => isCount(size, MOST_BYTES)));
  const data = slice(buffer, base, entry.at, TYPES[entry.type], entry.shape.reduce((all, size) => all * size, 1));
  const scale = (at, size) => (at === undefined ? null : slice(buffer, base, at, Float32Array, size));
  return {
    shape: entry.shape,
    data: entry.type === "float16" ? fromHalves(data) : data,
    rows: scale(entry.rows, entry.shape.length === 2 ? entry.shape[0] : entry.row_count),
    columns: scale(entry.columns, entry.shape[1]),
  };
}

function slice(buffer, base, at, type, count) {
  require(isCount(at, MOST_BYTES) && at % 8 === 0 && isCount(count, MOST_BYTES));
  require(base + at + count * type.BYTES_PER_ELEMENT <= buffer.byteLength);
  return new type(buffer, base + at, count);
}

function checkRows({ starts, columns, values }, items) {
  const at = starts.data;
  require(at.length === items + 1 && at[0] === 0 && at[items] === columns.data.length);
  for (let item = 0; item < items; item += 1) require(at[item] <= at[item + 1]);
  for (const column of columns.data) require(column < items);
  require(values.rows === null || values.rows.length === items);
}

function checkNext({ blend }, arrays, items) {
  const own = arrays.items.data;
  require(blend > 0 && blend < 1 && new Set(own).size === own.length && own.every((item) => item < items));
  checkRows(arrays, own.length);
}

function checkLiking(part, arrays) {
  require(["normal", "logistic"].includes(part.link) && ["own", "popular"].includes(part.usual));
  if (part.link === "normal") require(arrays.table?.data.length > 1 && arrays.slopes?.data.length === arrays.table.data.length);
  if (part.usual === "popular") require(arrays.usual?.data.length >= 2);
}

/** Return half precision as single precision, which every browser knows. */
export function fromHalves(halves) {
  const found = new Float32Array(halves.length);
  for (let at = 0; at < halves.length; at += 1) {
    const [sign, exponent, rest] = [halves[at] >> 15, (halves[at] >> 10) & 31, halves[at] & 1023];
    const size = exponent === 0 ? rest * 2 ** -24 : exponent === 31 ? Infinity : (1 + rest / 1024) * 2 ** (exponent - 15);
    found[at] = sign ? -size : size;
  }
  return found;
}
