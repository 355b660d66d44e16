// What the figure showed before the reader's changes: the highlighted rows of attention, the written word, and the
// words to which the rows set by hand attended.
import { largestPlace } from "../../engine/tensor.ts";
import { FAMILIES } from "../heads.ts";
import { labelsOf } from "../sentences.ts";
import { rowOfHead } from "./numbers.ts";

import type { App } from "../app.ts";
import type { FamilyId } from "../types.ts";

/** A row of an attention: one head, and the position of the word that attends (the query). */
export interface RowPlace {
  attention: string;
  head: number;
  query: number;
}

/**
 * A row that the reader has set by hand: the word to which the row attended most before (null if unknown), and the word
 * to which the row attends now.
 */
export interface TurnedLook extends RowPlace {
  from: string | null;
  to: string;
}

export interface Before {
  /** The highlighted rows before the changes; missing where the changes altered the words up to that row. */
  rows: Partial<Record<FamilyId, Float32Array>>;
  /**
   * The word that stood at the highlighted position before the changes; null if the changes left this word as it was.
   */
  word: string | null;
  turned: TurnedLook[];
}

/**
 * Returns what the figure showed before the changes. `lit` returns the highlighted row of each attention; `row`: the
 * index of the highlighted word.
 */
export async function beforeChanges(app: App, row: number, lit: (id: FamilyId) => RowPlace): Promise<Before> {
  const { reference, current } = app.result;
  if (!app.changed) return { rows: {}, word: null, turned: [] };
  const isSameSource = String(reference.sourceIds) === String(current.sourceIds);
  const wasAt = async ({ attention, head, query }: RowPlace) => {
    const read = ({ targetIds }: typeof current) => String(targetIds.slice(0, query + 1));
    const isOfTarget = !attention.startsWith("encoder.");
    if (!isSameSource || (isOfTarget && read(reference) !== read(current))) return null;
    const name = `${attention}.weights`;
    const [one, other] = [reference, current].map((each) => labelsOf(each, name).columnSide);
    if (one !== other) return null; // a mistake makes the attention read other words
    const weights = await reference.trace.get(name);
    return query < weights.shape[1] ? rowOfHead(weights, head, query) : null;
  };
  const rows: Before["rows"] = {};
  for (const { id } of FAMILIES) rows[id] = (await wasAt(lit(id))) ?? undefined;
  const turned = Object.entries(current.changes.overrides).flatMap(([attention, all]) =>
    all.map(async ([head, query, weights]): Promise<TurnedLook> => {
      const place = { attention, head, query };
      const [{ columns }, was] = [labelsOf(current, `${attention}.weights`), await wasAt(place)];
      const most = (read: ArrayLike<number>) => columns?.[largestPlace(read)] ?? "";
      return { ...place, from: was && most(was), to: most(weights) };
    }),
  );
  const start = ({ hypothesis }: typeof current) => String(hypothesis.ids.slice(0, row));
  const [was, is] = [reference, current].map(({ outputTokens }) => outputTokens[row]);
  return {
    rows,
    word: start(reference) === start(current) && was !== is ? (was ?? null) : null,
    turned: await Promise.all(turned),
  };
}
