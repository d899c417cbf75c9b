// Show what a model guarantees, as `discreet model label` does.

import { make } from "./dom.js";

const isText = (value) => typeof value === "string";

/** Return the sentence and the lines of a label as elements; what is no label is said to be none. */
export function showLabel(label) {
  if (!isText(label?.sentence)) return [make("p", { text: "This model comes without a label: do not trust it to be private." })];
  const lines = Array.isArray(label.rows) ? label.rows.filter((row) => Array.isArray(row) && row.every(isText)) : [];
  let before = null;
  const rows = lines.map(([what, value]) => {
    const head = make("th", { text: what === before ? "" : what, scope: "row" });
    before = what;
    return make("tr", {}, head.textContent === "" ? make("td") : head, make("td", { text: value }));
  });
  return [make("p", { text: label.sentence }), make("table", { className: "facts" }, make("tbody", {}, ...rows))];
}
