// The story: five scenes that show the model one thing at a time. A scene computes aside, so that the page keeps its
// sentence and its changes; only a reader who opens a scene's result on the page takes it there.
import { NO_CHANGES } from "../engine/changes.ts";
import { messageOf } from "./app.ts";
import { engineChanges } from "./sentences.ts";
import { button, element, refill } from "./dom.ts";
import { latestOnly } from "./latest.ts";
import { headsAfter, SCENES } from "./scenes.ts";

import type { TextChanges } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Looks, Translated } from "./types.ts";
import type { Scene, Shown, Story } from "./scenes.ts";

const SEEN = "glassformer.story";

/**
 * Opens the first chapter if Python wants that: always, or at the reader's first visit, unless the address has a state.
 */
export function welcome(app: App) {
  const { opens } = app.payload.story;
  if (app.engine.live === false || opens === "never" || location.hash) return;
  if (opens === "always" || isFirstVisit()) app.show({ chapter: 1 });
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
  return new StoryView(app).element;
}

class StoryView {
  element = element("section", { className: "gf-story" });
  #app: App;
  #story: Story;
  /** Aborted when the reader leaves the scene. */
  #left = new AbortController();
  /** The scene that is shown. */
  #shown = 0;
  #steps = element("ol", { className: "gf-story-steps" });
  #title = element("h2", { tabindex: "-1" });
  #say = element("p", { className: "gf-story-say" });
  #act: HTMLButtonElement;
  #bar = element("progress", { hidden: true });
  #told = element("p", { className: "gf-story-told", role: "status" });
  #picture = element("div", { className: "gf-story-picture" });
  #tries = element("div", { className: "gf-story-try" });
  #foot = element("div", { className: "gf-row" });
  #drawLatest: () => Promise<void>;

  constructor(app: App) {
    this.#app = app;
    this.#act = button("", () => app.attempt(() => this.#run()), { className: "gf-primary gf-story-act" });
    this.#drawLatest = latestOnly(
      app.signal,
      async () => (app.state.story ? this.#scene.show(this.#story) : null),
      (made) => this.#fill(made),
    );
    this.#story = this.#begun();
    this.#listen();
    this.#follow();
  }

  #listen() {
    const app = this.#app;
    app.on(["story"], () => this.#follow());
    app.on(["language"], () => {
      if (!this.#shown) return;
      this.#frame();
      this.#draw();
    });
    app.on(["layout"], () => this.#shown && this.#draw());
    const escape = (event: KeyboardEvent) => {
      if (event.key === "Escape" && this.#shown && !event.defaultPrevented) app.show({ story: 0 });
    };
    window.addEventListener("keydown", escape, { signal: app.signal });
  }

  get #scene(): Scene {
    return SCENES[this.#app.state.story - 1];
  }

  #begun(): Story {
    const app = this.#app;
    const signal = () => this.#left.signal;
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
        return signal();
      },
      progress: (done, all) => this.#progress(done, all),
      redraw: () => this.#draw(),
      translated: translations(app),
      leaveFor: (text, changes, looks) => leaveFor(app, text, changes, looks),
    };
  }

  #progress(done: number, all: number) {
    Object.assign(this.#bar, { max: all, value: done, hidden: done === all });
    const said = this.#app.t("story.progress", done, all);
    this.#bar.setAttribute("aria-label", said);
    this.#act.textContent = this.#app.t("story.measuring");
    if (done < all && done % 8 === 0) this.#told.textContent = said;
  }

  /** Runs the action of the scene. */
  async #run() {
    const { signal } = this.#left;
    const label = this.#act.textContent;
    this.#act.disabled = true;
    try {
      await this.#scene.act(this.#story);
      if (!signal.aborted) await this.#draw();
    } finally {
      this.#act.disabled = false;
      if (this.#act.textContent === this.#app.t("story.measuring")) this.#act.textContent = label; // nothing was drawn
      this.#bar.hidden = true;
      if (!signal.aborted && !this.element.contains(document.activeElement))
        this.#act.focus({ preventScroll: true });
    }
  }

