// Parts that the panels of opened boxes share: the scrolling panel, its numbered steps, and the legends.
import { arithmetic } from "../../engine/arithmetic.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { button, element, named } from "../app/dom.ts";
import { boxesOf, placeOfBox, shapeOf } from "../app/boxes.ts";
import { boxKey } from "../app/heads.ts";
import { MOST_SQUARES } from "./strips.ts";
import { tokenName } from "../app/wording.ts";

import type { Cell, Stack, Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Lit } from "./opened.ts";

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

/** Returns the size of a room inside its padding. */
export function insideOf(room: HTMLElement) {
  const style = getComputedStyle(room);
  const [left, right, top, bottom] = ["left", "right", "top", "bottom"].map((side) =>
    parseFloat(style.getPropertyValue(`padding-${side}`)),
  );
  // on a phone, the panel grows as high as it needs
  const height = top > 0 ? room.clientHeight - top - bottom : Infinity;
  return { width: room.clientWidth - left - right, height };
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

/** Returns a horizontal bar of this width, in px or as a formula of CSS, and of at least 1 px. */
export function barOf(width: number | string) {
  return element("i", { style: `width: max(1px, ${typeof width === "number" ? `${width}px` : width})` });
}

/** Returns a step's number and name, as a button that opens a number of the step. */
export function stepButton(at: number, name: Child, kind: string, isOpen: boolean, open: () => unknown) {
  const made = stopButton(`step ${kind}`, [element("i", {}, at), name], open, { className: "gfz-step" });
  if (isOpen) made.ariaCurrent = "step";
  return made;
}

/** Returns the number and name of a step that opens nothing. */
export function stepName(at: number, name: string) {
  return element("span", "gfz-step", element("i", {}, at), name);
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
    element("bdi", `gfz-word ${ASKED}`, word),
    turn("›", "zoom.after", row + 1),
  ];
  return element("div", "gfz-turner", buttons);
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
    "gfz-legend",
    text.map((one) => element("span", {}, one)),
  );
}
