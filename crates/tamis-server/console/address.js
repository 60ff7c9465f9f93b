// The addresses of views: #/name/part/part?parameter=value.

/** Returns what an address names: the view, its parts as they are written, and its parameters. */
export function read(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/");
  return { name, parts, parameters: new URLSearchParams(query) };
}

/** Where the overview is, in an order. Parameters of no value are left out. */
export function overviewAddress(parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return query ? `#/?${query}` : "#/";
}

/** Where a filter's page is. */
export function filterAddress(keyEncoded) {
  return `#/filter/${keyEncoded}`;
}
