// The panel "Arithmetic": the computation of the chosen number, with each of its inputs one click away.
import { NO_CHANGES } from "../engine/changes.js";
import { numberText } from "../engine/number_text.js";
import { hasHeads, pointText } from "../engine/model.js";
import { attentionName, FAMILIES, messageOf, rowWords } from "./app.js";
import { placeOf } from "./map.js";
import { arithmetic } from "../engine/arithmetic.js";
import { button, comeIntoView, element, refill, tokenElement } from "./dom.js";
import { latestOnly } from "./latest.js";
import { contestBetween } from "./scenes.js";
import { snippet } from "../engine/snippet.js";

/**
 * @import { Cell, Explanation, Part, Tensor } from "../engine/types.js"
 * @import { App } from "./app.js"
 * @import { Child, SomeChanges, Token, Translated } from "./types.js"
 */

/**
 * The visited cells, the index of the present one, and how the terms are shown.
 * @typedef {object} State
 * @property {Cell[]} visited
 * @property {number} at
 * @property {boolean} bySize
 * @property {boolean} all
 * @property {() => Promise<void>} draw
 */

/** @typedef {"left" | "right" | "value"} Column */

const LARGEST_TERMS = 12;
const MOST_TERMS = 600;
/** @type {Column[]} */
const SIDES = ["left", "right", "value"];
const WORD = /^(?!<.*>$).*[\p{L}\p{N}]/u;

/**
 * Returns the panel as an element.
 * @param {App} app
 */
export function createNumbersPanel(app) {
  const holder = element("div", { className: "gf-numbers" });
  const draw = latestOnly(app.signal, prepared, show);
  /** @type {State} */
  const state = { visited: [], at: -1, bySize: true, all: false, draw };

  async function prepared() {
    return app.ui.panel === "numbers" ? contentOf(app, state) : null;
  }

  /** @param {Child[] | null} content */
  function show(content) {
    if (!content) return;
    const focused = document.activeElement;
    const wasInside = holder.contains(focused);
    refill(holder, content);
    if (wasInside) sameButton(holder, focused?.textContent ?? "")?.focus();
  }

  const approach = () => app.ui.selected && comeIntoView(holder, ".gf-stage", app.t("page.up.picture"));
  app.on("result", draw);
  app.on("ui", (keys) => {
    if (keys.includes("selected")) {
      remember(state, app.ui.selected);
      draw().then(approach); // a link may select nothing
    } else if (keys.includes("panel") || keys.includes("language")) draw();
  });
  remember(state, app.ui.selected);
  draw();
  return holder;
}

/**
 * Returns the redrawn button that had the focus, or the heading if a different number is shown.
 * @param {HTMLElement} holder
 * @param {string} text
 * @returns {HTMLElement | null}
 */
function sameButton(holder, text) {
  /** @type {NodeListOf<HTMLElement>} */
  const found = holder.querySelectorAll(":is(.gf-controls, .gf-copy) button:not(:disabled)");
  return [...found].find((one) => one.textContent === text) ?? holder.querySelector("h3");
}

/**
 * Adds a cell to the visited cells, and drops the cells that going back has left.
 * @param {State} state
 * @param {Cell | null} cell
 */
function remember(state, cell) {
  const last = state.visited[state.at];
  if (!cell || (cell.name === last?.name && String(cell.index) === String(last.index))) return;
  state.visited = [...state.visited.slice(0, ++state.at), cell];
}

/**
 * @param {App} app
 * @param {State} state
 * @returns {Promise<Child[]>}
 */
async function contentOf(app, state) {
  const { selected } = app.ui;
  if (!selected) return invitation(app);
  try {
    const made = await arithmetic(app, selected.name, selected.index);
    const parts = [
      walk(app, state, selected),
      chain(app, made),
      heading(app, made),
      working(app, made, state),
    ];
    return [...parts, copying(app, made)];
  } catch (error) {
    const problem = element("p", { className: "gf-error" }, messageOf(error));
    return [walk(app, state, selected), problem, ...(await invitation(app))];
  }
}

