// A new sentence: it keeps the pinned changes that it can have, and a banner says which, with one button back.
import { keptChanges, NO_CHANGES } from "../../engine/changes.js";
import { button, element, refill } from "../dom.js";
import { activeChanges } from "./active.js";
import { press } from "./controls.js";
/**
 * @import { App } from "../app.js"
 * @import { ActiveChange, Events } from "../types.js"
 */

const MOST_NAMED = 3; // changes of a kind that the banner names

/**
 * Returns the active changes that can outlive their sentence: replaced and forced words cannot.
 * @param {App} app
 */
const lasting = (app) => activeChanges(app).filter(({ section }) => section !== "words");
/**
 * @param {App} app
 * @param {ActiveChange} change
 */
const isPinned = (app, { id }) => app.ui.pinned.includes(id);

/**
 * Opens the reader's new sentence, under the pinned changes that it can have.
 * @param {App} app
 * @param {string} sentence
 */
export async function openNew(app, sentence) {
  const before = { sentence: app.sentence, changes: app.changes };
  const had = activeChanges(app);
  const pinned = had.filter((change) => isPinned(app, change));
  const isKept = pinned.length > 0 && sentence.trim() !== "";
  await app.turnTo({ sentence, changes: isKept ? await keptFor(app, sentence) : { ...NO_CHANGES } });
  if (had.length > 0) app.emit("turned", { before, had, pinned });
}

/**
 * @param {App} app
 * @param {string} sentence
 */
async function keptFor(app, sentence) {
  const changes = activeChanges(app)
    .filter((change) => !isPinned(app, change))
    .reduce((left, { undo }) => ({ ...left, ...undo(left) }), app.changes);
  const { sourceIds, targetIds } = await app.unchanged(sentence, changes);
  return keptChanges(changes, { source: sourceIds.length, target: targetIds.length });
}

/**
 * Returns whether all changes that can outlive their sentence are pinned.
 * @param {App} app
 */
export function areAllPinned(app) {
  return lasting(app).length > 0 && lasting(app).every((change) => isPinned(app, change));
}

/**
 * Returns the button that pins all changes.
 * @param {App} app
 */
export function pinButton(app) {
  const turn = () => app.show({ pinned: areAllPinned(app) ? [] : lasting(app).map(({ id }) => id) });
  const disabled = lasting(app).length === 0;
  const title = app.t("changes.pin.title");
  return button(app.t("changes.pin"), turn, { pressed: areAllPinned(app), title, disabled });
}

/**
 * Returns the button that pins one change; replaced and forced words belong to their sentence and have none.
 * @param {App} app
 * @param {ActiveChange} change
 */
export function pinOf(app, { section, id, text }) {
  if (section === "words") return null;
  const { pinned } = app.ui;
  const isOn = pinned.includes(id);
  const turn = () => app.show({ pinned: isOn ? pinned.filter((one) => one !== id) : [...pinned, id] });
  const looks = { pressed: isOn, title: app.t("changes.pin.one.title"), className: "gf-pin" };
  return press(`pin ${id}`, app.t("changes.pin.one"), turn, {
    ...looks,
    label: app.t("changes.pin.one.of", text),
  });
}

/**
 * Returns the banner, which is empty until a new sentence has kept or dropped changes, and after the next result.
 * @param {App} app
 */
export function newSentenceBanner(app) {
  const banner = element("p", { className: "gf-turned", role: "status" });
  /** @type {Events["turned"] | null} */
  let last = null;
  const fill = () => {
    if (!last) return refill(banner);
    const { before, had, pinned } = last;
    const kept = activeChanges(app);
    const isKept = (/** @type {ActiveChange} */ { id }) => kept.some((one) => one.id === id);
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
  app.on("turned", (turned) => {
    last = turned;
    fill();
  });
  app.on("result", () => {
    last = null;
    fill();
  });
  app.on("ui", (keys) => keys.includes("language") && fill());
  return banner;
}

/**
 * Returns the texts of changes, of many the first ones and the number of the others.
 * @param {ActiveChange[]} list
 */
function named(list) {
  const texts = list.slice(0, MOST_NAMED).map(({ text }) => text);
  return [...texts, ...(list.length > MOST_NAMED ? [`+ ${list.length - MOST_NAMED}`] : [])].join("; ");
}
