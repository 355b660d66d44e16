// Controls that choose an attention, and a head, row and key of this attention.
import { times } from "../../../engine/tensor.ts";
import { attentionNames } from "../../../engine/model.ts";
import { placeIn } from "../../app/heads.ts";
import { chooser, element } from "../../app/dom.ts";
import { labelled, tokenPairs } from "./controls.ts";
import type { App } from "../../app/app.ts";
import type { At } from "../../app/types.ts";
import type { ChangesPanel } from "./panel_state.ts";

/** Returns the name of an attention, such as "Cross-attention, layer 1". */
export function placeName(app: App, attention: string) {
  const { family, layer } = placeIn(attention);
  return app.t("changes.place", app.t(`family.${family.id}`), layer);
}

/** Returns drop-downs that choose an attention, and a head, row and key of this attention. */
export function atChoosers(panel: ChangesPanel, ...parts: (keyof At)[]) {
  const { app, at } = panel;
  const { rows, columns } = app.labels(`${at.attention}.weights`);
  const keys = columns ?? [];
  at.query = Math.min(at.query, rows.length - 1);
  at.key = Math.min(at.key, keys.length - 1);
  const pairs: Record<keyof At, () => [string, string][]> = {
    attention: () => attentionNames(app.config).map((name) => [name, placeName(app, name)]),
    head: () => times(app.config.heads, (head) => [String(head), String(head)]),
    query: () => tokenPairs(rows),
    key: () => tokenPairs(keys),
  };
  return element(
    "div",
    "gf-fields",
    parts.map((part) => {
      const pick = (value: string) => {
        Object.assign(at, { [part]: part === "attention" ? value : Number(value) });
        panel.redraw();
      };
      return labelled(app.t(`changes.at.${part}`), chooser("", pairs[part](), String(at[part]), pick), part);
    }),
  );
}
