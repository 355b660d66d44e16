// Training played back: the curve of the loss, and the same sentence under the weights of earlier steps.
import { tryChange } from "./changes_panel.js";
import { button, element, numberText, refill } from "./dom.js";

const CURVE = { width: 330, height: 190, left: 40, right: 320, top: 10, bottom: 156 };
const SHOWN_FOR = 1200; // milliseconds for which playing shows a checkpoint

/** Returns the panel as an element. */
export function createTrainingPanel(app) {
  const steps = checkpointSteps(app.payload);
  const panel = { app, steps, logarithmic: true, visited: new Map(), situation: "" };
  const [chart, legend, controls, table] = ["div", "span", "div", "div"].map((tag) => element(tag));
  const status = element("p", { className: "gf-note", role: "status" });
  const slider = element("input", { type: "range", min: "0", max: String(steps.length - 1), step: "1" });
  const play = button("", () => (playing ? stop() : start()));
  const logarithmic = button("", () => {
    panel.logarithmic = !panel.logarithmic;
    fill();
  });
  const below = element("p", { className: "gf-row gf-note" }, legend, logarithmic);
  let playing = null; // what goes on to the next checkpoint

  const choose = (place) => tryChange(app, { checkpoint: steps[place] });
  slider.addEventListener("input", () => {
    const place = Number(slider.value);
    stop();
    choose(place);
  });
  function stop() {
    clearTimeout(playing);
    playing = null;
    fill();
  }
  function start() {
    const now = steps.indexOf(app.changes.checkpoint);
    let place = now === steps.length - 1 ? -1 : now;
    const next = async () => {
      await choose(++place);
      if (playing === null || app.signal.aborted) return;
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
    play.textContent = app.t(playing === null ? "training.play" : "training.pause");
    if (!controls.hasChildNodes()) refill(controls, element("div", { className: "gf-row" }, play, slider));
    const advice = element("p", { className: "gf-note" }, app.t("training.try"));
    refill(table, visitedTable(panel), advice, leftOut(app));
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

/** Returns the steps that can be chosen, oldest first; null, the last, is the run's model. */
function checkpointSteps({ checkpoints = [], step }) {
  return [...checkpoints.map((one) => one.step).filter((one) => one !== step), null];
}

function stepName(app, step) {
  return step === null ? app.t("training.final") : app.t("training.step", step);
}

function howToGet(app) {
  return [element("p", {}, app.t("training.none")), element("code", {}, "[training]\nsnapshots = 6")];
}

function leftOut(app) {
  const steps = app.payload.left_out ?? [];
  return steps.length > 0 && element("p", { className: "gf-note" }, app.t("training.left", steps.join(", ")));
}

/** Keeps what each visited checkpoint made of the sentence, until the sentence or another change is new. */
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

function visitedTable({ app, steps, visited }) {
  const heads = ["training.at", "output.output", "training.logp"];
  const row = (step) => {
    const [text, logProb] = visited.get(step),
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

function curveParts(panel) {
  const { loss = [], validation = [] } = panel.app.payload.curve ?? {};
  if (loss.length + validation.length < 2) return [];
  return [element("h3", {}, panel.app.t("training.curve")), curvePicture(panel, loss, validation)];
}

function curveNames(app) {
  const shown = ["loss", "validation"].filter((name) => app.payload.curve?.[name]?.length > 0);
  return shown.map((name) =>
    element("span", { className: `gf-key gf-key-${name}` }, app.t(`training.${name}`)),
  );
}

/** Returns the picture of the curves over the steps, with a line where the chosen checkpoint is. */
function curvePicture({ app, steps, logarithmic }, loss, validation) {
  const { width, height, left, right, top, bottom } = CURVE;
  const chosen = app.changes.checkpoint ?? app.payload.step;
  const points = [...loss, ...validation],
    marked = steps.filter((step) => step > 0);
  const all = [...points.map(([step]) => step), ...marked].filter((step) => step > 0);
  const first = logarithmic ? Math.min(...all) : 0,
    last = Math.max(...all);
  const tick = roundStep(Math.max(...points.map(([, value]) => value)) / 4);
  const highest = Math.ceil(Math.max(...points.map(([, value]) => value)) / tick) * tick;
  const scale = logarithmic ? Math.log : (step) => step;
  const share = (step) => (scale(step) - scale(first)) / (scale(last) - scale(first) || 1);
  const x = (step) => left + (right - left) * share(step);
  const y = (value) => bottom - ((bottom - top) * value) / highest;
  const at = ([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`;
  const line = (name, list) =>
    drawn("polyline", {
      class: name,
      points: list
        .filter(([step]) => step >= first)
        .map(at)
        .join(" "),
    });
  const rule = (name, x1, x2, y1, y2) => drawn("line", { class: name, x1, x2, y1, y2 });
  const upright = (name, step, to) => rule(name, x(step), x(step), bottom, to);
  const text = (label, where) => drawn("text", { "text-anchor": "middle", ...where }, label);
  const levels = Array.from({ length: Math.round(highest / tick) + 1 }, (_, place) => place * tick);
  const about = { role: "img", "aria-label": described(app, chosen) };
  return drawn(
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
    chosen > 0 && upright("gf-cursor", chosen, top),
  );
}

function described(app, chosen) {
  const { loss = [], validation = [] } = app.payload.curve;
  const value = (list) => numberText(list.findLast(([step]) => step <= (chosen ?? Infinity))?.[1]) || "–";
  return app.t("training.described", chosen ?? "–", value(loss), value(validation));
}

/** Returns the steps that are written under the axis: powers of ten, or about four at equal distances. */
function stepMarks(first, last, logarithmic) {
  const wide = roundStep(last / 4);
  const marks = Array.from({ length: 10 }, (_, place) => (logarithmic ? 10 ** place : place * wide));
  const seen = marks.filter((step) => step >= first && step <= last);
  return seen.length > 1 ? seen : [first, last];
}

/** Returns 1, 2 or 5 times a power of ten, at least as large. */
function roundStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((times) => times * power >= value * 0.999);
}

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.flat().filter((child) => child !== false));
  return made;
}
