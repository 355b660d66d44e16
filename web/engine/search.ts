// The search for the best translations: greedy search (a beam of one) and beam search, with the tree of all
// candidates. The algorithm is the same as in glassformer's decoding/beam.py. Paper: §6.1.

import { decode, encode, memoryKeys } from "./forward.ts";
import { isCausal } from "./changes.ts";
import { numberText } from "./number_text.ts";
import { Run } from "./run.ts";

import type { LayerCache } from "./forward.ts";
import type { Model } from "./model.ts";
import type { Changes, Decoding, KeyValue, ModelConfig, NodeState, Points, WeighedNode } from "./types.ts";
interface Search {
  changes: Changes;
  /** For each patch of the changes, the points of the other sentence. */
  donors: Points[];
  sourceIds: number[];
  prefixIds: number[];
  decoding: Decoding;
  signal: AbortSignal | null;
}
interface Candidate {
  path: Path;
  token: number;
  tokenLogProb: number;
  logProb: number;
  cache: LayerCache[];
}
interface Path {
  /** Its last node. */
  node: number;
  ids: number[];
  tokenLogProbs: number[];
  logProb: number;
  score: number;
  cache: LayerCache[] | null;
}

/** A model that has read a source; `next` returns the probabilities of the token after a target. */
class Writer {
  model: Model;
  changes: Changes;
  donors: Points[];
  sourceIds: number[];
  signal: AbortSignal | null;
  memories: Map<number, KeyValue[]>;
  /** Whether decoding may use a cache. */
  cached: boolean;
  run: Run;

  constructor(
    model: Model,
    changes: Changes,
    donors: Points[],
    sourceIds: number[],
    signal: AbortSignal | null,
  ) {
    this.model = model;
    this.changes = changes;
    this.donors = donors;
    this.sourceIds = sourceIds;
    this.signal = signal;
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

  /** Returns {logProbs [V], cache} after these target ids with bos; `past` is the cache before the last id. */
  async next(targetIds: number[], past: LayerCache[] | null) {
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

  /** Returns each decoder layer's keys and values of the source, which is encoded once. */
  async memoriesOf(sourceIds: number[]) {
    const known = this.memories.get(sourceIds.length);
    if (known) return known;
    const run = this.newRun(this.run.paused);
    const memories = memoryKeys(run, await encode(run, sourceIds));
    this.memories.set(sourceIds.length, memories);
    return memories;
  }
}

/** The formula of `scoreOf`, for n tokens. */
export const SCORE_FORMULA = "log p / ((5 + n) / 6)^α";

/** Returns the length penalty of an output, ((5 + length) / 6)^α; eos counts. Paper: §6.1. */
function penaltyOf(length: number, { length_penalty: alpha }: Decoding) {
  return ((5 + length) / 6) ** alpha;
}

/** Returns the score by which finished outputs are ranked. */
export function scoreOf(logProb: number, length: number, decoding: Decoding) {
  return logProb / penaltyOf(length, decoding);
}

/**
 * Returns the arithmetic of `scoreOf` before its result: the formula with its numbers, and with the penalty worked out.
 */
export function scoreText(logProb: number, length: number, decoding: Decoding) {
  const [sum, alpha] = [numberText(logProb, 4), numberText(decoding.length_penalty, 2)];
  return `${sum} / ((5 + ${length}) / 6)^${alpha} = ${sum} / ${numberText(penaltyOf(length, decoding), 4)}`;
}

/** Returns {finished, tree}: the best finished paths, best first, and all candidates. */
export async function beamSearch(model: Model, search: Search) {
  const { changes, donors, sourceIds, signal, prefixIds, decoding } = search;
  const beamSize = decoding.beam_size;
  const eos = model.config.eos_id;
  const longest = longestOutput(model.config, sourceIds, decoding.extra_length);
  checkSearch(model.config, search, longest);
  const writer = new Writer(model, changes, donors, sourceIds, signal);
  const root = { token: model.config.bos_id, tokenLogProb: 0, logProb: 0 };
  const tree: WeighedNode[] = [{ ...root, id: 0, parent: null, position: -1, state: "kept", score: null }];
  let finished: Path[] = [];
  let living: Path[] = [{ node: 0, ids: [], tokenLogProbs: [], logProb: 0, score: 0, cache: null }];
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

/** Returns the maximum number of tokens of an output, including eos. */
function longestOutput(config: ModelConfig, sourceIds: number[], extraLength: number) {
  const most = sourceIds.length + extraLength;
  return config.positions === "learned" ? Math.min(most, config.max_length) : most;
}

function checkSearch(config: ModelConfig, { prefixIds, decoding }: Search, longest: number) {
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

/** Returns the `count` best continuations of the unfinished paths, best first, without impossible ones. */
async function bestContinuations(writer: Writer, living: Path[], forced: number | null, count: number) {
  const { bos_id: bos, pad_id: pad } = writer.model.config;
  const best: Candidate[] = [];
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
function bestTokens(logProbs: Float32Array, count: number, suppressed: number[]) {
  const best: number[] = [];
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
 */
function stateOf(candidates: Candidate[], rank: number, beamSize: number, eos: number): NodeState {
  if (candidates[rank].token === eos) return rank < beamSize ? "finished" : "pruned";
  const before = candidates.slice(0, rank).filter(({ token }) => token !== eos).length;
  return before < beamSize ? "kept" : "pruned";
}

/** Returns the candidate's path, one token longer. */
function extended(
  { path, token, tokenLogProb, logProb, cache }: Candidate,
  node: number,
  decoding: Decoding,
): Path {
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
