// The search for the best translations: greedy search (a beam of one) and beam search, with the tree of all
// candidates. The algorithm is the same as in glassformer's decoding/beam.py. Paper: §6.1.

import { numberText } from "./number_text.ts";

import type { LayerCache } from "./forward.ts";
import type { Decoding, ModelConfig, NodeState, WeighedNode } from "./types.ts";
import type { Writer } from "./writer.ts";
interface Search {
  /** The tokens with which the output must begin. */
  prefixIds: number[];
  decoding: Decoding;
}
/** The first tokens of an output that a search continues; `cache`: the decoder's cache of all rows but the last. */
interface Begun {
  ids: number[];
  cache: LayerCache[] | null;
}
interface Candidate {
  path: Path;
  token: number;
  tokenLogProb: number;
  logProb: number;
  cache: LayerCache[];
}
interface Path {
  /** The index of the path's last node in the tree. */
  node: number;
  ids: number[];
  tokenLogProbs: number[];
  logProb: number;
  score: number;
  cache: LayerCache[] | null;
}

/** The formula of `scoreOf`, for an output of n tokens. */
export const SCORE_FORMULA = "log p / ((5 + n) / 6)^α";

/** Returns the length penalty of an output, ((5 + length) / 6)^α; the length includes eos. Paper: §6.1. */
function penaltyOf(length: number, { length_penalty: alpha }: Decoding) {
  return ((5 + length) / 6) ** alpha;
}

/** Returns the score by which finished outputs are ranked. */
export function scoreOf(logProb: number, length: number, decoding: Decoding) {
  return logProb / penaltyOf(length, decoding);
}

/**
 * Returns the arithmetic of `scoreOf` as two texts without the result: the formula with its numbers, and the formula
 * with the penalty evaluated.
 */
export function scoreText(logProb: number, length: number, decoding: Decoding) {
  const [sum, alpha] = [numberText(logProb, 4), numberText(decoding.length_penalty, 2)];
  return `${sum} / ((5 + ${length}) / 6)^${alpha} = ${sum} / ${numberText(penaltyOf(length, decoding), 4)}`;
}

/**
 * Returns {finished, tree}: the best finished paths, best first, and all candidates. Log probabilities include only
 * the tokens that this search writes, not the tokens in `begun`.
 */
export async function beamSearch(writer: Writer, search: Search, begun: Begun = { ids: [], cache: null }) {
  const { prefixIds, decoding } = search;
  const { config } = writer.model;
  const beamSize = decoding.beam_size;
  const eos = config.eos_id;
  const longest = longestOutput(config, writer.sourceIds, decoding.extra_length);
  checkSearch(config, search, longest);
  const root = { token: config.bos_id, tokenLogProb: 0, logProb: 0 };
  const tree: WeighedNode[] = [{ ...root, id: 0, parent: null, position: -1, state: "kept", score: null }];
  let finished: Path[] = [];
  let living: Path[] = [{ ...begun, node: 0, tokenLogProbs: [], logProb: 0, score: 0 }];
  for (let position = begun.ids.length; position < longest && living.length > 0; position++) {
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

/**
 * Returns the `count` best continuations of the unfinished paths, best first; continuations of probability 0 are left
 * out.
 */
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

/** Returns the ids of the `count` highest log probabilities, highest first, without the ids in `suppressed`. */
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
 * Returns the state of the candidate at `rank`. A candidate that ends with eos is finished if it ranks among the
 * first N (the beam size); of the candidates without eos, the first N are kept.
 */
function stateOf(candidates: Candidate[], rank: number, beamSize: number, eos: number): NodeState {
  if (candidates[rank].token === eos) return rank < beamSize ? "finished" : "pruned";
  const before = candidates.slice(0, rank).filter(({ token }) => token !== eos).length;
  return before < beamSize ? "kept" : "pruned";
}

/** Returns the candidate's path with its token appended. */
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
