// Questions to the server, as JSON.

/** An answer that is none, with what the server says of it. */
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const PATIENCE_MILLIS = 10_000;

/** Who asks, if it was the page's form that the user gave it to; until the page is closed. */
let authorization = null;

/** Asks as a user from now on. */
export function logIn(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

/** Asks for the numbers at a path. Throws a Refusal if the server answers otherwise, any other error if it does not. */
export async function ask(path, parameters = {}) {
  const query = Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
  // With this header the server leaves asking for a password to the page.
  const headers = { "X-Tamis-Console": "1", ...(authorization ? { Authorization: authorization } : {}) };
  const answer = await fetch(`/api/${path}.json?${query}`, {
    headers,
    signal: AbortSignal.timeout(PATIENCE_MILLIS),
    cache: "no-store",
  });
  const told = await answer.json();
  if (!answer.ok) throw new Refusal(answer.status, told.error ?? answer.statusText);
  return told;
}
