// Highlights the word and the heads with which a sentence opens, until the reader chooses another word or head.
import { times } from "../../engine/tensor.ts";
import { closestCall } from "../../engine/contest.ts";
import { FAMILIES, attentionName, layersOf } from "../app/heads.ts";
import { begin, isAsOpened } from "../app/starts.ts";
import { MOST_CANDIDATES } from "./geometry.ts";
import { stageNumbers, warmed } from "./figure_reading.ts";
import { openingOf, strongestHead } from "./opening.ts";
import { withSecond } from "./second.ts";

import type { App } from "../app/app.ts";
import type { Translated } from "../app/types.ts";

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
  const heads = { ...state.heads };
  for (const family of FAMILIES) {
    const layers = times(layersOf(app.config, family), (layer) => {
      const attention = attentionName(family, layer);
      const head = strongestHead(opening, attention);
      return { layer, head, margin: opening.without[attention][head].margin };
    });
    const { layer, head } =
      family.id === "decoder"
        ? layers[heads.cross.layer]
        : layers.reduce((best, one) => (one.margin < best.margin ? one : best));
    heads[family.id] = { layer, head };
  }
  begin(app, { heads });
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
