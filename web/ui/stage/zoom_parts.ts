// Parts that the panels of opened boxes share: the scrolling panel, its numbered steps, and the legends.
import { arithmetic } from "../../engine/arithmetic.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { digitsText } from "../../engine/number_text.ts";
import { button, element, named, nodesOf } from "../dom.ts";
import { drawing } from "../figure.ts";
import { boxesOf, placeOfBox, shapeOf } from "../boxes.ts";
import { boxKey } from "../heads.ts";
import { MOST_SQUARES, largestSize } from "./strips.ts";
import { tokenName } from "./words.ts";

import type { Cell, Stack, Tensor } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Tell } from "./strips.ts";
import type { Lit } from "./opened.ts";

/** Products smaller than this share of the largest one get no line. */
const FAINTEST = 0.04;

/** The vertical position of a part in its panel. */
export interface Band {
  y: number;
  height: number;
}

interface Size {
  width: number;
  height: number;
}

/** The classes for keys (what is attended to), for queries (what attends), and for hidden parts. */
export const [KEYED, ASKED, HIDDEN] = ["gfz-keyed", "gfz-asked", "gfz-hidden"];

/** Returns the numbers along a tensor's last axis, at these leading indices. */
export function rowAt({ shape, data }: Tensor, lead: number[]) {
  const width = shape[shape.length - 1];
  const start = lead.reduce((place, at, axis) => place * shape[axis] + at, 0) * width;
  return data.subarray(start, start + width);
}

/**
 * Returns the open position of a stack: the position that the reader has chosen, or else the position that is
 * highlighted on the stage.
 */
export function openRow({ state }: App, stack: Stack, lit: Lit | null, count: number) {
  const chosen = stack === "encoder" ? (state.sourceWord ?? lit?.source) : (state.row ?? lit?.row);
  return Math.min(chosen ?? 0, count - 1);
}

/** Returns the open word of a box: its position, the number of words, and its token. `point`: any point of the box. */
export function openWord(app: App, box: string, point: string, lit: Lit | null) {
  const { stack, layer, id } = placeOfBox(box);
  const { rows: tokens, rowSide: side } = app.labels(point);
  const row = openRow(app, stack, lit, tokens.length);
  const word = tokenName(tokens[row], app.t);
  return { stack, layer: layer ?? 0, id, row, rows: tokens.length, word, side };
}

/**
 * Returns two labels for a box of a layer, or for the norm of a stack: the name of what enters the box from below,
 * and the name of the box to which the result goes.
 */
export function neighbours(app: App, box: string) {
  const { stack, layer, id } = placeOfBox(box);
  const { config } = app;
  const { changes } = app.result.current;
  const steps = stepsUnder(changes);
  const last = config[`${stack}_layers`] - 1;
  const shape = shapeOf(config, steps);
  const isPre = shape.isPreNorm;
  const order = boxesOf(stack, shape).layer.map((one) => one.id);
  const named = (one: string) =>
    app.t(isPre && one.endsWith(".add") ? "stage.box.add" : boxKey(changes, stack, one)).replaceAll("|", " ");
  const at = layer === null ? -1 : order.indexOf(id);
  const before = layer === null ? last : layer - 1;
  const isSum = id.endsWith(".add"); // the line of an Add comes along the residual connection, past the sub-layer
  const from = isSum ? order.slice(0, at).findLastIndex((one) => one.endsWith(".add")) : at - 1;
  const below =
    from >= 0 ? named(order[from]) : before < 0 ? app.t("zoom.input") : app.t("stage.layer", before);
  const end = stack === "encoder" ? app.t("zoom.memory") : named("linear");
  const isInner = layer !== null && at + 1 < order.length;
  const top = layer !== null && shape.hasFinalNorm ? named("norm") : end;
  const above = isInner
    ? named(order[at + 1])
    : layer !== null && layer < last
      ? app.t("stage.layer", layer + 1)
      : top;
  return [app.t("zoom.enters", below), app.t("zoom.leaves", above)];
}

/** Returns the notes on how the reader's changes affect these numbers, without duplicates. */
export async function notesOn(app: App, cells: Cell[]) {
  const notes = new Set<string>();
  for (const { name, index } of cells)
    for (const note of (await arithmetic(app, name, index)).notes) notes.add(note);
  // these notes are not about changes
  for (const key of ["numbers.noWeights", "numbers.needsModel"]) notes.delete(app.t(key));
  return [...notes];
}

