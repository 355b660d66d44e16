// The sentence about the highlighted word, row or box. The sentence only claims what a number of the trace or a
// measurement shows; `python -m benchmarks.truth` checks its claims against PyTorch.
import { largestPlace, rowOfHead, times } from "../../engine/tensor.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { entryOf } from "../app/boxes.ts";
import { element } from "../app/dom.ts";
import { attentionName, FAMILIES } from "../app/heads.ts";
import { labelsOf } from "../app/translator.ts";
import { familyOf } from "./choices.ts";
import { headName, probabilityWords, tokenName } from "../app/wording.ts";
import { isHeadOff } from "./shown.ts";

import type { Side } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child, Family, FamilyId, Translated } from "../app/types.ts";
import type { Needs, StageNumbers } from "./shown.ts";

/**
 * The text of the stage: a line above, a large sentence with coloured words, a smaller sentence, and the section of the
 * paper.
 */
export interface Said {
  kicker: string;
  /** Pieces of text; a piece with a side is a word of the source or the target. */
  sentence: { text: string; side?: Side }[];
  more: string;
  paper: string;
}

/**
 * What a head contributes to the highlighted word: the word's probability with all heads, and its probability without
 * this head.
 */
export interface Worth {
  before: number;
  after: number;
  /** Whether it is known that removing any other head costs the word less. */
  isMost: boolean;
  /** The source words on which the highlighted word depends most; null if unknown. */
  needs: Needs | null;
}

/** The maximum number of rows set by hand that a sentence names. */
const MOST_TURNED = 2;
/** The maximum number of unknown words that a sentence names. */
const MOST_UNKNOWN = 4;

/** Returns the numbers and words that sentences about a box may contain, and the side whose colour each word gets. */
function namedIn(app: App, box: string, numbers: StageNumbers) {
  const { translated, row, source, open, heads } = numbers;
  const { t } = app;
  const [stack, id = ""] = box.split(/\.(.*)/);
  const family = FAMILIES.find((one) => one.id === familyOf(box)) as Family;
  const attention = attentionName(family, open[family.stack]);
  const named = (tokens: string[]) => tokens.map((token) => tokenName(token, t));
  const { rowSide, columnSide = rowSide, ...labels } = labelsOf(translated, `${attention}.weights`);
  const [rows, keys] = [labels.rows, labels.columns ?? []].map(named);
  const rowOf = stack === "encoder" ? source : row;
  const read = numbers.rows[family.id];
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
    source: id === "cross_attention" ? columnSide : "source",
    reader: rowSide,
    looked: columnSide,
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
  const isByHand =
    isAttention &&
    numbers.before.turned.some(
      (one) => one.attention === attention && one.head === heads[family.id] && one.query === rowOf,
    );
  return { id, family, values, sides, isAttention, isByHand, key };
}

/**
 * Returns a text of the page as plain and coloured pieces. `key`: the text's key, or "" for the stage's own sentence
 * about the box. `more`: further numbers and words that the text contains. `read`: the side of the words that are
 * attended to, if the box does not determine this side.
 */
export function saidWith(
  app: App,
  key: string,
  box: string,
  numbers: StageNumbers,
  more: Record<string, string> = {},
  read: Side | null = null,
): Said["sentence"] {
  const { values, sides, key: own } = namedIn(app, box, numbers);
  const given = read && { looked: read, second: read };
  return parts(app.t(key || own), { ...values, ...more }, { ...sides, ...given });
}

/** Returns pieces of text as elements; words get the colours of their sides. */
export function spoken(sentence: Said["sentence"]): Child[] {
  return sentence.map(({ text, side }) => (side ? element("bdi", `gfs-${side}`, text) : text));
}

