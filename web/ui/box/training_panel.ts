// Plays the training back: the curve of the loss, and the same sentence with the weights of earlier steps.
import { numberText } from "../../engine/number_text.ts";
import { tryChange } from "./changes/controls.ts";
import { button, element, note, refill } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { elementSvg, saveMenu } from "./take_away.ts";
import { checkpointSteps, stepName } from "../app/checkpoints.ts";

import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";

const CURVE = { width: 330, height: 190, left: 40, right: 312, top: 10, bottom: 156 };
const SHOWN_FOR = 1200; // milliseconds per checkpoint while playing

type Point = [step: number, loss: number];

/**
 * The state of the panel: the steps that can be chosen (null: the run's final model), and the output at each visited
 * step.
 */
interface Panel {
  app: App;
  steps: (number | null)[];
  logarithmic: boolean;
  visited: Map<number | null, [text: string, logProb: string]>;
  situation: string;
}

/** Returns the panel as an element. */
export function createTrainingPanel(app: App) {
  const steps = checkpointSteps(app.payload);
  const panel: Panel = { app, steps, logarithmic: true, visited: new Map(), situation: "" };
  const [chart, controls] = [element("div"), element("div")];
  const [table, legend] = [element("div"), element("span")];
  const status = element("p", { class: "gf-note", role: "status" });
  const slider = element("input", { type: "range", min: "0", max: String(steps.length - 1), step: "1" });
  const play = button("", () => (playing ? stop() : start()));
  const logarithmic = button("", () => {
    panel.logarithmic = !panel.logarithmic;
    fill();
  });
  const below = element("p", "gf-row gf-note", legend, logarithmic);
  let playing: ReturnType<typeof setTimeout> | undefined; // the timer of the next checkpoint

  const choose = (place: number) => tryChange(app, { checkpoint: steps[place] });
  slider.addEventListener("input", () => {
    const place = Number(slider.value);
    stop();
    choose(place);
  });
  function stop() {
    clearTimeout(playing);
    playing = undefined;
    fill();
  }
  function start() {
    const now = steps.indexOf(app.changes.checkpoint);
    let place = now === steps.length - 1 ? -1 : now;
    const next = async () => {
      await choose(++place);
      if (playing === undefined || app.signal.aborted) return;
      if (place >= steps.length - 1) stop();
      else playing = setTimeout(next, SHOWN_FOR);
    };
    playing = setTimeout(next);
    fill();
  }
  function fill() {
    keepVisit(panel);
    refill(chart, curveParts(panel));
    below.hidden = !chart.hasChildNodes();
    refill(legend, curveNames(app));
    logarithmic.textContent = app.t("training.log");
    logarithmic.ariaPressed = String(panel.logarithmic);
    if (steps.length < 2) return refill(controls, howToGet(app));
    nameSlider(app, slider, steps);
    play.textContent = app.t(playing === undefined ? "training.play" : "training.pause");
    if (!controls.hasChildNodes()) refill(controls, element("div", "gf-row", play, slider));
    refill(table, visitedTable(panel), note(app.t("training.try")), shrunk(app), leftOut(app));
  }
  app.on(["result", "language"], fill);
  app.on(["busy"], ({ busy }) => {
    status.textContent = busy ? app.t("page.busy") : "";
    if (!busy) fill();
  });
  app.on(["panel"], ({ panel }) => panel !== "training" && stop());
  app.signal.addEventListener("abort", () => clearTimeout(playing), { once: true });
  fill();
  return element("div", "gf-training", chart, below, controls, status, table);
}

/** Puts the slider at the present checkpoint, and names the checkpoint. */
function nameSlider(app: App, slider: HTMLInputElement, steps: (number | null)[]) {
  const place = Math.max(0, steps.indexOf(app.changes.checkpoint));
  slider.value = String(place);
  slider.ariaLabel = app.t("training.slider");
  slider.ariaValueText = stepName(app, steps[place]);
}

