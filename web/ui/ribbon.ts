// The step ribbon: the paper's steps in order. The reader can choose a step, in any layer, or play them, word
// by word, as a translation is computed: the encoder once, the decoder once per word.
import { numberText, percentText } from "../engine/number_text.ts";
import { rivalsOf } from "../engine/reasons.ts";
import { button, chooser, element, refill, tokenElement } from "./dom.ts";
import { remark } from "./figure.ts";
import { createStepView } from "./step_view.ts";

import type { ModelConfig, Stack, Tensor } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Looks } from "./types.ts";

interface Step {
  id: string;
  formula: (config: ModelConfig) => string;
  /** Of the paper. */
  section: string;
  point: string | null;
  decoder: boolean;
}

/** The stack and the layer in which a step is shown; null means the map's present layer. */
interface Place {
  stack: Stack;
  layer: number | null;
}

interface Frame {
  step: Step;
  stack: Stack;
  word: number | null;
}

function aStep(id: string, formula: Step["formula"], section: string, point = "", decoder = false): Step {
  return { id, formula, section, point: point || null, decoder };
}

/**
 * The steps: id, formula, section, and the point to show. Without a point, the map is shown. S, L and A
 * stand for a side, a layer and its self-attention. Steps with `decoder` exist in the decoder only.
 */
const STEPS = [
  aStep("tokens", () => "x₁ x₂ … <eos>", "5.1"),
  aStep("embedding", () => "E[token] · √d_model", "3.4", "S.embedding"),
  aStep("positions", positionFormula, "3.5", "S.positions"),
  aStep("projections", () => "Q = x W_Q, K = x W_K, V = x W_V", "3.2.2", "A.query"),
  aStep("scores", () => "Q Kᵀ / √d_k", "3.2.1", "A.scores"),
  aStep("mask", () => "score := −∞", "3.2.3"),
  aStep("softmax", () => "exp(score) / Σ exp(scores)", "3.2.1", "A.weights"),
  aStep("heads", () => "weights · V", "3.2.1", "A.heads"),
  aStep("joined", () => "Concat(head₁, … head_h) W_O", "3.2.2", "A.joined"),
  aStep("norm", normFormula, "3.1", "A.normed"),
  aStep(
    "cross",
    () => "Q = y W_Q, K = memory W_K, V = memory W_V",
    "3.2.3",
    "L.cross_attention.weights",
    true,
  ),
  aStep("feed_forward", innerFormula, "3.3", "L.feed_forward.activated"),
  aStep("logits", () => "y Wᵀ", "3.4", "logits", true),
  aStep("next", () => "softmax(logits)", "3.4", "log_probs", true),
];
const ENCODER = STEPS.filter((step) => !step.decoder);
const LAST_OF_ENCODER = ENCODER[ENCODER.length - 1];
/** Milliseconds per step: slow, and fast enough for 16 words (249 steps) in 40 seconds. */
const PACES = { slow: 700, fast: 150 };
const RIVAL_WORDS = 3;

function positionFormula({ positions }: ModelConfig) {
  if (positions === "learned") return "x = embedding + P[pos]";
  return positions === "none" ? "x = embedding" : "x = embedding + (sin, cos)(pos / 10000^(2i/d_model))";
}

function normFormula({ norm }: ModelConfig) {
  return norm === "pre" ? "x + Sublayer(LayerNorm(x))" : "LayerNorm(x + Sublayer(x))";
}

function innerFormula({ activation }: ModelConfig) {
  return `${activation === "relu" ? "max(0, x W₁ + b₁)" : `${activation}(x W₁ + b₁)`} W₂ + b₂`;
}

