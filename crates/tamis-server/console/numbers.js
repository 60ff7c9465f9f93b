// Numbers as people read them, in the style of the program `tamis`: 1,234,567 items, 1.5 MiB, a rate of 0.0101, 43.2 %.
// All numbers of the page are written here.

import { t } from "./translations.js";

const NONE = "–";
const isNone = (number) => number === null || number === undefined || !Number.isFinite(number);

/** A count, with all its digits in groups of three. */
export function count(number) {
  return isNone(number) ? NONE : grouped(Math.round(number));
}

function grouped(integer) {
  return String(integer).replaceAll(/\B(?=(\d{3})+$)/g, ",");
}

/** A number for the ticks of an axis, where there is little room: 20k, 1.5M. */
export function tick(number) {
  for (const [unit, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (Math.abs(number) >= size) return `${Number((number / size).toPrecision(4))}${unit}`;
  }
  return String(Number(number.toPrecision(4)));
}

/** Memory, in powers of 1024. */
export function bytes(number) {
  if (isNone(number)) return NONE;
  let [value, unit] = [number, "B"];
  for (const larger of ["KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1024) break;
    [value, unit] = [value / 1024, larger];
  }
  return `${value.toFixed(unit !== "B" && value < 99.95 ? 1 : 0)} ${unit}`;
}

/** A false positive rate, a probability, with three digits. */
export function rate(probability) {
  if (isNone(probability)) return NONE;
  if (probability === 0) return "0";
  if (probability < 1e-4) return probability.toExponential(2).replace(/\.?0*e/, "e");
  const decimals = Math.max(2 - Math.floor(Math.log10(probability)), 0);
  return String(Number(probability.toFixed(decimals)));
}

/** A share of a whole, in percent with one decimal. Rounds to 100 % only for 1 and to 0 % only for 0. */
export function percent(share) {
  if (isNone(share)) return NONE;
  if (share > 0 && share < 0.001) return "<0.1 %";
  const shown = share < 1 ? Math.min(share * 100, 99.9) : share * 100;
  return `${shown.toFixed(1)} %`;
}

/** A number with its fraction, such as bits an item. */
export function decimal(number, digits) {
  return isNone(number) ? NONE : number.toFixed(digits);
}

/** A number per second. */
export function perSecond(number) {
  if (isNone(number)) return NONE;
  return `${number !== 0 && Math.abs(number) < 10 ? Number(number.toPrecision(2)) : count(number)}/s`;
}

/** A short time, given in microseconds. */
export function micros(number) {
  if (isNone(number)) return NONE;
  for (const [unit, size] of [["s", 1e6], ["ms", 1e3], ["µs", 1]]) {
    if (number >= size || size === 1) return `${Number((number / size).toPrecision(3))} ${unit}`;
  }
}

/** A time to come or gone by, in its largest unit. */
export function duration(seconds) {
  for (const [unit, length] of [["years", 31_557_600], ["days", 86_400], ["hours", 3600], ["minutes", 60]]) {
    const number = seconds / length;
    if (number >= (unit === "years" ? 3 : unit === "days" ? 2 : 1)) {
      return t(`time.${unit}`, { n: number < 10 ? Number(number.toFixed(1)) : count(number) });
    }
  }
  return t("time.seconds", { n: Math.round(seconds) });
}

/** The time of day. */
export function clock(millis) {
  const two = (number) => String(number).padStart(2, "0");
  const time = new Date(millis);
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** Reads what people type for a number: 10M, 1e6, 1,000,000; null if it is none. */
export function readCount(text) {
  const found = /^(\d+(?:\.\d+)?(?:e\d+)?)([kmgt]?)$/i.exec(text.replaceAll(/[,_\s]/g, ""));
  if (!found) return null;
  const unit = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 }[found[2].toLowerCase()];
  const number = Math.round(Number(found[1]) * unit);
  return number >= 1 && number <= Number.MAX_SAFE_INTEGER ? number : null;
}

/** Reads a rate: 1%, 0.01; null if it is none. */
export function readRate(text) {
  const found = /^(\d*\.?\d+(?:e-?\d+)?)\s*(%?)$/i.exec(text.trim());
  if (!found) return null;
  const probability = Number((Number(found[1]) / (found[2] ? 100 : 1)).toPrecision(12));
  return probability > 0 && probability < 1 ? probability : null;
}
