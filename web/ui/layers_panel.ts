// The panel "Layers": what each layer already knows (logit lens), attention followed back through the layers (rollout),
// where another sentence changes the translation (patches), and what matrices look like.
import { contestOf } from "../engine/contest.ts";
import {
  crossRollout,
  logitLens,
  patchSweep,
  readOutWeights,
  rollout,
  sideOf,
  streamName,
} from "../engine/lens.ts";
import { attentionNames, layerNames } from "../engine/model.ts";
import { BLANK_BELOW, numberText } from "../engine/number_text.ts";
import { Run } from "../engine/run.ts";
import { largestAt, rowOf } from "../engine/tensor.ts";
import { messageOf } from "./app.ts";
import { layersOf } from "./heads.ts";
import { likestExample } from "./changes/patches.ts";
import { colourPlace, coloursAt, colourTable, pixelled } from "./colours.ts";
import { button, chooser, element, refill } from "./dom.ts";
import { latestOnly } from "./latest.ts";
import { collected } from "./why_panel.ts";

import type { Stack, Tensor } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Child } from "./types.ts";

const MOST_ROWS = 512; // of a drawn matrix

/** A cell of a coloured table: `share` in [−1, 1] is the strength of its colour. */
interface Cell {
  label: Child;
  share: number;
  exact: number;
  title?: string;
}

/** The reader's choices in the panel. */
interface Choices {
  lens: Stack;
  rollout: "encoder" | "cross" | "decoder";
  sweep: Stack;
  /** The other sentence of the sweep; "" = the most similar example. */
  sentence: string;
  matrix: string;
}

/** Makes a section's content for its element; `redraw` makes it anew. */
type Made = (app: App, chosen: Choices, redraw: () => void, place: Element) => Promise<Child[]>;

/** Returns the panel as an element. */
export function createLayersPanel(app: App) {
  const chosen: Choices = {
    lens: "decoder",
    rollout: "cross",
    sweep: "encoder",
    sentence: "",
    matrix: "source.tokens.weight",
  };
  const isLive = app.engine.live !== false;
  return element(
    "div",
    { className: "gf-layers" },
    isLive && section(app, chosen, "lens", lensParts, true),
    section(app, chosen, "rollout", rolloutParts, !isLive),
    isLive && section(app, chosen, "sweep", sweepParts),
    isLive && section(app, chosen, "matrix", matrixParts),
  );
}

/** Returns a section, whose content is made while it is open. */
function section(app: App, chosen: Choices, name: string, made: Made, open = false) {
  const [summary, about, body] = [element("summary"), element("p", { className: "gf-note" }), element("div")];
  const details = element("details", { open, ontoggle: () => draw() }, summary, about, body);
  async function prepared() {
    summary.textContent = app.t(`layers.${name}`);
    about.textContent = app.t(`layers.${name}.about`);
    if (app.state.panel !== "layers" || !details.open) return null;
    try {
      return await made(app, chosen, () => draw(), body);
    } catch (error) {
      return [element("p", { className: "gf-error" }, messageOf(error))];
    }
  }
  const draw = latestOnly(app.signal, prepared, (parts: Child[] | null) => {
    if (parts) refill(body, parts);
  });
  app.on(["result", "panel", "language", "theme"], () => draw());
  draw();
  return details;
}

async function lensParts(app: App, chosen: Choices, redraw: () => void): Promise<Child[]> {
  const { current } = app.result;
  const { trace, changes } = current;
  const stack = chosen.lens;
  const side = sideOf(stack);
  const run = await runWith(app, readOutWeights(app.config, stack));
  const layers = streamsOf(app, stack);
  const said: Cell[][] = []; // by layer
  for (const layer of layers) {
    const stream = await trace.get(streamName(app.config, changes, stack, layer));
    await new Promise((go) => setTimeout(go)); // a large vocabulary takes a while
    const lens = logitLens(run, stack, stream);
    said.push(Array.from({ length: lens.shape[0] }, (_, at) => wordCell(app, side, rowOf(lens, at))));
  }
  return [
    stackChooser(app, "lens", chosen, redraw),
    layerTable(app, layers, current[`${side}Tokens`], (at) => said.map((cells) => cells[at])),
  ];
}

