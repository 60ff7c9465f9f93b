// Elements of a page. Text goes in as text, never as markup: names may be anything.

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
