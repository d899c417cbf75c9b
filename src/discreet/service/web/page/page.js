// The page: find an item, rate it, see what will be sent, send it, and be recommended something.

import { isCode, openCampaign, priceOf, shownAs } from "../device/device.js";
import { at, inWords, listedItem, make, number, ratingFields } from "../shared/dom.js";
import { showLabel } from "../shared/label.js";
import { Recommender } from "../shared/recommender.js";
import { FEW_ITEMS, findItems } from "../shared/search.js";
import { openKeeping } from "./keeping.js";
import { LimitError, Person } from "./person.js";
import { about, answerCard, cost } from "./showing.js";

const MOST_SHOWN = 60;
const RETRY_SECONDS = 30;
const others = new BroadcastChannel("discreet");

let campaign;
let person;
let keeping;
let model = null;
let shown = null;
let chosen = null;
let closed = false;

start().catch((error) => refuse(error.message));

async function start() {
  if (!globalThis.isSecureContext) throw new Error("This page can't check a campaign without https. Open its https address.");
  const answer = await fetch("/campaign");
  if (!answer.ok) throw new Error("The campaign can't be read. Reload this page later.");
  campaign = await openCampaign(new Uint8Array(await answer.arrayBuffer()));
  keeping = await openKeeping();
  person = new Person(keeping, campaign);
  await person.begin();
  await fetchModel();
  introduce();
  listen();
  await refresh();
  if (closed) {
    say("This collection is closed and accepts no more answers. Your ratings stay on this device.");
    return;
  }
  if (campaign.invitations !== null) await act(redeem);
  if (await keeping.setting(`queued ${person.key}`, false)) await send();
}

function refuse(sentence) {
  at("refused").textContent = sentence;
  at("refused").hidden = false;
  at("promise").textContent = "No answer was drawn, and nothing was sent.";
  for (const section of document.querySelectorAll("section")) section.hidden = true;
}

function introduce() {
  const { answer, most, person: whole } = priceOf(campaign);
  const factor = about(Math.exp(answer));
  const hidden = campaign.kind === "catalog" ? "Whether and how you rated any one item" : "How you rated any one item";
  document.title = `${campaign.name} – rate in private`;
  at("name").textContent = campaign.name;
  at("promise").textContent =
    `This device adds noise to your answers before it sends them. ${hidden} changes the ` +
    `probability of any report by a factor of at most ${factor} (ε = ${number(answer)}). This protects you against ` +
    `everyone who reads the report, including the organizer.`;
  at("seen").textContent =
    campaign.kind === "catalog"
      ? "The organizer can't see which items you rated, because the report covers the whole list."
      : "The organizer can see which items you rated and that one device rated them, but not your true ratings. " +
        "Rate only items you don't mind being linked to.";
  at("checked").textContent =
    `This page has checked this in the campaign's tables. All ${number(most)} answers together cost at most ` +
    `ε = ${cost(whole)}. Campaign ${person.key.slice(0, 16)}…`;
  at("outbox-about").textContent =
    campaign.kind === "catalog"
      ? "Your answer covers the whole list, so it doesn't show which items you know. It is drawn once."
      : `A report may equal your true rating, but any rating could have led to it. The rating that makes it ` +
        `likeliest does so at most ${factor} times as often as any other. It was drawn once and doesn't change.`;
  at("draw").hidden = campaign.kind !== "catalog";
  for (const section of document.querySelectorAll("section")) section.hidden = false;
  at("suggestions").hidden = model === null;
  at("few").hidden = campaign.items.length > FEW_ITEMS;
  at("few").textContent = "Choose an item from the list, or type to shorten the list.";
  find();
  at("ratings").replaceChildren(...ratingFields(campaign.ratings));
}

/** Exchange the invitation in this page's address for a token, before anything is answered. */
async function redeem() {
  const code = location.hash.slice(1);
  const redeemed = await person.redeem(isCode(code) ? code : null, ask);
  history.replaceState(null, "", location.pathname);
  if (redeemed) say("Your invitation was accepted. Your reports don't contain it.");
  else if ((await person.token()) === null) {
    say("This campaign accepts answers of invited users only. Open the link that you were given.");
  }
}

