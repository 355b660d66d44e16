// What the first scene shows about a sentence: its word and the word's rival, the heads, and their rows of attention.
import { isUnchanged } from "../../engine/changes.ts";
import { largestAt, rowOf } from "../../engine/tensor.ts";
import { withoutRows } from "../../engine/turning.ts";
import { differingWord, partnerOf } from "../figure/examples.ts";
import { Hand } from "../figure/hand.ts";
import { openingOf } from "../figure/opening.ts";

import type { Changes, Opening, Trace } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Translated } from "../app/types.ts";
import type { Written } from "../figure/hand.ts";

/** A head's row of cross-attention, at the position of the scene's word. */
export interface Look {
  attention: string;
  head: number;
  weights: Float32Array;
  /** The index of the source word with the largest weight. */
  peak: number;
}

/** Everything that the scene shows about a sentence. */
export interface Subject {
  translated: Translated;
  opening: Opening;
  /** The ids of the scene's word and of its rival. */
  word: number;
  rival: number;
  /** The rows of attention that the reader sets together by dragging; the row that decides the word comes first. */
  looks: Look[];
  /**
   * Of the rows that are not turned, the row with the largest effect. `isFirst`: whether this row has the largest
   * effect of all rows, so that the figure opens with it. `was`: the source position to which this row attends most
   * when no row is set by hand.
   */
  pale: (Look & { isFirst: boolean; was: number }) | null;
  hand: Hand;
  /**
   * The output without rows set by hand, and the output with the rows at the position where the reader released them.
   */
  own: Written;
  rested: Written;
  /** The other sentence of the pair, to which a button leads; "" if the page has no pair. */
  other: string;
}

/** Returns what the scene shows about the page's sentence; null if nothing is known about it. */
export async function subjectOf(
  app: App,
  progress: (done: number, all: number) => void,
): Promise<Subject | null> {
  const translated = app.result.reference;
  const opening = await openingOf(app, translated, progress);
  if (!opening) return null;
  const { row, rival, turn } = opening;
  const word = translated.hypothesis.ids[row];
  const cost = (attention: string, head: number) => opening.without[attention][head].margin;
  const heads = Object.keys(opening.without)
    .filter((name) => name.endsWith("cross_attention"))
    .flatMap((attention) => opening.without[attention].map((_, head) => ({ attention, head })))
    .sort((a, b) => cost(a.attention, a.head) - cost(b.attention, b.head));
  const turned = turn ? [turn] : heads.slice(0, 2);
  const left = heads.find(
    (one) => !turned.some(({ attention, head }) => one.attention === attention && one.head === head),
  );
  const places = turned.map(({ attention, head }) => ({ attention, head, query: row }));
  const { changes } = app.result.current;
  const unturned = { ...changes, overrides: withoutRows(changes.overrides, places) };
  const before = await traceUnder(app, translated, unturned);
  const looks = await Promise.all(turned.map((one) => lookOf(before, one, row)));
  const hand = new Hand(app, translated, places);
  const logProbs = rowOf(await translated.trace.get("log_probs"), row);
  return {
    translated,
    opening,
    word,
    rival,
    looks,
    pale: left
      ? {
          ...(await lookOf(await hand.trace(), left, row)),
          isFirst: left === heads[0],
          was: (await lookOf(before, left, row)).peak,
        }
      : null,
    hand,
    own: { logProbs, ids: translated.hypothesis.ids },
    rested: await hand.rested(),
    other: opening.ofPair && app.engine.live !== false ? partnerOf(app.payload, app.state.sentence) : "",
  };
}

/** Returns the trace of a translation under changes, without searching for a new output. */
function traceUnder(app: App, { sourceIds, targetIds, trace }: Translated, changes: Changes) {
  return isUnchanged(changes) ? trace : app.translator.traced(sourceIds, targetIds, changes);
}

async function lookOf(
  trace: Trace,
  { attention, head }: { attention: string; head: number },
  row: number,
): Promise<Look> {
  const { shape: [, rows, columns], data } = await trace.get(`${attention}.weights`); // prettier-ignore
  const start = (head * rows + row) * columns;
  const weights = data.subarray(start, start + columns);
  return { attention, head, weights, peak: largestAt(weights, 1)[0] };
}

/** Returns whether two outputs differ before the scene's word. */
export function hasOtherBeginning(one: Written, other: Written, { row }: Opening) {
  return String(one.ids?.slice(0, row)) !== String(other.ids?.slice(0, row));
}

/** Returns the word that the pair's other sentence replaces; "" if the sentence belongs to no pair. */
export const differingOf = ({ state }: App, other: string) => other && differingWord(state.sentence, other);

/** Returns the layer of a head's attention. */
export function layerOf({ attention }: { attention: string }) {
  return Number(attention.split(".")[2]);
}