/** Returns the ribbon as an element. */
export function createRibbon(app: App) {
  const place: Place = { stack: "encoder", layer: null };
  const player = new Player(app, (frame) => (frame ? watch(frame) : leave()), refresh);
  const bar = element("div", { className: "gf-controls" });
  const strip = element("div", { className: "gf-strip", role: "toolbar" });
  const about = element("p", { className: "gf-about" });
  const line = element("p", { className: "gf-writer", hidden: true, role: "group", tabindex: "0" });
  const ribbon = element("nav", { className: "gf-ribbon" }, bar, strip, about, line);
  const view = createStepView(
    app,
    () => ({ stack: place.stack, layer: layerOf(app, place) }),
    () => player.playing && player.pace < PACES.slow,
  );
  ribbon.append(view.element);
  const names = STEPS.map(() => element("span"));
  const steps = STEPS.map((step, at) => {
    const label = [element("span", { className: "gf-number" }, at + 1), names[at]];
    const open = () => {
      if (step.id === "mask") place.stack = "decoder"; // in the encoder, the mask blocks nothing
      choose(step);
    };
    const made = button(label, open, { className: "gf-step" });
    made.dataset.step = step.id;
    made.tabIndex = at ? -1 : 0;
    return made;
  });
  refill(strip, steps);
  let controls = makeControls();

  function choose(step: Step) {
    player.pause();
    if (step.decoder) place.stack = "decoder";
    app.show({ ...lookAt(app, step, place), step: step.id });
    refresh();
  }

  function whole() {
    player.end();
    app.show({ stage: "map", step: null });
  }

  function fill() {
    for (const one of [ribbon, strip]) one.setAttribute("aria-label", app.t("ribbon.label"));
    line.setAttribute("aria-label", app.t("output.output"));
    names.forEach((one, at) => {
      one.textContent = app.t(`step.${STEPS[at].id}`);
    });
    controls = makeControls();
    refill(bar, Object.values(controls));
    refresh();
  }

  function makeControls() {
    const symbol = (text: string, key: string, action: () => unknown): HTMLButtonElement => {
      const made = button(text, action, { title: app.t(key) });
      made.setAttribute("aria-label", made.title);
      return made;
    };
    const every = element("input", { type: "checkbox", checked: player.every });
    every.addEventListener("change", () => (player.every = every.checked));
    const paces = Object.entries(PACES).map(
      ([name, pace]) => [String(pace), app.t(`ribbon.${name}`)] as const,
    );
    const stacks = [
      ["encoder", app.t("ribbon.encoder")],
      ["decoder", app.t("ribbon.decoder")],
    ] as const;
    const setPace = (pace: string) => app.show({ pace: Number(pace) });
    return {
      play: button("", () => (player.playing ? player.pause() : player.play()), { className: "gf-primary" }),
      restart: symbol("↺", "ribbon.restart", () => player.restart()),
      back: symbol("◀", "ribbon.back", () => player.step(-1)),
      forward: symbol("▶❘", "ribbon.forward", () => player.step(1)),
      pace: chooser(app.t("ribbon.pace"), paces, String(player.pace), setPace),
      every: element("label", { title: app.t("ribbon.every.title") }, every, app.t("ribbon.every")),
      stack: chooser(app.t("ribbon.stack"), stacks, place.stack, (stack) => pick({ stack })),
      layer: layerChooser(),
      whole: button(app.t("point.back"), whole, { title: app.t("ribbon.whole") }),
    };
  }

  function layerChooser() {
    const made = element("select", { "aria-label": app.t("word.layer") });
    made.addEventListener("change", () => pick({ layer: Number(made.value) }));
    return made;
  }

  /** Shows the same step in a different place; in the encoder, its last step replaces steps that it lacks. */
  function pick(change: Partial<Place>) {
    Object.assign(place, change);
    const step = STEPS.find(({ id }) => id === app.ui.step);
    if (step) choose(step.decoder && place.stack === "encoder" ? LAST_OF_ENCODER : step);
    else refresh();
  }

  /** Updates the controls in place, so that they keep the focus. */
  function refresh() {
    const { play, restart, back, stack, layer } = controls;
    play.textContent = player.playing ? `❚❚ ${app.t("ribbon.pause")}` : `▶ ${app.t("ribbon.play")}`;
    restart.disabled = player.at < 0;
    back.disabled = player.at < 1;
    stack.value = place.stack;
    const here = layerOf(app, place);
    const layers = Array.from({ length: app.layersOf(place) }, (_, at) => {
      return element("option", { value: String(at), selected: at === here }, `${app.t("word.layer")} ${at}`);
    });
    refill(layer, layers);
    mark();
    view.draw();
  }

  /** Marks the present step and the past ones, and shows the step's explanation. */
  function mark() {
    const passed = player.passed();
    const at = STEPS.findIndex(({ id }) => id === app.ui.step);
    steps.forEach((one, other) => {
      one.toggleAttribute("data-passed", passed.includes(STEPS[other].id));
      one.setAttribute("aria-current", other === at ? "step" : "false");
      if (at >= 0) one.tabIndex = other === at ? 0 : -1;
    });
    if (at < 0) return refill(about, app.t("ribbon.invitation"));
    const { id, formula, section } = STEPS[at];
    refill(
      about,
      element("code", {}, formula(app.config)),
      app.t(`step.${id}.about`),
      remark(` §${section}`),
    );
    const left = steps[at].offsetLeft - (strip.clientWidth - steps[at].offsetWidth) / 2;
    strip.scrollTo({ left, behavior: wantsStillness() ? "auto" : "smooth" }); // scrolls the strip, never the page
  }

  /** Shows one frame of the animation: the step, the words so far, and the step's tensor. */
  function watch({ step, stack, word }: Frame) {
    place.stack = stack;
    const view: Partial<Looks> = word && !player.every ? { stage: "map" } : lookAt(app, step, place);
    app.show({ ...view, step: step.id, shown: word === null ? 0 : word + 1 });
    app.light(word === null ? [] : [{ side: "output", position: word }]);
    const { outputTokens, hypothesis } = app.result.current;
    const phase =
      word === null ? app.t("ribbon.reading") : app.t("ribbon.writing", word + 1, hypothesis.ids.length);
    refill(
      line,
      remark(phase),
      outputTokens.slice(0, word ?? 0).map((token) => tokenElement(token)),
      step.id === "next" && word !== null
        ? nextWord(app, player.probabilities, word)
        : word !== null && element("span", { className: "gf-big" }, "…"),
    );
    line.hidden = false;
    line.scrollTo(line.scrollWidth, line.scrollHeight); // the word that is being written
    refresh();
  }

  /** Shows the whole sentence again; after the last word, the whole translation. */
  function leave() {
    app.light([]);
    app.show({ stage: "map", step: null, shown: null });
    line.hidden = !player.finished;
    if (player.finished) {
      const { text, hypothesis } = app.result.current;
      const done = element("span", { role: "status" }, app.t("ribbon.done", hypothesis.ids.length));
      refill(line, tokenElement(text, { className: "gf-token gf-big" }), remark(done));
    }
    refresh();
  }

  strip.addEventListener("keydown", (event) => {
    const from = steps.findIndex((one) => event.target instanceof Node && one.contains(event.target));
    const ways: Record<string, number> = {
      ArrowRight: from + 1,
      ArrowLeft: from - 1,
      Home: 0,
      End: steps.length - 1,
    };
    const to = ways[event.key];
    if (to === undefined || from < 0) return;
    event.preventDefault();
    steps[Math.max(0, Math.min(steps.length - 1, to))].focus();
  });
  app.on("result", () => {
    player.end();
    line.hidden = true;
    refresh();
  });
  app.on("ui", (keys) => {
    if (keys.includes("language")) fill();
    else if (keys.includes("step")) mark();
    else if (strayed(app, place)) app.show({ step: null });
  });
  fill();
  return ribbon;
}