// Before a number is chosen

/**
 * @param {App} app
 * @returns {Promise<Child[]>}
 */
async function invitation(app) {
  const { hypothesis, outputTokens } = app.result.current;
  const word = Math.max(
    outputTokens.findLastIndex((token) => WORD.test(token)),
    0,
  );
  const last = [word, hypothesis.ids[word]];
  /** @type {(text: string, name: string, index: number[]) => HTMLButtonElement} */
  const ask = (text, name, index) => button(text, () => app.select(name, index), { className: "gf-example" });
  return [
    element("h3", { tabindex: "-1" }, app.t("numbers.title")),
    element("p", {}, app.t("numbers.invite")),
    element("p", { className: "gf-note" }, app.t("numbers.begin")),
    await lookExample(app, ask),
    ask(app.t("numbers.next", outputTokens[word]), app.engine.live === false ? "log_probs" : "logits", last),
    app.engine.live !== false && tasks(app, (await contested(app)) ?? word),
  ];
}

/**
 * The contested place of each translation, which is searched for once, however often the panel is drawn.
 * @type {WeakMap<Translated, Promise<number | null>>}
 */
const contestedPlaces = new WeakMap();

/**
 * Returns the place of the word that differs in the translation of the story's other sentence, such as a pronoun; null
 * if the page shows a different sentence.
 * @param {App} app
 */
function contested(app) {
  const { reference } = app.result;
  const found = contestedPlaces.get(reference) ?? contestedIn(app, reference);
  contestedPlaces.set(reference, found);
  found.catch(() => contestedPlaces.delete(reference));
  return found;
}

/**
 * @param {App} app
 * @param {Translated} reference
 */
async function contestedIn(app, reference) {
  const { pair } = app.payload.story;
  if (!pair.includes(app.sentence)) return null;
  const other = pair.find((text) => text !== app.sentence) ?? "";
  const made = await app.translated(other, "", app.engineChanges(NO_CHANGES));
  return contestBetween(reference, made)?.prefixIds.length ?? null;
}

/**
 * Returns cards with things to do, each of which leads there with one click.
 * @param {App} app
 * @param {number} word - A word of the translation.
 */
function tasks(app, word) {
  const { layer, head } = app.ui.heads.cross;
  const cross = attentionName(FAMILIES[1], layer);
  const change = (/** @type {SomeChanges} */ changes) => () =>
    app.attempt(async () => {
      await app.set(changes);
      app.show({ panel: "changes" });
    });
  const second = app.payload.examples.find((text) => text !== app.sentence);
  /** @type {Record<string, () => unknown>} */
  const cards = {
    why: () => app.show({ word, panel: "why" }),
    decides: () => app.show({ story: 3 }),
    head: change({ ablated: { [cross]: [head] } }),
    mistake: change({ mistakes: ["no_scale"] }),
    ...(second && { pair: () => app.show({ beside: second }) }),
  };
  const about = [app.result.current.outputTokens[word], placeOf(app, layer, head), second ?? ""];
  return element(
    "div",
    { className: "gf-cards", role: "group", "aria-label": app.t("tasks.title") },
    element("h3", {}, app.t("tasks.title")),
    Object.entries(cards).map(([id, act]) =>
      button([element("strong", {}, app.t(`tasks.${id}`)), app.t(`tasks.${id}.about`, ...about)], act),
    ),
  );
}

/**
 * Returns a button that asks about the largest weight of cross-attention between two words.
 * @param {App} app
 * @param {(text: string, name: string, index: number[]) => Child} ask
 */
