// Chooses the word and the heads that are highlighted when a sentence opens, by the same rules as Python's
// watch/explorer/opening.py.
import { isUnchanged } from "../../engine/changes.ts";
import { closestCall, contestOf, oddsOf, tokenRank } from "../../engine/contest.ts";
import { allHeads } from "../../engine/model.ts";
import { headReasons, neededOf, rivalsOf, sourceReasons } from "../../engine/reasons.ts";
import { largestAt, largestPlace, rowOf, rowOfHead } from "../../engine/tensor.ts";
import { gathered } from "../app/latest.ts";
import { engineChanges } from "../app/translator.ts";
import { partnerOf } from "./examples.ts";

import type { HeadEffect } from "../../engine/contest.ts";
import type { Changes, Engine, Opening, RowWords, Trace, WeightRow } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Translated } from "../app/types.ts";
import type { Needs } from "./shown.ts";

type Progress = (done: number, all: number) => void;
type HeadPlace = Pick<HeadEffect, "attention" | "head">;

/**
 * The number of heads of cross-attention that are tried, to find the best turn: each head is made to attend to every
 * other source word.
 */
const TURNED = 3;
/**
 * The milliseconds that measuring through Python may take in all, and the milliseconds after which the total time is
 * estimated.
 */
const [PATIENCE, ESTIMATED] = [4000, 500];

const known: WeakMap<Translated, Promise<Opening | null>> = new WeakMap();

/**
 * Returns the opening of a translation (the word that is highlighted first, its rival, and the effects of the heads):
 * if nothing is changed, as Python has measured it; otherwise as the page measures it. Returns null if there is no
 * model, or if measuring through Python would take too long. Rejects when `signal` is aborted.
 */
export async function openingOf(
  app: App,
  translated: Translated,
  onProgress: Progress = () => {},
  signal: AbortSignal = app.signal,
): Promise<Opening | null> {
  const found = known.get(translated) ?? opened(app, translated, onProgress, signal);
  known.set(translated, found);
  found.catch(() => known.delete(translated));
  return found;
}

/**
 * Returns whether removing any other head leaves the written word more probable than `probability`; false if the
 * other heads were not measured.
 */
export async function costsMost(
  translated: Translated,
  row: number,
  { attention, head }: HeadPlace,
  probability: number,
) {
  const opening = await known.get(translated)?.catch(() => null);
  if (opening?.row !== row) return false;
  return Object.entries(opening.without).every(([name, heads]) =>
    heads.every((one, at) => (name === attention && at === head) || one.probability > probability),
  );
}

const needs: WeakMap<Translated, Map<number, Promise<Needs | null>>> = new WeakMap();

/**
 * Returns the source words on which a written word depends; null if they are not measured. Each source word takes a
 * forward pass, so only the page's short examples are measured.
 */
export function needsOf(app: App, translated: Translated, row: number) {
  const known = needs.get(translated) ?? new Map<number, Promise<Needs | null>>();
  needs.set(translated, known);
  const found = known.get(row) ?? measuredNeeds(app, translated, row);
  known.set(row, found);
  return found;
}

async function measuredNeeds(app: App, translated: Translated, row: number): Promise<Needs | null> {
  const { engine, payload, state, signal } = app;
  const { sourceIds, hypothesis: { ids }, changes } = translated; // prettier-ignore
  if (engine.live !== true || !(state.sentence in payload.openings) || !isUnchanged(changes)) return null;
  const { word, rivals } = await rivalsAt(app, translated, row);
  const rival = rivals[0].id;
  const reasons = sourceReasons(engine, { sourceIds, ids, place: row }, rival);
  const found = neededOf(await gathered(reasons, signal, () => {}), word.logProb);
  return {
    rival,
    words: found.map(({ position, logProb }) => ({ position, probability: Math.exp(logProb) })),
  };
}

/**
 * Returns a written word and its rivals, strongest first. For the word that is highlighted when an example opens, the
 * rival of the opening comes first, so that the whole page compares the same two words.
 */
