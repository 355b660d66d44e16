// The classic mistakes of Transformer implementations, and the steps of the forward pass that each mistake replaces.

import { STEPS, keyValue, norm, paddingMask } from "./forward.js";
import { softmax, tensor } from "./tensor.js";

/** @import { Run } from "./run.js" */
/** @import { Changes, Mask, ModelConfig, Scale, Steps, Tensor } from "./types.js" */

/** @type {Scale} */
const UNSCALED = { square: () => 1, symbol: "" };

/**
 * The steps that each classic mistake replaces, by its id. If two mistakes replace one step, the earlier
 * mistake in this table applies.
 * @type {Record<string, Partial<Steps>>}
 */
export const MISTAKES = {
  norm_order: { preNorm: (config) => config.norm !== "pre", finalNorm: otherFinalNorm },
  residual_normed: {
    shortcut: { of: (run, name, x) => norm(run, `${name}_residual.norm`, x), normed: true },
  },
  no_scale: { scoreScale: UNSCALED },
  scale_d_model: { scoreScale: { square: (config) => config.d_model, symbol: "√d_model" } },
  no_embedding_scale: { embeddingScale: UNSCALED },
  doubled_exponent: {
    exponent: {
      count: (pair, isCosine) => 2 * (2 * pair + isCosine),
      symbol: (isCosine) => (isCosine ? "2(2i + 1)" : "2 · 2i"),
    },
  },
  softmax_over_queries: {
    softmax: { of: softmaxOfColumns, over: "query" },
    blocked: STEPS.blocked,
    lateMask: STEPS.lateMask,
  },
  mask_zero: { blocked: { of: () => 0, text: "numbers.blockedZero" } },
  mask_after_softmax: {
    blocked: { of: (score) => score, text: "numbers.blockedLate" },
    lateMask: { of: masked, masks: true },
  },
  target_padding_mask: { readIds: toOneLength, memoryMask: targetsPadding },
  no_causal_mask: { targetMask: paddingMask },
  decoder_keys: { crossKeyValue: { of: keyValue, side: "target" }, memoryMask: targetsPadding },
  double_softmax: {
    wordScores: {
      of: softmax,
      symbol: "softmax(logit)",
      python: ["logits = xp.exp(logits - xp.max(logits))", "logits = logits / xp.sum(logits)  # too early"],
    },
  },
  no_transpose: { headRow: (position, head, length) => head * length + position },
  unbiased_norm: {
    deviation: {
      of: (variance) => Math.sqrt(variance) + 1e-5,
      count: (width) => width - 1,
      symbol: "(√variance + ε)",
      python: "variance ** 0.5 + 1e-5",
    },
  },
};

/**
 * Returns the steps of a forward pass under changes.
 * @param {Pick<Changes, "mistakes" | "scale">} changes
 * @returns {Steps}
 */
export function stepsUnder({ mistakes, scale }) {
  const planted = scale ? mistakes : [...mistakes, "no_scale"];
  const replaced = Object.keys(MISTAKES).filter((id) => planted.includes(id));
  return Object.assign({}, STEPS, ...replaced.reverse().map((id) => MISTAKES[id]));
}

/**
 * Returns the norm that ends a stack with pre-norm and post-norm swapped; most post-norm models have no weights for it.
 * @param {ModelConfig} config
 */
function otherFinalNorm({ norm, final_norm: learned }) {
  if (norm === "pre") return "none";
  return learned ? "learned" : "plain";
}

/**
 * Returns the softmax of each column over the rows, [H, T, S]; −∞ gets exactly 0.
 * @param {Tensor} scores
 */
function softmaxOfColumns(scores) {
  const [heads, rows, columns] = scores.shape;
  const turned = (
    /** @type {Float32Array} */ data,
    /** @type {number} */ height,
    /** @type {number} */ width,
  ) =>
    data.map((_, i) => {
      const [head, cell] = [Math.floor(i / (height * width)), i % (height * width)];
      return data[head * height * width + (cell % height) * width + Math.floor(cell / height)];
    });
  const weights = softmax(tensor([heads, columns, rows], turned(scores.data, rows, columns)));
  return tensor(scores.shape, turned(weights.data, columns, rows));
}

/**
 * Returns the weights, 0 where the mask hides a key.
 * @param {Tensor} weights
 * @param {Mask} mask
 */
function masked({ shape, data }, mask) {
  return tensor(
    shape,
    data.map((weight, i) => weight * mask.data[i % mask.data.length]),
  );
}

/**
 * Returns the ids, the shorter ones padded to the length of the longer ones.
 * @param {number[]} sourceIds
 * @param {number[]} targetIds
 * @param {number} padId
 */
function toOneLength(sourceIds, targetIds, padId) {
  const length = Math.max(sourceIds.length, targetIds.length);
  /** @param {number[]} ids */
  const pad = (ids) => [...ids, ...Array(length - ids.length).fill(padId)];
  return { sourceIds: pad(sourceIds), targetIds: pad(targetIds) };
}

/**
 * Returns the mask of cross-attention that hides the target's padding.
 * @param {number[]} sourceIds
 * @param {number[]} targetIds
 * @param {[rows: number, padId: number, start: number]} rest
 */
function targetsPadding(sourceIds, targetIds, ...rest) {
  return paddingMask(targetIds, ...rest);
}
