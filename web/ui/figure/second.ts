// A second translation on the same figure: of another sentence, with the weights of another training step, or of the
// sentence before the changes. The words of the second translation are shown under the words of the first, the lines
// of the second translation are dashed, and weights that differ are outlined.
import { rowOfHead, clamp } from "../../engine/tensor.ts";
import { alignment, weightChanges, wordChanges } from "../../engine/alignment.ts";
import { messageOf } from "../app/app.ts";
import { FAMILIES, attentionName, layersOf } from "../app/heads.ts";
import { labelsOf } from "../app/translator.ts";
import { tokenName } from "../app/wording.ts";

import type { Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { FamilyId, Translated } from "../app/types.ts";
import type { Pair, Seat, Second, StageNumbers } from "./shown.ts";

/** The last comparison, which is reused for every word that the reader highlights. */
const last: WeakMap<App, { key: unknown[]; made: Promise<Second> }> = new WeakMap();

/** Returns the second translation that the reader has asked for, or null. */
async function secondOf(app: App): Promise<Second | null> {
  const { second, chapter } = app.state;
  const { reference, current } = app.result;
  if (!second || chapter > 0 || app.engine.live === false) return null;
  const own = second.text.trim();
  if (!own && second.step === undefined && !app.changed) return null;
  const key = [current, reference, own, second.step];
  const known = last.get(app);
  const made =
    known?.key.every((one, at) => one === key[at]) === true
      ? known.made
      : compared(app, current, own, second.step);
  last.set(app, { key, made });
  return made.catch((error) => {
    app.complain(messageOf(error));
    return null;
  });
}

async function compared(
  app: App,
  here: Translated,
  own: string,
  step: number | null | undefined,
): Promise<Second> {
  const isBefore = !own && step === undefined;
  const there = isBefore ? app.result.reference : await otherOf(app, here, own, step);
  const pairs = {
    source: alignment(here.sourceIds, there.sourceIds),
    target: alignment(here.targetIds, there.targetIds),
  };
  const words = wordChanges(here.hypothesis, there.hypothesis);
  const changes: Second["changes"] = new Map();
  for (const family of FAMILIES)
    for (let layer = 0; layer < layersOf(app.config, family); layer++) {
      const name = `${attentionName(family, layer)}.weights`;
      const [one, other] = await Promise.all([here, there].map(({ trace }) => trace.get(name)));
      const sides = [here, there].map((each) => labelsOf(each, name).columnSide ?? family.columns);
      if (sides[0] === sides[1])
        changes.set(name, weightChanges(one, other, pairs[family.rows], pairs[sides[0]]));
    }
  return {
    translated: there,
    isBefore,
    source: seats(there.sourceTokens, here.sourceTokens.length, pairs.source),
    written: seats(
      there.outputTokens,
      here.outputTokens.length,
      words.map(({ pair }) => pair),
      words.map(({ change }) => change),
    ),
    rows: pairs.target,
    lit: {},
    changes,
  };
}

/** Returns the second translation, under the same changes but with the weights of `step` if one is chosen. */
function otherOf(app: App, { changes }: Translated, own: string, step: number | null | undefined) {
  const checkpoint = step === undefined ? changes.checkpoint : step;
  const text = own || (app.changes.source ?? app.state.sentence);
  return app.translated(text, app.changes.prefix ?? "", { ...changes, checkpoint });
}

/**
 * Returns the tokens of the second translation, each with a column of the first translation: a shared word gets the
 * column of its counterpart, and other words get the columns between shared words, in order.
 */
function seats(tokens: string[], columns: number, pairs: Pair[], changes: number[] = []): Seat[] {
  let [column, at] = [-1, 0];
  return tokens.map((token, place) => {
    while (at < pairs.length && pairs[at][1] < place) at++;
    const isOwn = pairs[at]?.[1] !== place;
    const next = pairs[at]?.[0] ?? columns; // the column of the next shared word
    column = isOwn ? clamp(column + 1, next) : next;
    return { column, token, isOwn, change: isOwn ? 0 : (changes[at] ?? 0) };
  });
}

/** Returns the words of the second translation that are shown in a column; "" if the column has none. */
export function seated(all: Seat[], column: number, t: App["t"]) {
  const here = all.filter((one) => one.column === column);
  return here.map(({ token }) => tokenName(token, t)).join(" ");
}

/** Adds the second translation's highlighted rows to the numbers of the figure. */
export async function withSecond(app: App, numbers: StageNumbers): Promise<StageNumbers> {
  const second = await secondOf(app);
  if (!second) return numbers;
  const lit: Second["lit"] = {};
  for (const family of FAMILIES) {
    const attention = attentionName(family, numbers.open[family.stack]);
    const weights = await second.translated.trace.get(`${attention}.weights`);
    lit[family.id] = rowIn(numbers, family.id, second, weights);
  }
  return { ...numbers, second: { ...second, lit }, before: { ...numbers.before, rows: {}, word: null } };
}

/**
 * Returns the row of the second translation that belongs to the same word as the highlighted row of the first
 * translation; undefined if the second translation lacks this word. Each weight stands at the index of the same word in
 * the first translation.
 */
function rowIn(numbers: StageNumbers, id: FamilyId, { rows, source }: Second, weights: Tensor) {
  const own =
    id === "encoder"
      ? source.findIndex(({ column, isOwn }) => column === numbers.source && !isOwn)
      : (rows.find(([here]) => here === numbers.row)?.[1] ?? -1);
  if (own < 0) return undefined;
  const row = new Float32Array(numbers.rows[id].length);
  const isOfSource = id === "encoder" || (id === "cross" && numbers.steps.crossKeyValue.side === "source");
  rowOfHead(weights, numbers.heads[id], own).forEach((weight, key) => {
    const at = isOfSource ? source[key]?.column : rows.find(([, there]) => there === key)?.[0];
    if (at !== undefined) row[at] += weight;
  });
  return row;
}
