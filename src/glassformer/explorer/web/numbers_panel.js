// The panel "Arithmetic": how the chosen number was made, with the numbers it was made from one click away.
import { attentionName, FAMILIES } from "./app.js";
import { arithmetic } from "./arithmetic.js";
import { button, element, numberText, refill, tokenElement } from "./dom.js";
import { hasHeads } from "./point_view.js";
import { snippet } from "./snippet.js";

const LARGEST_TERMS = 12;
const MOST_TERMS = 600;
const SIDES = ["left", "right", "value"];
const WORD = /^(?!<.*>$).*[\p{L}\p{N}]/u;

/** Returns the panel as an element. */
export function createNumbersPanel(app) {
  const holder = element("div", { className: "gf-numbers" });
  const state = { visited: [], at: -1, bySize: true, all: false, draw };
  let drawn = 0;

  async function draw() {
    if (app.ui.panel !== "numbers" || !app.result) return;
    const turn = ++drawn;
    const content = await contentOf(app, state);
    if (turn !== drawn || app.signal.aborted) return;
    const focused = holder.contains(document.activeElement) && document.activeElement.textContent;
    refill(holder, content);
    if (focused !== false) sameButton(holder, focused).focus();
  }

  /** Shows the arithmetic where it stands below the picture, as on a phone. */
  function comeIntoView() {
    const { top, bottom } = holder.getBoundingClientRect();
    if (top > innerHeight - 150 || bottom < 0) holder.scrollIntoView();
  }
  app.on("result", draw);
  app.on("ui", (keys) => {
    if (keys.includes("selected")) {
      remember(state, app.ui.selected);
      draw().then(comeIntoView);
    } else if (keys.includes("panel") || keys.includes("language")) draw();
  });
  remember(state, app.ui.selected);
  draw();
  return holder;
}

/** Returns the button that had the focus, anew; or the heading, where another number is shown. */
function sameButton(holder, text) {
  const buttons = [...holder.querySelectorAll(":is(.gf-controls, .gf-copy) button:not(:disabled)")];
  return buttons.find((one) => one.textContent === text) ?? holder.querySelector("h3");
}

/** Adds a cell to those that were looked at, in place of what had been left by going back. */
function remember(state, cell) {
  const last = state.visited[state.at];
  if (!cell || (cell.name === last?.name && String(cell.index) === String(last.index))) return;
  state.visited = [...state.visited.slice(0, ++state.at), cell];
}

async function contentOf(app, state) {
  const { selected } = app.ui;
  if (!selected) return invitation(app);
  try {
    const made = await arithmetic(app, selected.name, selected.index);
    const parts = [walk(app, state), chain(app, made), heading(app, made), working(app, made, state)];
    return [...parts.flat(), copying(app, made)];
  } catch (error) {
    const problem = element("p", { className: "gf-error" }, error.message);
    return [walk(app, state), problem, ...(await invitation(app))];
  }
}

// Nothing is chosen yet

async function invitation(app) {
  const { hypothesis, outputTokens, trace } = app.result.current;
  const word = Math.max(
    outputTokens.findLastIndex((token) => WORD.test(token)),
    0,
  );
  const last = [word, hypothesis.ids[word]];
  const ask = (text, name, index) => button(text, () => app.select(name, index), { className: "gf-example" });
  return [
    element("h3", { tabindex: "-1" }, app.t("numbers.title")),
    element("p", {}, app.t("numbers.invite")),
    element("p", { className: "gf-note" }, app.t("numbers.begin")),
    await lookExample(app, ask),
    trace.has("logits") && ask(app.t("numbers.next", outputTokens[word]), "logits", last),
  ];
}

