// The sentence that says what is lit. Each claim is a number of the trace or of a measurement; what is not known is not
// said. `python -m benchmarks.truth` checks each against PyTorch.
import { stepsUnder } from "../../engine/mistakes.ts";
import { element } from "../dom.ts";
import { attentionName, FAMILIES } from "../heads.ts";
import { familyOf } from "./choices.ts";
import { isHeadOff, largestPlace, rowOfHead } from "./numbers.ts";
import { probabilityWords, tokenName } from "./words.ts";

import type { Side } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Child, Family } from "../types.ts";
import type { StageNumbers } from "./numbers.ts";

/** What the stage says: a large sentence with the words in their colours, a smaller one, and the paper's section. */
export interface Said {
  kicker: string;
  /** Texts, and words of the source and the target. */
  sentence: { text: string; side?: Side }[];
  more: string;
  paper: string;
}

/** A head's worth for the lit word: its probability with all heads, and without this one. */
export interface Worth {
  before: number;
  after: number;
  /** Whether it is known that no other head's loss costs the word more. */
  isMost: boolean;
}

const PAPER: Record<string, string> = {
  embedding: "§3.4",
  positions: "§3.5",
  self_attention: "§3.2.3",
  cross_attention: "§3.2.3",
  feed_forward: "§3.3",
  linear: "§3.4",
  softmax: "§3.4",
};

/** The numbers and words that sentences about a box name, and the side whose colour each word has. */
function namedIn(app: App, box: string, numbers: StageNumbers) {
  const { translated, row, source, open, heads } = numbers;
  const { t } = app;
  const [stack, id = ""] = box.split(/\.(.*)/);
  const family = FAMILIES.find((one) => one.id === familyOf(box)) as Family;
  const named = (tokens: string[]) => tokens.map((token) => tokenName(token, t));
  const [rows, keys] = [family.rows, family.columns].map((side) =>
    named(side === "source" ? translated.sourceTokens : translated.targetTokens),
  );
  const rowOf = stack === "encoder" ? source : row;
  const weights = rowOfHead(numbers.weights[family.id], heads[family.id], rowOf);
  const read = family.id === "cross" ? numbers.read : weights; // the reader's hand may hold it
  const looked = keys[largestPlace(read)] ?? "";
  const values: Record<string, string> = {
    target: tokenName(translated.outputTokens[row] ?? "", t),
    source: id === "cross_attention" ? looked : tokenName(translated.sourceTokens[source] ?? "", t),
    reader: rows[rowOf] ?? "",
    looked,
    head: String(heads[family.id]),
    layer: String(open[family.stack]),
    weight: probabilityWords(read[largestPlace(read)] ?? 0),
    probability: probabilityWords(numbers.probability),
  };
  const sides: Record<string, Side> = {
    target: "target",
    source: "source",
    reader: family.rows,
    looked: family.columns,
    ...{
      text: "target",
      rival: "target",
      now: "target",
      second: "target",
      before: "target",
      after: "target",
    },
  };
  const isAttention = id.endsWith("attention");
  const key = isAttention
    ? lookKey(box, read, keys, family.id === "cross" ? -1 : rowOf)
    : keyOf(app, box, numbers);
  return { id, family, values, sides, isAttention, key };
}

/**
 * Returns a text of the page as texts and coloured words; `more` are numbers and words that it also names. "" = the stage's
 * own sentence about the box.
 */
export function saidWith(
  app: App,
  key: string,
  box: string,
  numbers: StageNumbers,
  more: Record<string, string> = {},
): Said["sentence"] {
  const { values, sides, key: own } = namedIn(app, box, numbers);
  return parts(app.t(key || own), { ...values, ...more }, sides);
}

/** Returns texts and words as they are drawn: words in the colours of their sides. */
export function spoken(sentence: Said["sentence"]): Child[] {
  return sentence.map(({ text, side }) => (side ? element("bdi", { className: `gfs-${side}` }, text) : text));
}

/** Returns what the stage says about its lit box. */
export function saidOf(app: App, box: string, numbers: StageNumbers, worth: Worth | null): Said {
  const { translated, row } = numbers;
  const { t } = app;
  const { id, family, values, sides, isAttention, key } = namedIn(app, box, numbers);
  const isSum = id.endsWith(".add");
  const paper = isSum || id.endsWith("norm") ? "§3.1" : (PAPER[id] ?? "§3");
  return {
    kicker: [t("stage.word.of", row + 1, translated.outputTokens.length), app.changed && t("stage.changed")]
      .filter(Boolean)
      .join(" · "),
    sentence: parts(t(key), values, sides),
    more: [
      choice(app, numbers, values.target),
      isAttention && moreOf(app, numbers, family, values, worth),
      isSum && !stepsUnder(app.changes).preNorm(app.config) && t("stage.more.norm"),
      isAttention && family.id === "decoder" && hidesLater(app, numbers) && t("stage.more.mask"),
      translated.unknown.length > 0 &&
        t("stage.more.unknown", [...new Set(translated.unknown)].slice(0, 4).join(", ")),
    ]
      .filter(Boolean)
      .join(" "),
    paper: t("stage.paper", paper),
  };
}

