// The console in Chromium: every view, both languages, both themes, wide and narrow.
//
// `cargo xtask test` runs it with TAMIS, the program; PICTURES, a folder for what was seen; and MODULES, the folder in
// which `npm ci` was run.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { items, say, startServer } from "./server.js";

const root = resolve(import.meta.dirname, "../..");
const program = resolve(process.env.TAMIS ?? join(root, "target/debug/tamis"));
const pictures = resolve(process.env.PICTURES ?? join(root, "target/tests/console/pictures"));
const modules = resolve(process.env.MODULES ?? join(root, "target/tests/console"));
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");

const HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">";
const BYTES = Buffer.from([0xff, 0x00, 0x0a, 0x22, 0x27, 0x24, 0x60, 0x2f]);
/** Nothing of the page's words is shown by its name. */
const NAMES = /\b(tile|table|fact|filter|chart|sizing|forecast|mark|nav|time|layer|kind)\.[a-z]/;

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

async function page(t, { width = 1280, height = 800, locale = "en-US", isDark = false } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, locale, colorScheme: isDark ? "dark" : "light", reducedMotion: "reduce",
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
    const isGone = message.text().includes("ERR_CONNECTION_REFUSED") || message.text().includes("404");
    if (message.type() === "error" && !isGone) problems.push(`${t.name}: ${message.text()}`);
  });
  return page;
}

async function server(t, options) {
  const started = await startServer(program, options);
  t.after(() => started.end());
  return started;
}

