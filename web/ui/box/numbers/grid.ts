// A matrix of any size, drawn on one canvas. A grid element over the canvas serves keyboard and screen reader; the
// grid element contains only the current cell.
import { clamp } from "../../../engine/tensor.ts";
import { coloursAt } from "../../app/colours.ts";
import { brushOf, element } from "../../app/dom.ts";
import { FONT, LABEL, canvasBrush } from "./brush.ts";
import { paintCells, paintLabels, sheetOf } from "./picture.ts";

import type { Colours } from "../../app/types.ts";
import type { Picture, Sheet } from "./picture.ts";

type Place = readonly [row: number, column: number];

const SHARPEST = 12_000; // px; browsers limit the size of a canvas
const STEPS_OF_KEYS: Record<string, Place> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

let counted = 0;
let ruler: CanvasRenderingContext2D | null = null;

/** Returns the width of a label in px, measured in bold, the widest style. */
export function measured(text: string) {
  ruler ??= element("canvas").getContext("2d");
  if (!ruler) return text.length * 7;
  ruler.font = `650 ${LABEL}px ${FONT}`;
  return ruler.measureText(text).width;
}

/** What is drawn: a picture, its sheet and its colours. */
interface Drawn {
  picture: Picture;
  sheet: Sheet;
  colours: Colours;
}

/**
 * Returns the grid. `told` receives a text about the cell under the pointer or the focus. `chosen` receives the cell
 * that the reader picks.
 */
export function createGrid(told: (words: string) => void, chosen: (row: number, column: number) => void) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const cells = element("canvas");
  const cell = element("div", { role: "gridcell", id: `gfn-cell-${++counted}` });
  const row = element("div", { role: "row" }, cell);
  const keys = element("div", { role: "grid", tabindex: "0", "aria-activedescendant": cell.id }, row);
  const holder = element("div", "gfn-grid", canvas, keys);
  let drawn: Drawn | null = null;
  let at: Place = [0, 0];

  /** Highlights one cell with its row and column; null means that the chosen cell is highlighted. */
  function light(lit: Place | null) {
    if (!drawn) return;
    highlight(canvas, cells, drawn, lit);
    const { picture } = drawn;
    const place = lit ?? picture.chosen;
    told(place[1] < 0 ? "" : picture.describe(...place));
  }

  function go([down, right]: Place) {
    if (!drawn) return;
    const { rows, columns, describe } = drawn.picture;
    at = [clamp(at[0] + down, rows.length), clamp(at[1] + right, columns.length)];
    row.ariaRowIndex = String(at[0] + 1);
    cell.ariaColIndex = String(at[1] + 1);
    cell.ariaLabel = describe(...at);
  }

  canvas.addEventListener("pointermove", (event) => light(cellAt(canvas, drawn, event)));
  canvas.addEventListener("pointerleave", () => light(null));
  canvas.addEventListener("click", (event) => {
    const place = cellAt(canvas, drawn, event);
    if (place) chosen(...place);
  });
  keys.addEventListener("focus", () => light(at));
  keys.addEventListener("blur", () => light(null));
  keys.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS_OF_KEYS[event.key];
    if (step) {
      go(step);
      light(at);
      showCell(holder, drawn, at);
    } else if (event.key === "Enter" || event.key === " ") chosen(...at);
    else return;
    event.preventDefault();
  });

  function draw(picture: Picture) {
    const sheet = sheetOf(picture, holder.parentElement?.clientWidth || 700, measured);
    drawn = { picture, sheet, colours: coloursAt(holder) };
    paintAll(canvas, cells, drawn);
    keys.ariaLabel = picture.label;
    keys.ariaRowCount = String(picture.rows.length);
    keys.ariaColCount = String(picture.columns.length);
    at = [picture.chosen[0], Math.max(0, picture.chosen[1])];
    go([0, 0]);
    light(document.activeElement === keys ? at : null);
    showCell(holder, drawn, at);
  }
  return { element: holder, draw };
}

/** Returns the cell under the pointer. */
function cellAt(canvas: HTMLElement, drawn: Drawn | null, { clientX, clientY }: MouseEvent): Place | null {
  if (!drawn) return null;
  const { picture, sheet } = drawn;
  const box = canvas.getBoundingClientRect();
  const row = Math.floor((clientY - box.top - sheet.top) / sheet.height);
  const column = Math.floor((clientX - box.left - sheet.left) / sheet.width);
  const isInside = row in picture.rows && column in picture.columns;
  return isInside ? [row, column] : null;
}

/** Sizes both canvases for a sheet, and paints the cells without a highlight. */
function paintAll(canvas: HTMLCanvasElement, cells: HTMLCanvasElement, { picture, sheet, colours }: Drawn) {
  const { width, height } = sheet.whole;
  const ratio = Math.min(window.devicePixelRatio || 1, SHARPEST / width, SHARPEST / height);
  for (const one of [canvas, cells]) {
    one.width = Math.max(1, Math.round(width * ratio));
    one.height = Math.max(1, Math.round(height * ratio));
  }
  canvas.style.cssText = `width: ${width}px; height: ${height}px`;
  const context = brushOf(cells);
  context.scale(ratio, ratio);
  paintCells(canvasBrush(context), picture, sheet, colours);
}

/** Paints the cells, the labels, and frames around the chosen and the lit cell. */
function highlight(
  canvas: HTMLCanvasElement,
  cells: HTMLCanvasElement,
  { picture, sheet, colours }: Drawn,
  lit: Place | null,
) {
  const context = brushOf(canvas);
  const ratio = canvas.width / sheet.whole.width;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(cells, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const brush = canvasBrush(context);
  const place = lit ?? picture.chosen;
  paintLabels(brush, picture, sheet, colours, measured, place[1] < 0 ? null : place);
  const { left, top, width, height } = sheet;
  const frame = ([row, column]: Place, line: number) =>
    column >= 0 &&
    brush.frame(left + column * width, top + row * height, width, height, colours("--ink"), line);
  frame(picture.chosen, 2.5);
  if (lit) frame(lit, 1.5);
}

/** Scrolls the grid's container, never the page, to a cell. */
function showCell(holder: HTMLElement, drawn: Drawn | null, [row, column]: Place) {
  const room = holder.parentElement;
  if (!drawn || !room) return;
  const { left, top, width, height } = drawn.sheet;
  const [x, y] = [left + column * width, top + row * height];
  if (x < room.scrollLeft + left || x + width > room.scrollLeft + room.clientWidth)
    room.scrollLeft = x - room.clientWidth / 2;
  if (y < room.scrollTop + top || y + height > room.scrollTop + room.clientHeight)
    room.scrollTop = y - room.clientHeight / 2;
}
