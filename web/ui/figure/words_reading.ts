// What an opened Linear or Softmax shows: the words that compete at one position, from the last vector to their
// probabilities.
import { arithmetic } from "../../engine/arithmetic.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { drawable } from "../../engine/sampling.ts";
import { dot, largestAt, rowOf, tensor } from "../../engine/tensor.ts";
import { nextWords, weighedWords } from "./figure_reading.ts";
import { tokenName } from "../app/wording.ts";

import type { Sampling } from "../../engine/sampling.ts";
import type { Explanation, Part } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Candidate } from "./shown.ts";

/** A word that competes at the position. */
export interface Rival {
  id: number;
  word: string;
  /** The logit; NaN if the page does not know it. */
  logit: number;
  /** The model's probability of the word, and the word's rank by probability, from 1. */
  probability: number;
  rank: number;
  /** The word's row of the output matrix; null if the page has no matrices. */
  matrix: Float32Array | null;
}

/** The logits and probabilities of the next word in one row of the decoder; NaN if unknown. */
export interface NextWord {
  /** One logit for each word. */
  logits: Float32Array;
  logProbs: Float32Array;
  /** The total probability of the words whose logits are not known. */
  rest: number;
}

/** A position of the translation, with its two likeliest words. */
export interface Step {
  row: number;
  words: Candidate[];
}

export interface WordsReading extends NextWord {
  box: string;
  row: number;
  rows: number;
  /** The word that the decoder reads in this row. */
  read: string;
  /** The id of the word that was written, and whether the reader forced this word. */
  written: number;
  isForced: boolean;
  /** Whether the written word is the likeliest of the words that a search may write. */
  isLikeliest: boolean;
  /** The competing words, likeliest first, including the written word and the open word. */
  rivals: Rival[];
  open: Rival;
  /**
   * The decoder's last vector, and its products with the open word's row of the output matrix; null if the page has
   * no matrices.
   */
  vector: Float32Array;
  products: Float32Array | null;
  /** The open number of the last vector; null if the reader has chosen none. */
  part: { at: number; made: Explanation } | null;
  /** The products and the bias that sum to the open word's logit, and notes on the reader's changes. */
  made: Explanation | Pick<Explanation, "parts" | "notes">;
  /** The inputs of the softmax, which are the logits unless a mistake changes them; and the symbol of these inputs. */
  scores: Float32Array;
  symbol: string;
  /**
   * If the word at the shown position has hardly any competition: the position at which the two likeliest words are
   * closest; otherwise null.
   */
  closest: Step | null;
}

/**
 * Sampling among the known words: the powers e^(score ÷ temperature − shift), their sum, and the words that may be
 * drawn.
 */
export interface Sampled {
  shift: number;
  scaled(id: number): number;
  power(id: number): number;
  sum: number;
  /** Returns a word's probability at this temperature, before any words are left out. */
  share(id: number): number;
  /** The probability of drawing each word, by id; words that are left out are missing. */
  drawn: Map<number, number>;
}

/** The settings at which sampling draws from the model's own probabilities. */
export const PLAIN: Readonly<Sampling> = { temperature: 1, topK: 0, topP: 1 };
/** If a score is larger than this number, its power of e is too long to read. */
const LARGEST_EXPONENT = 12;
const TINY = 2 ** -126; // as in engine/sampling.ts
/** A word with at least this probability has no rival of interest. */
const SURE = 0.9;

/**
 * Returns the data of the Linear or Softmax that `state.zoom` names, with about `count` words. `row`: the highlighted
 * row.
 */
