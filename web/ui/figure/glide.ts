// Animates boxes, with their names, when the layout changes; their content fades in afterwards.

import type { Area } from "./geometry.ts";
/** Returns whether the reader has asked for reduced motion. */
export const wantsStillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Returns the areas of the drawn boxes, by name. */
export function areasIn(svg: SVGElement) {
  const found = new Map<string, Area>();
  for (const box of svg.querySelectorAll<SVGElement>(".gfs-box")) {
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) =>
      Number(box.firstElementChild?.getAttribute(name)),
    );
    found.set(box.dataset.box ?? "", { x: [x, x + width], y: [y, y + height] });
  }
  return found;
}

/** Animates the boxes and their names from their old areas to their new ones, while `content` fades in. */
export function glide(svg: SVGElement, before: Map<string, Area>, content: SVGElement[], duration: number) {
  if (wantsStillness()) return;
  const timing = { duration, easing: "ease-out" };
  let hasMoved = false;
  for (const [name, { x, y }] of areasIn(svg)) {
    const from = before.get(name);
    if (!from || String([from.x, from.y]) === String([x, y])) continue;
    hasMoved = true;
    const scale = [from.x, from.y].map((span, at) => (span[1] - span[0]) / ([x, y][at][1] - [x, y][at][0]));
    const moved = `translate(${from.x[0] - scale[0] * x[0]}px, ${from.y[0] - scale[1] * y[0]}px) scale(${scale[0]}, ${scale[1]})`;
    const aside = `translate(${from.x[0] - x[0]}px, ${(from.y[0] + from.y[1] - y[0] - y[1]) / 2}px)`;
    for (const one of svg.querySelectorAll<SVGElement>(`[data-box="${name}"]:is(.gfs-box, .gfs-box-name)`))
      one.animate([{ transform: one.matches(".gfs-box") ? moved : aside }, { transform: "none" }], timing);
  }
  if (hasMoved) for (const one of content) one.animate([{ opacity: 0 }, { opacity: 1 }], timing);
}
