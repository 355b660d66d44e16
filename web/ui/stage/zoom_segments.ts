// What stands above the panel of an opened box: its segments, such as the calculation, "Why?" and "Weights", and its word.
import { element } from "../dom.ts";
import { isPanel, panelOf } from "../panels.ts";
import { boxName, placeOfBox } from "./zoom_box.ts";
import { stopButton } from "./zoom_parts.ts";

import type { ModelConfig, Stack } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Child, PanelName, SegmentName } from "../types.ts";

const WORDS = /^(softmax|linear)$/;
/** The segments, the boxes that have them, by their names in a stack, and the box in which an address opens each. */
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

/** Returns the box in which a segment is opened; null for a panel that is none. */
export function boxOfPanel(config: ModelConfig, panel: PanelName | SegmentName) {
  const name = NAMES.find((one) => one === panel);
  if (!name) return null;
  const [, stack, id] = SEGMENTS[name];
  return { box: boxName(stack, id, config.decoder_layers - 1), key: null };
}

/** Returns the segments of a box of this name, besides its calculation. */
function segmentsOf(box: string) {
  return NAMES.filter((name) => SEGMENTS[name][0].test(placeOfBox(box).id));
}

/** Returns the segment that is open in a box of this name; null for the box's own calculation. */
export function segmentOf({ state }: App, box: string): Segment | null {
  return segmentsOf(box).find((name) => name === state.panel) ?? null;
}

/**
 * Returns what a box shows below the names of its segments and `beside`: the open segment, which is `own`, the box's
 * calculation by default, or one of the panels.
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
  if (!content.isConnected) queueMicrotask(() => app.layOut()); // some panels are drawn once they have a width
  return [bar, element("div", { class: `gfz-scroll gfs-sheet-body gfz-panel gfz-${open}` }, content)];
}

/** Returns why a segment shows nothing. */
export function emptyPanel(text: string): Child[] {
  return [element("div", { class: "gfz-scroll gfz-panel" }, element("p", {}, text))];
}