export async function readWords(app: App, box: string, row: number, count: number): Promise<WordsReading> {
  const { current } = app.result;
  const { hypothesis, outputTokens, targetTokens, prefixIds, trace, changes } = current;
  const at = Math.min(row, outputTokens.length - 1);
  const written = hypothesis.ids[at];
  const steps = stepsUnder(changes);
  const vector = rowOf(await trace.get("decoder.output"), at);
  const next = await nextWord(app, at);
  const isKnown = (id: number) => !Number.isNaN(next.logProbs[id]);
  const wanted = app.state.zoom?.key ?? written;
  const id = isKnown(wanted) ? wanted : written;
  const ids = listed(next.logProbs, count, [written, id]);
  const rows = await matrixRows(app, ids, vector);
  if (app.engine.live === "remote") ids.forEach((one, place) => (next.logits[one] = rows.logits[place]));
  const tokens = app.engine.tokens("target", ids);
  const rivals = ids.map((one, place) => ({
    id: one,
    word: tokenName(tokens[place], app.t),
    logit: next.logits[one],
    probability: Math.exp(next.logProbs[one]),
    rank: rankOf(next.logProbs, one),
    matrix: rows.matrix?.[place] ?? null,
  }));
  const open = rivals[ids.indexOf(id)];
  const isPlain = steps.wordScores.symbol === "logit";
  const scores = isPlain ? next.logits : steps.wordScores.of(tensor([next.logits.length], next.logits)).data;
  return {
    ...next,
    box,
    row: at,
    rows: outputTokens.length,
    read: tokenName(targetTokens[at] ?? "", app.t),
    written,
    isForced: at < prefixIds.length,
    isLikeliest:
      rivals.find((one) => one.id !== app.config.bos_id && one.id !== app.config.pad_id)?.id === written,
    rivals,
    open,
    vector,
    products: open.matrix && vector.map((value, i) => value * (open.matrix as Float32Array)[i]),
    part: await openPart(app, at),
    made: await madeOf(app, at, open, vector),
    scores,
    symbol: steps.wordScores.symbol,
    closest: rivals[0].probability >= SURE ? await closestStep(app, at) : null,
  };
}

/**
 * Returns what is known about the next word. A large model's scores stay with Python, except the scores of the words
 * that the search considered.
 */
async function nextWord(app: App, row: number): Promise<NextWord> {
  const { trace } = app.result.current;
  if (app.engine.live !== "remote") {
    const [logits, logProbs] = await Promise.all([trace.get("logits"), trace.get("log_probs")]);
    return {
      logits: rowOf(logits, row).slice(),
      logProbs: rowOf(logProbs, row),
      rest: trace.words?.rest[row] ?? 0,
    };
  }
  const unknown = () => new Float32Array(app.config.target_vocab_size).fill(NaN);
  const [logits, logProbs] = [unknown(), unknown()];
  for (const { token, tokenLogProb } of weighedWords(app, row)) logProbs[token] = tokenLogProb;
  const { ids, tokenLogProbs } = app.result.current.hypothesis;
  logProbs[ids[row]] = tokenLogProbs[row];
  const known = logProbs.reduce((sum, one) => sum + (Math.exp(one) || 0), 0);
  return { logits, logProbs, rest: Math.max(0, 1 - known) };
}

/**
 * Returns the words' rows of the output matrix, and the words' logits, in one request; null if the page has no
 * matrices.
 */
async function matrixRows(app: App, ids: number[], vector: Float32Array) {
  const { engine, config } = app;
  if (engine.live === false) return { matrix: null, logits: [] };
  const { checkpoint } = app.result.current.changes;
  const rows = await engine.rowsOf("output.weight", ids, checkpoint);
  const matrix = ids.map((_, at) => rowOf(rows, at));
  if (engine.live === true) return { matrix, logits: [] };
  const bias =
    config.output_bias && (await engine.modelWith(["output.bias"], checkpoint)).weight("output.bias");
  const logits = matrix.map((one, at) => {
    return dot(vector, 0, one, 0, one.length) + (bias ? bias.data[ids[at]] : 0);
  });
  return { matrix, logits };
}

