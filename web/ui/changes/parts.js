// Parts of the model that are left out.
import { switchRow, tryChange } from "./controls.js";
/** @import { ChangesPanel } from "../types.js" */

/** @param {ChangesPanel} panel */
export function partsSection({ app }) {
  return /** @type {const} */ (["positions", "scale"]).map((part) => {
    const set = (/** @type {boolean} */ off) => tryChange(app, { [part]: !off });
    return switchRow(app.t(`changes.${part}`), app.t(`changes.${part}.about`), !app.changes[part], set);
  });
}
