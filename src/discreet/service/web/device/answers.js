// Answer a campaign: turn what a person said into codes, once. Whoever calls keeps them.

import { drawFromRow, pretendingCells, sampleItems, systemBytes, uniformBelow } from "./draws.js";

/** Return the place on the campaign's scale that is nearest to a rating. */
export function nearestStep(campaign, rating) {
  const { ratings } = campaign;
  if (!Number.isFinite(rating)) throw new RangeError("A rating must be a finite number.");
  let best = 0;
  ratings.forEach((each, at) => {
    if (Math.abs(each - rating) < Math.abs(ratings[best] - rating)) best = at;
  });
  return best;
}

/** Return the number on the rating scale that a code stands for. */
export const shownAs = (campaign, code) => campaign.first + code * campaign.width;

/** Return what one more answer costs, and what all of them together may. */
export function priceOf(campaign) {
  const total = campaign.items.length;
  const asked = campaign.kind === "ratings" ? Math.min(campaign.maxReports, total) : campaign.answers ?? total;
  return { answer: campaign.epsilon, most: asked, person: campaign.epsilon * asked };
}

/** Return the code to report for one rating of a campaign that asks for ratings. */
export function answerRating(campaign, rating, source = systemBytes) {
  return drawFromRow(campaign.rows[nearestStep(campaign, rating)], source);
}

/** Return the one answer to a campaign over a catalog: which items are reported as rated, and as what. */
export function answerCatalog(campaign, history, source = systemBytes) {
  const total = campaign.items.length;
  const asked = campaign.answers === null ? null : sampleItems(total, campaign.answers, source);
  const places = asked === null ? null : new Map(asked.map((item, place) => [item, place]));
  const reported = new Map();
  const rated = new Set();
  for (const [item, rating] of [...history].sort(([one], [other]) => one - other)) {
    const place = places === null ? item : places.get(item);
    if (place === undefined) continue;
    rated.add(place);
    const code = answerRated(campaign, rating, source);
    if (code !== null) reported.set(place, code);
  }
  for (const place of pretendingCells(campaign.gap, asked === null ? total : asked.length, source)) {
    // Drawn also where it is thrown away, so that the work does not tell.
    const code = pretendedCode(campaign, source);
    if (!rated.has(place)) reported.set(place, code);
  }
  const rising = [...reported].sort(([one], [other]) => one - other);
  return {
    asked,
    items: rising.map(([place]) => (asked === null ? place : asked[place])),
    codes: rising.map(([, code]) => code),
  };
}

function answerRated(campaign, rating, source) {
  const step = nearestStep(campaign, rating);
  if (campaign.rows) {
    const outcome = drawFromRow(campaign.rows[step], source);
    return outcome === 0 ? null : outcome - 1;
  }
  const told = drawFromRow(campaign.coin, source) === 1;
  const code = clamped(campaign, step - campaign.half + noise(campaign, source));
  return told ? code : null;
}

function pretendedCode(campaign, source) {
  return campaign.rows ? uniformBelow(campaign.outcomes, source) : clamped(campaign, noise(campaign, source));
}

const noise = ({ noise: starts, half, reach }, source) => drawFromRow(starts, source) - half - reach;

const clamped = ({ reach }, step) => Math.max(-reach, Math.min(reach, step)) + reach;
