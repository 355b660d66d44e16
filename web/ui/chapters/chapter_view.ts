// What the chapters add to the figure: the strip of the seven chapters, the text of an act, its button, and something
// to try.
import { headEffects } from "../../engine/contest.ts";
import { allHeads } from "../../engine/model.ts";
import { NO_CHANGES } from "../../engine/changes.ts";
import { largestAt } from "../../engine/tensor.ts";
import { messageOf } from "../app/app.ts";
import { inForce } from "../box/changes/new_sentence.ts";
import { button, chooser, element, isForPage, letArrowsMove, named, pill, refill } from "../app/dom.ts";
import { drawing, slider } from "../app/drawing.ts";
import { gathered } from "../app/latest.ts";
import { CHAPTERS, OWN, actOf, mistakesOf, placeAfter } from "./chapters.ts";
import { openingOf } from "../figure/opening.ts";
import { saidWith, spoken } from "../figure/sentences.ts";
import { temperatureText } from "../app/wording.ts";
import { boxOfPanel } from "../app/boxes.ts";

import type { App } from "../app/app.ts";
import type { Child, Selection } from "../app/types.ts";
import type { Act, Found } from "./act.ts";
import type { StageNumbers } from "../figure/shown.ts";

const SEEN = "glassformer.story";
const MOST_OFF = 8;

/**
 * Opens the first chapter if Python asks for it, either always or at the reader's first visit, unless the address
 * contains a state. Models without a pair of sentences start with the outline.
 */
export function welcome(app: App) {
  const { opens, pair } = app.payload.story;
  if (app.engine.live === false || opens === "never" || location.hash) return;
  if (opens === "always" || isFirstVisit()) app.show({ chapter: 1, act: Number(pair.length === 0) });
}

/**
 * Returns whether this browser has never shown the chapters before, and records that it has now, if the browser
 * allows storage.
 */
function isFirstVisit() {
  try {
    if (localStorage.getItem(SEEN)) return false;
    localStorage.setItem(SEEN, "seen");
  } catch {
    // Sandboxed frames and some settings refuse storage, so each visit counts as the first.
  }
  return true;
}

/**
 * Opens an act; chapter 0 is the figure. Chapter 1 removes forced words, which would hide the effect of turning the
 * attention.
 */
async function openChapter(app: App, chapter: number, act = 0, guess: Selection["guess"] = "") {
  if (chapter === 1 && app.changes.prefix) await app.set({ prefix: "" });
  app.show({ chapter, act, guess, zoom: null, sheet: false });
}

/** Goes to the next or the previous act; the last act is followed by the figure. */
function goOn(app: App, by: 1 | -1, guess?: Selection["guess"]) {
  const place = placeAfter(app, by);
  app.attempt(() => openChapter(app, place?.chapter ?? 0, place?.act, guess));
}

/**
 * Moves through the acts with the keys of a presentation remote. This works wherever the focus is, except in a field
 * and on elements that use the key themselves, and not while a box or the sheet is open.
 */
export function chapterKey(app: App, event: KeyboardEvent) {
  const { chapter, zoom, sheet } = app.state;
  const target = event.target as Element;
  if (!chapter || zoom || sheet || !isForPage(event)) return;
  if (event.key === " " && target.matches("button, summary, [role=button]")) return;
  const on = [" ", "ArrowRight", "PageDown"].includes(event.key);
  if (!on && !["ArrowLeft", "PageUp"].includes(event.key)) return;
  event.preventDefault();
  if (on && chapter === CHAPTERS.length && !placeAfter(app, 1)) return; // in the last act, the keys do not lead on
  goOn(app, on ? 1 : -1);
}

/**
 * Applies the changes of each act while the act is shown, even to a new sentence, and highlights what the act is about.
 */
export function followChapters(app: App) {
  let shown: Act | null = null;
  let about = "";
  const follow = async () => {
    const [act, before] = [actOf(app), shown];
    const { sentence } = app.state;
    if (act?.id === before?.id && sentence === about) return;
    [shown, about] = [act, sentence];
    const wanted = act?.changes && (await act.changes(app));
    const looks = await act?.looks?.(app);
    if (actOf(app)?.id !== act?.id || app.state.sentence !== sentence) return;
    if (looks) app.show(looks);
    if (wanted && (app.changed || Object.keys(wanted).length > 0))
      await app.turnTo({ sentence, changes: { ...NO_CHANGES, ...wanted } });
    else if (before?.changes && !act?.changes) await app.reset();
    if (before?.id === "temperature" && act?.id !== before.id) app.show({ temperature: 1 });
  };
  const begin = () => void follow().catch((error) => app.complain(messageOf(error)));
  app.on(["chapter", "act", "result"], begin);
  begin();
}

