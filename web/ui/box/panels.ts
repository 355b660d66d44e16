// The panels. Each panel is created once, and appears in the stage's sheet or in an opened box.
import { createBeamPanel } from "./beam_panel.ts";
import { createChangesPanel } from "./changes/panel.ts";
import { createPositionsPanel } from "./positions_panel.ts";
import { createTrainingPanel } from "./training_panel.ts";
import { createVocabularyPanel } from "./vocabulary_panel.ts";
import { createWhyPanel } from "./why_panel.ts";

import type { App } from "../app/app.ts";
import type { PanelName } from "../app/types.ts";

const PANELS = {
  why: createWhyPanel,
  changes: createChangesPanel,
  beam: createBeamPanel,
  positions: createPositionsPanel,
  training: createTrainingPanel,
  vocabulary: createVocabularyPanel,
} satisfies Partial<Record<PanelName, (app: App) => HTMLElement>>;
const made: WeakMap<App, Partial<Record<PanelName, HTMLElement>>> = new WeakMap();

/**
 * Returns whether a name is the name of a panel. The other names are the segments of opened boxes that are not panels.
 */
export const isPanel = (name: string): name is keyof typeof PANELS => name in PANELS;

/** Returns a panel of an app; the panel is created at the first call. */
export function panelOf(app: App, name: keyof typeof PANELS) {
  const known = made.get(app) ?? {};
  made.set(app, known);
  return (known[name] ??= PANELS[name](app));
}
