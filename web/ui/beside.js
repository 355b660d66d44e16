// Two translations beside each other: of a second sentence or with the weights of another step, under the same changes;
// or before and after the changes.
import { alignment, cellChanges, wordChanges } from "../engine/alignment.js";
import { numberText } from "../engine/number_text.js";
import { attentionName, FAMILIES, hasAny, messageOf } from "./app.js";
import { placeName } from "./changes/attention.js";
import { button, chooser, element, refill, tokenElement } from "./dom.js";
import { latestOnly } from "./latest.js";
import { checkpointSteps, stepName } from "./training_panel.js";

/**
 * @import { App } from "./app.js"
 * @import { Child, Translated } from "./types.js"
 */

const MOST_CELLS = 3;

/**
 * Returns the comparison as an element, which computes only while it is open.
 * @param {App} app
 */
export function createBeside(app) {
  const summary = element("summary"),
    about = element("p", { className: "gf-note" }),
    submit = element("button", { type: "submit" });
  const field = element("input", { type: "text", dir: "auto", autocomplete: "off", spellcheck: false });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    app.show({ beside: field.value });
  };
  /** @type {number | null | undefined} */
  let step; // undefined: the weights that the page shows
  const steps = element("span");
  const form = element("form", { className: "gf-row", onsubmit }, field, steps, submit);
  const result = element("div", { role: "status" });
  const details = element("details", { className: "gf-beside", ontoggle: () => draw() });
  refill(details, summary, about, form, result);

  async function prepared() {
    if (!details.open || !(app.ui.beside || app.changed || step !== undefined)) return [];
    try {
      return await compared(app, step);
    } catch (error) {
      return [element("p", { className: "gf-error" }, messageOf(error))];
    }
  }
  const draw = latestOnly(app.signal, prepared, (/** @type {Child[]} */ made) => refill(result, made));
  function fill() {
    summary.textContent = app.t("beside.title");
    about.textContent = app.t("beside.about");
    submit.textContent = app.t("beside.compare");
    field.setAttribute("aria-label", app.t("beside.sentence"));
    field.value = app.ui.beside;
    if (app.payload.checkpoints?.length > 0)
      refill(
        steps,
        stepChooser(app, step, (chosen) => {
          step = chosen;
          draw();
        }),
      );
    if (app.ui.beside) details.open = true;
    draw();
  }
  app.on("result", () => draw());
  app.on("ui", (keys) => {
    if (hasAny(keys, "language", "beside")) fill();
    if (keys.includes("beside") && app.ui.beside) details.scrollIntoView({ block: "nearest" });
  });
  fill();
  return details;
}

/**
 * Returns the drop-down of the second side's weights.
 * @param {App} app
 * @param {number | null | undefined} step
 * @param {(step: number | null | undefined) => void} onchange
 */
function stepChooser(app, step, onchange) {
  const steps = [undefined, ...checkpointSteps(app.payload)];
  const name = (/** @type {number | null | undefined} */ one) =>
    one === undefined ? app.t("beside.same") : stepName(app, one);
  const pairs = steps.map((one) => /** @type {const} */ ([String(one), name(one)]));
  return chooser(app.t("beside.step"), pairs, String(step), (value) =>
    onchange(steps.find((one) => String(one) === value)),
  );
}

/**
 * @param {App} app
 * @param {number | null | undefined} step
 */
async function compared(app, step) {
  const { current, reference } = app.result;
  const second = app.ui.beside.trim() || (step === undefined ? "" : (app.changes.source ?? app.sentence));
  const [one, other] = second ? [current, await otherOf(app, second, step)] : [reference, current];
  const sources = alignment(one.sourceIds, other.sourceIds);
  const words = wordChanges(one.hypothesis, other.hypothesis);
  const targets = words.map(({ pair }) => pair);
  const mine = (/** @type {0 | 1} */ side, /** @type {[number, number][]} */ pairs) =>
    new Set(pairs.map((pair) => pair[side]));
  const names = second ? ["beside.first", "beside.second"] : ["output.before", "output.after"];
  const cells = await (second ? mostChanged(app, one, other, 1) : mostChanged(app, other, one, -1));
  return [
    element(
      "div",
      { className: "gf-pair" },
      [one, other].map((each, at) => {
        const side = at ? 1 : 0;
        const changes = new Map(side ? words.map(({ pair, change }) => [pair[1], change]) : []);
        return element(
          "div",
          { role: "group", "aria-label": app.t(names[side]) },
          element("h3", {}, app.t(names[side])),
          marked(app, each.sourceTokens, mine(side, sources)),
          marked(app, each.outputTokens, mine(side, targets), changes),
        );
      }),
    ),
    cells.length > 0 && element("p", { className: "gf-row" }, app.t("beside.cells"), cells),
  ];
}

/**
 * Returns the second translation: under the same changes, with the weights of another step if one is chosen.
 * @param {App} app
 * @param {string} text
 * @param {number | null | undefined} step
 */
async function otherOf(app, text, step) {
  const changes = await app.resolved();
  if (step !== undefined) changes.checkpoint = step;
  return app.translated(text, app.changes.prefix ?? "", changes);
}

/**
 * Returns tokens; those that the other sentence lacks are marked, and a shared word says how its probability differs.
 * @param {App} app
 * @param {string[]} texts
 * @param {Set<number>} shared
 * @param {Map<number, number>} [changes]
 */
function marked(app, texts, shared, changes = new Map()) {
  return element(
    "p",
    { className: "gf-marked" },
    texts.map((text, at) => {
      const change = changes.get(at);
      const token = tokenElement(text);
      const shown = shared.has(at) ? token : element("mark", { title: app.t("beside.only") }, token);
      const isSeen = change !== undefined && Math.abs(change) >= 0.005;
      return [
        shown,
        isSeen && element("span", { className: "gf-note" }, `Δp ${numberText(change, 2, true)}`),
        " ",
      ];
    }),
  );
}

/**
 * Returns buttons that open the cells of attention weights that differ most, of the tokens that both sentences share.
 * @param {App} app
 * @param {Translated} one - What the page shows, so that a button finds its cell there.
 * @param {Translated} other
 * @param {1 | -1} sign - -1 if the difference is that of `one` from `other`.
 */
async function mostChanged(app, one, other, sign) {
  const pairs = {
    source: alignment(one.sourceIds, other.sourceIds),
    target: alignment(one.targetIds, other.targetIds),
  };
  const found = [];
  for (const family of FAMILIES)
    for (let layer = 0; layer < app.layersOf(family); layer++) {
      const attention = attentionName(family, layer);
      const name = `${attention}.weights`;
      const [before, after] = await Promise.all([one, other].map(({ trace }) => trace.get(name)));
      for (const cell of cellChanges(before, after, pairs[family.rows], pairs[family.columns]))
        found.push({ attention, name, family, ...cell });
    }
  return found
    .filter(({ change }) => change !== 0)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change))
    .slice(0, MOST_CELLS)
    .map(({ attention, name, family, index, change }) => {
      const [row, column] = [one[`${family.rows}Tokens`][index[1]], one[`${family.columns}Tokens`][index[2]]];
      const place = `${placeName(app, attention)} · ${index[0]}`;
      const open = () => {
        app.select(name, index);
        app.show({ stage: "map" });
      };
      return button(
        [
          `${place}: `,
          element("bdi", {}, row),
          " → ",
          element("bdi", {}, column),
          ` ${numberText(sign * change, 2, true)}`,
        ],
        open,
      );
    });
}
