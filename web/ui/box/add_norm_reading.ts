// What an opened Add & norm shows: the rows of numbers, from the vector that enters along the residual connection to
// the norm's result, and the angle between this vector and the result. In a pre-norm model, Add and Norm are separate
// boxes.
import { arithmetic } from "../../engine/arithmetic.ts";
import { isUnchanged } from "../../engine/changes.ts";
import { logitLens, readOutRun, sideOf, streamName } from "../../engine/lens.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { decimalsFor, decimalsOf, digitsText, fixedText } from "../../engine/number_text.ts";
import { momentsOf, normWeights } from "../../engine/norms.ts";
import { largestAt, rowOf, tensor } from "../../engine/tensor.ts";
import { tokenName } from "../app/wording.ts";
import { candidatesIn } from "../figure/figure_reading.ts";
import { notesOn, openWord } from "./zoom_parts.ts";

import type { Cell, Explanation, Side, Stack } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Lit, Sentence } from "./opened.ts";

/** The rows from the bottom up: x, the sub-layer's output, their sum, x̂, the gain, the bias, and the norm's result. */
export type Kind = "input" | "output" | "added" | "scaled" | "gain" | "bias" | "normed";

/** A word that the logit lens reads from a vector; for the decoder, with the word's probability. */
export interface Guess {
  word: string;
  probability: number;
}

export interface Reading {
  box: string;
  stack: Stack;
  layer: number;
  /** The box's name within its stack, such as "cross_attention.add". */
  id: string;
  row: number;
  rows: number;
  word: string;
  side: Side;
  lines: { kind: Kind; numbers: Float32Array }[];
  /** The index of the open column, and whether the reader has chosen it. */
  at: number;
  isChosen: boolean;
  moments: { mean: number; variance: number; divisor: number } | null;
  /** The name of x, and the symbol of the norm's divisor. */
  symbols: { x: string; divisor: string };
  /** The cosine between the first and the last row. */
  cosine: number;
  /** The words that the logit lens reads from the first and the last row; null if unknown. */
  guesses: [before: Guess[], after: Guess[]] | null;
  /** The arithmetic of the norm's result; null if the box has no norm. */
  made: Explanation | null;
  /** The cell of the number that is shown as the result. */
  cell: Cell;
  notes: string[];
}

const WORDS = 3;

/** Returns the data of the box that `state.zoom` names; null if it is not an Add & norm, Add or Norm. */
export async function readAddNorm(app: App, lit: Lit | null): Promise<Reading | null> {
  const { zoom } = app.state;
  const { trace, changes } = app.result.current;
  if (!zoom) return null;
  const { box } = zoom;
  const steps = stepsUnder(changes);
  const points = pointsOf(app, box);
  if (!Object.values(points).every((name) => trace.has(name))) return null;
  const place = openWord(app, box, points.input, lit);
  const numbersOf = async (name: string) => rowOf(await trace.get(name), place.row);
  const numbers: Partial<Record<Kind, Float32Array>> = {};
  for (const [kind, name] of Object.entries(points)) numbers[kind as Kind] = await numbersOf(name);
  const { input, output, added, normed } = numbers as Record<Kind, Float32Array>;
  const first = steps.shortcut.normed && output ? added.map((sum, i) => sum - output[i]) : input;
  const from = added ?? input;
  const moments = normed ? momentsOf(from, steps.deviation) : null;
  const [gain, bias] = normed ? await weightsOf(app, box) : [];
  const scaled = moments && from.map((value) => (value - moments.mean) / moments.divisor);
  const all = { input: first, output, added, scaled, gain, bias, normed };
  const lines = (Object.keys(all) as Kind[]).flatMap((kind) => {
    const found = all[kind];
    return found ? [{ kind, numbers: found }] : [];
  });
  const last = lines[lines.length - 1];
  const at =
    zoom.key !== null && zoom.key in last.numbers ? zoom.key : largestAt(last.numbers.map(Math.abs), 1)[0];
  const cell = (name: string): Cell => ({ name, index: [place.row, at] });
  const cells = Object.values(points).map(cell);
  return {
    ...place,
    box,
    lines,
    at,
    isChosen: zoom.key !== null,
    moments,
    symbols: { x: steps.shortcut.normed && output ? "LayerNorm(x)" : "x", divisor: steps.deviation.symbol },
    cosine: cosineOf(first, last.numbers),
    guesses: output ? await guessesOf(app, place.stack, [first, last.numbers]) : null,
    made: points.normed ? await arithmetic(app, points.normed, [place.row, at]) : null,
    cell: cells[cells.length - 1],
    notes: isUnchanged(changes) ? [] : await notesOn(app, cells),
  };
}

