// The bar above the panel of an opened box: its segments, such as the calculation, "Why?" and "Weights", and the open
// word.
import { element } from "../dom.ts";
import { isPanel, panelOf } from "../panels.ts";
import { boxName, placeOfBox } from "./zoom_box.ts";
import { stopButton } from "./zoom_parts.ts";

import type { ModelConfig, Stack } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Child, PanelName, SegmentName } from "../types.ts";

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
type Segment = keyof typeof SEGMENTS;
const NAMES = Object.keys(SEGMENTS) as Segment[];

/** Returns the box in which a segment opens; null for a panel that is not a segment. */
export function boxOfPanel(config: ModelConfig, panel: PanelName | SegmentName) {
  const name = NAMES.find((one) => one === panel);
  if (!name) return null;
  const [, stack, id] = SEGMENTS[name];
  return { box: boxName(stack, id, config.decoder_layers - 1), key: null };
}

/** Returns the segments of a box, in addition to its calculation. */
function segmentsOf(box: string) {
  return NAMES.filter((name) => SEGMENTS[name][0].test(placeOfBox(box).id));
}

/** Returns the open segment of a box; null means the box's own calculation. */
export function segmentOf({ state }: App, box: string): Segment | null {
  return segmentsOf(box).find((name) => name === state.panel) ?? null;
}

/**
 * Returns the content of an opened box: the bar with the segments' names and `beside`, and below the bar the open
 * segment. If the open segment is not a panel, `own()` returns the segment's content, such as the box's calculation.
 */
export function withSegments(
  app: App,
  box: string,
  { name = "zoom.calculation", beside, own }: { name?: string; beside: Child; own: () => Child[] },
): Child[] {
  const open = segmentOf(app, box);
  const segment = (panel: Segment | "numbers", text: string) =>
    stopButton(`segment ${panel}`, app.t(text), () => app.show({ panel }), {
      pressed: panel === (open ?? "numbers"),
    });
  const segments = element(
    "div",
    { class: "gfz-segments", role: "group" },
    segment("numbers", name),
    segmentsOf(box).map((panel) => segment(panel, `panel.${panel}`)),
  );
  const bar = element("div", { class: "gfz-bar" }, segments, beside);
  if (!open || !isPanel(open)) return [bar, own()];
  const content = panelOf(app, open);
  if (!content.isConnected) queueMicrotask(() => app.layOut()); // some panels can only be drawn once they have a width
  return [bar, element("div", { class: `gfz-scroll gfs-sheet-body gfz-panel gfz-${open}` }, content)];
}

/** Returns a segment that only says why it is empty. */
export function emptyPanel(text: string): Child[] {
  return [element("div", { class: "gfz-scroll gfz-panel" }, element("p", {}, text))];
}
