// Undoing and redoing the changes of a sentence.
import { NO_CHANGES } from "../../engine/changes.js";
import { tryChange } from "./controls.js";
/** @import { App } from "../app.js" */

/**
 * Returns all changes as a JSON string, for comparing states and restoring one.
 * @param {App} app
 */
function changesText(app) {
  return JSON.stringify({ ...NO_CHANGES, source: app.sentence, prefix: "", ...app.changes });
}

/**
 * Returns the history of one sentence's changes, which undoes and redoes them.
 * @param {App} app
 */
export function changesHistory(app) {
  /** @type {string[]} */
  const past = [];
  /** @type {string[]} */
  const future = [];
  let { sentence } = app,
    present = changesText(app);
  app.on("result", () => {
    const now = changesText(app);
    if (app.sentence !== sentence) past.length = future.length = 0;
    else if (now !== present) {
      past.push(present);
      future.length = 0;
    }
    [sentence, present] = [app.sentence, now];
  });
  const move = (/** @type {string[]} */ from, /** @type {string[]} */ to) => async () => {
    to.push(present);
    present = from.pop() ?? present;
    return tryChange(app, JSON.parse(present));
  };
  return { past, future, undo: move(past, future), redo: move(future, past) };
}
