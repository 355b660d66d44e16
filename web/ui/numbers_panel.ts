// The panel "Arithmetic": the computation of the chosen number, with each of its inputs one click away.
import { NO_CHANGES } from "../engine/changes.ts";
import { numberText } from "../engine/number_text.ts";
import { hasHeads, pointText } from "../engine/model.ts";
import { messageOf } from "./app.ts";
import { FAMILIES, attentionName, rowWords } from "./heads.ts";
import { engineChanges } from "./sentences.ts";
import { placeOf } from "./map.ts";
import { arithmetic } from "../engine/arithmetic.ts";
import { button, comeIntoView, element, refill, tokenElement } from "./dom.ts";
import { latestOnly } from "./latest.ts";
import { contestBetween } from "./stage/opening.ts";
import { snippet } from "../engine/snippet.ts";

import type { Cell, Explanation, Part, Tensor } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Child, SomeChanges, Token, Translated } from "./types.ts";

/** The visited cells, the index of the present one, and how the terms are shown. */
interface State {
  visited: Cell[];
  at: number;
  bySize: boolean;
  all: boolean;
  draw: () => Promise<void>;
}

type Column = "left" | "right" | "value";

const LARGEST_TERMS = 12;
const MOST_TERMS = 600;
const SIDES: Column[] = ["left", "right", "value"];
const WORD = /^(?!<.*>$).*[\p{L}\p{N}]/u;

/** Returns the panel as an element. */
export function createNumbersPanel(app: App) {
  const holder = element("div", { className: "gf-numbers" });
  const draw = latestOnly(app.signal, prepared, show);
  const state: State = { visited: [], at: -1, bySize: true, all: false, draw };

  async function prepared() {
    return app.state.panel === "numbers" ? contentOf(app, state) : null;
  }

  function show(content: Child[] | null) {
    if (!content) return;
    const focused = document.activeElement;
    const wasInside = holder.contains(focused);
    refill(holder, content);
    if (wasInside) sameButton(holder, focused?.textContent ?? "")?.focus();
  }

  const approach = () => app.state.selected && comeIntoView(holder, ".gf-stage", app.t("page.up.picture"));
  app.on(["result", "selected", "panel", "language"], ({ selected }, changed) => {
    if (!changed.has("selected")) return draw();
    remember(state, selected);
    draw().then(approach); // a link may select nothing
  });
  remember(state, app.state.selected);
  draw();
  return holder;
}

/** Returns the redrawn button that had the focus, or the heading if a different number is shown. */
function sameButton(holder: HTMLElement, text: string): HTMLElement | null {
  const found: NodeListOf<HTMLElement> = holder.querySelectorAll(
    ":is(.gf-controls, .gf-copy) button:not(:disabled)",
  );
  return [...found].find((one) => one.textContent === text) ?? holder.querySelector("h3");
}

/** Adds a cell to the visited cells, and drops the cells that going back has left. */
function remember(state: State, cell: Cell | null) {
  const last = state.visited[state.at];
  if (!cell || (cell.name === last?.name && String(cell.index) === String(last.index))) return;
  state.visited = [...state.visited.slice(0, ++state.at), cell];
}

