// One filter: facts, fill, curves, and what to type.

import { lineChart } from "./chart.js";
import { forecast, warning } from "./forecast.js";
import { bytes, clock, count, duration, exact, perSecond, rate } from "./numbers.js";
import { bar, command, fillOf, h, mark, percent, typed } from "./page.js";
import { ask } from "./server.js";
import { has, t } from "./words.js";

/** Opens the view of a key, percent-encoded, in an element; returns what brings it up to date. */
export function filterPage(root, keyEncoded) {
  const title = h("h1", { class: "key" });
  const sign = h("span", { class: "sign" });
  const facts = h("dl", { class: "facts" });
  const layers = h("div", { class: "layers" });
  const overTime = h("div", { class: "chart-box", id: "chart-time" });
  const asItFills = h("div", { class: "chart-box", id: "chart-rates" });
  const commands = h("section", { class: "card" });
  const card = (name, ...children) => h("section", { class: "card" }, h("h2", {}, t(name)), children);
  const gone = h("p", { class: "empty", hidden: true }, t("filter.gone"));
  const cards = h("div", { class: "cards", hidden: true },
    card("filter.facts", facts), card("filter.fill", layers), card("filter.time", overTime), card("filter.rates", asItFills), commands);
  const back = h("p", {}, h("a", { href: "#/" }, `← ${t("filter.back")}`));
  root.replaceChildren(back, h("div", { class: "title" }, title, sign), gone, cards);
  let [filter, typedFor] = [null, null];

  async function refresh() {
    try {
      filter = await ask("filter", { key: keyEncoded });
    } catch (error) {
      if (error.status !== 404) throw error;
      filter = null;
    }
    gone.hidden = filter !== null;
    cards.hidden = filter === null;
    if (filter) draw();
  }

  function draw() {
    title.textContent = filter.key === "" ? "\"\"" : filter.key;
    sign.replaceChildren(warning(filter) ?? mark("good", t("mark.within")));
    facts.replaceChildren(...factsOf(filter).flatMap(([name, value]) => [h("dt", {}, t(`fact.${name}`)), h("dd", { id: `fact-${name}` }, value)]));
    layers.replaceChildren(...filter.layers.map((layer, number) => layerRow(layer, number)));
    drawTime();
    drawRates();
    // Written once for each state: a line that is being selected stays.
    const state = `${filter.kind} ${filter.over_rate} ${filter.full}`;
    if (typedFor !== state) {
      typedFor = state;
      commands.replaceChildren(...commandsOf(filter));
    }
  }

  function layerRow(layer, number) {
    const isExpandable = filter.kind === "expandable";
    const name = isExpandable ? t(layer.capacity === null ? "layer.overflow" : "layer.reserved") : t("layer.name", { n: number + 1 });
    const values = { items: count(layer.items), capacity: count(layer.capacity) };
    const fill = fillOf(layer);
    const text = fill === null ? t("layer.open", values) : t("layer.of", { ...values, percent: percent(fill) });
    return h("div", { class: "layer" }, h("span", {}, name), bar(layer, filter), h("span", { class: "muted" }, text));
  }

  function drawTime() {
    const { samples } = filter;
    const points = samples.map(([millis, items]) => [millis, items]);
    if (points.length < 2) {
      overTime.replaceChildren(h("p", { class: "muted" }, t("filter.notime")));
      return;
    }
    const most = Math.max(...points.map((point) => point[1]), 1);
    const isNear = filter.capacity !== null && filter.capacity <= most * 3;
    lineChart(overTime, {
      title: t("filter.time"),
      x: { label: t("chart.time"), format: clock, from: points[0][0], to: points.at(-1)[0], isTime: true },
      y: { label: t("chart.items"), format: count, isCount: true, from: 0, to: (isNear ? Math.max(filter.capacity, most) : most) * 1.1 },
      lines: [{ name: t("chart.items"), points }],
      levels: isNear ? [{ y: filter.capacity, name: t("chart.capacity", { n: count(filter.capacity) }) }] : [],
    });
  }

  function drawRates() {
    const points = filter.rate_curve;
    if (points.length < 2) {
      asItFills.replaceChildren(h("p", { class: "muted" }, t("filter.norates")));
      return;
    }
    const last = points.at(-1)[0];
    const reach = Math.max(filter.rate_now * 1.15, filter.rate_planned * 1.5);
    const most = Math.min(Math.max(reach, Math.min(points.at(-1)[1], filter.rate_planned * 4)), 1);
    lineChart(asItFills, {
      title: t("filter.rates"),
      x: { label: t("chart.items"), format: count, unit: t("chart.items"), isCount: true, from: 0, to: Math.max(last, filter.items) },
      y: { label: t("chart.rate"), format: rate, from: 0, to: most },
      lines: [{ name: t("chart.expected"), points: points.filter((point) => point[1] <= most * 1.001) }],
      levels: [
        { y: filter.rate_planned, name: t("chart.target", { rate: rate(filter.rate_planned) }) },
        { x: filter.capacity ?? Infinity, name: t("chart.capacity", { n: count(filter.capacity) }) },
      ],
      dot: { x: filter.items, y: filter.rate_now, name: t("chart.now") },
    });
  }

  function commandsOf(filter) {
    const [key, fresh] = [{ key: keyEncoded }, { key: `${keyEncoded}%3Anew` }];
    const line = (...words) => command(typed(filter.port, ...words));
    const family = { expandable: "BF", redisbloom: "BF", rediscuckoo: "CF" }[filter.kind];
    const children = [h("h2", {}, t("filter.commands")), line("TM.INFO", key)];
    if (family) children.push(line(`${family}.INFO`, key));
    if (filter.headroom_items === null && !filter.over_rate) return children;
    const items = Math.max(filter.items, filter.capacity ?? 0) * 2;
    const span = filter.span_millis ? ` WINDOW ${filter.span_millis}` : "";
    const made = {
      BF: () => line("BF.RESERVE", fresh, String(filter.rate_planned), String(items)),
      CF: () => line("CF.RESERVE", fresh, String(items)),
    }[family] ?? (() => line("TM.RESERVE", fresh, `KIND ${filter.kind} ITEMS ${items} RATE ${filter.rate_planned}${span}`));
    return [
      ...children,
      h("h2", {}, t("filter.fix")),
      h("p", {}, t(filter.over_rate || filter.full ? "filter.fix.over" : "filter.fix.later")),
      made(),
      line("RENAME", fresh, key),
    ];
  }

  return { refresh, resized: () => filter && (drawTime(), drawRates()) };
}

