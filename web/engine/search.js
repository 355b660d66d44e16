// The search for the best translations: greedy search (a beam of one) and beam search, with the tree of all
// candidates. The algorithm is the same as in glassformer's decoding/beam.py. Paper: §6.1.

import { decode, encode, memoryKeys } from "./forward.js";
import { isCausal } from "./changes.js";
import { numberText } from "./number_text.js";
import { Run } from "./run.js";

/** @import { LayerCache } from "./forward.js" */
/** @import { Model } from "./model.js" */
/** @import { Changes, Decoding, KeyValue, ModelConfig, NodeState, Points, WeighedNode } from "./types.js" */
/**
 * @typedef {object} Search
 * @property {Changes} changes
 * @property {Points[]} donors for each patch of the changes, the points of the other sentence
 * @property {number[]} sourceIds
 * @property {number[]} prefixIds
 * @property {Decoding} decoding
 * @property {AbortSignal | null} signal
 */
/** @typedef {{ path: Path, token: number, tokenLogProb: number, logProb: number, cache: LayerCache[] }} Candidate */
/**
 * @typedef {object} Path
 * @property {number} node its last node
 * @property {number[]} ids
 * @property {number[]} tokenLogProbs
 * @property {number} logProb
 * @property {number} score
 * @property {LayerCache[] | null} cache
 */

/** A model that has read a source; `next` returns the probabilities of the token after a target. */
class Writer {
  /**
   * @param {Model} model
   * @param {Changes} changes
   * @param {Points[]} donors
   * @param {number[]} sourceIds
   * @param {AbortSignal | null} signal
   */
  constructor(model, changes, donors, sourceIds, signal) {
    this.model = model;
    this.changes = changes;
    this.donors = donors;
    this.sourceIds = sourceIds;
    this.signal = signal;
    /** @type {Map<number, KeyValue[]>} */
    this.memories = new Map();
    this.cached = isCausal(changes, model.config);
    this.run = this.newRun();
  }

  /** Returns a run; `paused` is the time at which the page last handled its events. */
  newRun(paused = performance.now()) {
    const run = new Run(this.model, this.changes, this.donors, this.signal);
    run.paused = paused;
    return run;
  }

  /**
   * Returns {logProbs [V], cache} after these target ids with bos; `past` is the cache before the last id.
   * @param {number[]} targetIds
   * @param {LayerCache[] | null} past
   */
  async next(targetIds, past) {
    this.run = this.newRun(this.run.paused);
    const { sourceIds, targetIds: fed } = this.run.steps.readIds(
      this.sourceIds,
      targetIds,
      this.model.config.pad_id,
    );
    const memories = await this.memoriesOf(sourceIds);
    const { logProbs, cache } = await decode(this.run, fed, memories, sourceIds, this.cached ? past : null);
    const [rows, width] = logProbs.shape;
    const last = rows - 1 - (fed.length - targetIds.length); // padding follows it
    return { logProbs: logProbs.data.subarray(last * width, (last + 1) * width), cache };
  }

  /**
   * Returns each decoder layer's keys and values of the source, which is encoded once.
   * @param {number[]} sourceIds
   */
  async memoriesOf(sourceIds) {
    const known = this.memories.get(sourceIds.length);
    if (known) return known;
    const run = this.newRun(this.run.paused);
    const memories = memoryKeys(run, await encode(run, sourceIds));
    this.memories.set(sourceIds.length, memories);
    return memories;
  }
}

/**
 * Returns the length penalty of an output, ((5 + length) / 6)^α; eos counts. Paper: §6.1.
 * @param {number} length
 * @param {Decoding} decoding
 */
function penaltyOf(length, { length_penalty: alpha }) {
  return ((5 + length) / 6) ** alpha;
}

/**
 * Returns the score by which finished outputs are ranked.
 * @param {number} logProb
 * @param {number} length
 * @param {Decoding} decoding
 */
export function scoreOf(logProb, length, decoding) {
  return logProb / penaltyOf(length, decoding);
}

/**
 * Returns the arithmetic of `scoreOf` before its result: the formula with its numbers, and with the penalty worked out.
 * @param {number} logProb
 * @param {number} length
 * @param {Decoding} decoding
 */
export function scoreText(logProb, length, decoding) {
  const [sum, alpha] = [numberText(logProb, 4), numberText(decoding.length_penalty, 2)];
  return `${sum} / ((5 + ${length}) / 6)^${alpha} = ${sum} / ${numberText(penaltyOf(length, decoding), 4)}`;
}

/**
 * Returns {finished, tree}: the best finished paths, best first, and all candidates.
 * @param {Model} model
 * @param {Search} search
 */
