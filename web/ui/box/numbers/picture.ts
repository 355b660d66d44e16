// A tensor as a picture: one of its matrices, a text for each cell, and the layout of labels and cells.
import { times } from "../../../engine/tensor.ts";
import { hasHeads } from "../../../engine/model.ts";
import { decimalsOf, fixedText, numberText, probabilityText } from "../../../engine/number_text.ts";
import { LABEL, inkOn, mixed } from "./brush.ts";
import { tokenName } from "../../app/wording.ts";

import type { Cell, Tensor } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { Colours } from "../../app/types.ts";
import type { Brush } from "./brush.ts";

/** One matrix of a tensor. */
export interface Picture {
  label: string;
  rows: string[];
  columns: string[];
  /** The dimension or word id of each column. */
  ids: number[];
  /** Whether only some of the columns are included. */
  isWindow: boolean;
  /** The colour of the value 1 if all values are shares from 0 to 1; null if the values may have any size and sign. */
  hue: "--src" | "--tgt" | null;
  chosen: readonly [row: number, column: number];
  /** Returns the number of a cell; NaN if it was not recorded. */
  value(row: number, column: number): number;
  /** Returns how strongly a cell is coloured, from 0 to 1; the strength is negative for a negative number. */
  strength(row: number, column: number): number;
  /** Returns the number as text for the cell; "" leaves the cell blank. */
  text(row: number, column: number): string;
  isBlocked(row: number, column: number): boolean;
  describe(row: number, column: number): string;
}

/** The layout of a picture, in px. */
export interface Sheet {
  left: number;
  top: number;
  /** The size of a cell. */
  width: number;
  height: number;
  isNumbered: boolean;
  whole: { width: number; height: number };
}

const STEPS = 64; // shades of a colour
const ROW = 24;
const [LEAST, MOST, MOST_NUMBERED] = [5, 18, 64]; // px: the width of a cell
const MOST_LEFT = 170;
const SAMPLED = 40; // rows and columns whose numbers are measured to find the width of a cell
const WIDEST = 12_000; // px: browsers limit the size of a canvas

/** Returns the picture of the matrix that contains a cell. `words`: the ids of the columns, if only some are shown. */
export function pictureOf(app: App, { name, index }: Cell, tensor: Tensor, words: number[] | null): Picture {
  const { shape, data } = tensor;
  const [height, width] = shape.slice(-2);
  const { rows: tokens, columns, rowSide, columnSide } = app.labels(name);
  const start = index.length > 2 ? index[0] * height * width : 0;
  const ids = words ?? times(width, (at) => at);
  const value = (row: number, column: number) => data[start + row * width + ids[column]];
  const kind = /\.(scores|weights)$/.exec(name)?.[1];
  const isBlocked = kind ? blockedIn(app, name, kind === "scores", value) : () => false;
  const hue =
    kind === "weights" || name === "log_probs" ? (columnSide === "source" ? "--src" : "--tgt") : null;
  const shown = data.subarray(start, start + height * width);
  const largest = largestOf(shown);
  const decimals = decimalsOf([largest]);
  const share = name === "log_probs" ? Math.exp : (one: number) => one;
  const peaks =
    hue && app.state.contrast
      ? tokens.map((_, row) => largestOf(ids.map((_, at) => share(value(row, at)))))
      : null;
  const written = (one: number) =>
    kind === "weights"
      ? numberText(one, 3)
      : name === "log_probs"
        ? numberText(one, 2)
        : fixedText(one, decimals);
  const rows = kind ? rowLabels(app, tokens, rowSide) : tokens.map((token) => tokenName(token, app.t));
  const names = words
    ? app.engine.tokens("target", words)
    : (columns?.map((token) => tokenName(token, app.t)) ?? ids.map(String));
  return {
    label: `${name}${hasHeads(app.config, name) ? `${app.t("word.comma")}${app.t("word.head")} ${index[0]}` : ""}: ${height} × ${names.length}`,
    rows,
    columns: names,
    ids,
    isWindow: words !== null,
    hue,
    chosen: [index[index.length - 2], ids.indexOf(index[index.length - 1])],
    value,
    strength: (row, column) =>
      hue ? share(value(row, column)) / (peaks?.[row] ?? 1) : value(row, column) / largest,
    text(row, column) {
      const one = value(row, column);
      if (isBlocked(row, column)) return kind === "scores" ? "–∞" : "0";
      return Number.isNaN(one) ? "" : kind === "weights" ? probabilityText(one) : written(one);
    },
    isBlocked,
    describe(row, column) {
      const one = value(row, column);
      const said = isBlocked(row, column)
        ? app.t("grid.blocked")
        : Number.isNaN(one)
          ? app.t("point.wordMissing")
          : written(one);
      const word = kind === "scores" ? "word.score" : kind ? "word.weight" : "word.value";
      return app.t("grid.cell", rows[row], names[column], app.t(word), said);
    },
  };
}

/**
 * Returns a function that tells whether a cell is shown as blocked: the mask hides the cell, and no planted mistake
 * gives the cell a weight in spite of the mask.
 */
function blockedIn(app: App, name: string, isScore: boolean, value: Picture["value"]) {
  const mask = app.mask(name.replace(/\.\w+$/, ""));
  return (row: number, column: number) =>
    mask.data[row * mask.columns + column] === 0 && (isScore || value(row, column) === 0);
}

/**
 * Returns the labels of an attention's rows. A row of the decoder is labelled with the word that it reads and the word
 * that it writes.
 */
