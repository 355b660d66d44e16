// A contest between two words for one position of the translation, and the heads that decide it.
import { NO_CHANGES } from "./changes.ts";
import { largestAt, rowOf } from "./tensor.ts";
import { SPACE_MARK, UNKNOWN_ID } from "./tokenizers.ts";

import type { Changes, Engine, Tensor, Tokenizer, Trace } from "./types.ts";

/** A source sentence, the word at the contested position of its translation, and the rival of this word. */
interface Case {
  sourceIds: number[];
  word: number;
  rival: number;
}

/** The output tokens before the contested position, and one or two cases. */
export interface Contest {
  prefixIds: number[];
  cases: Case[];
}

/** The log probability of a case's word, and the margin: log p(word) − log p(rival). */
interface Odds {
  logProb: number;
  margin: number;
}

/** The effect of removing a head: log p and margin of each case, and by how much the sum of the margins changes. */
export interface HeadEffect {
  attention: string;
  head: number;
  logProbs: number[];
  margins: number[];
  effect: number;
}

/**
 * Returns the contest between two translations: at the first position where they differ, the word of each translation
 * competes with the word of the other translation. Returns null if the translations do not differ.
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
 * Returns the closest call of a translation: the word whose strongest rival comes closest to the word in log p.
 * Python's `openings` uses the same rules. `logProbs`: (positions, vocabulary).
 */
export function closestCall(
  { config, tokenizers: { target } }: Pick<Engine, "config" | "tokenizers">,
  sourceIds: number[],
  ids: number[],
  logProbs: Tensor,
): Contest {
  const never = [config.pad_id, config.bos_id];
  const calls = ids.slice(0, Math.max(1, ids.length - 1)).map((word, place) => {
    const row = rowOf(logProbs, place);
    const [rival] = largestAt(row, 1, (id) => id !== word && !never.includes(id));
    const margin = row[word] - row[rival];
    const order = [-callRank(target, word, rival), Number(margin < 0), margin];
    return { word, rival, place, order };
  });
  const { word, rival, place } = calls.reduce((best, one) =>
    comesBefore(one.order, best.order) ? one : best,
  );
  return { prefixIds: ids.slice(0, place), cases: [{ sourceIds, word, rival }] };
}

/** Returns whether one list of numbers precedes another in lexicographic order. */
function comesBefore(one: number[], other: number[]) {
  const at = one.findIndex((value, place) => value !== other[place]);
  return one[at] < other[at];
}

/**
 * Returns the lower of the ranks of a word and its rival; 0 if the two words differ in case alone, as "L'" and "l'"
 * do.
 */
function callRank(tokenizer: Tokenizer, word: number, rival: number) {
  const [one, other] = tokenizer.tokens([word, rival]).map((token) => token.toLowerCase());
  return one === other ? 0 : Math.min(tokenRank(tokenizer, word), tokenRank(tokenizer, rival));
}

/** Returns 2 for a token that begins a word, 1 for a piece inside a word, 0 for a special token or punctuation. */
export function tokenRank(tokenizer: Tokenizer, id: number) {
  const [token] = tokenizer.tokens([id]);
  if (id <= UNKNOWN_ID || !/[\p{L}\p{N}]/u.test(token)) return 0;
  return tokenizer.suggestsTokens || token.startsWith(SPACE_MARK) ? 2 : 1;
}

/** Returns log p(word) and the margin, log p(word) − log p(rival), of each case, computed under `changes`. */
export async function oddsOf(
  engine: Engine,
  { prefixIds, cases }: Contest,
  changes: Partial<Changes> = {},
): Promise<Odds[]> {
  const found = [];
  for (const { sourceIds, word, rival } of cases) {
    const targetIds = [engine.config.bos_id, ...prefixIds];
    const trace = await engine.trace({ sourceIds, targetIds, changes: { ...NO_CHANGES, ...changes } });
    found.push(await oddsIn(trace, prefixIds, word, rival));
  }
  return found;
}

/** Returns the margin of each case, computed under `changes`. */
export async function marginsOf(engine: Engine, contest: Contest, changes: Partial<Changes> = {}) {
  return (await oddsOf(engine, contest, changes)).map(({ margin }) => margin);
}

async function oddsIn({ remote, get }: Trace, prefixIds: number[], word: number, rival: number) {
  if (remote) {
    const outputs = [[...prefixIds, word], [...prefixIds, rival], prefixIds];
    const [right, wrong, before] = await Promise.all(outputs.map((ids) => remote.logProb(ids)));
    return { logProb: right - before, margin: right - wrong };
  }
  const row = rowOf(await get("log_probs"), prefixIds.length);
  return { logProb: row[word], margin: row[word] - row[rival] };
}

/** Returns the sum of numbers. */
export function sum(numbers: number[]) {
  return numbers.reduce((total, one) => total + one, 0);
}

/** Returns heads in the format of the change `ablated`: lists of heads by attention. */
export function ablatedHeads(heads: Pick<HeadEffect, "attention" | "head">[]) {
  const found: Record<string, number[]> = {};
  for (const { attention, head } of heads) (found[attention] ??= []).push(head);
  return found;
}

/**
 * Switches off one head at a time, in addition to the heads in `off`, under the other changes in `changes`. Yields
 * the effect of each head.
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
    const odds = await oddsOf(engine, contest, { ...changes, ablated });
    const [logProbs, margins] = [odds.map((one) => one.logProb), odds.map((one) => one.margin)];
    yield { attention, head, logProbs, margins, effect: sum(margins) - before };
  }
}
