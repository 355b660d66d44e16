// The section for leaving out parts of the model.
import { switchRow, tryChange } from "./controls.ts";
import type { ChangesPanel } from "./panel_state.ts";

export function partsSection({ app }: ChangesPanel) {
  return (["positions", "scale"] as const).map((part) => {
    const set = (off: boolean) => tryChange(app, { [part]: !off });
    return switchRow(app.t(`changes.${part}`), app.t(`changes.${part}.about`), !app.changes[part], set);
  });
}