function howToGet(app: App): Child[] {
  return [element("p", {}, app.t("training.none")), element("code", {}, "[training]\nsnapshots = 6")];
}

function shrunk(app: App) {
  const losses = app.payload.checkpoints.flatMap(({ loss }) => loss ?? []);
  const text = losses.length > 0 && app.t("training.shrunk", numberText(Math.max(...losses)));
  return text && note(text);
}

function leftOut(app: App) {
  const steps = app.payload.left_out ?? [];
  return steps.length > 0 && note(app.t("training.left", steps.join(", ")));
}

/**
 * Records the output at the chosen checkpoint; forgets all outputs if the sentence, or any change except the
 * checkpoint, has changed.
 */
function keepVisit(panel: Panel) {
  const {
    sentence,
    search,
    changes: { checkpoint, ...others },
  } = panel.app.state;
  const { current } = panel.app.result;
  const situation = JSON.stringify([sentence, search, others]);
  if (situation !== panel.situation) panel.visited.clear();
  panel.situation = situation;
  panel.visited.set(checkpoint, [current.text || "–", numberText(current.hypothesis.logProb)]);
}

function visitedTable({ app, steps, visited }: Panel) {
  const heads = ["training.at", "output.output", "training.logp"];
  const row = (step: number | null) => {
    const [text, logProb] = visited.get(step) ?? [],
      now = step === app.changes.checkpoint;
    return element(
      "tr",
      { class: now ? "gf-current" : "", "aria-current": now ? "true" : null },
      element("th", { scope: "row" }, stepName(app, step)),
      element("td", "gf-text", element("bdi", {}, text)),
      element("td", {}, logProb),
    );
  };
  return element(
    "table",
    "gf-table gf-visited",
    element("caption", {}, app.t("training.visited")),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        heads.map((key) => element("th", { scope: "col" }, app.t(key))),
      ),
    ),
    element("tbody", {}, steps.filter((step) => visited.has(step)).map(row)),
  );
}

// The curve

function curveParts(panel: Panel): Child[] {
  const { loss, validation } = panel.app.payload.curve;
  if (loss.length + validation.length < 2) return [];
  const title = panel.app.t("training.curve");
  const picture = element("div", {}, curvePicture(panel, loss, validation));
  return [
    element("h3", {}, title),
    picture,
    smoothingNote(panel.app),
    saveMenu(panel.app, "training", () => elementSvg(panel.app, picture, title)),
  ];
}

/**
 * Returns a note that says why the training loss stays above the validation loss: the targets of the training are
 * smoothed (§5.4).
 */
function smoothingNote(app: App) {
  const { payload, config } = app;
  const [smoothing, size] = [payload.label_smoothing, config.target_vocab_size];
  if (!(smoothing > 0)) return null;
  const others = smoothing / size;
  const right = 1 - smoothing + others;
  const least = -right * Math.log(right) - (size - 1) * others * Math.log(others);
  const about = app.t("training.smoothing", numberText(right, 3), numberText(least, 2));
  return note(about);
}

function curveNames(app: App) {
  const { loss, validation } = app.payload.curve;
  const kinds = { loss, validation, kept: app.payload.checkpoints };
  return Object.entries(kinds).map(
    ([name, list]) => list.length > 0 && element("span", `gf-key gf-key-${name}`, app.t(`training.${name}`)),
  );
}