/** Returns a button that asks about the largest weight of cross-attention between two words. */
async function lookExample(app, ask) {
  const { trace, sourceTokens, targetTokens } = app.result.current;
  let largest = 0,
    name = null,
    index = null;
  for (let layer = 0; layer < app.config.decoder_layers; layer++) {
    const point = `${attentionName(FAMILIES[1], layer)}.weights`;
    if (!trace.has(point)) continue;
    const {
      shape: [, rows, columns],
      data,
    } = await trace.get(point);
    for (const [place, weight] of data.entries()) {
      if (weight <= largest) continue;
      const [t, s] = [Math.floor(place / columns) % rows, place % columns];
      if (!WORD.test(targetTokens[t]) || !WORD.test(sourceTokens[s])) continue;
      [largest, name, index] = [weight, point, [Math.floor(place / (rows * columns)), t, s]];
    }
  }
  return name && ask(app.t("numbers.why", targetTokens[index[1]], sourceTokens[index[2]]), name, index);
}

// Where the cell stands

/** Returns the buttons that go back and forward among the cells that were looked at. */
function walk(app, state) {
  const { name, index } = app.ui.selected;
  const go = (step) => () => {
    state.at += step;
    app.select(state.visited[state.at].name, state.visited[state.at].index);
  };
  const whole = () => app.show({ stage: "point", point: { name, head: hasHeads(name) ? index[0] : 0 } });
  return element(
    "div",
    { className: "gf-controls" },
    button(`← ${app.t("numbers.back")}`, go(-1), { disabled: state.at < 1 }),
    button(`${app.t("numbers.forward")} →`, go(1), { disabled: state.at >= state.visited.length - 1 }),
    button(app.t("numbers.whole"), whole),
  );
}

const pointOf = (name) => name.replace(/^.*\./, "");

/** Returns the points of the cell's sub-layer in order; each leads to the cell of the same word and head. */
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

/** Returns the index in another point that belongs to the same word and head, as far as there is one. */
function indexIn(other, { shape }, name, index) {
  const [t, c] = index.slice(-2);
  const row = /\.(key|value)$/.test(other) && /\.(scores|weights)$/.test(name) ? c : t;
  const wanted = [hasHeads(name) ? index[0] : 0, row, c].slice(-shape.length);
  return wanted.map((place, axis) => Math.min(place, shape[axis] - 1));
}

function heading(app, { name, index, result }) {
  const [t, c] = index.slice(-2);
  const { rows, columns } = app.labels(name);
  const word = columns?.[c] ?? (/^log/.test(name) ? app.engine.tokens("target", [c])[0] : null);
  return [
    element(
      "h3",
      { tabindex: "-1" },
      element("code", {}, `${pointOf(name)}[${index.join(", ")}]`),
      " = ",
      element("span", { className: "gf-result" }, numberText(result, 4)),
    ),
    element(
      "p",
      {},
      element("span", { className: "gf-note" }, `${placeText(app, name, index)} · `),
      tokenElement(rows[t]),
      " → ",
      word === null ? app.t("numbers.dimension", c) : tokenElement(word),
    ),
    element("p", { className: "gf-note" }, app.t(`point.${pointOf(name)}`)),
  ];
}

/** Returns in words which part of the model a point belongs to. */
function placeText(app, name, index) {
  const [, stack, layer, sublayer] = /^(\w+)\.layers\.(\d+)\.(\w+)\./.exec(name) ?? [];
  if (!stack) return name;
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === sublayer);
  const title = app.t(family ? `family.${family.id}` : `numbers.feed.${stack}`);
  const head = hasHeads(name) ? ` · ${app.t("word.head")} ${index[0]}` : "";
  return `${title} · ${app.t("word.layer")} ${layer}${head}`;
}

// How it was made

function working(app, made, state) {
  const { formula, numbers, notes, parts, steps } = made;
  const off = Math.abs(made.difference);
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
    off > 1e-12 && element("p", { className: "gf-note" }, app.t("numbers.rounding", off.toExponential(0))),
  ];
}

const sizeOf = ({ value, left }) => Math.abs(value ?? left);

