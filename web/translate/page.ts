// The translation page of `glassformer serve`: a text, its translation while the reader types, and what the model says
// about each sentence and word.
import { button, chooser, element, refill } from "../ui/dom.ts";
import { asksLatest } from "./asking.ts";
import { isUnsure, sourcesOf, targetsOf, wordsOf } from "./marks.ts";

import type { Answer, Language, PageData, Sentence, ServiceSettings, Shown, Span, Wording } from "./types.ts";

/** Milliseconds after the last key; the service translates a short text in less. */
const WAIT = 80;

const data: PageData = JSON.parse(document.getElementById("data")?.textContent ?? "");

const state = {
  interface: navigator.language.startsWith("zh") ? "zh" : ("en" as "en" | "zh"),
  from: "",
  to: "",
  key: "",
  /** The translation of the text as it is now; null if there is none yet */
  shown: null as Shown | null,
  selected: 0,
  /** Wordings that the reader has chosen, by their source sentences */
  chosen: new Map<string, Wording>(),
};

/** Returns a text of the page. */
function t(key: string, ...values: string[]) {
  return data.strings[state.interface][key].replace(/\{(\d)\}/g, (_, at) => values[at]);
}

/** Returns a probability in words. */
const percent = (value: number) => `${Math.round(100 * value)} %`;

/** Returns the answer of an endpoint. */
async function ask(path: string, how?: RequestInit): Promise<any> {
  const answer = await fetch(path, how);
  const found = await answer.json();
  if (!answer.ok) throw new RefusedError(found.error);
  return found;
}

/** An answer that says why there is no other one. */
class RefusedError extends Error {}

/** Returns the translation of a text. */
function translate(
  text: string,
  more: { n_best?: number; prefix?: string } = {},
  signal?: AbortSignal,
): Promise<Answer> {
  const headers = {
    "Content-Type": "application/json",
    ...(state.key && { Authorization: `Bearer ${state.key}` }),
  };
  const fields = { texts: [text], source: state.from, target: state.to, links: true, ...more };
  return ask("v1/translate", { method: "POST", headers, body: JSON.stringify(fields), signal });
}

// What the page consists of

const source = element("textarea", { id: "source", dir: "auto", spellcheck: false });
const mirror = element("div", { className: "mirror", dir: "auto", "aria-hidden": "true" });
const target = element("div", {
  className: "target",
  dir: "auto",
  role: "group",
  "aria-live": "polite",
  "aria-busy": "false",
});
const message = element("p", { className: "message", role: "status" });
const about = element("section", { className: "about", "aria-live": "polite" });
const upload = element("input", { type: "file", className: "file", id: "file" });
const file = element("a", { className: "saved" });

/** Draws everything around the boxes, in the reader's language. */
function build(languages: Language[], settings: ServiceSettings) {
  document.documentElement.lang = state.interface;
  document.title = `${t("title")} – glassformer`;
  const named = new Map(languages.map((one) => [one.code, nameOf(one)]));
  const targets = targetsFrom(languages, state.from);
  if (!targets.includes(state.to)) state.to = targets[0];
  const rebuild = () => build(languages, settings);
  const pairs = (codes: string[]) => codes.map((code) => [code, named.get(code) ?? code] as [string, string]);
  const sources = languages.map((one) => one.code).filter((code) => targetsFrom(languages, code).length > 0);
  source.setAttribute("aria-label", t("source"));
  source.placeholder = t("source.hint");
  target.setAttribute("aria-label", t("target"));
  upload.accept = settings.supportedFilesFormat.join(",");
  const copy = button(t("copy"), async () => {
    if (!state.shown) return;
    await navigator.clipboard.writeText(translation());
    say(t("copied"));
  });
  refill(
    document.body,
    element(
      "header",
      {},
      element("h1", {}, t("title")),
      button(t("interface"), () => {
        state.interface = state.interface === "en" ? "zh" : "en";
        rebuild();
      }),
    ),
    element(
      "main",
      {},
      element(
        "div",
        { className: "bar" },
        chooser(t("from"), pairs(sources), state.from, (code) => {
          state.from = code;
          state.chosen.clear();
          rebuild();
          changed();
        }),
        element("span", { "aria-hidden": "true" }, "→"),
        chooser(t("to"), pairs(targets), state.to, (code) => {
          state.to = code;
          state.chosen.clear();
          changed();
        }),
        settings.keyRequired && keyField(),
        settings.supportedFilesFormat.length > 0 && [
          element("label", { className: "button", htmlFor: "file" }, upload, t("file")),
          file,
        ],
      ),
      element(
        "div",
        { className: "boxes" },
        element("div", { className: "box" }, mirror, source),
        element("div", { className: "box" }, target),
      ),
      element("div", { className: "bar under" }, message, navigator.clipboard && copy),
      element("p", { className: "legend" }, t("legend")),
      about,
    ),
  );
  draw();
}

