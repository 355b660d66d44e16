// Colours of numbers. Probabilities: one hue, monotonic lightness, zero = the background. Signed
// values: one hue below zero and one above, equally strong for equal sizes. styles.css defines the colours.
import { brushOf, element } from "./dom.js";
/** @import { Colours, Scale } from "./types.js" */

const SHADES = 256;
/** @type {Map<string, Uint32Array>} */
const tables = new Map();

/**
 * Returns the colours that apply to an element, by their names in styles.css.
 * @param {Element} place
 * @returns {Colours}
 */
export function coloursAt(place) {
  const style = getComputedStyle(place);
  return (name) => style.getPropertyValue(name).trim();
}

/**
 * Returns the 256 colours of a scale, packed as in a canvas's pixels.
 * @param {Scale} scale
 * @param {Colours} colours
 */
export function colourTable(scale, colours) {
  const stops = colours(`--${scale}`);
  const table = tables.get(stops) ?? blend(stops.split(/,(?![^(]*\))/).map(partsOf));
  tables.set(stops, table);
  return table;
}

/**
 * Returns the index of a value's colour: of a probability in [0, 1], or of a signed value in [−largest, largest].
 * @param {Scale} scale
 * @param {number} value
 */
export function colourPlace(scale, value, largest = 1) {
  const share = scale === "signed" ? (value / (largest || 1) + 1) / 2 : value / (largest || 1);
  return Math.max(0, Math.min(SHADES - 1, Math.round(share * (SHADES - 1))));
}

/**
 * Returns black or white, whichever is readable on this packed colour.
 * @param {number} packed
 */
export function inkOn(packed) {
  const [red, green, blue] = [packed & 255, (packed >> 8) & 255, (packed >> 16) & 255].map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "black" : "white";
}

/**
 * Returns a canvas of single pixels; `paint` fills in their packed colours, row by row.
 * @param {number} columns
 * @param {number} rows
 * @param {(pixels: Uint32Array) => void} paint
 */
export function pixelled(columns, rows, paint) {
  const canvas = element("canvas", { width: columns, height: rows });
  const bitmap = new ImageData(columns, rows);
  paint(new Uint32Array(bitmap.data.buffer));
  brushOf(canvas).putImageData(bitmap, 0, 0);
  return canvas;
}

/**
 * Returns red, green and blue of a CSS colour.
 * @param {string} colour
 */
function partsOf(colour) {
  const brush = brushOf(element("canvas", { width: 1, height: 1 }));
  brush.fillStyle = colour.trim();
  brush.fillRect(0, 0, 1, 1);
  return [...brush.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
}

/** @param {number[][]} parts */
function blend(parts) {
  return Uint32Array.from({ length: SHADES }, (_, step) => {
    const place = (step / (SHADES - 1)) * (parts.length - 1);
    const low = Math.max(0, Math.min(Math.floor(place), parts.length - 2));
    const high = Math.min(low + 1, parts.length - 1);
    const [red, green, blue] = parts[low].map((from, part) =>
      Math.round(from + (parts[high][part] - from) * (place - low)),
    );
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}
