// Lights the word and the heads of the sentence's opening, until the reader chooses others.
import { closestCall } from "../../engine/contest.ts";
import { FAMILIES, attentionName, layersOf } from "../heads.ts";
import { begin, isAsOpened } from "../link.ts";
import { openingOf, strongestHead } from "./opening.ts";

import type { App } from "../app.ts";
import type { Translated } from "../types.ts";

/**
 * Lights what a translation is opened with: the word with the most interesting rival, and in each attention the head
 * whose loss costs it most. What Python measured is known at once; otherwise the page measures after the paint.
 * `signal` ends the measuring.
 */
export async function lightOpening(app: App, translated: Translated, signal: AbortSignal) {
  const isKnown = app.state.sentence in app.payload.openings;
  if (app.engine.live !== true && !isKnown) return; // measuring would ask Python for each head
  const opening = await openingOf(app, translated, undefined, signal);
  const { state } = app;
  const isChosen = !isAsOpened(app, "heads") || (state.row ?? opening?.row) !== opening?.row;
  if (!opening || isChosen || app.result.current !== translated || app.changed) return;
  const heads = { ...state.heads };
  for (const family of FAMILIES) {
    const layers = Array.from({ length: layersOf(app.config, family) }, (_, layer) => {
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
 * Returns the place of the word that the stage lights: the reader's; or the one that Python has measured for the unchanged
 * sentence, or else its closest call.
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
