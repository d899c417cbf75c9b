// Show costs and answers of a campaign.

import { make, number } from "../shared/dom.js";

/** Return a cost rounded up: what is shown is never less than what is paid. */
export function cost(value) {
  if (!(value > 0)) return "0";
  const digits = 10 ** (3 - Math.floor(Math.log10(value)));
  return number(Math.ceil(value * digits - 1e-9) / digits);
}

const rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
/** Return a factor as people say it; the exact epsilon stands beside it. */
export const about = (value) => `about ${rough.format(value)}`;

function pair(term, value) {
  return make("div", {}, make("dt", { text: term }), make("dd", { text: value }));
}

/** Show one answer: what was said beside what is sent. */
export function answerCard(title, said, reported, state, onWithdraw) {
  const card = make("li", {}, make("strong", { text: title }));
  card.append(make("dl", {}, pair("Your rating", said), pair("Report", reported), pair("State", state)));
  if (onWithdraw) {
    const button = make("button", { type: "button", text: "Withdraw", onclick: onWithdraw });
    button.setAttribute("aria-label", `Withdraw ${title}`);
    card.append(button);
  }
  return card;
}
