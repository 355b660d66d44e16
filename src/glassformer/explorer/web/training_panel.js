// Training played back: the curve of the loss, and the same sentence under the weights of earlier steps.
import { tryChange } from "./changes_panel.js";
import { button, element, numberText, refill } from "./dom.js";

const CURVE_WIDTH = 330, CURVE_HEIGHT = 190, LEFT = 40, RIGHT = 10, TOP = 10, BOTTOM = 34;
const PAUSE = 1200; // milliseconds for which playing shows a checkpoint
const SVG_NAMES = "http://www.w3.org/2000/svg";

/** Returns the panel as an element. */
export function createTrainingPanel(app) {
  const steps = checkpointSteps(app.payload);
  const panel = { app, steps, logarithmic: true, visited: new Map(), situation: "", playing: false };
  const holder = element("div", { className: "gf-training" });
  const chart = element("div"), controls = element("div"), table = element("div"), status = element("p", { className: "gf-note", role: "status" });
  const slider = element("input", { type: "range", min: "0", max: String(steps.length - 1), step: "1",
    oninput: () => {
      const place = Number(slider.value);
      stop();
      choose(place);
    } });
  const play = button("", () => (panel.playing ? stop() : start()));
  refill(holder, chart, controls, status, table);

  const choose = (place) => tryChange(app, { checkpoint: steps[place] });
  function stop() {
    clearTimeout(panel.playing);
    panel.playing = false;
    fill();
  }
  async function start() {
    panel.playing = true;
    let place = steps.indexOf(app.changes.checkpoint);
    if (place === steps.length - 1) place = -1;
    const next = async () => {
      await choose(++place);
      if (!panel.playing || app.signal.aborted) return;
      if (place === steps.length - 1) stop();
      else panel.playing = setTimeout(next, PAUSE);
    };
    fill();
    await next();
  }
  function fill() {
    const place = Math.max(0, steps.indexOf(app.changes.checkpoint));
    keepVisit(panel);
    refill(chart, ...chartParts(panel, fill));
    if (steps.length < 2) return refill(controls, element("p", {}, app.t("training.none")), element("code", {}, "[training]\nsnapshots = 6"));
    slider.value = String(place);
    slider.setAttribute("aria-label", app.t("training.slider"));
    slider.setAttribute("aria-valuetext", stepName(app, steps[place]));
    play.textContent = app.t(panel.playing ? "training.pause" : "training.play");
    if (!controls.contains(slider)) refill(controls, element("div", { className: "gf-row" }, play, slider));
    refill(table, visitedTable(panel), element("p", { className: "gf-note" }, app.t("training.try")), leftOut(app));
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
  app.signal.addEventListener("abort", stop, { once: true });
  fill();
  return holder;
}

/** Returns the steps that can be chosen, oldest first; null, the last, is the run's model. */
function checkpointSteps({ checkpoints = [], step }) {
  return [...checkpoints.map((one) => one.step).filter((one) => one !== step), null];
}

function stepName(app, step) {
  return step === null ? app.t("training.final") : app.t("training.step", step);
}

/** Keeps what each visited checkpoint made of the sentence, until the sentence or something else changes. */
function keepVisit(panel) {
  const { checkpoint, ...others } = panel.app.changes;
  const { reference, current } = panel.app.result;
  const situation = JSON.stringify([panel.app.sentence, panel.app.search, others]);
  if (situation !== panel.situation) panel.visited.clear();
  panel.situation = situation;
  panel.visited.set(checkpoint, { text: current.text, logProb: current.hypothesis.logProb, same: current.text === reference.text });
}

function visitedTable({ app, steps, visited }) {
  const row = (step) => {
    const { text, logProb } = visited.get(step), now = step === app.changes.checkpoint;
    return element("tr", { className: now ? "gf-current" : "", "aria-current": now ? "true" : null },
      element("th", { scope: "row" }, stepName(app, step)), element("td", { className: "gf-text" }, element("bdi", {}, text || "–")),
      element("td", {}, numberText(logProb)));
  };
  return element("table", { className: "gf-table gf-visited" },
    element("caption", {}, app.t("training.visited")),
    element("thead", {}, element("tr", {}, ["training.at", "output.output", "training.logp"].map((key) => element("th", { scope: "col" }, app.t(key))))),
    element("tbody", {}, steps.filter((step) => visited.has(step)).map(row)));
}

function leftOut(app) {
  const steps = app.payload.left_out ?? [];
  return steps.length > 0 && element("p", { className: "gf-note" }, app.t("training.left", steps.join(", ")));
}

// The curve

function chartParts(panel, fill) {
  const { app } = panel, { loss = [], validation = [] } = app.payload.curve ?? {};
  const points = [...loss, ...validation].filter(([step, value]) => step > 0 && Number.isFinite(value));
  if (points.length < 2) return [];
  const toggle = () => { panel.logarithmic = !panel.logarithmic; fill(); };
  return [
    element("h3", {}, app.t("training.curve")),
    curvePicture(panel, points),
    element("p", { className: "gf-row gf-note" },
      loss.length > 0 && element("span", { className: "gf-key gf-key-loss" }, app.t("training.loss")),
      validation.length > 0 && element("span", { className: "gf-key gf-key-validation" }, app.t("training.validation")),
      button(app.t("training.log"), toggle, { pressed: panel.logarithmic })),
  ];
}

/** Returns the picture of the curves over the steps, with a line where the chosen checkpoint is. */
function curvePicture({ app, steps, logarithmic }, points) {
  const { loss = [], validation = [] } = app.payload.curve;
  const place = logarithmic ? Math.log10 : (step) => step;
  const chosen = app.changes.checkpoint ?? app.payload.step;
  const ends = [...points.map(([step]) => step), ...steps.filter((step) => step > 0)];
  const first = logarithmic ? Math.min(...ends) : 0, last = Math.max(...ends);
  const highest = Math.max(...points.map(([, value]) => value)), tick = niceStep(highest / 4);
  const top = Math.ceil(highest / tick) * tick;
  const x = (step) => LEFT + (CURVE_WIDTH - LEFT - RIGHT) * (place(step) - place(first)) / (place(last) - place(first) || 1);
  const y = (value) => TOP + (CURVE_HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const line = (list, name) => drawn("polyline", { class: name, points: list.filter(([step]) => step > 0).map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" ") });
  const levels = Array.from({ length: Math.round(top / tick) + 1 }, (_, at) => at * tick);
  const marks = logarithmic ? powers(first, last) : Array.from({ length: 5 }, (_, at) => at).map((at) => at * niceStep(last / 4)).filter((at) => at <= last);
  const bottom = CURVE_HEIGHT - BOTTOM;
  return drawn("svg", { viewBox: `0 0 ${CURVE_WIDTH} ${CURVE_HEIGHT}`, role: "img", "aria-label": described(app, chosen) },
    levels.flatMap((level) => [
      drawn("line", { class: "gf-rule", x1: LEFT, x2: CURVE_WIDTH - RIGHT, y1: y(level), y2: y(level) }),
      drawn("text", { x: LEFT - 5, y: y(level) + 4, "text-anchor": "end" }, Number(level.toPrecision(3)))]),
    marks.map((step) => drawn("text", { x: x(step), y: bottom + 15, "text-anchor": "middle" }, step)),
    drawn("text", { x: (LEFT + CURVE_WIDTH) / 2, y: CURVE_HEIGHT - 4, "text-anchor": "middle" }, app.t("training.axis")),
    drawn("text", { x: -(TOP + bottom) / 2, y: 10, transform: "rotate(-90)", "text-anchor": "middle" }, app.t("training.losses")),
    steps.filter((step) => step > 0).map((step) => drawn("line", { class: "gf-tick", x1: x(step), x2: x(step), y1: bottom, y2: bottom - 6 })),
    line(loss, "gf-loss"), line(validation, "gf-validation"),
    validation.map(([step, value]) => drawn("circle", { class: "gf-validation", cx: x(step), cy: y(value), r: 2 })),
    chosen && drawn("line", { class: "gf-cursor", x1: x(chosen), x2: x(chosen), y1: TOP, y2: bottom }));
}

function described(app, chosen) {
  const { loss = [], validation = [] } = app.payload.curve;
  const value = (list) => numberText((list.findLast(([step]) => step <= (chosen ?? Infinity)) ?? list[0])?.[1]) || "–";
  return app.t("training.described", chosen ?? "–", value(loss), value(validation));
}

/** Returns 1, 2 or 5 times a power of ten, at least as large. */
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((times) => times * power >= value * 0.999);
}

function powers(first, last) {
  const marks = [];
  for (let power = 1; power <= last; power *= 10) marks.push(power);
  return marks.filter((step) => step >= first * 0.999);
}

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(SVG_NAMES, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}