/** Returns the selection that shows a step in a stack's layer. */
function lookAt(app: App, { point }: Step, place: Place): Partial<Looks> {
  const { stack } = place;
  const layer = layerOf(app, place);
  if (!point && place.layer === null) return { stage: "map" };
  if (!point) {
    const { encoder, cross, decoder } = app.ui.heads;
    const moved =
      stack === "encoder"
        ? { encoder: { ...encoder, layer } }
        : { cross: { ...cross, layer }, decoder: { ...decoder, layer } };
    return { stage: "map", heads: { ...app.ui.heads, ...moved } };
  }
  const full: Record<string, string> = {
    S: stack === "encoder" ? "source" : "target",
    L: `${stack}.layers.${layer}`,
    A: `${stack}.layers.${layer}.self_attention`,
  };
  const name = point.replace(/^[SLA](?=\.)/, (letter) => full[letter]);
  return { stage: "point", point: { name, head: app.ui.point.head } };
}

function layerOf(app: App, place: Place) {
  return Math.min(place.layer ?? 0, app.layersOf(place) - 1);
}

/** Returns whether the reader has left the marked step; false while words are played. */
function strayed(app: App, place: Place) {
  const step = STEPS.find(({ id }) => id === app.ui.step);
  if (!step || app.ui.shown !== null) return false;
  const here = lookAt(app, step, place);
  return here.stage !== app.ui.stage || (here.stage === "point" && here.point?.name !== app.ui.point.name);
}

