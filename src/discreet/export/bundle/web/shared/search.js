// Find items by what they are called.

const MOST_FOUND = 8;
// So many items are listed before anything is typed.
export const FEW_ITEMS = 30;

/** Return the places of items whose title has these words in it; without words all, if there are few. */
export function findItems(titles, typed) {
  const words = typed.trim().toLowerCase();
  const few = titles.length <= FEW_ITEMS;
  if (words === "" && !few) return [];
  const found = [];
  for (let item = 0; item < titles.length && found.length < (few ? FEW_ITEMS : MOST_FOUND); item += 1) {
    if (titles[item].toLowerCase().includes(words)) found.push(item);
  }
  return found;
}
