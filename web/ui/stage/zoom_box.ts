// The names of the figure's boxes in addresses, such as "decoder.layers.1.cross_attention.add" inside a layer and
// "decoder.softmax" outside the layers.
import type { ModelConfig, Stack } from "../../engine/types.ts";

/** `id`: the box's name within its stack, as in geometry.ts. `layer`: null outside the layers. */
export interface BoxPlace {
  stack: Stack;
  layer: number | null;
  id: string;
}

const SUBLAYER = /^(self_attention|cross_attention|feed_forward)\b/;
const OUTER = {
  encoder: ["embedding", "positions"],
  decoder: ["embedding", "positions", "linear", "softmax"],
};

/** Returns the full name of a box; `layer` only matters for boxes inside a layer. */
export function boxName(stack: Stack, id: string, layer: number) {
  return SUBLAYER.test(id) ? `${stack}.layers.${layer}.${id}` : `${stack}.${id}`;
}

/** Returns the stack, layer and id that a full name denotes. */
export function placeOfBox(name: string): BoxPlace {
  const [, stack, layer, id = ""] = /^(encoder|decoder)\.(?:layers\.(\d+)\.)?(.+)$/.exec(name) ?? [];
  return { stack: stack as Stack, layer: layer === undefined ? null : Number(layer), id };
}

/** Returns whether a model's figure has a box of this name. */
export function isBox(config: ModelConfig, name: string) {
  const { stack, layer, id } = placeOfBox(name);
  if (!stack) return false;
  if (layer === null) {
    return OUTER[stack].includes(id) || (config.final_norm && id === "norm");
  }
  const [sublayer, part, ...rest] = id.split(".");
  if (rest.length > 0 || layer >= config[`${stack}_layers`] || !SUBLAYER.test(`${sublayer} `)) return false;
  if (stack === "encoder" && sublayer === "cross_attention") return false;
  return part === undefined || part === "add" || (part === "norm" && config.norm === "pre");
}
