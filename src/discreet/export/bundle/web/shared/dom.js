// Put things on a page: only ever as text, never as markup. Titles and labels may come from anybody.

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

/** Return a rating in words a screen reader says well. */
export function inWords(ratings, rating) {
  const stars = ratings[0] === 1 && ratings.length <= 11 && ratings.every(Number.isInteger);
  return stars ? `${rating} of ${ratings.at(-1)} stars` : number(rating);
}

/** Make a radio button for each rating, for a form whose field is called "rating". */
export const ratingFields = (ratings) =>
  ratings.map((rating) =>
    make(
      "label",
      {},
      make("input", { type: "radio", name: "rating", value: String(rating), required: true }),
      make("span", { text: inWords(ratings, rating) }),
    ),
  );

/** Make a line of a list of recommendations: a title, and expected stars where they are known. */
export const listedItem = (title, stars) =>
  make(
    "li",
    {},
    make("span", { text: title }),
    ...(stars === undefined ? [] : [make("span", { text: `expected ${stars.toFixed(1)}` })]),
  );
