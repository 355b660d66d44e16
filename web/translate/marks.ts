// What the page marks in a translation: the words, the model's confidence in each word, and the words aligned to it.
// Offsets count characters (code points), like those of the service.
import type { Link, Span, Word } from "./types.ts";

const BYTE = /^<0x([0-9A-F]{2})>$/;
const UNSURE = 0.5;

/**
 * Returns the words of a sentence (runs of characters without white space), each with the product of its tokens'
 * probabilities and the index of its least probable token. The product and the index are null if the tokens do not
 * spell the text, as in another wording that the reader has chosen.
 */
export function wordsOf(
  text: string,
  tokens: readonly string[],
  logProbs: readonly (number | null)[],
): Word[] {
  const words = spansOf(text);
  const places = tokensOf(words, tokens);
  const known = places?.flat().every((token) => typeof logProbs[token] === "number") ? places : null;
  const given = (token: number) => logProbs[token] ?? 0;
  return words.map((word, at) => ({
    ...word,
    probability: known && Math.exp(known[at].reduce((sum, token) => sum + given(token), 0)),
    token: known && known[at].reduce((least, token) => (given(token) < given(least) ? token : least)),
  }));
}

/** Returns whether the model gave a word a probability below one half. */
export function isUnsure({ probability }: Word) {
  return probability !== null && probability < UNSURE;
}

/** Returns the source words that the word of a translation at this offset is aligned to. */
export function sourcesOf(links: readonly Link[], offset: number): Span[] {
  return links
    .filter(([, , begin, end]) => begin <= offset && offset < end)
    .map(([begin, end]) => [begin, end]);
}

/**
 * Returns the words of a translation that are aligned to the source word at this offset. An offset at the end of a word
 * counts as inside it.
 */
export function targetsOf(links: readonly Link[], offset: number): Span[] {
  return links
    .filter(([begin, end]) => begin <= offset && offset <= end)
    .map(([, , begin, end]) => [begin, end]);
}

/** Returns the words of a text without their probabilities. */
function spansOf(text: string) {
  let [units, points] = [0, 0]; // UTF-16 code units and characters before the word
  return [...text.matchAll(/\S+/gu)].map((found) => {
    points += [...text.slice(units, found.index)].length;
    const begin = points;
    points += [...found[0]].length;
    units = found.index + found[0].length;
    return { begin, end: points, text: found[0] };
  });
}

/**
 * Returns the tokens of each word, or null if the tokens do not spell the words. A token may be one byte of a
 * character.
 */
function tokensOf(words: readonly { text: string }[], tokens: readonly string[]) {
  const encoder = new TextEncoder();
  const bytes = words.flatMap(({ text }, word) => [...encoder.encode(text)].map((byte) => ({ byte, word })));
  const places: number[][] = words.map(() => []);
  let at = 0;
  for (const [index, token] of tokens.entries()) {
    if (token === "<eos>") continue;
    const single = BYTE.exec(token);
    const spelt = single ? [parseInt(single[1], 16)] : encoder.encode(token.replace(/[▁\s]/gu, ""));
    if (spelt.length > 0 && at < bytes.length) places[bytes[at].word].push(index);
    for (const byte of spelt) if (bytes[at++]?.byte !== byte) return null;
  }
  return at === bytes.length ? places : null;
}
