// Charts as SVG: lines with axes and units, values under the pointer or by arrow keys, and small lines for tiles.

import { h } from "./page.js";
import { t } from "./translations.js";

const SVG = "http://www.w3.org/2000/svg";
const USUAL_HEIGHT = 260;
const EDGE = { top: 16, right: 14, bottom: 40, left: 72 };

function s(tag, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

/**
 * Draws lines into a box, over what was drawn before.
 *
 * `x` and `y` are { label, format, formatTick, from, to, isLog, isTime, isCount }; `lines` are { name, points }, sorted by x; `levels` are
 * { y, name } or { x, name }: lines across; `dot` is { x, y, name }.
 */
export function lineChart(box, { x, y, lines, levels = [], dot = null, title, height = USUAL_HEIGHT }) {
  const width = Math.max(box.clientWidth, 260);
  const inner = { width: width - EDGE.left - EDGE.right, height: height - EDGE.top - EDGE.bottom };
  const place = (axis, size) => {
    const shape = axis.isLog ? (value) => Math.log10(Math.max(value, axis.from / 1000)) : (value) => value;
    const [from, to] = [shape(axis.from), shape(axis.to)];
    return (value) => ((shape(value) - from) / (to - from || 1)) * size;
  };
  const within = (at, size) => Math.min(Math.max(at, 0), size);
  const [right, up] = [place(x, inner.width), place(y, inner.height)];
  const atX = (value) => within(right(value), inner.width);
  const atY = (value) => inner.height - within(up(value), inner.height);
  const root = s("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0 });
  root.setAttribute("aria-label", `${title}. ${t("chart.keys")}`);
  const plane = s("g", { transform: `translate(${EDGE.left} ${EDGE.top})` });
  root.append(plane);

  for (const tick of ticks(y, Math.max(2, Math.floor(inner.height / 35)))) {
    const at = atY(tick);
    plane.append(s("line", { class: "grid", x1: 0, x2: inner.width, y1: at, y2: at }));
    plane.append(s("text", { class: "tick", x: -8, y: at + 4, "text-anchor": "end" }, (y.formatTick ?? y.format)(tick)));
  }
  for (const tick of ticks(x, Math.max(2, Math.floor(inner.width / 90)))) {
    const at = atX(tick);
    plane.append(s("line", { class: "axis", x1: at, x2: at, y1: inner.height, y2: inner.height + 4 }));
    const anchor = at > inner.width - 24 ? "end" : at < 12 ? "start" : "middle";
    plane.append(s("text", { class: "tick", x: at, y: inner.height + 17, "text-anchor": anchor }, (x.formatTick ?? x.format)(tick)));
  }
  plane.append(s("line", { class: "axis", x1: 0, x2: inner.width, y1: inner.height, y2: inner.height }));
  plane.append(s("text", { class: "label", x: inner.width / 2, y: inner.height + 35, "text-anchor": "middle" }, x.label));
  const turned = { class: "label", "text-anchor": "middle", transform: `translate(-60 ${inner.height / 2}) rotate(-90)` };
  plane.append(s("text", turned, y.label));

  for (const level of levels) {
    if (level.y !== undefined) {
      if (level.y < y.from || level.y > y.to) continue;
      const at = atY(level.y);
      plane.append(s("line", { class: "level", x1: 0, x2: inner.width, y1: at, y2: at }));
      plane.append(s("text", { class: "level-name", x: 4, y: at > 14 ? at - 4 : at + 13 }, level.name));
    } else if (level.x >= x.from && level.x <= x.to) {
      const at = atX(level.x);
      plane.append(s("line", { class: "level", x1: at, x2: at, y1: 0, y2: inner.height }));
      const anchor = at > inner.width / 2 ? "end" : "start";
      plane.append(s("text", { class: "level-name", x: at + (anchor === "end" ? -4 : 4), y: 10, "text-anchor": anchor }, level.name));
    }
  }
  // A line that leaves the plane ends at its edge.
  const edge = `${box.id}-edge`;
  const clip = s("clipPath", { id: edge });
  clip.append(s("rect", { x: 0, y: -2, width: inner.width, height: inner.height + 4 }));
  plane.append(clip);
  lines.forEach((line, number) => {
    plane.append(s("path", { class: `line line-${number + 1}`, d: pathOf(line.points, right, (value) => inner.height - up(value)), "clip-path": `url(#${edge})` }));
  });
  if (dot) {
    plane.append(s("circle", { class: "dot", cx: atX(dot.x), cy: atY(dot.y), r: 5 }));
    const isLeft = atX(dot.x) > inner.width / 2;
    plane.append(s("text", { class: "dot-name", x: atX(dot.x) + (isLeft ? -9 : 9), y: Math.max(atY(dot.y) - 8, 10), "text-anchor": isLeft ? "end" : "start" }, dot.name));
  }

  const cursor = s("line", { class: "cursor", y1: 0, y2: inner.height, visibility: "hidden" });
  plane.append(cursor);
  const readout = box.querySelector(".readout") ?? h("p", { class: "readout", "aria-live": "polite" });
  const readoutText = (px) => {
    const values = lines.map((line) => {
      const value = valueAt(line.points, px);
      return value === null ? null : `${lines.length > 1 ? `${line.name} ` : ""}${y.format(value)}`;
    });
    const known = values.filter((value) => value !== null).join(", ");
    return `${x.format(px)}${x.unit ? ` ${x.unit}` : ""}: ${known || t("chart.none")}`;
  };
  const point = (px) => {
    box.dataset.cursor = px;
    cursor.setAttribute("x1", atX(px));
    cursor.setAttribute("x2", atX(px));
    cursor.setAttribute("visibility", "visible");
    readout.textContent = readoutText(px);
  };
  const leave = () => {
    delete box.dataset.cursor;
    cursor.setAttribute("visibility", "hidden");
    readout.textContent = "\u00a0";
  };
  const along = (share) => x.from + Math.min(Math.max(share, 0), 1) * (x.to - x.from);
  root.addEventListener("pointermove", (event) => {
    const left = root.getBoundingClientRect().left + EDGE.left;
    point(along((event.clientX - left) / inner.width));
  });
  root.addEventListener("pointerleave", leave);
  root.addEventListener("blur", leave);
  root.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
    if (!step) return;
    event.preventDefault();
    const now = box.dataset.cursor === undefined ? (step > 0 ? -0.02 : 1.02) : (Number(box.dataset.cursor) - x.from) / (x.to - x.from || 1);
    point(along(now + step));
  });

  const legend =
    lines.length > 1
      ? h("ul", { class: "legend" }, lines.map((line, number) => {
          const sample = s("svg", { width: 28, height: 10, "aria-hidden": "true" });
          sample.append(s("path", { class: `line line-${number + 1}`, d: "M0 5H28" }));
          return h("li", {}, sample, line.name);
        }))
      : null;
  const hadFocus = box.contains(document.activeElement);
  const before = box.dataset.cursor;
  box.replaceChildren(...[legend, root, readout].filter(Boolean));
  if (hadFocus) root.focus({ preventScroll: true });
  if (before !== undefined) point(Number(before));
  else readout.textContent = "\u00a0";
}

