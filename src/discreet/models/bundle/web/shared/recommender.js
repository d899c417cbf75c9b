// Recommend on this device: the model comes here, the history does not leave.

import { BundleError, readModel } from "./reading.js";
import { scoreAll, shownStars } from "./scoring.js";

export { BundleError };

const MOST_BYTES = 2 ** 26;

/** Open a bundle: `base` is the address of its folder, by default the one that this module came from. */
export async function openBundle(base = new URL("../", import.meta.url), { precision, read = fetched } = {}) {
  const named = (name) => read(new URL(name, base));
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

async function fetched(url) {
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
    this.#model = readModel(model);
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

  /** Return the ratings that a person may give, lowest first; empty where only interactions count. */
  get ratings() {
    const { low, high, step } = this.#model;
    if (!this.needsRatings || !(high > low)) return [];
    const count = step > 0 ? Math.min(Math.round((high - low) / step), 100) : 4;
    return Array.from({ length: count + 1 }, (_, at) => low + (at * (high - low)) / count);
  }

  /** Return what an item is called: its title, or its id. */
  titleOf(id) {
    const place = this.#places.get(id);
    return (place !== undefined && this.titles?.[place]) || String(id);
  }

  has(id) {
    return this.#places.has(id);
  }

  /** Return the score of every item, in the order of `ids`. */
  scores(history, { ordered = true, ignoreUnknown = false } = {}) {
    return this.#score(history, ordered, ignoreUnknown).scores;
  }

  /** Return the best `k` items for a history, oldest first: ids, [id, rating] pairs, or { item, rating, time }. */
  recommend(history, options = {}) {
    const { k = 10, excludeSeen = true, exclude = [], among = null, ordered = true, ignoreUnknown = false } = options;
    if (!Number.isInteger(k) || k < 1) throw new RangeError(`k = ${k} must be a whole number of at least 1.`);
    const { scores, stars, scale, items } = this.#score(history, ordered, ignoreUnknown);
    const closed = new Uint8Array(this.ids.length).fill(among === null ? 0 : 1);
    for (const id of among ?? []) closed[this.#place(id)] = 0;
    for (const id of exclude) closed[this.#place(id)] = 1;
    if (excludeSeen) for (const item of items) closed[item] = 1;
    return bestPlaces(scores, closed, k).map((place) => ({
      item: this.ids[place],
      title: this.titleOf(this.ids[place]),
      score: scores[place],
      ...(stars === null ? {} : { stars: shownStars(stars[place], scale) }),
    }));
  }

  #score(history, ordered, ignoreUnknown) {
    const row = this.#row(history, ordered, ignoreUnknown);
    return { ...scoreAll(this.#model.parts, this.ids.length, row), items: row.items };
  }

  #place(id) {
    const place = this.#places.get(id);
    if (place === undefined) throw new RangeError("This item is not in the model's catalog.");
    return place;
  }

  /** Return places, ratings and times of a history; of an item that comes twice the last entry counts. */
  #row(history, ordered, ignoreUnknown) {
    const last = new Map();
    for (const entry of history) {
      const [id, rating, time] = Array.isArray(entry)
        ? entry
        : typeof entry === "object" && entry !== null ? [entry.item, entry.rating, entry.time] : [entry];
      if (ignoreUnknown && !this.has(id)) continue;
      const place = this.#place(id);
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
    };
  }

  #checked(rating) {
    if (!this.needsRatings) return null;
    const { low, high } = this.#model;
    if (!(rating >= low && rating <= high)) throw new RangeError(`This model needs ratings from ${low} to ${high}.`);
    return Math.fround(rating);
  }
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
