// The state that the sections of the panel of changes share.

import type { App } from "../../app/app.ts";
import type { At, PatchDraft } from "../../app/types.ts";

/** The state that the sections of the panel share: choices that have not become changes yet. */
export interface ChangesPanel {
  app: App;
  at: At;
  history: { past: string[]; future: string[]; undo(): Promise<void>; redo(): Promise<void> };
  redraw(): Promise<void>;
  /** The index of the source word that is being edited. */
  word: number | null;
  /** The index of the output word whose rivals are shown. */
  rival: number | null;
  /** The row of weights that is being edited. */
  row: { key: string; weights: number[] } | null;
  patch: PatchDraft | null;
}
