// The tiles: requests a second, refused ones, the states of the sets, and false positives.

import { sparkline } from "./chart.js";
import { h, mark } from "./dom.js";
import { sumOf, total } from "./history.js";
import { count, duration, percent, perSecond, rate } from "./numbers.js";
import { t } from "./translations.js";

/** Creates the tiles. */
export function tiles() {
  const element = h("section", { class: "tiles", "aria-label": t("tiles.label") });
  return {
    element,
    draw(status, history) {
      const names = (group) => Object.keys(status.routes[0]?.[group] ?? {});
      const series = (group, isWanted) => sumOf(status.routes.flatMap((route, i) =>
        isWanted(route) ? names(group).map((name) => history.perSecond(i, `${group}.${name}`)) : []));
      const refused = series("refused", (route) => !route.is_shadow);
      const all = sumOf([series("passed", () => true), series("refused", () => true)].filter((one) => one.length > 0));
      const passed = all.map((value, i) => value - (refused[i] ?? 0));
      const requests = status.routes.reduce((sum, route) => sum + total(route), 0);
      const seconds = duration(Math.max(history.seconds(), 1));
      const chart = (values, name) => sparkline(values, `${t(name)}, ${t("tile.last", { time: seconds })}`);
      const share = all.at(-1) ? (refused.at(-1) ?? 0) / all.at(-1) : null;
      element.replaceChildren(
        tile("tile.requests", perSecond(all.at(-1)), t("tile.requests.note", { n: count(requests), time: duration(status.uptime_seconds) }), chart(all, "tile.requests")),
        tile("tile.refused", perSecond(all.length > 0 ? (refused.at(-1) ?? 0) : null), share === null ? t("tile.none") : t("tile.refused.note", { percent: percent(share) }), chart(refused, "tile.refused")),
        tile("tile.passed", perSecond(passed.at(-1)), share === null ? t("tile.none") : t("tile.refused.note", { percent: percent(1 - share) }), chart(passed, "tile.passed")),
        setsTile(status),
        falseTile(status),
      );
    },
  };
}

function tile(name, value, note, extra = null) {
  return h("div", { class: "tile", id: name.replace(".", "-") }, h("h2", {}, t(name)), h("p", { class: "value" }, value), extra, h("p", { class: "muted" }, note));
}

function setsTile(status) {
  const sets = Object.values(status.ids).filter((set) => set.generations !== null);
  const synced = sets.filter((set) => set.state === "synced").length;
  const items = count(sets.reduce((sum, set) => sum + set.items, 0));
  const isFine = synced === sets.length;
  return tile("tile.sets", mark(isFine ? "good" : "bad", t("tile.sets.synced", { n: synced, total: sets.length })), t("tile.sets.items", { n: items }));
}

function falseTile(status) {
  const passed = status.routes.reduce((sum, route) => sum + route.not_found, 0);
  const absent = passed + status.routes.reduce((sum, route) => sum + route.refused.absent, 0);
  return tile("tile.false", absent === 0 ? "–" : rate(passed / absent), t("tile.false.note", { n: count(passed), total: count(absent) }));
}