  /** Draws the scene; an error is shown, because the scene has nothing else to show. */
  async #draw() {
    try {
      await this.#drawLatest();
    } catch (error) {
      this.#app.complain(messageOf(error));
    }
  }

  #fill(made: Shown | null) {
    if (!made) return;
    this.#say.textContent = made.say;
    this.#act.textContent = made.action;
    this.#told.textContent = made.told;
    refill(this.#picture, made.picture);
    const hint = element("strong", {}, this.#app.t("story.try"));
    refill(this.#tries, hint, " ", made.hint, " ", made.tries);
    made.drawn?.();
  }

  /** Draws the frame of the scene: its title, and the ways to the other scenes. */
  #frame() {
    const app = this.#app;
    const here = app.state.story;
    this.element.setAttribute("aria-label", app.t("story.label"));
    this.#title.textContent = `${here}. ${app.t(`story.${here}.title`)}`;
    refill(
      this.#steps,
      SCENES.map((_, at) => sceneButton(app, at + 1)),
    );
    const end = () => app.show({ story: 0, ...headsAfter(this.#story) });
    refill(
      this.#foot,
      here > 1 && button(`← ${app.t("story.back")}`, () => app.show({ story: here - 1 })),
      here === SCENES.length
        ? button(app.t("story.end"), end)
        : button(`${app.t("story.next")} →`, () => app.show({ story: here + 1 })),
    );
  }

  /** Follows the reader into a scene, to the next one, or out of the story. */
  #follow() {
    const from = this.#shown;
    this.#shown = this.#app.state.story;
    if (from === this.#shown) return;
    this.#left.abort();
    this.#left = new AbortController();
    if (this.#shown) this.#enter(from);
    else this.#leave();
  }

  #leave() {
    const had = this.element.contains(document.activeElement);
    refill(this.element);
    this.#app.layOut(); // the page's pictures had no width
    if (had)
      (this.element.parentElement?.querySelector("[data-story-button]") as HTMLElement | null)?.focus();
  }

  #enter(from: number) {
    const action = element("p", {}, this.#act, " ", this.#bar);
    const parts = [this.#steps, this.#title, this.#say, action, this.#told, this.#picture, this.#tries];
    refill(this.element, parts, this.#foot);
    refill(this.#picture);
    this.#told.textContent = "";
    this.#frame();
    this.#draw();
    if (from || document.activeElement !== document.body) this.#title.focus({ preventScroll: true });
    if (from) this.element.scrollIntoView({ block: "nearest" });
  }
}

/** Returns the entry of a scene, which leads to it. */
function sceneButton(app: App, scene: number) {
  const label = [element("span", { className: "gf-number" }, scene), " ", app.t(`story.${scene}.title`)];
  const made = button(label, () => app.show({ story: scene }));
  made.setAttribute("aria-current", scene === app.state.story ? "step" : "false");
  return element("li", {}, made);
}

/** Returns a function that translates a text under changes, aside, and remembers some translations. */
function translations(app: App): Story["translated"] {
  const known: Map<string, Promise<Translated>> = new Map();
  return (text, changes = {}) => {
    const key = JSON.stringify([text, changes, app.state.search]);
    const made = known.get(key) ?? translatedAside(app, text, changes);
    made.catch(() => known.delete(key));
    if (known.size > 40) known.clear();
    known.set(key, made);
    return made;
  };
}

async function translatedAside(app: App, text: string, changes: Partial<TextChanges>) {
  const isPlain = Object.keys(changes).length === 0;
  if (isPlain && text === app.state.sentence) return app.result.reference;
  return app.translated(text, "", engineChanges({ ...NO_CHANGES, ...changes }));
}

/** Leaves the story and shows a text under changes. */
function leaveFor(app: App, text: string, changes: Partial<TextChanges>, looks: Partial<Looks>) {
  app.show({ story: 0 });
  app.attempt(async () => {
    await app.open(text);
    if (Object.keys(changes).length > 0) await app.set(changes);
    app.show(looks);
  });
}