/** Ask for a token; a refusal is an answer, too: another invitation may be tried. */
async function ask(request) {
  const headers = { "content-type": "application/json" };
  const signal = AbortSignal.timeout(1000 * RETRY_SECONDS);
  const body = JSON.stringify(request);
  const answer = await fetch("/invitations", { method: "POST", body, headers, signal, credentials: "omit" });
  const read = await answer.json();
  if (answer.status === 429 || answer.status >= 500) throw new LimitError(`${read.error} Reload this page later.`);
  return answer.ok ? read : { refused: read.error };
}

function listen() {
  at("search").addEventListener("input", find);
  at("rate").addEventListener("submit", (event) => {
    event.preventDefault();
    act(rate);
  });
  at("send").addEventListener("click", () => act(send));
  at("draw").addEventListener("click", () => act(() => person.drawCatalog()));
  at("forget").addEventListener("click", () => act(() => person.forget()));
  at("limit").addEventListener("change", () => act(() => person.setLimit(Math.max(0, at("limit").valueAsNumber || 0))));
  others.addEventListener("message", refresh);
  addEventListener("online", resume);
  setInterval(resume, 1000 * RETRY_SECONDS);
}

/** Do what was asked for, tell what came of it, and let other tabs know. */
async function act(work) {
  say("");
  try {
    await work();
  } catch (error) {
    if (!(error instanceof LimitError)) console.error(error);
    say(error instanceof LimitError ? error.message : "Something went wrong on this device. Nothing was sent.");
  }
  await refresh();
  others.postMessage("changed");
}

const say = (sentence) => {
  at("status").textContent = sentence;
};

function find() {
  at("found").replaceChildren(
    ...findItems(campaign.items, at("search").value).map((item) =>
      make("li", {}, make("button", { type: "button", text: campaign.items[item], onclick: () => choose(item) })),
    ),
  );
}

function choose(item) {
  chosen = item;
  at("rated-title").textContent = campaign.items[item];
  at("rate").hidden = false;
  at("rate").reset();
  at("ratings").querySelector("input").focus();
}

async function rate() {
  const rating = Number(new FormData(at("rate")).get("rating"));
  await person.say(chosen, rating);
  at("rate").hidden = true;
  at("search").value = "";
  find();
  at("search").focus();
  say(`${campaign.items[chosen]} is kept on this device.`);
}

async function send() {
  await keeping.set(`queued ${person.key}`, true);
  let told;
  try {
    told = await person.send(post);
  } catch (error) {
    if (error instanceof TypeError || error.name === "TimeoutError") {
      say("No connection. Your answers are kept and will be sent when you are online.");
      return;
    }
    await keeping.set(`queued ${person.key}`, false);
    say(error.message);
    return;
  }
  await keeping.set(`queued ${person.key}`, false);
  // Another tab may have been faster.
  say(told ? `Sent. The service stored ${told.kept + told.repeated} of your answers.` : "Nothing is left to send.");
}

async function resume() {
  if (!navigator.onLine) return;
  if (await keeping.setting(`queued ${person.key}`, false)) await act(send);
  // A model may have been published, or replaced, since. A page that nobody looks at doesn't ask.
  if (!document.hidden && (await fetchModel().catch(() => false))) {
    at("suggestions").hidden = false;
    await refresh();
  }
}

/** Post one message; a connection that fails is a TypeError, a refusal an Error with the service's sentence. */
async function post(body) {
  const token = await person.token();
  const headers = { "content-type": "application/octet-stream", ...(token && { "x-discreet-token": token }) };
  const signal = AbortSignal.timeout(1000 * RETRY_SECONDS);
  const answer = await fetch("/reports", { method: "POST", body, headers, signal, credentials: "omit" });
  const told = await answer.json();
  if (answer.status === 429 || answer.status >= 500) throw new TypeError(told.error);
  if (!answer.ok) throw new Error(told.error);
  return told;
}

