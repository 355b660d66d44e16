// The translation page of `glassformer serve`: a text, its translation while the reader types, and the model's data
// about each sentence and word.
import { button, chooser, element, refill } from "../ui/app/dom.ts";
import { asksLatest } from "./asking.ts";
import { drawFiles, fileRow, takeDropped, translateFiles } from "./files.ts";
import { isUnsure, sourcesOf, targetsOf, wordsOf } from "./marks.ts";
import { scrollTogether } from "./scrolling.ts";
import { UnservedLanguageError, access, ask, detect, explorerStatus, inWords, translate } from "./service.ts";
import { data, hasText, nameOf, number, percent, reader, t } from "./words.ts";

import type { Language, Sentence, ServiceSettings, Shown, Span, Wording } from "./types.ts";

/** Waiting time after the last key, in milliseconds; the service translates a short text in less. */
const WAIT = 80;
/** Stands for the source language that the service detects. */
const DETECTED = "auto";

const state = {
  languages: [] as Language[],
  /** Maximum number of characters of a text */
  limit: Infinity,
  from: "",
  to: "",
  /** The language that was detected last, or "". */
  detected: "",
  /** The translation of the current text, or null if there is none yet. */
  shown: null as Shown | null,
  selected: 0,
  /** The token that was clicked in the chosen sentence; null if there is none. */
  token: null as number | null,
  /** Wordings that the reader has chosen, by source sentence. */
  chosen: new Map<string, Wording>(),
  /** Returns the message under the boxes, in the reader's language. */
  said: () => "",
};

// The elements of the page

const source = element("textarea", {
  id: "source",
  dir: "auto",
  spellcheck: false,
  "aria-describedby": "count",
});
const mirror = element("div", { className: "mirror", dir: "auto", "aria-hidden": "true" });
const target = element("div", {
  className: "target",
  dir: "auto",
  role: "group",
  "aria-live": "polite",
  "aria-busy": "false",
});
const detected = element("span", { className: "detected", role: "status" });
const count = element("span", { id: "count" });
const message = element("p", { className: "message", role: "status" });
const about = element("section", { className: "about", "aria-live": "polite" });
const title = element("h1");
const toggle = button("", () => {
  reader.language = reader.language === "en" ? "zh" : "en";
  drawWords();
  draw();
});
const from = element("span", { className: "language" });
const to = element("span", { className: "language" });
const arrow = element("span", { "aria-hidden": "true" }, "→");
const swap = button("⇄", swapLanguages);
const keyName = element("span");
const key = element("input", { type: "password", autocomplete: "off" });
const keyField = element("label", { className: "key" }, keyName, " ", key);
const copy = button("", async () => {
  if (!state.shown) return;
  await navigator.clipboard.writeText(translation());
  say(() => t("copied"));
});
const legend = element("p", { className: "legend" });
const follow = scrollTogether(source, target);

/** Puts the elements of the page together. */
function build({ keyRequired, supportedFilesFormat }: ServiceSettings) {
  keyField.hidden = !keyRequired;
  copy.hidden = !navigator.clipboard;
  arrow.hidden = state.languages.some((one) =>
    targetsFrom(one.code).some((other) => serves(other, one.code)),
  );
  swap.hidden = !arrow.hidden;
  translateFiles(supportedFilesFormat, () => ({ source: state.from, target: state.to }));
  takeDropped(source, replaceText);
  const pane = (...children: HTMLElement[]) => element("div", { className: "pane" }, children);
  const foot = (...children: HTMLElement[]) => element("div", { className: "foot" }, children);
  refill(
    document.body,
    element("header", {}, title, toggle),
    element(
      "main",
      {},
      element("div", { className: "bar" }, from, arrow, swap, to, keyField),
      element(
        "div",
        { className: "boxes" },
        element("div", { className: "box" }, pane(mirror, source), foot(detected, count)),
        element("div", { className: "box" }, pane(target), foot(copy)),
      ),
      element("div", { className: "bar under" }, message),
      fileRow,
      legend,
      about,
    ),
  );
  drawWords();
  draw();
}

/** Fills in every text except those inside the boxes, in the reader's language. */
function drawWords() {
  document.documentElement.lang = reader.language;
  document.title = `${t("title")} – glassformer`;
  title.textContent = t("title");
  refill(toggle, t("interface"));
  toggle.lang = reader.language === "en" ? "zh" : "en";
  swap.setAttribute("aria-label", t("swap"));
  swap.title = t("swap");
  keyName.textContent = t("key");
  source.setAttribute("aria-label", t("source"));
  source.placeholder = t("source.hint");
  target.setAttribute("aria-label", t("target"));
  refill(copy, t("copy"));
  legend.textContent = t("legend");
  message.textContent = state.said();
  drawLanguages();
  drawCount();
  drawFiles();
}

