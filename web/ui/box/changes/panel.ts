// "What if?": the panel of all changes. Each section shows and sets its own part of app.changes; the page shows the
// effect of the changes on the output. Only the open section is filled.
import { times } from "../../../engine/tensor.ts";
import { NO_CHANGES } from "../../../engine/changes.ts";
import { FAMILIES, attentionName } from "../../app/heads.ts";
import { button, element, note, refill } from "../../app/dom.ts";
import { remark } from "../../app/drawing.ts";
import { latestOnly } from "../../app/latest.ts";
import { activeChanges } from "./active.ts";
import { chips, keyed, press, row, tightRow, tryChange } from "./controls.ts";
import { changesHistory } from "./history.ts";
import { SECTIONS, SECTION_NAMES } from "./sections.ts";
import { pinButton, pinOf } from "./new_sentence.ts";
import { linkButton } from "../take_away.ts";
import type { Cell } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { ActiveChange, At, Child, SectionName, SomeChanges } from "../../app/types.ts";
import type { ChangesPanel } from "./panel_state.ts";
import type { Section } from "./sections.ts";

let groups = 0;

/** Returns the panel as an element. */
export function createChangesPanel(app: App) {
  const { layer, head } = app.state.heads.cross;
  const at: At = { attention: attentionName(FAMILIES[1], layer), head, query: 0, key: 0 };
  const redraw = latestOnly(app.signal, prepared, show);
  const panel: ChangesPanel = {
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
    "gf-changes",
    top,
    sections.map((section) => section.element),
  );

  async function prepared() {
    if (app.state.panel !== "changes") return null;
    const active = activeChanges(app);
    return { active, bodies: await Promise.all(sections.map((section) => section.content())) };
  }

  function show(made: { active: ActiveChange[]; bodies: Child[][] } | null) {
    if (!made) return;
    keepingFocus(holder, top, () => {
      refill(top, topOf(panel, made.active));
      sections.forEach((section, place) => section.fill(made.bodies[place], made.active));
    });
  }
  app.on(["selected"], ({ selected }) => follow(at, selected));
  follow(at, app.state.selected);
  app.on(["panel", "language", "pinned"], redraw);
  app.on(["busy"], ({ busy }) => !busy && redraw());
  redraw();
  return holder;
}

/** Returns a collapsible section; its body is empty while it is collapsed. */
function folded(panel: ChangesPanel, group: string, id: SectionName, content: Section) {
  const summary = element("summary"),
    about = note(),
    body = element("div");
  const parts = [summary, about, body];
  const details = element("details", { name: group, open: id === "words", ontoggle: panel.redraw }, parts);
  return {
    element: details,
    content: async () => (details.open ? content(panel) : []),
    fill(children: Child[], active: ActiveChange[]) {
      const { app } = panel,
        count = active.filter(({ section }) => section === id).length;
      refill(summary, app.t(`changes.${id}`), count > 0 && element("span", "gf-count", count));
      about.textContent = app.t(`changes.${id}.about`);
      refill(body, children);
    },
  };
}

/**
 * Returns the label and the change of a button that replaces the present sentence by the other sentence of the pair
 * with which the chapters work. Returns [] if the present sentence does not belong to this pair.
 */
function swapOf(app: App): [string, SomeChanges][] {
  const { pair } = app.payload.story;
  const at = pair.indexOf(app.state.sentence);
  const [here, there] = [at, 1 - at].map((one) => pair[one]?.match(/[\p{L}\p{N}]+/gu) ?? []);
  const place = here.findIndex((word, i) => word !== there[i]);
  if (place < 0 || there.length <= place) return [];
  return [[app.t("changes.words.swap", here[place], there[place]), { source: pair[1 - at] }]];
}

/**
 * Runs an action that redraws. If the redraw removes the focused control, the new control with the same data-key gets
 * the focus and the typed text.
 */
function keepingFocus(holder: HTMLElement, otherwise: HTMLElement, action: () => void) {
  const root = holder.getRootNode(); // in a notebook, the root may be a shadow root
  const before = root instanceof Document || root instanceof ShadowRoot ? root.activeElement : null;
  const key = before?.getAttribute("data-key");
  const kept = holder.contains(before);
  action();
  if (!kept || holder.contains(before)) return;
  const after: HTMLElement | null = key
    ? holder.querySelector(`[data-key="${CSS.escape(key)}"]:enabled`)
    : null;
  if (before instanceof HTMLInputElement && after instanceof HTMLInputElement && after.type === "text")
    after.value = before.value;
  (after ?? otherwise).focus({ preventScroll: true });
}

/** Updates what the sections "Mask" and "Attention by hand" edit when the reader chooses a cell in a grid. */
function follow(at: At, selected: Cell | null) {
  if (!selected || !/\.(scores|weights)$/.test(selected.name)) return;
  const [head, query, key] = selected.index;
  Object.assign(at, { attention: selected.name.replace(/\.\w+$/, ""), head, query, key });
}

function topOf({ app, history }: ChangesPanel, active: ActiveChange[]): Child[] {
  const tool = (id: string, action: () => unknown, disabled: boolean): Child =>
    press(id, app.t(`changes.${id}`), action, { disabled });
  const reset = () => tryChange(app, { ...NO_CHANGES, source: app.state.sentence, prefix: "" });
  return [
    app.changed ? chips(app, active, pinOf) : element("p", {}, app.t("changes.intro")),
    !app.changed && firstTries(app),
    row(
      tool("undo", history.undo, !history.past.length),
      tool("redo", history.redo, !history.future.length),
      tool("reset", reset, !app.changed),
      keyed(pinButton(app), "pin"),
      linkButton(app),
    ),
  ];
}

/** Returns buttons for first experiments: the other sentence of the pair, and changes that work in every model. */
function firstTries(app: App) {
  const last = attentionName(FAMILIES[1], app.config.decoder_layers - 1);
  const tries: [string, SomeChanges][] = [
    [app.t("changes.positions"), { positions: false }],
    [app.t("changes.try.cross"), { ablated: { [last]: times(app.config.heads, (head) => head) } }],
    [app.t("changes.try.causal"), { mistakes: ["no_causal_mask"] }],
  ];
  const title = app.t("changes.try"),
    className = "gf-chip";
  return tightRow(
    title,
    remark(title),
    [...swapOf(app), ...tries].map(([name, changes]) =>
      button(name, () => tryChange(app, changes), { className }),
    ),
  );
}
