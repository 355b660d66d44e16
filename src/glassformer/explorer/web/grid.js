// A matrix as a picture: one canvas with token rulers, whatever its size, and a keyboard grid over it.
import { colourPlace, colourTable, cssColour, inkOn } from "./colours.js";
import { element, numberText } from "./dom.js";
import { keyboardGrid } from "./keyboard.js";

const FONT = "system-ui, sans-serif";
const LABEL = 12;
const NUMBERS_FROM = 34;
const WIDEST = 12000;

/**
 * Returns {element, draw(data), light(data)}: a picture of a matrix.
 *
 * data: {values, offset, rows, columns, rowLabels, columnLabels, scale, largest (one number, or one for each row),
 * blocked(row, column), hidden(row), describe(row, column), label, theme, chosen: [row, column] | null}.
 * `hovered(row, column)`, with nulls outside, and `chosen(row, column)` are told what the reader points at and picks.
 */
export function createGrid({ hovered, chosen, roomy = false }) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const keys = keyboardGrid({
    label: "",
    describe: (row, column) => (data ? data.describe(row, column) : ""),
    moved: hovered,
    chosen,
  });
  const holder = element("div", { className: roomy ? "gf-grid gf-roomy" : "gf-grid" }, canvas, keys.element);
  let data = null,
    layer = null,
    sizes = null,
    lit = { rows: [], columns: [] };

  function cellAt(event) {
    if (!data) return null;
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - sizes.top) / sizes.height);
    const column = Math.floor((event.clientX - box.left - sizes.left) / sizes.width);
    const inside = row >= 0 && row < data.rows && column >= 0 && column < data.columns;
    return inside ? [row, column] : null;
  }
  let last = "";
  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    if (String(cell) === last) return;
    last = String(cell);
    hovered(...(cell ?? [null, null]));
  });
  canvas.addEventListener("pointerleave", () => {
    last = "";
    hovered(null, null);
  });
  canvas.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    keys.place(...cell, { tell: false });
    chosen(...cell);
  });

  function draw(next) {
    data = next;
    keys.resize(data.rows, data.columns);
    keys.name(data.label);
    sizes = measure(data, holder.clientWidth || 300, roomy);
    const ratio = Math.min(window.devicePixelRatio || 1, WIDEST / sizes.whole.width);
    for (const one of [canvas, (layer = document.createElement("canvas"))]) {
      one.width = Math.max(1, Math.round(sizes.whole.width * ratio));
      one.height = Math.max(1, Math.round(sizes.whole.height * ratio));
    }
    canvas.style.width = `${sizes.whole.width}px`;
    canvas.style.height = `${sizes.whole.height}px`;
    const brush = layer.getContext("2d");
    brush.scale(ratio, ratio);
    paint(brush, data, sizes);
    light(lit);
  }

  function light(next) {
    lit = next;
    if (!data) return;
    const brush = canvas.getContext("2d");
    const ratio = canvas.width / sizes.whole.width;
    brush.setTransform(1, 0, 0, 1, 0, 0);
    brush.clearRect(0, 0, canvas.width, canvas.height);
    brush.drawImage(layer, 0, 0);
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    highlight(brush, data, sizes, lit);
  }
  return { element: holder, draw, light, sizes: () => sizes };
}

