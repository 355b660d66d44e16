// The panel "Layers": what each layer already knows (logit lens), attention followed back through the layers (rollout),
// where another sentence changes the translation (patches), and what feed-forward units and matrices look like.
import { contestOf } from "../engine/contest.js";
import {
  activeUnits,
  crossRollout,
  logitLens,
  patchSweep,
  readOutWeights,
  rollout,
  sideOf,
  streamName,
} from "../engine/lens.js";
import { attentionNames, layerNames } from "../engine/model.js";
import { BLANK_BELOW, numberText } from "../engine/number_text.js";
import { Run } from "../engine/run.js";
import { largestAt, rowOf } from "../engine/tensor.js";
import { hasAny, messageOf } from "./app.js";
import { likestExample } from "./changes/patches.js";
import { colourPlace, coloursAt, colourTable, pixelled } from "./colours.js";
import { button, chooser, element, refill, tokenElement } from "./dom.js";
import { latestOnly } from "./latest.js";
import { barTable, collected } from "./why_panel.js";

/**
 * @import { Stack, Tensor } from "../engine/types.js"
 * @import { App } from "./app.js"
 * @import { Child } from "./types.js"
 */

const MOST_ROWS = 512; // of a drawn matrix

/** A cell of a coloured table: `share` in [−1, 1] is the strength of its colour. */
/** @typedef {{label: Child, share: number, exact: number, title?: string}} Cell */

/**
 * The reader's choices in the panel.
 * @typedef {object} Choices
 * @property {Stack} lens
 * @property {"encoder" | "cross" | "decoder"} rollout
 * @property {Stack} sweep
 * @property {string} sentence - the other sentence of the sweep; "" = the most similar example
 * @property {string} network - the feed-forward network of the units
 * @property {number} position
 * @property {string} matrix
 */

/** Makes a section's content for its element; `redraw` makes it anew. */
/** @typedef {(app: App, chosen: Choices, redraw: () => void, place: Element) => Promise<Child[]>} Made */

/**
 * Returns the panel as an element.
 * @param {App} app
 */
export function createLayersPanel(app) {
  /** @type {Choices} */
  const chosen = {
    lens: "decoder",
    rollout: "cross",
    sweep: "encoder",
    sentence: "",
    network: `decoder.layers.${app.config.decoder_layers - 1}.feed_forward`,
    position: 0,
    matrix: "source.tokens.weight",
  };
  const isLive = app.engine.live !== false;
  return element(
    "div",
    { className: "gf-layers" },
    isLive && section(app, chosen, "lens", lensParts, true),
    section(app, chosen, "rollout", rolloutParts, !isLive),
    isLive && section(app, chosen, "sweep", sweepParts),
    isLive && section(app, chosen, "units", unitParts),
    isLive && section(app, chosen, "matrix", matrixParts),
  );
}

/**
 * Returns a section, whose content is made while it is open.
 * @param {App} app
 * @param {Choices} chosen
 * @param {string} name
 * @param {Made} made
 */
function section(app, chosen, name, made, open = false) {
  const [summary, about, body] = [element("summary"), element("p", { className: "gf-note" }), element("div")];
  const details = element("details", { open, ontoggle: () => draw() }, summary, about, body);
  async function prepared() {
    summary.textContent = app.t(`layers.${name}`);
    about.textContent = app.t(`layers.${name}.about`);
    if (app.ui.panel !== "layers" || !details.open) return null;
    try {
      return await made(app, chosen, () => draw(), body);
    } catch (error) {
      return [element("p", { className: "gf-error" }, messageOf(error))];
    }
  }
  const draw = latestOnly(app.signal, prepared, (/** @type {Child[] | null} */ parts) => {
    if (parts) refill(body, parts);
  });
  app.on("result", () => draw());
  app.on("ui", (keys) => hasAny(keys, "panel", "language", "theme") && draw());
  draw();
  return details;
}

