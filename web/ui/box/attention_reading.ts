// What an opened attention shows: the numbers of one head at one query, a sentence about them, and the arithmetic of
// the open number.
import { arithmetic } from "../../engine/arithmetic.ts";
import { isUnchanged } from "../../engine/changes.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { digitsText } from "../../engine/number_text.ts";
import { largestAt, softmax, tensor, times } from "../../engine/tensor.ts";
import { attentionName, FAMILIES } from "../app/heads.ts";
import { probabilityWords, tokenName } from "../app/wording.ts";
import { notesOn, openRow, rowAt } from "./zoom_parts.ts";

import type { Cell, Explanation, Side, Steps, Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Family } from "../app/types.ts";
import type { Lit, Sentence, Value } from "./opened.ts";

/** The points of an attention, in the order of the computation. */
export const KINDS = ["query", "key", "scores", "weights", "value", "heads", "joined", "output"] as const;
export type Kind = (typeof KINDS)[number];
/** The points that are computed with a weight matrix. */
const MADE: Kind[] = ["query", "key", "value", "output"];

/** One key, with the score and the weight that the query of the shown row gives it. */
export interface Key {
  word: string;
  score: number;
  weight: number;
  isAllowed: boolean;
}

export interface Reading {
  box: string;
  family: Family;
  layer: number;
  head: number;
  heads: number;
  /** The index of the query, and the index of the open key. */
  row: number;
  key: number;
  query: string;
  queries: number;
  querySide: Side;
  keySide: Side;
  keys: Key[];
  tensors: Record<Kind, Tensor>;
  steps: Steps;
  /** The open number, its arithmetic, and whether the reader has chosen it. */
  open: { kind: Kind; at: number; made: Explanation; isChosen: boolean };
  /** The arithmetic of the open key's score and weight. */
  score: Explanation;
  weight: Explanation;
  /**
   * Whether the explanation is about the mask, and the row of weights without a mask; null if the mask hides nothing
   * from the softmax.
   */
  isMask: boolean;
  unmasked: Float32Array | null;
  /** The divisor of a score as text, such as "√16"; "" if the score is not divided. */
  divisor: string;
  /** The index of the output number whose products are drawn, and these products; null if the page has no matrices. */
  output: number;
  products: number[] | null;
  /** Notes on the reader's changes to this row. */
  notes: string[];
  /**
   * If this head attends to nearly one word only: the head of this layer that spreads its weight most, unless that
   * head, too, attends to nearly one word only. Otherwise null.
   */
  widest: number | null;
}

const SURE = 0.99;
const RESTING = /^(<(bos|eos|pad)>|▁?[\p{P}\p{S}]+)$/u;

/** Returns the family and the layer of an attention, given the name of its box; null for any other box. */
function attentionOf(app: App, box: string) {
  const layer = Number(/\.layers\.(\d+)\./.exec(box)?.[1]);
  const family = FAMILIES.find((one) => attentionName(one, layer) === box);
  return family && app.result.current.trace.has(`${box}.weights`) ? { family, layer } : null;
}

type Place = Pick<Reading, "head" | "row" | "key">;

/** Returns the indices (head and word) that select the shown row in the tensor of a point. */
export function leadOf({ head, row, key }: Place, kind: Kind) {
  if (kind === "joined" || kind === "output") return [row];
  return [head, kind === "key" || kind === "value" ? key : row];
}

/**
 * Returns the data of the attention that `state.zoom` names; null if `state.zoom` does not name an attention. `lit`:
 * the words that are highlighted on the stage. `first`: the point whose number is open until the reader chooses a
 * number.
 */
