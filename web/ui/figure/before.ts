// What the figure showed before the reader's changes: the highlighted rows of attention, the written word, and the
// words to which the rows set by hand attended.
import { largestPlace, rowOfHead } from "../../engine/tensor.ts";
import { FAMILIES } from "../app/heads.ts";
import { labelsOf } from "../app/translator.ts";

import type { App } from "../app/app.ts";
import type { FamilyId } from "../app/types.ts";
import type { Before, RowPlace, TurnedRow } from "./shown.ts";

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
    all.map(async ([head, query, weights]): Promise<TurnedRow> => {
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
