// The documentation site in Chromium: all pages on a phone and on a desktop, both languages, the search and the colours.
//
// `cargo xtask site --check` runs the tests with SITE, the folder of the site, and the variables of the console tests.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { page, pictures } from "../console/browser.js";
import { after, before, test } from "../deadline.mjs";
import { serve } from "./server.js";

const folder = resolve(process.env.SITE ?? join(import.meta.dirname, "../../target/site"));
const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 800 };

let site;

before(async () => {
  site = await serve(folder);
});

after(() => {
  site.end();
  assert.deepEqual(site.missing, []);
});

/** Opens a page whose search finds nothing. Each page would build its search index, which takes most of the time of a page. */
async function pageWithoutSearch(t, options) {
  const view = await page(t, options);
  const json = { config: { lang: ["en"], separator: " ", pipeline: [], fields: { title: {}, text: {} } }, docs: [] };
  await view.route("**/search_index.json", (route) => route.fulfill({ json }));
  return view;
}

const UNTRANSLATED = "本页没有中文译文";

/** The addresses of all pages of the site. The Chinese site also has all English pages without translation: of these, one is enough. */
function addresses() {
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith("index.html"));
  const isNeeded = (name) => !readFileSync(join(folder, name), "utf8").includes(UNTRANSLATED) || name === "zh-CN/docs/bench/index.html";
  return names.filter(isNeeded).map((name) => name.slice(0, -"index.html".length)).sort();
}

/** The faults of the shown page: its width, the letters of hidden comments, and images without content. */
function faults() {
  const found = [];
  const overflow = document.documentElement.scrollWidth - innerWidth;
  if (overflow > 0) found.push(`${overflow} pixels too wide`);
  const article = document.querySelector("article").cloneNode(true);
  article.querySelectorAll("code, script").forEach((code) => code.remove());
  const text = article.textContent;
  for (const mark of ["<!--", "-->", "```", "]("]) if (text.includes(mark)) found.push(`the text has ${mark}`);
  for (const image of document.images) if (image.complete && !image.naturalWidth) found.push(`${image.src} has no content`);
  return found;
}

// The time grows with the number of pages. Beside another test run, the test took more than two minutes.
test("every page fits on a phone and on a desktop", { timeout: 600_000 }, async (t) => {
  const all = addresses();
  assert.ok(all.includes("docs/guard/") && all.includes("zh-CN/docs/guard/"), all.join());
  const found = [];
  // Two pages at a time: loading a page mostly waits.
  await Promise.all([0, 1].map(async (part) => {
    const view = await pageWithoutSearch(t, PHONE);
    for (const address of all.filter((_, index) => index % 2 === part)) {
      await view.setViewportSize(PHONE);
      await view.goto(site.url + address);
      const onPhone = await view.evaluate(faults);
      await view.setViewportSize(DESKTOP);
      const onDesktop = await view.evaluate(faults);
      found.push(...[...onPhone, ...onDesktop].map((fault) => `${address}: ${fault}`));
    }
  }));
  assert.deepEqual(found, []);
});

/** Searches for words, and returns the addresses of the pages of the results. The best page is the first. */
async function search(t, language, words, size) {
  const view = await page(t, size);
  await view.goto(site.url + language);
  if (size === PHONE) await view.locator("label.md-header__button[for=__search]").click();
  else await view.locator(".md-search__input").click();
  // The script has loaded the index when the placeholder changes.
  const meta = view.locator(".md-search-result__meta");
  await meta.filter({ hasText: /Type to start|键入/ }).waitFor();
  await view.locator(".md-search__input").fill(words);
  await meta.filter({ hasText: /\d.*matching|结果/ }).waitFor();
  const links = await view.locator(".md-search-result__item > a.md-search-result__link:first-child").evaluateAll((list) => list.map((it) => it.href));
  if (size === PHONE) await view.screenshot({ path: join(pictures, `search-${words}.png`) });
  await view.context().close();
  return links.map((link) => new URL(link).pathname.slice(new URL(site.url).pathname.length));
}

test("the search finds English words", async (t) => {
  for (const [words, best] of [["appendfsync", "docs/operations/"], ["guava", "docs/formats/guava/"], ["deduplicate integers", "docs/ints/"]]) {
    assert.equal((await search(t, "", words, DESKTOP))[0], best, words);
  }
});

