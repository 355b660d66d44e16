// The tiles: each vector as a small texture with one cell for each number. Darker cells are larger numbers. Cells of
// the smallest numbers, and of a feed-forward network's inactive units, are blank.
import { rowOf, widthOf } from "../../engine/tensor.ts";
import { element, brushOf } from "../app/dom.ts";

import type { Tensor } from "../../engine/types.ts";
import type { Columns } from "./geometry.ts";

/**
 * The cells of a tile: the numbers of columns and rows, the size of a cell in px, and how many numbers share one
 * cell.
 */
export interface Cells {
  across: number;
  down: number;
  size: number;
  group: number;
}

const SIZES = [8, 6, 4, 3, 2, 1]; // sizes of a cell in px
const WIDEST = 14; // maximum number of columns, unless cells are 1 px
const MOST = 528; // in longer vectors, several numbers share one cell

/**
 * Returns the cells of a tile for vectors of `width` numbers in an area of room × height px. `largest`: the maximum
 * size of a cell in px.
 */
export function cellsOf(width: number, room: number, height: number, largest = 2): Cells {
  const usual = width > MOST ? Math.ceil(width / MOST) : 1;
  for (const size of SIZES.filter((one) => one <= (room < 27 || height < 20 ? 1 : largest))) {
    const [tall, most] = [Math.floor((height - 2) / size), Math.floor((room - 3) / size)].map((one) =>
      Math.max(2, one),
    );
    const group = size === 1 ? Math.max(usual, Math.ceil(width / (tall * most))) : usual;
    const count = Math.ceil(width / group);
    const across = Math.min(most, Math.max(12, Math.ceil(count / tall)));
    if (size === 1 || (across * tall >= count && across <= WIDEST))
      return { across, down: Math.ceil(count / across), size, group };
  }
  throw new Error("a tile of single px fits always");
}

/** Returns the darkness of each cell of a row, from 0 to 1. */
export function shades(x: Tensor, row: number, group: number, positive: boolean) {
  const numbers = rowOf(x, row);
  const deviation = Math.sqrt(numbers.reduce((sum, value) => sum + value * value, 0) / numbers.length) || 1;
  return Float32Array.from({ length: Math.ceil(numbers.length / group) }, (_, cell) => {
    const part = numbers.subarray(cell * group, (cell + 1) * group);
    const value = part.reduce((best, one) => (Math.abs(one) > Math.abs(best) ? one : best), 0);
    const share = positive ? value / (2.5 * deviation) : 0.5 + value / (4.2 * deviation);
    return 0.1 + 0.9 * Math.max(0, Math.min(1, share));
  });
}

/** A picture of tiles, and its position. */
export interface Strip {
  href: string;
  x: number;
  width: number;
  height: number;
}

/**
 * Returns the tiles of these columns as one picture in one colour; null if there are no columns. `largest`: the
 * maximum size of a cell in px.
 */
export function strip(
  x: Tensor,
  columns: Columns,
  height: number,
  colour: string,
  places: number[],
  positive: boolean,
  largest = 2,
): Strip | null {
  if (places.length === 0) return null;
  const width = widthOf(x);
  const made = places.map((place) => ({
    place,
    cells: cellsOf(width, columns.width[place], height, largest),
  }));
  const left = made.map(({ place, cells }) =>
    Math.round(columns.at[place] - (cells.across * cells.size) / 2),
  );
  const from = Math.min(...left);
  const to = Math.max(...made.map(({ cells }, at) => left[at] + cells.across * cells.size));
  const tall = Math.max(...made.map(({ cells }) => cells.down * cells.size));
  const canvas = element("canvas", { width: to - from, height: tall });
  const brush = brushOf(canvas);
  brush.fillStyle = colour;
  made.forEach(({ place, cells: { across, down, size, group } }, at) => {
    const top = Math.round((tall - down * size) / 2);
    shades(x, place, group, positive).forEach((shade, cell) => {
      if (cell >= across * down || (positive && shade <= 0.1)) return;
      brush.globalAlpha = shade;
      brush.fillRect(
        left[at] - from + (cell % across) * size,
        top + Math.floor(cell / across) * size,
        size,
        size,
      );
    });
  });
  return { href: canvas.toDataURL(), x: from, width: to - from, height: tall };
}