// Languages

/** Draws the choice of languages. */
function drawLanguages() {
  const targets = targetsFrom(state.from);
  if (!targets.includes(state.to)) state.to = targets[0];
  const sources = state.languages.map((one) => one.code).filter((code) => targetsFrom(code).length > 0);
  const pairs = (codes: string[]) => codes.map((code) => [code, nameIn(code)] as const);
  const choices = (side: "from" | "to", label: string, codes: (readonly [string, string])[]) =>
    chooser(label, codes, state[side], (code) => {
      state[side] = code;
      state.chosen.clear();
      drawLanguages();
      changed();
    });
  refillInFocus(
    from,
    choices("from", t("from"), [
      ...(data.detects ? [[DETECTED, t("detect")] as const] : []),
      ...pairs(sources),
    ]),
  );
  refillInFocus(to, choices("to", t("to"), pairs(targets)));
  drawDetected();
}

/** Replaces the only child of an element. If the old child had the focus, the new one gets it. */
function refillInFocus(parent: HTMLElement, child: HTMLElement) {
  const hasFocus = parent.contains(document.activeElement);
  refill(parent, child);
  if (hasFocus) child.focus();
}

/** Shows which language was detected, and updates what depends on it. */
function drawDetected() {
  const code = sourceLanguage();
  swap.disabled = !code || !serves(state.to, code);
  const said = state.from === DETECTED && code ? t("detected", nameIn(code)) : "";
  if (detected.textContent !== said) detected.textContent = said; // otherwise, a screen reader might repeat it
  source.lang = mirror.lang = code;
  target.lang = state.to;
}

/** Returns the name of a language in the reader's language. */
function nameIn(code: string) {
  return nameOf(state.languages.find((one) => one.code === code) ?? { code, name: code, targets: [] });
}

/** Returns the languages into which `code` can be translated; with DETECTED, the detected language counts. */
function targetsFrom(code: string): string[] {
  const fitting = state.languages.filter((one) => code === DETECTED || one.code === code);
  return [...new Set(fitting.flatMap((one) => one.targets.filter((other) => other !== one.code)))];
}

/** Returns whether some model translates from one language into the other. */
function serves(from: string, to: string) {
  return targetsFrom(from).includes(to);
}

/** Returns the language of the text; "" if it has to be detected. */
function sourceLanguage() {
  return state.from === DETECTED ? state.detected : state.from;
}

/** Swaps the languages, and replaces the text by its translation. */
function swapLanguages() {
  const [before, text] = [source.value, state.shown ? translation() : source.value];
  [state.from, state.to] = [state.to, sourceLanguage()];
  state.chosen.clear();
  drawLanguages();
  replaceText(text);
  if (text.trim()) refill(target, before);
}

// Translating

/** Shows a message under the boxes; `isBad`: whether it reports an error. */
function say(words: () => string, isBad = false) {
  state.said = words;
  message.textContent = words();
  message.classList.toggle("bad", isBad);
}

const question = asksLatest(
  async (text: string, signal): Promise<Shown> => {
    const from = state.from === DETECTED ? await detect(text, signal) : state.from;
    const targets = targetsFrom(from);
    if (targets.length === 0) throw new UnservedLanguageError({ code: from, name: nameIn(from), targets });
    const to = targets.includes(state.to) ? state.to : targets[0];
    const { model, translations } = await translate(text, { source: from, target: to }, signal);
    const explorer = await explorerStatus(model);
    return { points: [...text], from, to, model, explorer, translated: translations[0] };
  },
  (shown) => {
    Object.assign(state, { shown, selected: 0, token: null, detected: shown.from });
    if (state.to === shown.to) drawDetected();
    else {
      state.to = shown.to;
      drawLanguages();
    }
    say(() => "");
    draw();
  },
  (error) => {
    state.shown = null;
    say(() => inWords(error), true);
    draw();
  },
  WAIT,
);