/** Returns the chapters beside the figure: their strip, and a function that returns the open act. */
export function createChapters(app: App) {
  return { strip: chapterStrip(app), act: () => actOf(app) };
}

/** Returns the strip of the chapters. Tab reaches only one chapter, and the arrow keys lead to the other chapters. */
function chapterStrip(app: App) {
  const made = element("nav", "gfs-strip");
  const steps = element("div", { role: "toolbar" });
  const close = button("", () => app.attempt(() => openChapter(app, 0)), { className: "gfs-strip-close" });
  const icon = (d: string) =>
    drawing("svg", { width: 16, height: 16, "aria-hidden": "true" }, drawing("path", { d }));
  const screen = icon("M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4");
  const cross = icon("M3 3l10 10M13 3L3 13");
  const whole = button("", () => app.show({ lecture: !app.state.lecture }), { className: "gfs-strip-whole" });
  const fill = () => {
    const { chapter, lecture } = app.state;
    whole.title = app.t("lecture.title");
    refill(whole, lecture ? app.t("lecture.leave") : [screen, element("span", {}, app.t("beam.larger"))]);
    whole.ariaPressed = String(lecture);
    whole.tabIndex = -1; // the arrow keys reach this button, Tab does not
    const had = [...steps.children].indexOf(document.activeElement as Element);
    steps.ariaLabel = app.t("chapter.strip");
    refill(close, cross, element("span", {}, app.t("chapter.leave")));
    named(close, app.t("chapter.close"));
    close.hidden = chapter === 0;
    made.toggleAttribute("data-open", chapter > 0);
    refill(
      steps,
      CHAPTERS.map((one, at) => {
        const reason = one.missing?.(app) ?? "";
        const title = app.t(`chapter.${at + 1}`) + (reason && `. ${app.t(reason)}`);
        const dot = button(
          element("span", {}, app.t(`chapter.short.${at + 1}`)),
          () => app.attempt(() => openChapter(app, at + 1)),
          { title },
        );
        dot.tabIndex = at === Math.max(0, chapter - 1) ? 0 : -1;
        dot.ariaLabel = `${at + 1}. ${title}`;
        dot.toggleAttribute("data-missing", reason !== "");
        if (at + 1 === chapter) dot.ariaCurrent = "step";
        return dot;
      }),
      whole,
    );
    if (had >= 0) (steps.children[Math.max(0, chapter - 1)] as HTMLElement).focus();
  };
  letArrowsMove(steps);
  // without the focus, so that arrow keys still change the act
  steps.addEventListener("mousedown", (event) => event.preventDefault());
  fill();
  app.on(["chapter", "language", "lecture"], fill);
  refill(made, steps, close);
  return made;
}

/** What an act shows instead of the stage's own sentence: what it asks, and what it concludes. */
export interface Guided {
  kicker: Child;
  title: Child;
  sentence: Child;
  more: Child;
  /** What stands under the text. */
  picture?: Child;
  /** The reader's active changes, with a button that undoes them. */
  changes: Child;
  buttons: Child;
}

/** Returns the text of an act, filled in with these numbers. */
export async function guided(
  app: App,
  act: Act,
  numbers: StageNumbers,
  edit: () => void,
  open: () => void,
): Promise<Guided> {
  const name = app.t(`chapter.${app.state.chapter}`);
  const kicker = `${app.state.chapter} · ${name}`;
  const key = `chapter.${act.id}`;
  const exists = (one: string) => app.t(one) !== one;
  const title = exists(`${key}.title`) ? app.t(`${key}.title`) : name;
  const changes = app.changed && [
    inForce(app),
    " ",
    button(app.t("stage.let.go"), () => app.attempt(() => app.reset()), { className: "gfs-text-link" }),
  ];
  if (act.made?.(numbers.translated.changes) === false)
    return { kicker, title, sentence: "", more: "", changes, buttons: app.state.busy && app.t("page.busy") };
  const found: Found = (await act.found?.(app, numbers)) ?? { values: {} };
  const varied = (one: string) =>
    found.variant && exists(`${one}.${found.variant}`) ? `${one}.${found.variant}` : one;
  const said = (one: string) => spoken(saidWith(app, one, act.box || app.state.box, numbers, found.values));
  return {
    kicker,
    title,
    sentence: said(found.variant === OWN ? "" : varied(key)),
    more: [
      act.id === "off" && outcome(app, found),
      found.more !== false &&
        exists(`${key}.more`) &&
        found.variant !== "unknown" &&
        said(varied(`${key}.more`)),
      " ",
      exists(`${key}.try`) && element("strong", {}, app.t(`${key}.try`)),
    ],
    picture: found.picture,
    changes: !act.changes && changes,
    buttons: [toolOf(app, act, open), buttonsOf(app, act, found, edit)],
  };
}

