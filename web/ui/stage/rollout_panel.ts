// Attention through all layers (rollout): how much one word draws from each word, and a picture of these shares for
// all words.
import { largestPlace } from "../../engine/tensor.ts";
import { crossRollout, rollout } from "../../engine/lens.ts";
import { attentionNames } from "../../engine/model.ts";
import { element } from "../dom.ts";

import { createPixels } from "./pixels.ts";
import { largestSize } from "./strips.ts";
import { probabilityWords, tokenName } from "./words.ts";
import { LABELS, MARGIN } from "./zoom_band.ts";
import { HIDDEN, barOf, panelIn, put, rowAt, rowsTable, tableRow } from "./zoom_parts.ts";

import type { Tensor } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Reading } from "./attention_reading.ts";
import type { Sentence } from "./opened.ts";

const [SMALLEST, HEAD, GAP, LARGEST_CELL] = [720, 50, 40, 28];

/** Returns the rollout of a family of attention, [T, S]. */
export async function readRollout({ config, result }: App, { family, keySide }: Reading) {
  const weights = (kind: RegExp) => {
    const names = attentionNames(config).filter((name) => kind.test(name));
    return Promise.all(names.map((name) => result.current.trace.get(`${name}.weights`)));
  };
  const own = await weights(keySide === "target" ? /^decoder.*self_attention$/ : /^encoder/);
  return family.id === "cross" ? crossRollout(await weights(/cross_attention$/), own) : rollout(own);
}

/** Returns the sentence about the chosen word's largest share. */
export function rolloutSentence(all: Tensor, { row, query, querySide, keys, keySide }: Reading): Sentence {
  const shares = rowAt(all, [row]);
  const best = largestPlace(shares);
  const words = [
    { word: query, side: querySide },
    { word: keys[best].word, side: keySide },
  ];
  return { key: "zoom.rollout", values: [...words, probabilityWords(shares[best])], section: "" };
}

/** Returns the panel. `turn` is called with the index of the word that the reader chooses. */
export function rolloutPanel(
  app: App,
  all: Tensor,
  { box, keys, row, query }: Reading,
  room: HTMLElement,
  turn: (row: number) => unknown,
): Child[] {
  const shares = rowAt(all, [row]);
  const [rows, columns] = all.shape;
  const words = app.labels(`${box}.weights`).rows.map((token) => tokenName(token, app.t));
  const frameFor = (inner: { width: number; height: number }) => {
    const width = Math.max(SMALLEST, inner.width);
    const line = Math.max(18, Math.min(30, Math.floor((inner.height - 2 * HEAD) / keys.length)));
    const bars = Math.floor((width - MARGIN - GAP) / 2);
    const cell = Math.max(2, Math.min(LARGEST_CELL, (width - bars - GAP - MARGIN) / columns));
    return { width, height: 2 * HEAD + Math.max(keys.length * line, rows * cell), line, bars, cell };
  };
  return panelIn(app, room, frameFor, ({ width, line, bars, cell }, tell) => {
    const best = largestPlace(shares);
    const drawn = keys.map(({ word }, at) => {
      const bar = barOf((bars - LABELS - 90) * shares[at]);
      const name = element("bdi", {}, word);
      return tableRow(name, [element("span", {}, bar, probabilityWords(shares[at]))], at === best);
    });
    const hidden = element("span", { class: HIDDEN }, app.t("numbers.word"));
    const heads = [hidden, app.t("zoom.rollout.share")];
    const widths = [LABELS, bars - LABELS];
    const table = rowsTable(app.t("zoom.rollout.table", query), { widths, row: line, y: HEAD }, heads, drawn);
    const said = app.t("zoom.rollout.whole");
    const picture = createPixels(
      room,
      all,
      {
        largest: largestSize(all.data),
        least: 0,
        cell: [cell, cell],
        label: said,
        marked: row,
        textOf: (to, from) => `${words[to]} → ${keys[from].word} ${probabilityWords(rowAt(all, [to])[from])}`,
        open: turn,
      },
      tell,
    );
    const whole = element("div", {}, element("small", {}, said), picture);
    return {
      parts: [table, put(whole, { x: bars + GAP, y: HEAD - 26, width: width - bars - GAP })],
      outside: [],
    };
  });
}
