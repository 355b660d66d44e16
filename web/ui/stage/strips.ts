// A strip: a row of numbers that can be read one by one, as squares whose area is the number's size (filled if
// positive, hollow if negative), or as bars.
import { numberText } from "../../engine/number_text.ts";
import { drawing } from "../figure.ts";

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
  width: number;
  height: number;
  bars?: boolean;
  /** The index of the number whose arithmetic is open. */
  chosen?: number | null;
  className?: string;
  /** Returns a text about a number; by default, its index and value. */
  textOf?(at: number): string;
  /** Opens a number's arithmetic. */
  open(at: number): unknown;
}

/** Receives the text and the area of the number under the pointer; null when the pointer leaves. */
export type Tell = (text: string | null, at: DOMRect) => void;

/** Longer strips are drawn as bars instead of squares. */
export const MOST_SQUARES = 32;
const BORDER = 1.5;

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

/**
 * Returns a strip as a slider over its numbers: arrow keys and the pointer move along the strip; Enter, the space bar
 * or a click opens a number.
 */
export function createStrip(strip: Strip, tell: Tell) {
  const { numbers, largest, width, height, chosen = null } = strip;
  const [count, last] = [numbers.length, numbers.length - 1];
  const size: [number, number] = [width / count, height];
  const asBars = strip.bars ?? count > MOST_SQUARES;
  const paths = asBars
    ? { above: barPath(numbers, largest, size, strip.low), below: "" }
    : squarePaths(numbers, largest, size);
  const cursor = drawing("rect", {
    class: "gfz-cursor",
    y: 0.5,
    width: size[0],
    height: height - 1,
    rx: 2,
  });
  const box = { width, height, viewBox: `0 0 ${width} ${height}` };
  const role = {
    role: "slider",
    tabindex: -1,
    "aria-label": strip.name,
    "aria-valuemin": 0,
    "aria-valuemax": last,
  };
  const svg = drawing(
    "svg",
    { ...box, ...role, class: `gfz-strip ${strip.className ?? ""}`, "data-stop": strip.stop },
    drawing("path", { class: "gfz-above", d: paths.above }),
    drawing("path", { class: "gfz-below", d: paths.below }),
    cursor,
  );
  let at = Math.max(0, Math.min(last, chosen ?? 0));
  const { textOf = (place: number) => `${place}: ${numberText(numbers[place], 4)}` } = strip;
  function place(to: number) {
    at = Math.max(0, Math.min(last, to));
    cursor.setAttribute("x", String(at * size[0]));
    svg.ariaValueNow = String(at);
    svg.ariaValueText = textOf(at);
  }
  place(at);
  svg.toggleAttribute("data-chosen", chosen !== null);
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
  return svg;
}