/** @type {Made} */
async function lensParts(app, chosen, redraw) {
  const { current } = app.result;
  const { trace, changes } = current;
  const stack = chosen.lens;
  const side = sideOf(stack);
  const run = await runWith(app, readOutWeights(app.config, stack));
  const layers = layersOf(app, stack);
  /** @type {Cell[][]} */
  const said = []; // by layer
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

/**
 * Returns the cell of the likeliest word of a row of log probabilities.
 * @param {App} app
 * @param {"source" | "target"} side
 * @param {Float32Array} row
 * @returns {Cell}
 */
function wordCell(app, side, row) {
  const ids = largestAt(row, 5);
  const tokens = app.engine.tokens(side, ids);
  const p = (/** @type {number} */ at) => Math.exp(row[ids[at]]);
  const title = tokens.map((token, at) => `${token} ${numberText(p(at), 3)}`).join("\n");
  return { label: element("bdi", {}, tokens[0]), share: p(0), exact: p(0), title };
}

/** @type {Made} */
async function rolloutParts(app, chosen, redraw) {
  const { current } = app.result;
  const weights = (/** @type {RegExp} */ kind) =>
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
  const tokens = (/** @type {boolean} */ isSource) => current[isSource ? "sourceTokens" : "targetTokens"];
  const rows = tokens(kind === "encoder").map((token, row) => ({
    label: token,
    cells: numberCells(table, row),
  }));
  const kinds = /** @type {const} */ (["cross", "encoder", "decoder"]);
  const pairs = kinds.map((one) => /** @type {const} */ ([one, app.t(`layers.rollout.${one}`)]));
  const choose = chooser(app.t("layers.rollout"), pairs, kind, (value) => {
    chosen.rollout = value;
    redraw();
  });
  return [choose, colouredTable(tokens(kind !== "decoder"), rows, "gf-upright")];
}

/**
 * Returns the cells of a table's row of numbers from 0 to 1.
 * @param {Tensor} table
 * @param {number} row
 * @returns {Cell[]}
 */
function numberCells(table, row) {
  return Array.from(rowOf(table, row), (value) => ({
    label: value < BLANK_BELOW ? "" : numberText(value, 2),
    share: value,
    exact: value,
  }));
}

/** @type {Made} */
async function sweepParts(app, chosen, redraw) {
  const result = element("div", { role: "status" });
  const field = element("input", { type: "text", dir: "auto", spellcheck: false });
  field.value = chosen.sentence || likestExample(app);
  field.setAttribute("aria-label", app.t("layers.sweep.sentence"));
  let running = new AbortController();
  const onsubmit = (/** @type {Event} */ event) => {
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

/**
 * Measures each patch, and shows the table.
 * @param {App} app
 * @param {Choices} chosen
 * @param {HTMLElement} holder
 * @param {AbortSignal} signal
 */
async function sweep(app, { sweep: stack, sentence }, holder, signal) {
  const { current } = app.result;
  const changes = await app.resolved();
  const other = await app.translated(sentence, "", app.engineChanges({ ...changes, patches: [] }));
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
  const layers = layersOf(app, stack);
  const steps = patchSweep(app.engine, { ...contest, cases: [mine] }, donor, stack, length, changes);
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

/** @type {Made} */
async function unitParts(app, chosen, redraw) {
  const { trace, sourceTokens, targetTokens } = app.result.current;
  const stacks = /** @type {const} */ (["decoder", "encoder"]);
  const names = stacks.flatMap((stack) =>
    layerNames(stack, app.layersOf({ stack })).map((name) => `${name}.feed_forward`),
  );
  const { network } = chosen;
  const stack = network.startsWith("encoder") ? "encoder" : "decoder";
  const tokens = stack === "encoder" ? sourceTokens : targetTokens;
  const position = Math.min(chosen.position, tokens.length - 1);
  const contract = `${network}.contract.weight`;
  const run = await runWith(app, [...readOutWeights(app.config, stack), contract]);
  const active = rowOf(await trace.get(`${network}.activated`), position);
  const units = activeUnits(run, stack, run.weight(contract), active);
  const set = (/** @type {Partial<Choices>} */ values) => {
    Object.assign(chosen, values);
    redraw();
  };
  const networks = names.map((name) => /** @type {const} */ ([name, networkName(app, name)]));
  const places = tokens.map((token, at) => /** @type {const} */ ([String(at), `${at} ${token}`]));
  return [
    element(
      "p",
      { className: "gf-row" },
      chooser(app.t("layers.network"), networks, network, (value) => set({ network: value })),
      chooser(app.t("layers.position"), places, String(position), (value) =>
        set({ position: Number(value) }),
      ),
    ),
    barTable(
      app.t("layers.units.active", tokens[position]),
      app.t("layers.units.about"),
      units.map(({ unit, activation, ids }) => [
        [`${unit}: `, app.engine.tokens(sideOf(stack), ids).map((token) => [tokenElement(token), " "])],
        { size: activation, text: numberText(activation, 2), exact: activation },
      ]),
    ),
  ];
}

/** @type {Made} */
async function matrixParts(app, chosen, redraw, place) {
  const of = (/** @type {string} */ name, /** @type {string[]} */ ...parts) =>
    parts.map((part) => `${name}.${part}.weight`);
  const layers = /** @type {const} */ (["encoder", "decoder"]).flatMap((stack) =>
    layerNames(stack, app.layersOf({ stack })),
  );
  const names = [
    "source.tokens.weight",
    ...attentionNames(app.config).flatMap((name) => of(name, "input_projection", "output_projection")),
    ...layers.flatMap((name) => of(`${name}.feed_forward`, "expand", "contract")),
    "output.weight",
  ];
  const pairs = names.map((name) => /** @type {const} */ ([name, name.replace(/\.weight$/, "")]));
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

/**
 * Returns a run of the model, under the current changes, that has these weights.
 * @param {App} app
 * @param {string[]} names
 */
async function runWith(app, names) {
  const { changes } = app.result.current;
  if (app.engine.live === false) throw new Error(app.t("why.recorded"));
  return new Run(await app.engine.modelWith(names, changes.checkpoint), changes);
}

/**
 * Returns the layers of a stack, from −1, the input of the first, to the last.
 * @param {App} app
 * @param {Stack} stack
 */
function layersOf(app, stack) {
  return Array.from({ length: app.layersOf({ stack }) + 1 }, (_, at) => at - 1);
}

/**
 * @param {App} app
 * @param {number} layer
 */
function layerName(app, layer) {
  return layer < 0 ? app.t("layers.input") : app.t("layers.layer", layer);
}

/**
 * @param {App} app
 * @param {string} network
 */
function networkName(app, network) {
  const [stack, , layer] = network.split(".");
  return app.t("changes.place", app.t(`layers.rollout.${stack}`), layer);
}

/**
 * Returns the drop-down of a section for the encoder or the decoder.
 * @param {App} app
 * @param {"lens" | "sweep"} key
 * @param {Choices} chosen
 * @param {() => void} redraw
 */
function stackChooser(app, key, chosen, redraw) {
  const stacks = /** @type {const} */ (["decoder", "encoder"]);
  const pairs = stacks.map((stack) => /** @type {const} */ ([stack, app.t(`layers.${stack}`)]));
  return chooser(app.t("layers.stack"), pairs, chosen[key], (stack) => {
    chosen[key] = stack;
    redraw();
  });
}

/**
 * Returns a table with a row for each token and a column for each layer.
 * @param {App} app
 * @param {number[]} layers
 * @param {string[]} tokens
 * @param {(at: number) => Cell[]} cellsOf
 */
function layerTable(app, layers, tokens, cellsOf) {
  const columns = layers.map((layer) => layerName(app, layer));
  return colouredTable(
    columns,
    tokens.map((label, at) => ({ label, cells: cellsOf(at) })),
  );
}

/**
 * Returns a table of coloured cells.
 * @param {string[]} columns
 * @param {{label: string, cells: Cell[]}[]} rows
 */
function colouredTable(columns, rows, className = "") {
  const cell = (/** @type {Cell} */ { label, share, exact, title = "" }) => {
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
