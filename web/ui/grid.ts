// A matrix of any size as a picture: one canvas with token rulers, and a grid for the keyboard over it.
import { numberText } from "../engine/number_text.ts";
import { colourPlace, coloursAt, colourTable, inkOn, pixelled } from "./colours.ts";
import { brushOf, element } from "./dom.ts";
import { keyboardGrid } from "./keyboard.ts";
import { blockedText, cellText } from "./picture_svg.ts";
import type { Colours, Picture, Scale } from "./types.ts";

const FONT = "system-ui, sans-serif";
const LABEL = 12;
const SMALLEST_LABEL = 9;
const NUMBERS_FROM = 34;
const WIDEST = 12000;

/** A drawing: its data, its brush, the first cell's corner, a cell's size, and the size of the whole picture. */
interface Sheet {
  data: Picture;
  brush: CanvasRenderingContext2D;
  colours: Colours;
  left: number;
  top: number;
  width: number;
  height: number;
  whole: { width: number; height: number };
}

/** The highlighted rows and columns. */
interface Lit {
  rows: number[];
  columns: number[];
}

/**
 * Returns a picture of a matrix that is drawn anew by `draw`. `hovered` gets the cell under the pointer,
 * null outside the picture; `chosen` gets the cell that the reader picks.
 */
export function createGrid({
  hovered,
  chosen,
  roomy = false,
}: {
  hovered: (cell: [row: number, column: number] | null) => void;
  chosen: (row: number, column: number) => void;
  /** Whether there is room for numbers. */
  roomy?: boolean;
}) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const layer = element("canvas");
  const keys = keyboardGrid({
    label: "",
    describe: (row, column) => sheet?.data.describe(row, column) ?? "",
    moved: (row, column) => hovered([row, column]),
    chosen,
  });
  const holder = element("div", { className: roomy ? "gf-grid gf-roomy" : "gf-grid" }, canvas, keys.element);
  let sheet: Sheet | null = null;
  let lit: Lit = { rows: [], columns: [] };

  function cellAt(event: MouseEvent): [row: number, column: number] | null {
    if (!sheet) return null;
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - sheet.top) / sheet.height);
    const column = Math.floor((event.clientX - box.left - sheet.left) / sheet.width);
    const inside = row >= 0 && row < sheet.data.rows && column >= 0 && column < sheet.data.columns;
    return inside ? [row, column] : null;
  }
  let last = "";
  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    if (String(cell) === last) return;
    last = String(cell);
    hovered(cell);
  });
  canvas.addEventListener("pointerleave", () => {
    last = "";
    hovered(null);
  });
  canvas.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    keys.place(...cell, { tell: false });
    chosen(...cell);
  });

  function draw(data: Picture) {
    keys.resize(data.rows, data.columns);
    keys.name(data.label);
    const brush = brushOf(layer);
    sheet = {
      data,
      brush,
      colours: coloursAt(holder),
      ...measure(brush, data, holder.clientWidth || 300, roomy),
    };
    const { whole } = sheet;
    const ratio = Math.min(window.devicePixelRatio || 1, WIDEST / whole.width);
    for (const one of [canvas, layer]) {
      one.width = Math.max(1, Math.round(whole.width * ratio));
      one.height = Math.max(1, Math.round(whole.height * ratio));
    }
    canvas.style.width = `${whole.width}px`;
    canvas.style.height = `${whole.height}px`;
    brush.scale(ratio, ratio);
    paint(sheet);
    light(lit);
  }

  function light(next: Lit) {
    lit = next;
    if (!sheet) return;
    const brush = brushOf(canvas);
    const ratio = canvas.width / sheet.whole.width;
    brush.setTransform(1, 0, 0, 1, 0, 0);
    brush.clearRect(0, 0, canvas.width, canvas.height);
    brush.drawImage(layer, 0, 0);
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    highlight({ ...sheet, brush }, lit);
  }
  return { element: holder, draw, light, sizes: () => sheet };
}

