// Recommend on this device: the model comes here, the history does not leave.

import { BundleError, readModel } from "./reading.js";
import { epochSeconds, scoreAll, shownStars } from "./scoring.js";

export { BundleError };

const MOST_BYTES = 2 ** 26;
const MOST_NAMED = 5;
const OPTIONS = new Set(["k", "excludeSeen", "exclude", "among", "ordered", "ignoreUnknown", "now"]);

/** Items that the model's catalog doesn't have. `items` lists them. */
export class UnknownItemsError extends RangeError {
  constructor(items) {
    const named = items.slice(0, MOST_NAMED).map((id) => JSON.stringify(id) ?? String(id));
    const more = items.length > MOST_NAMED ? `, and ${items.length - MOST_NAMED} more` : "";
    const what = items.length === 1 ? "1 item isn't" : `${items.length} items aren't`;
    super(`${what} in the model's catalog: ${named.join(", ")}${more}. In a history, ignoreUnknown: true skips them.`);
    this.name = "UnknownItemsError";
    this.code = "unknown-items";
    this.items = items;
  }
}

/** Open a bundle: `base` is the address of its folder, by default the one that this module came from. */
export async function openBundle(base = new URL("../", import.meta.url), { precision, read = fetched } = {}) {
  const named = async (name) => bufferOf(await read(new URL(name, base)), name);
  const text = async (name) => JSON.parse(new TextDecoder().decode(await named(name)));
  const [about, items, label] = await Promise.all(["bundle.json", "items.json", "label.json"].map(text));
  const chosen = precision ?? about.precision;
  const entry = Object.hasOwn(about.models ?? {}, chosen) ? about.models[chosen] : null;
  // A name of the file that is no plain name would lead elsewhere.
  if (!/^model\.[a-z0-9]+\.bin$/.test(entry?.file ?? "")) {
    throw new BundleError(`This bundle has no model in ${chosen}; it has ${Object.keys(about.models ?? {}).join(", ")}.`);
  }
  return new Recommender({ model: await named(entry.file), items, label, about });
}

/** Return the bytes of a file as a buffer: `read` may return a view, such as Node's Buffer. */
function bufferOf(content, name) {
  if (ArrayBuffer.isView(content)) {
    return content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength);
  }
  if (content instanceof ArrayBuffer) return content;
  throw new BundleError(`read() returned no bytes of ${name}. Return an ArrayBuffer or a Uint8Array.`);
}

async function fetched(url) {
  // Node's fetch doesn't read files.
  if (url.protocol === "file:") return (await import("node:fs/promises")).readFile(url);
  const answer = await fetch(url);
  if (!answer.ok) throw new BundleError(`${url.pathname} cannot be read.`);
  const parts = [];
  const declared = Number(answer.headers.get("content-length"));
  // What a header says may be wrong, so bytes are counted as they come.
  let size = 0;
  const reader = answer.body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    size += next.value.length;
    if (Math.max(size, declared) > MOST_BYTES) {
      await reader.cancel();
      throw new BundleError(`${url.pathname} is too large.`);
    }
  }
  const content = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    content.set(part, at);
    at += part.length;
  }
  return content.buffer;
}

/** Makes lists from a history that stays where it is. */
export class Recommender {
  #model;
  #places;

  /** Take what `openBundle` fetches; of a file's `items` only ids are needed. */
  constructor({ model, items, label = null, about = null }) {
    this.#model = readModel(bufferOf(model, "the model"));
    if (!Array.isArray(items?.ids) || items.ids.length !== this.#model.items) {
      throw new BundleError("The model and its list of items do not belong together.");
    }
    this.ids = items.ids;
    this.titles = Array.isArray(items.titles) && items.titles.length === items.ids.length ? items.titles : null;
    this.label = label;
    this.about = about;
    this.#places = new Map(this.ids.map((id, place) => [id, place]));
  }

  get precision() {
    return this.#model.precision;
  }

  get needsRatings() {
    return this.#model.needs_ratings === true;
  }

