// A model: its configuration, its weights by name, and the names of all points of its forward pass.

import { bytesOf, floatsOf, floatsOfHalves, tensor, times } from "./tensor.ts";

import type { Bytes, ModelConfig, Point, Points, RecordedTrace, Slice, Stack } from "./types.ts";

/** A model's configuration (ModelConfig's fields) and its weights, named as PyTorch names them. */
export class Model {
  config: ModelConfig;
  tensors: Points;

  constructor(config: ModelConfig, tensors: Points) {
    this.config = config;
    this.tensors = tensors;
  }

  /** Returns the weight of this name as a tensor. A shared (tied) matrix has several names. */
  weight(name: string) {
    const found = this.find(name);
    if (!found) throw new Error(`the model has no weight "${name}": the page's data belong to another model`);
    return found;
  }

  /** Returns the weight of this name, or undefined; a recording has only the layer norms. */
  find(name: string) {
    return this.tensors.get(name) ?? this.tensors.get(this.sharedName(name));
  }

  /** Returns the name under which a shared matrix is stored. */
  sharedName(name: string) {
    const shared: Record<string, string> = {
      "output.weight": "target.tokens.weight",
      "target.tokens.weight": "source.tokens.weight",
    };
    const other = shared[name];
    return this.tensors.has(other) ? other : shared[other];
  }
}

/**
 * Returns a model whose weights are in `data`, as base64 or bytes, of half-precision or float32 numbers in this layout.
 */
export function makeModel(config: ModelConfig, layout: Slice[], data: Bytes) {
  const bytes = bytesOf(data);
  const count = layout.reduce((sum, { shape }) => sum + tensor(shape).data.length, 0);
  const floats = bytes.length === 2 * count ? floatsOfHalves(bytes) : floatsOf(bytes);
  return new Model(config, slices(layout, floats));
}

/**
 * Returns a model from shrunk weights: a matrix has int8 numbers and a scale for each row; other weights are
 * half-precision.
 */
export function makeShrunkModel(config: ModelConfig, layout: Slice[], data: Bytes) {
  const bytes = bytesOf(data);
  let at = 0;
  const next = (length: number) => bytes.slice(at, (at += length));
  const tensors: Points = new Map();
  for (const { name, shape } of layout) {
    const [rows, columns] = shape;
    const count = rows * (columns ?? 1);
    if (shape.length !== 2) {
      tensors.set(name, tensor(shape, floatsOfHalves(next(2 * count))));
      continue;
    }
    const scales = floatsOf(next(4 * rows));
    const numbers = new Int8Array(next(count).buffer);
    tensors.set(
      name,
      tensor(
        shape,
        Float32Array.from(numbers, (number, i) => number * scales[Math.floor(i / columns)]),
      ),
    );
  }
  return new Model(config, tensors);
}

/** Returns the points of a recorded trace. Of logits and log_probs, only the recorded columns exist. */
export function recordedPoints({ points, dtype, data }: RecordedTrace) {
  const bytes = bytesOf(data);
  return slices(points, dtype === "float16" ? floatsOfHalves(bytes) : floatsOf(bytes));
}

/** Returns tensors by name, as views of one array of floats; offsets count elements. */
export function slices(layout: Slice[], floats: Float32Array): Points {
  const cut = ({ shape, offset }: Slice) => {
    const size = shape.reduce((product, length) => product * length, 1);
    return tensor(shape, floats.subarray(offset, offset + size));
  };
  return new Map(layout.map((entry) => [entry.name, cut(entry)]));
}

/** Returns the names of a model's attentions, in the order of the forward pass. */
export function attentionNames(config: ModelConfig) {
  const encoder = layerNames("encoder", config.encoder_layers).map((layer) => `${layer}.self_attention`);
  const decoder = layerNames("decoder", config.decoder_layers).flatMap((layer) => [
    `${layer}.self_attention`,
    `${layer}.cross_attention`,
  ]);
  return [...encoder, ...decoder];
}

/** Returns every head of every attention, in the order of the forward pass. */
export function allHeads(config: ModelConfig) {
  return attentionNames(config).flatMap((attention) => times(config.heads, (head) => ({ attention, head })));
}

/** The sub-layers of a decoder's layer, in their order. */
export const SUBLAYERS = ["self_attention", "cross_attention", "feed_forward"];

/** Returns "encoder.layers.0", … */
export function layerNames(stack: Stack, count: number) {
  return times(count, (i) => `${stack}.layers.${i}`);
}

/** Returns the names of all points of the forward pass, in the order of Python's trace. */
export function pointNames({ points }: ModelConfig) {
  return points.map(({ name }) => name);
}

/** Returns whether a point's tensor has one matrix for each head. */
export function hasHeads({ points }: ModelConfig, name: string) {
  return points.some((point) => point.name === name && point.heads);
}

/** Returns the key of the text that describes a point. */
export function pointText({ points }: ModelConfig, name: string) {
  const { part } = points.find((point) => point.name === name) as Point;
  return `point.${part}.${name.replace(/^.*\./, "")}`;
}
