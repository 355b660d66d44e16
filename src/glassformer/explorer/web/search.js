// From a source to its best translations: greedy search (a beam of one) and beam search, with the tree of all
// that was weighed. The algorithm is that of glassformer's decoding/beam.py. Paper: §6.1.

import { Run, decode, encode, memoryKeys, paddedIds } from "./forward.js";
import { isCausal } from "./changes.js";

const EXTRA_LENGTH = 50; // an output may be so many tokens longer than its source

/** A model that has read a source and writes, token by token: `next` says what may come after some tokens. */
class Writer {
  constructor(model, changes, donors, sourceIds, signal) {
    Object.assign(this, { model, changes, donors, sourceIds, signal, memories: new Map() });
    this.cached = isCausal(changes);
    this.run = this.newRun();
  }

  newRun() {
    const run = new Run(this.model, this.changes, this.donors, this.signal);
    run.paused = this.run?.paused ?? run.paused;
    return run;
  }

  /** Returns {logProbs [V], cache} after these target ids with bos; `past` is the cache before the last. */
  async next(targetIds, past) {
    this.run = this.newRun();
    const { sourceIds, targetIds: fed } = paddedIds(this.run, this.sourceIds, targetIds);
    const memories = await this.memoriesOf(sourceIds);
    const { logProbs, cache } = await decode(this.run, fed, memories, sourceIds, this.cached ? past : null);
    const [rows, width] = logProbs.shape;
    const last = rows - 1 - (fed.length - targetIds.length); // behind it is padding
    return { logProbs: logProbs.data.subarray(last * width, (last + 1) * width), cache };
  }

  /** Returns each decoder layer's keys and values of the source, which is encoded once. */
  async memoriesOf(sourceIds) {
    if (!this.memories.has(sourceIds.length)) {
      const run = this.newRun();
      this.memories.set(sourceIds.length, memoryKeys(run, await encode(run, sourceIds)));
    }
    return this.memories.get(sourceIds.length);
  }
}

/** Returns ((5 + length) / 6)^alpha, by which a log probability is divided to give a score; eos counts. */
export function lengthPenaltyOf(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

/**
 * Returns {finished, tree}: the best paths that ended, best first, and every node that was weighed.
 * A path is {ids, tokenLogProbs, logProb, score}; the nodes are described in docs/explorer.md.
 */
export async function beamSearch(model, { changes, donors, sourceIds, signal, ...asked }) {
  const { prefixIds, beamSize, lengthPenalty } = asked;
  const eos = model.config.eos_id;
  const longest = longestOutput(model.config, sourceIds);
  checkSearch(model.config, asked, longest);
  const writer = new Writer(model, changes, donors, sourceIds, signal);
  const start = { path: { node: null }, token: model.config.bos_id, tokenLogProb: 0, logProb: 0 };
  const tree = [{ ...newNode(start, -1, "kept"), id: 0 }];
  let finished = [];
  let living = [{ node: 0, ids: [], tokenLogProbs: [], logProb: 0, cache: null }];
  for (let position = 0; position < longest && living.length > 0; position++) {
    const forced = position === longest - 1 ? eos : (prefixIds[position] ?? null);
    const penalty = lengthPenaltyOf(position + 1, lengthPenalty);
    const candidates = await bestContinuations(writer, living, forced, 2 * beamSize);
    const states = candidates.map((_, rank) => stateOf(candidates, rank, beamSize, eos));
    candidates.forEach((candidate, i) => {
      candidate.node = tree.length;
      const score = states[i] === "finished" ? candidate.logProb / penalty : null;
      tree.push({ ...newNode(candidate, position, states[i]), id: tree.length, score });
    });
    const paths = candidates.map((candidate) => extended(candidate, penalty));
    const ended = paths.filter((_, i) => states[i] === "finished");
    finished = [...finished, ...ended].sort((a, b) => b.score - a.score).slice(0, beamSize);
    living = paths.filter((_, i) => states[i] === "kept");
    if (finished.length === beamSize && !(living[0]?.score > finished.at(-1).score)) break;
  }
  if (finished.length === 0) throw new Error("no output: every continuation has probability 0 or NaN");
  return { finished, tree };
}

/** Returns how many tokens an output may have, eos included. */
function longestOutput(config, sourceIds) {
  const most = sourceIds.length + EXTRA_LENGTH;
  return config.positions === "learned" ? Math.min(most, config.max_length) : most;
}

function checkSearch(config, { prefixIds, beamSize, lengthPenalty }, longest) {
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
  if (wrong !== undefined) throw new Error(`the prefix holds the id ${wrong}, no word of the target`);
}

/** Returns the `count` best ways to go on with the living paths, best first; impossible ones are left out. */
async function bestContinuations(writer, living, forced, count) {
  const { bos_id: bos, pad_id: pad } = writer.model.config;
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

/** Returns the ids of the `count` highest log probabilities, highest first, without the suppressed ones. */
function bestTokens(logProbs, count, suppressed) {
  const best = [];
  for (let id = 0; id < logProbs.length; id++) {
    if (best.length === count && !(logProbs[id] > logProbs[best.at(-1)])) continue;
    if (suppressed.includes(id) || Number.isNaN(logProbs[id])) continue;
    let place = best.length;
    while (place > 0 && logProbs[id] > logProbs[best[place - 1]]) place--;
    best.splice(place, 0, id);
    if (best.length > count) best.pop();
  }
  return best;
}

/** Returns what becomes of a candidate: the first N may end, the first N of those that do not live on. */
function stateOf(candidates, rank, beamSize, eos) {
  if (candidates[rank].token === eos) return rank < beamSize ? "finished" : "pruned";
  const before = candidates.slice(0, rank).filter(({ token }) => token !== eos).length;
  return before < beamSize ? "kept" : "pruned";
}

function newNode({ path, token, tokenLogProb, logProb }, position, state) {
  return { id: null, parent: path.node, position, token, tokenLogProb, logProb, state, score: null };
}

/** Returns the path that is one token longer. */
function extended({ path, token, tokenLogProb, logProb, cache, node }, penalty) {
  return {
    node,
    ids: [...path.ids, token],
    tokenLogProbs: [...path.tokenLogProbs, tokenLogProb],
    logProb,
    score: logProb / penalty,
    cache,
  };
}
