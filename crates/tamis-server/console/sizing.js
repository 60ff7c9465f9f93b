// Sizing: the memory of each kind of filter for a number of items and a rate.

import { lineChart } from "./chart.js";
import { bytes, count, decimal, rate, readCount, readRate, tick } from "./numbers.js";
import { command, h, mark, program } from "./page.js";
import { ask } from "./server.js";
import { has, kindName, t } from "./translations.js";

const COLUMNS = ["kind", "memory", "bits", "probes", "lines", "what"];

/** Opens the view in `root` with the previous items and rate. Returns its refresh function. */
export function sizing(root, [items = "1000000", ratePlanned = "0.01"]) {
  const itemsBox = h("input", { id: "items", value: items, inputmode: "text", autocomplete: "off", oninput: () => later() });
  const rateBox = h("input", { id: "rate", value: ratePlanned, inputmode: "text", autocomplete: "off", oninput: () => later() });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const field = (box, name) => h("label", { for: box.id }, h("span", {}, t(`sizing.${name}`)), box, h("small", { class: "muted" }, t(`sizing.${name}.hint`)));
  const form = h("form", { class: "form", onsubmit: (event) => event.preventDefault() }, field(itemsBox, "items"), field(rateBox, "rate"));
  const caption = h("caption");
  const body = h("tbody");
  const heads = COLUMNS.map((name) => h("th", { scope: "col", class: `p-${name}` }, t(`sizing.${name}`)));
  const table = h("table", { class: "plans" }, caption, h("thead", {}, h("tr", {}, heads)), body);
  const chart = h("div", { class: "chart-box", id: "chart-sizing" });
  const lines = h("div");
  const results = h("div", { hidden: true },
    h("section", { class: "scroll" }, table),
    h("div", { class: "cards" },
      h("section", { class: "card" }, h("h2", {}, t("sizing.curve")), chart, h("p", { class: "muted" }, t("sizing.curve.note"))),
      h("section", { class: "card" }, h("h2", {}, t("sizing.commands")), lines)));
  root.replaceChildren(h("h1", {}, t("sizing.title")), form, problem, results);
  let [plans, question, waiting] = [null, null, null];

  function later() {
    clearTimeout(waiting);
    waiting = setTimeout(() => refresh().catch((error) => say(error.message)), 200);
  }

  function say(text) {
    problem.textContent = text;
    problem.hidden = text === "";
    if (text !== "") results.hidden = true;
  }

  async function refresh() {
    const [n, p] = [readCount(itemsBox.value), readRate(rateBox.value)];
    itemsBox.setAttribute("aria-invalid", String(n === null));
    rateBox.setAttribute("aria-invalid", String(p === null));
    if (n === null) return say(t("sizing.bad.items"));
    if (p === null) return say(t("sizing.bad.rate"));
    if (question?.n === n && question?.p === p) {
      // The plan for the same numbers never changes; a repeated request only checks the connection.
      say("");
      results.hidden = false;
      return;
    }
    try {
      const response = await ask("plan", { items: n, rate: p });
      if (n !== readCount(itemsBox.value) || p !== readRate(rateBox.value)) return;
      [plans, question] = [response.plans, { n, p, port: response.port }];
    } catch (error) {
      if (error.status !== 400) throw error;
      question = null;
      return say(t("refused", { text: error.message }));
    }
    history.replaceState(null, "", `#/sizing/${encodeURIComponent(itemsBox.value)}/${encodeURIComponent(rateBox.value)}`);
    say("");
    results.hidden = false;
    draw();
  }

  function draw() {
    const { n, p } = question;
    caption.textContent = t("sizing.caption", { items: count(n), rate: rate(p) });
    body.replaceChildren(...plans.map((plan) => {
      const about = `about.${plan.kind}`;
      const kind = kindName(plan.kind_id);
      const name = plan.is_usual ? [kind, " ", mark("good", t("sizing.usual"))] : kind;
      const cells = [name, bytes(plan.bytes), decimal(plan.bits_per_item, 2), count(plan.probes), count(plan.cache_lines), has(about) ? t(about) : plan.why];
      return h("tr", { class: plan.is_usual ? "usual" : "" }, COLUMNS.map((column, i) => h("td", { class: `p-${column}`, "data-label": t(`sizing.${column}`) }, cells[i])));
    }));
    drawChart();
    const usual = plans.find((plan) => plan.is_usual) ?? plans[0];
    const others = plans.filter((plan) => plan !== usual);
    const line = (words) => command(`${program(question.port)} ${words}`);
    lines.replaceChildren(
      h("p", {}, t("sizing.bf")),
      line(`BF.RESERVE seen ${p} ${n}`),
      ...[usual, ...others].flatMap((plan) => {
        const window = plan.kind === "window" ? " WINDOW 3600000" : "";
        const parts = [t("sizing.tm", { kind: kindName(plan.kind_id) }), window ? ` ${t("sizing.window")}` : ""];
        return [h("p", {}, parts), line(`TM.RESERVE seen KIND ${plan.kind}${window} ITEMS ${n} RATE ${p}`)];
      }),
    );
  }

  function drawChart() {
    const drawn = plans.filter((plan) => plan.rate_curve?.length > 1);
    const { n, p } = question;
    lineChart(chart, {
      title: t("sizing.curve"),
      x: { label: t("chart.items"), unit: t("chart.items"), format: count, formatTick: tick, isCount: true, from: 0, to: n * 1.5 },
      y: { label: t("chart.rate"), format: rate, from: p / 1000, to: Math.min(p * 30, 1), isLog: true },
      lines: drawn.map((plan) => ({ name: kindName(plan.kind_id), points: plan.rate_curve.filter((point) => point[1] >= p / 1000) })),
      levels: [{ y: p, name: t("chart.target", { rate: rate(p) }) }, { x: n, name: t("chart.capacity", { n: count(n) }) }],
    });
  }

  return {
    refresh: async () => {
      const known = question;
      await refresh();
      // A small request checks the connection.
      if (known && known === question) await ask("plan", { items: 1, rate: 0.5 });
    },
    title: () => t("nav.sizing"),
    resized: () => question && drawChart(),
  };
}