/** Returns the name of a language in the reader's language. */
function nameOf({ code, name }: Language) {
  if (state.interface === "en") return name;
  try {
    return new Intl.DisplayNames([state.interface], { type: "language" }).of(code) ?? name;
  } catch {
    return name; // a run may name its languages as it likes
  }
}

/** Returns the languages that a language can be translated into. */
function targetsFrom(languages: Language[], code: string) {
  return (languages.find((one) => one.code === code)?.targets ?? []).filter((one) => one !== code);
}

/** Returns the field for the key, for a service that wants one. */
function keyField() {
  const input = element("input", { type: "password", autocomplete: "off", value: state.key });
  input.addEventListener("change", () => {
    state.key = input.value;
    changed();
  });
  return element("label", {}, t("key"), " ", input);
}

/** Says something under the boxes. */
function say(text: string) {
  message.textContent = text;
}

// Translate

const question = asksLatest(
  async (text: string, signal) => {
    const { model, translations } = await translate(text, {}, signal);
    return { points: [...text], model, translated: translations[0] };
  },
  (shown) => {
    [state.shown, state.selected] = [shown, 0];
    say("");
    draw();
  },
  refused,
  WAIT,
);

function refused(error: unknown) {
  state.shown = null;
  say(error instanceof RefusedError ? error.message : t("unreachable"));
  draw();
}

/** Asks for the translation of the text as it is now; until it arrives, the old one is marked as old. */
function changed() {
  const text = source.value;
  state.shown = null;
  mirror.replaceChildren();
  about.replaceChildren();
  question(text.trim() ? text : null);
  if (!text.trim()) target.replaceChildren();
  target.setAttribute("aria-busy", String(text.trim() !== ""));
  say(text.trim() ? t("busy") : "");
}

/** Returns the wording of a sentence: the model's, or the one that the reader has chosen. */
function wordingOf(sentence: Sentence): Wording {
  return state.chosen.get(sourceOf(sentence)) ?? sentence;
}

/** Returns the source of a sentence. */
function sourceOf({ source }: Sentence) {
  return (state.shown?.points ?? []).slice(...source).join("");
}

/** Returns the text of the translation and what is between its sentences, in order. */
function pieces() {
  const { text, sentences } = state.shown?.translated ?? { text: "", sentences: [] };
  const points = [...text];
  const starts = [0, ...sentences.map((one) => one.target[1])];
  return starts.map((start, at) => ({
    between: points.slice(start, sentences[at]?.target[0]).join(""),
    sentence: at < sentences.length ? sentences[at] : null,
  }));
}

/** Returns the translation in the wordings that the reader has chosen. */
function translation() {
  return pieces()
    .map(({ between, sentence }) => between + (sentence ? wordingOf(sentence).text : ""))
    .join("");
}

// Draw

/** Draws the translation, the source's words behind the text field, and what is said about the chosen sentence. */
function draw() {
  target.setAttribute("aria-busy", "false");
  refill(
    target,
    pieces().map(({ between, sentence }, at) => [between, sentence && drawn(sentence, at)]),
  );
  target.querySelector(".word")?.setAttribute("tabindex", "0");
  refill(mirror, state.shown && [mirrored(state.shown), "\n"]);
  mirror.scrollTop = source.scrollTop;
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
    return [between, element("span", { ...looks, "data-sentence": at, "data-begin": word.begin }, word.text)];
  });
  const reasons = reasonsOf(said);
  return element(
    "span",
    { className: "sentence", "data-sentence": at },
    children,
    reasons.length > 0 && element("small", { className: "reason" }, ` ⚠ ${reasons.join(", ")}`),
  );
}

/** Returns in words why a sentence may be wrong. */
function reasonsOf({ status, reasons = [] }: Pick<Wording, "status" | "reasons">) {
  const all = reasons.length > 0 || status === "ok" ? reasons : [status];
  return all.map((one) => (`reason.${one}` in data.strings.en ? t(`reason.${one}`) : one));
}