/** Returns the place and the size of a picture's cells within a width of `room` pixels. */
function measure(brush: CanvasRenderingContext2D, data: Picture, room: number, roomy: boolean) {
  brush.font = `bold ${LABEL}px ${FONT}`; // highlighted labels are bold
  const longest = (labels: string[]) =>
    Math.ceil(Math.max(8, ...labels.slice(0, 200).map((label) => brush.measureText(label).width)));
  const { rowLabels, columnLabels, columns } = data.frame ?? data;
  const left = Math.min(roomy ? 130 : 100, longest(rowLabels)) + 8;
  const top = Math.min(roomy ? 110 : 70, longest(columnLabels)) + 8;
  let width = (room - left - 2) / columns;
  let height;
  if (roomy) {
    width = Math.max(Math.min(width, 64), Math.min(data.scale === "signed" ? 52 : 38, WIDEST / data.columns));
    height = data.rows > 400 ? 8 : 26;
  } else {
    width = height = Math.min(width, 36, Math.max(360 / data.rows, 2.2));
  }
  return {
    left,
    top,
    width,
    height,
    whole: { width: left + width * data.columns + 2, height: top + height * data.rows + 2 },
  };
}

function paint(sheet: Sheet) {
  const { brush, data, left, top, width, height } = sheet;
  const table = colourTable(data.scale, sheet.colours);
  const colourAt = (row: number, column: number) => {
    const largest = typeof data.largest === "number" ? data.largest : data.largest[row];
    return table[colourPlace(data.scale, valueAt(data, row, column), largest)];
  };
  const small = pixelled(data.columns, data.rows, (pixels) => {
    for (let row = 0; row < data.rows; row++) {
      for (let column = 0; column < data.columns; column++)
        pixels[row * data.columns + column] = colourAt(row, column);
    }
  });
  brush.imageSmoothingEnabled = false;
  brush.drawImage(small, left, top, width * data.columns, height * data.rows);
  paintBlocked(sheet);
  paintNumbers(sheet, colourAt);
  paintFrame(sheet);
  paintDiffering(sheet);
  paintLabels(sheet, { rows: [], columns: [] });
}

function valueAt({ values, offset, columns }: Picture, row: number, column: number) {
  return values[offset + row * columns + column];
}

function paintBlocked({ brush, data, colours, left, top, width, height }: Sheet) {
  brush.strokeStyle = colours("--hatching");
  brush.lineWidth = 1;
  for (let row = 0; row < data.rows; row++) {
    for (let column = 0; column < data.columns; column++) {
      if (!data.blocked(row, column)) continue;
      const x = left + column * width,
        y = top + row * height;
      brush.fillStyle = colours("--blocked");
      brush.fillRect(x, y, width, height);
      if (width < 6) continue;
      brush.beginPath();
      brush.moveTo(x, y + height);
      brush.lineTo(x + width, y);
      brush.stroke();
      if (width >= NUMBERS_FROM)
        ink(brush, blockedText(data.scale), x + width / 2, y + height / 2, colours("--soft"), 10);
    }
  }
}

/** `colourAt`: the packed colour of a cell. */
function paintNumbers(
  { brush, data, left, top, width, height }: Sheet,
  colourAt: (row: number, column: number) => number,
) {
  if (width < NUMBERS_FROM || height < 14) return;
  for (let row = 0; row < data.rows; row++) {
    for (let column = 0; column < data.columns; column++) {
      if (data.blocked(row, column) || data.missing?.(row, column)) continue;
      const [x, y] = [left + (column + 0.5) * width, top + (row + 0.5) * height];
      ink(brush, cellText(data, row, column), x, y, inkOn(colourAt(row, column)), 11);
    }
  }
}

function paintFrame({ brush, data, colours, left, top, width, height }: Sheet) {
  brush.strokeStyle = colours("--line");
  brush.lineWidth = 1;
  brush.strokeRect(left - 0.5, top - 0.5, width * data.columns + 1, height * data.rows + 1);
  if (width < 9) return;
  brush.globalAlpha = 0.45;
  brush.beginPath();
  for (let row = 1; row < data.rows; row++)
    lineAcross(brush, left, top + row * height, width * data.columns, 0);
  for (let column = 1; column < data.columns; column++)
    lineAcross(brush, left + column * width, top, 0, height * data.rows);
  brush.stroke();
  brush.globalAlpha = 1;
}

/**
 * Outlines the cells that differ, in the colour of the text within the colour of the paper: one of the two is seen on
 * any cell.
 */