/** Returns the stage's text about its highlighted box. */
export function saidOf(app: App, box: string, numbers: StageNumbers, worth: Worth | null): Said {
  const { translated } = numbers;
  const { t } = app;
  const { id, family, values, sides, isAttention, isByHand, key } = namedIn(app, box, numbers);
  const isSum = id.endsWith(".add");
  const paper = entryOf(id)?.paper ?? "§3";
  return {
    kicker: [placeOfWord(app, numbers), app.changed && t("stage.changed")].filter(Boolean).join(" · "),
    sentence: parts(
      isByHand ? `${t(key)} ${t("stage.said.hand")}`.replace("。 ", "。") : t(key),
      values,
      sides,
    ),
    more: [
      choice(app, numbers, values.target),
      isAttention && moreOf(app, numbers, { family, values, isByHand }, worth),
      isSum && !stepsUnder(app.changes).preNorm(app.config) && t("stage.more.norm"),
      isAttention && family.id === "decoder" && hidesLater(app, numbers) && t("stage.more.mask"),
      unknownWords(app, translated),
      numbers.before.turned.length > 0 && turnedWords(app, numbers),
    ]
      .filter(Boolean)
      .join(" "),
    paper: t("stage.paper", paper),
  };
}

/** Returns a text with the position of the highlighted word in the output, such as "word 3 of 9". */
export function placeOfWord({ t }: App, { row, translated }: StageNumbers) {
  return t("stage.word.of", row + 1, translated.outputTokens.length);
}

/** Returns a text that names the first few words that the vocabulary lacks; "" if the vocabulary lacks no word. */
export function unknownWords({ t }: App, { unknown }: Translated) {
  const named = [...new Set(unknown)].slice(0, MOST_UNKNOWN).map((token) => `“${tokenName(token, t)}”`);
  return named.length > 0 ? t("stage.more.unknown", named.join(", ")) : "";
}

/**
 * Returns the key of the sentence about a row of weights: with ".shared" if no word has half of the weight, with
 * ".tied" if two words have the same largest weight, with ".self" if the word attends most to itself. `own`: the index
 * of the attending word among the keys, or −1.
 */
function lookKey(box: string, weights: Float32Array, words: string[], own: number) {
  const at = largestPlace(weights);
  if (!(weights[at] > 0)) return "stage.said.nothing";
  const isTied = weights.some((weight, place) => weight === weights[at] && words[place] !== words[at]);
  if (isTied) return `stage.said.${box}.tied`;
  return `stage.said.${box}${at === own ? ".self" : ""}${weights[at] < 0.5 ? ".shared" : ""}`;
}

/** Returns the key of the sentence about a box that is not an attention. */
function keyOf({ config, changes }: App, box: string, { logits }: StageNumbers) {
  const [, , id, beside] = /^(\w+)\.(\w+)\.?(\w*)$/.exec(box) ?? [];
  if (beside === "norm") return `stage.said.${id === "feed_forward" ? id : "attention"}.norm`;
  if (id === "positions" && !changes.positions) return "stage.said.positions.off";
  if (id === "positions" && config.positions === "learned") return "stage.said.positions.learned";
  return `stage.said.${box}${id === "linear" && logits.length === 0 ? ".unseen" : ""}`;
}

/** Returns a text that says how a word was chosen if the word is not simply the likeliest; otherwise "". */
function choice(app: App, { translated, row, candidates, probability }: StageNumbers, target: string) {
  const { bos_id: bos, pad_id: pad } = app.config;
  const best = candidates.find(({ id }) => id !== bos && id !== pad); // searches never write <bos> and <pad>
  const isForced = row < translated.prefixIds.length;
  const isBest = best?.id === translated.hypothesis.ids[row];
  if (!best || (isBest && !isForced)) return "";
  const key = !isForced ? "beam" : isBest ? "forced.too" : "forced";
  return app.t(`stage.more.${key}`, target, probabilityWords(probability));
}

/**
 * Returns a text that says which rows the reader has set by hand, and from which word to which word the attention has
 * moved.
 */
