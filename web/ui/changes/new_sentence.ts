// A new sentence: it keeps the pinned changes that it can have, and a banner says which, with one button back.
import { keptChanges, NO_CHANGES } from "../../engine/changes.ts";
import { button, element, refill } from "../dom.ts";
import { activeChanges } from "./active.ts";
import { joinMarks } from "../sentences.ts";
import { press } from "./controls.ts";
import type { App } from "../app.ts";
import type { ActiveChange } from "../types.ts";

const MOST_NAMED = 3; // changes of a kind that the banner names

/** Returns the active changes that can outlive their sentence: replaced and forced words cannot. */
const lasting = (app: App) => activeChanges(app).filter(({ section }) => section !== "words");
const isPinned = (app: App, { id }: ActiveChange) => app.state.pinned.includes(id);

/** Opens the reader's new sentence, under the pinned changes that it can have. */
export async function openNew(app: App, typed: string) {
  const sentence = joinMarks(app.engine.tokenizers.source, typed);
  const { sentence: old, changes } = app.state;
  const had = activeChanges(app);
  const pinned = had.filter((change) => isPinned(app, change));
  const isKept = pinned.length > 0 && sentence.trim() !== "";
  const kept = isKept ? await keptFor(app, sentence) : NO_CHANGES;
  const turned = { before: { sentence: old, changes }, had, pinned };
  await app.turnTo({ sentence, changes: kept }, had.length > 0 ? turned : null);
}

async function keptFor(app: App, sentence: string) {
  const changes = activeChanges(app)
    .filter((change) => !isPinned(app, change))
    .reduce((left, { undo }) => ({ ...left, ...undo(left) }), app.changes);
  const { sourceIds, targetIds } = await app.sentences.unchanged({ ...app.state, sentence, changes });
  return keptChanges(changes, { source: sourceIds.length, target: targetIds.length });
}

/** Returns whether all changes that can outlive their sentence are pinned. */
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

/** Returns the button that pins one change; replaced and forced words belong to their sentence and have none. */
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

/** Returns the banner, which is empty until a new sentence has kept or dropped changes, and after the next result. */
export function newSentenceBanner(app: App) {
  const banner = element("p", { class: "gf-turned", role: "status" });
  const fill = () => {
    const { turned } = app.state;
    if (!turned) return refill(banner);
    const { before, had, pinned } = turned;
    const kept = activeChanges(app);
    const isKept = ({ id }: ActiveChange) => kept.some((one) => one.id === id);
    const lists = {
      kept,
      lost: pinned.filter((one) => !isKept(one)),
      dropped: had.filter((one) => !pinned.includes(one)),
    };
    refill(
      banner,
      button(app.t("changes.turnBack"), () => app.attempt(() => app.turnTo(before))),
      Object.entries(lists).map(([id, list]) => list.length > 0 && `${app.t(`changes.${id}`, named(list))} `),
    );
  };
  app.on(["turned", "language"], fill);
  return banner;
}

/** Returns the texts of changes, of many the first ones and the number of the others. */
function named(list: ActiveChange[]) {
  const texts = list.slice(0, MOST_NAMED).map(({ text }) => text);
  return [...texts, ...(list.length > MOST_NAMED ? [`+ ${list.length - MOST_NAMED}`] : [])].join("; ");
}
