// The classic mistakes of Transformer implementations, and the steps of the forward pass that each mistake replaces.

import { STEPS, keyValue, paddingMask } from "./forward.ts";
import { norm } from "./norms.ts";
import { softmax, tensor } from "./tensor.ts";

import type { Changes, Mask, ModelConfig, Scale, Steps, Tensor } from "./types.ts";

const UNSCALED: Scale = { square: () => 1, symbol: "" };

/**
 * The steps that each classic mistake replaces, by the mistake's id. If two mistakes replace the same step, the
 * mistake that comes first in this table wins.
 */
export const MISTAKES: Record<string, Partial<Steps>> = {
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

/** Returns the steps of a forward pass under these changes. */
export function stepsUnder({ mistakes, scale }: Pick<Changes, "mistakes" | "scale">): Steps {
  const planted = scale ? mistakes : [...mistakes, "no_scale"];
  const replaced = Object.keys(MISTAKES).filter((id) => planted.includes(id));
  return Object.assign({}, STEPS, ...replaced.reverse().map((id) => MISTAKES[id]));
}

/**
 * Returns the final norm for the mistake that swaps pre-norm and post-norm. Most post-norm models have no weights for a
 * final norm.
 */
function otherFinalNorm({ norm, final_norm: learned }: ModelConfig) {
  if (norm === "pre") return "none";
  return learned ? "learned" : "plain";
}

/** Returns the softmax of each column, taken over the rows, [H, T, S]; −∞ becomes exactly 0. */
function softmaxOfColumns(scores: Tensor) {
  const [heads, rows, columns] = scores.shape;
  const turned = (data: Float32Array, height: number, width: number) =>
    data.map((_, i) => {
      const [head, cell] = [Math.floor(i / (height * width)), i % (height * width)];
      return data[head * height * width + (cell % height) * width + Math.floor(cell / height)];
    });
  const weights = softmax(tensor([heads, columns, rows], turned(scores.data, rows, columns)));
  return tensor(scores.shape, turned(weights.data, columns, rows));
}

/** Returns the weights, with 0 where the mask hides a key. */
function masked({ shape, data }: Tensor, mask: Mask) {
  return tensor(
    shape,
    data.map((weight, i) => weight * mask.data[i % mask.data.length]),
  );
}

/** Returns both lists of ids, with the shorter list padded to the length of the longer list. */
function toOneLength(sourceIds: number[], targetIds: number[], padId: number) {
  const length = Math.max(sourceIds.length, targetIds.length);
  const pad = (ids: number[]) => [...ids, ...Array(length - ids.length).fill(padId)];
  return { sourceIds: pad(sourceIds), targetIds: pad(targetIds) };
}

/** Returns a mask of cross-attention that, by mistake, hides the target's padding instead of the source's padding. */
function targetsPadding(
  sourceIds: number[],
  targetIds: number[],
  ...rest: [rows: number, padId: number, start: number]
) {
  return paddingMask(targetIds, ...rest);
}