function termsTable(app, { parts, columns, total }, state) {
  const largest = Math.max(...parts.map(sizeOf), 1e-30);
  const signed = parts.some(({ value, left }) => (value ?? left) < 0);
  const sides = SIDES.filter((side) => parts.some((part) => part[side] !== undefined));
  const ordered = [...parts.keys()].sort((a, b) => sizeOf(parts[b]) - sizeOf(parts[a]));
  const places = ordered.slice(0, state.all ? MOST_TERMS : LARGEST_TERMS);
  if (!state.bySize) places.sort((a, b) => a - b);
  const rest = total ? ordered.slice(places.length) : [];
  const sum = rest.reduce((added, place) => added + parts[place].value, 0);
  const toggle = (option) =>
    button(
      app.t(`numbers.${option}`),
      () => {
        state[option] = !state[option];
        state.draw();
      },
      { pressed: state[option] },
    );
  const heads = ["label", ...sides].map((side) => columns[SIDES.indexOf(side) + 1]);
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

function termRow(app, part, sides, largest) {
  const { from = [], label, own } = part;
  const linked = part.left === undefined ? ["value"] : SIDES;
  const light = () => app.light(from.flatMap((cell) => tokensAtCell(app, cell)));
  const dark = () => app.light([]);
  const number = (side) => numberLink(app, part[side], from[linked.indexOf(side)], side === "value" ? 5 : 4);
  const listeners = { onpointerenter: light, onpointerleave: dark, onfocusin: light, onfocusout: dark };
  return element(
    "tr",
    { className: own ? "gf-own" : "", ...listeners },
    element("th", { scope: "row" }, element("bdi", {}, label)),
    sides.map((side) => element("td", {}, number(side))),
    barCell(part.value ?? part.left, largest),
  );
}

function totalRow(label, text, sides, bar) {
  const head = element("th", { scope: "row", colSpan: sides.length }, label);
  return element("tr", {}, head, element("td", {}, text), bar);
}

/** Returns a bar from the middle: to the right for positive numbers, to the left for negative ones. */
function barCell(value, largest) {
  const share = (50 * Math.abs(value)) / largest;
  const style = `width: ${Math.min(share, 50)}%; ${value < 0 ? "right" : "left"}: 50%`;
  const bar = element("i", { className: value < 0 ? "gf-minus" : "", style });
  return element("td", { className: "gf-bar", "aria-hidden": "true" }, bar);
}

/** Returns a number, as a button that leads to its own arithmetic if it is a cell. */
function numberLink(app, value, cell, decimals = 4) {
  const text = numberText(value, decimals);
  if (!cell) return text;
  const title = `${cell.name}[${cell.index.join(", ")}]`;
  return button(text, () => app.select(cell.name, cell.index), { className: "gf-link", title });
}

/** Returns the tokens at which a cell stands. */
function tokensAtCell(app, { name, index }) {
  const { rowSide, columnSide } = app.labels(name);
  const row = { side: rowSide, position: index.at(-2) };
  return columnSide ? [row, { side: columnSide, position: index.at(-1) }] : [row];
}

function stepsTable(app, steps) {
  const row = ({ label, text, value, from = [] }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, label),
      element("td", {}, text),
      element("td", {}, "= ", numberLink(app, value, from[0])),
    );
  return element("table", { className: "gf-terms gf-steps" }, element("tbody", {}, steps.map(row)));
}

/** Returns the buttons that copy the arithmetic as Python; what may not be copied is shown and selected. */
function copying(app, made) {
  if (!made.code) return null;
  const said = element("p", { className: "gf-note", role: "status" });
  const area = element("textarea", {
    className: "gf-mono",
    readOnly: true,
    rows: 8,
    hidden: true,
    "aria-label": "Python",
  });
  const copy = (library, label) =>
    button(app.t("numbers.copy", label), async () => {
      area.value = snippet(made, library);
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
