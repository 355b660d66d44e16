// How the first scene writes words, and an output beside the output before it.
import { largestAt } from "../../engine/tensor.ts";
import { element, filled } from "../app/dom.ts";
import { probabilityWords, tokenName } from "../app/wording.ts";
import { layerOf } from "./look_subject.ts";

import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Written } from "../figure/hand.ts";
import type { Look } from "./look_subject.ts";

/** What each pronoun of the pair stands for. */
export const NOUNS: Record<string, string> = { elle: "street", il: "animal" };

/** Returns a text of the scene in which elements replace {0}, {1} … */
export function say({ t }: App, key: string, ...parts: Child[]): Child[] {
  return filled(t(`look.${key}`), parts);
}

/** Returns the names of these target words. */
export function namesOf({ engine, t }: App, ids: number[]) {
  return engine.tokens("target", ids).map((token) => tokenName(token, t));
}

/** Returns the tokens of an output, without <eos>. */
export function tokensOf({ engine, config }: App, { ids }: Written) {
  const shown = (ids ?? []).filter((id) => id !== config.eos_id);
  return engine.tokens("target", shown);
}

/** Returns the likeliest word at the position of the scene's word. */
export function topOf({ config }: App, { logProbs }: Written) {
  const { bos_id: bos, pad_id: pad } = config;
  return largestAt(logProbs, 1, (id) => id !== bos && id !== pad)[0];
}

/** Returns a name with a capital letter, for the beginning of a sentence. */
export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

export const sourceWord = (text: string) => element("strong", "gfs-source", element("bdi", {}, text));
export const targetWord = (text: string) => element("strong", "gfs-target", element("bdi", {}, text));

/** Returns the space before a token; "" for the first token and for a piece that continues a word. */
export function gap(tokens: string[], place: number) {
  const arePieces = tokens.some((token) => token.startsWith("▁"));
  return place && !(arePieces && !/^[▁<]/.test(tokens[place])) ? " " : "";
}

/** Returns a head, and the largest weight of its row. */
export function lookText(app: App, look: Look, weight = look.weights[look.peak], key = "look") {
  return app.t(`look.${key}`, layerOf(look), look.head, probabilityWords(weight));
}

/**
 * Returns the words of an output, each with the words of the old output that it replaces. Where old words were removed
 * without a replacement, `text` is null.
 */
export function compared(
  before: string[],
  now: string[],
): { text: string | null; old: string[]; place: number }[] {
  if (before.length === now.length)
    return now.map((text, place) => ({ text, old: before[place] === text ? [] : [before[place]], place }));
  const shorter = Math.min(before.length, now.length);
  let [start, end] = [0, 0];
  while (start < shorter && before[start] === now[start]) start++;
  while (end < shorter - start && before[before.length - 1 - end] === now[now.length - 1 - end]) end++;
  const gone = before.slice(start, before.length - end);
  const words = now.map((text, place) => ({ text, old: place === start ? gone : [], place }));
  if (start < now.length - end) return words;
  const kept = words.map((one) => ({ ...one, old: [] }));
  return [...kept.slice(0, start), { text: null, old: gone, place: start }, ...kept.slice(start)];
}

/** Returns the words of an output, drawn by `draw`, with the old words that they replace struck out. */
export function comparedWords(
  { t }: App,
  before: string[],
  now: string[],
  draw: (text: string, place: number) => Child,
): Child[] {
  return compared(before, now).map(({ text, old, place }) => {
    const struck = old.map((one) => [element("s", {}, tokenName(one, t)), " "]);
    return text === null ? [" ", struck] : [gap(now, place), struck, draw(text, place)];
  });
}