async function lookExample(app, ask) {
  const { trace, sourceTokens, targetTokens } = app.result.current;
  /** @type {Cell | null} */
  let found = null;
  let largest = 0;
  for (let layer = 0; layer < app.config.decoder_layers; layer++) {
    const point = `${attentionName(FAMILIES[1], layer)}.weights`;
    const {
      shape: [, rows, columns],
      data,
    } = await trace.get(point);
    for (const [place, weight] of data.entries()) {
      if (weight <= largest) continue;
      const [t, s] = [Math.floor(place / columns) % rows, place % columns];
      if (!WORD.test(targetTokens[t]) || !WORD.test(sourceTokens[s])) continue;
      found = { name: point, index: [Math.floor(place / (rows * columns)), t, s] };
      largest = weight;
    }
  }
  if (!found) return null;
  const { name, index } = found;
  return ask(app.t("numbers.why", targetTokens[index[1]], sourceTokens[index[2]]), name, index);
}

// The place of the cell

/**
 * Returns the buttons that go back and forward among the visited cells.
 * @param {App} app
 * @param {State} state
 * @param {Cell} cell
 */
function walk(app, state, { name, index }) {
  const go = (/** @type {number} */ step) => () => {
    state.at += step;
    if (state.at < 0) return app.show({ selected: null }); // the questions to begin with
    app.select(state.visited[state.at].name, state.visited[state.at].index);
  };
  const whole = () =>
    app.show({ stage: "point", point: { name, head: hasHeads(app.config, name) ? index[0] : 0 } });
  return element(
    "div",
    { className: "gf-controls" },
    button(`← ${app.t("numbers.back")}`, go(-1), { disabled: state.at < 0 }),
    button(`${app.t("numbers.forward")} →`, go(1), { disabled: state.at >= state.visited.length - 1 }),
    button(app.t("numbers.whole"), whole),
  );
}

const pointOf = (/** @type {string} */ name) => name.replace(/^.*\./, "");

/**
 * Returns the points of the cell's sub-layer in order; each links to the cell of the same word and head.
 * @param {App} app
 * @param {Cell} cell
 */
function chain(app, { name, index }) {
  const { trace } = app.result.current;
  const part = name.slice(0, name.length - pointOf(name).length);
  const links = trace.names
    .filter((other) => other === part + pointOf(other))
    .map((other) => {
      const go = async () => app.select(other, indexIn(other, await trace.get(other), name, index));
      const link = button(pointOf(other), go, { className: "gf-link" });
      if (other === name) link.setAttribute("aria-current", "step");
      return element("li", {}, link);
    });
  return element("ol", { className: "gf-chain", "aria-label": app.t("numbers.chain") }, links);
}

/**
 * Returns the index of the same word and head in another point, as far as that point has them.
 * @param {string} other
 * @param {Tensor} tensor - Of the other point.
 * @param {string} name
 * @param {number[]} index
 */
function indexIn(other, { shape }, name, index) {
  const [t, c] = index.slice(-2);
  const row = /\.(key|value)$/.test(other) && /\.(scores|weights)$/.test(name) ? c : t;
  const wanted = [index.length === 3 ? index[0] : 0, row, c].slice(-shape.length);
  return wanted.map((place, axis) => Math.min(place, shape[axis] - 1));
}

/**
 * @param {App} app
 * @param {Explanation} made
 * @returns {Child[]}
 */
function heading(app, { name, index, result }) {
  const [t, c] = index.slice(-2);
  const { rows, columns } = app.labels(name);
  const word = columns?.[c] ?? (/^log/.test(name) ? app.engine.tokens("target", [c])[0] : null);
  const layer = /\.layers\.(\d+)\./.exec(name)?.[1];
  const head = hasHeads(app.config, name) ? index[0] : null;
  const place = placeOf(app, layer === undefined ? null : Number(layer), head);
  return [
    element(
      "h3",
      { tabindex: "-1" },
      element(
        "span",
        { className: "gf-told" },
        place && place + app.t("word.colon"),
        tokenElement(rows[t]),
        " → ",
        word === null ? app.t("numbers.dimension", c) : tokenElement(word),
        ` ${numberText(result, 2)}`,
      ),
      element("code", {}, `${pointOf(name)}[${index.join(", ")}]`),
      " = ",
      element("span", { className: "gf-result" }, numberText(result, 4)),
    ),
    element("p", { className: "gf-note" }, partText(app, name)),
    element("p", { className: "gf-note" }, app.t(pointText(app.config, name))),
  ];
}

