// The console of the server in Chromium: every view, both languages, both themes, wide and narrow.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "../deadline.mjs";
import { everyTextIsThere, faint, HOSTILE, page, picture, pictures, program, unnamed } from "./browser.js";
import { items, say, startServer } from "./server.js";

const BYTES = Buffer.from([0xff, 0x00, 0x0a, 0x22, 0x27, 0x24, 0x60, 0x2f]);

async function server(t, options) {
  const started = await startServer(program, options);
  t.after(() => started.end());
  return started;
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
  await view.locator("#tile-filters", { hasText: "1 over target" }).waitFor();
  assert.match(await view.locator("#tile-log").innerText(), /✓ running/);
  await picture(view, "overview");

  // Keys are text.
  assert.equal(await view.locator("tbody a", { hasText: "<script>" }).innerText(), HOSTILE);
  assert.equal(await view.locator("main script, main img").count(), 0);
  assert.equal(await view.title(), "Filters – Tamis");

  // By keyboard: a column's head sorts, up, down and not at all.
  const firstIs = (key) => view.waitForFunction((key) => document.querySelector("tbody a")?.textContent === key, key);
  await view.locator("th.c-memory button").focus();
  await view.keyboard.press("Enter");
  assert.equal(await view.locator("th.c-memory").getAttribute("aria-sort"), "descending");
  await firstIs("users:seen");
  assert.match(view.url(), /#\/\?sort=memory&order=desc$/);
  await view.keyboard.press("Enter");
  assert.equal(await view.locator("th.c-memory").getAttribute("aria-sort"), "ascending");
  await view.keyboard.press("Enter");
  await firstIs("urls:crawled");

  for (const [text, found] of [["sers", ["users:seen"]], ["u*", ["urls:crawled", "users:seen"]], ["[x", []], ["no such", []]]) {
    await view.fill("#find", text);
    await view.waitForFunction((many) => document.querySelectorAll("tbody tr").length === many, found.length);
    assert.deepEqual((await view.locator("tbody a").allInnerTexts()).sort(), found);
  }
  await view.locator(".note a", { hasText: "no such" }).click();
  await view.getByText("No filter has this key").waitFor();
  assert.equal(await view.title(), "no such – Tamis");
});

test("a filter's page has facts, curves with values, and commands", async (t) => {
  const full = await server(t);
  await fill(full);
  const view = await page(t);
  await view.goto(full.url);
  await view.locator("tbody a", { hasText: "urls:crawled" }).click();
  await view.locator("#chart-time svg.chart").waitFor();
  assert.equal(await view.locator("h1.key").innerText(), "urls:crawled");
  assert.equal(await view.title(), "urls:crawled – Tamis");
  assert.equal(await view.locator("#fact-capacity").innerText(), "20,000");
  assert.match(await view.locator("#fact-kind").innerText(), /^Bloom – fastest/);
  // More than full has its reason beside it.
  assert.match(await view.locator(".layer .muted").innerText(), /^[\d,]+ of 20,000 items, 1\d\d\.\d %: above its capacity/);
  assert.match(await view.locator("#fact-forecast").innerText(), /over its target now/);
  assert.match(await view.locator("#chart-rates").innerText(), /target 0\.01/);
  await picture(view, "filter");
  const chart = view.locator("#chart-rates svg");
  await chart.focus();
  for (let i = 0; i < 30; i++) await view.keyboard.press("ArrowRight");
  assert.match(await view.locator("#chart-rates .readout").innerText(), /[\d,]+ items: 0\.\d+/);
  await chart.hover({ position: { x: 200, y: 100 } });
  assert.match(await view.locator("#chart-rates .readout").innerText(), /[\d,]+ items: \d/);
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
  await view.getByText("No filter has this key").waitFor();
  // Answers hold numbers, never bits: a filter of 120 kB is told in a few.
  const told = await (await fetch(`${full.url}api/filter.json?key=users%3Aseen`)).text();
  assert.ok(told.length < 16_000, String(told.length));
});

