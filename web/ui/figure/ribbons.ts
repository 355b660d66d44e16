// The ribbons: one line for each source word, from the encoder's last vector to cross-attention.
import { boxOf, rounded, topOf } from "./geometry.ts";

import type { Geometry } from "./geometry.ts";

/**
 * Returns the rank of a source word's ribbon: ribbons bend around each other from the encoder to the decoder, and the
 * ribbon of the leftmost word is the outermost.
 */
function rankOf({ encoder }: Geometry, source: number, count: number) {
  const { at } = encoder.columns;
  return at[at.length - 1] < at[0] ? count - 1 - source : source;
}

/**
 * Returns the height at which a ribbon of the memory crosses the box of cross-attention. The ribbon of the first word
 * is on top or, in a right-to-left script, the ribbon of the last word, so that ribbons do not cross.
 */
export function ribbonHeight(geometry: Geometry, source: number, count: number) {
  const { decoder } = geometry;
  const rank = rankOf(geometry, source, count);
  const [top, bottom] = boxOf(decoder, "cross_attention").y;
  const inset = Math.min(15, (bottom - top) / 8);
  return Math.round(
    top +
      inset +
      (count > 1 ? (rank * (bottom - top - 2 * inset)) / (count - 1) : (bottom - top) / 2 - inset),
  );
}

/**
 * Returns the path of a ribbon, from the encoder's last vector of a word to the left edge of the cross-attention box.
 */
export function ribbonPath(geometry: Geometry, source: number, count: number) {
  const { encoder, decoder } = geometry;
  const x = encoder.columns.at[source];
  const start = topOf(encoder);
  const [y, to] = [ribbonHeight(geometry, source, count), decoder.x[0]];
  const rank = rankOf(geometry, source, count);
  if (geometry.narrow) {
    const bus = start - 4 - (rank + 1) * (56 / Math.max(count, 8));
    const climb = 36 - (count - rank) * Math.min(2.2, 28 / count);
    return rounded(5, [x, start], [x, bus], [climb, bus], [climb, y], [to, y]);
  }
  const span = Math.min(80, 8 * count);
  const bus = start - 8 - span + (rank * span) / Math.max(count - 1, 1);
  const turn = Math.max(encoder.x[1] - 16, x + 10);
  return `${rounded(10, [x, start], [x, bus], [turn, bus])}C${encoder.x[1] + 24} ${bus} ${to - 34} ${y} ${to} ${y}`;
}

/** Returns the top edge of the nested ribbons, below the label "Memory". */
export function memoryTop({ encoder }: Geometry, count: number) {
  return topOf(encoder) - 8 - Math.min(80, 8 * count);
}
