// Tokens and numbers as the stage writes them.
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