/** Returns a plot of the curves over the steps, with a line at the chosen checkpoint. */
function curvePicture({ app, steps, logarithmic }: Panel, loss: Point[], validation: Point[]) {
  const { width, height, left, right, top, bottom } = CURVE;
  const chosen = app.changes.checkpoint ?? app.payload.step;
  const points = [...loss, ...validation],
    marked = steps.flatMap((step) => (step ? [step] : []));
  const all = [...points.map(([step]) => step), ...marked].filter((step) => step > 0);
  const first = logarithmic ? Math.min(...all) : 0,
    last = Math.max(...all);
  const tick = roundStep(Math.max(...points.map(([, value]) => value)) / 4);
  const highest = Math.ceil(Math.max(...points.map(([, value]) => value)) / tick) * tick;
  const scale = logarithmic ? Math.log : (step: number) => step;
  const share = (step: number) => (scale(step) - scale(first)) / (scale(last) - scale(first) || 1);
  const x = (step: number) => left + (right - left) * share(step);
  const y = (value: number) => bottom - ((bottom - top) * value) / highest;
  /** Returns the y coordinate of the loss curve at a step; null before the curve's first point. */
  const heightOver = (step: number) => {
    const place = loss.findLastIndex(([one]) => one >= first && one <= step);
    if (place < 0) return null;
    const [[from, low], [to, high]] = [loss[place], loss[place + 1] ?? loss[place]];
    return y(low + ((high - low) * (x(step) - x(from))) / (x(to) - x(from) || 1));
  };
  const at = ([step, value]: Point) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`;
  const line = (name: string, list: Point[]) =>
    drawing("polyline", {
      class: name,
      points: list
        .filter(([step]) => step >= first)
        .map(at)
        .join(" "),
    });
  const rule = (name: string, x1: number, x2: number, y1: number, y2: number): Child =>
    drawing("line", { class: name, x1, x2, y1, y2 });
  const upright = (name: string, step: number, to: number): Child => rule(name, x(step), x(step), bottom, to);
  const text: (label: Child, where: Record<string, string | number>) => Child = (label, where) =>
    drawing("text", { "text-anchor": "middle", ...where }, label);
  const levels = Array.from({ length: Math.round(highest / tick) + 1 }, (_, place) => place * tick);
  const about = { role: "img", "aria-label": described(app, chosen) };
  return drawing(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, ...about },
    levels.map((level) => rule("gf-rule", left, right, y(level), y(level))),
    levels.map((level) =>
      text(Number(level.toPrecision(3)), { x: left - 5, y: y(level) + 4, "text-anchor": "end" }),
    ),
    stepMarks(first, last, logarithmic).map((step) => text(step, { x: x(step), y: bottom + 15 })),
    text(app.t("training.axis"), { x: (left + right) / 2, y: height - 4 }),
    text(app.t("training.losses"), { x: -(top + bottom) / 2, y: 10, transform: "rotate(-90)" }),
    line("gf-loss", loss),
    line("gf-validation", validation),
    marked.map((step) => {
      const cy = heightOver(step);
      return cy !== null && drawing("circle", { class: "gf-kept", cx: x(step), cy, r: 4 });
    }),
    chosen !== null && chosen > 0 && upright("gf-cursor", chosen, top),
  );
}

/**
 * Returns the value of a curve at a step: the value of the latest point up to this step, or else of the first point.
 */
function valueAt(curve: Point[], step: number) {
  return (curve.findLast(([at]) => at <= step) ?? curve[0])?.[1];
}

function described(app: App, chosen: number | null) {
  const { loss, validation } = app.payload.curve;
  const value = (list: Point[]) => numberText(valueAt(list, chosen ?? Infinity)) || "–";
  return app.t("training.described", chosen ?? "–", value(loss), value(validation));
}

/** Returns the steps that are labelled on the axis: powers of ten, or about four steps at equal distances. */
function stepMarks(first: number, last: number, logarithmic: boolean) {
  const wide = roundStep(last / 4);
  const marks = Array.from({ length: 10 }, (_, place) => (logarithmic ? 10 ** place : place * wide));
  const seen = marks.filter((step) => step >= first && step <= last);
  return seen.length > 1 ? seen : [first, last];
}

/** Returns the smallest number of the form 1, 2 or 5 times a power of ten that is at least this value. */
function roundStep(value: number) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((times) => times * power >= value * 0.999) ?? 10);
}
