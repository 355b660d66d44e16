// One tensor in detail, with its numbers: any named point of the forward pass, one head at a time.
import { hasHeads, pointText } from "../engine/model.ts";
import { numberText, percentText } from "../engine/number_text.ts";
import { rowWords } from "./heads.ts";
import { button, chooser, element, refill } from "./dom.ts";
import { createGrid, legend } from "./grid.ts";
import { latestOnly } from "./latest.ts";
import { Lines } from "./lines.ts";
import { blockedText } from "./picture_svg.ts";
import { elementSvg, gridSvg, saveMenu } from "./take_away.ts";
import { attentionPicture, faceSwitch, largestSize, sayLines } from "./map.ts";

import type { Tensor } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { State } from "./state.ts";
import type { Looks, Picture, Token } from "./types.ts";

const WORDS_SHOWN = 16;
const TABLE_CELLS = 1500;

/** What the view is drawn from. */
const DRAWN: (keyof State)[] = [
  "result",
  "compared",
  "layout",
  "language",
  "theme",
  "stage",
  "face",
  "point",
  "selected",
];

/** Returns the view of one point as an element. */
export function createPointView(app: App) {
  const bar = element("div", { className: "gf-controls" });
  const meaning = element("p", { className: "gf-note" });
  const grid = createGrid({
    roomy: true,
    hovered: (cell) => app.light(cell ? tokensOf(app, ...cell) : []),
    chosen: (row, column) => app.select(app.state.point.name, indexOf(row, column)),
  });
  const lines = new Lines({
    hovered: (at) => app.light(at ? wordsOf(app, at) : []),
    chosen: (row, column) => app.select(app.state.point.name, indexOf(row, column)),
  });
  const table = element("div", { className: "gf-scroll" });
  const words = wordChooser(app, () => draw());
  let columnsShown: number[] | null = null;
  let asTable = false;

  function indexOf(row: number, column: number) {
    const { name, head } = app.state.point;
    const place = columnsShown ? columnsShown[column] : column;
    return hasHeads(app.config, name) ? [head, row, place] : [row, place];
  }

  async function prepared() {
    const { stage, point } = app.state;
    if (stage !== "point") return null;
    return { point, tensor: await app.value(point.name) };
  }

  function show(made: { point: Looks["point"]; tensor: Tensor } | null) {
    if (!made) return;
    const { point, tensor } = made;
    const { name } = point;
    const head = Math.min(point.head, hasHeads(app.config, name) ? tensor.shape[0] - 1 : 0);
    const picture = /\.(scores|weights)$/.test(name)
      ? attentionPicture(app, name, tensor, head)
      : tensorPicture(app, name, tensor, head, words.shown);
    words.element.hidden = !picture.columnsShown;
    columnsShown = picture.columnsShown ?? null;
    fillBar(picture, tensor);
    meaning.textContent = `${app.t(pointText(app.config, name))}${picture.columnsShown ? recordedText(app) : ""}`;
    const asLines = app.state.face === "lines" && name.endsWith(".weights");
    lines.element.hidden = asTable || !asLines;
    if (!lines.element.hidden) lines.draw(picture, sayLines(app, picture));
    grid.element.hidden = asTable || asLines || picture.columns === 0; // no word is like the typed one
    if (!grid.element.hidden) grid.draw(picture);
    refill(table, asTable ? asRows(app, picture) : null);
  }
  const draw = latestOnly(app.signal, prepared, show);

  function fillBar(picture: Picture, tensor: Tensor) {
    const { name, head } = app.state.point;
    const cut = name.lastIndexOf(".");
    const parts = partsOf(app.result.current.trace.names);
    const part = name.slice(0, Math.max(cut, 0));
    const namesOf = (part: string) => parts.get(part) ?? [];
    const jump = (next: string) => app.show({ point: { name: next, head } });
    refill(
      bar,
      button(`← ${app.t("point.back")}`, () => app.show({ stage: "map" })),
      chooser(
        app.t("point.part"),
        [...parts.keys()].map((key) => [key, key || app.t("point.end")]),
        part,
        (next) => jump(nearestPoint(namesOf(next), name)),
      ),
      chooser(
        app.t("point.point"),
        namesOf(part).map((full) => [full, full.slice(part.length ? part.length + 1 : 0)]),
        name,
        jump,
      ),
      hasHeads(app.config, name) &&
        chooser(
          app.t("word.head"),
          Array.from({ length: tensor.shape[0] }, (_, at) => [String(at), `${app.t("word.head")} ${at}`]),
          String(head),
          (next) => app.show({ point: { name, head: Number(next) } }),
        ),
      element("code", {}, tensor.shape.join(" × ")),
      name.endsWith(".weights") && faceSwitch(app),
      button(
        app.t("point.table"),
        () => {
          asTable = !asTable;
          draw();
        },
        { pressed: asTable },
      ),
      legend(picture.scale, typeof picture.largest === "number" ? picture.largest : 1),
      !asTable &&
        saveMenu(app, hasHeads(app.config, name) ? `${name}.${head}` : name, () =>
          lines.element.hidden
            ? gridSvg(app, picture, grid.element)
            : elementSvg(app, lines.element, picture.label),
        ),
    );
  }

  app.on(DRAWN, () => draw());
  app.on(["lit"], ({ lit: tokens }) => {
    if (app.state.stage !== "point") return;
    const labels = app.labels(app.state.point.name);
    const on = (side: Token["side"]) =>
      tokens.filter((token) => token.side === side).map((token) => token.position);
    const lit = {
      rows: on(rowWords(labels.rowSide)),
      columns: labels.columnSide ? on(labels.columnSide) : [],
    };
    if (grid.element.hidden) lines.light(lit);
    else grid.light(lit);
  });
  return element(
    "section",
    { className: "gf-point", "aria-label": app.t("point.title") },
    bar,
    meaning,
    words.element,
    element("div", { className: "gf-scroll" }, grid.element, lines.element),
    table,
  );
}

