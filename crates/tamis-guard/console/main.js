// The frame: asks the guard for its status each second, draws it, and shows whether the guard answers.

import { demoSection } from "./demo.js";
import { h } from "./dom.js";
import { createHistory } from "./history.js";
import { clock } from "./numbers.js";
import { routeSections } from "./routes.js";
import { setSections } from "./sets.js";
import { language, setLanguage, setTheme, theme } from "./settings.js";
import { tiles } from "./tiles.js";
import { t } from "./translations.js";

const PERIOD_MILLIS = 1000;
const PATIENCE_MILLIS = 10_000;

const root = document.getElementById("view");
const notice = document.getElementById("status");
const history = createHistory();
let parts = [];
let last = null;
let goneSince = null;

/** Draws the page again, in the language of the settings. */
function open() {
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  drawHead();
  parts = [demoSection(), tiles(), setSections(), routeSections()];
  root.replaceChildren(h("h1", { class: "unseen" }, t("title")), ...parts.map((part) => part.element));
  if (last) draw(last);
}

function drawHead() {
  const option = (value, text, chosen) => h("option", { value, selected: value === chosen }, text);
  const languages = h("select", { id: "language", "aria-label": t("nav.language"), onchange: () => { setLanguage(languages.value); open(); document.getElementById("language").focus(); } },
    option("en", "English", language()), option("zh", "中文", language()));
  const themes = h("select", { id: "theme", "aria-label": t("nav.theme"), onchange: () => setTheme(themes.value) },
    ["system", "light", "dark"].map((value) => option(value, t(`theme.${value}`), theme())));
  document.getElementById("head").replaceChildren(
    h("span", { class: "name" }, "Tamis"), h("span", { id: "what" }, t("title")),
    h("span", { class: "switches" }, languages, themes));
}

function draw(status) {
  for (const part of parts) part.draw(status, history);
  const isSynced = Object.values(status.ids).every((set) => set.generations === null || set.state === "synced");
  const title = `${isSynced ? "" : "▲ "}${t("title")} – Tamis`;
  if (document.title !== title) document.title = title;
}

async function refresh() {
  try {
    const answer = await fetch("/api/status", { signal: AbortSignal.timeout(PATIENCE_MILLIS), cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    last = await answer.json();
    history.add(last);
    goneSince = null;
    say("");
  } catch {
    goneSince ??= Date.now();
    say(t("gone", { time: clock(goneSince) }));
    return;
  }
  draw(last);
}

function say(text) {
  document.body.classList.toggle("gone", text !== "");
  if (notice.textContent !== text) notice.textContent = text;
  notice.hidden = text === "";
}

async function keep() {
  for (;;) {
    // A hidden page sends no requests.
    if (!document.hidden) await refresh();
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MILLIS));
  }
}

let width = innerWidth;
addEventListener("resize", () => {
  if (width === innerWidth) return;
  width = innerWidth;
  if (last) draw(last);
});
open();
keep();
