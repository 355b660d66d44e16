// How the stage writes tokens, numbers and the names of the languages.
import { digitsText } from "../../engine/number_text.ts";
import { placeIn } from "./heads.ts";

import type { Side } from "../../engine/types.ts";
import type { App } from "./app.ts";
import type { Texts } from "./types.ts";

/** Returns a token as a word for readers: names for <bos> and <eos>, and spaces for "▁". */
export function tokenName(token: string, t: Texts) {
  if (token === "<bos>") return t("stage.start");
  if (token === "<eos>") return t("stage.end");
  return token.replaceAll("▁", "").trim() || "␣";
}

/** Returns a probability with three decimals, such as 0.884, or with four decimals if it is below 0.001. */
export function probabilityWords(value: number) {
  if (value > 0 && value < 0.00005) return "< 0.0001";
  return value.toFixed(value > 0 && value < 0.001 ? 4 : 3);
}

/**
 * Returns how many times as probable as its rival a word is: e^|margin|, with two digits. `shown`: the probabilities
 * of the word and the rival, if the page shows them. If the rounded probabilities do not determine the second digit,
 * the text has one digit, or else only a bound.
 */
export function timesText(t: Texts, margin: number, ...shown: number[]) {
  const times = Math.exp(Math.abs(margin));
  const rounded = shown.map((one) => Number(probabilityWords(one).replace("< ", "")));
  const seen = shown.length && times >= 2 ? Math.max(...rounded) / Math.min(...rounded) : times;
  const digits = [times < 1.05 ? 3 : 2, 1].find((one) => times.toPrecision(one) === seen.toPrecision(one));
  const least = Math.min(times, seen, 1e9);
  const unit = 10 ** Math.floor(Math.log10(least));
  const isKnown = digits && least < 1e9;
  const text = (isKnown ? +times.toPrecision(digits) : Math.floor(least / unit) * unit).toLocaleString("en");
  return isKnown ? text : t("times.more", text);
}

/** Returns a whole number in groups of three digits. */
export function groupedText(value: number) {
  return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
}

/** Returns e to a power, or a sum of such powers, as text; "" if unknown. */
export function powerText(value: number) {
  if (!Number.isFinite(value)) return "";
  return value < 1000 ? digitsText(value) : groupedText(value);
}

/** Returns e^(x − shift) as text. */
export const differenceText = (x: number, shift = 0) => powerText(Math.exp(x - shift));

/**
 * Returns a head's name, such as "head 5 of layer 1". The name says the kind of attention unless it is
 * cross-attention.
 */
export function headName({ t }: App, { attention, head }: { attention: string; head: number }) {
  const { family, layer } = placeIn(attention);
  return t(`stage.head.${family.id}`, head, layer);
}

/** Returns a temperature with at most two decimals. */
export const temperatureText = (value: number) => String(Number(value.toFixed(2)));

/** Returns the names of both languages in the reader's language, or else "source" and "target". */
export function languageNames(app: App) {
  const { languages } = app.payload;
  const names = new Intl.DisplayNames([app.state.language === "zh" ? "zh-CN" : "en"], { type: "language" });
  const named = (side: Side) => {
    try {
      return (languages[side] && names.of(languages[side])) || app.t(`stage.${side}`);
    } catch {
      return app.t(`stage.${side}`); // the configuration may contain any text, not only language codes
    }
  };
  return { source: named("source"), target: named("target") };
}
