// A contest of two words for one place in the translation, and the heads that decide it.
import { NO_CHANGES } from "./changes.ts";
import { largestAt, rowOf } from "./tensor.ts";

import type { Changes, Engine, Tensor, Trace } from "./types.ts";

/** A source sentence, the word that its translation has at the place, and the rival of this word. */
interface Case {
  sourceIds: number[];
  word: number;
  rival: number;
}

/** The words that are already written, and one sentence or two. */
export interface Contest {
  prefixIds: number[];
  cases: Case[];
}

export interface HeadEffect {
  attention: string;
  head: number;
  margins: number[];
  effect: number;
}

/**
 * Returns the contest of two translations: at the first place where they differ, the word of each against the other's.
 * Returns null if they do not differ.
 */
export function contestOf(
  one: { sourceIds: number[]; ids: number[] },
  other: { sourceIds: number[]; ids: number[] },
): Contest | null {
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
 * sentence counts only if it is the only word. `logProbs`: (positions, vocabulary).
 */
export function closestCall(sourceIds: number[], ids: number[], logProbs: Tensor): Contest {
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

/** Returns the margin of each case under changes: log p(word) − log p(rival). */
export async function marginsOf(
  engine: Engine,
  { prefixIds, cases }: Contest,
  changes: Partial<Changes> = {},
) {
  const found = [];
  for (const { sourceIds, word, rival } of cases) {
    const targetIds = [engine.config.bos_id, ...prefixIds];
    const trace = await engine.trace({ sourceIds, targetIds, changes: { ...NO_CHANGES, ...changes } });
    found.push(await marginOf(trace, prefixIds, word, rival));
  }
  return found;
}

async function marginOf({ remote, get }: Trace, prefixIds: number[], word: number, rival: number) {
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

/** Returns the sum of numbers. */
export function sum(numbers: number[]) {
  return numbers.reduce((total, one) => total + one, 0);
}

/** Returns heads by their attention, as a change. */
export function ablatedHeads(heads: Pick<HeadEffect, "attention" | "head">[]) {
  const found: Record<string, number[]> = {};
  for (const { attention, head } of heads) (found[attention] ??= []).push(head);
  return found;
}

/**
 * Switches off each of these heads in turn, besides the heads that are `off` already; `changes` are the other changes.
 * Yields its margins, and its effect: by how much the sum of the margins changes.
 */
export async function* headEffects(
  engine: Engine,
  contest: Contest,
  heads: Pick<HeadEffect, "attention" | "head">[],
  off: Pick<HeadEffect, "attention" | "head">[] = [],
  changes: Partial<Changes> = {},
): AsyncGenerator<HeadEffect> {
  const before = sum(await marginsOf(engine, contest, { ...changes, ablated: ablatedHeads(off) }));
  for (const { attention, head } of heads) {
    if (off.some((one) => one.attention === attention && one.head === head)) continue;
    const ablated = ablatedHeads([...off, { attention, head }]);
    const margins = await marginsOf(engine, contest, { ...changes, ablated });
    yield { attention, head, margins, effect: sum(margins) - before };
  }
}