/** Requests the translation of the current text. Until it arrives, the old translation is marked as outdated. */
function changed() {
  const text = source.value;
  const isTooLong = sizeOf(text) > state.limit;
  const isAsked = text.trim() !== "" && !isTooLong;
  state.shown = null;
  mirror.replaceChildren();
  about.replaceChildren();
  question(isAsked ? text : null);
  if (!isAsked) {
    state.detected = "";
    target.replaceChildren();
    drawDetected();
  }
  target.setAttribute("aria-busy", String(isAsked));
  drawCount();
  if (isTooLong) say(() => t("long", number(state.limit)), true);
  else say(() => (isAsked ? t("busy") : ""));
}

/** Replaces the text. */
function replaceText(text: string) {
  source.value = text;
  changed();
}

/** Returns the number of characters (code points) of a text, as the service counts them. */
function sizeOf(text: string) {
  return [...text].length;
}

/** Draws the number of characters of the text and its limit. */
function drawCount() {
  const size = sizeOf(source.value);
  count.textContent = t("count", number(size), number(state.limit));
  count.classList.toggle("bad", size > state.limit);
}

/** Returns the wording of a sentence: the model's, or the one that the reader has chosen. */
function wordingOf(sentence: Sentence): Wording {
  return state.chosen.get(sourceOf(sentence)) ?? sentence;
}

/** Returns the source of a sentence. */
function sourceOf({ source }: Sentence) {
  return (state.shown?.points ?? []).slice(...source).join("");
}

/** Returns the sentences of the translation and the text between them, in order. */
function pieces() {
  const { text, sentences } = state.shown?.translated ?? { text: "", sentences: [] };
  const points = [...text];
  const starts = [0, ...sentences.map((one) => one.target[1])];
  return starts.map((start, at) => ({
    between: points.slice(start, sentences[at]?.target[0]).join(""),
    sentence: at < sentences.length ? sentences[at] : null,
  }));
}

/** Returns the translation, with the wordings that the reader has chosen. */
function translation() {
  return pieces()
    .map(({ between, sentence }) => between + (sentence ? wordingOf(sentence).text : ""))
    .join("");
}

// Drawing

/** Draws the translation, the source words behind the text field, and the details of the chosen sentence. */
function draw() {
  target.setAttribute("aria-busy", "false");
  refill(
    target,
    pieces().map(({ between, sentence }, at) => [between, sentence && drawn(sentence, at)]),
  );
  target.querySelector(".word")?.setAttribute("tabindex", "0");
  refill(mirror, state.shown && [mirrored(state.shown), "\n"]);
  mirror.scrollTop = source.scrollTop;
  follow();
  drawAbout([]);
}

/** Returns the element of a sentence. */
function drawn(sentence: Sentence, at: number) {
  const { text, tokens, token_log_probs: logProbs, ...said } = wordingOf(sentence);
  const points = [...text];
  let end = 0;
  const children = wordsOf(text, tokens, logProbs).flatMap((word) => {
    const between = points.slice(end, word.begin).join("");
    end = word.end;
    const title = word.probability === null ? null : t("probability", percent(word.probability));
    const looks = {
      className: isUnsure(word) ? "word unsure" : "word",
      role: "button",
      tabindex: "-1",
      title,
    };
    const place = { "data-sentence": at, "data-begin": word.begin, "data-token": word.token };
    return [between, element("span", { ...looks, ...place }, word.text)];
  });
  return element("span", { className: "sentence", "data-sentence": at }, children, remarksOn("small", said));
}

/** Returns an element that says why a sentence may be wrong or was not translated; null if there is nothing to say. */
function remarksOn(tag: "small" | "p", { status, reasons = [] }: Pick<Wording, "status" | "reasons">) {
  if (status === "empty") return element(tag, { className: "reason soft" }, ` (${t("empty")})`);
  const all = reasons.length > 0 || status === "ok" ? reasons : [status];
  const words = all.map((one) => t(hasText(`reason.${one}`) ? `reason.${one}` : "reason.other"));
  return words.length > 0 && element(tag, { className: "reason bad" }, ` ⚠ ${words.join(t("comma"))}`);
}

/** Returns a text about how likely a sentence is to be right, as far as this is known. */
function confidenceIn({ exact, close }: NonNullable<Wording["confidence"]>) {
  const parts = [
    exact !== null && t("confidence.exact", percent(exact)),
    close !== null && t("confidence.close", percent(close)),
  ];
  return parts.filter(Boolean).join(" ");
}

/**
 * Returns the source with an element for each aligned word. This source lies behind the text field, which shows the
 * text itself.
 */