async function contentOf(app: App, state: State): Promise<Child[]> {
  const { selected } = app.state;
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

async function invitation(app: App): Promise<Child[]> {
  const { hypothesis, outputTokens } = app.result.current;
  const word = Math.max(
    outputTokens.findLastIndex((token) => WORD.test(token)),
    0,
  );
  const last = [word, hypothesis.ids[word]];
  const ask = (text: string, name: string, index: number[]): HTMLButtonElement =>
    button(text, () => app.select(name, index), { className: "gf-example" });
  return [
    element("h3", { tabindex: "-1" }, app.t("numbers.title")),
    element("p", {}, app.t("numbers.invite")),
    element("p", { className: "gf-note" }, app.t("numbers.begin")),
    await lookExample(app, ask),
    ask(app.t("numbers.next", outputTokens[word]), app.engine.live === false ? "log_probs" : "logits", last),
    app.engine.live !== false && tasks(app, (await contested(app)) ?? word),
  ];
}

/** The contested place of each translation, which is searched for once, however often the panel is drawn. */
const contestedPlaces: WeakMap<Translated, Promise<number | null>> = new WeakMap();

/**
 * Returns the place of the word that differs in the translation of the other sentence of the pair, such as a pronoun; null
 * if the page shows a different sentence.
 */
function contested(app: App) {
  const { reference } = app.result;
  const found = contestedPlaces.get(reference) ?? contestedIn(app, reference);
  contestedPlaces.set(reference, found);
  found.catch(() => contestedPlaces.delete(reference));
  return found;
}

async function contestedIn(app: App, reference: Translated) {
  const { pair } = app.payload.story;
  if (!pair.includes(app.state.sentence)) return null;
  const other = pair.find((text) => text !== app.state.sentence) ?? "";
  const made = await app.translated(other, "", engineChanges(NO_CHANGES));
  return contestBetween(reference, made)?.prefixIds.length ?? null;
}

/** Returns cards with things to do, each of which leads there with one click. `word`: a word of the translation. */
function tasks(app: App, word: number) {
  const { layer, head } = app.state.heads.cross;
  const cross = attentionName(FAMILIES[1], layer);
  const change = (changes: SomeChanges) => () =>
    app.attempt(async () => {
      await app.set(changes);
      app.show({ panel: "changes" });
    });
  const second = app.payload.examples.find((text) => text !== app.state.sentence);
  const cards: Record<string, () => unknown> = {
    why: () => app.show({ word, panel: "why" }),
    decides: () => app.show({ view: "stage", chapter: 7, act: 0 }),
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

/** Returns a button that asks about the largest weight of cross-attention between two words. */
async function lookExample(app: App, ask: (text: string, name: string, index: number[]) => Child) {
  const { trace, sourceTokens, targetTokens } = app.result.current;
  let found: Cell | null = null;
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

/** Returns the buttons that go back and forward among the visited cells. */
function walk(app: App, state: State, { name, index }: Cell) {
  const go = (step: number) => () => {
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

const pointOf = (name: string) => name.replace(/^.*\./, "");

/** Returns the points of the cell's sub-layer in order; each links to the cell of the same word and head. */
function chain(app: App, { name, index }: Cell) {
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
 * Returns the index of the same word and head in another point, as far as that point has them. `tensor`: of the other
 * point.
 */
function indexIn(other: string, { shape }: Tensor, name: string, index: number[]) {
  const [t, c] = index.slice(-2);
  const row = /\.(key|value)$/.test(other) && /\.(scores|weights)$/.test(name) ? c : t;
  const wanted = [index.length === 3 ? index[0] : 0, row, c].slice(-shape.length);
  return wanted.map((place, axis) => Math.min(place, shape[axis] - 1));
}

function heading(app: App, { name, index, result }: Explanation): Child[] {
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

/** Returns a point's part of the model, in words. */
function partText(app: App, name: string) {
  const [, stack, sublayer] = /^(\w+)\.layers\.\d+\.(\w+)\./.exec(name) ?? [];
  if (!stack) return name;
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === sublayer);
  return app.t(family ? `family.${family.id}` : `numbers.feed.${stack}`);
}

// The computation

function working(app: App, made: Explanation, state: State): Child[] {
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

const valueOf = ({ value, left }: Part) => value ?? left ?? 0;
const sizeOf = (part: Part) => Math.abs(valueOf(part));

function termsTable(app: App, { parts, columns, total }: Explanation, state: State) {
  const largest = Math.max(...parts.map(sizeOf), 1e-30);
  const signed = parts.some((part) => valueOf(part) < 0);
  const sides = SIDES.filter((side) => parts.some((part) => part[side] !== undefined));
  const ordered = [...parts.keys()].sort((a, b) => sizeOf(parts[b]) - sizeOf(parts[a]));
  const places = ordered.slice(0, state.all ? MOST_TERMS : LARGEST_TERMS);
  if (!state.bySize) places.sort((a, b) => a - b);
  const rest = total ? ordered.slice(places.length) : [];
  const sum = rest.reduce((added, place) => added + valueOf(parts[place]), 0);
  const toggle = (option: "bySize" | "all") =>
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

function termRow(app: App, part: Part, sides: Column[], largest: number) {
  const { from = [], label, own } = part;
  const linked = part.left === undefined ? ["value"] : SIDES;
  const light = () => app.light(from.flatMap((cell) => tokensAtCell(app, cell)));
  const dark = () => app.light([]);
  const number = (side: Column) =>
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

function totalRow(label: string, text: string, sides: Column[], bar: Child) {
  const head = element("th", { scope: "row", colSpan: sides.length }, label);
  return element("tr", {}, head, element("td", {}, text), bar);
}

/** Returns a bar that extends from the middle to the right for positive numbers, to the left for negative ones. */
export function barCell(value: number, largest: number) {
  const share = (50 * Math.abs(value)) / largest;
  const style = `width: ${Math.min(share, 50)}%; ${value < 0 ? "right" : "left"}: 50%`;
  const bar = element("i", { className: value < 0 ? "gf-minus" : "", style });
  return element("td", { className: "gf-bar", "aria-hidden": "true" }, bar);
}

/** Returns a number; if it is a cell, as a button that opens its own arithmetic. */
function numberLink(app: App, value: number | undefined, cell: Cell | undefined, decimals = 4) {
  const text = numberText(value, decimals);
  if (!cell) return text;
  const title = `${cell.name}[${cell.index.join(", ")}]`;
  return button(text, () => app.select(cell.name, cell.index), { className: "gf-link", title });
}

/** Returns the tokens of a cell's row and column. */
function tokensAtCell(app: App, { name, index }: Cell): Token[] {
  const { rowSide, columnSide } = app.labels(name);
  const [row, column] = index.slice(-2);
  const token = { side: rowWords(rowSide), position: row };
  return columnSide ? [token, { side: columnSide, position: column }] : [token];
}

function stepsTable(app: App, steps: Explanation["steps"]) {
  const row = ({ label, text, value, from = [] }: Explanation["steps"][number]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, label),
      element("td", {}, text),
      element("td", {}, "= ", numberLink(app, value, from[0])),
    );
  return element("table", { className: "gf-terms gf-steps" }, element("tbody", {}, steps.map(row)));
}

/** Returns the buttons that copy the arithmetic as Python, or show it selected where copying is not allowed. */
function copying(app: App, made: Explanation) {
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
  const copy = (library: "numpy" | "torch", label: string) =>
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