async function picture(page, name) {
  const text = await page.innerText("body");
  assert.doesNotMatch(text, NAMES);
  assert.doesNotMatch(text, /undefined|NaN|\[object|\{\w+\}/);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${name} is ${overflow} pixels too wide`);
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** Filters of each kind and state. */
async function fill(server) {
  await say(server,
    ["BF.RESERVE", "users:seen", "0.01", "100000"], ["BF.MADD", "users:seen", ...items(60_000)],
    ["TM.RESERVE", "urls:crawled", "KIND", "split-block", "ITEMS", "20000", "RATE", "0.01"], ["TM.MADD", "urls:crawled", ...items(30_000)],
    ["TM.RESERVE", "carts", "KIND", "cuckoo", "ITEMS", "5000", "RATE", "0.001"], ["TM.MADD", "carts", ...items(4700)],
    ["TM.RESERVE", "recent", "KIND", "window", "WINDOW", "3600000", "ITEMS", "1000"], ["TM.ADD", "recent", "a"],
    ["BF.ADD", "grown", "a"], ["CF.ADD", "cuckoo", "a"],
    ["CONFIG", "SET", "bf-layout", "redisbloom"]);
  await say(server,
    ["BF.RESERVE", "layers", "0.01", "500"], ["BF.MADD", "layers", ...items(2200)],
    ["BF.ADD", HOSTILE, "a"], ["BF.ADD", BYTES, "a"], ["SET", "text", "no filter"]);
}

test("without filters it shows five commands, and these make some", async (t) => {
  const empty = await server(t);
  const view = await page(t);
  await view.goto(empty.url);
  const lines = view.locator(".empty code");
  await lines.nth(4).waitFor();
  assert.equal(await lines.count(), 5);
  await picture(view, "empty");
  const commands = (await lines.allInnerTexts()).map((line) => line.split(" ").slice(3));
  assert.ok((await lines.first().innerText()).startsWith(`redis-cli -p ${empty.port} BF.RESERVE`));
  // The last one's reply is a map, which is not of one line.
  await say(empty, ...commands.slice(0, 4));
  await view.locator("tbody tr").nth(1).waitFor();
  assert.deepEqual((await view.locator("tbody a").allInnerTexts()).sort(), ["recent", "seen"]);
});

test("the overview shows filters worst first, as text, and finds them", async (t) => {
  const full = await server(t);
  await fill(full);
  const view = await page(t);
  await view.goto(full.url);
  await view.locator("tbody tr").nth(8).waitFor();
  const first = view.locator("tbody tr").first();
  assert.equal(await first.locator("a").innerText(), "urls:crawled");
  assert.match(await first.locator(".c-rate").innerText(), /▲ over target/);
  assert.equal(await first.locator(".bar.bad").count(), 1);
  await view.locator("tr[data-key=layers] .bar").nth(2).waitFor();
  assert.match(await view.locator("#tile-filters").innerText(), /1 over target/);
  assert.match(await view.locator("#tile-log").innerText(), /✓ kept/);
  await picture(view, "overview");

  // Keys are text.
  assert.equal(await view.locator("tbody a", { hasText: "<script>" }).innerText(), HOSTILE);
  assert.equal(await view.locator("main script, main img").count(), 0);
  assert.equal(await view.title(), "Tamis");

  // By keyboard: a column's head sorts, up, down and not at all.
  await view.locator("th.c-memory button").focus();
  await view.keyboard.press("Enter");
  assert.equal(await view.locator("th.c-memory").getAttribute("aria-sort"), "descending");
  assert.equal(await view.locator("tbody a").first().innerText(), "users:seen");
  await view.keyboard.press("Enter");
  assert.equal(await view.locator("th.c-memory").getAttribute("aria-sort"), "ascending");
  await view.keyboard.press("Enter");
  assert.equal(await view.locator("tbody a").first().innerText(), "urls:crawled");

  for (const [text, found] of [["sers", ["users:seen"]], ["u*", ["urls:crawled", "users:seen"]], ["[x", []], ["no such", []]]) {
    await view.fill("#find", text);
    await view.waitForFunction((many) => document.querySelectorAll("tbody tr").length === many, found.length);
    assert.deepEqual((await view.locator("tbody a").allInnerTexts()).sort(), found);
  }
  await view.locator(".note a").click();
  await view.getByText("There is no filter of this key").waitFor();
});

test("a filter's page has facts, curves with values, and commands", async (t) => {
  const full = await server(t);
  await fill(full);
  const view = await page(t);
  await view.goto(full.url);
  await view.locator("tbody a", { hasText: "urls:crawled" }).click();
  await view.locator("#chart-time svg.chart").waitFor();
  assert.equal(await view.locator("h1.key").innerText(), "urls:crawled");
  assert.match(await view.locator("#fact-capacity").innerText(), /^20.000$/);
  assert.match(await view.locator("#fact-forecast").innerText(), /over its target now/);
  assert.match(await view.locator("#chart-rates").innerText(), /target 1 %/);
  await picture(view, "filter");
  const chart = view.locator("#chart-rates svg");
  await chart.focus();
  for (let i = 0; i < 30; i++) await view.keyboard.press("ArrowRight");
  assert.match(await view.locator("#chart-rates .readout").innerText(), /k items: .* %/);
  await chart.hover({ position: { x: 200, y: 100 } });
  assert.match(await view.locator("#chart-rates .readout").innerText(), /items: .* %/);
  const lines = await view.locator("code").allInnerTexts();
  assert.ok(lines.includes(`redis-cli -p ${full.port} RENAME urls:crawled:new urls:crawled`), String(lines));

  // Of each kind, and of a key that is no text.
  for (const key of ["users%3Aseen", "carts", "recent", "grown", "cuckoo", "layers"]) {
    await view.goto(`${full.url}#/filter/${key}`);
    await view.locator("#fact-items").waitFor();
    assert.equal(await view.locator("h1.key").innerText(), decodeURIComponent(key));
    assert.ok(await view.locator(".layer").count() > 0);
    await picture(view, `filter-${decodeURIComponent(key).replace(":", "-")}`);
  }
  await view.goto(`${full.url}#/filter/%FF%00%0A%22%27%24%60%2F`);
  await view.locator("#fact-items").waitFor();
  const line = await view.locator("code").first().innerText();
  assert.ok(line.endsWith(String.raw`--quoted-input TM.INFO '"\xff\x00\x0a\x22\x27\x24\x60/"'`), line);

  await view.goto(`${full.url}#/filter/carts`);
  await view.locator("#fact-items").waitFor();
  await say(full, ["DEL", "carts"]);
  await view.getByText("There is no filter of this key").waitFor();
  // Answers hold numbers, never bits: a filter of 120 kB is told in a few.
  const told = await (await fetch(`${full.url}api/filter.json?key=users%3Aseen`)).text();
  assert.ok(told.length < 16_000, String(told.length));
});

