// The page of one filter: info, fill, curves and example commands.

import { overviewAddress } from "./address.js";
import { lineChart, valueAt } from "./chart.js";
import { forecast, warning } from "./forecast.js";
import { nothing } from "./nothing.js";
import { bytes, clock, count, decimal, duration, perSecond, rate, tick } from "./numbers.js";
import { bar, command, fillText, h, itemsText, mark, shownKey, textOf, typed } from "./page.js";
import { ask } from "./server.js";
import { has, kindName, t } from "./translations.js";

/** Opens the view of a percent-encoded key in `root`. Returns its refresh function. */
export function filterPage(root, keyEncoded) {
  const title = h("h1", { class: "key" });
  const sign = h("span", { class: "sign" });
  const facts = h("dl", { class: "facts" });
  const layers = h("div", { class: "layers" });
  const overTime = h("div", { class: "chart-box", id: "chart-time" });
  const asItFills = h("div", { class: "chart-box", id: "chart-rates" });
  const commands = h("section", { class: "card" });
  const card = (name, ...children) => h("section", { class: "card" }, h("h2", {}, t(name)), children);
  const key = shownKey(textOf(keyEncoded));
  const gone = h("div", { hidden: true }, nothing(t("filter.gone"), key));
  const cards = h("div", { class: "cards" },
    card("filter.facts", facts), card("filter.fill", layers), card("filter.time", overTime), card("filter.rates", asItFills), commands);
  const back = h("p", {}, h("a", { href: overviewAddress() }, `← ${t("filter.back")}`));
  const known = h("div", { hidden: true }, back, h("div", { class: "title" }, title, sign), cards);
  root.replaceChildren(known, gone);
  let [filter, typedFor] = [null, null];

  async function refresh() {
    try {
      filter = await ask("filter", { key: keyEncoded });
    } catch (error) {
      if (error.status !== 404) throw error;
      filter = null;
    }
    gone.hidden = filter !== null;
    known.hidden = filter === null;
    if (filter) draw();
  }

  function draw() {
    title.textContent = shownKey(filter.key);
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
    const own = { "bloom (growing)": layer.capacity === null ? "layer.overflow" : "layer.reserved", bloom: "layer.reserved", window: "layer.window" }[filter.kind];
    const name = own ? t(own) : filter.layers.length > 1 ? t("layer.name", { n: number + 1 }) : t("layer.only");
    return h("div", { class: "layer" }, h("span", {}, name), bar(layer, filter), h("span", { class: "muted" }, fillText(layer, filter)));
  }

  /** The line at which the filter is as full as planned. */
  function capacityLevel(axis) {
    const most = filter.held_capacity ?? Infinity;
    return { [axis]: most, name: t(filter.kind === "window" ? "chart.window" : "chart.capacity", { n: count(most) }) };
  }

  function drawTime() {
    const points = filter.samples.map(([millis, items]) => [millis, items]);
    if (points.length > 0 && filter.now_millis > points.at(-1)[0]) points.push([filter.now_millis, filter.items]);
    if (points.length < 2) {
      overTime.replaceChildren(h("p", { class: "muted" }, t("filter.notime")));
      return;
    }
    const most = Math.max(...points.map((point) => point[1]), 1);
    const isNear = filter.held_capacity !== null && filter.held_capacity <= most * 3;
    lineChart(overTime, {
      title: t("filter.time"),
      x: { label: t("chart.time"), format: clock, from: points[0][0], to: points.at(-1)[0], isTime: true },
      y: { label: t("chart.items"), format: count, formatTick: tick, isCount: true, from: 0, to: (isNear ? Math.max(filter.held_capacity, most) : most) * 1.1 },
      lines: [{ name: t("chart.items"), points }],
      levels: isNear ? [capacityLevel("y")] : [],
    });
  }

  function drawRates() {
    const points = filter.rate_curve;
    if (points.length < 2) {
      asItFills.replaceChildren(h("p", { class: "muted" }, t("filter.norates")));
      return;
    }
    // The line goes as far as the filter's items, and the plane as high as its rate.
    const last = Math.max(points.at(-1)[0], filter.items ?? 0);
    const items = filter.items ?? last;
    const here = valueAt(points, items) ?? 0;
    const most = Math.min(Math.max(filter.rate_now, filter.rate_planned * 1.2, here) * 1.25, 1);
    lineChart(asItFills, {
      title: t("filter.rates"),
      x: { label: t("chart.items"), format: count, formatTick: tick, unit: t("chart.items"), isCount: true, from: 0, to: last },
      y: { label: t("chart.rate"), format: rate, from: 0, to: most },
      lines: [{ name: t("chart.expected"), points }],
      levels: [{ y: filter.rate_planned, name: t("chart.target", { rate: rate(filter.rate_planned) }) }, capacityLevel("x")],
      dot: { x: items, y: filter.rate_now, name: t("chart.now") },
    });
  }

  function commandsOf(filter) {
    const [key, fresh] = [{ key: keyEncoded }, { key: `${keyEncoded}%3Anew` }];
    const line = (...words) => command(typed(filter.port, ...words));
    const family = { bloom: "BF", "bloom (growing)": "BF", "bloom (RedisBloom)": "BF", "cuckoo (RedisBloom)": "CF" }[filter.kind];
    const children = [h("h2", {}, t("filter.commands")), line("TM.INFO", key)];
    if (family) children.push(line(`${family}.INFO`, key));
    if (filter.headroom_items === null && !filter.over_rate) return children;
    const items = Math.max(filter.items, filter.capacity ?? 0) * 2;
    const size = filter.span_items ? `WINDOW ${filter.span_items * 2} ITEMS` : `${filter.span_millis ? `WINDOW ${filter.span_millis} ` : ""}ITEMS ${items}`;
    const made = {
      BF: () => line("BF.RESERVE", fresh, String(filter.rate_planned), String(items)),
      CF: () => line("CF.RESERVE", fresh, String(items)),
    }[family] ?? (() => line("TM.RESERVE", fresh, `KIND ${filter.kind} ${size} RATE ${filter.rate_planned}`));
    return [
      ...children,
      h("h2", {}, t("filter.fix")),
      h("p", {}, t(filter.over_rate || filter.full ? "filter.fix.over" : "filter.fix.later")),
      made(),
      line("RENAME", fresh, key),
    ];
  }

  return { title: () => key, refresh, resized: () => filter && (drawTime(), drawRates()) };
}

