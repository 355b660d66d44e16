// The animation of Play: a dot runs from each word that is attended to; the output of a sub-layer drops onto the strand
// (the word's vertical line) and is added; and a written word flies to the decoder's input. Each shape is drawn once,
// and the browser animates it.
import { drawing } from "../app/drawing.ts";
import { wantsStillness } from "./glide.ts";
import { boxOf, middle } from "./geometry.ts";
import { ribbonPath } from "./ribbons.ts";
import { HUES, text } from "./pen.ts";
import { rowPathOf } from "./row_path.ts";
import { arcPath, crossing } from "./strands.ts";
import { strip } from "./tiles.ts";
import { tokenName } from "../app/wording.ts";

import type { Stack } from "../../engine/types.ts";
import type { StackPlace } from "./geometry.ts";
import type { Pen } from "./pen.ts";
import type { Act } from "./play.ts";

/** The delay before a movement, and its duration, in milliseconds. */
interface Timing {
  delay: number;
  duration: number;
}

const FAINT = 0.06; // smaller weights send no dot

/** Draws and animates the computation of an act, after emptying `layer`. */
export function fly(layer: SVGElement, pen: Pen, { box, row }: Act, isFirst: boolean) {
  layer.replaceChildren();
  if (wantsStillness()) return;
  const [stack, id] = box.split(/\.(.*)/) as [Stack, string];
  if (id === "embedding") return riseFrom(layer, pen);
  if (isFirst && id !== "softmax") return flySublayer(layer, pen, stack, id, { delay: 250, duration: 800 });
  if (!isFirst) {
    const quick = (delay: number) => ({ delay, duration: 420 });
    flySublayer(layer, pen, "decoder", "self_attention", quick(0));
    flySublayer(layer, pen, "decoder", "cross_attention", quick(420));
    dropFrom(layer, pen, "decoder", "feed_forward", quick(1050));
  }
  write(layer, pen, row, isFirst ? 200 : 1300);
}

/** Sends dots from the words that a sub-layer reads, and then drops its output. */
function flySublayer(layer: SVGElement, pen: Pen, stack: Stack, id: string, { delay, duration }: Timing) {
  if (id.endsWith("attention")) read(layer, pen, stack, id, { delay, duration });
  dropFrom(layer, pen, stack, id, { delay: delay + (id.endsWith("attention") ? duration : 0), duration });
}

/** Animates the word vectors, which rise from the words to the positions. */
function riseFrom(layer: SVGElement, pen: Pen) {
  const place = pen.geometry.encoder;
  const vector = pen.numbers.vectors.get("source.embedding");
  if (!vector || !place.boxes.some(({ id }) => id === "positions")) return;
  const [from, to] = [middle(place.words), middle(boxOf(place, "positions").y)];
  tiles(layer, pen, place, vector, from, to, { delay: 200, duration: 900 });
}

/** Sends a dot from each word that is attended to; the size of the dot is the attention weight. */
function read(layer: SVGElement, pen: Pen, stack: Stack, id: string, timing: Timing) {
  const { geometry, numbers } = pen;
  const place = geometry[stack];
  const family = id === "cross_attention" ? "cross" : stack;
  const { isArc, query: lit } = rowPathOf(pen, family);
  const weights = numbers.rows[family];
  weights.forEach((weight, from) => {
    if (weight < FAINT) return;
    const way = isArc
      ? arcPath(place, from, lit, id)
      : `${ribbonPath(geometry, from, weights.length)}H${place.columns.at[lit]}`;
    const dot = drawing("circle", {
      r: 2 + 4 * Math.sqrt(weight),
      fill: isArc ? `var(${HUES[stack]})` : "var(--src)",
      stroke: "var(--card)",
    });
    along(layer, dot, way, timing);
  });
}

