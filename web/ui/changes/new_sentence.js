// A new sentence: it keeps the pinned changes that it can have, and a banner says which, with one button back.
import { keptChanges, NO_CHANGES } from "../../engine/changes.js";
import { button, element, refill } from "../dom.js";
import { activeChanges } from "./active.js";
/**
 * @import { App } from "../app.js"
 * @import { ActiveChange, Events } from "../types.js"
 */

/**
 * Opens the reader's new sentence, under the changes if they are pinned.
 * @param {App} app
 * @param {string} sentence
 */
export async function openNew(app, sentence) {
  const before = { sentence: app.sentence, changes: app.changes };
  const had = activeChanges(app).map(({ section }) => section);
  const isKept = app.ui.pinned && had.length > 0 && sentence.trim() !== "";
  await app.turnTo({ sentence, changes: isKept ? await keptFor(app, sentence) : { ...NO_CHANGES } });
  if (had.length > 0) app.emit("turned", { before, had });
}

/**
 * @param {App} app
 * @param {string} sentence
 */
async function keptFor(app, sentence) {
  const { sourceIds, targetIds } = await app.unchanged(sentence, app.changes);
  return keptChanges(app.changes, { source: sourceIds.length, target: targetIds.length });
}

/**
 * Returns the button that pins the changes.
 * @param {App} app
 */
export function pinButton(app) {
  const { pinned } = app.ui;
  const turn = () => app.show({ pinned: !app.ui.pinned });
  return button(app.t("changes.pin"), turn, { pressed: pinned, title: app.t("changes.pin.title") });
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
    const { before, had } = last;
    const kept = activeChanges(app).map(({ section }) => section);
    const dropped = [...had];
    for (const section of kept) if (dropped.includes(section)) dropped.splice(dropped.indexOf(section), 1);
    refill(
      banner,
      kept.length > 0 && app.t("changes.kept", named(app, kept)),
      " ",
      dropped.length > 0 && app.t("changes.dropped", named(app, dropped)),
      " ",
      button(app.t("changes.turnBack"), () => app.attempt(() => app.turnTo(before))),
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
 * Returns the names of the sections, each with its number of changes.
 * @param {App} app
 * @param {ActiveChange["section"][]} sections
 */
function named(app, sections) {
  return [...new Set(sections)]
    .map((id) => {
      const count = sections.filter((one) => one === id).length;
      return `${app.t(id === "training" ? "panel.training" : `changes.${id}`)} (${count})`;
    })
    .join(", ");
}
