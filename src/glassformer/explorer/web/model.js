// A model: its configuration, its weights by name, and the names of all points of its forward pass.

import { bytesOf, floatsOf, floatsOfHalves, tensor } from "./tensor.js";

/** A model's configuration (ModelConfig's fields) and its weights, named as PyTorch names them. */
export class Model {
  constructor(config, tensors) {
    this.config = config;
    this.tensors = tensors;
  }

  /** Returns the weight of this name as a tensor; a matrix that is shared (tied) has several names. */
  weight(name) {
    const found = this.tensors.get(name) ?? this.tensors.get(this.sharedName(name));
    if (!found) throw new Error(`the model has no weight "${name}": the page's data belong to another model`);
    return found;
  }

  /** Returns under which name a shared matrix is stored. */
  sharedName(name) {
    const shared = {
      "output.weight": "target.tokens.weight",
      "target.tokens.weight": "source.tokens.weight",
    };
    const other = shared[name];
    return this.tensors.has(other) ? other : shared[other];
  }

  /** Returns whether there is a weight of this name. */
  has(name) {
    return this.tensors.has(name);
  }
}

/** Returns the model whose weights lie in `data` (halves or floats, base64 or bytes) as the layout says. */
export function makeModel(config, layout, data) {
  const bytes = bytesOf(data);
  const count = layout.reduce((sum, { shape }) => sum + tensor(shape).data.length, 0);
  const floats = bytes.length === 2 * count ? floatsOfHalves(bytes) : floatsOf(bytes);
  return new Model(config, slices(layout, floats));
}

/** Returns tensors by name, cut out of one array of floats; offsets count elements. */
export function slices(layout, floats) {
  const cut = ({ shape, offset }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    return tensor(shape, floats.subarray(offset, offset + size));
  };
  return new Map(layout.map((entry) => [entry.name, cut(entry)]));
}

/** Returns the names of a model's attentions, in the order of the forward pass. */
export function attentionNames(config) {
  const encoder = layerNames("encoder", config.encoder_layers).map((layer) => `${layer}.self_attention`);
  const decoder = layerNames("decoder", config.decoder_layers).flatMap((layer) => [
    `${layer}.self_attention`,
    `${layer}.cross_attention`,
  ]);
  return [...encoder, ...decoder];
}

/** Returns "encoder.layers.0", … */
export function layerNames(stack, count) {
  return Array.from({ length: count }, (_, i) => `${stack}.layers.${i}`);
}

/** Returns the names of all points of the forward pass, in the order in which Python's trace has them. */
export function pointNames(config) {
  const encoder = layerNames("encoder", config.encoder_layers);
  const decoder = layerNames("decoder", config.decoder_layers);
  return [
    ...inputPoints("source"),
    ...encoder.flatMap((layer) => [
      ...attentionPoints(config, layer, "self_attention"),
      ...feedForwardPoints(config, layer),
    ]),
    "encoder.output",
    ...inputPoints("target"),
    ...decoder.flatMap((layer) => [`${layer}.cross_attention.key`, `${layer}.cross_attention.value`]),
    ...decoder.flatMap((layer) => [
      ...attentionPoints(config, layer, "self_attention"),
      ...attentionPoints(config, layer, "cross_attention"),
      ...feedForwardPoints(config, layer),
    ]),
    "decoder.output",
    "logits",
    "log_probs",
  ];
}

function inputPoints(side) {
  return ["embedding", "positions", "input"].map((point) => `${side}.${point}`);
}

function attentionPoints(config, layer, kind) {
  const own = kind === "self_attention" ? ["key", "value"] : []; // cross-attention's are of the memory
  const inner = ["query", ...own, "scores", "weights", "heads", "joined"];
  return sublayerPoints(config, `${layer}.${kind}`, inner);
}

function feedForwardPoints(config, layer) {
  return sublayerPoints(config, `${layer}.feed_forward`, ["hidden", "activated"]);
}

function sublayerPoints(config, name, inner) {
  const points =
    config.norm === "pre"
      ? ["input", "normed", ...inner, "output", "added"]
      : ["input", ...inner, "output", "added", "normed"];
  return points.map((point) => `${name}.${point}`);
}
