// The lines of an opened box. They are measured after the layout: from the places of the parts that they connect.
import { drawing } from "../app/drawing.ts";
import { largestSize } from "./strips.ts";

import type { Child } from "../app/types.ts";
import type { Place, Ruler } from "./strips.ts";

/** Products smaller than this share of the largest one get no line. */
const FAINTEST = 0.04;
/** How far the lines that enter and leave a panel reach beyond it, in px. */
const [OUTSIDE, ASIDE] = [48, 20];

/** Returns the ruler of a panel. A panel that is growing, because it has just been opened, is measured at full size. */
export function rulerOf(panel: HTMLElement): Ruler {
  const { left, top, width, height } = panel.getBoundingClientRect();
  const [across, down] = [width / panel.offsetWidth || 1, height / panel.offsetHeight || 1];
  return (one) => {
    const found = one.getBoundingClientRect();
    return {
      x: (found.left - left) / across,
      y: (found.top - top) / down,
      width: found.width / across,
      height: found.height / down,
    };
  };
}

/** Returns the x coordinate of the middle of a number in a row of `count` numbers. */
export function numberX({ x, width }: Place, count: number, at: number) {
  return x + ((at + 0.5) * width) / count;
}

/** Returns the y coordinate of the lower edge of a part. */
export function lowEdge({ y, height }: Place) {
  return y + height;
}

/** Returns a line that enters a panel of this height from below, with its label. */
export function lineFromBelow(className: string, x: number, height: number, label: string): Child[] {
  return [
    drawing("path", { class: className, d: `M${x} ${height + OUTSIDE}v${-OUTSIDE}` }),
    drawing("text", { x: x + 14, y: height + 30 }, label),
  ];
}

/** Returns a line that leaves a panel upwards, with its label. */
export function lineUpwards(className: string, x: number, label: string): Child[] {
  return [
    drawing("path", { class: className, d: `M${x} ${-OUTSIDE}V0` }),
    drawing("text", { x: x + 14, y: -20 }, label),
  ];
}

/** Returns a line that enters a panel from the left, at the middle of a part. */
export function lineFromLeft(className: string, { y, height }: Place) {
  return drawing("path", { class: className, d: `M${-ASIDE} ${y + height / 2}H0` });
}

/**
 * Returns a line from each product to the sum of the products at `to`. `from` returns the coordinates of a product's
 * factor, and the line's class.
 */
export function fanOf(
  products: number[],
  [x1, y1]: [number, number],
  from: (i: number) => readonly [x: number, y: number, className: string],
) {
  const largest = largestSize(products);
  const lines = products.flatMap((product, i) => {
    const share = Math.abs(product) / largest;
    if (share < FAINTEST) return [];
    const [x, y, className] = from(i);
    const half = (y - y1) / 2;
    return drawing("path", {
      class: className,
      d: `M${x} ${y - 1}C${x} ${y - half} ${x1} ${y1 + half} ${x1} ${y1}`,
      "stroke-width": 0.6 + 2 * share,
      opacity: className ? 0.4 + 0.6 * share : 0.25 + 0.4 * share,
    });
  });
  return drawing("g", "gfz-fan", lines);
}
