// Ask the site's own search: node site_search.js SITE < queries.json prints the first pages of each query.
// The theme's search runs in a worker of the browser; here it runs in node with the two functions it calls.
const fs = require("fs");
const path = require("path");

const site = process.argv[2];
const folder = path.join(site, "assets/javascripts/workers");
const worker = fs.readdirSync(folder).find((name) => /^search\..*\.js$/.test(name));
const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));

let answer;
let listen;
globalThis.self = globalThis;
globalThis.addEventListener = (_, handler) => (listen = handler);
globalThis.postMessage = (message) => answer(message);
new Function(fs.readFileSync(path.join(folder, worker), "utf8"))();

function ask(message) {
  return new Promise((resolve) => {
    answer = resolve;
    listen({ data: message });
  });
}

(async () => {
  const found = {};
  await ask({ type: 0, data: { config: index.config, docs: index.docs, options: { suggest: true } } });
  for (const query of JSON.parse(fs.readFileSync(0, "utf8"))) {
    const { data } = await ask({ type: 2, data: query });
    found[query] = data.items.slice(0, 10).map((page) => page[0].location.split(".html")[0]);
  }
  console.log(JSON.stringify(found));
})();