test("sizing compares the kinds, and says what is wrong with a question", async (t) => {
  const empty = await server(t);
  const view = await page(t);
  await view.goto(`${empty.url}#/sizing`);
  await view.locator("tbody tr").nth(5).waitFor();
  assert.match(await view.locator("tr.usual").innerText(), /Bloom ✓ suggested\s+1\.2 MiB\s+10\.10\s+8\s+1/);
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
  await chinese.getByText("How large is a filter?").waitFor();
  await chinese.reload();
  await chinese.getByText("How large is a filter?").waitFor();
  const other = await page(t, { locale: "fr-FR" });
  await other.goto(full.url);
  await other.getByText("Commands per second").waitFor();
});

test("every text is there in both languages", () => everyTextIsThere("crates/tamis-server/console"));

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

test("every page fits a phone, a tablet and a wide screen", async (t) => {
  const full = await server(t);
  await fill(full);
  const views = [
    ["overview", "#/"], ["filter", "#/filter/layers"], ["window", "#/filter/recent"], ["sizing", "#/sizing"],
    ["hostile", `#/filter/${encodeURIComponent(HOSTILE)}`], ["unknown-key", "#/filter/none"], ["nothing", "#/none"],
  ];
  for (const [width, height, isDark, locale] of [[360, 740, false, "en-US"], [400, 860, true, "zh-CN"], [768, 1024, true, "en-US"], [1024, 768, false, "en-US"], [1440, 900, false, "zh-CN"]]) {
    const view = await page(t, { width, height, isDark, locale });
    for (const [name, hash] of views) {
      await view.goto(full.url + hash);
      await view.locator("#nothing, tbody tr, svg.chart").first().waitFor();
      await picture(view, `${name}-${width}-${isDark ? "dark" : "light"}`);
      // Nothing of the heads is cut off: neither that of the page nor that of the table.
      const cut = await view.locator("#head, #head *, .filters thead, .filters thead *").evaluateAll((all) =>
        all.filter((it) => it.scrollWidth > it.clientWidth + 1 && it.clientWidth > 0 || it.getBoundingClientRect().right > innerWidth).map((it) => it.outerHTML.slice(0, 80)));
      assert.deepEqual(cut, [], `${name} at ${width}`);
      // Wide rows leave room for the key.
      const narrowest = await view.locator("td.c-key").evaluateAll((all) => Math.min(...all.map((it) => it.clientWidth), 1e9));
      assert.ok(narrowest >= 180, `${name} at ${width}: keys have ${narrowest} pixels`);
    }
    await view.context().close();
  }
});

test("all filters are sorted, not those of one page, and pages follow each other", async (t) => {
  const full = await server(t);
  await say(full, ...Array.from({ length: 250 }, (_, i) => ["BF.RESERVE", `shard:${String(i).padStart(3, "0")}`, "0.01", String(100 + (i * 7) % 250)]));
  await say(full, ["TM.RESERVE", "over", "KIND", "classic", "ITEMS", "10", "RATE", "0.01"], ["TM.MADD", "over", ...items(100)]);
  const view = await page(t);
  await view.goto(full.url);
  const first = (key) => view.waitForFunction((key) => document.querySelector("tbody a")?.textContent === key, key);
  await first("over");
  await view.locator("tbody tr").nth(99).waitFor();
  assert.match(await view.locator("#where").innerText(), /^1 to 100 of 251, page 1 of 3$/);
  assert.ok(await view.locator("#previous").isDisabled());
  assert.match(await view.locator("#fresh").innerText(), /Sorted by values measured .*\d\d:\d\d:\d\d/);
  await view.locator("th.c-key button").click();
  await first("over");
  await view.locator("th.c-key button").click();
  await first("shard:249");
  await view.locator("#next").click();
  await first("shard:149");
  await view.locator("#next").click();
  await first("shard:049");
  assert.match(await view.locator("#where").innerText(), /^201 to 251 of 251, page 3 of 3$/);
  assert.equal(await view.locator("tbody tr").count(), 51);
  assert.ok(await view.locator("#next").isDisabled());
  await picture(view, "pages");
  // The address keeps the order and the page, and so does the way back from a filter.
  await view.locator("tbody a").first().click();
  await view.locator("#fact-items").waitFor();
  await view.goBack();
  await first("shard:049");
  await view.reload();
  await first("shard:049");
  await view.fill("#find", "over");
  await first("over");
  assert.equal(await view.locator(".pager").isVisible(), false);
});

