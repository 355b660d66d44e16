// The bar above the panel of an opened box: its segments, such as the calculation, "Why?" and "Weights", and the open
// word.
import { element } from "../app/dom.ts";
import { isPanel, panelOf } from "./panels.ts";
import { kindOf, segmentOf, segmentsOf } from "../app/boxes.ts";
import { stopButton } from "./zoom_parts.ts";

import type { App } from "../app/app.ts";
import type { Child, PanelName } from "../app/types.ts";
import type { Opened } from "./opened.ts";

/** The names of calculations that have one of their own. */
const NAMES: Record<string, string> = { emb: "zoom.embedding", lin: "zoom.words", sof: "zoom.words" };

/** Returns the bar of an opened box, with the names of its segments. */
export function segmentBar(app: App, box: string, { beside, cell }: Opened) {
  const { panel } = app.state;
  const open = panel === "numbers" ? panel : (segmentOf(app.state, box) ?? "calculation");
  const segment = (to: PanelName, text: string) =>
    stopButton(
      `segment ${to}`,
      app.t(text),
      () => app.show({ panel: to, ...(to === "numbers" && { selected: cell }) }),
      { pressed: to === open },
    );
  const segments = element(
    "div",
    { class: "gfz-segments", role: "group" },
    segment("calculation", NAMES[kindOf(box) ?? ""] ?? "zoom.calculation"),
    segmentsOf(box).map((to) => segment(to, `panel.${to}`)),
    segment("numbers", "stage.numbers"),
  );
  return element("div", "gfz-bar", segments, beside);
}

/** Returns the open segment of a box: a panel, or what `own()` returns. */
export function segmentRoom(app: App, box: string, own: () => Child): Child {
  const open = segmentOf(app.state, box);
  if (!open || !isPanel(open)) return own();
  return element("div", `gfz-scroll gfs-sheet-body gfz-panel gfz-${open}`, panelOf(app, open));
}

/** Returns a segment that only says why it is empty. */
export function emptyPanel(text: string): Child[] {
  return [element("div", "gfz-scroll gfz-panel", element("p", {}, text))];
}
