// Tokens and numbers as the stage writes them.
import { digitsText } from "../../engine/number_text.ts";

type Texts = (key: string, ...values: (string | number)[]) => string;

/** Returns a token as a reader's word: the marks of the sentence's ends by name, and spaces as spaces. */
export function tokenName(token: string, t: Texts) {
  if (token === "<bos>") return t("stage.start");
  if (token === "<eos>") return t("stage.end");
  return token.replaceAll("▁", "").trim() || "␣";
}

/** Returns a probability: 0.884, and a smaller one than 0.001 with four decimals. */
export function probabilityWords(value: number) {
  if (value > 0 && value < 0.00005) return "< 0.0001";
  return value.toFixed(value > 0 && value < 0.001 ? 4 : 3);
}

/** Returns a whole number in groups of three digits. */
export function groupedText(value: number) {
  return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
}

/** Returns a power of e: in groups of three digits, or a small one with at least three digits; "" if it is not known. */
export function powerText(value: number) {
  if (!Number.isFinite(value)) return "";
  return value < 1000 ? digitsText(value) : groupedText(value);
}