/** Drops a sub-layer's output from its box to the sum, while a dot runs along the residual connection. */
function dropFrom(layer: SVGElement, pen: Pen, stack: Stack, id: string, timing: Timing) {
  const { geometry, numbers } = pen;
  const place = geometry[stack];
  const output = numbers.vectors.get(`${stack}.${id}.output`);
  if (!output) return;
  const box = boxOf(place, id).y;
  const from = id === "cross_attention" ? crossing(pen) : id === "feed_forward" ? middle(box) : box[0];
  const add = middle(boxOf(place, `${id}.add`).y);
  tiles(layer, pen, place, output, from, add, timing);
  const loop = layer.parentElement?.querySelector(`.gfs-loop[data-box="${stack}.${id}"]`)?.getAttribute("d");
  const hue = `var(${HUES[stack]})`;
  if (loop) along(layer, drawing("circle", { r: 4.5, fill: hue }), loop, timing);
  const x = place.columns.at[stack === "encoder" ? numbers.source : numbers.row];
  const sum = drawing(
    "g",
    { opacity: 0 },
    drawing("circle", { cx: x, cy: add, r: 15, fill: "var(--card)", stroke: hue, "stroke-width": 2 }),
    text(x, add, "+", { anchor: "middle", size: 20, weight: 650, fill: hue }),
  );
  layer.append(sum);
  sum.animate([{ opacity: 0 }, { opacity: 1, offset: 0.2 }, { opacity: 1, offset: 0.6 }, { opacity: 0 }], {
    delay: timing.delay + timing.duration * 0.9,
    duration: 600,
  });
}

/**
 * Moves the tiles of vectors upwards: in the encoder the tiles of all words, in the decoder the tile of the highlighted
 * row.
 */
function tiles(
  layer: SVGElement,
  pen: Pen,
  place: StackPlace,
  vector: Parameters<typeof strip>[0],
  from: number,
  to: number,
  { delay, duration }: Timing,
) {
  const { numbers, colours } = pen;
  const lit = place.stack === "encoder" ? numbers.source : numbers.row;
  const others = place.stack === "encoder" ? [...place.columns.at.keys()].filter((at) => at !== lit) : [];
  for (const [columns, colour, opacity] of [
    [others, "--ink", 0.3],
    [[lit], HUES[place.stack], 1],
  ] as const) {
    const made = strip(vector, place.columns, 22, colours(colour), [...columns], false);
    if (!made) continue;
    const { href, x, width, height } = made;
    const image = drawing("image", {
      href,
      x,
      y: from - height / 2,
      width,
      height,
      style: "image-rendering:pixelated",
    });
    layer.append(image);
    image.animate(
      [
        { transform: "none", opacity: 0 },
        { transform: "none", opacity, offset: 0.15 },
        { transform: `translateY(${to - from}px)`, opacity, offset: 0.95 },
        { transform: `translateY(${to - from}px)`, opacity: 0 },
      ],
      { delay, duration, easing: "ease-in-out", fill: "both" },
    );
  }
}

/**
 * Animates the writing of a word: its bar grows; then the word rises to the written words and flies around the decoder
 * to be read next.
 */
function write(layer: SVGElement, pen: Pen, row: number, begin: number) {
  const { geometry, numbers } = pen;
  const { decoder, written, narrow } = geometry;
  const bar = layer.parentElement?.querySelector<SVGElement>(".gfs-g-softmax .gfs-bar-written");
  const x = decoder.columns.at[row];
  if (bar) {
    bar.style.transformOrigin = `${x}px 0`;
    bar.animate([{ transform: "scaleX(0)" }, { transform: "none" }], {
      delay: begin,
      duration: 500,
      easing: "ease-out",
      fill: "backwards",
    });
  }
  const next = decoder.columns.at[row + 1];
  if (narrow || next === undefined) return;
  const name = text(0, 0, tokenName(numbers.translated.outputTokens[row] ?? "", pen.t), {
    anchor: "middle",
    size: 13,
    weight: 650,
    fill: "var(--tgt)",
  });
  const [top, bottom, out] = [middle(written) + 5, middle(decoder.words) + 5, decoder.x[1] + 10];
  along(layer, name, `M${x} ${boxOf(decoder, "softmax").y[0] + 20}V${top}H${out}V${bottom}H${next}`, {
    delay: begin + 500,
    duration: 1000,
  });
}

/** Moves a shape along a path, and then removes the shape. The promise resolves when the shape has arrived. */
export function along(layer: SVGElement, piece: SVGElement, way: string, { delay, duration }: Timing) {
  piece.style.offsetPath = `path("${way}")`;
  piece.style.offsetRotate = "0deg";
  layer.append(piece);
  const ends = [{ offsetDistance: "0%" }, { offsetDistance: "100%" }];
  const flown = piece.animate(ends, { delay, duration, easing: "ease-in-out", fill: "backwards" });
  piece.style.visibility = "hidden";
  const shown = piece.animate([{ visibility: "visible" }, { visibility: "visible" }], { delay, duration });
  const remove = () => piece.remove();
  return Promise.all([flown.finished, shown.finished]).then(remove, remove);
}
