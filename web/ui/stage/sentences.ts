// The sentence that says what is lit. Each claim is a number of the trace or of a measurement; what is not known is not
// said.
import { largestPlace, rowOfHead } from "./numbers.ts";
import { probabilityWords, tokenName } from "./words.ts";

import type { Side } from "../../engine/types.ts";
import type { App } from "../app.ts";
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

/** Returns what the stage says about its lit box. */
export function saidOf(app: App, box: string, numbers: StageNumbers, worth: Worth | null): Said {
  const { translated, row, source, read, open, heads } = numbers;
  const t = (key: string, ...values: (string | number)[]) => app.t(key, ...values);
  const [stack, id = ""] = box.split(/\.(.*)/);
  const layer = stack === "encoder" ? open.encoder : open.decoder;
  const head = stack === "encoder" ? heads.encoder : id === "cross_attention" ? heads.cross : heads.decoder;
  const target = tokenName(translated.outputTokens[row] ?? "", t);
  const rowOf = stack === "encoder" ? source : row;
  const words = stack === "encoder" ? translated.sourceTokens : translated.targetTokens;
  const weights = lookOf(numbers, stack, id, read);
  const looked = largestPlace(weights);
  const lookedAt = tokenName((id === "cross_attention" ? translated.sourceTokens : words)[looked] ?? "", t);
  const reader = tokenName(words[rowOf] ?? "", t);
  const most = weights[looked] ?? 0;
  const chosen = numbers.candidates.find((one) => one.id === translated.hypothesis.ids[row]);
  const values: Record<string, string> = {
    target,
    source: id === "cross_attention" ? lookedAt : tokenName(translated.sourceTokens[source] ?? "", t),
    reader,
    looked: lookedAt,
    head: String(head),
    layer: String(layer),
    weight: probabilityWords(most),
    probability: chosen ? probabilityWords(chosen.probability) : "",
  };
  const kind = id.replace(/\.(add|norm)$/, ".add");
  const key = `stage.said.${stack}.${kind}`;
  const isShared = id === "cross_attention" && most < 0.5;
  const isSelf = id === "self_attention" && looked === rowOf;
  const own = stack === "encoder" ? "source" : "target";
  const sides = {
    target: "target",
    source: "source",
    reader: own,
    looked: id === "cross_attention" ? "source" : own,
  } as const;
  const sentence = parts(t(isShared ? `${key}.shared` : isSelf ? `${key}.self` : key), values, sides);
  const paper = id.endsWith(".add") || id.endsWith("norm") ? "§3.1" : (PAPER[id] ?? "§3");
  return {
    kicker: [t("stage.word.of", row + 1, translated.outputTokens.length), app.changed && t("stage.changed")]
      .filter(Boolean)
      .join(" · "),
    sentence,
    more: [
      unlikely(app, numbers, target),
      id.endsWith("attention")
        ? moreOf(t, values, worth, target)
        : plain(t(`${key}.more`), values, `${key}.more`),
      stack === "decoder" && id === "self_attention" && t("stage.more.mask"),
      translated.unknown.length > 0 &&
        t("stage.more.unknown", [...new Set(translated.unknown)].slice(0, 4).join(", ")),
    ]
      .filter(Boolean)
      .join(" "),
    paper: t("stage.paper", paper),
  };
}

/** Returns the lit row of an attention. */
function lookOf(
  { weights, heads, source, row }: StageNumbers,
  stack: string,
  id: string,
  read: Float32Array,
) {
  if (id === "cross_attention" || !id.endsWith("attention")) return read;
  const family = stack === "encoder" ? "encoder" : "decoder";
  return rowOfHead(weights[family], heads[family], stack === "encoder" ? source : row);
}

/** Returns why a word is written that is not the likeliest; "" if it is. */
function unlikely(app: App, { translated, row, candidates }: StageNumbers, target: string) {
  const written = translated.hypothesis.ids[row];
  if (candidates.length === 0 || candidates[0].id === written) return "";
  const probability = probabilityWords(Math.exp(translated.hypothesis.tokenLogProbs[row] ?? NaN));
  const isForced = row < translated.prefixIds.length;
  return app.t(isForced ? "stage.more.forced" : "stage.more.beam", target, probability);
}

function moreOf(t: App["t"], values: Record<string, string>, worth: Worth | null, target: string) {
  const gives = filled(t("stage.more.weight"), values);
  if (!worth) return gives;
  const [before, after] = [probabilityWords(worth.before), probabilityWords(worth.after)];
  if (Math.abs(worth.before - worth.after) < 0.01) return `${gives} ${t("stage.more.same", target)}`;
  if (worth.after > worth.before) return `${gives} ${t("stage.more.rises", target, before, after)}`;
  const others = worth.after > worth.before / 2 ? ` ${t("stage.more.others")}` : "";
  return `${gives} ${t("stage.more.falls", target, before, after)}${others}`;
}

/** Returns a template's text; "" if there is no template of this key. */
function plain(template: string, values: Record<string, string>, key: string) {
  return template === key ? "" : filled(template, values);
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