/** Returns the size of a room inside its padding, and the left and top padding. */
function insideOf(room: HTMLElement) {
  const style = getComputedStyle(room);
  const [left, right, top, bottom] = ["left", "right", "top", "bottom"].map((side) =>
    parseFloat(style.getPropertyValue(`padding-${side}`)),
  );
  // on a phone, the panel grows as high as it needs
  const height = top > 0 ? room.clientHeight - top - bottom : Infinity;
  return { left, top, width: room.clientWidth - left - right, height };
}

/** Returns a note at a position in a panel. */
export const noteAt = (text: string, place: Parameters<typeof put>[1]) =>
  put(element("p", { class: "gfz-note" }, text), place);

/**
 * Returns a panel in its room and, if the panel fits without scrolling, the lines that enter and leave it. `frameFor`
 * returns the panel's layout for a room of this size. `draw` receives the layout, and a function that shows a text
 * about the number under the pointer.
 */
export function panelIn<Frame extends Size>(
  app: App,
  room: HTMLElement,
  frameFor: (inner: Size) => Frame,
  draw: (frame: Frame, tell: Tell) => { parts: Child[]; outside: Child[] },
): Child[] {
  const inner = insideOf(room);
  const frame = frameFor(inner);
  const { width, height } = frame;
  const told = element("p", { class: "gfz-told", hidden: true, "aria-hidden": "true" });
  const whole = element("div", { class: "gfz-whole" });
  const { parts, outside } = draw(frame, (text, at) => {
    const corner = whole.getBoundingClientRect();
    told.hidden = text === null;
    told.textContent = text;
    told.style.left = `${Math.max(0, Math.min(at.left - corner.left, width - 260))}px`;
    told.style.top = `${at.top - corner.top - 26}px`;
  });
  whole.append(...nodesOf(parts), told);
  whole.style.cssText = `width: ${width}px; height: ${height}px`;
  const names = { "aria-label": app.t("zoom.panel"), "aria-description": app.t("zoom.keys") };
  const scroll = element("div", { class: "gfz-scroll", role: "group", ...names }, whole);
  const svg = drawing("svg", { class: "gfz-outside", width, height, "aria-hidden": "true" }, outside);
  const fits = width <= inner.width && height <= inner.height;
  return [fits && put(svg, { x: inner.left, y: inner.top }), scroll];
}

/**
 * Returns a strip with sums, at the position `place`, and a text below the open sum that says how many products were
 * added. `products` is null if they are unknown.
 */
export function sumBox(
  app: App,
  strip: SVGSVGElement,
  place: { x: number; y: number; width: number; height: number },
  { numbers, at, products }: { numbers: Float32Array; at: number; products: number[] | null },
) {
  const said = element(
    "p",
    { class: "gfz-made" },
    products && app.t("zoom.products", products.length),
    element("strong", {}, digitsText(numbers[at])),
  );
  const x = ((at + 0.5) * place.width) / numbers.length;
  said.style.cssText = x > 230 ? `right: ${place.width - x + 14}px` : `left: ${x + 14}px`;
  return put(element("div", { class: "gfz-box" }, strip, said), place);
}

/** Returns the table of a panel's rows at its position. `widths`: the widths of the table's columns, in px. */
export function rowsTable(
  caption: string,
  { widths, row, y }: { widths: number[]; row: number; y: number },
  heads: Child[],
  rows: Child[],
) {
  const names = element(
    "tr",
    {},
    heads.map((head) => element("th", { scope: "col" }, head)),
  );
  const columns = widths.map((width) => element("col", { style: `width: ${width}px` }));
  const table = element(
    "table",
    { class: "gfz-rows", style: `--rh: ${row}px` },
    element("caption", { class: HIDDEN }, caption),
    element("colgroup", {}, columns),
    element("thead", {}, names),
    element("tbody", {}, rows),
  );
  return put(table, { x: 0, y: y - 34, width: widths.reduce((sum, width) => sum + width, 0) });
}

/** Returns a row of a panel's table. */
export function tableRow(name: Child, cells: Child[], isOpen: boolean, className = "") {
  return element(
    "tr",
    { "aria-current": isOpen ? "true" : null, className },
    element("th", { scope: "row" }, name),
    cells.map((cell) => element("td", {}, cell)),
  );
}

/** Returns a line from below the panel, of this height, up to `end`, with its label. */
export function enteringLine(className: string, x: number, height: number, end: Band, label: string) {
  const d = `M${x} ${height + 48}V${end.y + end.height}`;
  return [drawing("path", { class: className, d }), drawing("text", { x: x + 14, y: height + 30 }, label)];
}

