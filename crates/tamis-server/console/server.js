// Questions to the server, as JSON.

/** An answer that is none, with what the server says of it. */
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const PATIENCE_MILLIS = 10_000;

/** Asks for the numbers at a path. Throws a Refusal if the server answers otherwise, any other error if it does not. */
export async function ask(path, parameters = {}) {
  const query = Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
  const answer = await fetch(`/api/${path}.json?${query}`, {
    signal: AbortSignal.timeout(PATIENCE_MILLIS),
    cache: "no-store",
  });
  const told = await answer.json();
  if (!answer.ok) throw new Refusal(answer.status, told.error ?? answer.statusText);
  return told;
}
