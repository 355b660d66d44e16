// Colours of numbers. Probabilities: one hue, monotonic lightness, zero = the background. Signed
// values: one hue below zero and one above, equally strong for equal sizes. styles.css defines the colours.
import { brushOf, element } from "./dom.ts";
import type { Colours, Scale } from "./types.ts";

const SHADES = 256;
const tables: Map<string, Uint32Array> = new Map();

/** Returns the colours that apply to an element, by their names in styles.css. */
export function coloursAt(place: Element): Colours {
  const style = getComputedStyle(place);
  return (name) => style.getPropertyValue(name).trim();
}

/** Returns the 256 colours of a scale, packed as in a canvas's pixels. */
export function colourTable(scale: Scale, colours: Colours) {
  const stops = colours(`--${scale}`);
  const table = tables.get(stops) ?? blend(stops.split(/,(?![^(]*\))/).map(partsOf));
  tables.set(stops, table);
  return table;
}

/** Returns the index of a value's colour: of a probability in [0, 1], or of a signed value in [−largest, largest]. */
export function colourPlace(scale: Scale, value: number, largest = 1) {
  const share = scale === "signed" ? (value / (largest || 1) + 1) / 2 : value / (largest || 1);
  return Math.max(0, Math.min(SHADES - 1, Math.round(share * (SHADES - 1))));
}

/** Returns black or white, whichever is readable on this packed colour. */
export function inkOn(packed: number) {
  const [red, green, blue] = [packed & 255, (packed >> 8) & 255, (packed >> 16) & 255].map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "black" : "white";
}

/** Returns a canvas of single pixels; `paint` fills in their packed colours, row by row. */
export function pixelled(columns: number, rows: number, paint: (pixels: Uint32Array) => void) {
  const canvas = element("canvas", { width: columns, height: rows });
  const bitmap = new ImageData(columns, rows);
  paint(new Uint32Array(bitmap.data.buffer));
  brushOf(canvas).putImageData(bitmap, 0, 0);
  return canvas;
}

/** Returns red, green and blue of a CSS colour. */
function partsOf(colour: string) {
  const brush = brushOf(element("canvas", { width: 1, height: 1 }));
  brush.fillStyle = colour.trim();
  brush.fillRect(0, 0, 1, 1);
  return [...brush.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
}

function blend(parts: number[][]) {
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