/** Returns a line from a part to above the panel, with its label. */
export function leavingLine(className: string, x: number, { y }: { y: number }, label: string) {
  return [
    drawing("path", { class: className, d: `M${x} -48V${y}` }),
    drawing("text", { x: x + 14, y: -20 }, label),
  ];
}

/** Returns lines between the parts of a panel; the parts are drawn over them. */
export function innerLines({ width, height }: Size, children: Parameters<typeof drawing>[2], className = "") {
  return drawing("svg", { class: `gfz-lines ${className}`, width, height, "aria-hidden": "true" }, children);
}

/** Returns a step's name at the left of a part of the panel. */
export function heading(step: HTMLElement, { y, height }: Band, x = 18) {
  return put(element("div", { class: "gfz-heading" }, step), { x, y: y + height / 2 - 12 });
}

/** Returns a button that the arrow keys reach. `stop`: a key that stays the same across redraws. */
export function stopButton(
  stop: string,
  content: Child,
  open: () => unknown,
  looks: Parameters<typeof button>[2] = {},
) {
  const made = button(content, open, looks);
  made.dataset.stop = stop;
  return made;
}

/** Returns a horizontal bar of this width, and of at least 1 px. */
export function barOf(width: number) {
  return element("i", { style: `width: ${Math.max(1, width)}px` });
}

/**
 * Returns a line from each product to the sum of the products at `to`. `from` returns the coordinates of a product's
 * factor, and the line's class.
 */
export function fanOf(
  products: number[],
  [x1, y1]: [number, number],
  from: (i: number) => readonly [x: number, y: number, className: string],
) {
  const largest = largestSize(products);
  return products.flatMap((product, i) => {
    const share = Math.abs(product) / largest;
    if (share < FAINTEST) return [];
    const [x, y, className] = from(i);
    const half = (y - y1) / 2;
    return drawing("path", {
      class: className,
      d: `M${x} ${y - 1}C${x} ${y - half} ${x1} ${y1 + half} ${x1} ${y1}`,
      "stroke-width": 0.6 + 2 * share,
      opacity: className ? 0.4 + 0.6 * share : 0.25 + 0.4 * share,
    });
  });
}

/** Returns a step's number and name, as a button that opens a number of the step. */
export function stepButton(at: number, name: Child, kind: string, isOpen: boolean, open: () => unknown) {
  const made = stopButton(`step ${kind}`, [element("i", {}, at), name], open, { className: "gfz-step" });
  if (isOpen) made.ariaCurrent = "step";
  return made;
}

/** Opens another word of the same stack in the same box. */
export function turnTo(app: App, stack: Stack, to: number) {
  const zoom = app.state.zoom && { ...app.state.zoom, key: null };
  app.show({ [stack === "encoder" ? "sourceWord" : "row"]: to, selected: null, zoom });
}

/** Returns the open word between two buttons that go to the previous word and to the next word. */
export function turner(
  app: App,
  stack: Stack,
  { row, rows, word }: { row: number; rows: number; word: string },
) {
  const turn = (text: string, key: string, to: number) => {
    const disabled = to < 0 || to >= rows;
    return named(
      stopButton(key, text, () => turnTo(app, stack, to), { disabled }),
      app.t(key),
    );
  };
  const buttons = [
    turn("‹", "zoom.before", row - 1),
    element("bdi", { class: `gfz-word ${ASKED}` }, word),
    turn("›", "zoom.after", row + 1),
  ];
  return element("div", { class: "gfz-turner" }, buttons);
}

/** Returns an explanation of how positive and negative numbers are drawn. */
export function signsOf(app: App): Child[][] {
  const sign = (key: string, className: string) => [element("i", { className }), app.t(key)];
  return [sign("zoom.above", "gfz-filled"), sign("zoom.below", "gfz-hollow")];
}

/** Returns the legend of a row of `count` numbers. */
export function legend(app: App, count = 0) {
  const text = count > MOST_SQUARES ? [app.t("zoom.bars")] : [...signsOf(app), app.t("zoom.area")];
  return element(
    "p",
    { class: "gfz-legend" },
    text.map((one) => element("span", {}, one)),
  );
}

/** Positions an element in the panel. */
export function put<One extends HTMLElement | SVGElement>(
  one: One,
  { x, y, width, height }: { x?: number; y: number; width?: number; height?: number },
) {
  if (x !== undefined) one.style.left = `${x}px`;
  one.style.top = `${y}px`;
  if (width !== undefined) one.style.width = `${width}px`;
  if (height !== undefined) one.style.height = `${height}px`;
  return one;
}