function factsOf(filter) {
  const about = `kind.${filter.kind}`;
  const adds = filter.adds_per_second === null ? t("forecast.unknown") : perSecond(filter.adds_per_second);
  const facts = [
    ["kind", has(about) ? `${filter.kind}: ${t(about)}` : filter.kind],
    ["items", `${exact(filter.items)} (${t(filter.items_are === "counted" ? "fact.counted" : "fact.estimated")})`],
    ["capacity", filter.capacity === null ? t("fact.capacity.none") : exact(filter.capacity)],
    ["now", rate(filter.rate_now)],
    ["target", rate(filter.rate_planned)],
    ["headroom", filter.headroom_items === null ? t("fact.capacity.none") : t("fact.headroom.items", { n: exact(filter.headroom_items) })],
    ["adds", adds],
    ["forecast", forecast(filter).long],
    ["memory", [bytes(filter.bytes), filter.bits_per_item === null ? "" : `, ${t("fact.bits", { n: Number(filter.bits_per_item.toPrecision(3)) })}`]],
    ["layout", filter.layout],
  ];
  if (filter.span_millis) facts.splice(3, 0, ["span", t("fact.span.time", { time: duration(filter.span_millis / 1000) })]);
  if (filter.span_items) facts.splice(3, 0, ["span", t("fact.span.items", { n: exact(filter.span_items) })]);
  return facts;
}
