// The panel of an opened box: rows one above the other, which CSS lays out as a grid, and the lines between them, which
// are drawn after the layout.
import { digitsText } from "../../engine/number_text.ts";
import { element, nodesOf } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { createStrip, drawStrips, largestSize } from "./strips.ts";
import { HIDDEN, legend, turner } from "./zoom_parts.ts";
import { rulerOf } from "./lines.ts";

import type { Stack } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Ruler, Strip, Tell } from "./strips.ts";

/** The height of a row in px, the least and the largest height that the window may give it, or that of its parts. */
type Height = number | "auto" | readonly [least: number, most: number];

/** A row of a panel. A row without parts is a gap. */
export interface Row {
  height: Height;
  /** The name of the row's step, in the first column. */
  name?: Child;
  /** The other parts of the row. A part covers the columns between the first and the last one, or those of `over`. */
  parts?: Child[];
}

/** An opened box, from the top down. */
export interface Box {
  /** The least width in px, if it is not the usual one. */
  least?: number;
  /** The columns, as in CSS. */
  columns: string;
  rows: Row[];
  /** Whether the rows are read from the bottom up, in the order of the calculation. */
  isRising?: boolean;
  /** Returns the lines between the parts. */
  lines?(ruler: Ruler): Child[];
  /** Returns the lines that enter and leave a panel of this height. */
  outside?(ruler: Ruler, height: number): Child[];
}

interface TableLooks {
  /** The height of the rows, in rows that are not open. */
  lines: number;
  /** The largest height of a row in px. */
  most?: number;
  className?: string;
  columns?: string;
}

/** The share of a strip's width, in %, up to which a text below a number stands at the right of it. */
export const NEAR = 30;
/** The heights of a table's head and of its rows, in px; the least height holds where there is no touch screen. */
const [HEAD, LINE] = [34, { least: 18, most: 30 }];
/** The tables of panels, with the number of their lines; the open row has three lines. */
const linesOf = new WeakMap<Element, number>();

/** Returns a gap between rows. */
export function gap(height: Height): Row {
  return { height };
}

/** Returns a part that covers these columns. */
export function over<One extends HTMLElement>(columns: string, part: One) {
  part.style.gridColumn = columns;
  return part;
}

/** Returns numbers as a strip in a box. `more`: further elements inside the box. */
export function stripBox(
  strip: Omit<Strip, "largest"> & { largest?: number },
  tell: Tell,
  className = "",
  more: Child = null,
) {
  const made = createStrip({ largest: largestSize(strip.numbers), ...strip }, tell);
  return element("div", `gfz-box ${className}`, made, more);
}

/**
 * Returns a text below the number at this place of a strip. From the share `far` of the width on, in %, the text stands
 * at the left of the number.
 */
export function below(at: number, count: number, far: number, ...content: Child[]) {
  const share = (100 * (at + 0.5)) / count;
  const said = element("p", "gfz-made", content);
  said.style.cssText = share > far ? `right: calc(${100 - share}% + 14px)` : `left: calc(${share}% + 14px)`;
  return said;
}

/** Returns a note as a part. */
export function noteOf(text: string) {
  return element("p", "gfz-note", text);
}

/** Returns a number below its place of a strip, and how many products were added to it, if they are known. */
export function sumBelow(app: App, numbers: Float32Array, at: number, products: number[] | null) {
  const said = products && app.t("zoom.products", products.length);
  return below(at, numbers.length, NEAR, said, element("strong", {}, digitsText(numbers[at])));
}

/** Returns the open word with buttons to change it, and at the right the legend of a row of `count` numbers. */
export function besideOf(app: App, stack: Stack, open: Parameters<typeof turner>[2], count = 0) {
  return element("div", "gfz-beside", turner(app, stack, open), legend(app, count));
}

/**
 * Returns a row with a table, whose columns are those of the panel; the table's last column also covers the columns
 * after it. `lines`: the height of the rows, in rows that are not open.
 */
