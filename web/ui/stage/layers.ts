// The groups of the figure, from the lowest to the highest, each with the function that draws it.
import { drawArcs, drawHeads, drawLook, drawRibbons } from "./attention.ts";
import { drawGround, drawLoops, drawNames } from "./ground.ts";
import { drawGuesses, drawLinear, drawSoftmax, drawWhy } from "./next_word.ts";
import { drawSecond } from "./second.ts";
import { drawLitStrands, drawStrands, drawWords } from "./strands.ts";
import { drawTiles, drawWaves } from "./vectors.ts";

import type { Child } from "../types.ts";
import type { Pen } from "./pen.ts";

interface Layer {
  name: string;
  draw(pen: Pen): Child;
  /** Whether the group appears step by step in Play, because it shows what is computed. */
  rises?: true;
}

export const LAYERS: Layer[] = [
  { name: "ground", draw: drawGround },
  { name: "strands", draw: drawStrands, rises: true },
  { name: "ribbons", draw: drawRibbons, rises: true },
  { name: "arcs", draw: drawArcs, rises: true },
  { name: "tiles", draw: drawTiles, rises: true },
  { name: "waves", draw: drawWaves, rises: true },
  { name: "lit", draw: drawLitStrands, rises: true },
  { name: "linear", draw: drawLinear, rises: true },
  { name: "softmax", draw: drawSoftmax, rises: true },
  { name: "guesses", draw: drawGuesses, rises: true },
  { name: "look", draw: drawLook, rises: true },
  { name: "loops", draw: drawLoops },
  { name: "second", draw: drawSecond },
  { name: "heads", draw: drawHeads },
  { name: "names", draw: drawNames },
  { name: "why", draw: drawWhy },
  { name: "words", draw: drawWords },
];
