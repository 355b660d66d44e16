// Undo and redo of changes, which also work across sentences.
import { NO_CHANGES } from "../../../engine/changes.ts";
import type { App } from "../../app/app.ts";
import type { Situation } from "../../app/types.ts";

/** Returns the sentence and its changes as JSON, for comparing and restoring states. */
function situationText({ sentence, changes }: Situation) {
  return JSON.stringify({ sentence, changes: { ...NO_CHANGES, source: sentence, prefix: "", ...changes } });
}

/** Returns the history of a view's sentences and changes, which undoes and redoes them. */
export function changesHistory(app: App) {
  const past: string[] = [];
  const future: string[] = [];
  let present = situationText(app.state);
  app.on(["result"], () => {
    const now = situationText(app.state);
    if (now === present) return;
    past.push(present);
    future.length = 0;
    present = now;
  });
  const move = (from: string[], to: string[]) => () => {
    to.push(present);
    present = from.pop() ?? present;
    return app.attempt(() => app.turnTo(JSON.parse(present) as Situation));
  };
  return { past, future, undo: move(past, future), redo: move(future, past) };
}
