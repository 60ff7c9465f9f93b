// The overview: tiles of the server, and its filters, worst first.

import { sparkline } from "./chart.js";
import { forecast, warning } from "./forecast.js";
import { bytes, count, duration, perSecond, rate } from "./numbers.js";
import { bar, command, filterAddress, h, mark, program } from "./page.js";
import { ask } from "./server.js";
import { t } from "./words.js";

const FIRST_LIMIT = 100;
const MOST = 1000;

/** What a column is sorted by; the server's order, worst first, is that of none. */
const COLUMNS = [
  { name: "key", by: (filter) => filter.key },
  { name: "kind", by: (filter) => filter.kind },
  { name: "items", by: (filter) => filter.items },
  { name: "fill", by: (filter) => filter.fill },
  { name: "rate", by: (filter) => filter.rate_now / filter.rate_planned },
  { name: "forecast", by: (filter) => (filter.over_rate || filter.full ? -1 : (filter.days_until_over ?? Infinity)) },
  { name: "memory", by: (filter) => filter.bytes },
];

/** Opens the view in an element; returns what brings it up to date. */
export function overview(root) {
  const state = { sort: null, isDown: false, limit: FIRST_LIMIT, text: "" };
  let [server, filters] = [null, null];
  const tiles = h("section", { class: "tiles", "aria-label": "Tamis" });
  const find = h("input", {
    id: "find", type: "search", placeholder: t("table.find.hint"), autocomplete: "off", spellcheck: "false",
    oninput: () => { state.text = find.value; later(); },
  });
  const shown = h("span", { class: "muted", id: "shown" });
  const body = h("tbody");
  const head = h("tr");
  const table = h("table", { class: "filters" }, h("caption", {}, t("table.caption")), h("thead", {}, head), body);
  const note = h("div", { class: "note" });
  const tools = h("div", { class: "tools" }, h("label", { for: "find" }, t("table.find")), find, shown);
  const list = h("section", {}, tools, h("div", { class: "scroll" }, table), note);
  const empty = h("section", { class: "empty", hidden: true });
  const loading = h("p", { class: "muted" }, t("loading"));
  list.hidden = true;
  root.replaceChildren(h("h1", { class: "unseen" }, t("nav.filters")), tiles, loading, list, empty);

  let waiting = null;
  function later() {
    clearTimeout(waiting);
    waiting = setTimeout(() => refresh().catch(() => {}), 150);
  }

  async function refresh() {
    const asked = pattern(state.text);
    const parameters = { limit: state.limit };
    if (asked !== null) parameters.match = encodeURIComponent(asked);
    [server, filters] = await Promise.all([ask("overview"), ask("filters", parameters)]);
    draw();
  }

  function draw() {
    const { history } = server;
    tiles.replaceChildren(...tilesOf(server, history));
    const isEmpty = filters.total === 0 && server.looked_millis > 0;
    loading.hidden = server.looked_millis > 0;
    list.hidden = isEmpty || server.looked_millis === 0;
    if (empty.hidden === isEmpty) {
      empty.hidden = !isEmpty;
      if (isEmpty) empty.replaceChildren(...emptyOf(server));
    }
    if (isEmpty) return;
    drawHead();
    drawRows();
    shown.textContent = t("table.shown", { shown: count(filters.filters.length), total: count(filters.total) });
    drawNote();
  }

  function drawHead() {
    if (head.childElementCount === 0) {
      head.append(...COLUMNS.map((column) => {
        const button = h("button", { type: "button", onclick: () => sortBy(column.name) }, t(`table.${column.name}`), h("span", { class: "arrow", "aria-hidden": "true" }));
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

  // Up, down, and back to worst first.
  function sortBy(name) {
    if (state.sort !== name) Object.assign(state, { sort: name, isDown: name !== "key" && name !== "kind" && name !== "forecast" });
    else if (state.isDown === (name !== "key" && name !== "kind" && name !== "forecast")) state.isDown = !state.isDown;
    else state.sort = null;
    draw();
  }

  function sorted() {
    const column = COLUMNS.find(({ name }) => name === state.sort);
    if (!column) return filters.filters;
    const sign = state.isDown ? -1 : 1;
    return [...filters.filters].sort((one, other) => {
      const [a, b] = [column.by(one), column.by(other)];
      return sign * (a < b ? -1 : a > b ? 1 : 0);
    });
  }

  function drawRows() {
    // Rows stay the elements they were, so that focus and selection do too.
    const before = new Map([...body.children].map((row) => [row.dataset.key, row]));
    const rows = sorted().map((filter) => {
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
    if (filters.filters.length === 0) children.push(h("p", {}, t("table.nomatch")));
    if (filters.filters.length === 0 && state.text !== "") {
      const address = filterAddress(encodeURIComponent(state.text));
      children.push(h("p", {}, h("a", { href: address }, t("table.open", { key: state.text }))));
    }
    const isMore = filters.matching > filters.filters.length && state.limit < MOST;
    if (isMore) {
      children.push(h("button", { type: "button", id: "more", onclick: () => { state.limit = Math.min(state.limit * 3, MOST); later(); } }, t("table.more")));
    } else if (filters.total > MOST) {
      children.push(h("p", { class: "muted" }, t("table.omitted", { n: MOST })));
    }
    const hadFocus = note.contains(document.activeElement);
    note.replaceChildren(...children);
    if (hadFocus) note.querySelector("button, a")?.focus({ preventScroll: true });
  }

  return { refresh };
}

/** What people type as a pattern of Redis: a part of the key unless it is one already. */
function pattern(text) {
  if (text === "") return null;
  if (/[*?]/.test(text)) return text;
  return `*${text.replaceAll(/[\\[\]]/g, "\\$&")}*`;
}

function newRow(filter) {
  const cells = COLUMNS.map(({ name }) => h("td", { class: `c-${name}`, "data-label": t(`table.${name}`) }));
  cells[0].append(h("a", { href: filterAddress(filter.key_encoded) }, filter.key === "" ? "\"\"" : filter.key));
  return h("tr", { "data-key": filter.key_encoded }, cells);
}

function fillRow(row, filter) {
  row.className = filter.over_rate || filter.full ? "over" : "";
  const [, kind, items, fill, rates, soon, memory] = row.children;
  kind.textContent = filter.kind;
  items.textContent = `${count(filter.items)} / ${filter.capacity === null ? "∞" : count(filter.capacity)}`;
  fill.replaceChildren(h("span", { class: "bars" }, filter.layers.map((layer) => bar(layer, filter))));
  const sign = warning(filter);
  const both = `${rate(filter.rate_now)} / ${rate(filter.rate_planned)}`;
  rates.replaceChildren(h("span", {}, both, sign ? " " : null, sign));
  const told = forecast(filter);
  soon.textContent = told.short;
  soon.title = told.long;
  memory.textContent = bytes(filter.bytes);
}

function tile(name, value, note, extra = null, id = null) {
  return h("div", { class: "tile", id }, h("h2", {}, name), h("p", { class: "value" }, value), extra, h("p", { class: "muted" }, note));
}

function tilesOf(server, history) {
  const since = duration((server.now_millis - server.started_millis) / 1000);
  const last = t("tile.last", { time: duration(Math.max(history.seconds, 1)) });
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
