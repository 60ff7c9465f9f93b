// Numbers as people read them, in the language of the page.

import { t } from "./words.js";

const UNITS = ["", " k", " M", " G", " T", " P", " E"];

function short(number, step, units) {
  let [value, unit] = [number, 0];
  while (Math.abs(value) >= step && unit < units.length - 1) {
    value /= step;
    unit += 1;
  }
  // Three digits: enough to see it change.
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${Number(value.toFixed(digits))}${units[unit]}`;
}

/** A number of items, in powers of 1000. */
export function count(number) {
  if (number === null || number === undefined) return "–";
  return Math.abs(number) < 10_000 ? String(Math.round(number)) : short(number, 1000, UNITS);
}

/** All digits of a number, in groups. */
export function exact(number) {
  return number === null || number === undefined ? "–" : Math.round(number).toLocaleString("en").replaceAll(",", "\u202f");
}

/** Memory, in powers of 1024. */
export function bytes(number) {
  if (number === null || number === undefined) return "–";
  return short(number, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]);
}

/** A rate, a probability, in percent; very low ones by their power of ten. */
export function rate(probability) {
  if (probability === null || probability === undefined) return "–";
  if (probability === 0) return "0 %";
  if (probability < 1e-5) {
    const power = Math.floor(Math.log10(probability));
    const front = (probability / 10 ** power).toPrecision(2).replace(/\.?0+$/, "");
    return front === "1" ? `10${raised(power)}` : `${front}×10${raised(power)}`;
  }
  return `${Number((probability * 100).toPrecision(probability >= 0.1 ? 3 : 2))} %`;
}

function raised(power) {
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  return (power < 0 ? "⁻" : "") + [...String(Math.abs(power))].map((digit) => digits[digit]).join("");
}

/** So many a second. */
export function perSecond(number) {
  if (number === null || number === undefined) return "–";
  return `${number > 0 && number < 10 ? Number(number.toPrecision(2)) : count(number)}/s`;
}

/** A time to come or gone by, in its largest unit. */
export function duration(seconds) {
  for (const [unit, length] of [["years", 31_557_600], ["days", 86_400], ["hours", 3600], ["minutes", 60]]) {
    const number = seconds / length;
    if (number >= (unit === "years" ? 3 : unit === "days" ? 2 : 1)) {
      return t(`time.${unit}`, { n: number < 10 ? Number(number.toFixed(1)) : Math.round(number) });
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