function measure(data, room, roomy) {
  const brush = document.createElement("canvas").getContext("2d");
  brush.font = `${LABEL}px ${FONT}`;
  const longest = (labels) =>
    Math.ceil(Math.max(8, ...labels.slice(0, 200).map((label) => brush.measureText(label).width)));
  const left = Math.min(roomy ? 130 : 78, longest(data.rowLabels)) + 8;
  const top = Math.min(roomy ? 110 : 70, longest(data.columnLabels)) + 8;
  let width = (room - left - 2) / data.columns;
  let height = Math.min(width, 36);
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

function paint(brush, data, sizes) {
  const { left, top, width, height } = sizes;
  const table = colourTable(data.scale, data.theme);
  const bitmap = new ImageData(data.columns, data.rows);
  const pixels = new Uint32Array(bitmap.data.buffer);
  const largest = (row) => (typeof data.largest === "number" ? data.largest : data.largest[row]);
  for (let row = 0; row < data.rows; row++) {
    if (data.hidden(row)) continue;
    const most = largest(row);
    for (let column = 0; column < data.columns; column++) {
      const value = data.values[data.offset + row * data.columns + column];
      pixels[row * data.columns + column] = table[colourPlace(data.scale, value, most)];
    }
  }
  const small = document.createElement("canvas");
  small.width = data.columns;
  small.height = data.rows;
  small.getContext("2d").putImageData(bitmap, 0, 0);
  brush.imageSmoothingEnabled = false;
  brush.drawImage(small, left, top, width * data.columns, height * data.rows);
  paintBlocked(brush, data, sizes);
  paintNumbers(brush, data, sizes, table, largest);
  paintFrame(brush, data, sizes);
  paintLabels(brush, data, sizes, { rows: [], columns: [] });
}

function paintBlocked(brush, data, sizes) {
  const { left, top, width, height } = sizes;
  brush.fillStyle = data.theme === "dark" ? "#1c2a44" : "#eceff3";
  brush.strokeStyle = data.theme === "dark" ? "#5f7292" : "#98a3b3";
  brush.lineWidth = 1;
  for (let row = 0; row < data.rows; row++) {
    if (data.hidden(row)) continue;
    for (let column = 0; column < data.columns; column++) {
      if (!data.blocked(row, column)) continue;
      const x = left + column * width,
        y = top + row * height;
      brush.fillRect(x, y, width, height);
      if (width < 6) continue;
      brush.beginPath();
      brush.moveTo(x, y + height);
      brush.lineTo(x + width, y);
      brush.stroke();
      if (width >= NUMBERS_FROM)
        ink(brush, "–∞", x + width / 2, y + height / 2, data.theme === "dark" ? "#c3cede" : "#3d4754", 10);
    }
  }
}

function paintNumbers(brush, data, { left, top, width, height }, table, largest) {
  if (width < NUMBERS_FROM || height < 14) return;
  for (let row = 0; row < data.rows; row++) {
    if (data.hidden(row)) continue;
    for (let column = 0; column < data.columns; column++) {
      if (data.blocked(row, column)) continue;
      const value = data.values[data.offset + row * data.columns + column];
      const colour = table[colourPlace(data.scale, value, largest(row))];
      const text =
        data.scale === "signed"
          ? numberText(value, Math.abs(value) < 100 ? 2 : 0, true)
          : shortProbability(value);
      ink(brush, text, left + (column + 0.5) * width, top + (row + 0.5) * height, inkOn(colour), 11);
    }
  }
}

/** Returns a probability in four characters: .123, 1, 0 for an exact zero, and a small one as <.001. */
function shortProbability(value) {
  if (value === 0) return "0";
  if (value >= 0.9995) return "1.00";
  return value < 0.0005 ? "~0" : value.toFixed(3).slice(1);
}

function paintFrame(brush, data, { left, top, width, height }) {
  brush.strokeStyle = data.theme === "dark" ? "#33425c" : "#c9d1db";
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

function lineAcross(brush, x, y, right, down) {
  brush.moveTo(x, y);
  brush.lineTo(x + right, y + down);
}

function paintLabels(brush, data, { left, top, width, height }, lit) {
  const plain = data.theme === "dark" ? "#d7dfeb" : "#26303c";
  const strong = data.theme === "dark" ? "#ffd166" : "#9a3412";
  const every = (size) => Math.max(1, Math.ceil(LABEL / size));
  const rowStep = every(height),
    columnStep = every(width);
  data.rowLabels.forEach((label, row) => {
    const on = lit.rows.includes(row);
    if (!on && (row % rowStep || data.hidden(row))) return;
    const middle = top + (row + 0.5) * height;
    if (on) clear(brush, data, 0, middle - 8, left - 2, 16);
    ink(brush, fitted(brush, label, left - 8), left - 6, middle, on ? strong : plain, LABEL, "right", on);
  });
  data.columnLabels.forEach((label, column) => {
    const on = lit.columns.includes(column);
    if (!on && column % columnStep) return;
    brush.save();
    brush.translate(left + (column + 0.5) * width, top - 6);
    brush.rotate(-Math.PI / 2);
    if (on) clear(brush, data, -4, -8, top, 16);
    ink(brush, fitted(brush, label, top - 8), 0, 0, on ? strong : plain, LABEL, "left", on);
    brush.restore();
  });
}

function clear(brush, data, x, y, width, height) {
  brush.fillStyle = data.theme === "dark" ? "#0f172a" : "#ffffff";
  brush.fillRect(x, y, width, height);
}

function fitted(brush, text, room) {
  brush.font = `${LABEL}px ${FONT}`;
  if (brush.measureText(text).width <= room) return text;
  const letters = Array.from(text);
  while (letters.length > 1 && brush.measureText(`${letters.join("")}…`).width > room) letters.pop();
  return `${letters.join("")}…`;
}

function ink(brush, text, x, y, colour, size, align = "center", bold = false) {
  brush.font = `${bold ? "bold " : ""}${size}px ${FONT}`;
  brush.fillStyle = colour;
  brush.textAlign = align;
  brush.textBaseline = "middle";
  brush.fillText(text, x, y);
}

function highlight(brush, data, sizes, lit) {
  const { left, top, width, height } = sizes;
  brush.strokeStyle = data.theme === "dark" ? "#ffd166" : "#c2410c";
  brush.lineWidth = 1.5;
  for (const row of lit.rows)
    if (row < data.rows) brush.strokeRect(left, top + row * height, width * data.columns, height);
  for (const column of lit.columns)
    if (column < data.columns) brush.strokeRect(left + column * width, top, width, height * data.rows);
  if (data.chosen) {
    brush.lineWidth = 3;
    brush.strokeRect(left + data.chosen[1] * width, top + data.chosen[0] * height, width, height);
  }
  if (lit.rows.length || lit.columns.length) paintLabels(brush, data, sizes, lit);
}

/** Returns a legend for a scale: its colours from left to right, with the numbers at its ends. */
export function legend(scale, largest, theme) {
  const table = colourTable(scale, theme);
  const stops = [0, 64, 128, 192, 255].map((place) => cssColour(table[place])).join(", ");
  const low = scale === "signed" ? numberText(-largest, 1, true) : "0";
  return element(
    "span",
    { className: "gf-legend" },
    element("span", {}, low),
    element("span", { className: "gf-scale", style: `background: linear-gradient(to right, ${stops})` }),
    element("span", {}, scale === "signed" ? numberText(largest, 1, true) : numberText(largest, 0)),
  );
}