function mirrored({ points, translated }: Shown) {
  let end = 0;
  const words = translated.sentences.flatMap((sentence, at) =>
    unique(wordingOf(sentence).links.map(([begin, end]) => [begin, end])).map(([begin, end]) => ({
      at,
      begin,
      from: sentence.source[0] + begin,
      to: sentence.source[0] + end,
    })),
  );
  const children = words.map(({ at, begin, from, to }) => {
    const between = points.slice(end, from).join("");
    end = to;
    const word = points.slice(from, to).join("");
    return [between, element("span", { "data-sentence": at, "data-begin": begin }, word)];
  });
  return [children, points.slice(end).join("")];
}

/** Returns the spans without duplicates, in the order of the text. */
function unique(spans: Span[]) {
  return [...new Map(spans.map((span) => [span[0], span])).values()].sort(([a], [b]) => a - b);
}

/** Draws the details of the chosen sentence. `wordings`: the alternatives to choose from. */
function drawAbout(wordings: string[]) {
  const { shown, selected } = state;
  const sentences = shown?.translated.sentences ?? [];
  const sentence = sentences[selected];
  for (const [at, one] of target.querySelectorAll(".sentence").entries())
    one.classList.toggle("selected", at === selected && sentences.length > 1);
  if (!shown || !sentence) {
    refill(about, shown ? null : element("p", { className: "soft" }, t("sentence.none")));
    return;
  }
  const text = sourceOf(sentence);
  const wording = wordingOf(sentence);
  refill(
    about,
    element("h2", {}, t("sentence", String(selected + 1), String(sentences.length))),
    element("p", { className: "quoted", dir: "auto", lang: shown.from }, text),
    remarksOn("p", wording),
    wording.confidence && element("p", {}, confidenceIn(wording.confidence)),
    element(
      "p",
      { className: "bar" },
      data.alternatives > 0 && button(t("others"), () => showOthers(selected)),
      why(shown, text, wording),
    ),
    wordings.length > 0 &&
      element(
        "ul",
        { className: "wordings" },
        wordings.map((text) =>
          element(
            "li",
            {},
            element(
              "button",
              {
                type: "button",
                dir: "auto",
                lang: shown.to,
                "aria-pressed": String(text === wording.text),
                onclick: () => choose(sentence, text),
              },
              text,
            ),
          ),
        ),
      ),
  );
}

/**
 * Returns a link to the explorer, which explains the clicked word, or else the sentence; or a text that says that the
 * model has no explorer. If the reader has chosen a different wording, the link forces that output.
 */
function why({ model, explorer }: Shown, text: string, wording: Wording) {
  if (explorer !== 200)
    return element(
      "span",
      { className: "soft" },
      t(hasText(`why.${explorer}`) ? `why.${explorer}` : "why.none"),
    );
  const shown = new URLSearchParams();
  if (state.chosen.has(text)) shown.set("prefix", wording.text);
  if (state.token !== null) {
    const zoom = JSON.stringify({ box: "decoder.softmax", key: null });
    for (const [key, value] of Object.entries({ row: `${state.token}`, zoom, panel: "why" }))
      shown.set(key, value);
  }
  const href = `explore?${new URLSearchParams({ run: model, text })}#${shown}`;
  const looks = { className: "button", target: "_blank", rel: "noopener", title: t("why.title") };
  return element("a", { ...looks, href }, t("why"));
}

// Other wordings

/** Requests and shows the other wordings of a sentence, best first. */
async function showOthers(at: number) {
  const { shown } = state;
  const sentence = shown?.translated.sentences[at];
  if (!shown || !sentence) return;
  state.selected = at;
  drawAbout([]);
  if (data.alternatives === 0) return;
  try {
    const { translations } = await translate(sourceOf(sentence), {
      ...directionOf(shown),
      n_best: data.alternatives + 1,
    });
    if (state.shown !== shown || state.selected !== at) return;
    const [{ text, alternatives }] = translations;
    const wordings = [...new Set([sentence.text, text, ...alternatives])];
    drawAbout(wordings);
    say(() => (wordings.length > 1 ? "" : t("others.none")));
  } catch (error) {
    if (state.shown === shown) say(() => inWords(error), true);
  }
}

/** Returns the source and target language of a translation. */
const directionOf = ({ from, to }: Shown) => ({ source: from, target: to });

/** Replaces a sentence by another wording. */
async function choose(sentence: Sentence, text: string) {
  const { shown, selected } = state;
  if (!shown) return;
  state.token = null;
  const from = sourceOf(sentence);
  if (text === sentence.text) state.chosen.delete(from);
  else state.chosen.set(from, await worded(shown, from, text));
  if (state.shown !== shown) return;
  draw();
  focusWord(target.querySelector(`.sentence[data-sentence="${selected}"] .word`));
}