export async function readAttention(
  app: App,
  lit: Lit | null,
  first: Kind = "weights",
): Promise<Reading | null> {
  const { zoom, heads: places } = app.state;
  const found = zoom && attentionOf(app, zoom.box);
  if (!zoom || !found) return null;
  const { box } = zoom;
  const { current } = app.result;
  const { rows, rowSide, columnSide } = app.labels(`${box}.weights`);
  const points = await Promise.all(KINDS.map((kind) => current.trace.get(`${box}.${kind}`)));
  const tensors = Object.fromEntries(KINDS.map((kind, at) => [kind, points[at]])) as Record<Kind, Tensor>;
  const [heads] = tensors.weights.shape;
  const head = Math.min(places[found.family.id].head, heads - 1);
  const row = openRow(app, found.family.stack, lit, rows.length);
  const [scores, weights] = [tensors.scores, tensors.weights].map((one) => rowAt(one, [head, row]));
  const keys = keysOf(app, box, row, scores, weights);
  const key = Math.min(zoom.key ?? largestAt(weights, 1)[0] ?? 0, keys.length - 1);
  const place = { head, row, key };
  const open = openCell(app, tensors, { ...place, box }, first);
  const cell = (kind: Kind, at: number) => arithmetic(app, `${box}.${kind}`, [...leadOf(place, kind), at]);
  const score = await cell("scores", key);
  const firsts = KINDS.map((kind) => ({
    name: `${box}.${kind}`,
    index: [...leadOf(place, kind), firstNumber({ tensors, ...place }, kind)],
  }));
  const steps = stepsUnder(current.changes);
  const weight = await cell("weights", key);
  const isKept = weight.steps.length > 0 && keepsOut(steps) && keys.some(({ isAllowed }) => !isAllowed);
  const output = open.kind === "output" ? open.at : firstNumber({ tensors, ...place }, "output");
  return {
    ...found,
    ...place,
    box,
    heads,
    query: tokenName(rows[row], app.t),
    queries: rows.length,
    querySide: rowSide,
    keySide: columnSide ?? rowSide,
    keys,
    tensors,
    steps,
    isMask: zoom.mask === true && !open.isChosen,
    unmasked: isKept ? softmax(tensor([scores.length], scores)).data : null,
    open: { ...open, made: await cell(open.kind, open.at) },
    score,
    divisor: score.steps[0]?.text.replace(/^.* \/ /, "") ?? "",
    weight,
    output,
    products: await productsOf(app, box, rowAt(tensors.joined, [row]), output),
    notes: isUnchanged(current.changes) ? [] : await notesOn(app, firsts),
    widest: widestHead(tensors.weights, row, head),
  };
}

/** Returns the keys of a row, each with its score and weight. */
function keysOf(app: App, box: string, row: number, scores: Float32Array, weights: Float32Array): Key[] {
  const mask = app.mask(box);
  return (app.labels(`${box}.weights`).columns ?? []).map((token, at) => ({
    word: tokenName(token, app.t),
    score: scores[at],
    weight: weights[at],
    isAllowed: mask.data[row * mask.columns + at] === 1,
  }));
}

/** Returns whether the softmax of a row leaves out the words that the mask hides. */
function keepsOut({ softmax, lateMask, blocked }: Steps) {
  return softmax.over === "key" && !lateMask.masks && blocked.of(0) === -Infinity;
}

/**
 * Returns the index of the number that is open when the reader chooses a point. For scores and weights, this is the
 * number of the open key; for any other point, the number with the largest absolute value.
 */
export function firstNumber({ tensors, ...place }: Place & Pick<Reading, "tensors">, kind: Kind) {
  if (kind === "scores" || kind === "weights") return place.key;
  return largestAt(rowAt(tensors[kind], leadOf(place, kind)).map(Math.abs), 1)[0] ?? 0;
}

/**
 * Returns the number that the reader has chosen if this box shows it; otherwise the first number of the point `first`.
 */
function openCell(app: App, tensors: Reading["tensors"], place: Place & Pick<Reading, "box">, first: Kind) {
  const fits = (kind: Kind, { name, index }: Cell) => {
    const at = index[index.length - 1];
    const lead = leadOf(place, kind);
    if (name !== `${place.box}.${kind}` || String(index.slice(0, -1)) !== String(lead)) return false;
    return kind === "scores" || kind === "weights" ? at === place.key : at in rowAt(tensors[kind], lead);
  };
  const { selected } = app.state;
  const kind = selected && (first === "weights" ? KINDS : MADE).find((one) => fits(one, selected));
  if (!selected || !kind)
    return { kind: first, at: firstNumber({ tensors, ...place }, first), isChosen: first !== "weights" };
  return { kind, at: selected.index[selected.index.length - 1], isChosen: true };
}

