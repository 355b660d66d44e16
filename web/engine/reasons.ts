// The reasons for one word of a translation: its rivals, and the heads and source words that it depends on.
import { allHeads, attentionNames } from "./model.ts";
import { headEffects, oddsOf } from "./contest.ts";
import { largestAt, rowOf } from "./tensor.ts";

import type { Changes, Engine, Sentence, Tensor } from "./types.ts";
import type { HeadEffect } from "./contest.ts";

/** A word's id and its log p. */
interface Candidate {
  id: number;
  logProb: number;
}

/** The effect of hiding a source position: the change of the margin, and the word's new log p. */
interface SourceReason {
  position: number;
  effect: number;
  logProb: number;
}

/** One position of a translation, and the changes under which the model wrote it. */
export interface Place {
  sourceIds: number[];
  ids: number[];
  place: number;
  changes?: Partial<Changes>;
}

/**
 * Returns the word at a position and its strongest rivals, best first. Words that were not recorded are left out.
 * `logProbs`: (positions, vocabulary).
 */
export function rivalsOf(
  logProbs: Tensor,
  { ids, place }: Pick<Place, "ids" | "place">,
  count = 10,
): { word: Candidate; rivals: Candidate[] } {
  const row = rowOf(logProbs, place);
  const candidate = (id: number) => ({ id, logProb: row[id] });
  const rivals = largestAt(row, count, (id) => id !== ids[place]);
  return { word: candidate(ids[place]), rivals: rivals.map(candidate) };
}

/**
 * Ablates one head at a time. Yields the head's effect: by how much log p(word) − log p(rival) changes if the words
 * before the position stay as they are. Skips heads that the changes ablate already.
 */
export function headReasons(
  engine: Engine,
  { sourceIds, ids, place, changes = {} }: Place,
  rival: number,
): AsyncGenerator<HeadEffect> {
  const contest = { prefixIds: ids.slice(0, place), cases: [{ sourceIds, word: ids[place], rival }] };
  const all = allHeads(engine.config);
  const off = all.filter(({ attention, head }) => changes.ablated?.[attention]?.includes(head));
  return headEffects(engine, contest, all, off, changes);
}

/**
 * Returns the changes plus masks that hide one source position from the encoder's self-attention and from
 * cross-attention.
 */
export function withoutSource(
  attentions: string[],
  { sourceIds, targetIds }: Sentence,
  position: number,
  changes: Partial<Changes> = {},
): Partial<Changes> {
  const masks = { ...changes.masks };
  for (const name of attentions.filter((one) => /^encoder|cross_attention$/.test(one))) {
    const queries = name.startsWith("encoder") ? sourceIds : targetIds;
    const blocked = queries.map((_, query) => [query, position, false] as [number, number, boolean]);
    masks[name] = [...(masks[name] ?? []), ...blocked];
  }
  return { ...changes, masks };
}

/**
 * Masks out one source position at a time. Yields the position's effect: by how much log p(word) − log p(rival)
 * changes if the words before the predicted position stay as they are.
 */
export async function* sourceReasons(
  engine: Engine,
  { sourceIds, ids, place, changes = {} }: Place,
  rival: number,
): AsyncGenerator<SourceReason> {
  const prefixIds = ids.slice(0, place);
  const targetIds = [engine.config.bos_id, ...prefixIds];
  const contest = { prefixIds, cases: [{ sourceIds, word: ids[place], rival }] };
  const [plain] = await oddsOf(engine, contest, changes);
  const attentions = attentionNames(engine.config);
  for (const position of sourceIds.keys()) {
    const under = withoutSource(attentions, { sourceIds, targetIds }, position, changes);
    const [{ margin, logProb }] = await oddsOf(engine, contest, under);
    yield { position, effect: margin - plain.margin, logProb };
  }
}

/**
 * Returns the source words on which the choice of a word depends: the source word whose removal lowers the margin
 * most, and the source word with the next largest effect if its removal at least halves the word's probability.
 * `logProb`: log p of the word when no source word is hidden.
 */
export function neededOf(reasons: SourceReason[], logProb: number) {
  const falls = reasons.filter(({ effect }) => effect < 0).sort((a, b) => a.effect - b.effect);
  return falls.slice(0, 2).filter((one, at) => at === 0 || one.logProb <= logProb - Math.LN2);
}

/** Returns the changes with one more head ablated. */
export function alsoAblated(
  { ablated }: Pick<Changes, "ablated">,
  { attention, head }: Pick<HeadEffect, "attention" | "head">,
): Pick<Changes, "ablated"> {
  return { ablated: { ...ablated, [attention]: [...(ablated[attention] ?? []), head] } };
}
