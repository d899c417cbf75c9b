// Put things on the page: only ever as text, never as markup.

export const at = (id) => document.getElementById(id);

/** Make an element with a text and children. */
export function make(tag, { text, ...properties } = {}, ...children) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
export const number = (value) => plain.format(value);

/** Return a cost rounded up: what is shown is never less than what is paid. */
export function cost(value) {
  if (!(value > 0)) return "0";
  const digits = 10 ** (3 - Math.floor(Math.log10(value)));
  return number(Math.ceil(value * digits - 1e-9) / digits);
}

const rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
/** Return a factor as people say it; the exact epsilon stands beside it. */
export const about = (value) => `about ${rough.format(value)}`;

/** Return a rating in words a screen reader says well. */
export function inWords(campaign, rating) {
  const { ratings } = campaign;
  const stars = ratings[0] === 1 && ratings.length <= 11 && ratings.every(Number.isInteger);
  return stars ? `${rating} of ${ratings.at(-1)} stars` : number(rating);
}

function pair(term, value) {
  return make("div", {}, make("dt", { text: term }), make("dd", { text: value }));
}

/** Show one answer: what was said beside what is sent. */
export function answerCard(title, said, reported, state, onWithdraw) {
  const card = make("li", {}, make("strong", { text: title }));
  card.append(make("dl", {}, pair("You said", said), pair("The report says", reported), pair("State", state)));
  if (onWithdraw) {
    const button = make("button", { type: "button", text: "Withdraw", onclick: onWithdraw });
    button.setAttribute("aria-label", `Withdraw ${title}`);
    card.append(button);
  }
  return card;
}
