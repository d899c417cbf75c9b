// Keep the files of a bundle, and answer with them first: the page works without a connection.

const VERSION = "@version@";
const FILES = ["@files@"];
const prefix = `discreet ${new URL("./", self.location).pathname} `;
const name = prefix + VERSION;
const wanted = new Set(FILES.map((file) => new URL(file, self.location).href));

self.addEventListener("install", (event) => {
  const fresh = [...wanted].map((url) => new Request(url, { cache: "reload" }));
  event.waitUntil(caches.open(name).then((cache) => cache.addAll(fresh)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const forget = async () => {
    const old = (await caches.keys()).filter((key) => key.startsWith(prefix) && key !== name);
    await Promise.all(old.map((key) => caches.delete(key)));
    await self.clients.claim();
  };
  event.waitUntil(forget());
});

self.addEventListener("fetch", (event) => {
  const address = new URL(event.request.url);
  address.hash = address.search = "";
  if (event.request.method !== "GET" || !wanted.has(address.href)) return;
  event.respondWith(caches.open(name).then(async (cache) => (await cache.match(address.href)) ?? fetch(event.request)));
});
