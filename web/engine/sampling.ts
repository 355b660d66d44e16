// The words that sampling may draw, with the settings of decoding/sampling.py, applied in the same order.
import { largestAt } from "./tensor.ts";

/** The settings of sampling. With topK 0 and topP 1, all words may be drawn. */
export interface Sampling {
  temperature: number;
  topK: number;
  topP: number;
}

const TINY = 2 ** -126; // the smallest temperature that Python accepts; this temperature means greedy search

/**
 * Returns the words that may be drawn, with the probability of each. Applies the temperature and keeps the `topK`
 * likeliest words. Of these words, only the likeliest remain: as few as have together at least the share `topP` of the
 * total probability of the `topK` words. Words that a recording lacks (NaN) get 0. `logProbs`: of one position, [V].
 */
export function drawable(logProbs: Float32Array, { temperature, topK, topP }: Sampling): Map<number, number> {
  const peak = logProbs[largestAt(logProbs, 1)[0]];
  const weights = Float64Array.from(
    logProbs,
    (one) => Math.exp((one - peak) / Math.max(temperature, TINY)) || 0,
  );
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  let ids = [...weights.keys()];
  if ((topK > 0 && topK < ids.length) || topP < 1) ids.sort((a, b) => weights[b] - weights[a]);
  if (topK > 0) ids = ids.slice(0, topK);
  const share = topP * ids.reduce((sum, id) => sum + weights[id] / all, 0);
  const kept: Map<number, number> = new Map();
  let sum = 0;
  for (const id of ids) {
    if (sum >= share) break;
    if (weights[id] > 0) kept.set(id, weights[id] / all);
    sum += weights[id] / all;
  }
  return new Map([...kept].map(([id, weight]) => [id, weight / sum]));
}
