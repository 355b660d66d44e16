// The step ribbon: the paper's steps in order. The reader can choose a step, in any layer, or play them, word
// by word, as a translation is computed: the encoder once, the decoder once per word.
import { numberText, percentText } from "../engine/number_text.ts";
import { rivalsOf } from "../engine/reasons.ts";
import { button, chooser, element, refill, tokenElement } from "./dom.ts";
import { remark } from "./figure.ts";
import { layersOf } from "./heads.ts";
import { Player, wantsStillness } from "./player.ts";
import { createStepView } from "./step_view.ts";
import { LAST_OF_ENCODER, layerOf, lookAt, STEPS, strayed } from "./steps.ts";

import type { Tensor } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Frame } from "./player.ts";
import type { Place, Step } from "./steps.ts";
import type { Child, Looks } from "./types.ts";

/** Milliseconds per step: slow, and fast enough for 16 words (249 steps) in 40 seconds. */
const PACES = { slow: 700, fast: 150 };
const RIVAL_WORDS = 3;

/** Returns the ribbon as an element. */
export function createRibbon(app: App) {
  return new Ribbon(app).element;
}

class Ribbon {
  #app: App;
  #place: Place = { stack: "encoder", layer: null };
  #player: Player;
  #bar = element("div", { className: "gf-controls" });
  #strip: Strip;
  #about = element("p", { className: "gf-about" });
  #line = element("p", { className: "gf-writer", hidden: true, role: "group", tabindex: "0" });
  #view: ReturnType<typeof createStepView>;
  #controls: Controls;
  element: HTMLElement;

