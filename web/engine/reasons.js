// The reasons for one word of a translation: its rivals, the heads and the source words that it depends on.
import { allHeads, attentionNames } from "./model.js";
import { headEffects, marginsOf } from "./contest.js";
import { largestAt, rowOf } from "./tensor.js";

/** @import { Changes, Engine, Sentence, Tensor } from "./types.js" */
/** @import { HeadEffect } from "./contest.js" */

/** A word by its id and its log p. @typedef {{id: number, logProb: number}} Candidate */

/**
 * One place of a translation, with the changes under which the model wrote it.
 * @typedef {{sourceIds: number[], ids: number[], place: number, changes?: Partial<Changes>}} Place
 */

/**
 * Returns the word at a place and its strongest rivals, best first. Words that were not recorded do not compete.
 * @param {Tensor} logProbs - (positions, vocabulary)
 * @param {Pick<Place, "ids" | "place">} place
 * @returns {{word: Candidate, rivals: Candidate[]}}
 */
export function rivalsOf(logProbs, { ids, place }, count = 10) {
  const row = rowOf(logProbs, place);
  const candidate = (/** @type {number} */ id) => ({ id, logProb: row[id] });
  const rivals = largestAt(row, count, (id) => id !== ids[place]);
  return { word: candidate(ids[place]), rivals: rivals.map(candidate) };
}

/**
 * Ablates each head in turn. Yields its effect: by how much log p(word) − log p(rival) changes while the words before
 * the place stay as they are. Heads that the changes ablate are not tried.
 * @param {Engine} engine
 * @param {Place} place
 * @param {number} rival
 * @returns {AsyncGenerator<HeadEffect>}
 */
export function headReasons(engine, { sourceIds, ids, place, changes = {} }, rival) {
  const contest = { prefixIds: ids.slice(0, place), cases: [{ sourceIds, word: ids[place], rival }] };
  const all = allHeads(engine.config);
  const off = all.filter(({ attention, head }) => changes.ablated?.[attention]?.includes(head));
  return headEffects(engine, contest, all, off, changes);
}

/**
 * Returns the changes, and besides no query of the encoder or of cross-attention may attend to one source position.
 * @param {string[]} attentions
 * @param {Sentence} sentence
 * @param {number} position
 * @param {Partial<Changes>} changes
 * @returns {Partial<Changes>}
 */
export function withoutSource(attentions, { sourceIds, targetIds }, position, changes = {}) {
  const masks = { ...changes.masks };
  for (const name of attentions.filter((one) => /^encoder|cross_attention$/.test(one))) {
    const queries = name.startsWith("encoder") ? sourceIds : targetIds;
    const blocked = queries.map(
      (_, query) => /** @type {[number, number, boolean]} */ ([query, position, false]),
    );
    masks[name] = [...(masks[name] ?? []), ...blocked];
  }
  return { ...changes, masks };
}

/**
 * Masks out each source position in turn. Yields its effect: by how much log p(word) − log p(rival) changes while the
 * words before the place stay as they are.
 * @param {Engine} engine
 * @param {Place} place
 * @param {number} rival
 * @returns {AsyncGenerator<{position: number, effect: number}>}
 */
export async function* sourceReasons(engine, { sourceIds, ids, place, changes = {} }, rival) {
  const prefixIds = ids.slice(0, place);
  const targetIds = [engine.config.bos_id, ...prefixIds];
  const contest = { prefixIds, cases: [{ sourceIds, word: ids[place], rival }] };
  const [plain] = await marginsOf(engine, contest, changes);
  const attentions = attentionNames(engine.config);
  for (const position of sourceIds.keys()) {
    const under = withoutSource(attentions, { sourceIds, targetIds }, position, changes);
    const [margin] = await marginsOf(engine, contest, under);
    yield { position, effect: margin - plain };
  }
}

/**
 * Returns the changes with one more head ablated.
 * @param {Pick<Changes, "ablated">} changes
 * @param {Pick<HeadEffect, "attention" | "head">} one
 * @returns {Pick<Changes, "ablated">}
 */
export function alsoAblated({ ablated }, { attention, head }) {
  return { ablated: { ...ablated, [attention]: [...(ablated[attention] ?? []), head] } };
}