/** Returns the cell of the likeliest word of a row of log probabilities. */
function wordCell(app: App, side: "source" | "target", row: Float32Array): Cell {
  const ids = largestAt(row, 5);
  const tokens = app.engine.tokens(side, ids);
  const p = (at: number) => Math.exp(row[ids[at]]);
  const title = tokens.map((token, at) => `${token} ${numberText(p(at), 3)}`).join("\n");
  return { label: element("bdi", {}, tokens[0]), share: p(0), exact: p(0), title };
}

async function rolloutParts(app: App, chosen: Choices, redraw: () => void): Promise<Child[]> {
  const { current } = app.result;
  const weights = (kind: RegExp) =>
    Promise.all(
      attentionNames(app.config)
        .filter((name) => kind.test(name))
        .map((name) => current.trace.get(`${name}.weights`)),
    );
  const kind = chosen.rollout;
  const encoder = kind === "decoder" ? [] : await weights(/^encoder/);
  const table =
    kind === "cross"
      ? crossRollout(await weights(/cross_attention$/), encoder)
      : rollout(kind === "encoder" ? encoder : await weights(/^decoder.*self_attention$/));
  const tokens = (isSource: boolean) => current[isSource ? "sourceTokens" : "targetTokens"];
  const rows = tokens(kind === "encoder").map((token, row) => ({
    label: token,
    cells: numberCells(table, row),
  }));
  const kinds = ["cross", "encoder", "decoder"] as const;
  const pairs = kinds.map((one) => [one, app.t(`layers.rollout.${one}`)] as const);
  const choose = chooser(app.t("layers.rollout"), pairs, kind, (value) => {
    chosen.rollout = value;
    redraw();
  });
  return [choose, colouredTable(tokens(kind !== "decoder"), rows, "gf-upright")];
}

/** Returns the cells of a table's row of numbers from 0 to 1. */
function numberCells(table: Tensor, row: number): Cell[] {
  return Array.from(rowOf(table, row), (value) => ({
    label: value < BLANK_BELOW ? "" : numberText(value, 2),
    share: value,
    exact: value,
  }));
}

async function sweepParts(app: App, chosen: Choices, redraw: () => void): Promise<Child[]> {
  const result = element("div", { role: "status" });
  const field = element("input", { type: "text", dir: "auto", spellcheck: false });
  field.value = chosen.sentence || likestExample(app);
  field.setAttribute("aria-label", app.t("layers.sweep.sentence"));
  let running = new AbortController();
  const onsubmit = (event: Event) => {
    event.preventDefault();
    chosen.sentence = field.value;
    running.abort();
    running = new AbortController();
    app.attempt(() => sweep(app, chosen, result, AbortSignal.any([running.signal, app.signal])));
  };
  const stop = () => {
    running.abort();
    refill(result);
  };
  const measure = element("button", { type: "submit" }, app.t("layers.sweep.measure"));
  return [
    element(
      "form",
      { className: "gf-row", onsubmit },
      field,
      measure,
      button(app.t("layers.sweep.stop"), stop),
    ),
    stackChooser(app, "sweep", chosen, redraw),
    result,
  ];
}

/** Measures each patch, and shows the table. */
async function sweep(
  app: App,
  { sweep: stack, sentence }: Choices,
  holder: HTMLElement,
  signal: AbortSignal,
) {
  const { current } = app.result;
  const other = await app.translated(sentence, "", { ...current.changes, patches: [] });
  const contest = contestOf(
    { sourceIds: current.sourceIds, ids: current.hypothesis.ids },
    { sourceIds: other.sourceIds, ids: other.hypothesis.ids },
  );
  if (!contest) return refill(holder, app.t("layers.sweep.same"));
  const [mine] = contest.cases;
  const targetIds = [app.config.bos_id, ...contest.prefixIds];
  const donor = { sourceIds: other.sourceIds, targetIds };
  const length =
    stack === "encoder" ? Math.min(current.sourceIds.length, donor.sourceIds.length) : targetIds.length;
  const layers = streamsOf(app, stack);
  const steps = patchSweep(app.engine, { ...contest, cases: [mine] }, donor, stack, length, current.changes);
  const found = await collected(app, holder, steps, layers.length * length, signal);
  if (signal.aborted) return;
  const largest = Math.max(...found.map(({ effect }) => Math.abs(effect))) || 1;
  const cells = found.map(({ effect }) => ({
    label: Math.abs(effect) < BLANK_BELOW ? "" : numberText(effect, 1, true),
    share: effect / largest,
    exact: effect,
  }));
  const [word, rival] = app.engine.tokens("target", [mine.word, mine.rival]);
  refill(
    holder,
    element("p", {}, app.t("layers.sweep.effect", word, rival)),
    layerTable(app, layers, current[`${sideOf(stack)}Tokens`].slice(0, length), (at) =>
      layers.map((_, layer) => cells[layer * length + at]),
    ),
  );
}