  constructor(app: App) {
    this.#app = app;
    this.#player = new Player(
      app,
      (frame) => (frame ? this.#watch(frame) : this.#leave()),
      () => this.#refresh(),
    );
    this.#strip = new Strip((step) => this.#open(step));
    this.#view = createStepView(
      app,
      () => ({ stack: this.#place.stack, layer: layerOf(app, this.#place) }),
      () => this.#player.playing && this.#player.pace < PACES.slow,
    );
    const parts = [this.#bar, this.#strip.element, this.#about, this.#line, this.#view.element];
    this.element = element("nav", { className: "gf-ribbon" }, ...parts);
    this.#controls = this.#newControls();
    this.#fill();
    this.#listen();
  }

  #listen() {
    const app = this.#app;
    app.on(["result"], () => {
      this.#player.end();
      this.#line.hidden = true;
      this.#refresh();
    });
    app.on(["language", "step", "stage", "point"], (_, changed) => {
      if (changed.has("language")) this.#fill();
      else if (changed.has("step")) this.#mark();
      else if (strayed(app, this.#place)) app.show({ step: null });
    });
  }

  /** Opens the step that the reader has clicked. */
  #open(step: Step) {
    if (step.id === "mask") this.#place.stack = "decoder"; // in the encoder, the mask blocks nothing
    this.#choose(step);
  }

  #choose(step: Step) {
    this.#player.pause();
    if (step.decoder) this.#place.stack = "decoder";
    this.#app.show({ ...lookAt(this.#app, step, this.#place), step: step.id });
    this.#refresh();
  }

  /** Shows the same step in a different place; in the encoder, its last step replaces steps that it lacks. */
  #pick(change: Partial<Place>) {
    Object.assign(this.#place, change);
    const step = STEPS.find(({ id }) => id === this.#app.state.step);
    if (step) this.#choose(step.decoder && this.#place.stack === "encoder" ? LAST_OF_ENCODER : step);
    else this.#refresh();
  }

  #showWhole() {
    this.#player.end();
    this.#app.show({ stage: "map", step: null });
  }

  #newControls() {
    const pick = (change: Partial<Place>) => this.#pick(change);
    return makeControls(this.#app, this.#player, this.#place, pick, () => this.#showWhole());
  }

  #fill() {
    this.element.setAttribute("aria-label", this.#app.t("ribbon.label"));
    this.#line.setAttribute("aria-label", this.#app.t("output.output"));
    this.#strip.name(this.#app);
    this.#controls = this.#newControls();
    refill(this.#bar, Object.values(this.#controls));
    this.#refresh();
  }

  #refresh() {
    dressControls(this.#app, this.#controls, this.#player, this.#place);
    this.#mark();
    this.#view.draw();
  }

  /** Marks the present step and the past ones, and shows the step's explanation. */
  #mark() {
    const { state, config } = this.#app;
    const at = STEPS.findIndex(({ id }) => id === state.step);
    this.#strip.mark(at, this.#player.passed());
    if (at < 0) return refill(this.#about, this.#app.t("ribbon.invitation"));
    const { id, formula, section } = STEPS[at];
    const about = this.#app.t(`step.${id}.about`);
    refill(this.#about, element("code", {}, formula(config)), about, remark(` §${section}`));
  }

  /** Shows one frame of the animation: the step, the words so far, and the step's tensor. */
  #watch(frame: Frame) {
    const { step, stack, word } = frame;
    this.#place.stack = stack;
    const view: Partial<Looks> =
      word && !this.#player.every ? { stage: "map" } : lookAt(this.#app, step, this.#place);
    this.#app.show({ ...view, step: step.id, shown: word === null ? 0 : word + 1 });
    this.#app.light(word === null ? [] : [{ side: "output", position: word }]);
    refill(this.#line, writing(this.#app, frame, this.#player.probabilities));
    this.#line.hidden = false;
    this.#line.scrollTo(this.#line.scrollWidth, this.#line.scrollHeight); // the word that is being written
    this.#refresh();
  }

  /** Shows the whole sentence again; after the last word, the whole translation. */
  #leave() {
    const { finished } = this.#player;
    this.#app.light([]);
    this.#app.show({ stage: "map", step: null, shown: null });
    this.#line.hidden = !finished;
    if (finished) refill(this.#line, written(this.#app));
    this.#refresh();
  }
}

/** The numbered steps as a toolbar; `open` gets the step that the reader clicks. */
class Strip {
  element = element("div", { className: "gf-strip", role: "toolbar" });
  #names = STEPS.map(() => element("span"));
  #buttons: HTMLButtonElement[];

  constructor(open: (step: Step) => void) {
    this.#buttons = STEPS.map((step, at) => {
      const label = [element("span", { className: "gf-number" }, at + 1), this.#names[at]];
      const made = button(label, () => open(step), { className: "gf-step" });
      made.dataset.step = step.id;
      made.tabIndex = at ? -1 : 0;
      return made;
    });
    refill(this.element, this.#buttons);
    this.element.addEventListener("keydown", (event) => this.#move(event));
  }

  /** Writes the steps' names in the reader's language. */
  name(app: App) {
    this.element.setAttribute("aria-label", app.t("ribbon.label"));
    this.#names.forEach((one, at) => {
      one.textContent = app.t(`step.${STEPS[at].id}`);
    });
  }

  /** Marks the step `at`, or none for −1, and the steps with these ids as past. */
  mark(at: number, passed: string[]) {
    this.#buttons.forEach((one, other) => {
      one.toggleAttribute("data-passed", passed.includes(STEPS[other].id));
      one.setAttribute("aria-current", other === at ? "step" : "false");
      if (at >= 0) one.tabIndex = other === at ? 0 : -1;
    });
    if (at < 0) return;
    const left =
      this.#buttons[at].offsetLeft - (this.element.clientWidth - this.#buttons[at].offsetWidth) / 2;
    // Scrolls the strip, never the page.
    this.element.scrollTo({ left, behavior: wantsStillness() ? "auto" : "smooth" });
  }

  /** Moves the focus by a key. */
  #move(event: KeyboardEvent) {
    const from = this.#buttons.findIndex((one) => event.target instanceof Node && one.contains(event.target));
    const last = this.#buttons.length - 1;
    const ways: Record<string, number> = { ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: last };
    const to = ways[event.key];
    if (to === undefined || from < 0) return;
    event.preventDefault();
    this.#buttons[Math.max(0, Math.min(last, to))].focus();
  }
}

type Controls = ReturnType<typeof makeControls>;

