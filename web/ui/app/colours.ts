// Maps numbers to colours, along scales whose colours the style sheet defines.
import { clamp } from "../../engine/tensor.ts";
import { brushOf, element } from "./dom.ts";
import type { Colours } from "./types.ts";

const SHADES = 256;
const tables: Map<string, Uint32Array> = new Map();

/** Returns a function that looks up the colours that apply to an element, by their names in styles.css. */
export function coloursAt(place: Element): Colours {
  const style = getComputedStyle(place);
  return (name) => style.getPropertyValue(name).trim();
}

/** Returns 256 colours along a scale, packed like a canvas's pixels. `stops`: the colours of the scale, as in CSS. */
export function colourTable(stops: string) {
  const table = tables.get(stops) ?? blend(stops.split(/,(?![^(]*\))/).map(partsOf));
  tables.set(stops, table);
  return table;
}

/** Returns the index of the colour of a value in [least, largest]. */
export function colourPlace(value: number, largest: number, least = -largest) {
  const share = (value - least) / (largest - least || 1);
  return clamp(Math.round(share * (SHADES - 1)), SHADES);
}

/** Returns a canvas with one pixel for each number; `paint` fills in the packed colours, row by row. */
export function pixelled(columns: number, rows: number, paint: (pixels: Uint32Array) => void) {
  const canvas = element("canvas", { width: columns, height: rows });
  const bitmap = new ImageData(columns, rows);
  paint(new Uint32Array(bitmap.data.buffer));
  brushOf(canvas).putImageData(bitmap, 0, 0);
  return canvas;
}

/** Returns the red, green and blue components of a CSS colour. */
function partsOf(colour: string) {
  const brush = brushOf(element("canvas", { width: 1, height: 1 }));
  brush.fillStyle = colour.trim();
  brush.fillRect(0, 0, 1, 1);
  return [...brush.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
}

function blend(parts: number[][]) {
  return Uint32Array.from({ length: SHADES }, (_, step) => {
    const place = (step / (SHADES - 1)) * (parts.length - 1);
    const low = clamp(Math.floor(place), parts.length - 1);
    const high = Math.min(low + 1, parts.length - 1);
    const [red, green, blue] = parts[low].map((from, part) =>
      Math.round(from + (parts[high][part] - from) * (place - low)),
    );
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}