test("sizing compares the kinds, and says what is wrong with a question", async (t) => {
  const empty = await server(t);
  const view = await page(t);
  await view.goto(`${empty.url}#/sizing`);
  await view.locator("tbody tr").nth(5).waitFor();
  assert.match(await view.locator("tr.usual").innerText(), /split-block ✓ suggested\s+1\.2 MiB\s+10\.10\s+8\s+1/);
  assert.equal(await view.locator("#chart-sizing svg.chart path.line").count(), 5);
  await picture(view, "sizing");
  await view.fill("#items", "10M");
  await view.fill("#rate", "0.1%");
  await view.getByText("BF.RESERVE seen 0.001 10000000").waitFor();
  assert.match(view.url(), /#\/sizing\/10M\/0\.1%25$/);
  await view.reload();
  await view.getByText("BF.RESERVE seen 0.001 10000000").waitFor();
  for (const [box, text] of [["#items", "0"], ["#items", "many"], ["#items", "-1"], ["#rate", "0"], ["#rate", "100%"], ["#rate", "1e-400"]]) {
    const before = await view.inputValue(box);
    await view.fill(box, text);
    await view.locator(".problem").waitFor();
    assert.equal(await view.locator(box).getAttribute("aria-invalid"), "true");
    await view.fill(box, before);
    await view.locator(".problem").waitFor({ state: "hidden" });
  }
});

test("it speaks the browser's language, and the one that is chosen", async (t) => {
  const full = await server(t);
  await fill(full);
  const chinese = await page(t, { locale: "zh-CN" });
  await chinese.goto(full.url);
  await chinese.getByText("超出目标").first().waitFor();
  assert.equal(await chinese.getAttribute("html", "lang"), "zh-CN");
  await picture(chinese, "overview-zh");
  for (const [name, hash] of [["filter-zh", "#/filter/users%3Aseen"], ["sizing-zh", "#/sizing"]]) {
    await chinese.goto(full.url + hash);
    await chinese.locator("svg.chart").first().waitFor();
    // Words that are no kind, command or unit.
    assert.doesNotMatch(await chinese.locator("h1, h2, dt, th").allInnerTexts().then(String), /[A-Z][a-z]{3,} [a-z]/);
    await picture(chinese, name);
  }
  await chinese.selectOption("#language", "en");
  await chinese.getByText("How large must a filter be?").waitFor();
  await chinese.reload();
  await chinese.getByText("How large must a filter be?").waitFor();
  const other = await page(t, { locale: "fr-FR" });
  await other.goto(full.url);
  await other.getByText("Commands per second").waitFor();
});

test("it is light or dark as the system is, or as chosen, and can be read", async (t) => {
  const full = await server(t);
  await fill(full);
  for (const isDark of [false, true]) {
    const view = await page(t, { isDark });
    await view.goto(full.url);
    await view.locator("tbody tr").first().waitFor();
    assert.equal(await brightness(view) < 0.2, isDark);
    for (const selector of ["h2", ".tile .muted", "tbody a", "th button", ".mark.bad", ".c-forecast"]) {
      const contrast = await contrastOf(view, selector);
      assert.ok(contrast >= 4.5, `${selector}: ${contrast}`);
    }
    await picture(view, isDark ? "overview-dark" : "overview-light");
    await view.selectOption("#theme", isDark ? "light" : "dark");
    assert.equal(await brightness(view) < 0.2, !isDark);
    await view.reload();
    await view.locator("tbody tr").first().waitFor();
    assert.equal(await brightness(view) < 0.2, !isDark);
  }
});

/** How bright the ground of the page is. */
function brightness(view) {
  return view.evaluate(() => {
    const [r, g, b] = getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).map((c) => (c / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  });
}

/** The contrast of a text with what lies behind it, as WCAG counts. */
function contrastOf(view, selector) {
  return view.locator(selector).first().evaluate((element) => {
    const bright = (color) => {
      const [r, g, b] = color.match(/[\d.]+/g).map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    let behind = element;
    while (behind && /rgba\(.*, 0\)/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
    const pair = [getComputedStyle(element).color, getComputedStyle(behind ?? document.documentElement).backgroundColor].map(bright);
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  });
}

test("it fits a phone and a wide screen, with five hundred filters too", async (t) => {
  const full = await server(t);
  await fill(full);
  const many = Array.from({ length: 500 }, (_, i) => ["BF.RESERVE", `shard:${i}`, "0.01", "100"]);
  await say(full, ...many);
  for (const [width, isDark] of [[360, true], [1600, false]]) {
    const view = await page(t, { width, height: 1000, isDark });
    await view.goto(full.url);
    await view.locator("tbody tr").nth(99).waitFor();
    await picture(view, `overview-${width}`);
    await view.locator("#more").click();
    await view.locator("tbody tr").nth(299).waitFor();
    for (const [name, hash] of [["filter", "#/filter/layers"], ["sizing", "#/sizing"], ["hostile", `#/filter/${encodeURIComponent(HOSTILE)}`]]) {
      await view.goto(full.url + hash);
      await view.locator("svg.chart").first().waitFor();
      await picture(view, `${name}-${width}`);
    }
  }
});

test("it says that the server is gone, and goes on when it is back", async (t) => {
  const first = await server(t, { more: ["--appendfsync", "always"] });
  await fill(first);
  const view = await page(t);
  await view.goto(first.url);
  await view.locator("tbody tr").first().waitFor();
  await first.kill();
  await view.getByText(/Not reachable since \d\d:\d\d:\d\d/).waitFor();
  assert.ok(await view.locator("tbody tr").count() > 5, "what was known stays");
  await picture(view, "gone");
  await server(t, { dir: first.dir, port: first.port, httpPort: first.httpPort });
  await view.locator("#status").waitFor({ state: "hidden" });
  await view.locator("tbody a", { hasText: "urls:crawled" }).waitFor();
});

test("with a password it asks for one", async (t) => {
  const closed = await server(t, { more: ["--requirepass", "secret"] });
  assert.equal((await fetch(`${closed.url}api/overview.json`)).status, 401);
  const context = await browser.newContext({ httpCredentials: { username: "default", password: "secret" } });
  t.after(() => context.close());
  const view = await context.newPage();
  await view.goto(closed.url);
  await view.getByText("There are no filters yet.").waitFor();
});