function makeControls(
  app: App,
  player: Player,
  place: Place,
  pick: (change: Partial<Place>) => void,
  showWhole: () => void,
) {
  const paces = Object.entries(PACES).map(([name, pace]) => [String(pace), app.t(`ribbon.${name}`)] as const);
  const stacks = [
    ["encoder", app.t("ribbon.encoder")],
    ["decoder", app.t("ribbon.decoder")],
  ] as const;
  const setPace = (pace: string) => app.show({ pace: Number(pace) });
  const layer = element("select", { "aria-label": app.t("word.layer") });
  layer.addEventListener("change", () => pick({ layer: Number(layer.value) }));
  return {
    play: button("", () => (player.playing ? player.pause() : player.play()), { className: "gf-primary" }),
    restart: symbol(app, "↺", "ribbon.restart", () => player.restart()),
    back: symbol(app, "◀", "ribbon.back", () => player.step(-1)),
    forward: symbol(app, "▶❘", "ribbon.forward", () => player.step(1)),
    pace: chooser(app.t("ribbon.pace"), paces, String(player.pace), setPace),
    every: everyBox(app, player),
    stack: chooser(app.t("ribbon.stack"), stacks, place.stack, (stack) => pick({ stack })),
    layer,
    whole: button(app.t("point.back"), showWhole, { title: app.t("ribbon.whole") }),
  };
}

function symbol(app: App, text: string, key: string, action: () => unknown) {
  const made = button(text, action, { title: app.t(key) });
  made.setAttribute("aria-label", made.title);
  return made;
}

/** Returns the box that has every word's steps shown in detail. */
function everyBox(app: App, player: Player) {
  const box = element("input", { type: "checkbox", checked: player.every });
  box.addEventListener("change", () => (player.every = box.checked));
  return element("label", { title: app.t("ribbon.every.title") }, box, app.t("ribbon.every"));
}

/** Updates the controls in place, so that they keep the focus. */
function dressControls(
  app: App,
  { play, restart, back, stack, layer }: Controls,
  player: Player,
  place: Place,
) {
  play.textContent = player.playing ? `❚❚ ${app.t("ribbon.pause")}` : `▶ ${app.t("ribbon.play")}`;
  restart.disabled = player.at < 0;
  back.disabled = player.at < 1;
  stack.value = place.stack;
  const here = layerOf(app, place);
  const layers = Array.from({ length: layersOf(app.config, place) }, (_, at) => {
    return element("option", { value: String(at), selected: at === here }, `${app.t("word.layer")} ${at}`);
  });
  refill(layer, layers);
}

/** Returns the words that are written in a frame, and what is being done. */
function writing(app: App, { step, word }: Frame, probabilities: Tensor | null): Child[] {
  const { outputTokens, hypothesis } = app.result.current;
  if (word === null) return [remark(app.t("ribbon.reading"))];
  return [
    remark(app.t("ribbon.writing", word + 1, hypothesis.ids.length)),
    outputTokens.slice(0, word).map((token) => tokenElement(token)),
    step.id === "next" ? nextWord(app, probabilities, word) : element("span", { className: "gf-big" }, "…"),
  ];
}

/** Returns the whole translation. */
function written(app: App): Child[] {
  const { text, hypothesis } = app.result.current;
  const done = element("span", { role: "status" }, app.t("ribbon.done", hypothesis.ids.length));
  return [tokenElement(text, { className: "gf-token gf-big" }), remark(done)];
}

/** Returns the next word with its probability, and its rivals. */
function nextWord(app: App, probabilities: Tensor | null, word: number) {
  const { outputTokens, hypothesis, trace } = app.result.current;
  const place = { ids: hypothesis.ids, place: word };
  const { rivals } = probabilities ? rivalsOf(probabilities, place, RIVAL_WORDS) : { rivals: [] };
  const ids = rivals.map(({ id }) => id);
  const names = app.engine.tokens("target", ids);
  return element(
    "span",
    { className: "gf-next", role: "status" },
    remark(app.t("ribbon.next")),
    tokenElement(outputTokens[word], { className: "gf-token gf-big" }),
    element("b", {}, numberText(Math.exp(hypothesis.tokenLogProbs[word]))),
    rivals.length > 0 && remark(app.t("ribbon.rivals")),
    ...rivals.flatMap(({ logProb }, at) => [tokenElement(names[at]), remark(numberText(Math.exp(logProb)))]),
    trace.words &&
      remark(app.t("ribbon.recorded", trace.words.ids[word].length, percentText(trace.words.rest[word]))),
  );
}