export async function rivalsAt(
  { payload, state }: App,
  { trace, changes, hypothesis: { ids } }: Translated,
  row: number,
  count?: number,
) {
  const logProbs = await trace.get("log_probs");
  const found = rivalsOf(logProbs, { ids, place: row }, count);
  const opening = payload.openings[state.sentence];
  if (isUnchanged(changes) && opening?.row === row && String(opening.ids) === String(ids)) {
    const { rival: id } = opening;
    found.rivals = [
      { id, logProb: rowOf(logProbs, row)[id] },
      ...found.rivals.filter((one) => one.id !== id),
    ];
  }
  return found;
}

async function opened(app: App, translated: Translated, onProgress: Progress, signal: AbortSignal) {
  const { engine, payload } = app;
  const { sourceIds, hypothesis } = translated;
  const isPlain = isUnchanged(translated.changes) && translated.prefixIds.length === 0;
  const written = payload.openings[await textOf(engine, sourceIds, Object.keys(payload.openings))];
  if (isPlain && String(written?.ids) === String(hypothesis.ids)) return written;
  if (engine.live === false) return null;

  const [heads, { ids }] = [allHeads(engine.config), hypothesis];
  const all = heads.length + TURNED * sourceIds.length;
  const other = isPlain ? await otherOfPair(app, sourceIds) : null;
  const logProbs = await translated.trace.get("log_probs");
  const ofPair = other && contestBetween(translated, other);
  const { prefixIds, cases } = ofPair ?? closestCall(engine, sourceIds, ids, logProbs);
  const call = { row: prefixIds.length, word: cases[0].word, rival: cases[0].rival };
  const without = await withoutHeads(engine, translated, call, all, onProgress, signal);
  if (!without) return null;
  const marginOf = ({ attention, head }: HeadPlace) => without[attention][head].margin;
  const cross = heads.filter(({ attention }) => attention.endsWith("cross_attention"));
  const turned = cross.sort((a, b) => marginOf(a) - marginOf(b)).slice(0, TURNED);
  const progress = (count: number) => onProgress(heads.length + count, all);
  const plain = rowOf(logProbs, call.row);
  const leads = plain[call.word] > plain[call.rival];
  const turn = leads ? await turnOf(engine, translated, call, turned, other, progress, signal) : null;
  onProgress(all, all);
  return { ids, row: call.row, rival: call.rival, ofPair: ofPair !== null, without, turn };
}

/** Returns the contest between the translations of two sentences; null if the translations do not differ. */
function contestBetween(one: Translated, other: Translated) {
  const [first, second] = [one, other].map(({ sourceIds, hypothesis }) => ({
    sourceIds,
    ids: hypothesis.ids,
  }));
  return contestOf(first, second);
}

/** Returns the first of these texts that has the given source ids; "" if no text has these ids. */
async function textOf(engine: Engine, sourceIds: number[], texts: string[]) {
  for (const text of texts) {
    const { ids } = await engine.encode("source", text);
    if (String(ids) === String(sourceIds.slice(0, -1))) return text;
  }
  return "";
}

/**
 * Returns the translation of the sentence that forms a pair with the source sentence; null if the page has no such
 * sentence.
 */
async function otherOfPair(app: App, sourceIds: number[]) {
  const { payload, engine } = app;
  const sentence = await textOf(engine, sourceIds, [...payload.examples, ...payload.story.pair]);
  const other = sentence && partnerOf(payload, sentence);
  return other ? app.translated(other, "", engineChanges()) : null;
}

/**
 * Returns a word's probability and margin without each head, or null if `all` forward passes through Python would take
 * too long.
 */