test("full filters have a badge and are counted", async (t) => {
  const full = await server(t);
  await say(full, ["BF.RESERVE", "bloom", "0.01", "10", "NONSCALING"], ["BF.MADD", "bloom", ...items(10)], ["CF.ADD", "cuckoo", "a"], ["BF.ADD", "grows", "a"]);
  const view = await page(t);
  await view.goto(full.url);
  await view.locator("tr[data-key=bloom] .mark.bad").waitFor();
  assert.match(await view.locator("tr[data-key=bloom]").innerText(), /Bloom\s+10 \/ 10.*▲ full: refuses adds\s+full/s);
  assert.match(await view.locator("#tile-filters").innerText(), /▲ 1 full/);
  assert.match(await view.locator("tr[data-key=cuckoo]").innerText(), /cuckoo/);
  assert.match(await view.locator("tr[data-key=grows]").innerText(), /Bloom, growing/);
  assert.equal(await view.locator(".mark.bad", { hasText: "refuses adds" }).count(), 1);
  await say(full, ["CONFIG", "SET", "cf-max-expansions", "1"]);
  await view.locator("tr[data-key=cuckoo] .mark.bad").waitFor();
  await view.waitForFunction(() => /▲ 2 full/.test(document.querySelector("#tile-filters").innerText));
  await picture(view, "full");
  await view.goto(`${full.url}#/filter/cuckoo`);
  await view.getByText("full: refuses adds").first().waitFor();
});

