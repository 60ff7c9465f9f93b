// Requests to the server. The responses are JSON.

/** An error status of the server, with its message. */
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const PATIENCE_MILLIS = 10_000;

/** The `Authorization` header from the login form, until the page is closed. */
let authorization = null;

/** Sets the credentials of later requests. */
export function setCredentials(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

/** Fetches JSON from a path. Throws a Refusal for an error status, another error if the server does not answer. */
export async function ask(path, parameters = {}) {
  const query = Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
  // With this header the server does not make the browser ask for a password; the page does.
  const headers = { "X-Tamis-Console": "1", ...(authorization ? { Authorization: authorization } : {}) };
  const answer = await fetch(`/api/${path}.json?${query}`, {
    headers,
    signal: AbortSignal.timeout(PATIENCE_MILLIS),
    cache: "no-store",
  });
  const body = await answer.json();
  if (!answer.ok) throw new Refusal(answer.status, body.error ?? answer.statusText);
  return body;
}