/** Says whether the reader has guessed what happens without one head; "" if the reader did not guess. */
function outcome(app: App, { variant = "" }: Found): Child {
  const { guess } = app.state;
  if (!guess || !variant.endsWith(".one")) return "";
  return element("strong", {}, app.t(`guess.${variant.startsWith(guess) ? "right" : "wrong"}`), " ");
}

/** Returns the control that an act offers, such as a slider, or a button that opens its panel or its box. */
function toolOf(app: App, { id, lit }: Act, open: () => void): Child {
  if (id === "temperature")
    return slider(
      app.t("chapter.temperature.name"),
      { low: 0, high: 4, step: 0.05, value: app.state.temperature, written: temperatureText },
      (temperature) => app.show({ temperature }),
    );
  if (id === "mistake")
    return chooser(
      app.t("chapter.mistake.name"),
      mistakesOf(app).map((one) => [one, app.t(`mistake.${one}`)]),
      app.changes.mistakes[0] ?? "",
      (one) => app.attempt(() => app.set({ mistakes: [one] })),
    );
  const panel = (
    {
      search: "beam",
      off: "changes",
      trained: "training",
      learning: "training",
      beginning: "training",
    } as const
  )[id];
  const link = { className: "gfs-text-link" };
  const zoom = panel && boxOfPanel(app.config, panel);
  if (panel)
    return button(
      app.t(`chapter.${id}.open`),
      () => app.show({ panel, ...(zoom ? { zoom } : { sheet: true }) }),
      link,
    );
  return lit.length > 0 && button(app.t("stage.open.box"), open, link);
}

/** Returns the buttons of an act: one button goes to the next act, or does what remains to be done in this act. */
function buttonsOf(app: App, { id }: Act, { variant = "", values }: Found, edit: () => void): Child {
  const dark = (label: string, action: () => unknown) => pill(label, () => app.attempt(action), true);
  if (id === "yours")
    return dark(app.t("chapter.yours.next"), async () => {
      await openChapter(app, 0);
      edit();
    });
  if (id === "deciding" && variant !== "unknown")
    return (["stays", "turns"] as const).map((guess) =>
      pill(app.t(`guess.${guess}`), () => goOn(app, 1, guess)),
    );
  if (id === "off" && variant.startsWith("stays") && Number(values.count) < MOST_OFF)
    return [
      pill(app.t("chapter.off.next"), () => goOn(app, 1)),
      dark(app.t("chapter.off.more.next"), () => switchNextOff(app)),
    ];
  const { chapter } = app.state;
  const next = placeAfter(app, 1);
  const isLast = next !== null && next.chapter !== chapter;
  return [
    CHAPTERS[chapter - 1].missing?.(app) && pill(`← ${app.t(`chapter.${chapter - 1}`)}`, () => goOn(app, -1)),
    dark(isLast ? `${app.t(`chapter.${next.chapter}`)} →` : app.t(`chapter.${id}.next`), () => goOn(app, 1)),
  ];
}

/** Switches off one more head: the head whose removal now costs the word most. */
async function switchNextOff(app: App) {
  const { reference } = app.result;
  const opening = await openingOf(app, reference);
  if (!opening) return;
  const { row, rival, ids } = opening;
  const contest = {
    prefixIds: ids.slice(0, row),
    cases: [{ sourceIds: reference.sourceIds, word: ids[row], rival }],
  };
  const off = Object.entries(app.changes.ablated).flatMap(([attention, heads]) =>
    heads.map((head) => ({ attention, head })),
  );
  const found = await gathered(
    headEffects(app.engine, contest, allHeads(app.config), off),
    app.signal,
    () => {},
  );
  const [least] = largestAt(
    found.map(({ effect }) => -effect),
    1,
  );
  const { attention, head } = found[least];
  const { ablated } = app.changes;
  await app.set({ ablated: { ...ablated, [attention]: [...(ablated[attention] ?? []), head] } });
}