function tokensOf(app: App, row: number, column: number): Token[] {
  const { rowSide, columnSide } = app.labels(app.state.point.name);
  const token = { side: rowWords(rowSide), position: row };
  return columnSide ? [token, { side: columnSide, position: column }] : [token];
}

function wordsOf(app: App, { axis, place: position }: { axis: "rows" | "columns"; place: number }): Token[] {
  const { rowSide, columnSide = rowSide } = app.labels(app.state.point.name);
  return [{ side: axis === "rows" ? rowWords(rowSide) : columnSide, position }];
}

/** Returns the names of points by their part of the model. */
function partsOf(names: string[]) {
  const parts: Map<string, string[]> = new Map();
  for (const name of names) {
    const part = name.slice(0, Math.max(name.lastIndexOf("."), 0));
    parts.set(part, [...(parts.get(part) ?? []), name]);
  }
  return parts;
}

function nearestPoint(names: string[], like: string) {
  const ending = like.slice(like.lastIndexOf("."));
  return names.find((name) => name.endsWith(ending)) ?? names[0];
}

/**
 * Returns a row with which the reader moves through a vocabulary, or finds a word: its element, and the function that
 * returns the ids of the words to show.
 */
function wordChooser(app: App, changed: () => void) {
  let first = 0;
  const field = element("input", { type: "search", size: 12 });
  const place = element("span", { role: "status" });
  const move = (by: number) => () => {
    first += by;
    changed();
  };
  const [back, on] = [button("‹", move(-WORDS_SHOWN)), button("›", move(WORDS_SHOWN))];
  field.addEventListener("input", () => {
    first = 0;
    changed();
  });
  function shown(tensor: Tensor) {
    const typed = field.value.trim().toLowerCase();
    const order = bestFirst(tensor);
    const tokens = typed ? app.engine.tokens("target", order) : [];
    const found = typed ? order.filter((_, at) => tokens[at].toLowerCase().includes(typed)) : order;
    first = Math.min(Math.max(first, 0), Math.max(found.length - 1, 0));
    const end = Math.min(first + WORDS_SHOWN, found.length);
    for (const [control, label] of [
      [field, "point.find"],
      [back, "point.before"],
      [on, "point.after"],
    ] as const)
      control.setAttribute("aria-label", app.t(label));
    field.placeholder = app.t("point.find");
    place.textContent = app.t("point.range", found.length && first + 1, end, found.length);
    [back.disabled, on.disabled] = [first === 0, end >= found.length];
    return found.slice(first, end);
  }
  return {
    element: element("div", { className: "gf-controls", hidden: true }, field, back, place, on),
    shown,
  };
}

const orders: WeakMap<Float32Array, number[]> = new WeakMap();