/** Draws a line from point to point. A point without a value is a gap; a point between two gaps is a short dash. */
function pathOf(points, atX, atY) {
  let path = "";
  points.forEach(([px, py], i) => {
    if (py === null) return;
    const isBegin = (points[i - 1]?.[1] ?? null) === null;
    path += `${isBegin ? "M" : "L"}${atX(px).toFixed(1)} ${atY(py).toFixed(1)}`;
    if (isBegin && (points[i + 1]?.[1] ?? null) === null) path += "h1.5";
  });
  return path;
}

/** Returns the value of a line at x, by linear interpolation; null outside the line and in gaps. */
export function valueAt(points, px) {
  const next = points.findIndex((point) => point[0] >= px);
  if (next === -1) return null;
  if (points[next][0] === px || next === 0) return points[next][0] === px ? points[next][1] : null;
  const [[x0, y0], [x1, y1]] = [points[next - 1], points[next]];
  if (y0 === null || y1 === null) return null;
  return y0 + ((px - x0) / (x1 - x0 || 1)) * (y1 - y0);
}

/** Returns round numbers along an axis, about as many as given. */
function ticks(axis, about) {
  if (axis.isLog) {
    const [low, high] = [Math.ceil(Math.log10(axis.from) - 1e-9), Math.floor(Math.log10(axis.to) + 1e-9)];
    const step = Math.max(1, Math.ceil((high - low) / about));
    const powers = [];
    for (let power = low; power <= high; power += step) powers.push(10 ** power);
    return powers;
  }
  const span = axis.to - axis.from;
  if (!(span > 0)) return [axis.from];
  const steps = axis.isTime ? TIME_STEPS : null;
  const step = steps ? (steps.find((step) => span / step <= about) ?? 86_400_000 * Math.ceil(span / about / 86_400_000)) : Math.max(roundStep(span / about), axis.isCount ? 1 : 0);
  const found = [];
  for (let at = Math.ceil(axis.from / step - 1e-9) * step; at <= axis.to + step * 1e-9; at += step) found.push(at);
  return found;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400].map((seconds) => seconds * 1000);

function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((step) => step * power >= least * (1 - 1e-9));
}

/** A small line without axes; what it shows stands beside it as text. */
export function sparkline(values, label) {
  const [width, height] = [120, 32];
  const most = Math.max(...values, 1);
  const root = s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  if (values.length > 1) {
    const at = values.map((value, i) => `${((i / (values.length - 1)) * width).toFixed(1)} ${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`);
    root.append(s("path", { class: "spark-area", d: `M0 ${height}L${at.join("L")}L${width} ${height}Z` }));
    root.append(s("path", { class: "spark-line", d: `M${at.join("L")}` }));
  }
  return root;
}
