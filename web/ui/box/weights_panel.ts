// The weights of an opened box as pictures with one pixel for each weight, and one number worked out from a row or
// column of weights.
import { numberText } from "../../engine/number_text.ts";
import { tensor } from "../../engine/tensor.ts";
import { fanOf, lineFromBelow, lowEdge, numberX } from "./lines.ts";
import { gap, over, stripBox, sumBelow } from "./rows.ts";
import { element } from "../app/dom.ts";
import { createPixels } from "./pixels.ts";
import { largestSize } from "./strips.ts";
import {
  ASKED,
  KEYED,
  insideOf,
  neighbours,
  signsOf,
  stepButton,
  stepName,
  stopButton,
} from "./zoom_parts.ts";

import type { Explanation, Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Box, Row } from "./rows.ts";
import type { Child } from "../app/types.ts";
import type { Tell } from "./strips.ts";

/** A weight matrix of a box, or the part of such a matrix that belongs to one head. */
export interface Matrix<Kind> {
  /** The point whose numbers are computed with this matrix. */
  kind: Kind;
  /** The subscript of the matrix's symbol W. */
  sub: string;
  /** The weights: a row for each number of the point or, if `isTurned` is true, a column for each number. */
  weights: Tensor;
  isTurned: boolean;
}

/** The matrices of a box, and a number that is computed with one of the matrices. */
export interface Weights<Kind> {
  box: string;
  matrices: Matrix<Kind>[];
  kind: Kind;
  /** The index of the row or column that yields the number; null if no row or column does. */
  at: number | null;
  /**
   * The names of the vector that is multiplied and of the result, and whether the multiplied vector belongs to the
   * open word.
   */
  names: { x: string; result: string };
  isAsked: boolean;
  result: { numbers: Float32Array; at: number };
  made: Explanation;
  open(kind: Kind, at: number): unknown;
}

const [NAME, BETWEEN, LARGEST_CELL] = [26, 24, 12];
/** The width in px that the panel needs for other things than the pictures, and the height; the least width of a panel. */
const [BESIDE, AROUND, SMALLEST] = [186, 310, 908];
const THICK = [32, 40] as const;

/** Returns some rows of a matrix or, if `isTurned` is true, some columns as rows. */
export function partOf({ shape, data }: Tensor, from: number, count: number, isTurned = false) {
  const [across, down] = isTurned ? [shape[1], 1] : [1, shape[1]];
  const width = shape[Number(!isTurned)];
  const part = tensor([count, width]);
  part.data.forEach((_, i) => {
    part.data[i] = data[(from + Math.floor(i / width)) * down + (i % width) * across];
  });
  return part;
}

/** Returns the size of a picture's cell, in whole px if there is enough room. */
function cellSize(room: number, count: number) {
  const size = Math.min(LARGEST_CELL, room / count);
  return size < 1 ? size : Math.floor(size);
}

/** Returns the rows of the weights. */
export function weightsBox<Kind extends string>(
  app: App,
  made: Weights<Kind>,
  room: HTMLElement,
  tell: Tell,
): Box {
  const { box, matrices, kind, names, isAsked, result, open } = made;
  const { sub } = matrices.find((one) => one.kind === kind) as Matrix<Kind>;
  const symbol = ["W", element("sub", {}, sub)];
  const parts = made.made.parts.filter(({ right }) => right !== undefined);
  const numbers = (side: "left" | "right" | "value") => parts.map((part) => part[side] ?? 0);
  const lit = isAsked ? ASKED : KEYED;
  const products = numbers("value");
  const own = (to: number) => open(kind, to);
  const stepOf = (place: number, name: Child) =>
    stepButton(place, name, `${place}`, place === 5, () => own(result.at));
  const band = (place: number, name: Child, said: string, list: number[], className: string) => {
    const strip = {
      stop: `band ${place}`,
      name: said,
      numbers: list,
      bars: true,
      className,
      open: () => own(result.at),
    };
    return { height: THICK, name: stepOf(place, name), parts: [stripBox(strip, tell)] };
  };
  const sum = resultBox(app, made, products, lit, tell);
  const rows = [
    band(4, ["x × ", ...symbol], `x × W_${sub}`, products, ""),
    band(3, app.t("zoom.weights.row"), `W_${sub}`, numbers("right"), "gfz-plain"),
    band(1, "x", names.x, numbers("left"), lit),
  ];
  const gaps = gap([10, 14]);
  const bands = parts.length > 0 ? [gap([42, 64]), rows[0], gaps, rows[1], gaps] : [gap([42, 64])];
  return {
    columns: "126px minmax(0, 1fr) 36px",
    rows: [
      gap([14, 26]),
      { height: THICK, name: stepOf(5, names.result), parts: [sum] },
      ...bands,
      picturesRow(app, made, room, tell),
      ...(parts.length > 0 ? [gaps, rows[2]] : []),
      gap([14, 18]),
    ],
    lines: (ruler) => {
      const [from, to] = [rows[0].parts[0], sum].map((one) => ruler(one.children[0]));
      const end: [number, number] = [numberX(to, result.numbers.length, result.at), lowEdge(to)];
      return [fanOf(products, end, (i) => [numberX(from, products.length, i), from.y, ""])];
    },
    outside: (ruler, height) =>
      isAsked ? lineFromBelow(ASKED, numberX(ruler(sum), 1, 0), height, neighbours(app, box)[0]) : [],
  };
}

