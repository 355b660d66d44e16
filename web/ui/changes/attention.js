// The choice of an attention, and of its head, row and key.
import { attentionNames } from "../../engine/model.js";
import { FAMILIES } from "../app.js";
import { chooser, element } from "../dom.js";
import { labelled, tokenPairs } from "./controls.js";
/**
 * @import { App } from "../app.js"
 * @import { At, ChangesPanel } from "../types.js"
 */

/**
 * Returns "Cross-attention, layer 1".
 * @param {App} app
 * @param {string} attention
 */
export function placeName(app, attention) {
  const [stack, , layer, sublayer] = attention.split(".");
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === sublayer);
  return family ? app.t("changes.place", app.t(`family.${family.id}`), layer) : attention;
}

/**
 * Returns drop-downs that choose an attention, and its head, row and key.
 * @param {ChangesPanel} panel
 * @param {(keyof At)[]} parts
 */
export function atChoosers(panel, ...parts) {
  const { app, at } = panel;
  const { rows, columns } = app.labels(`${at.attention}.weights`);
  const keys = columns ?? [];
  at.query = Math.min(at.query, rows.length - 1);
  at.key = Math.min(at.key, keys.length - 1);
  /** @type {Record<keyof At, () => [string, string][]>} */
  const pairs = {
    attention: () => attentionNames(app.config).map((name) => [name, placeName(app, name)]),
    head: () => Array.from({ length: app.config.heads }, (_, head) => [String(head), String(head)]),
    query: () => tokenPairs(rows),
    key: () => tokenPairs(keys),
  };
  return element(
    "div",
    { className: "gf-fields" },
    parts.map((part) => {
      const pick = (/** @type {string} */ value) => {
        Object.assign(at, { [part]: part === "attention" ? value : Number(value) });
        panel.redraw();
      };
      return labelled(app.t(`changes.at.${part}`), chooser("", pairs[part](), String(at[part]), pick), part);
    }),
  );
}
