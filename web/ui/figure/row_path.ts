// The geometry of an attention's highlighted row: the points at which the words that the row can attend to are drawn,
// along which the reader can drag the row's handle.
import { FAMILIES, attentionName } from "../app/heads.ts";
import { boxOf } from "./geometry.ts";
import { ribbonHeight } from "./ribbons.ts";
import { SIDES } from "./pen.ts";

import type { Family, FamilyId } from "../app/types.ts";
import type { StackPlace } from "./geometry.ts";
import type { Pen } from "./pen.ts";
import type { RowPlace } from "./shown.ts";

/** The share of the distance between two words within which a position is that of a word. */
const MAGNET = 0.12;

export interface RowPath extends RowPlace {
  family: Family;
  place: StackPlace;
  /** The words that the row can attend to. */
  tokens: string[];
  /** The coordinates of these words, from the left for arcs and from the top for ribbons. */
  stops: number[];
  /** Whether the row is drawn as arcs to words side by side, and not as ribbons one above the other. */
  isArc: boolean;
}

/** Returns the highlighted row of an attention. */
export function rowPathOf({ geometry, numbers }: Pen, id: FamilyId): RowPath {
  const family = FAMILIES.find((one) => one.id === id) as Family;
  const { stack } = family;
  const place = geometry[stack];
  const { translated, steps } = numbers;
  const isArc = id !== "cross" || steps.crossKeyValue.side === "target";
  const side = isArc ? SIDES[stack] : "source";
  const tokens = side === "source" ? translated.sourceTokens : translated.targetTokens;
  return {
    family,
    place,
    attention: attentionName(family, numbers.open[stack]),
    head: numbers.heads[id],
    query: stack === "encoder" ? numbers.source : numbers.row,
    tokens,
    stops: isArc ? place.columns.at : tokens.map((_, at) => ribbonHeight(geometry, at, tokens.length)),
    isArc,
  };
}

/** Returns the coordinates of the handle for a position, which may lie between two neighbouring words. */
export function pointOf({ place, family, query, stops, isArc }: RowPath, position: number) {
  const stop = stopAt(stops, position);
  const x = place.columns.at[query];
  return isArc ? { x: stop, y: boxOf(place, family.sublayer).y[1] - 7 } : { x, y: stop };
}

/** Returns the position nearest to a point. */
export function positionAt({ stops, isArc }: RowPath, { x, y }: { x: number; y: number }) {
  return positionAmong(stops, isArc ? x : y);
}

/** Returns the coordinate at a position between words; `stops`: the coordinates of the words. */
export function stopAt(stops: number[], position: number) {
  const low = Math.floor(position);
  return stops[low] + (position - low) * ((stops[low + 1] ?? stops[low]) - stops[low]);
}

/** Returns the position nearest to a coordinate; close to a word, the position is the word's. */
export function positionAmong(stops: number[], wanted: number) {
  const sign = stops[stops.length - 1] < stops[0] ? -1 : 1; // in a right-to-left script, the words are reversed
  const after = stops.findIndex((stop) => sign * stop > sign * wanted);
  if (after < 1) return after < 0 ? stops.length - 1 : 0;
  const share = (wanted - stops[after - 1]) / (stops[after] - stops[after - 1]);
  return after - 1 + (share < MAGNET ? 0 : share > 1 - MAGNET ? 1 : Math.round(100 * share) / 100);
}
