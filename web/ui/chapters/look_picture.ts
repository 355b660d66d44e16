// The picture of the first scene: rays from the source words to the word that the model writes, and a map of the model.
import { times } from "../../engine/tensor.ts";
import { sublayersOf } from "../app/boxes.ts";
import { element } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { positionAmong, stopAt } from "../figure/row_path.ts";

import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Look } from "./look_subject.ts";

const FAINT = 0.03; // smaller weights get no ray
const BROAD = 16; // px: the width of a ray with weight 1

/** A point in the picture. */
export interface Spot {
  x: number;
  y: number;
}

/** The rays of the picture: where they begin and end, and how strong they are. */
export interface Rays {
  /** The points below the source words. */
  spots: Spot[];
  /** The place of the dot, and the word to which the rays run. */
  dot: Spot;
  end: Spot;
  /** The weight of each source word, of which those without a dot get a thin ray. */
  weights: number[];
  thin: number[];
  /** Where the dotted ray of another head begins and ends. */
  pale: [from: Spot, to: Spot] | null;
  isTurned: boolean;
  canTurn: boolean;
  /** The id of the gradient from the source's colour to the target's. */
  id: string;
}

/** Returns the point of the dot at a position, which may lie between two words. */
export function dotAt(spots: Spot[], at: number): Spot {
  const [low, high] = [spots[Math.floor(at)], spots[Math.ceil(at)]];
  if (low.y !== high.y) return at % 1 < 0.5 ? low : high;
  return { x: stopAt([low.x, high.x], at % 1), y: low.y };
}

/** Returns the position of a point between the words of its line. */
export function positionAt(spots: Spot[], { x, y }: Spot) {
  const line = spots.reduce(
    (best, { y: at }) => (Math.abs(at - y) < Math.abs(best - y) ? at : best),
    Infinity,
  );
  const first = spots.findIndex((spot) => spot.y === line);
  const stops = spots.filter((spot) => spot.y === line).map((spot) => spot.x);
  return first + positionAmong(stops, x);
}

/** Returns the rays. */
export function raysOf({ spots, dot, end, weights, thin, pale, isTurned, canTurn, id }: Rays): Child[] {
  const strong = Math.max(...weights);
  return [
    drawing(
      "linearGradient",
      { id, gradientUnits: "userSpaceOnUse", x1: 0, y1: dot.y, x2: 0, y2: end.y },
      drawing("stop", { offset: 0, class: "gf-ray-begin" }),
      drawing("stop", { offset: 1, class: "gf-ray-to" }),
    ),
    pale && drawing("path", { d: curve(...pale), class: "gf-ray-pale" }),
    thin
      .filter((place) => weights[place] >= FAINT)
      .map((place) =>
        drawing("path", {
          d: curve(spots[place], end),
          class: "gf-ray-thin",
          "stroke-width": BROAD * weights[place],
        }),
      ),
    drawing("path", {
      d: curve(dot, end),
      class: "gf-ray-path",
      stroke: `url(#${id})`,
      "stroke-width": isTurned ? BROAD : Math.max(3, BROAD * strong),
    }),
    !canTurn && drawing("circle", { cx: dot.x, cy: dot.y, r: 10, class: "gf-ray-end" }),
  ];
}

/**
 * Returns the SVG path of a ray, which leaves the point `from` vertically and arrives at the point `to` vertically.
 */
function curve(from: Spot, to: Spot) {
  const fall = to.y - from.y;
  return `M${from.x} ${from.y}C${from.x} ${from.y + 0.55 * fall} ${to.x} ${to.y - 0.5 * fall} ${to.x} ${to.y}`;
}

/** Returns the point at parameter t of a ray's curve. */
export function middle(from: Spot, to: Spot, t: number): Spot {
  const fall = to.y - from.y;
  const bend = (a: number, b: number, c: number, d: number) =>
    (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t * t * c + t ** 3 * d;
  return {
    x: bend(from.x, from.x, to.x, to.x),
    y: bend(from.y, from.y + 0.55 * fall, to.y - 0.5 * fall, to.y),
  };
}

/** Returns a text in a frame at a point of the picture. */
export function chip(text: Child, { x, y }: Spot, className: string) {
  const made = element("span", `gf-ray-chip ${className}`, text);
  made.style.cssText = `--x:${x}px;top:${y}px`;
  return made;
}

/** Returns Figure 1 as a small map, in which the boxes of the shown heads are highlighted. */
export function mapOf(app: App, looks: Look[], pale: Look | null): Child[] {
  const { encoder_layers: encoder, decoder_layers: decoder } = app.config;
  const stack = (name: "encoder" | "decoder", layers: number) => {
    const isNamed = layers <= 2;
    const boxes = times(layers, (layer) => [
      ...sublayersOf(name).map((kind, at) => {
        const attention = `${name}.layers.${layer}.${kind}`;
        const lit = looks.some((look) => look.attention === attention);
        const made = element(
          "span",
          { "data-kind": kind },
          isNamed ? app.t(`look.${kind}`) : !at && app.t("stage.layer", layer),
        );
        if (lit || pale?.attention === attention) made.dataset.lit = lit ? "on" : "pale";
        return made;
      }),
      isNamed && element("p", {}, app.t("stage.layer", layer)),
    ]);
    return element("div", {}, element("strong", {}, app.t(`look.${name}`)), boxes.flat().reverse());
  };
  return [element("p", {}, app.t("look.where")), stack("encoder", encoder), stack("decoder", decoder)];
}
