// Highlights the word and the heads with which a sentence opens, until the reader chooses another word or head.
import { largestPlace, rowOfHead, times } from "../../engine/tensor.ts";
import { closestCall } from "../../engine/contest.ts";
import { FAMILIES, attentionName, layersOf } from "../app/heads.ts";
import { begin, isAsOpened } from "../app/starts.ts";
import { labelsOf } from "../app/translator.ts";
import { MOST_CANDIDATES } from "./geometry.ts";
import { stageNumbers, warmed } from "./figure_reading.ts";
import { openingOf } from "./opening.ts";
import { withSecond } from "./second.ts";

import type { Opening } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Family, Translated } from "../app/types.ts";

const REST = 800; // ms before the opening of a new sentence is measured

/**
 * Highlights the opening of a translation: the word with the most interesting rival and, in each attention, the head
 * whose removal costs the word most. An opening that Python has measured is available at once; otherwise the page
 * measures the opening after painting. `signal` aborts the measuring.
 */
async function lightOpening(app: App, translated: Translated, signal: AbortSignal) {
  const isKnown = app.state.sentence in app.payload.openings;
  if (app.engine.live !== true && !isKnown) return; // measuring would send one request to Python for each head
  const opening = await openingOf(app, translated, undefined, signal);
  const { state } = app;
  const isChosen = !isAsOpened(app, "heads") || (state.row ?? opening?.row) !== opening?.row;
  if (!opening || isChosen || app.result.reference !== translated) return;
  begin(app, { heads: await openingHeads(app, opening, translated) });
}

/**
 * Returns the heads with which a sentence opens: in each attention, the head whose removal costs the word most. A head
 * that looks at the word itself, at punctuation or at a mark such as <eos> is chosen only where no other is left.
 */
export async function openingHeads(app: App, { row, without }: Opening, translated: Translated) {
  const heads = { ...app.state.heads };
  let source = 0; // the source word that the head of cross-attention reads
  for (const id of ["cross", "encoder", "decoder"] as const) {
    const family = FAMILIES.find((one) => one.id === id) as Family;
    const at = id === "encoder" ? source : row;
    const found = await Promise.all(
      times(layersOf(app.config, family), async (layer) => {
        const attention = attentionName(family, layer);
        const weights = await translated.trace.get(`${attention}.weights`);
        const keys = labelsOf(translated, `${attention}.weights`).columns ?? [];
        return without[attention].map(({ margin }, head) => {
          const peak = largestPlace(rowOfHead(weights, head, at));
          const isIdle = !/^[^<]*[\p{L}\p{N}]/u.test(keys[peak]) || (id !== "cross" && peak === at);
          return { layer, head, margin, peak, isIdle };
        });
      }),
    );
    const among = id === "decoder" ? found[heads.cross.layer] : found.flat();
    const { layer, head, peak } = among.reduce((best, one) => {
      const isBetter = one.isIdle === best.isIdle ? one.margin < best.margin : best.isIdle;
      return isBetter ? one : best;
    });
    heads[id] = { layer, head };
    if (id === "cross") source = peak;
  }
  return heads;
}

/** Highlights the measured heads again, if Python has measured the sentence and the reader has chosen no other word. */
export async function lightMeasured(app: App) {
  const { state, payload, result } = app;
  const opening = state.sentence in payload.openings && (await openingOf(app, result.reference));
  if (opening && (state.row ?? opening.row) === opening.row)
    begin(app, { heads: await openingHeads(app, opening, result.reference) });
  return null;
}

/**
 * Returns the index of the word that is highlighted on the stage: the word that the reader has chosen; or the word that
 * Python has measured, if nothing is changed; or else the word of the translation's closest call.
 */
export async function litRow(app: App) {
  const { reference, current } = app.result;
  const last = current.outputTokens.length - 1;
  if (app.state.row !== null) return Math.min(app.state.row, last);
  const { sourceIds, hypothesis, trace } = reference;
  const opening = app.payload.openings[app.state.sentence];
  if (String(opening?.ids) === String(hypothesis.ids)) return Math.min(opening.row, last);
  if (app.engine.live !== true) return Math.max(0, last - 1);
  const { prefixIds } = closestCall(app.engine, sourceIds, hypothesis.ids, await trace.get("log_probs"));
  return Math.min(prefixIds.length, last);
}

/**
 * Returns a function that highlights the word and heads with which a sentence opens, once for each sentence. They are
 * measured without the reader's changes, so that a link to a changed model shows the heads that its sender saw.
 */
export function createLighting(app: App) {
  let opened: Translated | null = null;
  let lighting = new AbortController();
  app.signal.addEventListener("abort", () => lighting.abort(), { once: true });
  return () => {
    const { reference } = app.result;
    if (opened === reference) return;
    opened = reference;
    lighting.abort(); // the sentence that is being measured has been replaced
    lighting = new AbortController();
    const { signal } = lighting;
    const light = () => void (signal.aborted || lightOpening(app, reference, signal).catch(() => {}));
    if (app.state.sentence in app.payload.openings) return light();
    const timer = setTimeout(light, REST); // measuring takes seconds
    signal.addEventListener("abort", () => clearTimeout(timer)); // a waiting timer would keep the trace in memory
  };
}

/**
 * Returns the numbers that the figure shows. `played`: the row of the act of Play, if one is shown; `isWarm`: whether
 * the reader tries temperatures.
 */
export async function shownNumbers(app: App, played: number | null, isWarm: boolean) {
  const numbers = await stageNumbers(app, played ?? (await litRow(app)), MOST_CANDIDATES);
  return played === null ? withSecond(app, isWarm ? warmed(app, numbers) : numbers) : numbers;
}
