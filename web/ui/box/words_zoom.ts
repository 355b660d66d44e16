// Linear and Softmax opened in place: the competing words, why the written word won, and the beam.
import { decimalsFor, fixedText, digitsText } from "../../engine/number_text.ts";
import { boxPanel } from "./rows.ts";
import { button } from "../app/dom.ts";
import { receiptOf } from "./receipt.ts";
import {
  differenceText,
  groupedText,
  powerText,
  probabilityWords,
  temperatureText,
  tokenName,
} from "../app/wording.ts";
import { wordsBox } from "./words_box.ts";
import { PLAIN, readWords, sampledWords } from "../figure/words_reading.ts";
import { KEYED, openRow, turner } from "./zoom_parts.ts";
import { segmentOf } from "../app/boxes.ts";

import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Heading, Line, Receipt } from "./receipt.ts";
import type { WordsReading } from "../figure/words_reading.ts";
import type { Lit, Opened, Sentence } from "./opened.ts";

const LISTED = 12;

/** Opens Linear or Softmax. Both boxes show the same words; Linear starts at the logits. */
export async function wordsView(app: App, lit: Lit | null): Promise<Opened | null> {
  const { zoom, selected } = app.state;
  if (!zoom) return null;
  const row = openRow(app, "decoder", lit, app.result.current.outputTokens.length);
  if (segmentOf(app.state, zoom.box) === "why" && app.state.word !== row) app.show({ word: row });
  const reading = await readWords(app, zoom.box, row, LISTED);
  const { open, part, written, rivals, made } = reading;
  const word = rivals.find(({ id }) => id === written)?.word ?? "";
  const isLogit = selected?.name === "logits" || (!selected && zoom.box.endsWith("linear"));
  const name = app.t(`stage.box.${zoom.box}`);
  return {
    place: [zoom.box, reading.row, open.id].join(),
    name: `${name} · ${app.t("stage.word.of", reading.row + 1, reading.rows)}`,
    sentence: sentenceOf(reading, isLogit, app.state.temperature),
    remarks: remarksOn(app, reading, word),
    cell: part
      ? { name: "decoder.output", index: [reading.row, part.at] }
      : { name: isLogit ? "logits" : "log_probs", index: [reading.row, open.id] },
    receipt: receipt(app, reading),
    made: part?.made ?? ("code" in made ? made : null),
    beside: turner(app, "decoder", { ...reading, word }),
    panel: () => boxPanel(app, (tell) => wordsBox(app, reading, tell)),
  };
}

/**
 * Returns the sentence about the open number. The sentence holds for any model, word and change, and at any
 * temperature.
 */
export function sentenceOf(reading: WordsReading, isLogit: boolean, temperature = 1): Sentence {
  const { open, part, logits, vector } = reading;
  const word = { word: open.word, side: "target" } as const;
  const say = (key: string, ...values: Sentence["values"]) => ({
    key: `zoom.words.about.${key}`,
    values,
    section: "3.4",
  });
  if (part) return say("vector", vector.length, part.at, digitsText(part.made.result));
  if (!isLogit || Number.isNaN(open.logit)) {
    const warm = temperature === 1 ? NaN : sampledWords(reading, { ...PLAIN, temperature }).share(open.id);
    const [shown, at] = Number.isNaN(warm) ? [open.probability, 1] : [warm, temperature];
    return say("probability", logits.length, word, probabilityWords(shown), temperatureText(at));
  }
  return say(open.rank === 1 ? "best" : "logit", logits.length, word, digitsText(open.logit), open.rank);
}

function remarksOn(app: App, reading: WordsReading, word: string): Child[] {
  const { made, part, isForced, isLikeliest, rivals, written, closest } = reading;
  const chance = rivals.find(({ id }) => id === written)?.probability ?? NaN;
  const name = (token: string) => tokenName(token, app.t);
  const go = () =>
    closest && app.show({ row: closest.row, selected: null, zoom: { box: reading.box, key: null } });
  return [
    ...new Set([...made.notes, ...(part?.made.notes ?? [])]),
    !isLikeliest && app.t(isForced ? "stage.more.forced" : "stage.more.beam", word, probabilityWords(chance)),
    closest &&
      button(
        app.t(
          "zoom.words.closest",
          ...closest.words.flatMap(({ token, probability }) => [name(token), probabilityWords(probability)]),
        ),
        go,
        { className: "gfz-link" },
      ),
  ];
}

/** Returns the steps from the products to the probability, or the arithmetic of a number of the last vector. */
function receipt(app: App, reading: WordsReading): Receipt {
  const { made, part, open, symbol, scores } = reading;
  if (part) return receiptOf(part.made);
  const names = ["zoom.words.x", "zoom.words.w", "zoom.product"].map((key) => app.t(key));
  const sides = made.parts.some(({ right }) => right !== undefined) ? names : names.slice(0, 1);
  const headings = sides.map((name, at): Heading => [name, at === 0 ? KEYED : ""]);
  const bias = made.parts.find(({ left }) => left === undefined);
  const plain = sampledWords(reading, PLAIN);
  const decimals = decimalsFor([scores[open.id], plain.shift], differenceText);
  const score = fixedText(scores[open.id], decimals);
  const lines: Line[] = [
    ...(bias ? [[app.t("zoom.words.bias"), fixedText(bias.value ?? NaN, decimals)] as const] : []),
    [app.t("zoom.words.sum"), Number.isNaN(open.logit) ? "–" : fixedText(open.logit, decimals), ""],
    ...(symbol === "logit" ? [] : [[symbol, score] as const]),
    ...(plain.sum > 0
      ? [
          [
            plain.shift ? `e^(${score} − ${fixedText(plain.shift, decimals)})` : `e^${score}`,
            powerText(plain.power(open.id)),
          ] as const,
          [app.t("zoom.words.divided", groupedText(reading.logits.length)), powerText(plain.sum)] as const,
        ]
      : []),
    [app.t("zoom.words.result"), probabilityWords(open.probability), KEYED],
  ];
  return { parts: made.parts.filter((one) => one !== bias), headings, lines };
}