/** Returns the ids of all words, in the order of their highest number at any position; without words that have none. */
function bestFirst({ shape, data }: Tensor) {
  const width = shape[shape.length - 1];
  const known = orders.get(data);
  if (known) return known;
  const best = new Float32Array(width).fill(-Infinity);
  for (let at = 0; at < data.length; at++) if (data[at] > best[at % width]) best[at % width] = data[at];
  const order = [...best.keys()].filter((id) => best[id] > -Infinity).sort((a, b) => best[b] - best[a]);
  orders.set(data, order);
  return order;
}

/** `wordsOf`: returns the words to show of a vocabulary. */
function tensorPicture(
  app: App,
  name: string,
  tensor: Tensor,
  head: number,
  wordsOf: (tensor: Tensor) => number[],
): Picture {
  const { shape, data } = tensor;
  const [rows, width] = shape.slice(-2);
  const labels = app.labels(name);
  const vocabulary = name === "logits" || name === "log_probs";
  const offset = hasHeads(app.config, name) ? head * rows * width : 0;
  const columnsShown = vocabulary ? wordsOf(tensor) : null;
  const columns = columnsShown?.length ?? width;
  const values = columnsShown ? picked(data, rows, width, columnsShown) : data;
  const columnLabels = columnsShown
    ? app.engine.tokens("target", columnsShown)
    : Array.from({ length: width }, (_, at) => String(at));
  const start = columnsShown ? 0 : offset;
  const { selected } = app.state;
  const probabilities = name === "log_probs";
  const { words } = app.result.current.trace;
  const missing = (row: number, column: number) =>
    vocabulary && words !== null && Number.isNaN(values[row * columns + column]);
  const picture: Picture = {
    values: probabilities ? values.map(Math.exp) : values,
    ...(probabilities && { numbers: values }),
    offset: start,
    rows,
    columns,
    columnsShown,
    columnLabels,
    rowLabels: labels.rows,
    blocked: () => false,
    missing,
    scale: probabilities ? "probability" : "signed",
    largest: probabilities ? 1 : largestSize(values, start, rows * columns),
    label: app.t("grid.label", name, head, rows, columns),
    chosen: null,
    describe: (row, column) =>
      app.t(
        "grid.cell",
        labels.rows[row],
        columnLabels[column],
        app.t("word.value"),
        missing(row, column)
          ? app.t("point.wordMissing")
          : numberText(values[start + row * columns + column], 4, true),
      ),
  };
  if (selected?.name === name && (!hasHeads(app.config, name) || selected.index[0] === head)) {
    const [row, column] = selected.index.slice(-2);
    const place = columnsShown ? columnsShown.indexOf(column) : column;
    if (place >= 0) picture.chosen = [row, place];
  }
  return picture;
}

/**
 * Returns a sentence about the words that a recording leaves out, and where they are likeliest; "" if there are none.
 */
function recordedText(app: App) {
  const { trace, targetTokens } = app.result.current;
  if (!trace.words) return "";
  const { ids, rest } = trace.words;
  const most = rest.reduce((best, share, row) => (share > rest[best] ? row : best), 0);
  return ` ${app.t("point.words", ids[0].length, percentText(rest[most]), targetTokens[most])}`;
}

function picked(data: Float32Array, rows: number, width: number, columns: number[]) {
  return Float32Array.from(
    { length: rows * columns.length },
    (_, at) => data[Math.floor(at / columns.length) * width + columns[at % columns.length]],
  );
}

/** Returns a picture as a table of numbers, with a limited number of columns. */
function asRows(app: App, picture: Picture) {
  const columns = Math.max(1, Math.min(picture.columns, Math.floor(TABLE_CELLS / picture.rows)));
  const cell = (row: number, column: number) =>
    picture.blocked(row, column)
      ? blockedText(picture.scale)
      : picture.missing?.(row, column)
        ? ""
        : numberText(
            (picture.numbers ?? picture.values)[picture.offset + row * picture.columns + column],
            3,
            picture.scale === "signed",
          );
  const header = picture.columnLabels
    .slice(0, columns)
    .map((label) => element("th", { scope: "col" }, element("bdi", {}, label)));
  const rows = picture.rowLabels.map((label, row) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("bdi", {}, label)),
      Array.from({ length: columns }, (_, column) => element("td", {}, cell(row, column))),
    ),
  );
  const rest = picture.columns - columns;
  return [
    element(
      "table",
      { className: "gf-table" },
      element("caption", {}, picture.label),
      element("thead", {}, element("tr", {}, element("td"), header)),
      element("tbody", {}, rows),
    ),
    rest > 0 && element("p", { className: "gf-note" }, app.t("point.cut", rest)),
  ];
}
