// A contest of two words for one place in the translation, and the heads that decide it.
import { NO_CHANGES } from "./changes.js";
import { largestAt, rowOf } from "./tensor.js";

/** @import { Changes, Engine, Tensor, Trace } from "./types.js" */

/**
 * A source sentence, the word that its translation has at the place, and the rival of this word.
 * @typedef {{sourceIds: number[], word: number, rival: number}} Case
 */

/**
 * The words that are already written, and one sentence or two.
 * @typedef {{prefixIds: number[], cases: Case[]}} Contest
 */

/** @typedef {{attention: string, head: number, margins: number[], effect: number}} HeadEffect */

/**
 * Returns the contest of two translations: at the first place where they differ, the word of each against the other's.
 * Returns null if they do not differ.
 * @param {{sourceIds: number[], ids: number[]}} one
 * @param {{sourceIds: number[], ids: number[]}} other
 * @returns {Contest | null}
 */
export function contestOf(one, other) {
  const place = one.ids.findIndex((id, at) => id !== other.ids[at]);
  if (place < 0 || other.ids[place] === undefined) return null;
  const [word, rival] = [one.ids[place], other.ids[place]];
  return {
    prefixIds: one.ids.slice(0, place),
    cases: [
      { sourceIds: one.sourceIds, word, rival },
      { sourceIds: other.sourceIds, word: rival, rival: word },
    ],
  };
}

/**
 * Returns the closest call of a translation: the word whose strongest rival comes nearest in log p. The end of the
 * sentence counts only if it is the only word.
 * @param {number[]} sourceIds
 * @param {number[]} ids
 * @param {Tensor} logProbs - (positions, vocabulary)
 * @returns {Contest}
 */
export function closestCall(sourceIds, ids, logProbs) {
  const calls = ids.slice(0, Math.max(1, ids.length - 1)).map((word, place) => {
    const row = rowOf(logProbs, place);
    const [rival] = largestAt(row, 1, (id) => id !== word);
    return { word, rival, place, margin: row[word] - row[rival] };
  });
  const won = calls.filter(({ margin }) => margin >= 0); // a beam may also write a word that a rival beats
  const { word, rival, place } = (won.length > 0 ? won : calls).reduce((best, one) =>
    one.margin < best.margin ? one : best,
  );
  return { prefixIds: ids.slice(0, place), cases: [{ sourceIds, word, rival }] };
}

/**
 * Returns the margin of each case under changes: log p(word) − log p(rival).
 * @param {Engine} engine
 * @param {Contest} contest
 * @param {Partial<Changes>} changes
 */
export async function marginsOf(engine, { prefixIds, cases }, changes = {}) {
  const found = [];
  for (const { sourceIds, word, rival } of cases) {
    const targetIds = [engine.config.bos_id, ...prefixIds];
    const trace = await engine.trace({ sourceIds, targetIds, changes: { ...NO_CHANGES, ...changes } });
    found.push(await marginOf(trace, prefixIds, word, rival));
  }
  return found;
}

/**
 * @param {Trace} trace
 * @param {number[]} prefixIds
 * @param {number} word
 * @param {number} rival
 */
async function marginOf({ remote, get }, prefixIds, word, rival) {
  if (remote) {
    const [right, wrong] = await Promise.all([word, rival].map((id) => remote.logProb([...prefixIds, id])));
    return right - wrong; // the log probabilities of the prefix cancel
  }
  const {
    shape: [, width],
    data,
  } = await get("log_probs");
  const row = prefixIds.length * width;
  return data[row + word] - data[row + rival];
}

/**
 * Returns the sum of numbers.
 * @param {number[]} numbers
 */
export function sum(numbers) {
  return numbers.reduce((total, one) => total + one, 0);
}

/**
 * Returns heads by their attention, as a change.
 * @param {Pick<HeadEffect, "attention" | "head">[]} heads
 */
export function ablatedHeads(heads) {
  /** @type {Record<string, number[]>} */
  const found = {};
  for (const { attention, head } of heads) (found[attention] ??= []).push(head);
  return found;
}

/**
 * Switches off each of these heads in turn, besides the heads that are `off` already; `changes` are the other changes.
 * Yields its margins, and its effect: by how much the sum of the margins changes.
 * @param {Engine} engine
 * @param {Contest} contest
 * @param {Pick<HeadEffect, "attention" | "head">[]} heads
 * @param {Pick<HeadEffect, "attention" | "head">[]} off
 * @param {Partial<Changes>} changes
 * @returns {AsyncGenerator<HeadEffect>}
 */
export async function* headEffects(engine, contest, heads, off = [], changes = {}) {
  const before = sum(await marginsOf(engine, contest, { ...changes, ablated: ablatedHeads(off) }));
  for (const { attention, head } of heads) {
    if (off.some((one) => one.attention === attention && one.head === head)) continue;
    const ablated = ablatedHeads([...off, { attention, head }]);
    const margins = await marginsOf(engine, contest, { ...changes, ablated });
    yield { attention, head, margins, effect: sum(margins) - before };
  }
}
