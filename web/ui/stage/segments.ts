// The segments of the boxes: what an opened box can show besides its calculation, such as "Why?" and "Weights".
import { boxName, placeOfBox } from "./zoom_box.ts";

import type { ModelConfig, Stack } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { PanelName, SegmentName } from "../types.ts";

const WORDS = /^(softmax|linear)$/;
/**
 * For each segment: the boxes that have this segment, and the box in which the segment opens if an address names it
 * as a panel.
 */
const SEGMENTS = {
  why: [WORDS, "decoder", "softmax"],
  beam: [WORDS, "decoder", "softmax"],
  positions: [/^(embedding|positions)$/, "encoder", "positions"],
  weights: [/attention$|^feed_forward$/, "decoder", "cross_attention"],
  rollout: [/attention$/, "decoder", "cross_attention"],
  guesses: [/\.add$/, "decoder", "feed_forward.add"],
} satisfies Partial<Record<PanelName | SegmentName, [boxes: RegExp, stack: Stack, id: string]>>;
export type Segment = keyof typeof SEGMENTS;
const NAMES = Object.keys(SEGMENTS) as Segment[];

/** Returns the box in which a segment opens; null for a panel that is not a segment. */
export function boxOfPanel(config: ModelConfig, panel: PanelName | SegmentName) {
  const name = NAMES.find((one) => one === panel);
  if (!name) return null;
  const [, stack, id] = SEGMENTS[name];
  return { box: boxName(stack, id, config.decoder_layers - 1), key: null };
}

/** Returns the segments of a box, in addition to its calculation. */
export function segmentsOf(box: string) {
  return NAMES.filter((name) => SEGMENTS[name][0].test(placeOfBox(box).id));
}

/** Returns the open segment of a box; null means the box's own calculation. */
export function segmentOf({ state }: App, box: string): Segment | null {
  return segmentsOf(box).find((name) => name === state.panel) ?? null;
}