async function withoutHeads(
  engine: Engine,
  { sourceIds, hypothesis: { ids }, changes }: Translated,
  { row, word, rival }: RowWords,
  all: number,
  onProgress: Progress,
  signal: AbortSignal,
) {
  const [began, hurry] = [performance.now(), new AbortController()];
  const found = await gathered(
    headReasons(engine, { sourceIds, ids, place: row, changes }, rival),
    AbortSignal.any([signal, hurry.signal]),
    (count) => {
      const passed = performance.now() - began;
      const whole = (passed / (count + 1)) * all; // count + 1, because one more pass ran with all heads
      if (engine.live === "remote" && passed > ESTIMATED && whole > PATIENCE) hurry.abort();
      onProgress(count, all);
    },
  );
  signal.throwIfAborted();
  if (hurry.signal.aborted) return null;
  const contest = { prefixIds: ids.slice(0, row), cases: [{ sourceIds, word, rival }] };
  const [unchanged] = await oddsOf(engine, contest, changes);
  const without: Opening["without"] = {};
  for (const { attention, head } of allHeads(engine.config)) {
    const one = found.find((effect) => effect.attention === attention && effect.head === head);
    const [logProb, margin] = one // heads that are already off were skipped
      ? [one.logProbs[0], one.margins[0]]
      : [unchanged.logProb, unchanged.margin];
    (without[attention] ??= []).push({ probability: Math.exp(logProb), margin });
  }
  return without;
}

/**
 * Returns the best turn: one of these heads and the source word to which the head must attend so that the model writes
 * the rival. Returns null if no head has such a word. Python's `openings` uses the same rules.
 */
async function turnOf(
  engine: Engine,
  { sourceIds, hypothesis: { ids }, changes, trace }: Translated,
  { row, word, rival }: RowWords,
  heads: HeadPlace[],
  other: Translated | null,
  progress: (count: number) => void,
  signal: AbortSignal,
) {
  const contest = { prefixIds: ids.slice(0, row), cases: [{ sourceIds, word, rival }] };
  const words = [...sourceIds.keys()].filter((at) => tokenRank(engine.tokenizers.source, sourceIds[at]) > 0);
  const read = (of: Trace) =>
    Promise.all(heads.map(({ attention, head }) => readBy(of, attention, head, row)));
  const [here, there] = [await read(trace), other ? await read(other.trace) : []];
  let best: Opening["turn"] = null;
  let [count, most] = [0, 0];
  for (const [at, { attention, head }] of heads.entries()) {
    for (const to of words.filter((word) => word !== here[at])) {
      const weights: WeightRow = [head, row, [...Array(to).fill(0), 1]];
      const rows = [...(changes.overrides[attention] ?? []), weights];
      const under = { ...changes, overrides: { ...changes.overrides, [attention]: rows } };
      const [{ logProb, margin }] = await oddsOf(engine, contest, under);
      signal.throwIfAborted();
      progress(++count);
      const chances = { word: Math.exp(logProb), rival: Math.exp(logProb - margin) };
      // prefers the word that the head attends to in the pair's other sentence
      const score = chances.rival + Number(there.includes(to));
      if (margin >= 0 || score <= most) continue;
      if ((await likeliest(engine, sourceIds, contest.prefixIds, under)) !== rival) continue;
      [best, most] = [{ attention, head, from: here[at], to, ...chances }, score];
    }
  }
  return best;
}

/** Returns the likeliest next word under changes, among the words that a search may write. */
async function likeliest(engine: Engine, sourceIds: number[], prefixIds: number[], changes: Changes) {
  const { bos_id: bos, pad_id: pad } = engine.config;
  const trace = await engine.trace({ sourceIds, targetIds: [bos, ...prefixIds], changes });
  const row = rowOf(await trace.get("log_probs"), prefixIds.length);
  return largestAt(row, 1, (id) => id !== bos && id !== pad)[0];
}

/** Returns the source position with the largest weight in a head's row of cross-attention. */
async function readBy(trace: Trace, attention: string, head: number, row: number) {
  return largestPlace(rowOfHead(await trace.get(`${attention}.weights`), head, row));
}
