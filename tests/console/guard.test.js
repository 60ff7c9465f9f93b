// The console of the guard in Chromium: the demo, sets and routes of a configuration, both languages, both themes.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { end, start, started, test } from "../deadline.mjs";
import { everyTextIsThere, faint, HOSTILE, page, picture, pictures, program, unnamed } from "./browser.js";

/** Starts a guard. Returns the address of its console, and of its proxy. The test ends the guard, then removes `folder`. */
async function guard(t, args, folder = undefined) {
  const child = start(program, ["guard", ...args]);
  t.after(async () => {
    await end(child);
    if (folder) rmSync(folder, { recursive: true, force: true });
  });
  const [url, proxy] = await started(child, child.stderr, (log) => {
    const console = /console.* url=(http:[^ \n]*)/.exec(log);
    const proxy = /ready for requests address=([^ \n]*)/.exec(log) ?? /url=http:\/\/([^/]*)\/pms/.exec(log);
    return console && proxy && [console[1], `http://${proxy[1]}`];
  });
  return {
    url, proxy,
    async end() {
      child.kill("SIGINT");
      const [status] = await once(child, "exit");
      return status;
    },
  };
}

/** Starts an upstream that answers 404, and a guard of a shop with 9 products in front of it. */
async function shop(t, more = "") {
  const upstream = createServer((_, answer) => { answer.statusCode = 404; answer.end("{}"); });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  t.after(() => { upstream.close(); upstream.closeAllConnections(); });
  const folder = mkdtempSync(join(tmpdir(), "tamis-guard-console-"));
  writeFileSync(join(folder, "ids.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  writeFileSync(join(folder, "guard.toml"), `
    proxy = { listen = "127.0.0.1:0", upstream = "http://127.0.0.1:${upstream.address().port}" }
    admin = { listen = "127.0.0.1:0" }
    snapshots = { folder = ".", every = "1s" }
    [ids.products]
    source = { kind = "lines", path = "ids.txt", quiet = "20ms" }
    interval = "20ms"
    recent = "0s"
    [ids.${JSON.stringify(HOSTILE)}]
    source = { kind = "lines", path = "missing.txt" }
    interval = "50ms"
    [ids.pushed]
    push = { token = "very-secret" }
    [[route]]
    name = "product"
    path = "/products/{id}"
    ids = { "path:id" = "products" }
    [[route]]
    name = ${JSON.stringify(HOSTILE)}
    path = "/shadow/{id}"
    ids = { "path:id" = "products" }
    shadow = true
    [[learn]]
    path = "/products"
    places = "answer json:/id"
    ids = "products"
    ${more}
  `);
  return guard(t, ["--config", join(folder, "guard.toml")], folder);
}

async function ask(proxy, paths) {
  for (const path of paths) await (await fetch(proxy + path)).text();
}

test("the demo shows the database with and without the guard", async (t) => {
  const demo = await guard(t, ["--demo"]);
  const view = await page(t, { height: 1000 });
  view.setDefaultTimeout(60_000);
  await view.goto(demo.url);
  await view.waitForFunction(() => document.querySelectorAll("#chart-queries svg.chart path.line").length === 2);
  await view.waitForFunction(() => /\d of \d/.test(document.querySelector("[data-row=reached] .d-without")?.textContent));
  await view.locator(".events li").first().waitFor();
  const [reached, sent] = (await view.locator("[data-row=reached] .d-with").innerText()).split(" of ").map((text) => Number(text.replaceAll(",", "")));
  assert.ok(sent > 100 && reached <= sent * 0.01 + 10, `${reached} of ${sent}`);
  for (const side of ["without", "with"]) assert.equal(await view.locator(`[data-row=wrong] .d-${side}`).innerText(), "0");
  assert.match(await view.locator(".events li").first().innerText(), /^Product 100,0\d\d was created and passed the guard .* later\.$/);
  await view.locator("#chart-queries svg.chart").focus();
  await view.keyboard.press("ArrowLeft");
  // The axis ends after the last value, and a press moves by a fiftieth of it.
  const readout = view.locator("#chart-queries .readout");
  for (let i = 0; i < 60 && /no value/.test(await readout.innerText()); i++) await view.keyboard.press("ArrowLeft");
  assert.match(await readout.innerText(), /^\d+ s: with guard .*\/s, without guard .*\/s$/);
  await view.locator("#language").focus();
  await picture(view, "guard-demo");
  await view.selectOption("#language", "zh");
  await view.getByText("演示：被攻击的商店").waitFor();
  await picture(view, "guard-demo-chinese");
  assert.equal(await demo.end(), 0);
});

test("sets and routes are shown as text, and their counters move", async (t) => {
  const running = await shop(t);
  const view = await page(t);
  await view.goto(running.url);
  await view.locator("#sets .set[data-state=synced]", { hasText: "products" }).waitFor();
  const broken = view.locator("#sets .set", { hasText: "<script>" });
  await broken.getByText(/Last error: .*missing\.txt/).waitFor();
  await view.locator("#sets .set", { hasText: "products" }).getByText("Age of the snapshot").waitFor();
  assert.equal(await broken.locator("h3").innerText(), HOSTILE);
  assert.match(await broken.innerText(), /● warming/);
  assert.match(await view.locator("#tile-sets").innerText(), /▲ 1 of 2 synced/);
  assert.match(await view.title(), /^▲ Guard – Tamis$/);
  assert.equal(await view.locator("#demo").isVisible(), false);
  await ask(running.proxy, ["/products/7", "/products/7", "/products/10", "/products/11", "/products/x", "/shadow/10", "/elsewhere"]);
  const row = (route, reason) => view.locator(".route").nth(route).locator(`[data-reason='${reason}'] .r-total`);
  const becomes = async (place, text) => view.waitForFunction(([element, text]) => element?.textContent === text, [await place.elementHandle(), text]).catch(() => {});
  await view.locator(".route").first().locator("[data-reason='refused.negative']").waitFor();
  await becomes(row(0, "refused.absent"), "2");
  for (const [route, reason, number] of [[0, "passed.known", "1"], [0, "refused.negative", "1"], [0, "refused.absent", "2"], [0, "refused.not_an_id", "1"], [1, "refused.absent", "1"]]) {
    await view.locator(".route").nth(route).locator(`[data-reason='${reason}'] .r-total`, { hasText: number }).waitFor();
  }
  const product = await view.locator(".route").first().innerText();
  assert.match(product, /False positives .*: 1, a rate of 0\.333/);
  assert.match(await view.locator(".route").nth(1).innerText(), /shadow: refuses nothing[^]*would be refused[^]*✓ no request would have been refused wrongly/);
  assert.match(await view.locator("#sets .set", { hasText: "products" }).first().innerText(), /0\.001 \/ .* \/ 0\.25/);
  assert.equal(await view.locator("main script, main img").count(), 0);
  assert.doesNotMatch(await view.content(), /very-secret/);
  await picture(view, "guard");
});

test("the page comes with headers that restrict it, and tells no secret", async (t) => {
  const running = await shop(t);
  for (const path of ["", "console/main.js", "api/status", "metrics", "nothing"]) {
    const answer = await fetch(running.url + path);
    assert.match(answer.headers.get("content-security-policy"), /^default-src 'self';/, path);
    assert.doesNotMatch(await answer.text(), /very-secret/);
  }
  const first = await fetch(running.url);
  const again = await fetch(running.url, { headers: { "If-None-Match": first.headers.get("etag") } });
  assert.equal(again.status, 304);
});

test("it can be used by keyboard, with names and contrast, in both themes and languages, wide and narrow", async (t) => {
  const demo = await guard(t, ["--demo"]);
  const plain = await shop(t);
  for (const [name, url] of [["demo", demo.url], ["plain", plain.url]]) {
    for (const [isDark, locale, width] of [[false, "en-US", 1280], [true, "zh-CN", 1280], [false, "zh-CN", 390], [true, "en-US", 390]]) {
      const view = await page(t, { isDark, locale, width });
      await view.goto(url);
      await view.locator("#routes .route").first().waitFor();
      assert.equal(await view.getAttribute("html", "lang"), locale === "zh-CN" ? "zh-CN" : "en");
      assert.deepEqual(await view.evaluate(unnamed), []);
      assert.deepEqual(await view.evaluate(faint), [], `${name} ${isDark ? "dark" : "light"}`);
      for (let i = 0; i < 2; i++) {
        await view.keyboard.press("Tab");
        assert.notEqual(await view.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
      }
      await picture(view, `guard-${name}-${isDark ? "dark" : "light"}-${width}-${locale}`);
      await view.screenshot({ path: join(pictures, `guard-${name}-${isDark ? "dark" : "light"}-${width}-${locale}-all.png`), fullPage: true });
      await view.selectOption("#theme", isDark ? "light" : "dark");
      assert.equal(await view.getAttribute("html", "data-theme"), isDark ? "light" : "dark");
      await view.context().close();
    }
  }
});

test("it says that the guard is gone, and keeps what was known", async (t) => {
  const running = await shop(t);
  const view = await page(t);
  await view.goto(running.url);
  await view.locator("#routes .route").first().waitFor();
  assert.equal(await running.end(), 0);
  await view.getByText(/The guard has not answered since \d\d:\d\d:\d\d/).waitFor();
  assert.ok(await view.locator("#routes .route").count() > 0);
  await picture(view, "guard-gone");
});

test("every text is there in both languages", () => everyTextIsThere("crates/tamis-guard/console"));
