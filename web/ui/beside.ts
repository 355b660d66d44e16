// Two translations beside each other: of a second sentence or with the weights of another step, under the same changes;
// or before and after the changes.
import { alignment, MARKED_FROM, largestChanges, weightChanges, wordChanges } from "../engine/alignment.ts";
import { BLANK_BELOW, numberText } from "../engine/number_text.ts";
import { messageOf } from "./app.ts";
import { FAMILIES, attentionName, layersOf } from "./heads.ts";
import { placeName } from "./changes/attention.ts";
import { button, chooser, element, refill, tokenElement } from "./dom.ts";
import { latestOnly } from "./latest.ts";
import { checkpointSteps, stepName } from "./training_panel.ts";

import type { App } from "./app.ts";
import type { Child, Compared, Translated } from "./types.ts";

interface Made {
  shown: Child[];
  marks: Compared | null;
}

const MOST_CELLS = 3;

/** Returns the comparison as an element, which computes only while it is open. */
export function createBeside(app: App) {
  const summary = element("summary"),
    about = element("p", { className: "gf-note" }),
    submit = element("button", { type: "submit" });
  const field = element("input", { type: "text", dir: "auto", autocomplete: "off", spellcheck: false });
  const onsubmit = (event: Event) => {
    event.preventDefault();
    app.show({ beside: field.value });
  };
  let step: number | null | undefined; // undefined: the weights that the page shows
  const steps = element("span");
  const form = element("form", { className: "gf-row", onsubmit }, field, steps, submit);
  const result = element("div", { role: "status" });
  const details = element("details", { className: "gf-beside", ontoggle: () => draw() });
  refill(details, summary, about, form, result);

  async function prepared(): Promise<Made> {
    if (!details.open || !(app.state.beside || app.changed || step !== undefined))
      return { shown: [], marks: null };
    try {
      return await compared(app, step);
    } catch (error) {
      return { shown: [element("p", { className: "gf-error" }, messageOf(error))], marks: null };
    }
  }
  const draw = latestOnly(app.signal, prepared, ({ shown, marks }) => {
    refill(result, shown);
    app.compareWith(marks);
  });
  function fill() {
    summary.textContent = app.t("beside.title");
    about.textContent = app.t("beside.about");
    submit.textContent = app.t("beside.compare");
    field.setAttribute("aria-label", app.t("beside.sentence"));
    field.value = app.state.beside;
    if (app.payload.checkpoints?.length > 0)
      refill(
        steps,
        stepChooser(app, step, (chosen) => {
          step = chosen;
          draw();
        }),
      );
    if (app.state.beside) details.open = true;
    draw();
  }
  app.on(["result"], () => draw());
  app.on(["language", "beside"], fill);
  app.on(["beside"], ({ beside }) => beside && details.scrollIntoView({ block: "nearest" }));
  fill();
  return details;
}

/** Returns the drop-down of the second side's weights. */
function stepChooser(
  app: App,
  step: number | null | undefined,
  onchange: (step: number | null | undefined) => void,
) {
  const steps = [undefined, ...checkpointSteps(app.payload)];
  const name = (one: number | null | undefined) =>
    one === undefined ? app.t("beside.same") : stepName(app, one);
  const pairs = steps.map((one) => [String(one), name(one)] as const);
  return chooser(app.t("beside.step"), pairs, String(step), (value) =>
    onchange(steps.find((one) => String(one) === value)),
  );
}

async function compared(app: App, step: number | null | undefined): Promise<Made> {
  const { current, reference } = app.result;
  const second =
    app.state.beside.trim() || (step === undefined ? "" : (app.changes.source ?? app.state.sentence));
  const [one, other] = second ? [current, await otherOf(app, second, step)] : [reference, current];
  const sources = alignment(one.sourceIds, other.sourceIds);
  const words = wordChanges(one.hypothesis, other.hypothesis);
  const targets = words.map(({ pair }) => pair);
  const mine = (side: 0 | 1, pairs: [number, number][]) => new Set(pairs.map((pair) => pair[side]));
  const names = second ? ["beside.first", "beside.second"] : ["output.before", "output.after"];
  const [here, there, label] = second ? [one, other, names[1]] : [other, one, names[0]];
  const changes = await changesOf(app, here, there);
  const cells = mostChanged(app, here, changes, second ? 1 : -1);
  const shown = [
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
    element("p", { className: "gf-note" }, app.t("beside.marked", MARKED_FROM)),
  ];
  return { shown, marks: { of: here, label, text: there.text, changes } };
}

/** Returns the second translation: under the same changes, with the weights of another step if one is chosen. */
async function otherOf(app: App, text: string, step: number | null | undefined) {
  const { changes } = app.result.current;
  const { checkpoint } = step === undefined ? changes : { checkpoint: step };
  return app.translated(text, app.changes.prefix ?? "", { ...changes, checkpoint });
}

/**
 * Returns tokens; those that the other sentence lacks are marked, and a shared word says how its probability differs.
 */
function marked(app: App, texts: string[], shared: Set<number>, changes: Map<number, number> = new Map()) {
  return element(
    "p",
    { className: "gf-marked" },
    texts.map((text, at) => {
      const change = changes.get(at);
      const token = tokenElement(text);
      const shown = shared.has(at) ? token : element("mark", { title: app.t("beside.only") }, token);
      const isSeen = change !== undefined && Math.abs(change) >= BLANK_BELOW;
      return [
        shown,
        isSeen && element("span", { className: "gf-note" }, `Δp ${numberText(change, 2, true)}`),
        " ",
      ];
    }),
  );
}

/**
 * Returns how the weights of each attention differ, at the tokens that both translations share. `here`: what the map
 * shows.
 */
async function changesOf(app: App, here: Translated, there: Translated) {
  const pairs = {
    source: alignment(here.sourceIds, there.sourceIds),
    target: alignment(here.targetIds, there.targetIds),
  };
  const changes: Compared["changes"] = new Map();
  for (const family of FAMILIES)
    for (let layer = 0; layer < layersOf(app.config, family); layer++) {
      const name = `${attentionName(family, layer)}.weights`;
      const [one, other] = await Promise.all([here, there].map(({ trace }) => trace.get(name)));
      changes.set(name, weightChanges(one, other, pairs[family.rows], pairs[family.columns]));
    }
  return changes;
}

/**
 * Returns buttons that open the cells of attention weights that differ most. `here`: what the map shows, so that a
 * button finds its cell there. `sign`: -1 if the difference is `here` minus the other translation.
 */
function mostChanged(app: App, here: Translated, changes: Compared["changes"], sign: 1 | -1) {
  return [...changes]
    .flatMap(([name, one]) => largestChanges(one).map((cell) => ({ name, ...cell })))
    .filter(({ change }) => change !== 0)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change))
    .slice(0, MOST_CELLS)
    .map(({ name, index, change }) => {
      const { rows, columns } = app.labels(name);
      const place = `${placeName(app, name.replace(".weights", ""))} · ${index[0]}`;
      const open = () => {
        app.select(name, index);
        app.show({ stage: "map" });
      };
      return button(
        [
          `${place}: `,
          element("bdi", {}, rows[index[1]]),
          " → ",
          element("bdi", {}, columns?.[index[2]]),
          ` ${numberText(sign * change, 2, true)}`,
        ],
        open,
      );
    });
}