/** Returns the result, of which the open number is the sum of the products. */
function resultBox<Kind>(
  app: App,
  { names, result, kind, open }: Weights<Kind>,
  products: number[],
  className: string,
  tell: Tell,
) {
  const { numbers, at } = result;
  const said = sumBelow(app, numbers, at, products);
  const own = (to: number) => open(kind, to);
  const strip = { stop: "result", name: names.result, numbers, chosen: at, bars: true, className, open: own };
  const box = stripBox(strip, tell, "", said);
  box.children[0].toggleAttribute("data-first", true);
  return box;
}

/** Returns the row of the pictures, two side by side. */
function picturesRow<Kind extends string>(
  app: App,
  { matrices, kind, at, open }: Weights<Kind>,
  room: HTMLElement,
  tell: Tell,
): Row {
  const inner = insideOf(room);
  const lines = Math.ceil(matrices.length / 2);
  const wide = (Math.max(SMALLEST, inner.width) - BESIDE) / 2;
  const tall = (Math.min(inner.height, 800) - AROUND) / lines - NAME;
  const pictures = matrices.map((matrix) => {
    const [rows, columns] = matrix.weights.shape;
    const marked = matrix.kind === kind ? at : null;
    const cell = [cellSize(wide, columns), cellSize(tall, rows)];
    return pictureOf(app, matrix, { cell, marked, room }, tell, open);
  });
  const grid = element("div", { class: "gfz-pictures", style: `gap: 0 ${BETWEEN}px` }, pictures);
  const about = element(
    "div",
    "gfz-pixel",
    stepName(2, app.t("panel.weights")),
    element("p", "gfz-facts", app.t("zoom.weights.pixel")),
    signsOf(app).map((sign) => element("span", "gfz-facts", sign)),
  );
  return { height: "auto", parts: [over("1", about), grid] };
}

/** Returns a matrix as a picture below its name. A click opens the number that the clicked row or column yields. */
function pictureOf<Kind extends string>(
  app: App,
  { kind, sub, weights, isTurned }: Matrix<Kind>,
  { cell, marked, room }: { cell: number[]; marked: number | null; room: HTMLElement },
  tell: Tell,
  open: (kind: Kind, at: number) => unknown,
) {
  const { shape, data } = weights;
  const [, columns] = shape;
  const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
  const deviation = Math.sqrt(data.reduce((sum, value) => sum + (value - mean) ** 2, 0) / data.length);
  const said = app.t(
    "zoom.weights.numbers",
    shape.join(" × "),
    numberText(deviation, 3),
    numberText(largestSize(data), 3),
  );
  const picture = createPixels(
    room,
    weights,
    {
      largest: 3 * deviation,
      cell,
      label: `W_${sub}: ${said}`,
      marked,
      isColumn: isTurned,
      textOf: (row, column) => {
        const at = isTurned ? [column, row] : [row, column];
        return `W_${sub}[${at.join(", ")}]: ${numberText(data[row * columns + column], 4)}`;
      },
      open: (row, column) => open(kind, isTurned ? column : row),
    },
    tell,
  );
  const name = stopButton(`matrix ${kind}`, ["W", element("sub", {}, sub)], () => open(kind, 0), {
    className: "gfz-step",
  });
  if (marked !== null) name.ariaCurrent = "step";
  return element("div", {}, name, element("small", {}, said), picture);
}