/**
 * Returns a point's part of the model, in words.
 * @param {App} app
 * @param {string} name
 */
function partText(app, name) {
  const [, stack, sublayer] = /^(\w+)\.layers\.\d+\.(\w+)\./.exec(name) ?? [];
  if (!stack) return name;
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === sublayer);
  return app.t(family ? `family.${family.id}` : `numbers.feed.${stack}`);
}

// The computation

/**
 * @param {App} app
 * @param {Explanation} made
 * @param {State} state
 * @returns {Child[]}
 */
function working(app, made, state) {
  const { formula, numbers, notes, parts, steps } = made;
  const off = Math.abs(made.difference);
  const rounding = app.engine.live === false ? "numbers.rounding.recorded" : "numbers.rounding";
  const terms = parts.length > 0 && termsTable(app, made, state);
  const beside = steps.length > 0 && stepsTable(app, steps);
  return [
    ...notes.map((note) => element("p", { className: "gf-change" }, note)),
    formula &&
      element(
        "p",
        { className: "gf-formula" },
        element("code", {}, formula),
        numbers && element("code", {}, `= ${numbers}`),
      ),
    ...(made.stepsFirst ? [beside, terms] : [terms, beside]),
    off > 1e-12 && element("p", { className: "gf-note" }, app.t(rounding, off.toExponential(0))),
  ];
}

/** @param {Part} part */
const valueOf = ({ value, left }) => value ?? left ?? 0;
const sizeOf = (/** @type {Part} */ part) => Math.abs(valueOf(part));

/**
 * @param {App} app
 * @param {Explanation} made
 * @param {State} state
 */
function termsTable(app, { parts, columns, total }, state) {
  const largest = Math.max(...parts.map(sizeOf), 1e-30);
  const signed = parts.some((part) => valueOf(part) < 0);
  const sides = SIDES.filter((side) => parts.some((part) => part[side] !== undefined));
  const ordered = [...parts.keys()].sort((a, b) => sizeOf(parts[b]) - sizeOf(parts[a]));
  const places = ordered.slice(0, state.all ? MOST_TERMS : LARGEST_TERMS);
  if (!state.bySize) places.sort((a, b) => a - b);
  const rest = total ? ordered.slice(places.length) : [];
  const sum = rest.reduce((added, place) => added + valueOf(parts[place]), 0);
  const toggle = (/** @type {"bySize" | "all"} */ option) =>
    button(
      app.t(`numbers.${option}`),
      () => {
        state[option] = !state[option];
        state.draw();
      },
      { pressed: state[option] },
    );
  const heads = [columns[0], ...sides.map((side) => columns[SIDES.indexOf(side) + 1])];
  const head = heads.map((text) => (text ? element("th", { scope: "col" }, text) : element("td")));
  const rows = places.map((place) => termRow(app, parts[place], sides, largest));
  if (rest.length > 0) {
    const others = app.t("numbers.rest", rest.length);
    rows.push(totalRow(others, numberText(sum, 5), sides, barCell(sum, largest)));
  }
  const foot = total && totalRow(total.label, numberText(total.value, 4), sides, element("td"));
  return element(
    "div",
    {},
    element(
      "div",
      { className: "gf-controls" },
      parts.length > 3 && toggle("bySize"),
      parts.length > LARGEST_TERMS && toggle("all"),
    ),
    element(
      "table",
      { className: signed ? "gf-terms" : "gf-terms gf-positive" },
      columns.length > 0 && element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, rows),
      foot && element("tfoot", {}, foot),
    ),
  );
}

/**
 * @param {App} app
 * @param {Part} part
 * @param {Column[]} sides
 * @param {number} largest
 */
