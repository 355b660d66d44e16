// Attention through all layers (rollout): how much one word draws from each word, and a picture of these shares for
// all words.
import { largestPlace } from "../../engine/tensor.ts";
import { crossRollout, rollout } from "../../engine/lens.ts";
import { attentionNames } from "../../engine/model.ts";
import { gap, tableOf } from "./rows.ts";
import { element } from "../app/dom.ts";
import { createPixels } from "./pixels.ts";
import { largestSize } from "./strips.ts";
import { probabilityWords, tokenName } from "../app/wording.ts";
import { HIDDEN, barOf, insideOf, rowAt, tableRow, turnTo } from "./zoom_parts.ts";

import type { Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Box } from "./rows.ts";
import type { Reading } from "./attention_reading.ts";
import type { Sentence } from "./opened.ts";
import type { Tell } from "./strips.ts";

const [SMALLEST, GAP, LARGEST_CELL] = [720, 40, 28];

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

/** Returns a table of the open word's shares, and beside it the picture of the shares of all words. */
export function rolloutBox(app: App, all: Tensor, reading: Reading, room: HTMLElement, tell: Tell): Box {
  const { keys, row, query, family } = reading;
  const shares = rowAt(all, [row]);
  const best = largestPlace(shares);
  const rows = keys.map(({ word }, at) => {
    const bar = barOf(`(100% - 90px) * ${shares[at]}`);
    const cell = element("span", {}, bar, probabilityWords(shares[at]));
    return tableRow(element("bdi", {}, word), [cell], at === best);
  });
  const heads = [element("span", { class: HIDDEN }, app.t("numbers.word")), app.t("zoom.rollout.share")];
  const table = tableOf(app.t("zoom.rollout.table", query), heads, rows, {
    lines: keys.length,
    columns: "1 / 3",
  });
  const half = Math.max(SMALLEST, insideOf(room).width) / 2;
  const cell = Math.max(2, Math.min(LARGEST_CELL, (half - GAP) / all.shape[1]));
  const said = app.t("zoom.rollout.whole");
  const names = app.labels(`${reading.box}.weights`).rows.map((token) => tokenName(token, app.t));
  const shown = {
    largest: largestSize(all.data),
    least: 0,
    cell: [cell, cell],
    label: said,
    marked: row,
    textOf: (to: number, from: number) =>
      `${names[to]} → ${keys[from].word} ${probabilityWords(rowAt(all, [to])[from])}`,
    open: (to: number) => turnTo(app, family.stack, to),
  };
  const picture = element("div", {}, element("small", {}, said), createPixels(room, all, shown, tell));
  picture.style.cssText = "grid-area: 2 / 4 / 4 / 6"; // beside the table, or longer than it
  return {
    least: SMALLEST,
    columns: `126px calc(50% - 164px) ${GAP}px minmax(0, 1fr) 36px`,
    rows: [gap(16), table, { height: "auto", parts: [picture] }, gap(50)],
  };
}
