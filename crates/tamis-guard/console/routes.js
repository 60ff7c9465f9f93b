// The routes: what was decided about requests and why, with a small chart for each reason.

import { sparkline } from "./chart.js";
import { h, mark } from "./dom.js";
import { total } from "./history.js";
import { count, perSecond, rate } from "./numbers.js";
import { t } from "./translations.js";

/** Reasons that are shown before the first such request. */
const ALWAYS = new Set(["passed.known", "refused.absent"]);

/** Creates the section with a card for each route, and one for the rules by which answers teach ids. */
export function routeSections() {
  const cards = h("div", { class: "cards" });
  return {
    element: h("section", { id: "routes" }, h("h2", { class: "part" }, t("routes.title")), cards),
    draw(status, history) {
      const shown = status.routes.map((route, i) => card(route, i, history));
      if (status.learn.length > 0) shown.push(rules(status.learn));
      cards.replaceChildren(...(shown.length > 0 ? shown : [h("p", { class: "muted" }, t("routes.none"))]));
    },
  };
}

function card(route, index, history) {
  const reasons = ["passed", "refused"].flatMap((group) => Object.entries(route[group]).map(([name, number]) => ({ path: `${group}.${name}`, group, number })));
  const rows = reasons.filter(({ path, number }) => number > 0 || ALWAYS.has(path)).map(({ path, group, number }) => {
    const values = history.perSecond(index, path);
    const verdict = group === "passed" ? "passed" : route.is_shadow ? "would" : "refused";
    return h("tr", { "data-reason": path },
      h("td", { class: "r-reason" }, h("span", { class: `verdict ${verdict}` }, t(`verdict.${verdict}`)), " ", t(`reason.${path}`)),
      h("td", { class: "r-chart" }, sparkline(values, t("route.chart"))),
      h("td", { class: "r-now", "data-label": t("route.now") }, perSecond(values.at(-1))),
      h("td", { class: "r-total", "data-label": t("route.total") }, count(number)));
  });
  const head = ["reason", "chart", "now", "total"].map((name) => h("th", { scope: "col", class: `r-${name}` }, t(`route.${name}`)));
  return h("article", { class: "card route" },
    h("div", { class: "title" }, h("h3", { class: "key" }, route.name), route.is_shadow ? mark("warn", t("route.shadow")) : null),
    h("p", { class: "muted" }, t("route.about", { path: route.path, ids: route.ids.join(", "), n: count(total(route)) })),
    h("table", {}, h("caption", { class: "unseen" }, t("route.caption", { name: route.name })), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
    h("p", {}, t("route.false", { n: count(route.not_found), rate: rate(route.observed_rate) })),
    route.is_shadow ? h("p", {}, misjudged(route.misjudged)) : null,
    route.waited ? h("p", { class: "muted" }, t("route.waited", { n: count(route.waited) })) : null);
}

function misjudged(number) {
  return number === 0 ? mark("good", t("route.misjudged.none")) : mark("bad", t("route.misjudged", { n: count(number) }));
}

function rules(learn) {
  const lost = (rule) => Object.values(rule.not_learnt).reduce((sum, number) => sum + number, 0);
  return h("article", { class: "card" }, h("h3", {}, t("learn.title")),
    h("p", { class: "muted" }, t("learn.about")),
    h("dl", { class: "facts" }, learn.flatMap((rule) => [
      h("dt", { class: "key" }, rule.name), h("dd", {}, t("learn.value", { n: count(rule.learnt), lost: count(lost(rule)) }))])));
}
