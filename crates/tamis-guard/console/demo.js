// The demo: what the database does with and without the guard. It is only there in `tamis guard --demo`.

import { lineChart } from "./chart.js";
import { h } from "./dom.js";
import { count, micros, perSecond, tick } from "./numbers.js";
import { t } from "./translations.js";

const HEIGHT = 270;

/** Creates the section, which stays hidden without a demo. */
export function demoSection() {
  const about = h("p", { class: "muted about" });
  const queries = h("div", { class: "chart-box", id: "chart-queries" });
  const p99 = h("div", { class: "chart-box", id: "chart-p99" });
  const head = h("tr", {}, ["measure", "without", "with"].map((name) => h("th", { scope: "col", class: `d-${name}` }, t(`demo.${name}`))));
  const body = h("tbody");
  const events = h("ul", { class: "events" });
  const card = (name, ...children) => h("div", { class: "card" }, h("h3", {}, t(name)), ...children);
  const element = h("section", { id: "demo", hidden: true }, h("h2", { class: "part" }, t("demo.title")), about,
    h("div", { class: "cards" }, card("demo.queries", queries), card("demo.p99", p99)),
    h("div", { class: "card compare" }, h("table", {}, h("caption", { class: "unseen" }, t("demo.caption")), h("thead", {}, head), body), events));
  return {
    element,
    draw({ demo }) {
      element.hidden = !demo;
      if (!demo) return;
      about.textContent = t("demo.about", {
        attack: count(demo.attack_per_second), customers: count(demo.customers_per_second), products: count(demo.products),
        connections: demo.connections, millis: demo.query_millis,
      });
      drawCharts(demo, queries, p99);
      body.replaceChildren(...rows(demo.without, demo.with));
      events.replaceChildren(...demo.created.map((one) => h("li", {}, t(one.passed ? "demo.created" : "demo.refused", { id: count(one.id), time: micros(one.micros) }))));
    },
  };
}

function drawCharts(demo, queries, p99) {
  const last = demo.seconds;
  const pointsOf = (values) => values.map((value, i) => [last - (values.length - 1 - i), value]);
  const first = last - Math.max(demo.with.queries.length - 1, 10);
  const x = { label: t("demo.seconds"), format: (value) => String(Math.round(value)), unit: t("demo.second"), from: Math.max(first, 0), to: Math.max(last, 10), isCount: true };
  const lines = (name) => [
    { name: t("demo.with"), points: pointsOf(demo.with[name]) },
    { name: t("demo.without"), points: pointsOf(demo.without[name]) },
  ];
  const most = Math.max(10, ...demo.with.queries, ...demo.without.queries);
  lineChart(queries, {
    title: t("demo.queries"), height: HEIGHT, x,
    y: { label: t("demo.queries.axis"), format: perSecond, formatTick: tick, from: 0, to: most * 1.08, isCount: true }, lines: lines("queries"),
  });
  const known = [...demo.with.p99_micros, ...demo.without.p99_micros].filter((value) => value !== null);
  lineChart(p99, {
    title: t("demo.p99"), height: HEIGHT, x,
    y: { label: t("demo.p99.axis"), format: micros, formatTick: (value) => (value === 0 ? "0" : micros(value)), from: 0, to: Math.max(1000, ...known) * 1.08 }, lines: lines("p99_micros"),
  });
}

function rows(without, guarded) {
  const row = (name, value) => h("tr", { "data-row": name },
    h("th", { scope: "row" }, t(`demo.row.${name}`)),
    h("td", { class: "d-without", "data-label": t("demo.without") }, value(without)),
    h("td", { class: "d-with", "data-label": t("demo.with") }, value(guarded)));
  return [
    row("queries", (side) => perSecond(side.queries.at(-1))),
    row("p99", (side) => micros(side.p99_micros.findLast((value) => value !== null))),
    row("attack", (side) => perSecond(side.attack.at(-1))),
    row("reached", (side) => t("demo.of", { n: count(side.total.absent_queries), total: count(side.total.attack) })),
    row("customers", (side) => count(side.total.customers)),
    row("wrong", (side) => count(side.total.wrong_404)),
  ];
}
