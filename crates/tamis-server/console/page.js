// Pieces of the page. Text goes in as text, never as markup: keys may be anything.

import { count, percent } from "./numbers.js";
import { t } from "./translations.js";

/** Makes an element: attributes by name, `on…` as listeners, children as nodes or text. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A mark of a word and a sign, so that colour is not all there is. */
export function mark(kind, text) {
  const sign = { bad: "▲", warn: "●", good: "✓" }[kind];
  return h("span", { class: `mark ${kind}` }, h("span", { "aria-hidden": "true" }, sign), ` ${text}`);
}

/** Returns the fill of a layer: 1 is full. Null if it accepts any number of items; Infinity if all its bits are set. */
function fillOf(layer) {
  return layer.capacity ? (layer.items ?? Infinity) / layer.capacity : null;
}

/** Returns a number of items as text. The number is null if all bits are set. */
export function itemsText(items) {
  return items === null ? t("countless") : count(items);
}

/** Describes how full a layer is, and why it holds more than its capacity. */
export function fillText(layer, filter) {
  const fill = fillOf(layer);
  if (fill === null) return t("layer.open", { items: itemsText(layer.items) });
  const text = t("layer.of", { items: itemsText(layer.items), capacity: count(layer.capacity), percent: percent(fill) });
  if (fill <= 1) return text;
  return `${text}: ${t(filter.over_rate ? "layer.over" : "layer.past")}`;
}

/** A bar of one layer of a filter. */
export function bar(layer, filter) {
  const fill = fillOf(layer);
  const text = fillText(layer, filter);
  const inner = h("span", { class: "bar-fill" });
  inner.style.width = fill === null ? "100%" : `${Math.min(fill, 1) * 100}%`;
  // Full layers of a growing filter are normal.
  const isNear = fill > 0.9 && filter.headroom_items !== null;
  const kind = fill === null ? "open" : filter.over_rate || filter.full ? "bad" : isNear ? "warn" : "";
  return h("span", { class: `bar ${kind}`, role: "img", "aria-label": text, title: text }, inner);
}

/** A key as it is shown: the empty one by its quotes. */
export function shownKey(key) {
  return key === "" ? "\"\"" : key;
}

/** Lines to type, with a button that copies them. */
export function command(line) {
  const code = h("code", {}, line);
  const button = h("button", { type: "button", class: "copy", onclick: () => copy(line, code, button) }, t("copy"));
  return h("div", { class: "command" }, code, button);
}

async function copy(line, code, button) {
  try {
    await navigator.clipboard.writeText(line);
    button.textContent = t("copied");
    setTimeout(() => (button.textContent = t("copy")), 1500);
  } catch {
    // The browser does not allow copying here: select the text, so that the user can copy it.
    getSelection().selectAllChildren(code);
  }
}

/** Returns the bytes of a key that is percent-encoded. */
function decode(keyEncoded) {
  const bytes = [];
  for (let at = 0; at < keyEncoded.length; at++) {
    if (keyEncoded[at] === "%") {
      bytes.push(parseInt(keyEncoded.slice(at + 1, at + 3), 16));
      at += 2;
    } else {
      bytes.push(keyEncoded.charCodeAt(at));
    }
  }
  return bytes;
}

/** Returns a percent-encoded key as text; bytes that are no UTF-8 are shown as the replacement character. */
export function textOf(keyEncoded) {
  return new TextDecoder().decode(new Uint8Array(decode(keyEncoded)));
}

/**
 * Writes a line for a shell: words as they are, and keys, given as { key: percent-encoded }, so that neither the shell
 * nor redis-cli reads anything else into them.
 */
export function typed(port, ...words) {
  const isPlain = (bytes) => bytes.length > 0 && bytes.every((b) => /[A-Za-z0-9_:.,@/+-]/.test(String.fromCharCode(b))) && bytes[0] !== 45;
  const keys = words.filter((word) => word.key !== undefined).map((word) => decode(word.key));
  const isQuoted = !keys.every(isPlain);
  const shown = words.map((word) => {
    if (word.key === undefined) return word;
    const bytes = decode(word.key);
    if (!isQuoted) return String.fromCharCode(...bytes);
    const escaped = bytes.map((b) => {
      const c = String.fromCharCode(b);
      return /[A-Za-z0-9 _:.,@/+=-]/.test(c) ? c : `\\x${b.toString(16).padStart(2, "0")}`;
    });
    return `'"${escaped.join("")}"'`;
  });
  return [program(port), ...(isQuoted ? ["--quoted-input"] : []), ...shown].join(" ");
}

/** How the program is called that speaks to the server. */
export function program(port) {
  return port === 6379 ? "redis-cli" : `redis-cli -p ${port}`;
}