/** The addresses of all pages of the Chinese site whose text has a word. */
function pagesWith(word) {
  const index = JSON.parse(readFileSync(join(folder, "zh-CN/search/search_index.json"), "utf8"));
  // The splitter of words has put a zero-width space between the words.
  const text = ({ title, text }) => `${title} ${text}`.replaceAll("\u200b", "");
  const sections = index.docs.filter((section) => text(section).includes(word));
  return [...new Set(sections.map(({ location }) => `zh-CN/${location.split("#")[0]}`))].sort();
}

test("the search finds Chinese words", async (t) => {
  // Each word and one of its pages.
  const words = { 缓存穿透: "docs/guard/", 误判率: "docs/filters/", 去重: "docs/dedup/", 令牌: "docs/publish/", 永久复制槽: "docs/guard/" };
  for (const [word, address] of Object.entries(words)) {
    const expected = pagesWith(word);
    assert.ok(expected.includes(`zh-CN/${address}`), `${word}: ${expected}`);
    // The pages with all parts of the word come before the pages with some parts.
    const found = (await search(t, "zh-CN/", word, word === "误判率" ? PHONE : DESKTOP)).slice(0, expected.length);
    assert.deepEqual(found.filter((page) => !expected.includes(page)), [], word);
    // The list shows ten pages until the reader scrolls.
    assert.ok(found.length >= Math.min(expected.length, 10), `${word}: ${found}`);
  }
});

const scheme = (view) => view.locator("body").getAttribute("data-md-color-scheme");

test("the colours follow the system until the reader chooses", async (t) => {
  const view = await pageWithoutSearch(t, { ...DESKTOP, isDark: true });
  await view.goto(site.url);
  assert.equal(await scheme(view), "slate");
  const toggle = view.locator("form[data-md-component=palette] label:visible");
  await toggle.click();
  await view.locator("body[data-md-color-scheme=default]").waitFor();
  await view.goto(`${site.url}docs/filters/`);
  assert.equal(await scheme(view), "default", "the next page has the colours that the reader has chosen");
  await toggle.click();
  await view.locator("body[data-md-color-scheme=slate]").waitFor();
  const bright = await pageWithoutSearch(t, DESKTOP);
  await bright.goto(site.url);
  assert.equal(await scheme(bright), "default");
});

test("the language switch leads to the same page", async (t) => {
  const view = await pageWithoutSearch(t, PHONE);
  for (const address of ["", "docs/guard/", "docs/formats/guava/"]) {
    await view.goto(site.url + address);
    await view.locator(".tamis-language").click();
    await view.waitForURL(`${site.url}zh-CN/${address}`);
    await view.locator("html[lang=zh]").waitFor();
    await view.locator(".tamis-language").click();
    await view.waitForURL(site.url + address);
    await view.locator("html[lang=en]").waitFor();
  }
});

test("the Chinese site says which pages are in English", async (t) => {
  const view = await pageWithoutSearch(t, DESKTOP);
  const note = view.getByText(UNTRANSLATED);
  for (const [address, notes] of [["zh-CN/docs/commands/", 1], ["zh-CN/docs/guard/", 0], ["docs/commands/", 0]]) {
    await view.goto(site.url + address);
    assert.equal(await note.count(), notes, address);
  }
});

test("the copy of a console block has only the commands", async (t) => {
  const view = await pageWithoutSearch(t, DESKTOP);
  await view.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await view.goto(site.url);
  const block = view.locator(".highlight", { hasText: "BF.RESERVE seen" }).first();
  await block.hover();
  await block.locator(".md-clipboard, .md-code__button").first().click();
  const copied = await view.waitForFunction(() => navigator.clipboard.readText());
  assert.match(await copied.jsonValue(), /^redis-cli BF\.RESERVE seen 0\.01 1000000\s+redis-cli BF\.ADD seen user:1\s+redis-cli/);
});

test("pictures", async (t) => {
  for (const [size, isDark] of [[PHONE, true], [DESKTOP, false]]) {
    const view = await pageWithoutSearch(t, { ...size, isDark });
    for (const [name, address] of [["home", ""], ["guard", "docs/guard/"], ["commands", "docs/commands/"]]) {
      for (const [language, path] of [["en", ""], ["zh", "zh-CN/"]]) {
        await view.goto(site.url + path + address);
        await view.screenshot({ path: join(pictures, `${name}-${language}-${size.width}.png`) });
      }
    }
  }
});
