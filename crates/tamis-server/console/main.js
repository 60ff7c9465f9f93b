// The frame: opens views, polls the server, and shows whether it answers.

import { overviewAddress, read } from "./address.js";
import { filterPage } from "./filter.js";
import { login } from "./login.js";
import { nothingHere } from "./nothing.js";
import { clock } from "./numbers.js";
import { overview } from "./overview.js";
import { h } from "./page.js";
import { language, setLanguage, setTheme, theme } from "./settings.js";
import { sizing } from "./sizing.js";
import { t } from "./translations.js";

const PERIOD_MILLIS = 2000;

const root = document.getElementById("view");
const status = document.getElementById("status");
let view = null;
let goneSince = null;
let hasAnswered = false;

/** The views by their names in the address. */
const VIEWS = {
  "": ({ parameters }) => overview(root, parameters),
  filter: ({ parts }) => (parts.length === 1 ? filterPage(root, parts[0]) : nothingHere(root)),
  sizing: ({ parts }) => sizing(root, parts.map(decoded)),
};

/** Opens the view that the address names. */
function open() {
  const address = read(location.hash);
  const isPage = location.pathname === "/" && Object.hasOwn(VIEWS, address.name);
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  drawHead(isPage ? address.name : null);
  hasAnswered = false;
  view = isPage ? VIEWS[address.name](address) : nothingHere(root);
  refresh();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function drawHead(name) {
  const link = (address, text, isHere) => h("a", { href: `/${address}`, "aria-current": isHere ? "page" : null }, text);
  const option = (value, text, chosen) => h("option", { value, selected: value === chosen }, text);
  const languages = h("select", { id: "language", "aria-label": t("nav.language"), onchange: () => { setLanguage(languages.value); open(); document.getElementById("language").focus(); } },
    option("en", "English", language()), option("zh", "中文", language()));
  const themes = h("select", { id: "theme", "aria-label": t("nav.theme"), onchange: () => setTheme(themes.value) },
    ["system", "light", "dark"].map((value) => option(value, t(`theme.${value}`), theme())));
  document.getElementById("head").replaceChildren(
    h("a", { class: "name", href: `/${overviewAddress()}` }, "Tamis"),
    h("nav", { "aria-label": t("nav.label") }, link(overviewAddress(), t("nav.filters"), name === "" || name === "filter"), link("#/sizing", t("nav.sizing"), name === "sizing")),
    h("span", { class: "switches" }, languages, themes),
  );
}

function showTitle() {
  const title = `${view.title()} – Tamis`;
  if (document.title !== title) document.title = title;
}

async function refresh() {
  const refreshed = view;
  showTitle();
  try {
    await refreshed.refresh();
    if (refreshed !== view) return;
    [goneSince, hasAnswered] = [null, true];
    say("");
    showTitle();
  } catch (error) {
    if (refreshed !== view) return;
    if (error.status === 401) {
      // The password was changed, or the server restarted with one: the address stays, so that the view returns after the login.
      goneSince = null;
      say("");
      view = login(root, open);
      showTitle();
      return;
    }
    if (error.status !== undefined && error.status < 500) {
      say(t("refused", { text: error.message }));
      return;
    }
    goneSince ??= Date.now();
    say(t(hasAnswered ? "gone" : "gone.first", { time: clock(goneSince) }));
  }
}

function say(text) {
  document.body.classList.toggle("gone", text !== "");
  if (status.textContent !== text) status.textContent = text;
  status.hidden = text === "";
}

async function keep() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MILLIS));
    // A hidden page sends no requests.
    if (!document.hidden) await refresh();
  }
}

let width = innerWidth;
addEventListener("resize", () => {
  if (width === innerWidth) return;
  width = innerWidth;
  view?.resized?.();
});
addEventListener("hashchange", () => {
  open();
  root.focus({ preventScroll: true });
  scrollTo(0, 0);
});
open();
keep();
