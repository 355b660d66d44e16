// What stands above the panel of an opened box: its segments, such as the calculation, "Why?" and "Beam", and its word.
import { button, element } from "../dom.ts";
import { panelOf } from "../panels.ts";

import type { App } from "../app.ts";
import type { Child, PanelName } from "../types.ts";

/** The panels that are segments of boxes, and these boxes without their stack. */
const SEGMENTS: Partial<Record<PanelName, string[]>> = {
  why: ["softmax", "linear"],
  beam: ["softmax", "linear"],
  positions: ["embedding", "positions"],
};

/** Returns the box in which a panel stands; null for a panel of the sheet. */
export function boxOfPanel(panel: PanelName) {
  const [box] = SEGMENTS[panel] ?? [];
  return box ? { box: panel === "positions" ? "encoder.positions" : `decoder.${box}`, key: null } : null;
}

/** Returns the panels that are segments of a box of this name. */
function panelsIn(box: string) {
  const id = box.replace(/^\w+\./, "");
  return (Object.keys(SEGMENTS) as PanelName[]).filter((panel) => SEGMENTS[panel]?.includes(id));
}

/** Returns the panel that is open in a box of this name; null for the box's own calculation. */
export function segmentOf({ state }: App, box: string): PanelName | null {
  return panelsIn(box).find((panel) => panel === state.panel) ?? null;
}

/** Returns what a box shows: its own calculation, or the panel that is open in it, below the names of both and `beside`. */
export function withSegments(
  app: App,
  box: string,
  name: string,
  { beside, calculation }: { beside: Child; calculation: () => Child[] },
): Child[] {
  const open = segmentOf(app, box);
  const panels = panelsIn(box).filter((panel) => app.panels.includes(panel));
  const segment = (panel: PanelName, text: string, isOpen: boolean) => {
    const made = button(text, () => app.show({ panel }), { pressed: isOpen });
    made.dataset.stop = `segment ${panel}`;
    return made;
  };
  const segments = element(
    "div",
    { className: "gfz-segments", role: "group" },
    segment("numbers", name, open === null),
    panels.map((panel) => segment(panel, app.t(`panel.${panel}`), panel === open)),
  );
  const bar = element("div", { className: "gfz-bar" }, segments, beside);
  if (open === null) return [bar, calculation()];
  if (app.state.view !== "stage") return [bar]; // the panel stands on the page of all numbers meanwhile
  const content = panelOf(app, open);
  if (!content.isConnected) queueMicrotask(() => app.layOut()); // some panels are drawn once they have a width
  return [bar, element("div", { className: `gfz-scroll gfs-sheet-body gfz-panel gfz-${open}` }, content)];
}
