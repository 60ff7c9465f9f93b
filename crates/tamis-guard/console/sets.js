// The sets of ids: state, sync delay, size and rates of each.

import { h, mark } from "./dom.js";
import { bytes, count, duration, micros, rate } from "./numbers.js";
import { t } from "./translations.js";

const MARKS = { synced: "good", warming: "warn", stale: "bad", unproven: "warn" };

/** Creates the section with a card for each set. */
export function setSections() {
  const cards = h("div", { class: "cards" });
  return {
    element: h("section", { id: "sets" }, h("h2", { class: "part" }, t("sets.title")), cards),
    draw(status) {
      const sets = Object.entries(status.ids);
      cards.replaceChildren(...(sets.length > 0 ? sets.map(card) : [h("p", { class: "muted" }, t("sets.none"))]));
    },
  };
}

function card([name, set]) {
  const isFed = set.generations !== null;
  const state = isFed ? mark(MARKS[set.state], t(`state.${set.state}`)) : mark("warn", t("state.none"));
  const facts = [
    ["items", count(set.items)],
    ["deleted", count(set.deleted)],
    ["lag", isFed ? lag(set) : null],
    ["age", isFed && set.generation_age_seconds !== null ? t("set.age.value", { time: duration(set.generation_age_seconds), n: count(set.generations) }) : null],
    ["rates", `${rate(set.planned_rate)} / ${rate(set.estimated_rate)} / ${rate(set.observed_rate)}`],
    ["memory", bytes(set.filter_bytes)],
    ["snapshot", set.snapshot_age_seconds !== null ? duration(set.snapshot_age_seconds) : null],
    ["failures", isFed ? `${count(set.failures)} / ${count(set.invalid_rows)}` : null],
  ];
  return h("article", { class: "card set", "data-state": set.state },
    h("div", { class: "title" }, h("h3", { class: "key" }, name), state),
    h("p", { class: "muted" }, t(isFed ? `state.${set.state}.note` : "state.none.note")),
    h("dl", { class: "facts" }, facts.filter(([, value]) => value !== null).flatMap(([fact, value]) => [h("dt", {}, t(`set.${fact}`)), h("dd", {}, value)])),
    problem("set.error", set.last_error),
    problem("set.snapshot.error", set.snapshot_error),
    problem("set.snapshot.unused", set.snapshot_unused),
    unsyncedSources(set.sources ?? []));
}

/** Creates the list of the sources that are not synced. Only a set with several sources has a list of sources. */
function unsyncedSources(sources) {
  const unsynced = sources.filter(({ state }) => state !== "synced");
  const item = ({ name, state }) => h("li", {}, mark(MARKS[state], t(`state.${state}`)), ` ${name}`);
  return unsynced.length > 0 ? h("ul", {}, unsynced.map(item)) : null;
}

function problem(name, text) {
  return text ? h("p", { class: "problem" }, t(name, { text })) : null;
}

/** The lag is mostly below a second. Only some sources know how much of the log they have not read. */
function lag({ lag_seconds: seconds, lag_bytes: unread }) {
  if (seconds === null) return "–";
  const time = seconds < 60 ? micros(seconds * 1e6) : duration(seconds);
  return unread === null ? time : t("set.lag.bytes", { time, bytes: bytes(unread) });
}
