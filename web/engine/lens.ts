// Analyses of a forward pass: the logit lens, attention rollout, a sweep of patches, and the units of a feed-forward
// network.
import { marginsOf } from "./contest.ts";
import { finalNorm } from "./forward.ts";
import { stepsUnder } from "./mistakes.ts";
import { normWeights } from "./norms.ts";
import { Run } from "./run.ts";
import { dot, largestAt, linear, logSoftmax, tensor } from "./tensor.ts";

import type { Contest } from "./contest.ts";
import type { Model } from "./model.ts";
import type { Changes, Engine, ModelConfig, Sentence, Stack, Tensor } from "./types.ts";

/**
 * Returns the name of the point that holds the residual stream after a layer; layer −1 is the input of the first layer.
 */
export function streamName(config: ModelConfig, changes: Changes, stack: Stack, layer: number) {
  if (layer < 0) return `${sideOf(stack)}.input`;
  const last = stepsUnder(changes).preNorm(config) ? "added" : "normed";
  return `${stack}.layers.${layer}.feed_forward.${last}`;
}

export function sideOf(stack: Stack) {
  return stack === "encoder" ? "source" : "target";
}

/**
 * Returns the name of the matrix, with one row for each word, that turns a stack's stream into words. The encoder has
 * no such matrix; the embedding matrix of the source takes its place.
 */
const tableOf = (stack: Stack) => (stack === "encoder" ? "source.tokens.weight" : "output.weight");

/** Returns a run under `changes`, of a model that has the weights for reading words from a stack's stream. */
export async function readOutRun(
  engine: { config: ModelConfig; modelWith(names: string[], step: number | null): Promise<Model> },
  stack: Stack,
  changes: Changes,
) {
  const names = [tableOf(stack)];
  if (stack === "decoder" && engine.config.output_bias) names.push("output.bias");
  if (engine.config.final_norm) names.push(...normWeights(`${stack}.norm`));
  return new Run(await engine.modelWith(names, changes.checkpoint), changes);
}

/**
 * Returns the log probabilities [T, V] that the model would give if the stack ended with this stream. For the stream
 * after the decoder's last layer, these log probabilities are the model's real output. `stream`: [T, D].
 */
export function logitLens(run: Run, stack: Stack, stream: Tensor) {
  const bias = stack === "decoder" && run.config.output_bias ? run.weight("output.bias") : null;
  const logits = linear(finalNorm(run, stack, stream), run.weight(tableOf(stack)), bias);
  return logSoftmax(run.steps.wordScores.of(logits));
}

/**
 * Returns the attention that reaches each input through all layers, [T, S]: the product of (mean over the heads +
 * identity) / 2, in which the identity stands for the residual connection. Abnar and Zuidema 2020. `layers`: the
 * self-attention weights [H, T, T], first layer first.
 */
export function rollout(layers: Tensor[]) {
  const halves = layers.map(meanOfHeads).map(({ shape, data }) =>
    tensor(
      shape,
      data.map((mean, i) => (mean + Number(i % (shape[0] + 1) === 0)) / 2),
    ),
  );
  return halves.reduce((below, half) => product(half, below));
}

/**
 * Returns the mean [T, S] of cross-attention over its layers and heads, times the rollout of the self-attention in
 * the stack that cross-attention reads. `cross`: weights of cross-attention, [H, T, S]. `own`: weights of this
 * self-attention, [H, S, S].
 */
export function crossRollout(cross: Tensor[], own: Tensor[]) {
  const means = cross.map(meanOfHeads);
  const mean = means[0].data.map((_, i) => means.reduce((sum, { data }) => sum + data[i], 0) / means.length);
  return product(tensor(means[0].shape, mean), rollout(own));
}

function meanOfHeads({ shape: [heads, rows, columns], data }: Tensor) {
  const mean = tensor([rows, columns]);
  data.forEach((value, i) => (mean.data[i % (rows * columns)] += value / heads));
  return mean;
}

/** Returns the matrix product of a and b. */
function product(a: Tensor, { shape: [rows, columns], data }: Tensor) {
  const turned = tensor([columns, rows]);
  data.forEach((value, i) => (turned.data[(i % columns) * rows + Math.floor(i / columns)] = value));
  return linear(a, turned);
}

/**
 * Replaces the stream by another sentence's stream, at one layer and position at a time. Yields by how much each
 * patch changes log p(word) − log p(rival). Layer −1 is the input of the first layer. `contest` has one case.
 */
export async function* patchSweep(
  engine: Engine,
  contest: Contest,
  donor: Sentence,
  stack: Stack,
  positions: number,
  changes: Changes,
) {
  const [plain] = await marginsOf(engine, contest, changes);
  for (let layer = -1; layer < engine.config[`${stack}_layers`]; layer++)
    for (let at = 0; at < positions; at++) {
      const point = streamName(engine.config, changes, stack, layer);
      const patch = { ...donor, point, positions: [[at, at] as [number, number]] };
      const [margin] = await marginsOf(engine, contest, { ...changes, patches: [...changes.patches, patch] });
      yield { layer, position: at, effect: margin - plain };
    }
}

/**
 * Returns the words that a unit of a feed-forward network promotes: the words whose rows of the output matrix have
 * the largest products with the unit's column of W₂. `contract`: W₂, [D, F].
 */
export function unitWords(
  run: Run,
  stack: Stack,
  { shape: [width, count], data }: Tensor,
  unit: number,
  words = 5,
) {
  const table = run.weight(tableOf(stack));
  const column = Float32Array.from({ length: width }, (_, d) => data[d * count + unit]);
  const scores = Float32Array.from({ length: table.shape[0] }, (_, id) =>
    dot(table.data, id * width, column, 0, width),
  );
  return largestAt(scores, words);
}
