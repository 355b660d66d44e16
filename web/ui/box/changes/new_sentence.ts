// Replaces the sentence. A pinned change stays in force if it also applies to the new sentence. A notice names the
// changes that stayed, and has a button that restores the old sentence.
import { keptChanges, NO_CHANGES } from "../../../engine/changes.ts";
import { button } from "../../app/dom.ts";
import { activeChanges } from "./active.ts";
import { joinMarks } from "../../app/translator.ts";
import { press } from "./controls.ts";
import type { App } from "../../app/app.ts";
import type { ActiveChange, Child } from "../../app/types.ts";

const MOST_NAMED = 3; // maximum number of changes of each kind that the notice names

/**
 * Returns the active changes that can stay when the sentence is replaced; replaced source words and forced output
 * words cannot stay.
 */
const lasting = (app: App) => activeChanges(app).filter(({ section }) => section !== "words");
const isPinned = (app: App, { id }: ActiveChange) => app.state.pinned.includes(id);

/** Opens a new sentence, and keeps the pinned changes that apply to it. Returns the notice about the changes. */
export async function openNew(app: App, typed: string): Promise<Child> {
  const sentence = joinMarks(app.engine.tokenizers.source, typed);
  const { sentence: old, changes } = app.state;
  const had = activeChanges(app);
  const pinned = had.filter((change) => isPinned(app, change));
  const isKept = pinned.length > 0 && sentence.trim() !== "";
  await app.turnTo({ sentence, changes: isKept ? await keptFor(app, sentence) : NO_CHANGES });
  if (had.length === 0) return null;
  const kept = activeChanges(app);
  const lists = {
    kept,
    lost: pinned.filter(({ id }) => !kept.some((one) => one.id === id)),
    dropped: had.filter((one) => !pinned.includes(one)),
  };
  const back = () => app.attempt(() => app.turnTo({ sentence: old, changes }));
  return [
    button(app.t("changes.turnBack"), back, { className: "gfs-text-link" }),
    Object.entries(lists).map(([id, list]) => list.length > 0 && ` ${app.t(`changes.${id}`, named(list))}`),
  ];
}

async function keptFor(app: App, sentence: string) {
  const changes = activeChanges(app)
    .filter((change) => !isPinned(app, change))
    .reduce((left, { undo }) => ({ ...left, ...undo(left) }), app.changes);
  const { sourceIds, targetIds } = await app.translator.unchanged({ ...app.state, sentence, changes });
  return keptChanges(changes, { source: sourceIds.length, target: targetIds.length });
}

/** Returns whether all changes that can be pinned are pinned. */
export function areAllPinned(app: App) {
  return lasting(app).length > 0 && lasting(app).every((change) => isPinned(app, change));
}

/** Returns the button that pins all changes. */
export function pinButton(app: App) {
  const turn = () => app.show({ pinned: areAllPinned(app) ? [] : lasting(app).map(({ id }) => id) });
  const disabled = lasting(app).length === 0;
  const title = app.t("changes.pin.title");
  return button(app.t("changes.pin"), turn, { pressed: areAllPinned(app), title, disabled });
}

/** Returns the button that pins one change; null for replaced and forced words, which belong to their own sentence. */
export function pinOf(app: App, { section, id, text }: ActiveChange) {
  if (section === "words") return null;
  const { pinned } = app.state;
  const isOn = pinned.includes(id);
  const turn = () => app.show({ pinned: isOn ? pinned.filter((one) => one !== id) : [...pinned, id] });
  const looks = { pressed: isOn, title: app.t("changes.pin.one.title"), className: "gf-pin" };
  return press(`pin ${id}`, app.t("changes.pin.one"), turn, {
    ...looks,
    label: app.t("changes.pin.one.of", text),
  });
}

/**
 * Returns a reminder of the reader's active changes, for texts that could be misread as being about the unchanged
 * model.
 */
export function inForce(app: App) {
  return app.changed ? app.t("look.changes", named(activeChanges(app))) : "";
}

/** Returns the texts of the first few changes, and the number of the remaining changes. */
function named(list: ActiveChange[]) {
  const texts = list.slice(0, MOST_NAMED).map(({ text }) => text);
  return [...texts, ...(list.length > MOST_NAMED ? [`+ ${list.length - MOST_NAMED}`] : [])].join("; ");
}