/** Returns in words how sure one may be of a sentence, as far as that is known. */
function confidenceIn({ exact, close }: NonNullable<Wording["confidence"]>) {
  const parts = [
    exact !== null && t("confidence.exact", percent(exact)),
    close !== null && t("confidence.close", percent(close)),
  ];
  return parts.filter(Boolean).join(". ");
}

/** Returns the source with an element for each of its aligned words; the text field in front of it shows the text. */
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

/** Returns different spans in the order of the text. */
function unique(spans: Span[]) {
  return [...new Map(spans.map((span) => [span[0], span])).values()].sort(([a], [b]) => a - b);
}

/** Draws what is said about the chosen sentence. `wordings`: the wordings to choose from. */
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
  const reasons = reasonsOf(wording);
  refill(
    about,
    element("h2", {}, t("sentence", String(selected + 1), String(sentences.length))),
    element("p", { className: "quoted", dir: "auto" }, text),
    reasons.length > 0 && element("p", { className: "reason" }, `⚠ ${reasons.join(", ")}`),
    wording.confidence && element("p", {}, confidenceIn(wording.confidence)),
    element(
      "p",
      { className: "bar" },
      data.alternatives > 0 && button(t("others"), () => showOthers(selected)),
      element(
        "a",
        {
          className: "button",
          href: `explore?${new URLSearchParams({ run: shown.model, text })}`,
          target: "_blank",
          rel: "noopener",
          title: t("why.title"),
        },
        t("why"),
      ),
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

// Other wordings

/** Shows the wordings of a sentence, best first. */
async function showOthers(at: number) {
  const { shown } = state;
  const sentence = shown?.translated.sentences[at];
  if (!shown || !sentence) return;
  state.selected = at;
  drawAbout([]);
  if (data.alternatives === 0) return;
  try {
    const { translations } = await translate(sourceOf(sentence), { n_best: data.alternatives + 1 });
    if (state.shown !== shown || state.selected !== at) return;
    const [{ text, alternatives }] = translations;
    const wordings = [...new Set([sentence.text, text, ...alternatives])];
    drawAbout(wordings);
    say(wordings.length > 1 ? "" : t("others.none"));
  } catch (error) {
    if (state.shown === shown) say(error instanceof RefusedError ? error.message : t("unreachable"));
  }
}

/** Replaces a sentence by another wording. */
async function choose(sentence: Sentence, text: string) {
  const { shown, selected } = state;
  const from = sourceOf(sentence);
  if (text === sentence.text) state.chosen.delete(from);
  else state.chosen.set(from, await worded(from, text));
  if (state.shown !== shown) return;
  draw();
  focusWord(target.querySelector(`.sentence[data-sentence="${selected}"] .word`));
}

/** Returns a wording with what the model says about its words, or without, if the model would go on after it. */
async function worded(from: string, text: string): Promise<Wording> {
  const unknown = { text, status: "ok", tokens: [], token_log_probs: [], links: [] };
  try {
    const { translations } = await translate(from, { prefix: text });
    return translations[0].sentences.find((one) => one.text === text) ?? unknown;
  } catch {
    return unknown;
  }
}

// Words

/** Returns the sentence and the offset that an element of a word is about. */
function placeOf(word: Element): [sentence: number, begin: number] {
  return [Number(word.getAttribute("data-sentence")), Number(word.getAttribute("data-begin"))];
}

/** Lights words and the words aligned to them, on both sides; nothing for null. */
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

/** Returns the word of the translation at an event. */
function wordAt(event: Event): HTMLElement | null {
  return event.target instanceof Element ? event.target.closest(".word") : null;
}

/** Moves the focus to a word of the translation, the only one that Tab reaches. */
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
  if (at) showOthers(Number(at));
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

// Files

upload.addEventListener("change", async () => {
  const [given] = upload.files ?? [];
  if (!given) return;
  const form = new FormData();
  for (const [name, value] of Object.entries({ source: state.from, target: state.to, api_key: state.key }))
    form.set(name, value);
  form.set("file", given);
  say(t("busy"));
  try {
    const { translatedFileUrl } = await ask("translate_file", { method: "POST", body: form });
    file.href = translatedFileUrl;
    file.download = given.name;
    file.textContent = t("file.ready", given.name);
    say("");
  } catch (error) {
    say(error instanceof RefusedError ? error.message : t("unreachable"));
  }
  upload.value = "";
});

const [languages, settings]: [Language[], ServiceSettings] = await Promise.all([
  ask("languages"),
  ask("frontend/settings"),
]);
state.from = settings.language.source.code;
state.to = settings.language.target.code;
build(languages, settings);
source.focus();
