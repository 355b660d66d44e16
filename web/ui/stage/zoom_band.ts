// A vector in an opened box: the name of its step at the left, and its numbers as a strip across the whole width.
import { element } from "../dom.ts";
import { createStrip } from "./strips.ts";
import { heading, put } from "./zoom_parts.ts";

import type { Child } from "../types.ts";
import type { Strip, Tell } from "./strips.ts";
import type { Band } from "./zoom_parts.ts";

/** The left edge of the strips, and the margin to their right, in px. */
export const [LABELS, MARGIN] = [126, 36];
const INSET = 4; // px between a strip and the box around it

/** Returns the x coordinate of the middle of a strip's number, in px of the panel. */
export function stripX(width: number, count: number, at: number) {
  return LABELS + INSET + ((at + 0.5) * (width - LABELS - MARGIN - 2 * INSET)) / count;
}

/**
 * Returns a heading that names the step which computes a vector, and a strip with the vector's numbers. `width`: of the
 * panel. `more`: further elements inside the strip's box.
 */
export function vectorBand(
  step: HTMLElement,
  strip: Omit<Strip, "width" | "height">,
  { y, height, width }: Band & { width: number },
  tell: Tell,
  more: Child = null,
) {
  const wide = width - LABELS - MARGIN;
  const made = createStrip({ bars: true, ...strip, width: wide - 2 * INSET, height }, tell);
  return [
    heading(step, { y, height }),
    put(element("div", { class: "gfz-box" }, made, more), { x: LABELS, y, width: wide, height }),
  ];
}
