// Direct attribution: splits the difference of two logits into the contributions that reach it through the residual
// stream alone.
//
// A logit is a dot product with the stream, and the stream is a sum of the sub-layers' outputs. A layer norm is
// linear if the mean and the deviation of its row are kept fixed. So the direction in which the two logits differ is
// carried back from the output to the input, and each summand of the stream is multiplied with the direction at the
// summand's depth.
import { streamName } from "./lens.ts";
import { stepsUnder } from "./mistakes.ts";
import { layerNames, SUBLAYERS } from "./model.ts";
import { normWeights, throughNorm } from "./norms.ts";
import { dot, rowOf } from "./tensor.ts";

import type { Changes, LiveEngine, DistantEngine, ModelConfig, RowWords, Tensor, Trace } from "./types.ts";

/**
 * One contribution to the difference of two logits: of a head of an attention, of a feed-forward network, or of
 * "input", "biases" or "norms".
 */
export interface DirectPart {
  name: string;
  head: number | null;
  value: number;
}

const ROUNDING = 1e-5; // the rounding error of float32, relative to the parts

/**
 * Returns the difference logit(word) − logit(rival) in one row of the target, and the parts that sum to this
 * difference. `parts` is null if the parts do not sum to the difference, because a patch has overwritten earlier
 * contributions. `directions`: for each feed-forward network, by name, the direction [D] with which the network's
 * output is multiplied.
 */
export async function directParts(
  engine: LiveEngine | DistantEngine,
  { trace, changes }: { trace: Trace; changes: Changes },
  { row, word, rival }: RowWords,
): Promise<{ parts: DirectPart[] | null; difference: number; directions: Map<string, Float64Array> }> {
  const { config } = engine;
  const steps = stepsUnder(changes);
  const names = namesUnder(config, changes);
  const model = await engine.modelWith(names.weights, changes.checkpoint);
  const words = await engine.rowsOf("output.weight", [word, rival], changes.checkpoint);
  const tensors = await Promise.all(names.points.map((name) => trace.get(name)));
  const rows = new Map(names.points.map((name, i) => [name, rowOf(tensors[i], row)]));
  const point = (name: string) => rows.get(name) as Float32Array;
  const weight = (name: string) => model.weight(name).data;
  const along = (vector: Float32Array) => dot(direction, 0, vector, 0, vector.length);

  const logits = point("logits");
  const difference = logits[word] - logits[rival];
  const parts: DirectPart[] = [];
  const directions = new Map<string, Float64Array>();
  let direction = Float64Array.from(rowOf(words, 0), (value, d) => value - rowOf(words, 1)[d]);
  let biases = config.output_bias ? weight("output.bias")[word] - weight("output.bias")[rival] : 0;
  let norms = 0;
  const leadThroughNorm = (stream: Float32Array, name: string | null) => {
    if (name) norms += along(weight(`${name}.bias`));
    direction = throughNorm(direction, stream, name ? weight(`${name}.weight`) : null, steps.deviation);
  };

  const kind = steps.finalNorm(config);
  if (kind !== "none") leadThroughNorm(point(names.stream), kind === "learned" ? "decoder.norm" : null);
  for (const name of [...names.sublayers].reverse()) {
    const norm = `${name}_residual.norm`;
    if (!steps.preNorm(config)) leadThroughNorm(point(`${name}.added`), norm);
    if (name.endsWith("feed_forward")) {
      directions.set(name, direction);
      const bias = along(weight(`${name}.contract.bias`));
      parts.push({ name, head: null, value: along(point(`${name}.output`)) - bias });
      biases += bias;
    } else {
      parts.push(...headParts(name, config.heads, direction, weight, point(`${name}.joined`)));
      biases += along(weight(`${name}.output_projection.bias`));
    }
    if (steps.shortcut.normed) leadThroughNorm(point(`${name}.input`), norm);
  }
  const input = along(point("target.input"));
  parts.push(
    ...Object.entries({ input, biases, norms }).map(([name, value]) => ({ name, head: null, value })),
  );

  const sum = parts.reduce((total, { value }) => total + value, 0);
  const size = parts.reduce((total, { value }) => total + Math.abs(value), 1);
  return { parts: Math.abs(sum - difference) <= ROUNDING * size ? parts : null, difference, directions };
}

/**
 * Returns what each unit of a feed-forward network contributes along a direction of the network's output, [F]. The sum
 * over all units is the network's part, which excludes the bias of W₂. `contract`: W₂, [D, F]. `active`: the
 * activations, [F].
 */
export function unitParts(direction: Float64Array, { data }: Tensor, active: Float32Array) {
  const sums = new Float64Array(active.length);
  direction.forEach((value, d) => {
    for (let unit = 0; unit < sums.length; unit++) sums[unit] += value * data[d * sums.length + unit];
  });
  return sums.map((sum, unit) => sum * active[unit]);
}

/**
 * Returns the names of the decoder's sub-layers, first to last; the name of the stream after the last sub-layer; and
 * the names of the weights and points from which the parts are computed.
 */
function namesUnder(config: ModelConfig, changes: Changes) {
  const { decoder_layers: layers } = config;
  const { preNorm, finalNorm, shortcut } = stepsUnder(changes);
  const sublayers = layerNames("decoder", layers).flatMap((layer) =>
    SUBLAYERS.map((kind) => `${layer}.${kind}`),
  );
  const stream = streamName(config, changes, "decoder", layers - 1);
  const weights = config.output_bias ? ["output.bias"] : [];
  const points = ["target.input", stream, "logits"];
  const addNorm = (name: string) => weights.push(...normWeights(name));
  if (finalNorm(config) === "learned") addNorm("decoder.norm");
  for (const name of sublayers) {
    if (!preNorm(config) || shortcut.normed) addNorm(`${name}_residual.norm`);
    if (!preNorm(config)) points.push(`${name}.added`);
    if (shortcut.normed) points.push(`${name}.input`);
    if (name.endsWith("feed_forward")) {
      weights.push(`${name}.contract.bias`);
      points.push(`${name}.output`);
    } else {
      weights.push(`${name}.output_projection.weight`, `${name}.output_projection.bias`);
      points.push(`${name}.joined`);
    }
  }
  return { sublayers, stream, weights, points };
}

/**
 * Returns the contribution of each head of an attention: the head's columns of W_O times the head's weighted values.
 */
function headParts(
  name: string,
  heads: number,
  direction: Float64Array,
  weight: (name: string) => Float32Array,
  joined: Float32Array,
): DirectPart[] {
  const matrix = weight(`${name}.output_projection.weight`);
  const sums = new Float64Array(heads);
  direction.forEach((value, d) => {
    const from = d * joined.length;
    joined.forEach((one, column) => {
      sums[Math.floor((column * heads) / joined.length)] += value * matrix[from + column] * one;
    });
  });
  return Array.from(sums, (value, head) => ({ name, head, value }));
}
