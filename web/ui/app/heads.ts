// The three attentions of a model and their heads.
import { hasHeads } from "../../engine/model.ts";
import { headStatistics } from "../../engine/statistics.ts";
import { labelsOf } from "./translator.ts";

import type { ModelConfig, Stack } from "../../engine/types.ts";
import type { Family, FamilyId, HeadPlace, MeasuredHead, Translated, Texts } from "./types.ts";

/** The three families of attention, in the order of the figure, from left to right. */
export const FAMILIES: Family[] = [
  { id: "encoder", stack: "encoder", sublayer: "self_attention", rows: "source", columns: "source" },
  { id: "cross", stack: "decoder", sublayer: "cross_attention", rows: "target", columns: "source" },
  { id: "decoder", stack: "decoder", sublayer: "self_attention", rows: "target", columns: "target" },
];

/** Returns the number of layers of a family's stack. */
export function layersOf(config: ModelConfig, { stack }: { stack: Stack }) {
  return config[`${stack}_layers`];
}

/** Returns the name of a family's attention in a layer, such as "decoder.layers.0.cross_attention". */
export function attentionName(family: Family, layer: number) {
  return `${family.stack}.layers.${layer}.${family.sublayer}`;
}

/** Returns the family and the layer of an attention or its point, such as "decoder.layers.0.cross_attention.query". */
export function placeIn(attention: string) {
  const [stack, , layer, sublayer] = attention.split(".");
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === sublayer);
  if (!family) throw new Error(`no attention is called ${attention}`);
  return { family, layer: Number(layer) };
}

/**
 * Returns the key under which strings.json has a box's name. Without the causal mask, the decoder's self-attention has
 * the encoder's name.
 */
export function boxKey({ mistakes }: { mistakes: string[] }, stack: Stack, id: string) {
  const isUnmasked = id === "self_attention" && mistakes.includes("no_causal_mask");
  return `stage.box.${isUnmasked ? "encoder" : stack}.${id}`;
}

type Place = { attention: string; head: number };

/** Returns the name of a head in the reader's language. */
export function headName({ t }: { t: Texts }, { attention, head }: Place) {
  const { family, layer } = placeIn(attention);
  return t("head.name", layer, head, t(`family.${family.id}`).toLowerCase());
}

/** Returns a short name of a head for tables and labels, such as "cross-attention 2, head 3". */
export function shortHeadName({ t }: { t: Texts }, { attention, head }: Place) {
  const { family, layer } = placeIn(attention);
  return t("head.short", t(`head.${family.id}`), layer, head);
}

type Heads = Record<FamilyId, HeadPlace>;

/** Returns the chosen heads after a layer was opened. */
export function headsAt(heads: Heads, stack: Stack, layer: number) {
  const moved = { ...heads };
  for (const { id, stack: own } of FAMILIES) if (own === stack) moved[id] = { ...heads[id], layer };
  return moved;
}

/** Returns the chosen heads after a number was opened: its layer is the open one, and its head, if any, the chosen one. */
export function headsWith(config: ModelConfig, heads: Heads, name: string, head: number) {
  const [stack, , layer, sublayer] = name.split(".");
  if (layer === undefined) return heads;
  const moved = headsAt(heads, stack as Stack, Number(layer));
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === sublayer);
  if (family && hasHeads(config, name)) moved[family.id].head = head;
  return moved;
}

/** Returns the statistics of every head of a family in one translation; they are computed once per translation. */
export function measuredHeads(
  config: ModelConfig,
  family: Family,
  translated: Translated,
): Promise<MeasuredHead[]> {
  return (translated.statistics[family.id] ??= measured(config, family, translated));
}

async function measured(config: ModelConfig, family: Family, translated: Translated) {
  const found = [];
  for (let layer = 0; layer < layersOf(config, family); layer++) {
    const name = `${attentionName(family, layer)}.weights`;
    const {
      shape: [heads, rows, columns],
      data,
    } = await translated.trace.get(name);
    const keys = labelsOf(translated, name).columns ?? [];
    for (let head = 0; head < heads; head++) {
      found.push({ layer, head, ...headStatistics(data, head * rows * columns, rows, columns, keys) });
    }
  }
  return found;
}

/**
 * Returns, for each family, the head of the last layer with the highest mean peak. If some heads of cross-attention
 * are known to align words, only these heads are compared for cross-attention.
 */
export async function sharpestHeads(
  config: ModelConfig,
  translated: Translated,
  alignment?: { layer: number; heads: number[] } | null,
) {
  const heads = {} as Record<FamilyId, HeadPlace>;
  for (const family of FAMILIES) {
    const aligning = family.id === "cross" ? alignment : null;
    const shown = aligning?.layer ?? layersOf(config, family) - 1;
    const among = (await measuredHeads(config, family, translated)).filter(
      ({ layer, head }) => layer === shown && (aligning?.heads.includes(head) ?? true),
    );
    const { layer, head } = among.reduce((best, one) => (one.peak > best.peak ? one : best));
    heads[family.id] = { layer, head };
  }
  return heads;
}
