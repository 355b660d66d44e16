// The layout of an opened attention, in px from the top left of its panel.

import type { Band } from "./zoom_parts.ts";

export interface Frame {
  width: number;
  height: number;
  /** The left edges of the keys and of the values, and the widths of their cells. */
  keys: { x: number; cell: number };
  values: { x: number; cell: number };
  /** The right edge of the column of scores, and the left edge of the column of weights. */
  scores: number;
  weights: number;
  /** The height of a row of the table (the open row is three times as high), and the top of the first row. */
  row: number;
  rows: number;
  /** The vertical positions of the output, the joined heads, the weighted sum, and the query. */
  output: Band;
  joined: Band;
  sum: Band;
  query: Band;
}

const SMALLEST = 908;
const CELL = 18;
const ROWS = { least: 18, touched: 28, most: 30 }; // px; touched: least height of a row on touch screens
/** The left edge of the numbers, to the right of the words. */
const LABELS = 126;
const MARGIN = 36;
/** The widths of the columns between the keys and the values. */
const SCORES = 70;
const MASK = 112;
const WEIGHTS = 164;
const OPEN_ROWS = 3;
const ROOMY = {
  output: 26,
  thick: 40,
  fan: 76,
  joined: 34,
  funnel: 46,
  sum: 36,
  head: 40,
  gap: 18,
  foot: 34,
};
const TIGHT = {
  output: 14,
  thick: 32,
  fan: 44,
  joined: 28,
  funnel: 38,
  sum: 32,
  head: 34,
  gap: 14,
  foot: 16,
};
const ROOMY_FROM = 780;

/**
 * Returns the layout of the parts in a room. The panel is larger than the room if there are too many words or the room
 * is too narrow.
 */
export function frameOf(
  room: { width: number; height: number },
  count: { keys: number; keyWidth: number; valueWidth: number },
): Frame {
  const width = Math.max(SMALLEST, room.width);
  const gaps = room.height < ROOMY_FROM ? TIGHT : ROOMY;
  const strip = (width - LABELS - SCORES - MASK - WEIGHTS - MARGIN) / 2;
  const [key, value] = [count.keyWidth, count.valueWidth].map((numbers) => Math.min(CELL, strip / numbers));
  const output = { y: gaps.output, height: gaps.thick };
  const joined = { y: output.y + output.height + gaps.fan, height: gaps.joined };
  const sum = { y: joined.y + joined.height + gaps.funnel, height: gaps.sum };
  const rows = sum.y + sum.height + gaps.head;
  const below = gaps.gap + gaps.sum + gaps.foot;
  const lines = count.keys - 1 + OPEN_ROWS;
  const fitting = Math.floor((room.height - rows - below) / lines);
  const row = Math.max(room.width < SMALLEST ? ROWS.touched : ROWS.least, Math.min(ROWS.most, fitting));
  const end = rows + lines * row;
  const scores = LABELS + key * count.keyWidth + SCORES;
  return {
    width,
    height: end + below,
    keys: { x: LABELS, cell: key },
    values: { x: width - MARGIN - value * count.valueWidth, cell: value },
    scores,
    weights: scores + MASK,
    row,
    rows,
    output,
    joined,
    sum,
    query: { y: end + gaps.gap, height: gaps.sum },
  };
}

/** Returns the left edges and the width of the boxes of the joined heads, which stand side by side. */
export function headBoxes({ keys, values, width }: Frame, heads: number) {
  const right = Math.max(values.x, width - MARGIN);
  const step = (right - keys.x + 7) / heads;
  return { at: (head: number) => keys.x + head * step, width: step - 7 };
}
