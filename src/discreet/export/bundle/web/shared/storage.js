// Keep records on this device, in a database that no other site can read.

const promised = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Open a database; `stores` says what each store's records are found by. One called "settings" must be among them. */
export async function openStorage(name, version, stores) {
  const opening = indexedDB.open(name, version);
  opening.onupgradeneeded = () => {
    for (const [store, keyPath] of Object.entries(stores)) opening.result.createObjectStore(store, { keyPath });
  };
  return new Storage(await promised(opening));
}

class Storage {
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
