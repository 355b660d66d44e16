// The groups of the figure, from the lowest to the highest, each with the function that draws it.
import { drawArcs, drawHeads, drawLook, drawRibbons } from "./attention.ts";
import { drawGround, drawLoops, drawNames } from "./ground.ts";
import { drawGuesses, drawLinear, drawSoftmax, drawWhy } from "./next_word.ts";
import { drawSecond } from "./second_lines.ts";
import { drawLitStrands, drawStrands, drawWords } from "./strands.ts";
import { drawTiles, drawWaves } from "./vectors.ts";

import type { Child } from "../app/types.ts";
import type { Pen } from "./pen.ts";

type Layers = Record<string, (pen: Pen) => Child>;

const BELOW: Layers = { ground: drawGround };
/** The groups that appear step by step in Play, because they show what is computed. */
export const RISING: Layers = {
  strands: drawStrands,
  ribbons: drawRibbons,
  arcs: drawArcs,
  tiles: drawTiles,
  waves: drawWaves,
  lit: drawLitStrands,
  linear: drawLinear,
  softmax: drawSoftmax,
  guesses: drawGuesses,
  look: drawLook,
};
export const ABOVE: Layers = {
  loops: drawLoops,
  second: drawSecond,
  heads: drawHeads,
  names: drawNames,
  why: drawWhy,
  words: drawWords,
};
export const LAYERS: Layers = { ...BELOW, ...RISING, ...ABOVE };
