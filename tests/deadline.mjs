// Tests of Node.js, and processes that they start. Both have a deadline.

import { spawn } from "node:child_process";
import { once } from "node:events";
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

/** Every process that a test has started and not ended. */
const children = new Set();

// A child that runs keeps Node.js from ending. When a hook of a test fails, Node.js skips the test's other hooks: the child is
// therefore ended here too.
after(() => Promise.all([...children].map(end)));

/** Starts a process whose stderr can be read; `stdio` replaces this. */
export function start(program, args, stdio = ["ignore", "ignore", "pipe"]) {
  const child = spawn(program, args, { stdio });
  children.add(child);
  return child;
}

/** Kills a process and waits for its end: from then on, it writes no file. */
export async function end(child) {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  children.delete(child);
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
