// Looking into a forward pass: the logit lens, attention rollout, a sweep of patches, and the units of a feed-forward
// network.
import { marginsOf } from "./contest.js";
import { finalNorm } from "./forward.js";
import { stepsUnder } from "./mistakes.js";
import { dot, largestAt, linear, logSoftmax, tensor } from "./tensor.js";

/** @import { Contest } from "./contest.js" */
/** @import { Run } from "./run.js" */
/** @import { Changes, Engine, ModelConfig, Sentence, Stack, Tensor } from "./types.js" */

/**
 * Returns the name of the point that holds the residual stream after a layer; −1 = before the first.
 * @param {ModelConfig} config
 * @param {Changes} changes
 * @param {Stack} stack
 * @param {number} layer
 */
export function streamName(config, changes, stack, layer) {
  if (layer < 0) return `${sideOf(stack)}.input`;
  const last = stepsUnder(changes).preNorm(config) ? "added" : "normed";
  return `${stack}.layers.${layer}.feed_forward.${last}`;
}

/** @param {Stack} stack */
export function sideOf(stack) {
  return stack === "encoder" ? "source" : "target";
}

/**
 * Returns the name of the matrix that turns a stack's stream into words, with a row for each word. The encoder has none
 * of its own, so its stream is read with the source's embedding.
 * @param {Stack} stack
 */
const tableOf = (stack) => (stack === "encoder" ? "source.tokens.weight" : "output.weight");

/**
 * Returns the names of the weights that read a stack's stream.
 * @param {ModelConfig} config
 * @param {Stack} stack
 */
export function readOutWeights(config, stack) {
  const names = [tableOf(stack)];
  if (stack === "decoder" && config.output_bias) names.push("output.bias");
  if (config.final_norm) names.push(`${stack}.norm.weight`, `${stack}.norm.bias`);
  return names;
}

/**
 * Returns the log probabilities [T, V] of the words that a stack's stream stands for: what the model would say if this
 * were its last layer. After the decoder's last layer, these are the model's own.
 * @param {Run} run
 * @param {Stack} stack
 * @param {Tensor} stream - [T, D]
 */
export function logitLens(run, stack, stream) {
  const bias = stack === "decoder" && run.config.output_bias ? run.weight("output.bias") : null;
  const logits = linear(finalNorm(run, stack, stream), run.weight(tableOf(stack)), bias);
  return logSoftmax(run.steps.wordScores.of(logits));
}

/**
 * Returns attention followed back through layers, [T, S]: the product of (mean over the heads + identity) / 2, because
 * half of each layer's output is counted as the residual. Abnar and Zuidema 2020.
 * @param {Tensor[]} layers - the weights [H, T, T] of self-attention, first layer first
 */
export function rollout(layers) {
  const halves = layers.map(meanOfHeads).map(({ shape, data }) =>
    tensor(
      shape,
      data.map((mean, i) => (mean + Number(i % (shape[0] + 1) === 0)) / 2),
    ),
  );
  return halves.reduce((below, half) => product(half, below));
}

/**
 * Returns the mean [T, S] over the layers and heads of cross-attention, followed back through the encoder.
 * @param {Tensor[]} cross - [H, T, S]
 * @param {Tensor[]} encoder - [H, S, S]
 */
export function crossRollout(cross, encoder) {
  const means = cross.map(meanOfHeads);
  const mean = means[0].data.map((_, i) => means.reduce((sum, { data }) => sum + data[i], 0) / means.length);
  return product(tensor(means[0].shape, mean), rollout(encoder));
}

/** @param {Tensor} weights */
function meanOfHeads({ shape: [heads, rows, columns], data }) {
  const mean = tensor([rows, columns]);
  data.forEach((value, i) => (mean.data[i % (rows * columns)] += value / heads));
  return mean;
}

/**
 * Returns the matrix product of a and b.
 * @param {Tensor} a
 * @param {Tensor} b
 */
function product(a, { shape: [rows, columns], data }) {
  const turned = tensor([columns, rows]);
  data.forEach((value, i) => (turned.data[(i % columns) * rows + Math.floor(i / columns)] = value));
  return linear(a, turned);
}

/**
 * Puts another sentence's stream in, one layer and position at a time. Yields by how much log p(word) − log p(rival)
 * changes: −1 is the layer before the first.
 * @param {Engine} engine
 * @param {Contest} contest - of one sentence
 * @param {Sentence} donor
 * @param {Stack} stack
 * @param {number} positions
 * @param {Changes} changes
 */
export async function* patchSweep(engine, contest, donor, stack, positions, changes) {
  const [plain] = await marginsOf(engine, contest, changes);
  for (let layer = -1; layer < engine.config[`${stack}_layers`]; layer++)
    for (let at = 0; at < positions; at++) {
      const point = streamName(engine.config, changes, stack, layer);
      const patch = { ...donor, point, positions: [/** @type {[number, number]} */ ([at, at])] };
      const [margin] = await marginsOf(engine, contest, { ...changes, patches: [...changes.patches, patch] });
      yield { layer, position: at, effect: margin - plain };
    }
}

/**
 * Returns the most active units of a feed-forward network at one position, and the words for which each speaks: those
 * whose rows of the output matrix have the largest products with the unit's column of W₂.
 * @param {Run} run
 * @param {Stack} stack
 * @param {Tensor} contract - W₂, [D, F]
 * @param {Float32Array} active - the units' activations, [F]
 */
export function activeUnits(run, stack, { shape: [width, count], data }, active, units = 10, words = 5) {
  const table = run.weight(tableOf(stack));
  return largestAt(active, units).map((unit) => {
    const column = Float32Array.from({ length: width }, (_, d) => data[d * count + unit]);
    const scores = Float32Array.from({ length: table.shape[0] }, (_, id) =>
      dot(table.data, id * width, column, 0, width),
    );
    return { unit, activation: active[unit], ids: largestAt(scores, words) };
  });
}