/** Returns the terms that sum to the open word's logit. */
async function madeOf(app: App, row: number, { id, logit, matrix }: Rival, vector: Float32Array) {
  if (app.engine.live !== "remote" || !matrix) {
    const [made, after] = await Promise.all(
      ["logits", "log_probs"].map((name) => arithmetic(app, name, [row, id])),
    );
    return { ...made, notes: [...new Set([...made.notes, ...after.notes])] };
  }
  const parts: Part[] = Array.from(vector, (left, i) => ({
    label: String(i),
    left,
    right: matrix[i],
    value: left * matrix[i],
  }));
  const bias = logit - parts.reduce((sum, { value = 0 }) => sum + value, 0);
  if (app.config.output_bias) parts.push({ label: "b", value: bias });
  return { parts, notes: [app.t("zoom.words.searched")] };
}

/** Returns the number of the last vector that the reader has chosen, if any. */
async function openPart(app: App, row: number) {
  const { selected } = app.state;
  if (selected?.name !== "decoder.output" || selected.index[0] !== row) return null;
  return { at: selected.index[1], made: await arithmetic(app, selected.name, selected.index) };
}

/**
 * Returns the position, other than `row`, at which the two likeliest words have the closest probabilities; null if
 * there is no such position.
 */
async function closestStep(app: App, row: number) {
  const others = [...app.result.current.outputTokens.keys()].filter((at) => at !== row);
  const steps = others.map(async (at) => ({ row: at, words: (await nextWords(app, at, 2)).candidates }));
  return closestOf(await Promise.all(steps));
}

/** Returns the step whose two likeliest words have the most similar probabilities; in a tie, the first such step. */
export function closestOf(steps: Step[]): Step | null {
  const lead = ({ words: [first, second] }: Step) => first.probability - second.probability;
  const contested = steps.filter(({ words }) => words.length > 1);
  return contested.reduce<Step | null>((best, one) => (best && lead(best) <= lead(one) ? best : one), null);
}

/** Returns the likeliest words plus the words in `these`, likeliest first. */
export function listed(logProbs: Float32Array, count: number, these: number[]) {
  const others = new Set(these);
  const best = largestAt(logProbs, count).filter((id) => !others.has(id));
  const room = Math.max(0, count - others.size);
  return [...best.slice(0, room), ...others].sort((a, b) => logProbs[b] - logProbs[a]);
}

/** Returns the rank of a word among all known words, from 1; words with equal numbers share a rank. */
export function rankOf(numbers: ArrayLike<number>, id: number) {
  let rank = 1;
  for (let at = 0; at < numbers.length; at++) rank += Number(numbers[at] > numbers[id]);
  return rank;
}

/**
 * Returns the largest number and its index in each of `count` equal parts of a list, or all numbers if there are no
 * more than `count`. The index is −1 for a part without a number.
 */
export function largestOfParts(numbers: ArrayLike<number>, count: number) {
  const parts = new Int32Array(Math.min(count, numbers.length)).fill(-1);
  for (let id = 0; id < numbers.length; id++) {
    const part = Math.floor((id * parts.length) / numbers.length);
    if (!Number.isNaN(numbers[id]) && !(numbers[parts[part]] >= numbers[id])) parts[part] = id;
  }
  return parts;
}

/**
 * Returns what the settings of sampling do to the words of a reading: the powers of the words' scores, and the words
 * that may be drawn.
 */
export function sampledWords(
  { scores, logProbs, rest }: Pick<WordsReading, "scores" | "logProbs" | "rest">,
  sampling: Sampling,
): Sampled {
  const temperature = Math.max(sampling.temperature, TINY);
  const scaled = (id: number) => scores[id] / temperature;
  let peak = -Infinity;
  for (const score of scores) if (score > peak) peak = score;
  const shift = peak / temperature > LARGEST_EXPONENT ? peak / temperature : 0;
  const power = (id: number) => Math.exp(scaled(id) - shift);
  let known = 0;
  for (let id = 0; id < scores.length; id++) known += power(id) || 0;
  const sum = sampling.temperature === 1 ? known / (1 - rest) : known;
  return { shift, scaled, power, sum, share: (id) => power(id) / sum, drawn: drawable(logProbs, sampling) };
}
