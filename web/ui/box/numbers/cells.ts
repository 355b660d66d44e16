// Opens numbers: the first cell of a tensor, and the matching cell of another tensor.
import { largestPlace } from "../../../engine/tensor.ts";
import { hasHeads } from "../../../engine/model.ts";
import { FAMILIES, attentionName } from "../../app/heads.ts";
import { litRow } from "../../figure/lighting.ts";
import { rowAt } from "../zoom_parts.ts";

import type { Cell, Tensor } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";

/**
 * Returns the cell with the largest number in the highlighted row of a tensor; by default, the tensor is the weights of
 * the highlighted head of cross-attention.
 */
export async function enteredCell(app: App, name?: string): Promise<Cell> {
  const { cross } = app.state.heads;
  const point = name ?? `${attentionName(FAMILIES[1], cross.layer)}.weights`;
  const tensor = await app.value(point);
  const lit = app.labels(point).rowSide === "target" ? await litRow(app) : (app.state.sourceWord ?? 0);
  const lead = hasHeads(app.config, point) ? [cross.head] : [];
  const row = inside([...lead, lit], tensor.shape.slice(0, -1));
  return { name: point, index: [...row, largestPlace(rowAt(tensor, row))] };
}

/** Opens a tensor at the largest number of the highlighted row. */
export function openTensor(app: App, name: string) {
  return app.attempt(async () => app.select(await enteredCell(app, name)));
}

/** Returns an index in which each entry is clipped to the shape. */
export function inside(index: number[], shape: number[]) {
  return index.map((at, axis) => Math.min(at, shape[axis] - 1));
}

/**
 * Returns the cell index in the point `other` with the same word and head as the given cell, as far as `other` has
 * these axes. The second parameter is the tensor of `other`.
 */
export function indexIn(other: string, { shape }: Tensor, { name, index }: Cell) {
  const [t, c] = index.slice(-2);
  const row = /\.(key|value)$/.test(other) && /\.(scores|weights)$/.test(name) ? c : t;
  return inside([index.length === 3 ? index[0] : 0, row, c].slice(-shape.length), shape);
}
