// Undoing and redoing changes, also across sentences.
import { NO_CHANGES } from "../../engine/changes.js";
/**
 * @import { App } from "../app.js"
 * @import { Situation } from "../types.js"
 */

/**
 * Returns the sentence and its changes as a JSON string, for comparing states and restoring one.
 * @param {App} app
 */
function situationText({ sentence, changes }) {
  return JSON.stringify({ sentence, changes: { ...NO_CHANGES, source: sentence, prefix: "", ...changes } });
}

/**
 * Returns the history of a view's sentences and changes, which undoes and redoes them.
 * @param {App} app
 */
export function changesHistory(app) {
  /** @type {string[]} */
  const past = [];
  /** @type {string[]} */
  const future = [];
  let present = situationText(app);
  app.on("result", () => {
    const now = situationText(app);
    if (now === present) return;
    past.push(present);
    future.length = 0;
    present = now;
  });
  const move = (/** @type {string[]} */ from, /** @type {string[]} */ to) => () => {
    to.push(present);
    present = from.pop() ?? present;
    return app.attempt(() => app.turnTo(/** @type {Situation} */ (JSON.parse(present))));
  };
  return { past, future, undo: move(past, future), redo: move(future, past) };
}
