// Chromium for the tests of the consoles, and what holds for every page.
//
// `cargo xtask test` runs the tests with TAMIS, the program; PICTURES, a folder for what was seen; and MODULES, the folder
// in which `npm ci` was run.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { after, before } from "../deadline.mjs";

const root = resolve(import.meta.dirname, "../..");
export const program = resolve(process.env.TAMIS ?? join(root, "target/debug/tamis"));
export const pictures = resolve(process.env.PICTURES ?? join(root, "target/tests/console/pictures"));
const modules = resolve(process.env.MODULES ?? join(root, "target/tests/console"));
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");

/** A name that would run a script if a page took it for markup. */
export const HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">";
/** Nothing of the page's words is shown by its name. */
const NAMES = /\b(tile|table|fact|filter|chart|sizing|forecast|mark|nav|time|layer|kind|about|trend|page|login|nothing|tiles|set|sets|state|route|routes|reason|verdict|learn|demo)\.[a-zB]/;

let browser;
/** What went wrong in any page. */
const problems = [];

before(async () => {
  mkdirSync(pictures, { recursive: true });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ],
  });
});

after(async () => {
  await browser?.close();
  assert.deepEqual(problems, []);
});

/** Opens a page. */
export async function page(t, { width = 1280, height = 800, locale = "en-US", isDark = false, credentials = undefined } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, locale, colorScheme: isDark ? "dark" : "light", reducedMotion: "reduce", httpCredentials: credentials,
  });
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  context.on("request", (request) => {
    if (new URL(request.url()).hostname !== "127.0.0.1") problems.push(`a request to ${request.url()}`);
    if (request.method() !== "GET") problems.push(`a ${request.method()}`);
  });
  page.on("pageerror", (error) => problems.push(`${t.name}: ${error.stack}`));
  page.on("dialog", (dialog) => { problems.push(`${t.name}: a dialog`); dialog.dismiss(); });
  page.on("console", (message) => {
    // A server that stops ends the requests of a page in any of these ways.
    const isGone = /ERR_(CONNECTION_(REFUSED|RESET|CLOSED)|SOCKET_NOT_CONNECTED|EMPTY_RESPONSE)|40[14]/.test(message.text());
    if (message.type() === "error" && !isGone) problems.push(`${t.name}: ${message.text()}`);
  });
  return page;
}

/** Takes a picture, after a look at the texts and the width. */
export async function picture(page, name) {
  const text = await page.innerText("body");
  assert.doesNotMatch(text, NAMES);
  // `{id}` is a part of paths.
  assert.doesNotMatch(text, /undefined|NaN|\[object|\{(?!id\})\w+\}/);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${name} is ${overflow} pixels too wide`);
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** Checks that each text of a console is in both languages, and that each text that the scripts name is there. */
export function everyTextIsThere(folder) {
  const read = (name, from = folder) => readFileSync(join(root, from, name), "utf8");
  const texts = [...read("translations.js").matchAll(/^ {2}"([^"]+)": \["((?:[^"\\]|\\.)+)", "((?:[^"\\]|\\.)+)"\],$/gm)];
  const names = new Set(texts.map(([, name]) => name));
  assert.equal(texts.length, read("translations.js").match(/^ {2}"/gm).length, "a text that is not in two languages");
  assert.equal(names.size, texts.length, "a text that is there twice");
  const values = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
  for (const [, name, english, chinese] of texts) {
    assert.deepEqual(values(chinese), values(english), name);
    if (name !== "fact.span.time") assert.match(chinese, /\p{Script=Han}/u, name);
  }
  for (const from of [folder, "crates/tamis-console/files"]) {
    for (const file of readdirSync(join(root, from)).filter((name) => name.endsWith(".js"))) {
      for (const [, name] of read(file, from).matchAll(/\bt\("([^"]+)"/g)) assert.ok(names.has(name), `${file}: ${name}`);
    }
  }
}

/** What can be used and has no name. */
export function unnamed() {
  const name = (element) => element.getAttribute("aria-label") ?? element.labels?.[0]?.innerText ?? element.textContent;
  return [...document.querySelectorAll("a, button, select, input, svg[role=img], nav")].filter((it) => it.checkVisibility() && !name(it)?.trim()).map((it) => it.outerHTML.slice(0, 80));
}

/** Texts whose contrast with what lies behind them is below 4.5, as WCAG counts; those of disabled buttons aside. */
export function faint() {
  const parse = (color) => color.match(/[\d.]+/g).map(Number);
  const bright = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!hasText || !element.checkVisibility() || element.closest("button:disabled, .unseen, noscript")) continue;
    let behind = element;
    while (behind && (parse(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const style = getComputedStyle(element);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color);
    const pair = [ink, parse(getComputedStyle(behind ?? document.documentElement).backgroundColor)].map(bright);
    const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < 4.5) found.push(`${contrast.toFixed(2)}: ${element.outerHTML.slice(0, 80)}`);
  }
  return found;
}
