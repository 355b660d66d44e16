// The training played back: the curve of the loss, and the same sentence with the weights of earlier steps.
import { numberText } from "../engine/number_text.js";
import { tryChange } from "./changes/controls.js";
import { button, element, refill } from "./dom.js";
import { drawing } from "./figure.js";
import { elementSvg, saveMenu } from "./take_away.js";

const CURVE = { width: 330, height: 190, left: 40, right: 320, top: 10, bottom: 156 };
const SHOWN_FOR = 1200; // milliseconds per checkpoint while playing

/**
 * @import { Payload } from "../engine/types.js"
 * @import { App } from "./app.js"
 * @import { Child } from "./types.js"
 */

/** @typedef {[step: number, loss: number]} Point */

/**
 * The state of the panel: the steps that can be chosen (null is the run's model), and the output at each.
 * @typedef {object} Panel
 * @property {App} app
 * @property {(number | null)[]} steps
 * @property {boolean} logarithmic
 * @property {Map<number | null, [text: string, logProb: string]>} visited
 * @property {string} situation
 */

/**
 * Returns the panel as an element.
 * @param {App} app
 */
export function createTrainingPanel(app) {
  const steps = checkpointSteps(app.payload);
  /** @type {Panel} */
  const panel = { app, steps, logarithmic: true, visited: new Map(), situation: "" };
  const [chart, controls, table] = [element("div"), element("div"), element("div")];
  const legend = element("span");
  const status = element("p", { className: "gf-note", role: "status" });
  const slider = element("input", { type: "range", min: "0", max: String(steps.length - 1), step: "1" });
  const play = button("", () => (playing ? stop() : start()));
  const logarithmic = button("", () => {
    panel.logarithmic = !panel.logarithmic;
    fill();
  });
  const below = element("p", { className: "gf-row gf-note" }, legend, logarithmic);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let playing; // starts the next checkpoint

  const choose = (/** @type {number} */ place) => tryChange(app, { checkpoint: steps[place] });
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
    const place = Math.max(0, steps.indexOf(app.changes.checkpoint));
    keepVisit(panel);
    refill(chart, curveParts(panel));
    below.hidden = !chart.hasChildNodes();
    refill(legend, curveNames(app));
    logarithmic.textContent = app.t("training.log");
    logarithmic.setAttribute("aria-pressed", String(panel.logarithmic));
    if (steps.length < 2) return refill(controls, howToGet(app));
    slider.value = String(place);
    slider.setAttribute("aria-label", app.t("training.slider"));
    slider.setAttribute("aria-valuetext", stepName(app, steps[place]));
    play.textContent = app.t(playing === undefined ? "training.play" : "training.pause");
    if (!controls.hasChildNodes()) refill(controls, element("div", { className: "gf-row" }, play, slider));
    const advice = element("p", { className: "gf-note" }, app.t("training.try"));
    refill(table, visitedTable(panel), advice, shrunk(app), leftOut(app));
  }
  app.on("result", fill);
  app.on("busy", (busy) => {
    status.textContent = busy ? app.t("page.busy") : "";
    if (!busy) fill();
  });
  app.on("ui", (keys) => {
    if (keys.includes("panel") && app.ui.panel !== "training") stop();
    else if (keys.includes("language")) fill();
  });
  app.signal.addEventListener("abort", () => clearTimeout(playing), { once: true });
  fill();
  return element("div", { className: "gf-training" }, chart, below, controls, status, table);
}

/**
 * Returns the steps that can be chosen, oldest first; null, the last, is the run's model.
 * @param {Payload} payload
 */
export function checkpointSteps({ checkpoints = [], step }) {
  return [...checkpoints.map((one) => one.step).filter((one) => one !== step), null];
}

/**
 * @param {App} app
 * @param {number | null} step
 */
export function stepName(app, step) {
  return step === null ? app.t("training.final") : app.t("training.step", step);
}

/**
 * @param {App} app
 * @returns {Child[]}
 */
function howToGet(app) {
  return [element("p", {}, app.t("training.none")), element("code", {}, "[training]\nsnapshots = 6")];
}

/** @param {App} app */
function shrunk(app) {
  const losses = app.payload.checkpoints.flatMap(({ loss }) => loss ?? []);
  const text = losses.length > 0 && app.t("training.shrunk", numberText(Math.max(...losses)));
  return text && element("p", { className: "gf-note" }, text);
}

/** @param {App} app */
function leftOut(app) {
  const steps = app.payload.left_out ?? [];
  return steps.length > 0 && element("p", { className: "gf-note" }, app.t("training.left", steps.join(", ")));
}

/**
 * Keeps the output of each visited checkpoint until the sentence or another change is different.
 * @param {Panel} panel
 */
function keepVisit(panel) {
  const {
    sentence,
    search,
    changes: { checkpoint, ...others },
    result: { current },
  } = panel.app;
  const situation = JSON.stringify([sentence, search, others]);
  if (situation !== panel.situation) panel.visited.clear();
  panel.situation = situation;
  panel.visited.set(checkpoint, [current.text || "–", numberText(current.hypothesis.logProb)]);
}