export async function beamSearch(model, search) {
  const { changes, donors, sourceIds, signal, prefixIds, decoding } = search;
  const beamSize = decoding.beam_size;
  const eos = model.config.eos_id;
  const longest = longestOutput(model.config, sourceIds, decoding.extra_length);
  checkSearch(model.config, search, longest);
  const writer = new Writer(model, changes, donors, sourceIds, signal);
  const root = { token: model.config.bos_id, tokenLogProb: 0, logProb: 0 };
  /** @type {WeighedNode[]} */
  const tree = [{ ...root, id: 0, parent: null, position: -1, state: "kept", score: null }];
  /** @type {Path[]} */
  let finished = [];
  /** @type {Path[]} */
  let living = [{ node: 0, ids: [], tokenLogProbs: [], logProb: 0, score: 0, cache: null }];
  for (let position = 0; position < longest && living.length > 0; position++) {
    const forced = position === longest - 1 ? eos : (prefixIds[position] ?? null);
    const candidates = await bestContinuations(writer, living, forced, 2 * beamSize);
    const states = candidates.map((_, rank) => stateOf(candidates, rank, beamSize, eos));
    const first = tree.length;
    candidates.forEach(({ path, token, tokenLogProb, logProb }, i) => {
      const score = states[i] === "finished" ? scoreOf(logProb, position + 1, decoding) : null;
      const id = first + i;
      tree.push({ id, parent: path.node, position, token, tokenLogProb, logProb, state: states[i], score });
    });
    const paths = candidates.map((candidate, i) => extended(candidate, first + i, decoding));
    const ended = paths.filter((_, i) => states[i] === "finished");
    finished = [...finished, ...ended].sort((a, b) => b.score - a.score).slice(0, beamSize);
    living = paths.filter((_, i) => states[i] === "kept");
    if (finished.length === beamSize && !(living[0]?.score > finished[beamSize - 1].score)) break;
  }
  if (finished.length === 0) throw new Error("no output: every continuation has probability 0 or NaN");
  return { finished, tree };
}

/**
 * Returns the maximum number of tokens of an output, including eos.
 * @param {ModelConfig} config
 * @param {number[]} sourceIds
 * @param {number} extraLength
 */
function longestOutput(config, sourceIds, extraLength) {
  const most = sourceIds.length + extraLength;
  return config.positions === "learned" ? Math.min(most, config.max_length) : most;
}

/**
 * @param {ModelConfig} config
 * @param {Search} search
 * @param {number} longest
 */
function checkSearch(config, { prefixIds, decoding }, longest) {
  const { beam_size: beamSize, length_penalty: lengthPenalty } = decoding;
  if (!(Number.isInteger(beamSize) && beamSize >= 1)) {
    throw new Error(`beamSize is ${beamSize}: expected at least 1, which is greedy search`);
  }
  if (!(Math.abs(lengthPenalty) <= 100)) {
    throw new Error(`lengthPenalty is ${lengthPenalty}: expected −100 to 100`);
  }
  if (prefixIds.length >= longest) {
    throw new Error(`the prefix has ${prefixIds.length} tokens: at most ${longest - 1} leave room to end`);
  }
  const special = [config.pad_id, config.bos_id, config.eos_id];
  const wrong = prefixIds.find((id) => special.includes(id) || !(id >= 0 && id < config.target_vocab_size));
  if (wrong !== undefined)
    throw new Error(`the prefix holds the id ${wrong}, which is not a word of the target`);
}

/**
 * Returns the `count` best continuations of the unfinished paths, best first, without impossible ones.
 * @param {Writer} writer
 * @param {Path[]} living
 * @param {number | null} forced
 * @param {number} count
 */
async function bestContinuations(writer, living, forced, count) {
  const { bos_id: bos, pad_id: pad } = writer.model.config;
  /** @type {Candidate[]} */
  const best = [];
  for (const path of living) {
    const { logProbs, cache } = await writer.next([bos, ...path.ids], path.cache);
    const tokens = forced === null ? bestTokens(logProbs, count, [bos, pad]) : [forced];
    for (const token of tokens) {
      const logProb = path.logProb + logProbs[token];
      if (logProb > -Infinity) best.push({ path, token, tokenLogProb: logProbs[token], logProb, cache });
    }
  }
  return best.sort((a, b) => b.logProb - a.logProb).slice(0, count);
}

/**
 * Returns the ids of the `count` highest log probabilities, highest first, without the suppressed ones.
 * @param {Float32Array} logProbs
 * @param {number} count
 * @param {number[]} suppressed
 */
function bestTokens(logProbs, count, suppressed) {
  /** @type {number[]} */
  const best = [];
  for (let id = 0; id < logProbs.length; id++) {
    if (best.length === count && !(logProbs[id] > logProbs[best[count - 1]])) continue;
    if (suppressed.includes(id) || Number.isNaN(logProbs[id])) continue;
    let place = best.length;
    while (place > 0 && logProbs[id] > logProbs[best[place - 1]]) place--;
    best.splice(place, 0, id);
    if (best.length > count) best.pop();
  }
  return best;
}

/**
 * Returns what becomes of a candidate: with eos as its token it is finished if it is among the first N;
 * of the candidates without eos, the first N are kept.
 * @param {Candidate[]} candidates
 * @param {number} rank
 * @param {number} beamSize
 * @param {number} eos
 * @returns {NodeState}
 */
function stateOf(candidates, rank, beamSize, eos) {
  if (candidates[rank].token === eos) return rank < beamSize ? "finished" : "pruned";
  const before = candidates.slice(0, rank).filter(({ token }) => token !== eos).length;
  return before < beamSize ? "kept" : "pruned";
}

/**
 * Returns the candidate's path, one token longer.
 * @param {Candidate} candidate
 * @param {number} node
 * @param {Decoding} decoding
 * @returns {Path}
 */
function extended({ path, token, tokenLogProb, logProb, cache }, node, decoding) {
  const ids = [...path.ids, token];
  return {
    node,
    ids,
    tokenLogProbs: [...path.tokenLogProbs, tokenLogProb],
    logProb,
    score: scoreOf(logProb, ids.length, decoding),
    cache,
  };
}