function paintDiffering({ brush, data, colours, left, top, width, height }: Sheet) {
  const { differs } = data;
  if (!differs) return;
  const line = Math.max(1, Math.min(2, width / 8));
  for (let row = 0; row < data.rows; row++) {
    for (let column = 0; column < data.columns; column++) {
      if (!differs(row, column)) continue;
      ["--ink", "--paper"].forEach((colour, at) => {
        const edge = line * (at + 0.5);
        const [x, y] = [left + column * width + edge, top + row * height + edge];
        brush.strokeStyle = colours(colour);
        brush.lineWidth = line;
        brush.strokeRect(x, y, width - 2 * edge, height - 2 * edge);
      });
    }
  }
}

function lineAcross(brush: CanvasRenderingContext2D, x: number, y: number, right: number, down: number) {
  brush.moveTo(x, y);
  brush.lineTo(x + right, y + down);
}

function paintLabels({ brush, data, colours, left, top, width, height }: Sheet, lit: Lit) {
  const [plain, strong] = [colours("--ink"), colours("--lit")];
  const clear = (...box: [x: number, y: number, width: number, height: number]) => {
    brush.fillStyle = colours("--paper");
    brush.fillRect(...box);
  };
  const [rowLabel, columnLabel] = [height, width].map(labelSize);
  const [rowStep, columnStep] = [Math.ceil(rowLabel / height), Math.ceil(columnLabel / width)];
  data.rowLabels.forEach((label, row) => {
    const on = lit.rows.includes(row);
    if (!on && row % rowStep) return;
    const middle = top + (row + 0.5) * height;
    if (on) clear(0, middle - 8, left - 2, 16);
    ink(
      brush,
      fitted(brush, label, left - 8, on),
      left - 6,
      middle,
      on ? strong : plain,
      rowLabel,
      "right",
      on,
    );
  });
  data.columnLabels.forEach((label, column) => {
    const on = lit.columns.includes(column);
    if (!on && column % columnStep) return;
    brush.save();
    brush.translate(left + (column + 0.5) * width, top - 6);
    brush.rotate(-Math.PI / 2);
    if (on) clear(-4, -8, top, 16);
    ink(brush, fitted(brush, label, top - 8, on), 0, 0, on ? strong : plain, columnLabel, "left", on);
    brush.restore();
  });
}

/** Returns the size of labels for cells of this size: small, if every cell can then have its label. */
function labelSize(cell: number) {
  return cell >= SMALLEST_LABEL ? Math.min(cell, LABEL) : LABEL;
}

/** Returns a text, shortened to fit. */
function fitted(brush: CanvasRenderingContext2D, text: string, room: number, bold: boolean) {
  brush.font = `${bold ? "bold " : ""}${LABEL}px ${FONT}`;
  if (brush.measureText(text).width <= room) return text;
  const letters = Array.from(text);
  while (letters.length > 1 && brush.measureText(`${letters.join("")}…`).width > room) letters.pop();
  return `${letters.join("")}…`;
}

function ink(
  brush: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  colour: string,
  size: number,
  align: CanvasTextAlign = "center",
  bold = false,
) {
  brush.font = `${bold ? "bold " : ""}${size}px ${FONT}`;
  brush.fillStyle = colour;
  brush.textAlign = align;
  brush.textBaseline = "middle";
  brush.fillText(text, x, y);
}

function highlight(sheet: Sheet, lit: Lit) {
  const { brush, data, left, top, width, height } = sheet;
  brush.strokeStyle = sheet.colours("--lit");
  brush.lineWidth = 1.5;
  for (const row of lit.rows)
    if (row < data.rows) brush.strokeRect(left, top + row * height, width * data.columns, height);
  for (const column of lit.columns)
    if (column < data.columns) brush.strokeRect(left + column * width, top, width, height * data.rows);
  if (data.chosen) {
    brush.lineWidth = 3;
    brush.strokeRect(left + data.chosen[1] * width, top + data.chosen[0] * height, width, height);
  }
  if (lit.rows.length || lit.columns.length) paintLabels(sheet, lit);
}

/** Returns a legend for a scale: its colours from left to right, with the numbers at its ends. */
export function legend(scale: Scale, largest: number) {
  const low = scale === "signed" ? numberText(-largest, 1, true) : "0";
  return element(
    "span",
    { className: "gf-legend" },
    element("span", {}, low),
    element("span", { className: `gf-scale gf-${scale}` }),
    element("span", {}, scale === "signed" ? numberText(largest, 1, true) : numberText(largest, 0)),
  );
}
