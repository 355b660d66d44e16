// The boxes of Figure 1, in one table. What draws, opens, orders or explains boxes reads them from here.
import { SUBLAYERS } from "../../engine/model.ts";

import type { ModelConfig, Stack, Steps } from "../../engine/types.ts";

/** The kinds of boxes. The paper gives each kind its own colour. */
export type Kind = "emb" | "att" | "add" | "ffn" | "lin" | "sof";

interface Entry {
  kind: Kind;
  /** The section of the paper. */
  paper: string;
  /** What the opened box can show besides its calculation. */
  segments: Segment[];
  /** The only stack that has this box; without a name, both stacks have it. */
  only?: Stack;
}

/** For each segment of opened boxes: the box in which it opens if an address names it as a panel. */
const SEGMENTS = {
  why: ["decoder", "softmax"],
  beam: ["decoder", "softmax"],
  positions: ["encoder", "positions"],
  weights: ["decoder", "cross_attention"],
  rollout: ["decoder", "cross_attention"],
  guesses: ["decoder", "feed_forward.add"],
} satisfies Record<string, [stack: Stack, id: string]>;
export type Segment = keyof typeof SEGMENTS;

const BOXES: Record<string, Entry> = {
  embedding: { kind: "emb", paper: "§3.4", segments: ["positions"] },
  positions: { kind: "emb", paper: "§3.5", segments: ["positions"] },
  self_attention: { kind: "att", paper: "§3.2.3", segments: ["weights", "rollout"] },
  cross_attention: { kind: "att", paper: "§3.2.3", segments: ["weights", "rollout"], only: "decoder" },
  feed_forward: { kind: "ffn", paper: "§3.3", segments: ["weights"] },
  norm: { kind: "add", paper: "§3.1", segments: [] },
  linear: { kind: "lin", paper: "§3.4", segments: ["why", "beam"], only: "decoder" },
  softmax: { kind: "sof", paper: "§3.4", segments: ["why", "beam"], only: "decoder" },
};
/** The boxes around a sub-layer, by the end of their ids. */
const BESIDE: Record<string, Entry> = {
  norm: { kind: "add", paper: "§3.1", segments: [] },
  add: { kind: "add", paper: "§3.1", segments: ["guesses"] },
};

/** A box of a stack. `id` is the sub-layer, with ".add" or ".norm" for the boxes around it. */
export interface BoxEntry extends Entry {
  id: string;
}

/** Which boxes a figure has: their order depends on where the norms are. */
export interface Shape {
  isPreNorm: boolean;
  hasFinalNorm: boolean;
}

/** Returns which boxes a model's figure has; a planted mistake may move the norms. */
export function shapeOf(config: ModelConfig, steps: Steps): Shape {
  return { isPreNorm: steps.preNorm(config), hasFinalNorm: steps.finalNorm(config) !== "none" };
}

/** Returns the table's entry of a box, by its id within its stack. */
export function entryOf(id: string): Entry | null {
  const [own, beside, ...rest] = id.split(".");
  if (rest.length > 0 || !Object.hasOwn(BOXES, own)) return null;
  if (beside === undefined) return BOXES[own];
  return SUBLAYERS.includes(own) && Object.hasOwn(BESIDE, beside) ? BESIDE[beside] : null;
}

/** Returns the kind of a box, by its full name. */
export function kindOf(name: string) {
  return entryOf(placeOfBox(name).id)?.kind ?? null;
}

const entries = (stack: Stack, ids: string[]) =>
  ids.flatMap((id): BoxEntry[] => {
    const entry = entryOf(id) as Entry;
    const [own] = id.split(".");
    const { only = stack } = BOXES[own];
    return only === stack ? [{ ...entry, id }] : [];
  });

/** Returns the sub-layers of a stack's layer, from the bottom up. */
export function sublayersOf(stack: Stack) {
  return entries(stack, SUBLAYERS).map(({ id }) => id);
}

/** Returns the boxes of a stack in three parts, each from the bottom up: its inputs, a layer, and what follows. */
export function boxesOf(stack: Stack, { isPreNorm, hasFinalNorm }: Shape) {
  const around = (id: string) => (isPreNorm ? [`${id}.norm`, id, `${id}.add`] : [id, `${id}.add`]);
  return {
    inputs: entries(stack, ["embedding", "positions"]),
    layer: entries(stack, SUBLAYERS.flatMap(around)),
    outputs: entries(stack, [...(hasFinalNorm ? ["norm"] : []), "linear", "softmax"]),
  };
}

// Names, such as "decoder.layers.1.cross_attention.add" inside a layer and "decoder.softmax" outside the layers

/** `id`: the box's name within its stack. `layer`: null outside the layers. */
export interface BoxPlace {
  stack: Stack;
  layer: number | null;
  id: string;
}

/** Returns the full name of a box; `layer` only matters for boxes inside a layer. */
export function boxName(stack: Stack, id: string, layer: number) {
  return SUBLAYERS.includes(id.split(".")[0]) ? `${stack}.layers.${layer}.${id}` : `${stack}.${id}`;
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
  const shape = { isPreNorm: config.norm === "pre", hasFinalNorm: config.final_norm };
  const { inputs, layer: inner, outputs } = boxesOf(stack, shape);
  const known = layer === null ? [...inputs, ...outputs] : layer < config[`${stack}_layers`] ? inner : [];
  return known.some((one) => one.id === id);
}

/** Returns the box whose calculation has this point; a stack's output belongs to the last box of the stack. */
export function boxOfPoint(config: ModelConfig, shape: Shape, name: string) {
  const [part, end] = name.split(/\.(?!.*\.)/) as [string, string | undefined];
  if (part === "source" || part === "target")
    return `${part === "source" ? "encoder" : "decoder"}.${end === "embedding" ? end : "positions"}`;
  if (end === undefined) return name === "logits" ? "decoder.linear" : "decoder.softmax";
  if (part === "encoder" || part === "decoder")
    return shape.hasFinalNorm
      ? `${part}.norm`
      : boxName(part, "feed_forward.add", config[`${part}_layers`] - 1);
  if (end === "added") return `${part}.add`;
  return end === "normed" ? `${part}.${shape.isPreNorm ? "norm" : "add"}` : part;
}

// Segments

/** Returns how many norms of the decoder are boxes of their own: with the norm first, one for each sub-layer. */
export function ownNorms({ isPreNorm, hasFinalNorm }: Shape) {
  return (isPreNorm ? SUBLAYERS.length : 0) + Number(hasFinalNorm);
}

/** Returns the box in which a segment opens; null for a panel that is not a segment. */
export function boxOfPanel(config: ModelConfig, panel: string) {
  if (!Object.hasOwn(SEGMENTS, panel)) return null;
  const [stack, id] = SEGMENTS[panel as Segment];
  return { box: boxName(stack, id, config.decoder_layers - 1), key: null };
}

/** Returns the segments of a box, in addition to its calculation. */
export function segmentsOf(box: string) {
  return entryOf(placeOfBox(box).id)?.segments ?? [];
}

/** Returns the open segment of a box; null means the box's own calculation. `panel`: the panel of the state. */
export function segmentOf({ panel }: { panel: string }, box: string): Segment | null {
  return segmentsOf(box).find((name) => name === panel) ?? null;
}