test("addresses that lead nowhere say so, and lead back", async (t) => {
  const empty = await server(t);
  await say(empty, ["BF.ADD", "there", "a"], ["SET", "text", "a"]);
  const view = await page(t);
  for (const [address, title] of [
    ["#/none", "Not found"], ["#/filter", "Not found"], ["#/filter/a/b", "Not found"], ["#/__proto__", "Not found"],
    ["none", "Not found"], ["filter/there", "Not found"], ["#/filter/none", "none"], ["#/filter/text", "text"], ["#/filter/%", "%"],
  ]) {
    await view.goto("about:blank");
    await view.goto(empty.url + address);
    await view.locator("#nothing").waitFor();
    assert.match(await view.locator("#nothing").innerText(), /Not found/, address);
    if (address !== "#/filter/%") assert.equal(await view.title(), `${title} – Tamis`, address);
    await view.locator("#nothing a").click();
    await view.locator("tbody a", { hasText: "there" }).waitFor();
    assert.equal(view.url().replace(/#\/$/, ""), empty.url);
    assert.equal(await view.title(), "Filters – Tamis");
  }
});

test("numbers are written in one style", async (t) => {
  const empty = await server(t);
  const view = await page(t);
  await view.goto(empty.url);
  const shown = await view.evaluate(async () => {
    const n = await import("/console/numbers.js");
    return {
      count: [0, 999, 1000, 1234567.4, -1234, null, Infinity].map(n.count),
      tick: [0, 500, 20000, 1500000, 2.5e9].map(n.tick),
      bytes: [0, 1023, 1536, 200 * 2 ** 20, 1.5 * 2 ** 30, null].map(n.bytes),
      rate: [0, 0.01, 0.0101, 0.00012, 7.6e-8, 1e-6, 0.5, 1, 0.999999].map(n.rate),
      percent: [0, 0.0001, 0.4321, 0.9999, 1, 1.31].map(n.percent),
      perSecond: [0, 0.25, 12, 1458, null].map(n.perSecond),
      micros: [0.5, 85, 1234, 2500000, null].map(n.micros),
    };
  });
  assert.deepEqual(shown, {
    count: ["0", "999", "1,000", "1,234,567", "-1,234", "–", "–"],
    tick: ["0", "500", "20k", "1.5M", "2.5G"],
    bytes: ["0 B", "1023 B", "1.5 KiB", "200 MiB", "1.5 GiB", "–"],
    rate: ["0", "0.01", "0.0101", "0.00012", "7.6e-8", "1e-6", "0.5", "1", "1"],
    percent: ["0.0 %", "<0.1 %", "43.2 %", "99.9 %", "100.0 %", "131.0 %"],
    perSecond: ["0/s", "0.25/s", "12/s", "1,458/s", "–"],
    micros: ["0.5 µs", "85 µs", "1.23 ms", "2.5 s", "–"],
  });
});

test("the chart of rates reaches the present number of items, and windows are not over full", async (t) => {
  const full = await server(t);
  await fill(full);
  await say(full, ["TM.RESERVE", "window", "KIND", "window", "WINDOW", "900", "ITEMS", "RATE", "0.01"], ["TM.MADD", "window", ...items(5000)],
    ["TM.RESERVE", "far", "KIND", "classic", "ITEMS", "100", "RATE", "0.01"], ["TM.MADD", "far", ...items(900)]);
  const view = await page(t);
  for (const key of ["window", "far", "urls%3Acrawled", "carts", "layers", "users%3Aseen"]) {
    await view.goto(`${full.url}#/filter/${key}`);
    await view.locator("#chart-rates .dot").waitFor();
    const [end, dot] = await view.locator("#chart-rates").evaluate((box) => {
      const line = box.querySelector("path.line");
      return [line.getPointAtLength(line.getTotalLength()).x, Number(box.querySelector(".dot").getAttribute("cx"))];
    });
    assert.ok(end >= dot - 0.5, `${key}: the line ends at ${end}, now is at ${dot}`);
    await picture(view, `rates-${decodeURIComponent(key).replace(":", "-")}`);
  }
  await view.goto(`${full.url}#/filter/window`);
  await view.locator("#fact-capacity").waitFor();
  assert.match(await view.locator("#fact-capacity").innerText(), /^900 per window; at most 1,\d\d\d with the slice/);
  const told = await view.locator(".layer .muted").innerText();
  const share = Number(/, ([\d.]+) %/.exec(told)[1]);
  assert.ok(share <= 100 || told.includes("within the target"), told);
});

test("latency, errors and slow commands are drawn over time", async (t) => {
  const busy = await server(t);
  await say(busy, ["CONFIG", "SET", "slowlog-log-slower-than", "0"], ["BF.ADD", "k", "a"]);
  const view = await page(t);
  await view.goto(busy.url);
  const drive = setInterval(() => {
    say(busy, ...Array.from({ length: 50 }, (_, i) => ["BF.ADD", "k", String(i)])).catch(() => {});
    say(busy, ["TM.ADD", "none", "a"]).catch(() => {});
  }, 200);
  t.after(() => clearInterval(drive));
  await view.locator("#chart-latency svg.chart").waitFor();
  await view.locator("#chart-errors svg.chart").waitFor();
  await view.waitForFunction(() => document.querySelector("#chart-latency svg.chart path.line-1")?.getAttribute("d").includes("L"));
  await view.locator("#chart-latency svg.chart").focus();
  await view.keyboard.press("ArrowLeft");
  assert.match(await view.locator("#chart-latency .readout").innerText(), /^\d\d:\d\d:\d\d: /);
  await picture(view, "trends");
  await view.locator(".trends").screenshot({ path: join(pictures, "trends-only.png") });
  await view.selectOption("#span", "minute");
  await view.locator("#chart-latency", { hasText: "No commands in this period" }).waitFor();
});

test("it says that the server is gone, and goes on when it is back", async (t) => {
  const first = await server(t, { more: ["--appendfsync", "always"] });
  await fill(first);
  const view = await page(t);
  await view.goto(first.url);
  await view.locator("tbody tr").first().waitFor();
  await first.kill();
  await view.getByText(/The server has not answered since \d\d:\d\d:\d\d/).waitFor();
  assert.ok(await view.locator("tbody tr").count() > 5, "what was known stays");
  await picture(view, "gone");
  await server(t, { dir: first.dir, port: first.port, httpPort: first.httpPort });
  await view.locator("#status").waitFor({ state: "hidden" });
  await view.locator("tbody a", { hasText: "urls:crawled" }).waitFor();
});

test("with a password it asks for one, and after a lost login it comes back to the page", async (t) => {
  const closed = await server(t, { more: ["--requirepass", "secret"] });
  assert.equal((await fetch(`${closed.url}api/overview.json`)).status, 401);
  const log = (...commands) => say(closed, ["AUTH", "default", "secret"], ...commands);
  const view = await page(t, { credentials: { username: "default", password: "secret" } });
  await view.goto(closed.url);
  await view.getByText("There are no filters yet.").waitFor();
  await log(["BF.ADD", "seen", "a"]);
  await view.goto(`${closed.url}#/filter/seen`);
  await view.locator("#fact-items").waitFor();
  await log(["CONFIG", "SET", "requirepass", "密码:other"]);
  await view.locator("#password").waitFor();
  assert.equal(await view.title(), "Log in – Tamis");
  assert.match(view.url(), /#\/filter\/seen$/);
  await picture(view, "login");
  await view.fill("#password", "wrong");
  await view.keyboard.press("Enter");
  await view.getByText("User or password is wrong.").waitFor();
  await view.fill("#password", "密码:other");
  await view.keyboard.press("Enter");
  await view.locator("#fact-items").waitFor();
  assert.equal(await view.title(), "seen – Tamis");
  assert.match(view.url(), /#\/filter\/seen$/);
  // The login lasts for the other pages.
  await view.locator("#head nav a").first().click();
  await view.locator("tbody a", { hasText: "seen" }).waitFor();
});

test("every page can be used by keyboard, has names for all that can be used, and enough contrast", async (t) => {
  const full = await server(t);
  await fill(full);
  for (const [isDark, locale] of [[false, "en-US"], [true, "zh-CN"]]) {
    const view = await page(t, { isDark, locale });
    for (const hash of ["#/", "#/filter/urls%3Acrawled", "#/sizing", "#/filter/none", "#/none"]) {
      await view.goto(full.url + hash);
      await view.locator("#nothing, tbody tr, svg.chart").first().waitFor();
      await view.waitForFunction(() => !document.body.classList.contains("gone"));
      assert.equal(await view.getAttribute("html", "lang"), locale === "zh-CN" ? "zh-CN" : "en");
      assert.deepEqual(await view.evaluate(unnamed), [], hash);
      assert.deepEqual(await view.evaluate(faint), [], `${hash} ${isDark ? "dark" : "light"}`);
      // Tab reaches everything that a mouse does, and shows where it is.
      const many = await view.evaluate(() => document.querySelectorAll("a[href], button:not(:disabled), select, input, svg[tabindex]").length);
      const reached = new Set();
      for (let i = 0; i < many + 4; i++) {
        await view.keyboard.press("Tab");
        const [place, outline] = await view.evaluate(() => {
          const at = document.activeElement;
          return [[...document.querySelectorAll("*")].indexOf(at), at === document.body ? "page" : getComputedStyle(at).outlineStyle];
        });
        reached.add(place);
        assert.notEqual(outline, "none", hash);
      }
      assert.ok(reached.size >= Math.min(many, 8), `${hash}: ${reached.size} of ${many}`);
    }
    await view.context().close();
  }
});
