// Texts about when a filter will be over its target.

import { duration } from "./numbers.js";
import { mark } from "./page.js";
import { t } from "./translations.js";

const SOON_DAYS = 7;

/** Returns a warning mark for a filter that is full, over its rate or close to it; null otherwise. */
export function warning(filter) {
  if (filter.full) return mark("bad", t("mark.full"));
  if (filter.over_rate) return mark("bad", t("mark.over"));
  const isSoon = filter.days_until_over !== null && filter.days_until_over < SOON_DAYS;
  return isSoon ? mark("warn", t(filter.refuses ? "mark.full.soon" : "mark.soon")) : null;
}

/** Returns the forecast as a short and a long text. */
export function forecast(filter) {
  const both = (name, values) => ({ short: t(`${name}.short`, values), long: t(name, values) });
  if (filter.full) return both("forecast.now.full");
  if (filter.over_rate) return both("forecast.over");
  if (filter.days_until_over !== null) {
    const time = duration(filter.days_until_over * 86_400);
    return filter.refuses
      ? { short: t("forecast.in.full", { time }), long: t("forecast.full", { time }) }
      : { short: t("forecast.in", { time }), long: t("forecast.days", { time }) };
  }
  if (filter.headroom_items === null) return both(filter.kind === "window" ? "forecast.forgets" : "forecast.grows");
  if (filter.adds_per_second === null) return { short: t("forecast.unknown"), long: t("forecast.unknown") };
  return both("forecast.still");
}