export function tableOf(
  caption: string,
  heads: Child[],
  rows: Child[],
  { lines, most = LINE.most, className = "", columns = "1 / -1" }: TableLooks,
) {
  const names = element(
    "tr",
    {},
    heads.map((head) => element("th", { scope: "col" }, head)),
  );
  const table = element(
    "table",
    `gfz-rows ${className}`,
    element("caption", { class: HIDDEN }, caption),
    element(
      "colgroup",
      {},
      heads.map(() => element("col")),
    ),
    element("thead", {}, names),
    element("tbody", {}, rows),
  );
  linesOf.set(table, lines);
  return {
    height: [HEAD + lines * LINE.least, HEAD + lines * most],
    parts: [over(columns, table)],
  } satisfies Row;
}

/** Returns the panel. `describe` receives a function that shows a text about the number under the pointer. */
export function boxPanel(app: App, describe: (tell: Tell) => Box): Child[] {
  const told = element("p", { class: "gfz-told", hidden: true, "aria-hidden": "true" });
  const whole = element("div", "gfz-whole");
  const box = describe((text, at) => {
    const corner = whole.getBoundingClientRect();
    told.hidden = text === null;
    told.textContent = text;
    told.style.left = `${Math.max(0, Math.min(at.left - corner.left, corner.width - 260))}px`;
    told.style.top = `${at.top - corner.top - 26}px`;
  });
  const heights = box.rows.map(({ height }) => {
    if (height === "auto") return height;
    return typeof height === "number" ? `${height}px` : `minmax(${height[0]}px, ${height[1]}px)`;
  });
  if (box.least) whole.style.minWidth = `${box.least}px`;
  whole.style.gridTemplate = `${heights.join(" ")} / ${box.columns}`;
  const lines = drawing("svg", { class: "gfz-lines", "aria-hidden": "true" });
  const parts = box.rows.map(partsOf);
  whole.append(lines, ...(box.isRising ? parts.reverse() : parts).flat(), told);
  const names = { "aria-label": app.t("zoom.panel"), "aria-description": app.t("zoom.keys") };
  const scroll = element("div", { class: "gfz-scroll", role: "group", ...names }, whole);
  whole.addEventListener("layout", () => {
    fitTables(whole);
    const ruler = rulerOf(whole);
    drawStrips(whole, ruler);
    const fits = whole.offsetWidth <= scroll.clientWidth && whole.scrollHeight <= scroll.clientHeight;
    scroll.toggleAttribute("data-fits", fits);
    lines.replaceChildren(
      ...nodesOf(box.lines?.(ruler) ?? []),
      ...(fits && box.outside ? [drawing("g", "gfz-outside", box.outside(ruler, whole.offsetHeight))] : []),
    );
  });
  return [scroll];
}

/** Draws a panel that now is in the page, and has its size. */
export function drawAfterLayout(room: Element) {
  room.querySelector(".gfz-whole")?.dispatchEvent(new Event("layout"));
}

/** Returns the parts of a row as elements of the grid. */
function partsOf({ name, parts = [] }: Row, at: number) {
  const heading = name ? element("div", "gfz-heading", name) : null;
  const made = nodesOf([heading, parts]) as HTMLElement[];
  for (const one of made) one.style.gridRow ||= String(at + 1);
  return made;
}

/** Gives the columns of the panel to its tables, and the height of a table to its lines. */
function fitTables(whole: HTMLElement) {
  const { gridTemplateColumns, gridTemplateRows } = getComputedStyle(whole);
  const [columns, rows] = [gridTemplateColumns, gridTemplateRows].map((tracks) =>
    tracks.split(" ").map(parseFloat),
  );
  for (const table of whole.querySelectorAll<HTMLTableElement>(".gfz-rows")) {
    const lines = linesOf.get(table) ?? 1;
    const height = Math.floor((rows[Number(table.style.gridRowStart) - 1] - HEAD) / lines);
    table.style.setProperty("--rh", `${height}px`);
    const cols = [...table.querySelectorAll("col")].slice(0, -1);
    cols.forEach((col, at) => (col.style.width = `${columns[at]}px`));
  }
}