/** Returns the products that sum, with a bias, to one number of the output; null without the matrix. */
async function productsOf(app: App, box: string, joined: Float32Array, output: number) {
  const { engine } = app;
  if (engine.live === false) return null;
  const { checkpoint } = app.result.current.changes;
  const matrix = await engine.rowsOf(`${box}.output_projection.weight`, [output], checkpoint);
  return Array.from(joined, (value, i) => value * matrix.data[i]);
}

/**
 * If the peak of this head's row is near 1, returns the head whose row has the smallest peak, unless that smallest
 * peak is near 1 as well; otherwise null.
 */
export function widestHead(weights: Tensor, row: number, head: number) {
  const peaks = times(weights.shape[0], (one) => Math.max(...rowAt(weights, [one, row])));
  const widest = peaks.reduce((best, peak, one) => (peak > 0 && peak < peaks[best] ? one : best), head);
  return peaks[head] > SURE && peaks[widest] <= SURE ? widest : null;
}

// Sentences

/** Returns the sentence about the open number. The sentence also holds under the reader's changes. */
export function sentenceOf(reading: Reading): Sentence {
  const { open, heads } = reading;
  const { made, at, kind } = open;
  if (kind === "weights") return weightSentence(reading);
  const number = digitsText(made.result);
  if (made.parts.length === 0 && made.notes.length > 0)
    return { key: "zoom.about.given", values: [number], section: "3.2" };
  const key = { word: reading.keys[reading.key].word, side: reading.keySide };
  const query = { word: reading.query, side: reading.querySide };
  const [width] = reading.tensors.heads.shape.slice(-1);
  const values: Record<Exclude<Kind, "weights">, Value[]> = {
    query: [query, at, number],
    key: [key, at, number],
    scores: [query, key, number],
    value: [key, at, number],
    heads: [at, number],
    joined: [heads, Math.floor(at / width), at % width, number],
    output: [heads, at, number],
  };
  const section = kind === "scores" || kind === "heads" ? "3.2.1" : "3.2.2";
  return { key: `zoom.about.${kind}`, values: values[kind], section };
}

function weightSentence(reading: Reading): Sentence {
  const { keys, key, keySide, steps, unmasked, isMask } = reading;
  const { steps: stages } = reading.weight;
  const { word, weight, isAllowed } = keys[key];
  const [own, share] = [{ word, side: keySide }, probabilityWords(weight)];
  const sum = keys.reduce((total, one) => total + one.weight, 0).toFixed(3);
  const scored = keys.filter(
    ({ isAllowed, score }) => isAllowed || steps.blocked.of(score) > -Infinity,
  ).length;
  const say = (name: string, ...values: Value[]) => ({ key: `zoom.about.${name}`, values, section: "3.2.1" });
  if (stages.length === 0) return say("hand", own, share); // the reader has set the weights by hand
  if (steps.softmax.over === "query") return say("columns", own, share, sum);
  const isLate = steps.lateMask.masks && keys.some(({ isAllowed }) => !isAllowed);
  if (isLate) return say("late", scored, own, share, sum);
  const isWhole = keys.every((one) => one.isAllowed);
  if (isMask && isAllowed && (unmasked || isWhole)) {
    const kind = isWhole ? ".none" : hidesLater(reading) ? "" : ".some";
    const asked = { word: reading.query, side: reading.querySide };
    return { ...say(`mask${kind}`, asked, scored, keys.length), section: "3.2.3" };
  }
  if (scored === 1 && weight > 0) return say("single", own, share);
  return isAllowed || weight > 0
    ? say("weights", scored, own, share)
    : { ...say("masked", own), section: "3.2.3" };
}

/** Returns whether the mask hides exactly the later words from a row of the decoder. */
export function hidesLater({ family, keys, row }: Reading) {
  return family.id === "decoder" && keys.every(({ isAllowed }, at) => isAllowed === at <= row);
}

/**
 * If special tokens and punctuation have together more than half of the row's weight, returns these tokens and their
 * share; otherwise null.
 */
export function restingPlaces(keys: Key[], tokens: string[]) {
  const resting = keys.filter(({ weight }, at) => RESTING.test(tokens[at]) && weight >= 0.05);
  const share = resting.reduce((sum, { weight }) => sum + weight, 0);
  return share > 0.5 ? { words: [...new Set(resting.map(({ word }) => `“${word}”`))], share } : null;
}
