// The reasons for one word of a translation: its rivals, the heads and the source words that it depends on.
import { allHeads, attentionNames } from "./model.ts";
import { headEffects, oddsOf } from "./contest.ts";
import { largestAt, rowOf } from "./tensor.ts";

import type { Changes, Engine, Sentence, Tensor } from "./types.ts";
import type { HeadEffect } from "./contest.ts";

/** A word by its id and its log p. */
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

/** One place of a translation, with the changes under which the model wrote it. */
export interface Place {
  sourceIds: number[];
  ids: number[];
  place: number;
  changes?: Partial<Changes>;
}

/**
 * Returns the word at a place and its strongest rivals, best first. Words that were not recorded do not compete.
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
 * Ablates each head in turn. Yields its effect: by how much log p(word) − log p(rival) changes while the words before
 * the place stay as they are. Heads that the changes ablate are not tried.
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

/** Returns the changes, and besides no query of the encoder or of cross-attention may attend to one source position. */
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
 * Masks out each source position in turn. Yields its effect: by how much log p(word) − log p(rival) changes while the
 * words before the place stay as they are.
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
 * Returns the source words on which a choice depends: first the one without which the margin falls most, and then the
 * next one, if the word loses half of its probability without it. `logProb`: of the word with all source words.
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