/** Returns the names of the points that a box shows, by kind, from the bottom up. */
function pointsOf({ config, result }: App, box: string): Record<string, string> & { input: string } {
  const { changes } = result.current;
  const steps = stepsUnder(changes);
  const isPre = steps.preNorm(config);
  const part = box.replace(/\.(add|norm)$/, "");
  const [, stack] = /^(encoder|decoder)$/.exec(part) ?? [];
  if (stack) {
    const input = streamName(config, changes, stack as Stack, config[`${stack as Stack}_layers`] - 1);
    return { input, ...(steps.finalNorm(config) !== "none" && { normed: `${stack}.output` }) };
  }
  const normed = `${part}.normed`;
  if (box.endsWith(".norm")) return { input: `${part}.${isPre ? "input" : "added"}`, normed };
  const sum = { input: `${part}.input`, output: `${part}.output`, added: `${part}.added` };
  return isPre ? sum : { ...sum, normed };
}

/** Returns the gain and the bias of a box's norm; returns neither if the page or the model lacks these weights. */
async function weightsOf({ config, engine, result }: App, box: string) {
  const { changes } = result.current;
  const part = box.replace(/\.(add|norm)$/, "");
  const isFinal = !part.includes(".");
  if (isFinal && stepsUnder(changes).finalNorm(config) !== "learned") return [];
  const names = normWeights(isFinal ? `${part}.norm` : `${part}_residual.norm`);
  const model =
    engine.live === false ? await engine.model() : await engine.modelWith(names, changes.checkpoint);
  return names.map((name) => model.find(name)?.data);
}

export function cosineOf(one: Float32Array, other: Float32Array) {
  const product = one.reduce((sum, value, i) => sum + value * other[i], 0);
  return product / (Math.hypot(...one) * Math.hypot(...other)) || 0;
}

/**
 * Returns the words that the logit lens reads from vectors: what the model would output if its last layer had
 * produced them.
 */
async function guessesOf(app: App, stack: Stack, vectors: [Float32Array, Float32Array]) {
  const { engine } = app;
  if (engine.live !== true) return null; // recordings lack the output matrix, and a large model's is too large to fetch
  const run = await readOutRun(engine, stack, app.result.current.changes);
  const guess = (vector: Float32Array): Guess[] => {
    const logs = logitLens(run, stack, tensor([1, vector.length], vector)).data;
    return candidatesIn(app, logs, WORDS, sideOf(stack)).map(({ token, probability }) => {
      return { word: tokenName(token, app.t), probability };
    });
  };
  return [guess(vectors[0]), guess(vectors[1])] as [Guess[], Guess[]];
}

/** Returns the angle with this cosine, in whole degrees. */
export const degrees = (cosine: number) =>
  Math.round((Math.acos(Math.max(-1, Math.min(1, cosine))) * 180) / Math.PI);

/** Returns the sentence about the box, or about the open column. The sentence also holds under the reader's changes. */
export function sentenceOf({ lines, at, isChosen, word, side, cosine, guesses, stack }: Reading): Sentence {
  const say = (name: string, ...values: Sentence["values"]): Sentence => {
    return { key: `zoom.add.${name}`, values, section: "3.1" };
  };
  const own = { word, side };
  const number = (kind: Kind) => lines.find((one) => one.kind === kind)?.numbers[at] ?? NaN;
  const [first, last] = [lines[0], lines[lines.length - 1]];
  const adds = lines.some(({ kind }) => kind === "output");
  if (isChosen) {
    const [x, y, sum] = (["input", "output", "added"] as const).map(number);
    const added = digitsText(sum);
    const decimals = decimalsFor([x, y], (one, other) => fixedText(one + other, decimalsOf([sum])));
    const values = adds ? [fixedText(x, decimals), fixedText(y, decimals), added] : [digitsText(x)];
    const ends = last.kind === "normed" ? [...values, digitsText(number("normed"))] : values;
    const key = `${adds ? "sum" : "one"}${last.kind === "normed" ? ".norm" : ""}`;
    return say(key, at, ...ends);
  }
  if (!adds)
    return say("length", own, ...[first, last].map(({ numbers }) => digitsText(Math.hypot(...numbers))));
  const turn = degrees(cosine);
  if (!guesses || stack === "encoder") return say("turned", own, turn);
  const [before, after] = guesses.map(([best]) => ({ word: best.word, side: "target" as const }));
  return before.word === after.word ? say("same", own, turn, after) : say("guess", own, turn, before, after);
}
