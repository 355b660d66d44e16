// A matrix as a picture, one pixel for each number.
import { clamp } from "../../engine/tensor.ts";
import { colourPlace, coloursAt, colourTable, pixelled } from "../app/colours.ts";
import { element } from "../app/dom.ts";

import type { Tensor } from "../../engine/types.ts";
import type { Tell } from "./strips.ts";

interface Pixels {
  /** The numbers that get the strongest and the weakest colour. By default, `least` is −`largest`. */
  largest: number;
  least?: number;
  /** The width and height of a number's cell, in px. */
  cell: number[];
  label: string;
  /** The row that gets a frame or, if `isColumn` is true, the column that gets a frame; null for none. */
  marked: number | null;
  isColumn?: boolean;
  /** Returns a text about a number, by its row and column. */
  textOf(row: number, column: number): string;
  open(row: number, column: number): unknown;
}

/** Returns the picture of a matrix. `room`: the panel, whose theme defines the colours. */
export function createPixels(
  room: Element,
  { shape: [rows, columns], data }: Tensor,
  { largest, least, cell: [wide, tall], label, marked, isColumn = false, textOf, open }: Pixels,
  tell: Tell,
) {
  const shades = colourTable(coloursAt(room)("--pixels"));
  const canvas = pixelled(columns, rows, (pixels) => {
    data.forEach((value, i) => (pixels[i] = shades[colourPlace(value, largest, least)]));
  });
  canvas.style.cssText = `width: ${columns * wide}px; height: ${rows * tall}px`;
  canvas.setAttribute("role", "img");
  canvas.ariaLabel = label;
  const under = ({ clientX, clientY }: MouseEvent) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const at = (share: number, count: number) => clamp(Math.floor(share * count), count);
    return [at((clientY - top) / height, rows), at((clientX - left) / width, columns)] as const;
  };
  canvas.addEventListener("click", (event) => open(...under(event)));
  canvas.addEventListener("pointermove", (event) =>
    tell(textOf(...under(event)), new DOMRect(event.clientX, event.clientY)),
  );
  canvas.addEventListener("pointerleave", () => tell(null, new DOMRect()));
  const mark = element("i");
  const [start, size, whole, px] = isColumn
    ? ["left", "width", "height", wide]
    : ["top", "height", "width", tall];
  mark.style.cssText = `${start}: ${(marked ?? 0) * px}px; ${size}: ${px}px; ${whole}: 100%`;
  return element("div", "gfz-pixels", canvas, marked !== null && mark);
}