function termRow(app, part, sides, largest) {
  const { from = [], label, own } = part;
  const linked = part.left === undefined ? ["value"] : SIDES;
  const light = () => app.light(from.flatMap((cell) => tokensAtCell(app, cell)));
  const dark = () => app.light([]);
  const number = (/** @type {Column} */ side) =>
    numberLink(app, part[side], from[linked.indexOf(side)], side === "value" ? 5 : 4);
  const listeners = { onpointerenter: light, onpointerleave: dark, onfocusin: light, onfocusout: dark };
  return element(
    "tr",
    { className: own ? "gf-own" : "", ...listeners },
    element("th", { scope: "row" }, element("bdi", {}, label)),
    sides.map((side) => element("td", {}, number(side))),
    barCell(valueOf(part), largest),
  );
}

/**
 * @param {string} label
 * @param {string} text
 * @param {Column[]} sides
 * @param {Child} bar
 */
function totalRow(label, text, sides, bar) {
  const head = element("th", { scope: "row", colSpan: sides.length }, label);
  return element("tr", {}, head, element("td", {}, text), bar);
}

/**
 * Returns a bar that extends from the middle to the right for positive numbers, to the left for negative ones.
 * @param {number} value
 * @param {number} largest
 */
export function barCell(value, largest) {
  const share = (50 * Math.abs(value)) / largest;
  const style = `width: ${Math.min(share, 50)}%; ${value < 0 ? "right" : "left"}: 50%`;
  const bar = element("i", { className: value < 0 ? "gf-minus" : "", style });
  return element("td", { className: "gf-bar", "aria-hidden": "true" }, bar);
}

/**
 * Returns a number; if it is a cell, as a button that opens its own arithmetic.
 * @param {App} app
 * @param {number | undefined} value
 * @param {Cell | undefined} cell
 */
function numberLink(app, value, cell, decimals = 4) {
  const text = numberText(value, decimals);
  if (!cell) return text;
  const title = `${cell.name}[${cell.index.join(", ")}]`;
  return button(text, () => app.select(cell.name, cell.index), { className: "gf-link", title });
}

/**
 * Returns the tokens of a cell's row and column.
 * @param {App} app
 * @param {Cell} cell
 * @returns {Token[]}
 */
function tokensAtCell(app, { name, index }) {
  const { rowSide, columnSide } = app.labels(name);
  const [row, column] = index.slice(-2);
  const token = { side: rowWords(rowSide), position: row };
  return columnSide ? [token, { side: columnSide, position: column }] : [token];
}

/**
 * @param {App} app
 * @param {Explanation["steps"]} steps
 */
function stepsTable(app, steps) {
  const row = (/** @type {Explanation["steps"][number]} */ { label, text, value, from = [] }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, label),
      element("td", {}, text),
      element("td", {}, "= ", numberLink(app, value, from[0])),
    );
  return element("table", { className: "gf-terms gf-steps" }, element("tbody", {}, steps.map(row)));
}

/**
 * Returns the buttons that copy the arithmetic as Python, or show it selected where copying is not allowed.
 * @param {App} app
 * @param {Explanation} made
 */
function copying(app, made) {
  const { code } = made;
  if (!code) return null;
  const said = element("p", { className: "gf-note", role: "status" });
  const area = element("textarea", {
    className: "gf-mono",
    readOnly: true,
    rows: 8,
    hidden: true,
    "aria-label": "Python",
  });
  const copy = (/** @type {"numpy" | "torch"} */ library, /** @type {string} */ label) =>
    button(app.t("numbers.copy", label), async () => {
      area.value = snippet({ ...made, code }, library);
      area.hidden = true;
      try {
        await navigator.clipboard.writeText(area.value);
        said.textContent = app.t("numbers.copied", label);
      } catch {
        area.hidden = false;
        area.select();
        said.textContent = app.t("numbers.copyByHand");
      }
    });
  const buttons = [copy("numpy", "NumPy"), " ", copy("torch", "PyTorch")];
  return element("div", { className: "gf-copy" }, buttons, said, area);
}
