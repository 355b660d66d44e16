// The section for masks: which query may attend to which key.
import { times } from "../../../engine/tensor.ts";
import { attentionNames } from "../../../engine/model.ts";
import { element } from "../../app/dom.ts";
import { activeMasks } from "./active.ts";
import { atChoosers } from "./choosers.ts";
import { chips, press, row, tryChange } from "./controls.ts";
import { withList } from "./lists.ts";
import type { MaskCell } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { At, Child } from "../../app/types.ts";
import type { ChangesPanel } from "./panel_state.ts";

const LATER = 50; // a hidden key also stays hidden from this number of target positions after the present output

export function masksSection(panel: ChangesPanel): Child[] {
  const { app, at } = panel;
  const choosers = atChoosers(panel, "attention", "query", "key");
  const labels = (name: string) => app.labels(`${name}.weights`);
  const { rows, columns: keys, columnSide } = labels(at.attention);
  const columns = keys ?? [];
  const [query, key] = [rows[at.query], columns[at.key]];
  const mask = app.mask(at.attention);
  const mayLook = mask.data.subarray(at.query * mask.columns, (at.query + 1) * mask.columns);
  const may = mayLook[at.key] === 1;
  const left = mayLook.includes(1);
  const everywhere = attentionNames(app.config).filter((name) => labels(name).columnSide === columnSide);
  const set = (masks: Record<string, MaskCell[]>) => tryChange(app, { masks });
  const said = (text: string, good: boolean) =>
    element("p", { role: "status", class: good ? "" : "gf-blocked" }, text);
  const edits = activeMasks(app);
  return [
    choosers,
    said(app.t(may ? "changes.may" : "changes.may.not", query, key), may),
    !left && said(app.t("changes.no.key", query), false),
    row(
      press("toggle", app.t(may ? "changes.block" : "changes.open"), () => set(toggledCell(app, at, !may))),
      press("hide", app.t("changes.hide", key), () => set(hiding(app, [at.attention], at.key))),
      press("hide all", app.t("changes.hide.all", key), () => set(hiding(app, everywhere, at.key))),
    ),
    edits.length > 0 && element("h3", {}, app.t("changes.edits")),
    edits.length > 0 && chips(app, edits),
  ];
}

/**
 * Returns the masks after one cell was toggled: the reader's change of this cell is removed if there is one, otherwise
 * added.
 */
function toggledCell(app: App, { attention, query, key }: At, may: boolean) {
  const cells = app.changes.masks[attention] ?? [];
  const others = cells.filter((cell) => cell[0] !== query || cell[1] !== key);
  const edited: MaskCell[] = others.length < cells.length ? others : [...cells, [query, key, may]];
  return withList(app.changes.masks, attention, edited);
}

/**
 * Returns the masks with a key hidden from all queries in the named attentions, including queries of words that are
 * written later.
 */
function hiding(app: App, names: string[], key: number) {
  const { length } = app.result.current.sourceIds;
  return names.reduce((masks, name) => {
    const ofTarget = name.startsWith("decoder");
    const first = ofTarget && name.endsWith("self_attention") ? key : 0;
    const count = Math.max(0, length + (ofTarget ? LATER : 0) - first);
    const cells: MaskCell[] = times(count, (place) => [first + place, key, false]);
    return withList(masks, name, [...(masks[name] ?? []).filter((cell) => cell[1] !== key), ...cells]);
  }, app.changes.masks);
}
