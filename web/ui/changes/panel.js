// "What if?": the panel of all changes. Each section shows and sets its part of app.changes; the effect
// on the output is shown at the top of the page. Only the open section has elements.
import { NO_CHANGES } from "../../engine/changes.js";
import { attentionName, FAMILIES, hasAny } from "../app.js";
import { button, element, refill } from "../dom.js";
import { latestOnly } from "../latest.js";
import { linkOf } from "../link.js";
import { activeChanges } from "./active.js";
import { chips, keyed, press, row, tightRow, tryChange } from "./controls.js";
import { headsSection } from "./heads.js";
import { changesHistory } from "./history.js";
import { masksSection } from "./masks.js";
import { mistakesSection } from "./mistakes.js";
import { pinButton, pinOf } from "./new_sentence.js";
import { partsSection } from "./parts.js";
import { patchSection } from "./patches.js";
import { handSection } from "./hand.js";
import { wordsSection } from "./words.js";
import { copyButton } from "../take_away.js";
/**
 * @import { Cell } from "../../engine/types.js"
 * @import { App } from "../app.js"
 * @import { ActiveChange, At, ChangesPanel, Child, SectionName, SomeChanges } from "../types.js"
 */

/** @typedef {(panel: ChangesPanel) => Child[] | Promise<Child[]>} Section */

/** @type {Record<SectionName, Section>} */
const SECTIONS = {
  words: wordsSection,
  heads: headsSection,
  masks: masksSection,
  hand: handSection,
  patch: patchSection,
  parts: partsSection,
  mistakes: mistakesSection,
};
const SECTION_NAMES = /** @type {SectionName[]} */ (Object.keys(SECTIONS));
let groups = 0;

/**
 * Returns the panel as an element.
 * @param {App} app
 */
export function createChangesPanel(app) {
  const { layer, head } = app.ui.heads.cross;
  /** @type {At} */
  const at = { attention: attentionName(FAMILIES[1], layer), head, query: 0, key: 0 };
  const redraw = latestOnly(app.signal, prepared, show);
  /** @type {ChangesPanel} */
  const panel = {
    app,
    at,
    history: changesHistory(app),
    redraw,
    word: null,
    rival: null,
    row: null,
    patch: null,
  };
  const top = element("div", { tabindex: "-1" });
  const group = `gf-changes-${++groups}`;
  const sections = SECTION_NAMES.map((id) => folded(panel, group, id, SECTIONS[id]));
  const holder = element(
    "div",
    { className: "gf-changes" },
    top,
    sections.map((section) => section.element),
  );

  async function prepared() {
    if (app.ui.panel !== "changes") return null;
    const active = activeChanges(app);
    return { active, bodies: await Promise.all(sections.map((section) => section.content())) };
  }

  /** @param {{active: ActiveChange[], bodies: Child[][]} | null} made */
  function show(made) {
    if (!made) return;
    keepingFocus(holder, top, () => {
      refill(top, topOf(panel, made.active));
      sections.forEach((section, place) => section.fill(made.bodies[place], made.active));
    });
  }
  app.on("busy", (busy) => {
    if (!busy) redraw();
  });
  app.on("ui", (keys) => {
    if (keys.includes("selected")) follow(at, app.ui.selected);
    if (hasAny(keys, "panel", "language", "pinned")) redraw();
  });
  redraw();
  return holder;
}

/**
 * Returns a collapsible section; its body is empty while it is collapsed.
 * @param {ChangesPanel} panel
 * @param {string} group
 * @param {SectionName} id
 * @param {Section} content
 */
function folded(panel, group, id, content) {
  const summary = element("summary"),
    about = element("p", { className: "gf-note" }),
    body = element("div");
  const parts = [summary, about, body];
  const details = element("details", { name: group, open: id === "words", ontoggle: panel.redraw }, parts);
  return {
    element: details,
    content: async () => (details.open ? content(panel) : []),
    /**
     * @param {Child[]} children
     * @param {ActiveChange[]} active
     */
    fill(children, active) {
      const { app } = panel,
        count = active.filter(({ section }) => section === id).length;
      refill(summary, app.t(`changes.${id}`), count > 0 && element("span", { className: "gf-count" }, count));
      const swaps = id === "words" && /\b(tired|wide)\b/.test(app.sentence);
      about.textContent = app.t(swaps ? "changes.words.swap" : `changes.${id}.about`);
      refill(body, children);
    },
  };
}

/**
 * Runs an action that redraws, then restores the focus and the typed text to the control with the same data-key.
 * @param {HTMLElement} holder
 * @param {HTMLElement} otherwise
 * @param {() => void} action
 */
function keepingFocus(holder, otherwise, action) {
  const root = holder.getRootNode(); // in a notebook's cell the root may be a shadow root
  const before = root instanceof Document || root instanceof ShadowRoot ? root.activeElement : null;
  const key = before?.getAttribute("data-key");
  const kept = holder.contains(before);
  action();
  if (!kept || holder.contains(before)) return;
  /** @type {HTMLElement | null} */
  const after = key ? holder.querySelector(`[data-key="${CSS.escape(key)}"]:enabled`) : null;
  if (before instanceof HTMLInputElement && after instanceof HTMLInputElement && after.type === "text")
    after.value = before.value;
  (after ?? otherwise).focus({ preventScroll: true });
}

/**
 * Lets the sections "Mask" and "Attention by hand" follow the cell that the reader has chosen in a grid.
 * @param {At} at
 * @param {Cell | null} selected
 */
function follow(at, selected) {
  if (!selected || !/\.(scores|weights)$/.test(selected.name)) return;
  const [head, query, key] = selected.index;
  Object.assign(at, { attention: selected.name.replace(/\.\w+$/, ""), head, query, key });
}

/**
 * @param {ChangesPanel} panel
 * @param {ActiveChange[]} active
 * @returns {Child[]}
 */
function topOf({ app, history }, active) {
  /** @type {(id: string, action: () => unknown, disabled: boolean) => Child} */
  const tool = (id, action, disabled) => press(id, app.t(`changes.${id}`), action, { disabled });
  const reset = () => tryChange(app, { ...NO_CHANGES, source: app.sentence, prefix: "" });
  return [
    app.changed ? chips(app, active, pinOf) : element("p", {}, app.t("changes.intro")),
    !app.changed && firstTries(app),
    row(
      tool("undo", history.undo, !history.past.length),
      tool("redo", history.redo, !history.future.length),
      tool("reset", reset, !app.changed),
      keyed(pinButton(app), "pin"),
      linkOf(app) && copyButton(app, app.t("changes.link"), () => linkOf(app) ?? ""),
    ),
  ];
}

/**
 * Returns buttons for a first try: changes that work in every model.
 * @param {App} app
 */
function firstTries(app) {
  const last = attentionName(FAMILIES[1], app.config.decoder_layers - 1);
  /** @type {[string, SomeChanges][]} */
  const tries = Object.entries({
    positions: { positions: false },
    "try.cross": { ablated: { [last]: Array.from({ length: app.config.heads }, (_, head) => head) } },
    "try.causal": { mistakes: ["no_causal_mask"] },
  });
  const title = app.t("changes.try"),
    className = "gf-chip";
  return tightRow(
    title,
    element("span", { className: "gf-note" }, title),
    tries.map(([id, changes]) =>
      button(app.t(`changes.${id}`), () => tryChange(app, changes), { className }),
    ),
  );
}
