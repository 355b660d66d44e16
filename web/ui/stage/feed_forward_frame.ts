// The layout of an opened feed-forward network, in px from the top left of its panel.
import type { Band } from "./zoom_parts.ts";

export interface Frame {
  width: number;
  height: number;
  /** The left edge and the width that the output and the grid of all units share. */
  wide: { x: number; width: number };
  output: Band;
  /** The grid of all units: its top, its numbers of columns and rows, and the side of a cell. */
  grid: { y: number; columns: number; rows: number; cell: number };
  /** The top of the table's first row, and the height of a row. The open unit's row is three times as high. */
  rows: number;
  row: number;
  read: Band;
  /** The widths of the table's columns: unit, row of W₁, sum, activation, column of W₂, score, words. */
  widths: number[];
  /** The width of the strips in a unit's row. */
  strip: number;
}

const SMALLEST = 908;
const [LABELS, MARGIN] = [126, 24];
const [SUM, ACTIVATION, GAP, SCORE, WORDS] = [76, 140, 18, 84, 190];
const ROWS = { least: 18, touched: 28, most: 30 }; // px; touched: least height of a row on touch screens
const LARGEST_CELL = 18;
const ROOMY = { output: 26, thick: 40, fan: 64, grid: 74, below: 26, head: 40, gap: 18, read: 40, foot: 30 };
const TIGHT = { output: 14, thick: 32, fan: 40, grid: 56, below: 24, head: 34, gap: 14, read: 34, foot: 14 };
const ROOMY_FROM = 780;

/**
 * Returns the layout of the parts in a room. The panel is larger than the room if the room is too low or too narrow.
 */
export function frameOf(
  room: { width: number; height: number },
  count: { units: number; listed: number; hasMatrices: boolean; hasScores: boolean },
): Frame {
  const width = Math.max(SMALLEST, room.width);
  const gaps = room.height < ROOMY_FROM ? TIGHT : ROOMY;
  const wide = width - LABELS - MARGIN;
  const output = { y: gaps.output, height: gaps.thick };
  const lines = Math.max(1, Math.floor(Math.sqrt((count.units * gaps.grid) / wide)));
  const columns = Math.ceil(count.units / lines);
  const cell = Math.min(LARGEST_CELL, wide / columns);
  const grid = { y: output.y + output.height + gaps.fan, columns, rows: lines, cell };
  const rows = grid.y + grid.rows * cell + gaps.below + gaps.head;
  const below = gaps.gap + gaps.read + gaps.foot;
  const listed = count.listed + (count.hasMatrices ? 2 : 0);
  const fitting = Math.floor((room.height - rows - below) / listed);
  const row = Math.max(room.width < SMALLEST ? ROWS.touched : ROWS.least, Math.min(ROWS.most, fitting));
  const score = count.hasScores ? SCORE : 0;
  const strip = count.hasMatrices ? (wide - SUM - ACTIVATION - GAP - score - WORDS) / 2 : 0;
  const widths = [LABELS, strip, SUM, ACTIVATION, strip + GAP, score, WORDS + MARGIN];
  const end = rows + listed * row;
  return {
    width,
    height: end + below,
    wide: { x: LABELS, width: wide },
    output,
    grid,
    rows,
    row,
    read: { y: end + gaps.gap, height: gaps.read },
    widths,
    strip,
  };
}
