// The veil, which fades the parts of the figure that an act is not about.
import { drawing } from "../app/drawing.ts";
import { boxOf } from "./geometry.ts";

import type { Stack } from "../../engine/types.ts";
import type { Geometry } from "./geometry.ts";

const AROUND = 3; // px that stay clear around a highlighted box

/**
 * Returns a veil over the figure with a window for each of these boxes; null if the list is empty, which means that all
 * boxes are highlighted.
 */
export function veilOf(geometry: Geometry, lit: string[]) {
  if (lit.length === 0) return null;
  const { width, height, decoder, encoder } = geometry;
  const boxes = lit.flatMap((name) => {
    const [stack, id] = name.split(/\.(.*)/) as [Stack, string];
    const place = geometry[stack];
    if (!place.boxes.some((box) => box.id === id)) return [];
    const [x, y] = [place.x, boxOf(place, id).y];
    return [`M${x[0] - AROUND} ${y[0] - AROUND}H${x[1] + AROUND}V${y[1] + AROUND}H${x[0] - AROUND}Z`];
  });
  const bottom = Math.max(encoder.words[0], decoder.words[0]);
  const top = Math.min(height, geometry.written[1]);
  return drawing("path", {
    d: `M0 ${top}H${width}V${bottom}H0Z${boxes.join("")}`,
    fill: "var(--paper)",
    "fill-rule": "evenodd",
    opacity: 0.72,
  });
}
