// What is said about a number: its place in the model, its meaning, and how the page computes it.
import { numberText } from "../../../engine/number_text.ts";
import { pointText } from "../../../engine/model.ts";
import { tokenName } from "../../app/wording.ts";

import type { Cell, Explanation } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { Sentence } from "../opened.ts";

/** Returns the last part of a point's name. */
export const lastOf = (name: string) => name.replace(/^.*\./, "");
/** Returns the name of a point without its last part. */
const partOf = (name: string) => name.slice(0, Math.max(0, name.lastIndexOf(".")));

/** Returns a text that locates a number: part of the model, layer and head. */
export function placeText(app: App, { name, index }: Cell) {
  const head = index.length > 2 ? `${app.t("word.comma")}${app.t("word.head")} ${index[0]}` : "";
  return groupName(app, name) + head;
}

/** Returns the name of the part of the model to which a point belongs. */
export function groupName(app: App, name: string) {
  const part = partOf(name);
  const [, stack, layer, sublayer] = /^(\w+)\.layers\.(\d+)\.(\w+)$/.exec(part) ?? [];
  if (layer === undefined) return app.t(part ? `numbers.part.${part}` : "point.end");
  const family = sublayer === "cross_attention" ? "cross" : stack;
  const named = sublayer === "feed_forward" ? `numbers.feed.${stack}` : `family.${family}`;
  return `${app.t(named)}${app.t("word.comma")}${app.t("word.layer")} ${layer}`;
}

/**
 * Returns a sentence that says what a number means, such as "qu' reads street: 0.999", or to which word and dimension
 * the number belongs.
 */
export function told(app: App, { name, index }: Cell, result: number): Sentence {
  const [t, c] = index.slice(-2);
  const { rows, columns, rowSide, columnSide = rowSide } = app.labels(name);
  const word = (token: string, side: typeof rowSide) => ({ word: tokenName(token, app.t), side });
  const scored = /^log/.test(name) ? app.engine.tokens("target", [c])[0] : undefined;
  const other = columns
    ? word(columns[c], columnSide)
    : scored === undefined
      ? app.t("numbers.dimension", c)
      : word(scored, "target");
  const key = columns ? "numbers.reads" : scored === undefined ? "numbers.has" : "numbers.offers";
  return { key, values: [word(rows[t], rowSide), other, numberText(result, 3)], section: "" };
}

/** Returns a note on the rounding of a number; "" if its terms sum to it exactly. */
export function roundingOf({ engine, t }: App, { difference }: Explanation) {
  const off = Math.abs(difference);
  const key = engine.live === false ? "numbers.rounding.recorded" : "numbers.rounding";
  return off > 1e-12 ? t(key, off.toExponential(0)) : "";
}

/** Returns a sentence that explains a point. */
export function meaningOf(app: App, name: string) {
  return app.t(pointText(app.config, name));
}
