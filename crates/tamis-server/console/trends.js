// Charts of the server over time: how long commands take, how many fail, and how many are slow.

import { lineChart } from "./chart.js";
import { clock, micros, tick } from "./numbers.js";
import { h } from "./page.js";
import { ask } from "./server.js";
import { t } from "./translations.js";

const HEIGHT = 190;

/** The width below which rows are cards: see the end of style.css. */
const NARROW = 1000;

/** Creates the charts. `ask` fetches the samples of the chosen span; `draw` draws the last ten minutes. */
export function serverCharts() {
  let day = null;
  const span = h("select", { id: "span", onchange: () => { day = null; api.ask().then(() => api.draw(minutes)).catch(() => {}); } },
    h("option", { value: "second" }, t("trend.minutes")), h("option", { value: "minute" }, t("trend.day")));
  const latency = h("div", { class: "chart-box", id: "chart-latency" });
  const errors = h("div", { class: "chart-box", id: "chart-errors" });
  const card = (name, note, box) => h("section", { class: "card" }, h("h2", {}, t(name)), box, h("p", { class: "muted" }, t(note)));
  // On a phone the filters come first: the charts are opened by a touch.
  const element = h("details", { class: "trends", open: innerWidth > NARROW, ontoggle: () => minutes && api.draw(minutes) },
    h("summary", {}, t("trend.label")),
    h("div", { class: "tools" }, h("label", { for: "span" }, t("trend.span")), span),
    h("div", { class: "cards" }, card("trend.latency", "trend.latency.note", latency), card("trend.errors", "trend.errors.note", errors)));
  let minutes = null;
  const api = {
    element,
    async ask() {
      if (span.value === "minute") day = await ask("history", { step: "minute" });
    },
    draw(history) {
      minutes = history;
      const samples = span.value === "minute" ? day : minutes;
      if (!samples || !element.open) return;
      drawLatency(latency, samples);
      drawErrors(errors, samples);
    },
  };
  return api;
}

/** Returns one point for each sample, at the end of its interval. */
function pointsOf(samples, values) {
  return values.map((value, i) => [samples.end_millis - (values.length - 1 - i) * samples.step_millis, value]);
}

function timeOf(samples) {
  const from = samples.end_millis - Math.max(samples.commands.length - 1, 1) * samples.step_millis;
  return { label: t("chart.time"), format: clock, from, to: samples.end_millis, isTime: true };
}

function drawLatency(box, samples) {
  const known = [...samples.p50_micros, ...samples.p99_micros].filter((value) => value !== null);
  if (samples.commands.length < 2 || known.length === 0) {
    box.replaceChildren(h("p", { class: "muted" }, t("trend.none")));
    return;
  }
  const power = (value, round) => 10 ** round(Math.log10(value));
  lineChart(box, {
    title: t("trend.latency"), height: HEIGHT, x: timeOf(samples),
    y: { label: t("trend.latency.axis"), format: micros, from: power(Math.min(...known), Math.floor), to: power(Math.max(...known) * 1.0001, Math.ceil), isLog: true },
    lines: [
      { name: t("trend.p99"), points: pointsOf(samples, samples.p99_micros) },
      { name: t("trend.p50"), points: pointsOf(samples, samples.p50_micros) },
    ],
  });
}

function drawErrors(box, samples) {
  if (samples.commands.length < 2) {
    box.replaceChildren(h("p", { class: "muted" }, t("trend.none")));
    return;
  }
  const most = Math.max(...samples.errors, ...samples.slow, 4);
  lineChart(box, {
    title: t("trend.errors"), height: HEIGHT, x: timeOf(samples),
    y: { label: t(samples.step_millis === 1000 ? "trend.second" : "trend.minute"), format: tick, from: 0, to: most * 1.05, isCount: true },
    lines: [
      { name: t("trend.failed"), points: pointsOf(samples, samples.errors) },
      { name: t("trend.slow"), points: pointsOf(samples, samples.slow) },
    ],
  });
}