function rowLabels(app: App, tokens: string[], side: string) {
  const { outputTokens } = app.result.current;
  return tokens.map((token, row) => {
    const read = tokenName(token, app.t);
    return side === "target" && row in outputTokens
      ? app.t("grid.writes", read, tokenName(outputTokens[row], app.t))
      : read;
  });
}

/** Returns the largest absolute value among the finite numbers. */
export function largestOf(numbers: ArrayLike<number>) {
  let largest = 1e-9;
  for (let at = 0; at < numbers.length; at++)
    if (Math.abs(numbers[at]) > largest && Number.isFinite(numbers[at])) largest = Math.abs(numbers[at]);
  return largest;
}

/** Returns the layout of a picture for this width. `measure` returns the width of a text. */
export function sheetOf(picture: Picture, room: number, measure: (text: string) => number): Sheet {
  const { rows, columns, isWindow, text } = picture;
  const longest = (labels: string[]) => Math.max(8, ...labels.map(measure));
  const left = Math.min(MOST_LEFT, longest(rows)) + 10;
  const widest =
    longest(
      rows.slice(0, SAMPLED).flatMap((_, row) => columns.slice(0, SAMPLED).map((_, at) => text(row, at))),
    ) + 8;
  const fit = Math.max((room - left - 2) / columns.length, isWindow ? widest : 0);
  const isNumbered = fit >= widest;
  const most = isNumbered ? MOST_NUMBERED : MOST;
  const width = Math.max(LEAST, Math.min(fit, most, WIDEST / columns.length));
  const top = isAcross(columns, width, measure) ? 22 : Math.min(96, longest(columns)) + 12;
  const whole = { width: left + width * columns.length + 2, height: top + ROW * rows.length + 2 };
  return { left, top, width, height: ROW, isNumbered, whole };
}

/**
 * Returns whether the column labels fit side by side. A label that is a number always counts as fitting, because some
 * of the numbers may be left out.
 */
function isAcross(columns: string[], width: number, measure: (text: string) => number) {
  return columns.every((label) => /^\d+$/.test(label) || measure(label) < width - 4);
}

/** Draws the cells of a picture. */
export function paintCells(brush: Brush, picture: Picture, sheet: Sheet, colours: Colours) {
  const { left, top, width, height, isNumbered } = sheet;
  const ground = picture.hue ?? "--ink";
  const depth = picture.hue ? 1 : 0.3;
  const shades = times(STEPS + 1, (at) => mixed(colours, "--card", ground, (depth * at) / STEPS));
  const shade = (strength: number) => shades[Math.round(Math.min(1, Math.abs(strength)) * STEPS)];
  const [plain, soft, hair] = ["--ink2", "--ink3", "--hair"].map(colours);
  brush.box(left, top, width * picture.columns.length, height * picture.rows.length, colours("--card"));
  picture.rows.forEach((_, row) => {
    const y = top + row * height;
    picture.columns.forEach((_, column) => {
      const x = left + column * width;
      const [strength, text] = [picture.strength(row, column), isNumbered ? picture.text(row, column) : ""];
      const middle = [x + width / 2, y + height / 2] as const;
      if (picture.isBlocked(row, column)) {
        brush.box(x, y, width, height, colours("--blocked"));
        brush.line(x, y + height, x + width, y, hair);
        return brush.words(...middle, text, soft, { align: "center" });
      }
      if (!strength || Number.isNaN(strength))
        return text && brush.words(...middle, text, plain, { align: "center" });
      if (picture.hue || isNumbered) {
        brush.box(x, y, width, height, shade(strength));
        if (text) brush.words(...middle, text, inkOn(shade(strength)), { align: "center" });
        return;
      }
      // a bar that starts in the middle of the row: upwards for positive numbers
      const tall = Math.max(0.5, Math.abs(strength) * (height / 2 - 2));
      brush.box(x + 0.5, strength < 0 ? middle[1] : middle[1] - tall, Math.max(1, width - 1), tall, plain);
    });
    if (row) brush.line(left, y, left + width * picture.columns.length, y, hair);
  });
  brush.frame(
    left - 0.5,
    top - 0.5,
    width * picture.columns.length + 1,
    height * picture.rows.length + 1,
    hair,
  );
}

/** Draws the labels. The labels of the highlighted row and column are bold, and are never left out. */
export function paintLabels(
  brush: Brush,
  { rows, columns }: Picture,
  { left, top, width, height }: Sheet,
  colours: Colours,
  measure: (text: string) => number,
  lit: readonly [row: number, column: number] | null,
) {
  const [plain, strong] = [colours("--ink2"), colours("--ink")];
  rows.forEach((label, row) => {
    const bold = row === lit?.[0];
    brush.words(
      left - 8,
      top + (row + 0.5) * height,
      fitted(label, left - 10, measure),
      bold ? strong : plain,
      { align: "right", bold },
    );
  });
  const across = isAcross(columns, width, measure);
  const step = Math.ceil((across ? 28 : LABEL) / width);
  columns.forEach((label, column) => {
    const [bold, x] = [column === lit?.[1], left + (column + 0.5) * width];
    if (!bold && (column % step || (lit && Math.abs(column - lit[1]) < step))) return;
    const fill = bold ? strong : plain;
    if (across) brush.words(x, top - 11, label, fill, { align: "center", bold });
    else brush.words(x, top - 7, fitted(label, top - 10, measure), fill, { isTurned: true, bold });
  });
}

/** Returns a text, shortened to fit. */
function fitted(text: string, room: number, measure: (text: string) => number) {
  if (measure(text) <= room) return text;
  const letters = Array.from(text);
  while (letters.length > 1 && measure(`${letters.join("")}…`) > room) letters.pop();
  return `${letters.join("")}…`;
}