/**
 * Returns the key of the sentence about a row of weights: "…" if one word has half of it, "….shared" if none has, "….tied"
 * if two words have most. `own`: the place of the reading word among the words that it reads; −1 if it is not there.
 */
function lookKey(box: string, weights: Float32Array, words: string[], own: number) {
  const at = largestPlace(weights);
  if (!(weights[at] > 0)) return "stage.said.nothing";
  const isTied = weights.some((weight, place) => weight === weights[at] && words[place] !== words[at]);
  if (isTied) return `stage.said.${box}.tied`;
  return `stage.said.${box}${at === own ? ".self" : ""}${weights[at] < 0.5 ? ".shared" : ""}`;
}

/** Returns the key of the sentence about a box that is no attention. */
function keyOf({ config, changes }: App, box: string, { logits }: StageNumbers) {
  const [, , id, beside] = /^(\w+)\.(\w+)\.?(\w*)$/.exec(box) ?? [];
  if (beside === "norm") return `stage.said.${id === "feed_forward" ? id : "attention"}.norm`;
  if (id === "positions" && !changes.positions) return "stage.said.positions.off";
  if (id === "positions" && config.positions === "learned") return "stage.said.positions.learned";
  return `stage.said.${box}${id === "linear" && logits.length === 0 ? ".unseen" : ""}`;
}

/** Returns how a word was chosen that is not simply the likeliest; "" if it is. */
function choice(app: App, { translated, row, candidates, probability }: StageNumbers, target: string) {
  const { bos_id: bos, pad_id: pad } = app.config;
  const best = candidates.find(({ id }) => id !== bos && id !== pad); // searches never write these
  const isForced = row < translated.prefixIds.length;
  const isBest = best?.id === translated.hypothesis.ids[row];
  if (!best || (isBest && !isForced)) return "";
  const key = !isForced ? "beam" : isBest ? "forced.too" : "forced";
  return app.t(`stage.more.${key}`, target, probabilityWords(probability));
}

function moreOf(
  app: App,
  numbers: StageNumbers,
  family: Family,
  values: Record<string, string>,
  worth: Worth | null,
) {
  const { target } = values;
  const gives = values.weight === probabilityWords(0) ? "" : filled(app.t("stage.more.weight"), values);
  if (isHeadOff(numbers, family.id, numbers.heads[family.id])) return `${gives} ${app.t("stage.more.off")}`;
  if (!worth) return gives;
  const { before, after, isMost } = worth;
  const [was, is] = [before, after].map(probabilityWords);
  const change = Math.abs(before - after);
  if (was === is || (change < 0.01 && change < 0.1 * Math.max(before, after)))
    return `${gives} ${app.t("stage.more.same", target)}`;
  if (after > before) return `${gives} ${app.t("stage.more.rises", target, was, is)}`;
  const most = isMost && ` ${app.t("stage.more.most")}`;
  const others = after > before / 2 && ` ${app.t("stage.more.others")}`;
  return [gives, " ", app.t("stage.more.falls", target, was, is), most, others].filter(Boolean).join("");
}

/** Returns whether the decoder's lit row reads no later word in any head. */
export function hidesLater(app: App, { weights, open, row }: StageNumbers) {
  const [count] = weights.decoder.shape;
  const mask = app.mask(attentionName(FAMILIES[2], open.decoder));
  const isHidden = (column: number) => mask.data[row * mask.columns + column] === 0;
  const rows = Array.from({ length: count }, (_, head) => rowOfHead(weights.decoder, head, row));
  return rows.every((one) =>
    one.every((weight, column) => column <= row || (isHidden(column) && weight === 0)),
  );
}

function filled(template: string, values: Record<string, string>) {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

/** Returns a template as texts and words, which have the colours of their sides. */
function parts(
  template: string,
  values: Record<string, string>,
  sides: Record<string, Side>,
): Said["sentence"] {
  return template.split(/(\{\w+\})/).flatMap((piece) => {
    const name = piece.match(/^\{(\w+)\}$/)?.[1];
    if (!name) return piece ? [{ text: piece }] : [];
    return [{ text: values[name] ?? piece, side: sides[name] }];
  });
}