function wantsStillness() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
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

/** Plays a translation frame by frame: the encoder's steps once, then the decoder's for each word. */
class Player {
  frames: Frame[] = [];
  at = -1;
  probabilities: Tensor | null = null;
  tries = 0;
  playing = false;
  every = false;
  finished = false;
  timer: ReturnType<typeof setTimeout> | undefined;

  app: App;
  show: (frame: Frame | null) => void;
  changed: () => void;

  /** Calls `show` with each frame, and with null at the end; calls `changed` when playing starts or stops. */
  constructor(app: App, show: (frame: Frame | null) => void, changed: () => void) {
    this.app = app;
    this.show = show;
    this.changed = changed;
    app.signal.addEventListener("abort", () => clearTimeout(this.timer), { once: true });
  }

  get pace() {
    return this.app.ui.pace;
  }

  /** Makes the frames of the present translation. Returns whether they are still current. */
  async ready() {
    if (this.at >= 0) return true;
    const { app } = this;
    const { current } = app.result;
    const attempt = ++this.tries;
    const known = await current.trace.get("log_probs");
    if (attempt !== this.tries || app.signal.aborted || current !== app.result.current) return false;
    const frames = (steps: Step[], stack: Stack, word: number | null): Frame[] =>
      steps.map((step) => ({ step, stack, word }));
    const decoder = current.hypothesis.ids.flatMap((_, word) => frames(STEPS, "decoder", word));
    this.frames = [...frames(ENCODER, "encoder", null), ...decoder];
    this.probabilities = known;
    this.finished = false;
    return true;
  }

  /** Continues playing. With reduced motion, the first press only shows the first frame. */
  async play() {
    const first = this.at < 0;
    if (!(await this.ready())) return;
    this.playing = !(first && wantsStillness());
    if (first) this.go(0);
    this.schedule();
    this.changed();
  }

  schedule() {
    clearTimeout(this.timer);
    if (!this.playing) return;
    this.timer = setTimeout(() => {
      this.go(this.at + 1);
      this.schedule();
    }, this.pace);
  }

  pause() {
    clearTimeout(this.timer);
    this.playing = false;
    this.changed();
  }

  async step(by: number) {
    this.pause();
    if (await this.ready()) this.go(Math.max(0, this.at + by));
  }

  restart() {
    this.go(0);
    this.schedule();
  }

  go(at: number) {
    this.finished = at === this.frames.length;
    if (this.finished) return this.end();
    this.at = at;
    this.show(this.frames[at]);
  }

  /** Ends the animation. */
  end() {
    clearTimeout(this.timer);
    this.tries++;
    if (this.at < 0) return;
    Object.assign(this, { at: -1, playing: false });
    this.show(null);
  }

  /** Returns the ids of the steps already shown for this word, or for the encoder. */
  passed() {
    const word = this.frames[this.at]?.word;
    return this.frames
      .slice(0, Math.max(this.at, 0))
      .filter((frame) => frame.word === word)
      .map(({ step }) => step.id);
  }
}
