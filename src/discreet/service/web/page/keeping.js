// Keep answers on this device, so that no reload, crash or second tab ever draws one again.

const NAME = "discreet";
const VERSION = 1;

const promised = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Open what this device keeps: `answers` by campaign and item, `catalogs` and `campaigns` by campaign, `settings`. */
export async function openKeeping() {
  const opening = indexedDB.open(NAME, VERSION);
  opening.onupgradeneeded = () => {
    opening.result.createObjectStore("answers", { keyPath: ["campaign", "item"] });
    opening.result.createObjectStore("catalogs", { keyPath: "campaign" });
    opening.result.createObjectStore("campaigns", { keyPath: "campaign" });
    opening.result.createObjectStore("settings", { keyPath: "name" });
  };
  return new Keeping(await promised(opening));
}

class Keeping {
  #database;

  constructor(database) {
    this.#database = database;
  }

  get(store, key) {
    return promised(this.#database.transaction(store).objectStore(store).get(key));
  }

  all(store) {
    return promised(this.#database.transaction(store).objectStore(store).getAll());
  }

  /** Write records in one transaction that is on disk when this returns. */
  async put(store, ...records) {
    const transaction = this.#database.transaction(store, "readwrite", { durability: "strict" });
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    for (const record of records) transaction.objectStore(store).put(record);
    await done;
  }

  async setting(name, otherwise) {
    return (await this.get("settings", name))?.value ?? otherwise;
  }

  set(name, value) {
    return this.put("settings", { name, value });
  }
}

/** Run alone among all tabs of this page. */
export const alone = (work) => navigator.locks.request("discreet", work);
