// What an opened feed-forward network shows: its units at one word, the words that they promote, and the arithmetic of
// the open number.
import { arithmetic } from "../../engine/arithmetic.ts";
import { isUnchanged } from "../../engine/changes.ts";
import { directParts, unitParts } from "../../engine/direct.ts";
import { readOutRun, sideOf, unitWords } from "../../engine/lens.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { digitsText } from "../../engine/number_text.ts";
import { largestAt, rowOf } from "../../engine/tensor.ts";
import { rivalsAt } from "../figure/opening.ts";
import { tokenName } from "../app/wording.ts";
import { notesOn, openWord } from "./zoom_parts.ts";

import type { Cell, Explanation, Side, Stack, Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Lit, Sentence } from "./opened.ts";

/** The points of a feed-forward network, in the order of the computation; `read` is its input. */
export const KINDS = ["read", "hidden", "activated", "output"] as const;
export type Kind = (typeof KINDS)[number];

export interface Reading {
  box: string;
  stack: Stack;
  layer: number;
  /** The position of the open word, the number of words, and the word's token. */
  row: number;
  rows: number;
  word: string;
  side: Side;
  names: Record<Kind, string>;
  numbers: Record<Kind, Float32Array>;
  /** How many units are above 0. */
  active: number;
  /** The indices of the listed units, most active first, and the index of the open unit. */
  units: number[];
  unit: number;
  /** W₂; null if the page has no matrices. */
  contract: Tensor | null;
  /** The row of W₁ and the column of W₂ of each listed unit; null if the page has no matrices. */
  matrices: { rows: Float32Array[]; columns: Float32Array[] } | null;
  /** The words that each listed unit promotes; null if unknown. */
  words: string[][] | null;
  /** What each unit adds directly to logit(word) − logit(rival), and the sum over all units; null if unknown. */
  direct: { word: string; rival: string; parts: Float64Array; sum: number } | null;
  open: { kind: Kind; at: number; made: Explanation; isChosen: boolean };
  /** The arithmetic of the open unit's sum, before its activation. */
  hidden: Explanation;
  /** The index of the output number whose products are drawn, and these products; null without the matrix. */
  output: number;
  products: number[] | null;
  notes: string[];
}

export const MOST_UNITS = 12;
const WORDS = 5;

/**
 * Apps with Python behind the page whose reader has asked for the units' words. The words need the whole output matrix.
 */
const asked = new WeakSet<App>();

/** Makes the page fetch from Python the weights that are needed to find the units' words. */
export function askForWords(app: App) {
  asked.add(app);
  app.show({ zoom: app.state.zoom && { ...app.state.zoom } });
}

/** Returns whether the units' words are available but have not been requested yet. */
export const wordsWait = (app: App) => app.engine.live === "remote" && !asked.has(app);

/**
 * Returns the data of the network that `state.zoom` names; null if `state.zoom` does not name a network. `first`: the
 * point whose number is open until the reader chooses a number.
 */
export async function readFeedForward(
  app: App,
  lit: Lit | null,
  first: Kind = "activated",
): Promise<Reading | null> {
  const { zoom } = app.state;
  const { trace, changes } = app.result.current;
  if (!zoom || !trace.has(`${zoom.box}.activated`)) return null;
  const { box } = zoom;
  const point = stepsUnder(changes).preNorm(app.config) ? "normed" : "input";
  const names = Object.fromEntries(
    KINDS.map((kind) => [kind, `${box}.${kind === "read" ? point : kind}`]),
  ) as Reading["names"];
  const place = openWord(app, box, names.activated, lit);
  const { row, stack } = place;
  const tensors = await Promise.all(KINDS.map((kind) => trace.get(names[kind])));
  const numbers = Object.fromEntries(
    KINDS.map((kind, at) => [kind, rowOf(tensors[at], row)]),
  ) as Reading["numbers"];
  const { activated, output } = numbers;
  const strongest = largestAt(activated, MOST_UNITS);
  const unit = zoom.key !== null && zoom.key in activated ? zoom.key : strongest[0];
  const units = strongest.includes(unit) ? strongest : [...strongest.slice(0, MOST_UNITS - 1), unit];
  const open = openCell(app, names, numbers, row, unit, first);
  const cell = (kind: Kind, at: number): Cell => ({ name: names[kind], index: [row, at] });
  const madeOf = ({ name, index }: Cell) => arithmetic(app, name, index);
  const shown = open.kind === "output" ? open.at : largestOf(output);
  const firsts = [cell("read", largestOf(numbers.read)), cell("hidden", unit), cell("activated", unit)];
  const contract = await contractOf(app, box);
  return {
    ...place,
    box,
    names,
    numbers,
    active: activated.filter((value) => value > 0).length,
    units,
    unit,
    contract,
    matrices: contract && (await matricesOf(app, box, units, contract)),
    words: contract && (await wordsOf(app, stack, units, contract)),
    direct: contract && (await directOf(app, box, row, contract, activated)),
    open: { ...open, made: await madeOf(cell(open.kind, open.at)) },
    hidden: await madeOf(cell("hidden", unit)),
    output: shown,
    products: contract && Array.from(rowOf(contract, shown), (value, i) => value * activated[i]),
    notes: isUnchanged(changes) ? [] : await notesOn(app, [...firsts, cell("output", shown)]),
  };
}

