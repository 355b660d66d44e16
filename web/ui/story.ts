// The story: five scenes that show the model one thing at a time. A scene computes aside, so that the page keeps its
// sentence and its changes; only a reader who opens a scene's result on the page takes it there.
import { NO_CHANGES } from "../engine/changes.ts";
import { messageOf } from "./app.ts";
import { button, element, refill } from "./dom.ts";
import { latestOnly } from "./latest.ts";
import { headsAfter, SCENES } from "./scenes.ts";

import type { App } from "./app.ts";
import type { Translated } from "./types.ts";
import type { Scene, Shown, Story } from "./scenes.ts";

const SEEN = "glassformer.story";

/**
 * Opens the story if Python wants that: always, or at the reader's first visit, unless the address contains a state.
 */
export function welcome(app: App) {
  const { opens } = app.payload.story;
  if (app.engine.live === false || opens === "never" || location.hash) return;
  if (opens === "always" || isFirstVisit()) app.show({ story: 1 });
}

/** Returns whether this browser has not shown the story yet, and remembers that it has, where it may. */
function isFirstVisit() {
  try {
    if (localStorage.getItem(SEEN)) return false;
    localStorage.setItem(SEEN, "seen");
  } catch {
    // Sandboxed frames and some settings refuse storage: each visit is the first.
  }
  return true;
}

/** Returns the story as an element, which is empty while the reader is not in it. */
export function createStory(app: App) {
  const section = element("section", { className: "gf-story" });
  const steps = element("ol", { className: "gf-story-steps" });
  const title = element("h2", { tabindex: "-1" });
  const say = element("p", { className: "gf-story-say" });
  const act = button("", () => app.attempt(run), { className: "gf-primary gf-story-act" });
  const bar = element("progress", { hidden: true });
  const told = element("p", { className: "gf-story-told", role: "status" });
  const picture = element("div", { className: "gf-story-picture" });
  const tries = element("div", { className: "gf-story-try" });
  const foot = element("div", { className: "gf-row" });
  let left = new AbortController();
  let shown = 0;
  const story = startedStory();

  function startedStory(): Story {
    const known: Map<string, Promise<Translated>> = new Map();
    return {
      app,
      sentence: app.payload.sentence,
      written: [],
      candidates: [],
      view: 0,
      question: null,
      deciding: [],
      off: [],
      mistake: "",
      made: false,
      get signal() {
        return left.signal;
      },
      progress(done, all) {
        Object.assign(bar, { max: all, value: done, hidden: done === all });
        bar.setAttribute("aria-label", app.t("story.progress", done, all));
        act.textContent = app.t("story.measuring");
        told.textContent = done === all || done % 8 > 0 ? told.textContent : bar.ariaLabel;
      },
      redraw: () => draw(),
      translated(text, changes = {}) {
        const key = JSON.stringify([text, changes, app.search]);
        const made = known.get(key) ?? translatedAside(text, changes);
        made.catch(() => known.delete(key));
        if (known.size > 40) known.clear();
        known.set(key, made);
        return made;
      },
      leaveFor(text, changes, looks) {
        app.show({ story: 0 });
        app.attempt(async () => {
          await app.open(text);
          if (Object.keys(changes).length > 0) await app.set(changes);
          app.show(looks);
        });
      },
    };
  }

  async function translatedAside(text: string, changes: object) {
    const { reference } = app.result;
    const isPlain = Object.keys(changes).length === 0;
    if (isPlain && text === app.sentence) return reference;
    return app.translated(text, "", app.engineChanges({ ...NO_CHANGES, ...changes }, []));
  }

  const scene = (): Scene => SCENES[app.ui.story - 1];

  async function run() {
    const { signal } = left;
    const label = act.textContent;
    act.disabled = true;
    try {
      await scene().act(story);
      if (!signal.aborted) await draw();
    } finally {
      act.disabled = false;
      if (act.textContent === app.t("story.measuring")) act.textContent = label; // nothing was drawn
      bar.hidden = true;
      if (!signal.aborted && section.contains(document.activeElement) === false)
        act.focus({ preventScroll: true });
    }
  }

  async function prepared() {
    return app.ui.story ? scene().show(story) : null;
  }

  function show(made: Shown | null) {
    if (!made) return;
    say.textContent = made.say;
    act.textContent = made.action;
    told.textContent = made.told;
    refill(picture, made.picture);
    refill(tries, element("strong", {}, app.t("story.try")), " ", made.hint, " ", made.tries);
    made.drawn?.();
  }
  const drawLatest = latestOnly(app.signal, prepared, show);
  /** Draws the scene; an error is shown, because the scene has nothing else to show. */
  async function draw() {
    try {
      await drawLatest();
    } catch (error) {
      app.emit("problem", messageOf(error));
    }
  }

  const go = (to: number) => () => app.show({ story: to });

  /** Draws the frame of the scene: its title, and the ways to the other scenes. */
  function frame() {
    const here = app.ui.story;
    section.setAttribute("aria-label", app.t("story.label"));
    title.textContent = `${here}. ${app.t(`story.${here}.title`)}`;
    refill(
      steps,
      SCENES.map((_, at) => {
        const one = button(
          [element("span", { className: "gf-number" }, at + 1), " ", app.t(`story.${at + 1}.title`)],
          go(at + 1),
        );
        one.setAttribute("aria-current", at + 1 === here ? "step" : "false");
        return element("li", {}, one);
      }),
    );
    const isLast = here === SCENES.length;
    refill(
      foot,
      here > 1 && button(`← ${app.t("story.back")}`, go(here - 1)),
      isLast
        ? button(app.t("story.end"), () => app.show({ story: 0, ...headsAfter(story) }))
        : button(`${app.t("story.next")} →`, go(here + 1)),
    );
  }

  /** Follows the reader into a scene, to the next one, or out of the story. */
  function follow() {
    const from = shown;
    shown = app.ui.story;
    if (from === shown) return;
    left.abort();
    left = new AbortController();
    const had = section.contains(document.activeElement);
    if (!shown) {
      refill(section);
      app.emit("resize", null); // the page's pictures had no width
      if (had) (section.parentElement?.querySelector("[data-story-button]") as HTMLElement | null)?.focus();
      return;
    }
    refill(section, steps, title, say, element("p", {}, act, " ", bar), told, picture, tries, foot);
    refill(picture);
    told.textContent = "";
    frame();
    draw();
    if (from || document.activeElement !== document.body) title.focus({ preventScroll: true });
    if (from) section.scrollIntoView({ block: "nearest" });
  }

  app.on("ui", (keys) => {
    if (keys.includes("story")) follow();
    if (!app.ui.story) return;
    if (keys.includes("language")) {
      frame();
      draw();
    }
  });
  app.on("resize", () => shown && draw());
  const escape = (event: KeyboardEvent) => {
    if (event.key === "Escape" && shown && !event.defaultPrevented) app.show({ story: 0 });
  };
  window.addEventListener("keydown", escape, { signal: app.signal });
  return section;
}