/** @param {Panel} panel */
function visitedTable({ app, steps, visited }) {
  const heads = ["training.at", "output.output", "training.logp"];
  const row = (/** @type {number | null} */ step) => {
    const [text, logProb] = visited.get(step) ?? [],
      now = step === app.changes.checkpoint;
    return element(
      "tr",
      { className: now ? "gf-current" : "", "aria-current": now ? "true" : null },
      element("th", { scope: "row" }, stepName(app, step)),
      element("td", { className: "gf-text" }, element("bdi", {}, text)),
      element("td", {}, logProb),
    );
  };
  return element(
    "table",
    { className: "gf-table gf-visited" },
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

/**
 * @param {Panel} panel
 * @returns {Child[]}
 */
function curveParts(panel) {
  const { loss, validation } = panel.app.payload.curve;
  if (loss.length + validation.length < 2) return [];
  const title = panel.app.t("training.curve");
  const picture = element("div", {}, curvePicture(panel, loss, validation));
  return [
    element("h3", {}, title),
    picture,
    saveMenu(panel.app, "training", () => elementSvg(panel.app, picture, title)),
  ];
}

/** @param {App} app */
function curveNames(app) {
  const names = /** @type {const} */ (["loss", "validation"]);
  const shown = names.filter((name) => app.payload.curve[name].length > 0);
  return shown.map((name) =>
    element("span", { className: `gf-key gf-key-${name}` }, app.t(`training.${name}`)),
  );
}

/**
 * Returns a plot of the curves over the steps, with a line at the chosen checkpoint.
 * @param {Panel} panel
 * @param {Point[]} loss
 * @param {Point[]} validation
 */
function curvePicture({ app, steps, logarithmic }, loss, validation) {
  const { width, height, left, right, top, bottom } = CURVE;
  const chosen = app.changes.checkpoint ?? app.payload.step;
  const points = [...loss, ...validation],
    marked = steps.flatMap((step) => (step ? [step] : []));
  const all = [...points.map(([step]) => step), ...marked].filter((step) => step > 0);
  const first = logarithmic ? Math.min(...all) : 0,
    last = Math.max(...all);
  const tick = roundStep(Math.max(...points.map(([, value]) => value)) / 4);
  const highest = Math.ceil(Math.max(...points.map(([, value]) => value)) / tick) * tick;
  const scale = logarithmic ? Math.log : (/** @type {number} */ step) => step;
  const share = (/** @type {number} */ step) =>
    (scale(step) - scale(first)) / (scale(last) - scale(first) || 1);
  const x = (/** @type {number} */ step) => left + (right - left) * share(step);
  const y = (/** @type {number} */ value) => bottom - ((bottom - top) * value) / highest;
  const at = (/** @type {Point} */ [step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`;
  const line = (/** @type {string} */ name, /** @type {Point[]} */ list) =>
    drawing("polyline", {
      class: name,
      points: list
        .filter(([step]) => step >= first)
        .map(at)
        .join(" "),
    });
  /** @type {(name: string, x1: number, x2: number, y1: number, y2: number) => Child} */
  const rule = (name, x1, x2, y1, y2) => drawing("line", { class: name, x1, x2, y1, y2 });
  /** @type {(name: string, step: number, to: number) => Child} */
  const upright = (name, step, to) => rule(name, x(step), x(step), bottom, to);
  /** @type {(label: Child, where: Record<string, string | number>) => Child} */
  const text = (label, where) => drawing("text", { "text-anchor": "middle", ...where }, label);
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
    marked.map((step) => upright("gf-tick", step, bottom - 6)),
    line("gf-loss", loss),
    line("gf-validation", validation),
    chosen !== null && chosen > 0 && upright("gf-cursor", chosen, top),
  );
}

/**
 * @param {App} app
 * @param {number | null} chosen
 */
function described(app, chosen) {
  const { loss, validation } = app.payload.curve;
  const value = (/** @type {Point[]} */ list) =>
    numberText(list.findLast(([step]) => step <= (chosen ?? Infinity))?.[1]) || "–";
  return app.t("training.described", chosen ?? "–", value(loss), value(validation));
}

/**
 * Returns the labelled steps of the axis: powers of ten, or about four at equal distances.
 * @param {number} first
 * @param {number} last
 * @param {boolean} logarithmic
 */
function stepMarks(first, last, logarithmic) {
  const wide = roundStep(last / 4);
  const marks = Array.from({ length: 10 }, (_, place) => (logarithmic ? 10 ** place : place * wide));
  const seen = marks.filter((step) => step >= first && step <= last);
  return seen.length > 1 ? seen : [first, last];
}

/**
 * Returns the smallest of 1, 2 and 5 times a power of ten that is at least this value.
 * @param {number} value
 */
function roundStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((times) => times * power >= value * 0.999) ?? 10);
}
