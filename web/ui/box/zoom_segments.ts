// The bar above the panel of an opened box: its segments, such as the calculation, "Why?" and "Weights", and the open
// word.
import { element } from "../app/dom.ts";
import { isPanel, panelOf } from "./panels.ts";
import { segmentOf, segmentsOf } from "../app/boxes.ts";
import { stopButton } from "./zoom_parts.ts";

import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Segment } from "../app/boxes.ts";

/**
 * Returns the content of an opened box: the bar with the segments' names and `beside`, and below the bar the open
 * segment. If the open segment is not a panel, `own()` returns the segment's content, such as the box's calculation.
 */
export function withSegments(
  app: App,
  box: string,
  { name = "zoom.calculation", beside, own }: { name?: string; beside: Child; own: () => Child[] },
): Child[] {
  const open = segmentOf(app.state, box);
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
  const bar = element("div", "gfz-bar", segments, beside);
  if (!open || !isPanel(open)) return [bar, own()];
  return [bar, element("div", `gfz-scroll gfs-sheet-body gfz-panel gfz-${open}`, panelOf(app, open))];
}

/** Returns a segment that only says why it is empty. */
export function emptyPanel(text: string): Child[] {
  return [element("div", "gfz-scroll gfz-panel", element("p", {}, text))];
}