async function refresh() {
  const [answers, drawn, costs, limit] = await Promise.all([
    person.answers(), person.catalogAnswer(), person.costs(), person.limit(),
  ]);
  const open = answers.filter((one) => !one.withdrawn).sort((one, other) => one.item - other.item);
  if (campaign.kind === "catalog") showCatalog(open, drawn);
  else showAnswers(open);
  showLedger(costs, limit);
  showSuggestions(open);
}

function showAnswers(open) {
  at("answers").replaceChildren(
    ...open.map(({ item, said, code, attempted, sent }) =>
      answerCard(
        campaign.items[item],
        said === null ? "deleted" : inWords(campaign.ratings, said),
        number(shownAs(campaign, code)),
        sent ? "sent" : attempted ? "on its way" : "not sent",
        attempted ? null : () => act(() => person.withdraw(item)),
      ),
    ),
  );
  const waiting = open.filter(({ sent }) => !sent).length;
  at("send").disabled = waiting === 0;
  at("send").textContent = waiting === 0 ? "Send" : `Send ${waiting} ${waiting === 1 ? "answer" : "answers"}`;
}

function showCatalog(open, drawn) {
  const reported = new Map(drawn ? drawn.answer.items.map((item, place) => [item, drawn.answer.codes[place]]) : []);
  const said = new Map(open.filter((one) => one.said !== null).map((one) => [one.item, one.said]));
  const listed = [...new Set([...said.keys(), ...reported.keys()])].sort((one, other) => one - other);
  const state = drawn?.sent ? "sent" : drawn?.attempted ? "on its way" : "not sent";
  const cards = listed.slice(0, MOST_SHOWN).map((item) =>
    answerCard(
      campaign.items[item],
      said.has(item) ? inWords(campaign.ratings, said.get(item)) : "nothing",
      !drawn ? "not drawn yet" : reported.has(item) ? number(shownAs(campaign, reported.get(item))) : "nothing",
      state,
      drawn ? null : () => act(() => person.withdraw(item)),
    ),
  );
  if (listed.length > MOST_SHOWN) cards.push(make("li", { text: `and ${listed.length - MOST_SHOWN} more` }));
  at("answers").replaceChildren(...cards);
  at("draw").disabled = Boolean(drawn) || said.size === 0;
  at("send").disabled = !drawn || drawn.sent;
}

function showLedger(costs, limit) {
  at("costs").replaceChildren(
    ...costs.map(({ name, epsilon, count, sent }) =>
      make(
        "tr",
        {},
        make("th", { text: name, scope: "row" }),
        make("td", { text: `${sent} sent, ${count - sent} waiting` }),
        make("td", { text: cost(count * epsilon) }),
      ),
    ),
  );
  if (document.activeElement !== at("limit")) at("limit").value = String(limit);
  const spent = costs.reduce((sum, { count, epsilon }) => sum + count * epsilon, 0);
  at("left").textContent = `Privacy cost: ${cost(spent)} of your limit of ${number(limit)}, including answers not sent yet.`;
}

/** Fetch the published model unless it is shown already; return whether there is a new one. */
async function fetchModel() {
  const { vectors, closed: ended } = await (await fetch("/health")).json();
  closed = ended;
  if (!vectors || vectors === shown) return false;
  const [answer, label] = await Promise.all([fetch("/model/vectors"), fetch("/label")]);
  if (!answer.ok || !label.ok) return false;
  model = new Recommender({ model: await answer.arrayBuffer(), items: { ids: [...campaign.items.keys()] } });
  at("label").replaceChildren(...showLabel(await label.json()));
  shown = vectors;
  return true;
}

function showSuggestions(open) {
  if (model === null) return;
  const history = open.filter(({ said }) => said !== null).map(({ item, said }) => [item, said]);
  at("suggestions-about").textContent =
    history.length === 0
      ? "Rate something first."
      : `Computed on this device from the published model; your ratings stay here. Sorted by ${model.rankedBy}.`;
  // Answers are kept by item, so they have no order.
  const best = history.length === 0 ? [] : model.recommend(history, { ordered: false });
  at("suggested").replaceChildren(...best.map(({ item, stars }) => listedItem(campaign.items[item], stars)));
}
