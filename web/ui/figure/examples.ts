// The example sentences. Two examples that differ in one word form a pair, and share one chip that swaps them.
import { button, element } from "../app/dom.ts";

import type { Payload } from "../../engine/types.ts";
import type { Child } from "../app/types.ts";

const MOST = 4; // maximum number of chips
const LONGEST = 16; // letters that fit into a chip

/**
 * Returns the index of the only word in which two sentences differ; −1 if they differ in any other way. Words are split
 * at spaces.
 */
function differingPlace(one: string, other: string) {
  const [words, others] = [one, other].map((text) => text.split(" "));
  const places = [...words.keys()].filter((at) => words[at] !== others[at]);
  return words.length === others.length && places.length === 1 ? places[0] : -1;
}

/** Returns the example that forms a pair with a sentence; "" if the page has none. */
export function partnerOf({ examples, story }: Payload, sentence: string) {
  return [...examples, ...story.pair].find((one) => differingPlace(sentence, one) >= 0) ?? "";
}

/** Returns the word of a sentence that differs from the other sentence, without punctuation. */
export function differingWord(sentence: string, other: string) {
  const word = sentence.split(" ")[differingPlace(sentence, other)] ?? "";
  return word.replace(/^\p{P}+|\p{P}+$/gu, "");
}

/** Returns the examples as chips; Tab reaches only one of the chips. */
export function exampleChips(examples: string[], open: string, show: (sentence: string) => unknown) {
  const groups = groupsOf(examples).slice(0, MOST);
  const stop = Math.max(
    0,
    groups.findIndex((group) => group.includes(open)),
  );
  return groups.map((group, at) => {
    const title = group.find((one) => one !== open) ?? open; // a click on an open pair swaps its two sentences
    const pressed = group.includes(open);
    const chip = button(labelOf(group, open), () => show(title), { className: "gfs-chip", title, pressed });
    chip.tabIndex = at === stop ? 0 : -1;
    return chip;
  });
}

/** Returns the examples grouped into pairs and single sentences. */
function groupsOf(examples: string[]) {
  const groups: string[][] = [];
  for (const one of examples) {
    const pair = groups.find(([first, second]) => !second && differingPlace(first, one) >= 0);
    if (pair) pair.push(one);
    else groups.push([one]);
  }
  return groups;
}

/**
 * Returns the label of a chip. The label of a single sentence is the end of the sentence, by which a reader can tell
 * examples apart. The label of a pair is the two differing words, with the word of the open sentence in bold.
 */
function labelOf([first, second]: string[], open: string): Child {
  if (!second) return shortened(first);
  const named = [differingWord(first, second), differingWord(second, first)].map((word, side) =>
    element([first, second][side] === open ? "b" : "span", {}, word),
  );
  return [named[0], " ⇄ ", named[1]];
}

function shortened(text: string) {
  const words = text.split(" ");
  let from = words.length - 1;
  while (from > 0 && words.slice(from - 1).join(" ").length <= LONGEST) from--;
  return from > 0 ? `… ${words.slice(from).join(" ")}` : text;
}
