// The parts that panels of opened boxes share: the scrolling panel, its numbered steps, and what stands below its rows.
import { arithmetic } from "../../engine/arithmetic.ts";
import { button, element, nodesOf } from "../dom.ts";
import { drawing } from "../figure.ts";

import type { Cell, Stack, Tensor } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Tell } from "./strips.ts";
import type { Lit } from "./zoom_frame.ts";

interface Size {
  width: number;
  height: number;
}

/** The class of what is read, and of what asks. */
export const [KEYED, ASKED, HIDDEN] = ["gfz-keyed", "gfz-asked", "gfz-hidden"];

/** Returns the numbers of the last axis at these leading indices. */
export function rowAt({ shape, data }: Tensor, lead: number[]) {
  const width = shape[shape.length - 1];
  const start = lead.reduce((place, at, axis) => place * shape[axis] + at, 0) * width;
  return data.subarray(start, start + width);
}

/** Returns the position that is open in a stack: the reader's, or the one that the stage lights. */
export function openRow({ state }: App, stack: Stack, lit: Lit | null, count: number) {
  const chosen = stack === "encoder" ? (state.sourceWord ?? lit?.source) : (state.row ?? lit?.row);
  return Math.min(chosen ?? 0, count - 1);
}

/** Returns what the reader's changes do to these numbers, each once. */
export async function notesOn(app: App, cells: Cell[]) {
  const notes = new Set<string>();
  for (const { name, index } of cells)
    for (const note of (await arithmetic(app, name, index)).notes) notes.add(note);
  for (const key of ["numbers.noWeights", "numbers.needsModel"]) notes.delete(app.t(key)); // no change
  return [...notes];
}

/** Returns the size of what a room holds inside its padding, and where this begins. */
function insideOf(room: HTMLElement) {
  const style = getComputedStyle(room);
  const [left, right, top, bottom] = ["left", "right", "top", "bottom"].map((side) =>
    parseFloat(style.getPropertyValue(`padding-${side}`)),
  );
  return { left, top, width: room.clientWidth - left - right, height: room.clientHeight - top - bottom };
}

/**
 * Returns a panel in its room and, where it needs no scrolling, the lines that lead into it and out of it. `frameFor`:
 * returns the panel's places for the size of the room; `parts` gets what tells the number under the pointer.
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
  const told = element("p", { className: "gfz-told", hidden: true, "aria-hidden": "true" });
  const whole = element("div", { className: "gfz-whole" });
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
  const scroll = element("div", { className: "gfz-scroll", role: "group", ...names }, whole);
  const svg = drawing("svg", { class: "gfz-outside", width, height, "aria-hidden": "true" }, outside);
  const fits = width <= inner.width && height <= inner.height;
  return [fits && put(svg, { x: inner.left, y: inner.top }), scroll];
}

/** Returns a line outside a panel with its label. */
export function outerLine(className: string, d: string, [x, y]: [number, number], label: string) {
  return [drawing("path", { class: className, d }), drawing("text", { x, y }, label)];
}

/** Returns a step's number and name, as a button that opens a number of the step. */
export function stepButton(at: number, name: Child, kind: string, isOpen: boolean, open: () => unknown) {
  const made = button([element("i", {}, at), name], open, { className: "gfz-step" });
  made.dataset.stop = `step ${kind}`;
  if (isOpen) made.setAttribute("aria-current", "step");
  return made;
}

/** Returns the open word between the buttons that choose the word before and after it. */
export function turner(
  app: App,
  stack: Stack,
  { row, rows, word }: { row: number; rows: number; word: string },
) {
  const turn = (text: string, key: string, to: number) => {
    const go = () =>
      app.show({
        [stack === "encoder" ? "sourceWord" : "row"]: to,
        selected: null,
        zoom: app.state.zoom && { ...app.state.zoom, key: null },
      });
    const made = button(text, go, { title: app.t(key), disabled: to < 0 || to >= rows });
    made.setAttribute("aria-label", made.title);
    made.dataset.stop = key;
    return made;
  };
  const buttons = [
    turn("‹", "zoom.before", row - 1),
    element("bdi", { className: `gfz-word ${ASKED}` }, word),
    turn("›", "zoom.after", row + 1),
  ];
  return element("div", { className: "gfz-turner" }, buttons);
}

/** Returns how squares are read. */
export function legend(app: App) {
  const sign = (key: string, className: string) => [element("i", { className }), app.t(key)];
  const text = [sign("zoom.above", "gfz-filled"), sign("zoom.below", "gfz-hollow"), app.t("zoom.area")].map(
    (one) => element("span", {}, one),
  );
  return element("p", { className: "gfz-legend" }, text);
}

/** Places an element in the panel. */
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