async function matrixParts(app: App, chosen: Choices, redraw: () => void, place: Element): Promise<Child[]> {
  const of = (name: string, ...parts: string[]) => parts.map((part) => `${name}.${part}.weight`);
  const layers = (["encoder", "decoder"] as const).flatMap((stack) =>
    layerNames(stack, layersOf(app.config, { stack })),
  );
  const names = [
    "source.tokens.weight",
    ...attentionNames(app.config).flatMap((name) => of(name, "input_projection", "output_projection")),
    ...layers.flatMap((name) => of(`${name}.feed_forward`, "expand", "contract")),
    "output.weight",
  ];
  const pairs = names.map((name) => [name, name.replace(/\.weight$/, "")] as const);
  const choose = chooser(app.t("layers.matrix"), pairs, chosen.matrix, (value) => {
    chosen.matrix = value;
    redraw();
  });
  const { shape, data } = (await runWith(app, [chosen.matrix])).weight(chosen.matrix);
  const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
  const deviation = Math.sqrt(data.reduce((sum, value) => sum + (value - mean) ** 2, 0) / data.length);
  const largest = data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const said = [mean, deviation, largest].map((value) => numberText(value, 3));
  const text = app.t("layers.matrix.numbers", shape.join(" × "), ...said);
  const rows = Math.min(shape[0], MOST_ROWS);
  const shades = colourTable("signed", coloursAt(place));
  const picture = pixelled(shape[1], rows, (pixels) => {
    for (let i = 0; i < pixels.length; i++) pixels[i] = shades[colourPlace("signed", data[i], 3 * deviation)];
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${chosen.matrix}: ${text}`);
  return [choose, element("p", { className: "gf-note" }, text), picture];
}

/** Returns a run of the model, under the current changes, that has these weights. */
async function runWith(app: App, names: string[]) {
  const { changes } = app.result.current;
  if (app.engine.live === false) throw new Error(app.t("why.recorded"));
  return new Run(await app.engine.modelWith(names, changes.checkpoint), changes);
}

/** Returns the layers of a stack, from −1, the input of the first, to the last. */
function streamsOf(app: App, stack: Stack) {
  return Array.from({ length: layersOf(app.config, { stack }) + 1 }, (_, at) => at - 1);
}

function layerName(app: App, layer: number) {
  return layer < 0 ? app.t("layers.input") : app.t("layers.layer", layer);
}

/** Returns the drop-down of a section for the encoder or the decoder. */
function stackChooser(app: App, key: "lens" | "sweep", chosen: Choices, redraw: () => void) {
  const stacks = ["decoder", "encoder"] as const;
  const pairs = stacks.map((stack) => [stack, app.t(`layers.${stack}`)] as const);
  return chooser(app.t("layers.stack"), pairs, chosen[key], (stack) => {
    chosen[key] = stack;
    redraw();
  });
}

/** Returns a table with a row for each token and a column for each layer. */
function layerTable(app: App, layers: number[], tokens: string[], cellsOf: (at: number) => Cell[]) {
  const columns = layers.map((layer) => layerName(app, layer));
  return colouredTable(
    columns,
    tokens.map((label, at) => ({ label, cells: cellsOf(at) })),
  );
}

/** Returns a table of coloured cells. */
function colouredTable(columns: string[], rows: { label: string; cells: Cell[] }[], className = "") {
  const cell = ({ label, share, exact, title = "" }: Cell) => {
    const made = element("td", { title }, element("data", { value: String(exact) }, label));
    made.style.setProperty("--share", `${Math.round(45 * Math.abs(share))}%`);
    if (share < 0) made.className = "gf-minus";
    return made;
  };
  const head = columns.map((label) => element("th", { scope: "col" }, element("bdi", {}, label)));
  const body = rows.map(({ label, cells }) =>
    element("tr", {}, element("th", { scope: "row" }, element("bdi", {}, label)), cells.map(cell)),
  );
  return element(
    "div",
    { className: "gf-scroll", tabindex: "0", role: "group" },
    element(
      "table",
      { className: `gf-table gf-coloured ${className}` },
      element("thead", {}, element("tr", {}, element("td"), head)),
      element("tbody", {}, body),
    ),
  );
}
