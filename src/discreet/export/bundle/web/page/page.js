// The page of a bundle: choose what you know, and be recommended something. Nothing leaves the device.

import { at, inWords, listedItem, make, number, ratingFields } from "../shared/dom.js";
import { showLabel } from "../shared/label.js";
import { BundleError, openBundle } from "../shared/recommender.js";
import { findItems } from "../shared/search.js";
import { openStorage } from "../shared/storage.js";

const MOST_SHOWN = 60;
const base = new URL("../", import.meta.url);
// Tabs of one bundle share a history; bundles in other folders of the same site have their own.
const others = new BroadcastChannel(`discreet ${base.pathname}`);

let recommender;
let titles;
let storage;
let history = [];
let chosen = null;

start().catch((error) => {
  if (!(error instanceof BundleError)) console.error(error);
  at("refused").textContent = error instanceof BundleError ? error.message : "This browser can't open the bundle. Use a newer browser, or check the files.";
  at("refused").hidden = false;
});

async function start() {
  recommender = await openBundle(base);
  titles = recommender.ids.map((id) => recommender.titleOf(id));
  storage = await openStorage(`discreet ${base.pathname}`, 1, { settings: "name" });
  introduce();
  listen();
  await refresh();
  keepOffline();
}

function introduce() {
  const { about, label } = recommender;
  if (typeof about.title === "string") at("name").textContent = document.title = about.title;
  at("label").replaceChildren(...showLabel(label));
  const { bytes, shared_at_10: shared, lists } = about.models[recommender.precision];
  at("measured").textContent =
    `${number(recommender.ids.length)} items in ${recommender.precision}, ${number(bytes / 1000)} kB. ` +
    `${number(100 * shared)}% of the first ten items are those of the full model, on ${number(lists)} drawn histories.`;
  at("own-about").textContent = recommender.needsRatings
    ? "Kept in this browser only."
    : "Kept in this browser only, the latest first. Recent items count more.";
  at("ratings").replaceChildren(...ratingFields(recommender.ratings));
  for (const section of document.querySelectorAll("section")) section.hidden = false;
  find();
}

function listen() {
  at("search").addEventListener("input", find);
  at("rate").addEventListener("submit", (event) => {
    event.preventDefault();
    keep(chosen, Number(new FormData(at("rate")).get("rating")));
  });
  at("forget").addEventListener("click", () => change([], "Your history was deleted."));
  others.addEventListener("message", refresh);
}

function find() {
  const button = (place) => make("button", { type: "button", text: titles[place], onclick: () => choose(place) });
  at("found").replaceChildren(...findItems(titles, at("search").value).map((place) => make("li", {}, button(place))));
}

function choose(place) {
  chosen = place;
  if (!recommender.needsRatings) {
    keep(place);
    return;
  }
  at("rated-title").textContent = titles[place];
  at("rate").hidden = false;
  at("rate").reset();
  at("ratings").querySelector("input").focus();
}

async function keep(place, rating) {
  const item = recommender.ids[place];
  const entry = recommender.needsRatings ? { item, rating } : { item };
  at("rate").hidden = true;
  at("search").value = "";
  find();
  at("search").focus();
  await change([...history.filter((one) => one.item !== item), entry], `${titles[place]} is kept in this browser.`);
}

/** Keep a history, show what follows from it, and let other tabs know. */
async function change(entries, sentence) {
  await storage.set("history", entries);
  await refresh();
  at("status").textContent = sentence;
  others.postMessage("changed");
}

async function refresh() {
  // A later bundle may lack an item; what was stored stays until it is deleted.
  history = await storage.setting("history", []);
  const known = history.filter(({ item }) => recommender.has(item));
  const shown = known.toReversed().slice(0, MOST_SHOWN);
  at("history").replaceChildren(...shown.map(historyLine));
  at("forget").disabled = history.length === 0;
  at("suggestions-about").textContent =
    known.length === 0
      ? "Until you choose an item, every user gets this list."
      : `Computed here from your ${known.length === 1 ? "one item" : `${known.length} items`}. Sorted by ${recommender.rankedBy}.`;
  at("suggested").replaceChildren(...recommender.recommend(known).map(({ title, stars }) => listedItem(title, stars)));
}

function historyLine({ item, rating }) {
  const title = recommender.titleOf(item);
  const remove = make("button", { type: "button", text: "Remove", onclick: () => forget(item) });
  remove.setAttribute("aria-label", `Remove ${title}`);
  const said = rating === undefined ? [] : [make("span", { text: inWords(recommender.ratings, rating) })];
  return make("li", {}, make("span", { text: title }), ...said, remove);
}

const forget = (item) =>
  change(history.filter((one) => one.item !== item), `${recommender.titleOf(item)} is removed.`);

/** Let a worker keep the files, so that the page opens without a connection. */
async function keepOffline() {
  if (!("serviceWorker" in navigator)) return;
  const address = new URL("worker.js", base).href;
  const policy = globalThis.trustedTypes?.createPolicy("discreet-worker", { createScriptURL: () => address });
  try {
    await navigator.serviceWorker.register(policy?.createScriptURL("") ?? address);
    await navigator.serviceWorker.ready;
    at("offline").textContent = "This page is stored on the device, so it works without a connection.";
  } catch {
    at("offline").textContent = "This page can't be stored on the device, so it needs a connection to open.";
  }
}