  get rankedBy() {
    return String(this.#model.ranked_by ?? "");
  }

  /** Return the ratings that a user may give, lowest first; empty where only interactions count. */
  get ratings() {
    const { low, high, step } = this.#model;
    if (!this.needsRatings || !(high > low)) return [];
    const count = step > 0 ? Math.min(Math.round((high - low) / step), 100) : 4;
    return Array.from({ length: count + 1 }, (_, at) => low + (at * (high - low)) / count);
  }

  /** Return what an item is called: its title, or its id. */
  titleOf(id) {
    const place = this.#find(id);
    return (place !== undefined && this.titles?.[place]) || String(id);
  }

  has(id) {
    return this.#find(id) !== undefined;
  }

  /** Return the score of every item, in the order of `ids`. */
  scores(history, order = {}) {
    return this.#score(history, order).scores;
  }

  /** Return the best `k` items for a history, oldest first: ids, [id, rating] pairs, or { item, rating, time }. */
  recommend(history, options = {}) {
    checkOptions(options);
    const { k = 10, excludeSeen = true, exclude = [], among = null } = options;
    if (!Number.isInteger(k) || k < 1) throw new RangeError(`k = ${k} must be a whole number of at least 1.`);
    const { scores, stars, scale, items } = this.#score(history, options);
    const closed = new Uint8Array(this.ids.length).fill(among === null ? 0 : 1);
    for (const place of this.#known(among ?? [])) closed[place] = 0;
    for (const place of this.#known(exclude)) closed[place] = 1;
    if (excludeSeen) for (const item of items) closed[item] = 1;
    return bestPlaces(scores, closed, k).map((place) => ({
      item: this.ids[place],
      title: this.titleOf(this.ids[place]),
      score: scores[place],
      ...(stars === null ? {} : { stars: shownStars(stars[place], scale) }),
    }));
  }

  #score(history, order) {
    const row = this.#row(history, order);
    return { ...scoreAll(this.#model.parts, this.ids.length, row), items: row.items };
  }

  /** Return an item's place. JSON and forms turn 7 into "7", so an ID is found in either form. */
  #find(id) {
    const place = this.#places.get(id);
    if (place !== undefined) return place;
    if (typeof id === "number") return this.#places.get(String(id));
    if (typeof id === "string" && id !== "" && String(Number(id)) === id) return this.#places.get(Number(id));
    return undefined;
  }

  /** Return the places of items; if some are unknown, name them. */
  #known(ids) {
    const given = [...ids];
    const unknown = given.filter((id) => !this.has(id));
    if (unknown.length) throw new UnknownItemsError(unknown);
    return given.map((id) => this.#find(id));
  }

  /** Return places, ratings and times of a history; of an item that comes twice the last entry counts. */
  #row(history, { ordered = true, ignoreUnknown = false, now = null }) {
    // The letters of a text aren't items.
    if (typeof history?.[Symbol.iterator] !== "function" || typeof history === "string") {
      throw new TypeError('A history is a list of items, such as ["SKU-1", "SKU-2"].');
    }
    const requested = now === null ? null : epochSeconds(now instanceof Date ? now.getTime() : now);
    if (Number.isNaN(requested)) throw new RangeError("now must be a Date, or an epoch time after 1973.");
    const last = new Map();
    let given = Array.from(history, (entry) =>
      Array.isArray(entry)
        ? entry
        : typeof entry === "object" && entry !== null ? [entry.item, entry.rating, entry.time] : [entry]);
    if (ignoreUnknown) given = given.filter(([id]) => this.has(id));
    const places = this.#known(given.map(([id]) => id));
    for (const [at, [, rating, time]] of given.entries()) {
      const place = places[at];
      last.delete(place);
      last.set(place, { place, rating: this.#checked(rating), time });
    }
    const entries = [...last.values()];
    const timed = entries.filter(({ time }) => Number.isFinite(time)).length;
    if (timed !== 0 && timed !== entries.length) throw new RangeError("All entries of a history need a time, or none.");
    return {
      items: entries.map(({ place }) => place),
      ratings: this.needsRatings ? entries.map(({ rating }) => rating) : null,
      times: !ordered ? null : entries.map(({ time }, at) => (timed ? time : at)),
      now: this.#model.positions === true ? null : requested,
    };
  }

  #checked(rating) {
    if (!this.needsRatings) return null;
    const { low, high } = this.#model;
    if (!(rating >= low && rating <= high)) throw new RangeError(`This model needs ratings from ${low} to ${high}.`);
    return Math.fround(rating);
  }
}

/** Reject options that would have no effect: calls of other libraries have other names. */
function checkOptions(options) {
  const given = typeof options === "object" && options !== null && !Array.isArray(options);
  const unknown = given ? Object.keys(options).filter((name) => !OPTIONS.has(name)) : [];
  if (given && unknown.length === 0) return;
  const what = given ? `There is no option ${unknown.join(", ")}.` : "Options are an object.";
  throw new TypeError(`${what} Call recommend(history, { k: 10 }). The options are ${[...OPTIONS].join(", ")}.`);
}

/** Return the places of the `k` largest scores that are open, largest first and ties in their order. */
export function bestPlaces(scores, closed, k) {
  const places = [];
  for (let item = 0; item < scores.length; item += 1) {
    if (closed[item] || (places.length === k && !(scores[item] > scores[places[k - 1]]))) continue;
    if (places.length === k) places.pop();
    let at = places.length;
    while (at > 0 && scores[places[at - 1]] < scores[item]) at -= 1;
    places.splice(at, 0, item);
  }
  return places;
}
