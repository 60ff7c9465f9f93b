// The overview: tiles of the server, its filters in any order, a page at a time, and charts of the server over time.

import { filterAddress, overviewAddress } from "./address.js";
import { sparkline } from "./chart.js";
import { forecast, warning } from "./forecast.js";
import { bytes, clock, count, duration, perSecond, rate } from "./numbers.js";
import { bar, command, h, itemsText, mark, program, shownKey } from "./page.js";
import { ask } from "./server.js";
import { serverCharts } from "./trends.js";
import { kindName, t } from "./translations.js";

/** Filters on a page. */
const PAGE = 100;

/** The columns, by the names that the server sorts by, and whether their first order is the descending one. */
const COLUMNS = [
  { name: "key", isDownFirst: false },
  { name: "kind", isDownFirst: false },
  { name: "items", isDownFirst: true },
  { name: "fill", isDownFirst: true },
  { name: "rate", isDownFirst: true },
  { name: "forecast", isDownFirst: false },
  { name: "memory", isDownFirst: true },
];

/** Opens the view in `root` with the parameters of the address. Returns its refresh function. */
export function overview(root, parameters) {
  const sort = COLUMNS.find(({ name }) => name === parameters.get("sort"))?.name ?? null;
  const page = Math.max(Number.parseInt(parameters.get("page") ?? "1", 10) || 1, 1);
  const state = { sort, isDown: parameters.get("order") === "desc", page, text: parameters.get("find") ?? "" };
  let [server, filters] = [null, null];
  const tiles = h("section", { class: "tiles", "aria-label": "Tamis" });
  const find = h("input", {
    id: "find", type: "search", placeholder: t("table.find.hint"), autocomplete: "off", spellcheck: "false", value: state.text,
    oninput: () => { state.text = find.value; state.page = 1; later(150); },
  });
  const shown = h("span", { class: "muted", id: "shown" });
  const body = h("tbody");
  const head = h("tr");
  const caption = h("caption");
  const table = h("table", { class: "filters" }, caption, h("thead", {}, head), body);
  const note = h("div", { class: "note" });
  const tools = h("div", { class: "tools" }, h("label", { for: "find" }, t("table.find")), find, shown);
  const previous = h("button", { type: "button", id: "previous", onclick: () => turn(-1) }, `← ${t("page.previous")}`);
  const next = h("button", { type: "button", id: "next", onclick: () => turn(1) }, `${t("page.next")} →`);
  const where = h("span", { id: "where", role: "status" });
  const pager = h("nav", { class: "pager", "aria-label": t("page.label") }, previous, where, next);
  const fresh = h("p", { class: "muted", id: "fresh" });
  const list = h("section", { hidden: true }, tools, h("div", { class: "scroll" }, table), note, pager, fresh);
  const empty = h("section", { class: "empty", hidden: true });
  const loading = h("p", { class: "muted" }, t("loading"));
  const charts = serverCharts();
  root.replaceChildren(h("h1", { class: "unseen" }, t("nav.filters")), tiles, charts.element, loading, list, empty);

  let waiting = null;
  function later(millis) {
    clearTimeout(waiting);
    waiting = setTimeout(() => refresh().catch(() => {}), millis);
  }

  async function refresh() {
    const requestedState = JSON.stringify(state);
    const pattern = patternOf(state.text);
    const question = { limit: PAGE, offset: (state.page - 1) * PAGE };
    if (state.sort) Object.assign(question, { sort: state.sort, order: state.isDown ? "desc" : "asc" });
    if (pattern !== null) question.match = encodeURIComponent(pattern);
    const answers = await Promise.all([ask("overview"), ask("filters", question), charts.ask()]);
    // Meanwhile the user requested another order.
    if (requestedState !== JSON.stringify(state)) return;
    [server, filters] = answers;
    const pages = Math.max(Math.ceil(filters.matching / PAGE), 1);
    if (state.page > pages) {
      state.page = pages;
      return refresh();
    }
    draw();
  }

  function draw() {
    tiles.replaceChildren(...tilesOf(server, server.history));
    const isEmpty = filters.total === 0 && server.measured_millis > 0;
    loading.hidden = server.measured_millis > 0;
    list.hidden = isEmpty || server.measured_millis === 0;
    if (empty.hidden === isEmpty) {
      empty.hidden = !isEmpty;
      if (isEmpty) empty.replaceChildren(...emptyOf(server));
    }
    charts.draw(server.history);
    if (isEmpty) return;
    drawHead();
    drawRows();
    drawNote();
    drawPager();
  }

  function drawHead() {
    caption.textContent = state.sort ? t("table.caption.by", { column: t(`table.${state.sort}`) }) : t("table.caption");
    if (head.childElementCount === 0) {
      head.append(...COLUMNS.map((column) => {
        const button = h("button", { type: "button", onclick: () => sortBy(column) }, t(`table.${column.name}`), h("span", { class: "arrow", "aria-hidden": "true" }));
        return h("th", { scope: "col", class: `c-${column.name}` }, button);
      }));
    }
    COLUMNS.forEach((column, number) => {
      const cell = head.children[number];
      const isSorted = state.sort === column.name;
      cell.setAttribute("aria-sort", isSorted ? (state.isDown ? "descending" : "ascending") : "none");
      cell.querySelector(".arrow").textContent = isSorted ? (state.isDown ? " ▼" : " ▲") : "";
    });
  }

  // One order, the other, and back to worst first.
  function sortBy({ name, isDownFirst }) {
    if (state.sort !== name) Object.assign(state, { sort: name, isDown: isDownFirst });
    else if (state.isDown === isDownFirst) state.isDown = !isDownFirst;
    else Object.assign(state, { sort: null, isDown: false });
    state.page = 1;
    drawHead();
    later(0);
  }

  function turn(pages) {
    state.page += pages;
    later(0);
    table.scrollIntoView({ block: "start" });
  }

  function drawRows() {
    // Rows stay the elements they were, so that focus and selection do too.
    const before = new Map([...body.children].map((row) => [row.dataset.key, row]));
    const rows = filters.filters.map((filter) => {
      const row = before.get(filter.key_encoded) ?? newRow(filter);
      fillRow(row, filter);
      return row;
    });
    const isSame = rows.length === body.childElementCount && rows.every((row, i) => body.children[i] === row);
    if (!isSame) {
      const focused = document.activeElement?.closest?.("tr")?.dataset.key;
      body.replaceChildren(...rows);
      if (focused) rows.find((row) => row.dataset.key === focused)?.querySelector("a")?.focus({ preventScroll: true });
    }
  }

  function drawNote() {
    const children = [];
    if (filters.matching === 0) children.push(h("p", {}, t("table.nomatch")));
    if (filters.matching === 0 && state.text !== "") {
      const address = filterAddress(encodeURIComponent(state.text));
      children.push(h("p", {}, h("a", { href: address }, t("table.open", { key: state.text }))));
    }
    if (filters.total > filters.sortable) {
      children.push(h("p", { class: "muted" }, t("table.omitted", { n: count(filters.sortable), total: count(filters.total) })));
    }
    const hadFocus = note.contains(document.activeElement);
    note.replaceChildren(...children);
    if (hadFocus) note.querySelector("a")?.focus({ preventScroll: true });
  }

  function drawPager() {
    const from = (state.page - 1) * PAGE;
    const pages = Math.max(Math.ceil(filters.matching / PAGE), 1);
    shown.textContent = t("table.shown", { shown: count(filters.matching), total: count(filters.total) });
    setText(where, filters.matching === 0 ? "" : t("page.where", {
      from: count(from + 1), to: count(from + filters.filters.length), n: count(filters.matching), page: count(state.page), pages: count(pages),
    }));
    previous.disabled = state.page <= 1;
    next.disabled = state.page >= pages;
    pager.hidden = pages === 1;
    const seconds = (filters.measured_millis - filters.measured_from_millis) / 1000;
    const values = { from: clock(filters.measured_from_millis), to: clock(filters.measured_millis) };
    setText(fresh, t(seconds < 1 ? "table.fresh" : "table.fresh.long", values));
    const address = overviewAddress({
      find: state.text, sort: state.sort, order: state.sort && state.isDown ? "desc" : null, page: state.page > 1 ? state.page : null,
    });
    if (location.hash !== address && !(location.hash === "" && address === "#/")) history.replaceState(null, "", address);
  }

  return { title: () => t("nav.filters"), refresh, resized: () => server && charts.draw(server.history) };
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** What people type as a pattern of Redis: a part of the key unless it is one already. */
function patternOf(text) {
  if (text === "") return null;
  if (/[*?]/.test(text)) return text;
  return `*${text.replaceAll(/[\\[\]]/g, "\\$&")}*`;
}

function newRow(filter) {
  const cells = COLUMNS.map(({ name }) => h("td", { class: `c-${name}`, "data-label": t(`table.${name}`) }));
  cells[0].append(h("a", { href: filterAddress(filter.key_encoded) }, shownKey(filter.key)));
  return h("tr", { "data-key": filter.key_encoded }, cells);
}

function fillRow(row, filter) {
  row.className = filter.over_rate || filter.full ? "over" : "";
  const [, kind, items, fill, rates, soon, memory] = row.children;
  kind.textContent = kindName(filter.kind_id);
  items.textContent = `${itemsText(filter.items)} / ${filter.held_capacity === null ? "∞" : count(filter.held_capacity)}`;
  fill.replaceChildren(h("span", { class: "bars" }, filter.layers.map((layer) => bar(layer, filter))));
  const sign = warning(filter);
  const both = `${rate(filter.rate_now)} / ${rate(filter.rate_planned)}`;
  rates.replaceChildren(h("span", {}, h("span", { class: "both" }, both), sign ? " " : null, sign));
  const prediction = forecast(filter);
  soon.textContent = prediction.short;
  soon.title = prediction.long;
  memory.textContent = bytes(filter.bytes);
}

function tile(name, value, note, extra = null, id = null) {
  return h("div", { class: "tile", id }, h("h2", {}, name), h("p", { class: "value" }, value), extra, h("p", { class: "muted" }, note));
}

function tilesOf(server, history) {
  const since = duration((server.now_millis - server.started_millis) / 1000);
  const seconds = Math.max((history.commands.length * history.step_millis) / 1000, 1);
  const last = t("tile.last", { time: duration(seconds) });
  const limit = server.max_memory_bytes ? t("tile.memory.limit", { bytes: bytes(server.max_memory_bytes) }) : t("tile.memory.nolimit");
  const bad = [["tile.filters.over", server.over_rate], ["tile.filters.full", server.full]].filter(([, n]) => n > 0).map(([name, n]) => t(name, { n: count(n) }));
  const over = bad.length > 0 ? mark("bad", bad.join(", ")) : mark("good", t("tile.filters.fine"));
  return [
    tile(t("tile.ops"), perSecond(server.commands_per_second), t("tile.ops.total", { n: count(server.commands), time: since }),
      sparkline(history.commands, `${t("tile.ops")}, ${last}`), "tile-ops"),
    tile(t("tile.memory"), bytes(server.memory_bytes), limit, sparkline(history.memory_bytes, `${t("tile.memory")}, ${last}`), "tile-memory"),
    tile(t("tile.filters"), count(server.filters), server.filters ? over : t("tile.filters.keys", { n: count(server.keys) }), null, "tile-filters"),
    tile(t("tile.clients"), count(server.clients), t("tile.clients.limit", { n: count(server.max_clients) }), null, "tile-clients"),
    logTile(server),
  ];
}

function logTile({ log, now_millis: now }) {
  const name = t("tile.log");
  if (!log) return tile(name, mark("warn", t("tile.log.off")), t("tile.log.off.note"), null, "tile-log");
  if (log.error) return tile(name, mark("bad", t("tile.log.failed")), log.error, null, "tile-log");
  const time = duration(Math.max(now - log.saved_millis, 0) / 1000);
  const note = log.is_saving ? t("tile.log.saving", { bytes: bytes(log.bytes) }) : t("tile.log.size", { bytes: bytes(log.bytes), time });
  return tile(name, mark("good", t("tile.log.kept")), note, null, "tile-log");
}

function emptyOf(server) {
  const lines = [
    "BF.RESERVE seen 0.01 1000000",
    "BF.ADD seen user:1",
    "BF.EXISTS seen user:2",
    "TM.RESERVE recent KIND window WINDOW 3600000 ITEMS 100000",
    "TM.INFO seen",
  ];
  return [h("h2", {}, t("empty.title")), h("p", {}, t("empty.text")), lines.map((line) => command(`${program(server.port)} ${line}`))].flat();
}
