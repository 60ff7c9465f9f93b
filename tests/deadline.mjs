// Tests of Node.js and starts of processes, with a deadline.

import * as node from "node:test";

/** The longest time of a test, in milliseconds. */
const DEADLINE = 120_000;

export const before = (run) => node.before(run, { timeout: DEADLINE });

export const after = (run) => node.after(run, { timeout: DEADLINE });

/** Declares a test; the options before the function may be left out. */
export function test(name, ...rest) {
  const run = rest.pop();
  return node.test(name, { timeout: DEADLINE, ...rest[0] }, run);
}

/** Waits until `find` returns a value for the text that a process has written. Fails with the text if the process ends. */
export function started(child, stream, find) {
  return new Promise((resolve, reject) => {
    let said = "";
    const fail = (why) => reject(new Error(`${child.spawnargs.join(" ")}: ${why}: ${said}`));
    const timer = setTimeout(() => fail("it did not start in time"), DEADLINE / 2);
    child.once("exit", () => {
      clearTimeout(timer);
      fail("it has ended");
    });
    stream.on("data", (data) => {
      said += data;
      const found = find(said);
      if (!found) return;
      clearTimeout(timer);
      resolve(found);
    });
  });
}