export const largestOf = (numbers: Float32Array) => largestAt(numbers.map(Math.abs), 1)[0] ?? 0;

/**
 * Returns the number that the reader has chosen if this box shows that number; otherwise the number of the open unit.
 */
function openCell(
  { state: { selected } }: App,
  names: Reading["names"],
  numbers: Reading["numbers"],
  row: number,
  unit: number,
  first: Kind,
) {
  const [chosenRow, at] = selected?.index ?? [];
  const kind = KINDS.find((one) => names[one] === selected?.name);
  // whether the number comes from a matrix product
  const isMade = first === "activated" || kind === "hidden" || kind === "output";
  const isOfUnit = kind === "hidden" || kind === "activated";
  if (!kind || !isMade || chosenRow !== row || (isOfUnit ? at !== unit : !(at in numbers[kind])))
    return { kind: first, at: unit, isChosen: first !== "activated" };
  return { kind, at, isChosen: true };
}

// Parts that need matrices

async function contractOf({ engine, result }: App, box: string) {
  if (engine.live === false) return null;
  const names = ["weight", "bias"].map((part) => `${box}.contract.${part}`);
  return (await engine.modelWith(names, result.current.changes.checkpoint)).weight(names[0]);
}

async function matricesOf({ engine, result }: App, box: string, units: number[], { shape, data }: Tensor) {
  if (engine.live === false) return null;
  const expand = await engine.rowsOf(`${box}.expand.weight`, units, result.current.changes.checkpoint);
  const [width, count] = shape;
  return {
    rows: units.map((_, at) => rowOf(expand, at)),
    columns: units.map((unit) => Float32Array.from({ length: width }, (_, d) => data[d * count + unit])),
  };
}

async function wordsOf(app: App, stack: Stack, units: number[], contract: Tensor) {
  const { engine } = app;
  if (engine.live === false || wordsWait(app)) return null;
  const run = await readOutRun(engine, stack, app.result.current.changes);
  return units.map((unit) => {
    const tokens = engine.tokens(sideOf(stack), unitWords(run, stack, contract, unit, WORDS));
    return tokens.map((token) => tokenName(token, app.t));
  });
}

/**
 * Returns what the units directly contribute to the word that this row of the decoder writes. An encoder has no direct
 * contributions.
 */
async function directOf(app: App, box: string, row: number, contract: Tensor, activated: Float32Array) {
  const { engine } = app;
  const { current } = app.result;
  const { ids } = current.hypothesis;
  if (engine.live !== true || box.startsWith("encoder") || row >= ids.length) return null;
  const { word, rivals } = await rivalsAt(app, current, row, 1);
  const { parts, directions } = await directParts(engine, current, {
    row,
    word: word.id,
    rival: rivals[0].id,
  });
  const direction = parts && directions.get(box);
  if (!direction) return null;
  const [own, other] = engine
    .tokens("target", [word.id, rivals[0].id])
    .map((token) => tokenName(token, app.t));
  const each = unitParts(direction, contract, activated);
  return { word: own, rival: other, parts: each, sum: each.reduce((sum, value) => sum + value, 0) };
}

// Sentences

/** Returns the sentence about the open number. The sentence also holds under the reader's changes. */
export function sentenceOf(
  { open, numbers, active, unit, units, words, word, side }: Reading,
  comma: string,
): Sentence {
  const { kind, at, made, isChosen } = open;
  const own = { word, side };
  const say = (name: string, ...values: Sentence["values"]): Sentence => {
    return { key: `zoom.units.${name}`, values, section: "3.3" };
  };
  const count = numbers.activated.length;
  if (kind === "read") return say("read", own, at, digitsText(made.result));
  if (kind === "output") return say("output", count, at, digitsText(made.result));
  const [before, after] = [numbers.hidden[unit], numbers.activated[unit]];
  const speaks =
    after > 0 &&
    words?.[units.indexOf(unit)]
      .slice(0, 2)
      .map((one) => `“${one}”`)
      .join(comma);
  if (isChosen || unit !== units[0]) {
    if (!(after > 0)) return say("silent", unit, own, digitsText(before), digitsText(after));
    return speaks
      ? say("pushes", unit, own, digitsText(after), speaks)
      : say("unit", unit, own, digitsText(after));
  }
  if (active === 0) return say("none", count, own);
  return speaks
    ? say("said", active, count, own, unit, speaks)
    : say("most", active, count, own, unit, digitsText(after));
}
