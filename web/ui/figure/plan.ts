// The plan of the figure: what its layout depends on, gathered from the state and from the numbers.
import { ownNorms, shapeOf } from "../app/boxes.ts";
import { isLeftwards } from "./choices.ts";
import { LOW, planeOf } from "./geometry.ts";
import { seated } from "./second.ts";
import { tokenName } from "../app/wording.ts";

import type { Stack } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Plan, Plane } from "./geometry.ts";
import type { Seat, StageNumbers } from "./shown.ts";

const MOST_CHANGED = 5; // maximum number of words that keep their names because the last step changed them

/** Which words of a side have changed since the last drawing. */
type Changed = (words: string[]) => boolean[];

/** What the plan needs to know besides the numbers. */
export interface Planned {
  /** The highlighted box. */
  box: string;
  /** Whether only the encoder is visible. */
  isAlone: boolean;
  /** The size of the words. */
  size: number;
  changed: Record<"source" | "output", Changed>;
  measure(text: string, size: number, weight: number): number;
}

/**
 * Returns a function that says which of the given words differ from the words of its last call; it names no words if
 * more than a few differ.
 */
export function changedWords(): Changed {
  let last: string[] = [];
  let changed: boolean[] = [];
  return (words) => {
    if (String(words) === String(last)) return changed;
    const shift = last.length - words.length;
    const isNew = words.map((word, at) => word !== last[at] && word !== last[at + shift]);
    changed = isNew.filter(Boolean).length > MOST_CHANGED ? [] : isNew;
    last = words;
    return changed;
  };
}

/** Returns the plane in a room of this width; in a low window, norms that are boxes of their own need a larger plane. */
export function planeIn({ config, state }: App, { steps }: StageNumbers, room: number) {
  return planeOf(room, state.lecture, innerHeight, ownNorms(shapeOf(config, steps)));
}

/** Returns the plan for a plane of this size. */
export function planOf(app: App, numbers: StageNumbers, plane: Plane, planned: Planned): Plan {
  const { config } = app;
  const { width, height, least, near } = plane;
  const names = (stack: Stack) => widestName(app, stack, planned.measure);
  return {
    width,
    height,
    least,
    near,
    shape: shapeOf(config, numbers.steps),
    layers: { encoder: config.encoder_layers, decoder: config.decoder_layers },
    open: numbers.open,
    second: numbers.second !== null,
    // a low window has no room for two lines above the chapters' foot
    lines: app.state.lecture && !numbers.second && !(app.state.chapter && height < LOW) ? 2 : 1,
    lit: planned.box,
    tour: app.state.chapter > 0,
    alone: planned.isAlone,
    columns: columnsIn(app, numbers, planned),
    names: { encoder: names("encoder"), decoder: names("decoder") },
    measure: (content, isLit) => planned.measure(content, planned.size, isLit ? 650 : 400) + (isLit ? 8 : 2),
  };
}

/** Returns the labels of each column, and which columns must show their words. */
function columnsIn({ t }: App, numbers: StageNumbers, { changed }: Planned): Plan["columns"] {
  const { translated, row, source, read, at: largest, second } = numbers;
  const isOwn = numbers.steps.crossKeyValue.side === "target";
  const name = (token: string | undefined) => (token === undefined ? "" : tokenName(token, t));
  const under = (words: Seat[] | undefined, column: number) => (words ? seated(words, column, t) : "");
  const newSource = changed.source(translated.sourceTokens);
  const newOutput = changed.output(translated.outputTokens);
  return {
    encoder: {
      labels: translated.sourceTokens.map((token, at) => [name(token), under(second?.source, at)]),
      keep: (at) => Math.abs(at - source) < 3 || read[at] > 0.1 || largest.encoder === at || newSource[at],
      lit: source,
      leftwards: isLeftwards(translated.sourceTokens),
    },
    decoder: {
      labels: translated.targetTokens.map((token, at) => [
        name(token),
        name(translated.outputTokens[at]),
        under(second?.written, at),
      ]),
      keep: (at) =>
        Math.abs(at - row) < 3 || largest.decoder === at || newOutput[at] || (isOwn && largest.cross === at),
      lit: row,
      leftwards: isLeftwards(translated.outputTokens),
    },
  };
}

/** Returns the width of the widest name of a stack's boxes, measured as if each box were highlighted. */
function widestName({ payload, t }: App, stack: Stack, measure: Planned["measure"]) {
  const keys = Object.keys(payload.strings.en).filter((key) => key.startsWith(`stage.box.${stack}.`));
  const names = [...keys, "stage.box.add", ...(stack === "decoder" ? ["stage.written"] : [])];
  return Math.max(...names.flatMap((key) => t(key).split("|")).map((line) => measure(line, 12, 650)));
}