function turnedWords(app: App, { translated, before, row, source }: StageNumbers) {
  const { t } = app;
  const rows = before.turned.map((one) => {
    const { from, to, query, attention } = one;
    const isOfSource = attention.startsWith("encoder.");
    const key = from === null ? "stage.look.to" : "stage.look.row";
    const said = t(key, headName(app, one), from ? tokenName(from, t) : "", tokenName(to, t));
    if (query === (isOfSource ? source : row)) return said;
    const reader = (isOfSource ? translated.sourceTokens : translated.outputTokens)[query];
    return `${said} (“${tokenName(reader ?? "", t)}”)`;
  });
  const more = rows.length > MOST_TURNED && t("stage.look.more", rows.length - MOST_TURNED);
  return t("stage.more.turned", [...rows.slice(0, MOST_TURNED), more].filter(Boolean).join("; "));
}

/** Returns whether the weights of a highlighted row sum to 1; a mistake in the softmax can prevent this. */
export function areShares({ rows }: StageNumbers, id: FamilyId) {
  return Math.abs(rows[id].reduce((sum, weight) => sum + weight, -1)) < 0.01;
}

function moreOf(
  app: App,
  numbers: StageNumbers,
  { family, values, isByHand }: Pick<ReturnType<typeof namedIn>, "family" | "values" | "isByHand">,
  worth: Worth | null,
) {
  const { target } = values;
  const weight = app.t(
    `stage.more.weight${isByHand ? ".hand" : areShares(numbers, family.id) ? "" : ".loose"}`,
  );
  const gives = values.weight === probabilityWords(0) ? "" : filled(weight, values);
  if (isHeadOff(numbers, family.id, numbers.heads[family.id])) return `${gives} ${app.t("stage.more.off")}`;
  if (!worth) return gives;
  const { before, after, isMost } = worth;
  const [was, is] = [before, after].map(probabilityWords);
  const needs = needsText(app, numbers.translated, numbers.row, worth.needs);
  const says = (...texts: (string | false)[]) => [gives, ...texts, needs].filter(Boolean).join(" ");
  if (was === is) return says(app.t("stage.more.same", target, is));
  if (after > before) return says(app.t("stage.more.rises", target, was, is));
  const most = isMost && app.t("stage.more.most");
  return says(app.t("stage.more.falls", target, was, is), most);
}

/**
 * Returns a text about the source words on which a word depends most, if removing the first source word at least
 * halves the word's probability.
 */
export function needsText(
  app: App,
  { sourceTokens, outputTokens, hypothesis }: Translated,
  row: number,
  needs: Needs | null,
) {
  const before = Math.exp(hypothesis.tokenLogProbs[row]);
  const [first, second] = needs?.words ?? [];
  if (!needs || !(first?.probability <= before / 2)) return "";
  const [rival] = app.engine.tokens("target", [needs.rival]);
  const name = (token: string) => tokenName(token, app.t);
  const said = [first, second].flatMap((one) =>
    one ? [name(sourceTokens[one.position]), probabilityWords(one.probability)] : [],
  );
  const key = `stage.more.needs${second ? ".two" : ""}`;
  return app.t(key, name(outputTokens[row]), name(rival), probabilityWords(before), ...said);
}

/** Returns whether no head of the decoder's highlighted row attends to a later word. */
export function hidesLater(app: App, { weights, open, row }: StageNumbers) {
  const [count] = weights.decoder.shape;
  const mask = app.mask(attentionName(FAMILIES[2], open.decoder));
  const isHidden = (column: number) => mask.data[row * mask.columns + column] === 0;
  const rows = times(count, (head) => rowOfHead(weights.decoder, head, row));
  return rows.every((one) =>
    one.every((weight, column) => column <= row || (isHidden(column) && weight === 0)),
  );
}

function filled(template: string, values: Record<string, string>) {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

/** Returns a template, filled in, as plain and coloured pieces. */
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
