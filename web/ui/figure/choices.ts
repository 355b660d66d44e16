// Choices that the stage makes: which heads and waves to draw, and the direction of a script.
import { largestPlace, rowOfHead, times } from "../../engine/tensor.ts";

import type { Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { FamilyId } from "../app/types.ts";
import type { Act } from "./play.ts";
import type { StageNumbers } from "./shown.ts";

const PICTURED = 8; // maximum number of heads that get a picture

export function familyOf(box: string): FamilyId {
  if (box.startsWith("encoder")) return "encoder";
  return box === "decoder.self_attention" ? "decoder" : "cross";
}

/** Returns whether the words are in a script that runs from right to left. */
export function isLeftwards(words: string[]) {
  const letters = words.join("").match(/\p{L}/gu) ?? [];
  const turned = letters.filter((one) =>
    /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(one),
  );
  return turned.length * 2 > letters.length;
}

/**
 * Returns the heads that get a picture: all heads if there are up to eight, otherwise the heads with the largest
 * weights in the highlighted row.
 */
export function picturedHeads(
  app: App,
  { weights, heads, row, source }: StageNumbers,
): Record<FamilyId, number[]> {
  const all = [...Array(app.config.heads).keys()];
  const shown = (family: FamilyId) => {
    if (all.length <= PICTURED) return all;
    const lit = family === "encoder" ? source : row;
    const peak = (head: number) =>
      head === heads[family] ? 2 : Math.max(...rowOfHead(weights[family], head, lit));
    return [...all]
      .sort((a, b) => peak(b) - peak(a))
      .slice(0, PICTURED)
      .sort((a, b) => a - b);
  };
  return { encoder: shown("encoder"), cross: shown("cross"), decoder: shown("decoder") };
}

/** Returns the two dimensions of the position vectors that are drawn as waves; null if the model has no positions. */
export function wavesOf(
  { config, changes }: Pick<App, "config" | "changes">,
  vector: Tensor | undefined,
): [number, number] | null {
  const { positions, d_model: width } = config;
  if (positions === "none" || !changes.positions) return null;
  if (positions === "learned" && vector) {
    const spread = times(width, (at) => variance(vector.data, at, width));
    const first = largestPlace(spread);
    spread[first] = -1;
    return [first, largestPlace(spread)];
  }
  const length = vector?.shape[0] ?? 1;
  const pairs = times(Math.ceil(width / 2), (pair) => pair);
  const period = (pair: number) => 2 * Math.PI * 10000 ** ((2 * pair) / width);
  const nearest = (wanted: number) =>
    largestPlace(pairs.map((pair) => -Math.abs(Math.log(period(pair) / wanted))));
  const dimension = (pair: number) => (positions === "halves" ? pair : 2 * pair);
  return [dimension(nearest(length / 4)), dimension(nearest(length))];
}

export function variance(data: Float32Array, at: number, width: number) {
  const values = times(data.length / width, (row) => data[row * width + at]);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
}

/**
 * Returns how many words have been written in an act of Play or of a chapter; −1 before the decoder begins; null (all
 * words) if there is no act.
 */
export function writtenIn(act: Pick<Act, "row" | "risen"> | null) {
  if (act?.risen.decoder === "") return -1;
  return act && act.row + Number(act.risen.decoder === "all");
}

export function parityText(app: App) {
  const { live } = app.engine;
  if (live === true)
    return app.t(
      app.parity === null || app.parity <= 1e-4 ? "page.parity" : "page.parity.bad",
      app.parity?.toExponential(0) ?? "",
    );
  return app.t(live ? "page.remote" : "page.recorded");
}
