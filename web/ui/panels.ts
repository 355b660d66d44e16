// The panels: each exists once, and stands either on the page of all numbers or in the stage's sheet.
import { createBeamPanel } from "./beam_panel.ts";
import { createChangesPanel } from "./changes/panel.ts";
import { createLayersPanel } from "./layers_panel.ts";
import { createNumbersPanel } from "./numbers_panel.ts";
import { createPositionsPanel } from "./positions_panel.ts";
import { createTrainingPanel } from "./training_panel.ts";
import { createWhyPanel } from "./why_panel.ts";

import type { App } from "./app.ts";
import type { PanelName } from "./types.ts";

const PANELS: Record<PanelName, (app: App) => HTMLElement> = {
  numbers: createNumbersPanel,
  why: createWhyPanel,
  layers: createLayersPanel,
  changes: createChangesPanel,
  beam: createBeamPanel,
  positions: createPositionsPanel,
  training: createTrainingPanel,
};
const made: WeakMap<App, Partial<Record<PanelName, HTMLElement>>> = new WeakMap();

/** Returns an app's panel, made when it is first asked for. */
export function panelOf(app: App, name: PanelName) {
  const known = made.get(app) ?? {};
  made.set(app, known);
  return (known[name] ??= PANELS[name](app));
}
