// What a person said, what was drawn for it, and what it costs. Everything is kept before it is shown or sent.

import {
  answerCatalog, answerRating, fractionOf, inEnvelope, priceOf, requestToken, systemBytes, tokenOf, writeCatalog,
  writeRatings,
} from "../device/device.js";
import { alone } from "./keeping.js";

export const FIRST_LIMIT = 20;
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Say why something was not done; the person can mend it. */
export class LimitError extends Error {}

/** Tell whether so many answers at these prices cost at most `limit`, without rounding. */
export function affordable(costs, limit) {
  if (!(limit > 0)) return costs.every(({ count }) => count === 0);
  let [top, bottom] = [0n, 1n];
  for (const { count, epsilon } of costs) {
    const price = fractionOf(epsilon);
    [top, bottom] = [top * price.bottom + BigInt(count) * price.top * bottom, bottom * price.bottom];
  }
  const most = fractionOf(limit);
  return top * most.bottom <= most.top * bottom;
}

/** One person's side of one campaign. */
export class Person {
  #keeping;
  #campaign;

  constructor(keeping, campaign) {
    this.#keeping = keeping;
    this.#campaign = campaign;
    this.key = hex(campaign.digest);
  }

  /** Make a name for this person and campaign, once: a random number that names nobody. */
  begin() {
    return alone(async () => {
      if (await this.#keeping.get("campaigns", this.key)) return;
      const { name, epsilon, kind } = this.#campaign;
      const asked = priceOf(this.#campaign).most;
      await this.#keeping.put("campaigns", { campaign: this.key, name, epsilon, kind, asked, sender: systemBytes(16) });
    });
  }

  /** Return the token that this device has for a campaign that invites, or null. */
  token() {
    return this.#keeping.setting(`token ${this.key}`, null);
  }

  /** Exchange an invitation for a token, once, and tell whether it was now; the request is kept before it leaves. */
  redeem(code, ask) {
    return alone(async () => {
      if (await this.token()) return false;
      const name = `invitation ${this.key}`;
      const { sender } = await this.#keeping.get("campaigns", this.key);
      const kept = await this.#keeping.setting(name, null);
      if (kept === null && code === null) return false;
      const request = kept ?? (await requestToken(this.#campaign, sender, code));
      await this.#keeping.set(name, request);
      const answer = await ask({ code: request.code, blinded: request.blinded });
      if (answer.refused) {
        await this.#keeping.set(name, null);
        throw new LimitError(answer.refused);
      }
      await this.#keeping.set(`token ${this.key}`, await tokenOf(this.#campaign, sender, request, answer));
      await this.#keeping.set(name, null);
      return true;
    });
  }

  async answers() {
    const all = await this.#keeping.all("answers");
    return all.filter(({ campaign }) => campaign === this.key);
  }

  catalogAnswer() {
    return this.#keeping.get("catalogs", this.key);
  }

  limit() {
    return this.#keeping.setting("limit", FIRST_LIMIT);
  }

  setLimit(limit) {
    return this.#keeping.set("limit", limit);
  }

  /** Keep a rating; where reports go one by one, also the answer that is drawn for it, once and for ever. */
  say(item, said) {
    return alone(async () => {
      const before = await this.#keeping.get("answers", [this.key, item]);
      if (this.#campaign.kind === "catalog" && (await this.catalogAnswer())) {
        throw new LimitError("Your answer was already drawn, so it can't be changed.");
      }
      if (before?.code !== undefined && !before.withdrawn) {
        await this.#keeping.put("answers", { ...before, said });
        return;
      }
      const record = { campaign: this.key, item, attempted: false, sent: false, ...before, said, withdrawn: false };
      if (this.#campaign.kind === "ratings") {
        await this.#afford(1);
        record.code ??= answerRating(this.#campaign, said);
      }
      await this.#keeping.put("answers", record);
    });
  }

  /** Take back what never left; its answer stays, so that it would be the same another time. */
  withdraw(item) {
    return alone(async () => {
      const before = await this.#keeping.get("answers", [this.key, item]);
      if (before && !before.attempted) await this.#keeping.put("answers", { ...before, withdrawn: true });
    });
  }

  /** Forget ratings, not answers: without these the next ones would be drawn anew. */
  forget() {
    return alone(async () => {
      const all = await this.#keeping.all("answers");
      await this.#keeping.put("answers", ...all.map(({ said, ...rest }) => ({ ...rest, said: null })));
    });
  }

  /** Draw the one answer to a campaign over a catalog, for what was said until now. */
  drawCatalog() {
    return alone(async () => {
      if (await this.catalogAnswer()) return;
      await this.#afford(priceOf(this.#campaign).most);
      const said = (await this.answers()).filter((one) => one.said !== null && !one.withdrawn);
      const answer = answerCatalog(this.#campaign, said.map((one) => [one.item, one.said]));
      await this.#keeping.put("catalogs", { campaign: this.key, answer, attempted: false, sent: false });
    });
  }

  /** Send what waits; what leaves is marked before, since no acknowledgment does not mean that nothing arrived. */
  send(post) {
    return alone(async () => {
      const { sender } = await this.#keeping.get("campaigns", this.key);
      if (this.#campaign.kind === "catalog") return this.#sendCatalog(post, sender);
      const waiting = (await this.answers()).filter((one) => !one.sent && !one.withdrawn);
      if (waiting.length === 0) return null;
      await this.#keeping.put("answers", ...waiting.map((one) => ({ ...one, attempted: true })));
      const pairs = waiting.map((one) => [one.item, one.code]);
      const told = await post(inEnvelope(writeRatings(this.#campaign, sender, pairs)));
      await this.#keeping.put("answers", ...waiting.map((one) => ({ ...one, attempted: true, sent: true })));
      return told;
    });
  }

  async #sendCatalog(post, sender) {
    const kept = await this.catalogAnswer();
    if (!kept || kept.sent) return null;
    await this.#keeping.put("catalogs", { ...kept, attempted: true });
    const told = await post(inEnvelope(writeCatalog(this.#campaign, sender, kept.answer)));
    await this.#keeping.put("catalogs", { ...kept, attempted: true, sent: true });
    return told;
  }

  /** Return what each campaign on this device has cost, or will once it is sent. */
  async costs() {
    const [campaigns, answers, catalogs] = await Promise.all(
      ["campaigns", "answers", "catalogs"].map((store) => this.#keeping.all(store)),
    );
    return campaigns.map(({ campaign, name, epsilon, kind, asked }) => {
      const own = answers.filter((one) => one.campaign === campaign && one.code !== undefined && !one.withdrawn);
      const drawn = catalogs.find((one) => one.campaign === campaign);
      const count = kind === "ratings" ? own.length : drawn ? asked : 0;
      const sent = kind === "ratings" ? own.filter((one) => one.attempted).length : drawn?.attempted ? count : 0;
      return { name, epsilon, count, sent };
    });
  }

  async #afford(more) {
    const { answer, most } = priceOf(this.#campaign);
    const [costs, limit, own] = [await this.costs(), await this.limit(), await this.answers()];
    const open = own.filter((one) => one.code !== undefined && !one.withdrawn).length;
    if (this.#campaign.kind === "ratings" && open + more > most) {
      throw new LimitError(`This campaign accepts at most ${most} answers per user.`);
    }
    if (!affordable([...costs, { count: more, epsilon: answer }], limit)) {
      throw new LimitError("This would exceed your limit. Raise the limit in your ledger, or withdraw an answer.");
    }
  }
}
