// The sentence as a text field, which completes the word at the cursor and marks words that the vocabulary lacks.
import { SPACE_MARK, UNKNOWN_ID } from "../../engine/tokenizers.ts";
import { element, refill } from "../app/dom.ts";
import { joinMarks } from "../app/translator.ts";
import { knownTokens } from "../box/vocabulary_panel.ts";

import type { App } from "../app/app.ts";

const OFFERED = 6; // maximum number of completions
const LISTED = "gfs-completions";

/** The callbacks of the field. */
interface Typed {
  enter(text: string): unknown;
  leave(byKey: boolean): void;
}

/** Returns the field with its marks below and its completions above. */
export function sentenceField(app: App, text: string, { enter, leave }: Typed) {
  const field = inputOf(app, text);
  const marks = element("div", { class: "gfs-input gfs-marks", dir: "auto", "aria-hidden": "true" });
  const list = element("div", { id: LISTED, role: "listbox", "aria-label": app.t("field.words") });
  const lacks = element("p", { role: "status" });
  const above = element("div", "gfs-typing", list, lacks);
  let [words, chosen]: [string[], number] = [[], 0];
  let isDone = false;

  const offer = (found: string[], at: number) => {
    [words, chosen] = [found, at];
    field.ariaExpanded = String(found.length > 0);
    if (at < 0 || at >= found.length) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", `${LISTED}-${at}`);
    refill(
      list,
      found.map((word, place) => optionOf(word, place, place === at, accept)),
    );
  };
  const accept = (word: string) => {
    replaceWord(field, word);
    offer([], 0);
    mark();
  };
  const mark = () => markUnknown(app, field, marks, lacks);
  const keys: Record<string, () => unknown> = {
    ArrowDown: () => offer(words, (chosen + 1) % words.length),
    ArrowUp: () => offer(words, (chosen - 1 + words.length) % words.length),
    Escape: () => offer([], 0),
    Tab: () => chosen in words && accept(words[chosen]),
    ArrowRight: () => chosen in words && accept(words[chosen]),
  };
  field.addEventListener("keydown", (event) => {
    const isPlain = !(event.shiftKey || event.isComposing);
    if (isPlain && words.length > 0 && event.key in keys && keys[event.key]() !== false) {
      event.preventDefault();
      return event.stopPropagation();
    }
    isDone = (event.key === "Enter" && !event.isComposing) || event.key === "Escape";
    if (event.key !== "Escape") return isDone && enter(field.value);
    event.stopPropagation();
    leave(true);
  });
  field.addEventListener("input", () => {
    const word = wordAt(field);
    const found = completions(app, word);
    offer(found, knownTokens(app).includes(word) ? -1 : 0);
    mark();
  });
  field.addEventListener("scroll", () => (marks.scrollLeft = field.scrollLeft));
  field.addEventListener("blur", () => {
    if (!document.hasFocus()) return; // the whole window lost the focus, not just the field
    leave(false);
    const isSentence = field.value !== text && field.value.trim().length > 1; // a single letter may be typed by mistake
    if (isSentence && !isDone) enter(field.value);
  });
  offer([], 0);
  mark();
  return [marks, field, above];
}

/** Underlines the words that the vocabulary lacks, and names them. */
function markUnknown(app: App, field: HTMLInputElement, marks: HTMLElement, lacks: HTMLElement) {
  const parts = partsOf(app, field.value, wordAt(field));
  const unknown = parts.filter((part) => part.isUnknown).map((part) => part.text);
  refill(
    marks,
    parts.map((part) => (part.isUnknown ? element("u", {}, part.text) : part.text)),
  );
  lacks.textContent = unknown.length ? app.t("field.lacks", [...new Set(unknown)].join(", ")) : "";
  marks.scrollLeft = field.scrollLeft;
}

function inputOf(app: App, value: string) {
  return element("input", {
    type: "text",
    class: "gfs-input",
    spellcheck: false,
    dir: "auto",
    autocomplete: "off",
    role: "combobox",
    value,
    "aria-label": app.t("page.sentence"),
    "aria-autocomplete": "list",
    "aria-controls": LISTED,
  });
}

/** Returns a completion in the list. */
function optionOf(word: string, place: number, isChosen: boolean, accept: (word: string) => void) {
  return element(
    "div",
    {
      id: `${LISTED}-${place}`,
      role: "option",
      "aria-selected": String(isChosen),
      onmousedown: (event) => event.preventDefault(), // leaves the focus in the field
      onclick: () => accept(word),
    },
    word,
  );
}

const LETTERS = /[\p{L}\p{M}\p{N}'’-]+$/u;

/** Returns the part of a word before the cursor; "" if the cursor is not at the end of a word. */
function wordAt({ value, selectionStart, selectionEnd }: HTMLInputElement) {
  const at = selectionStart ?? 0;
  const isInside = at !== selectionEnd || /^[\p{L}\p{M}\p{N}]/u.test(value.slice(at));
  return isInside ? "" : (value.slice(0, at).match(LETTERS)?.[0] ?? "");
}

/** Writes a word in place of the word at the cursor. */
function replaceWord(field: HTMLInputElement, word: string) {
  const at = field.selectionStart ?? 0;
  const before = field.value.slice(0, at - wordAt(field).length) + word;
  field.value = before + field.value.slice(at);
  field.setSelectionRange(before.length, before.length);
}

/**
 * Returns the most frequent words that begin with the typed letters; none if the vocabulary consists of word pieces.
 */
function completions(app: App, typed: string) {
  if (!typed || !app.engine.tokenizers.source.suggestsTokens) return [];
  const begins = typed.toLowerCase();
  const isLonger = (word: string) => word.length > typed.length && word.toLowerCase().startsWith(begins);
  return knownTokens(app).filter(isLonger).slice(0, OFFERED);
}

/**
 * Returns a text in parts, and whether the model would read each part as <unk>. The word at the cursor does not count
 * as unknown while the vocabulary has a word that begins with the typed letters.
 */
function partsOf(app: App, text: string, typed: string) {
  const { source } = app.engine.tokenizers;
  const isBegun = completions(app, typed).length > 0;
  // an unpaired surrogate, which the tokenizers reject
  if (/\p{Surrogate}/u.test(text)) return [{ text, isUnknown: false }];
  const read = joinMarks(source, text);
  const pieces = source.split(read).map((piece) => piece.replaceAll(SPACE_MARK, ""));
  const ids = source.encode(read).slice(-pieces.length);
  const parts: { text: string; isUnknown: boolean }[] = [];
  let [shown, at] = [0, 0];
  for (const [place, piece] of pieces.entries()) {
    const from = text.indexOf(piece, at);
    if (from < 0) continue; // the tokenizer has normalised the piece, so the text does not contain it
    at = from + piece.length;
    if (ids[place] !== UNKNOWN_ID || (isBegun && piece === typed)) continue;
    parts.push({ text: text.slice(shown, from), isUnknown: false }, { text: piece, isUnknown: true });
    shown = at;
  }
  return [...parts, { text: text.slice(shown), isUnknown: false }];
}
