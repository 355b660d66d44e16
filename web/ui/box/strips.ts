// A strip: a row of numbers that can be read one by one, as squares whose area is the number's size (filled if
// positive, hollow if negative), or as bars.
import { clamp } from "../../engine/tensor.ts";
import { numberText } from "../../engine/number_text.ts";
import { drawing } from "../app/drawing.ts";

export interface Strip {
  /** A key that stays the same across redraws, so that the focus can be restored. */
  stop: string;
  /** A name for the numbers, for screen readers. */
  name: string;
  numbers: ArrayLike<number>;
  /** The absolute value at which a number's square or bar fills its cell. */
  largest: number;
  /** The same limit for negative numbers, if they have their own scale. */
  low?: number;
  bars?: boolean;
  /** For each number, the part of it that is drawn in full colour over the number itself. */
  part?: ArrayLike<number>;
  /** The index of the number whose arithmetic is open. */
  chosen?: number | null;
  className?: string;
  /** Returns a text about a number; by default, its index and value. */
  textOf?(at: number): string;
  /** Opens a number's arithmetic. */
  open(at: number): unknown;
}

/** The place of an element in its panel, in px from the panel's top left corner. */
export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Returns the place of an element in the panel. */
export type Ruler = (one: Element) => Place;

/** Receives the text and the area of the number under the pointer; null when the pointer leaves. */
export type Tell = (text: string | null, at: DOMRect) => void;

/** Longer strips are drawn as bars instead of squares. */
export const MOST_SQUARES = 32;
const BORDER = 1.5;
/** Functions that draw the numbers of a strip at its size. */
const drawAt = new WeakMap<Element, (width: number, height: number) => void>();

/** Returns the SVG paths of the positive and of the negative numbers. [cell, height]: the size of a cell in px. */
export function squarePaths(numbers: ArrayLike<number>, largest: number, [cell, height]: [number, number]) {
  const paths = { above: "", below: "" };
  const most = Math.min(cell, height) - 2;
  for (let i = 0; i < numbers.length; i++) {
    const side = Math.sqrt(Math.abs(numbers[i]) / largest) * most;
    if (!(side >= 1)) continue;
    const isBelow = numbers[i] < 0;
    const drawn = isBelow ? Math.max(0.5, side - BORDER) : side;
    const [x, y] = [(i + 0.5) * cell - drawn / 2, (height - drawn) / 2];
    paths[isBelow ? "below" : "above"] +=
      `M${short(x)} ${short(y)}h${short(drawn)}v${short(drawn)}h${short(-drawn)}z`;
  }
  return paths;
}

/**
 * Returns the SVG path of bars above and below zero. `low`: the absolute value of a negative number whose bar fills
 * the space below zero.
 */
export function barPath(
  numbers: ArrayLike<number>,
  largest: number,
  [cell, height]: [number, number],
  low = largest,
) {
  const gap = Math.min(2, cell / 4);
  const unit = (height - 4) / (largest + low);
  const base = short(2 + largest * unit);
  let path = "";
  for (let i = 0; i < numbers.length; i++) {
    const length = Math.max(0.5, Math.abs(numbers[i]) * unit) || 0;
    path += `M${short(i * cell + gap / 2)} ${base}h${short(cell - gap)}v${short(numbers[i] > 0 ? -length : length)}h${short(gap - cell)}z`;
  }
  return path;
}

const short = (value: number) => String(Math.round(value * 100) / 100);

/** Returns the largest absolute value in some lists; at least a very small number, so that it can be a divisor. */
export function largestSize(...lists: ArrayLike<number>[]) {
  let most = 1e-30;
  for (const list of lists) for (let i = 0; i < list.length; i++) most = Math.max(most, Math.abs(list[i]));
  return most;
}

/** Draws numbers with two paths: one above 0, and one below. [cell, height]: the size of a cell in px. */
function drawNumbers(
  [above, below]: SVGPathElement[],
  numbers: ArrayLike<number>,
  { bars = numbers.length > MOST_SQUARES, largest, low }: Strip,
  size: [number, number],
) {
  const paths = bars
    ? { above: barPath(numbers, largest, size, low), below: "" }
    : squarePaths(numbers, largest, size);
  above.setAttribute("d", paths.above);
  below.setAttribute("d", paths.below);
}

/** Draws the numbers of all strips in a panel, at the sizes that the layout gave them. */
export function drawStrips(panel: Element, ruler: Ruler) {
  const strips = [...panel.querySelectorAll(".gfz-strip")];
  const places = strips.map(ruler); // measured before anything is drawn, so that the browser lays out once
  strips.forEach((one, at) => drawAt.get(one)?.(places[at].width, places[at].height));
}

/**
 * Returns a strip as a slider over its numbers: arrow keys and the pointer move along the strip; Enter, the space bar
 * or a click opens a number.
 */
export function createStrip(strip: Strip, tell: Tell) {
  const { numbers, part, chosen = null } = strip;
  const count = numbers.length;
  const numbersOf = () => [drawing("path", "gfz-above"), drawing("path", "gfz-below")];
  const [whole, over] = [numbersOf(), numbersOf()];
  const cursor = drawing("rect", { class: "gfz-cursor", y: 0.5, width: `${100 / count}%`, rx: 2 });
  const role = {
    role: "slider",
    tabindex: -1,
    "aria-label": strip.name,
    "aria-valuemin": 0,
    "aria-valuemax": count - 1,
  };
  const svg = drawing(
    "svg",
    { ...role, class: `gfz-strip ${strip.className ?? ""}`, "data-stop": strip.stop },
    whole,
    part && drawing("g", "gfz-part", over),
    cursor,
  );
  drawAt.set(svg, (wide, tall) => {
    drawNumbers(whole, numbers, strip, [wide / count, tall]);
    if (part) drawNumbers(over, part, strip, [wide / count, tall]);
  });
  svg.toggleAttribute("data-chosen", chosen !== null);
  listen(svg, cursor, strip, tell);
  return svg;
}

/** Moves a strip's cursor with the pointer and the arrow keys. */
function listen(svg: SVGSVGElement, cursor: SVGRectElement, strip: Strip, tell: Tell) {
  const { numbers, chosen = null } = strip;
  const [count, last] = [numbers.length, numbers.length - 1];
  const { textOf = (place: number) => `${place}: ${numberText(numbers[place], 4)}` } = strip;
  let at = 0;
  function place(to: number) {
    at = clamp(to, count);
    cursor.setAttribute("x", `${(100 * at) / count}%`);
    svg.ariaValueNow = String(at);
    svg.ariaValueText = textOf(at);
  }
  place(chosen ?? 0);
  const under = (event: PointerEvent | MouseEvent) => {
    const { left, width: shown } = svg.getBoundingClientRect();
    return Math.floor(((event.clientX - left) / shown) * count);
  };
  svg.addEventListener("pointermove", (event) => {
    place(under(event));
    tell(`${strip.name}, ${textOf(at)}`, cursor.getBoundingClientRect());
  });
  svg.addEventListener("pointerleave", () => {
    place(chosen ?? at);
    tell(null, svg.getBoundingClientRect());
  });
  svg.addEventListener("click", (event) => {
    place(under(event));
    strip.open(at);
  });
  svg.addEventListener("keydown", (event) => {
    const ways: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
    const to = ways[event.key];
    if (event.key === "Enter" || event.key === " ") strip.open(at);
    else if (to >= 0 && to <= last) place(to);
    else return; // at either end, the arrow keys move on to the next strip
    event.preventDefault();
    event.stopPropagation();
  });
}
