#!/usr/bin/env node
// Starts the program `tamis` of the package for this system. npm installs only the package that fits.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { isatty } = require("node:tty");

/** The packages with the program, by platform and processor. */
const PACKAGES = {
  "linux x64": "@tamis-filter/linux-x64",
  "linux arm64": "@tamis-filter/linux-arm64",
};

/** Ends the process with a message. */
function fail(message) {
  console.error(`tamis: ${message}`);
  process.exit(2);
}

/** Returns the path of the program. */
function program() {
  const system = `${process.platform} ${process.arch}`;
  const name = PACKAGES[system];
  if (!name) {
    fail(`there is no program for ${system}: build it with Rust`);
  }
  // Musl systems such as Alpine have no glibc, and the loader would only say "not found".
  // The report would look up the names of all connections.
  process.report.excludeNetwork = true;
  const { glibcVersionRuntime: glibc } = process.report.getReport().header;
  if (!glibc) {
    fail("the program needs glibc 2.17 or later, and this system has none (Alpine?): use the container image");
  }
  const [major, minor] = glibc.split(".").map(Number);
  if (major < 2 || (major === 2 && minor < 17)) {
    fail(`the program needs glibc 2.17 or later, and this system has ${glibc}`);
  }
  try {
    return require.resolve(`${name}/bin/tamis`);
  } catch {
    fail(`the package ${name} is missing: install tamis again without --omit=optional, or install that package too`);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
// This process waits for the program, and forwards signals. A terminal already sends Ctrl-C to the program, too.
const hasTerminal = [0, 1, 2].some((stream) => isatty(stream));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !hasTerminal) child.kill(signal);
  });
}
child.on("error", (error) => fail(error.message));
child.on("exit", (status, signal) => {
  process.exit(signal ? 128 + constants.signals[signal] : status);
});