/**
 * Returns a wording with the model's data about its words, or without them if the model would continue the sentence
 * after it.
 */
async function worded(shown: Shown, from: string, text: string): Promise<Wording> {
  const unknown = { text, status: "ok", tokens: [], token_log_probs: [], links: [] };
  try {
    const { translations } = await translate(from, { ...directionOf(shown), prefix: text });
    return translations[0].sentences.find((one) => one.text === text) ?? unknown;
  } catch {
    return unknown;
  }
}

// Words

/** Returns the index of the sentence and the offset that a word's element stands for. */
function placeOf(word: Element): [sentence: number, begin: number] {
  return [Number(word.getAttribute("data-sentence")), Number(word.getAttribute("data-begin"))];
}

/** Highlights a word and the words aligned to it, on both sides; null removes the highlight. */
function light(word: Element | null) {
  for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
  if (!word || !state.shown) return;
  const [at, begin] = placeOf(word);
  const { links } = wordingOf(state.shown.translated.sentences[at]);
  const isSource = mirror.contains(word);
  const others = isSource ? targetsOf(links, begin) : sourcesOf(links, begin);
  word.classList.add("lit");
  for (const [begin] of others)
    (isSource ? target : mirror)
      .querySelector(`[data-sentence="${at}"][data-begin="${begin}"]`)
      ?.classList.add("lit");
}

/** Returns the word of the translation on which an event happened. */
function wordAt(event: Event): HTMLElement | null {
  return event.target instanceof Element ? event.target.closest(".word") : null;
}

/** Gives the focus to a word of the translation, and makes it the only word that Tab reaches. */
function focusWord(word: HTMLElement | null) {
  if (!word) return;
  target.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
  word.setAttribute("tabindex", "0");
  word.focus();
}

/** Returns the source word under a point. */
function mirroredAt({ clientX: x, clientY: y }: MouseEvent) {
  const holds = ({ left, right, top, bottom }: DOMRect) => left <= x && x <= right && top <= y && y <= bottom;
  return [...mirror.children].find((word) => [...word.getClientRects()].some(holds)) ?? null;
}

/** Returns the source word that the caret is in or at the end of. */
function mirroredAtCaret() {
  const caret = [...source.value.slice(0, source.selectionStart)].length;
  const sentences = state.shown?.translated.sentences ?? [];
  return (
    [...mirror.children].find((word) => {
      const [at, begin] = placeOf(word);
      const start = sentences[at].source[0] + begin;
      return start <= caret && caret <= start + [...(word.textContent ?? "")].length;
    }) ?? null
  );
}

source.addEventListener("input", changed);
source.addEventListener("scroll", () => (mirror.scrollTop = source.scrollTop));
source.addEventListener("mousemove", (event) => light(mirroredAt(event)));
source.addEventListener("mouseleave", () => light(null));
document.addEventListener("selectionchange", () => {
  if (document.activeElement === source) light(mirroredAtCaret());
});
source.addEventListener("blur", () => light(null));
for (const type of ["mouseover", "focusin"]) target.addEventListener(type, (event) => light(wordAt(event)));
for (const type of ["mouseleave", "focusout"]) target.addEventListener(type, () => light(null));
target.addEventListener("click", (event) => {
  const at =
    event.target instanceof Element && event.target.closest(".sentence")?.getAttribute("data-sentence");
  if (!at) return;
  const token = wordAt(event)?.getAttribute("data-token");
  state.token = token ? Number(token) : null;
  showOthers(Number(at));
});
target.addEventListener("keydown", (event) => {
  const word = wordAt(event);
  if (!word) return;
  const words = [...target.querySelectorAll(".word")] as HTMLElement[];
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key] ?? 0;
  if (step !== 0) focusWord(words[words.indexOf(word) + step]);
  else if (event.key === "Enter" || event.key === " ") word.click();
  else return;
  event.preventDefault();
});

key.addEventListener("change", () => {
  access.key = key.value;
  changed();
});

try {
  const [languages, settings]: [Language[], ServiceSettings] = await Promise.all([
    ask("languages"),
    ask("frontend/settings"),
  ]);
  const { source: first, target: into } = settings.language;
  Object.assign(state, { languages, limit: settings.charLimit, from: first.code, to: into.code });
  access.isNeeded = settings.keyRequired;
  build(settings);
  source.focus();
} catch (error) {
  document.documentElement.lang = reader.language;
  refill(document.body, element("p", { role: "alert" }, inWords(error)));
}