function factsOf(filter) {
  const about = `about.${filter.kind}`;
  const adds = filter.adds_per_second === null ? t("forecast.unknown") : perSecond(filter.adds_per_second);
  const name = kindName(filter.kind_id);
  const isWindow = filter.kind === "window";
  const capacity = filter.capacity === null ? t("fact.capacity.none")
    : isWindow ? t("fact.capacity.window", { n: count(filter.capacity), most: count(filter.held_capacity) })
    : count(filter.capacity);
  const facts = [
    ["kind", has(about) ? `${name} – ${t(about)}` : name],
    ["items", `${itemsText(filter.items)} (${t(filter.items_are === "counted" ? "fact.counted" : "fact.estimated")})`],
    ["capacity", capacity],
    ["now", rate(filter.rate_now)],
    ["target", rate(filter.rate_planned)],
    ["headroom", filter.headroom_items === null ? t("fact.capacity.none") : t("fact.headroom.items", { n: count(filter.headroom_items) })],
    ["adds", adds],
    ["forecast", forecast(filter).long],
    ["memory", [bytes(filter.bytes), filter.bits_per_item === null ? "" : `, ${t("fact.bits", { n: decimal(filter.bits_per_item, 2) })}`]],
    ["layout", filter.layout.replaceAll(/\d{4,}/g, (digits) => count(Number(digits)))],
  ];
  if (filter.span_millis) facts.splice(3, 0, ["span", t("fact.span.time", { time: duration(filter.span_millis / 1000) })]);
  if (filter.span_items) facts.splice(3, 0, ["span", t("fact.span.items", { n: count(filter.span_items) })]);
  return facts;
}
