// The weights of an opened box as pictures with one pixel for each weight, and one number worked out from a row or
// column of weights.
import { numberText } from "../../engine/number_text.ts";
import { tensor } from "../../engine/tensor.ts";
import { element } from "../dom.ts";
import { drawing } from "../figure.ts";
import { createPixels } from "./pixels.ts";
import { createStrip, largestSize } from "./strips.ts";
import { stripX, vectorBand, LABELS, MARGIN } from "./zoom_band.ts";
import {
  ASKED,
  KEYED,
  enteringLine,
  fanOf,
  heading,
  innerLines,
  neighbours,
  panelIn,
  put,
  stepButton,
  signsOf,
  stopButton,
  sumBox,
} from "./zoom_parts.ts";

import type { Explanation, Tensor } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Child } from "../types.ts";
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

const SMALLEST = 908;
const ROOMY = { top: 26, thick: 40, fan: 64, gap: 14, foot: 18 };
const TIGHT = { top: 14, thick: 32, fan: 42, gap: 10, foot: 14 };
const [ROOMY_FROM, NAME, BETWEEN, LARGEST_CELL] = [780, 26, 24, 12];

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

/** Returns the panel with the weights. */
export function weightsPanel<Kind extends string>(app: App, made: Weights<Kind>, room: HTMLElement): Child[] {
  const { matrices } = made;
  const frameFor = (inner: { width: number; height: number }) => {
    const width = Math.max(SMALLEST, inner.width);
    const { top, thick, fan, gap, foot } = inner.height < ROOMY_FROM ? TIGHT : ROOMY;
    const products = top + thick + fan;
    const row = products + thick + gap;
    const pictures = row + thick + gap;
    const lines = Math.ceil(matrices.length / 2);
    const left = Math.min(inner.height, 800) - pictures - gap - thick - foot;
    const room = [(width - LABELS - MARGIN - BETWEEN) / 2, left / lines - NAME];
    const cells = matrices.map(({ weights: { shape } }) => [
      cellSize(room[0], shape[1]),
      cellSize(room[1], shape[0]),
    ]);
    const high = Math.max(...matrices.map(({ weights: { shape } }, at) => shape[0] * cells[at][1])) + NAME;
    const x = pictures + lines * high + gap;
    return { width, height: x + thick + foot, thick, top, products, row, pictures, x, cells, high };
  };
  return panelIn(app, room, frameFor, (frame, tell) => draw(app, made, frame, tell, room));
}

function draw<Kind extends string>(
  app: App,
  { box, matrices, kind, at, names, isAsked, result, made, open }: Weights<Kind>,
  frame: { width: number; height: number; cells: number[][] } & Record<
    "thick" | "top" | "products" | "row" | "pictures" | "x" | "high",
    number
  >,
  tell: Tell,
  room: HTMLElement,
) {
  const { width, height, thick, cells, high } = frame;
  const parts = made.parts.filter(({ right }) => right !== undefined);
  const numbers = (side: "left" | "right" | "value") => parts.map((part) => part[side] ?? 0);
  const lit = isAsked ? ASKED : KEYED;
  const own = (to: number) => open(kind, to);
  const { sub } = matrices.find((one) => one.kind === kind) as Matrix<Kind>;
  const symbol = ["W", element("sub", {}, sub)];
  const step = (place: number, name: Child) =>
    stepButton(place, name, `${place}`, place === 5, () => own(result.at));
  const stopAt = () => own(result.at);
  const bands: [
    place: number,
    name: Child,
    said: string,
    list: ArrayLike<number>,
    y: number,
    className: string,
  ][] = [
    [1, "x", names.x, numbers("left"), frame.x, lit],
    [3, app.t("zoom.weights.row"), `W_${sub}`, numbers("right"), frame.row, "gfz-plain"],
    [4, ["x × ", ...symbol], `x × W_${sub}`, numbers("value"), frame.products, ""],
  ];
  const x = stripX(width, result.numbers.length, result.at);
  const fan = fanOf(numbers("value"), [x, frame.top + thick], (i) => [
    stripX(width, parts.length, i),
    frame.products,
    "",
  ]);
  const strip = createStrip(
    {
      stop: "result",
      name: names.result,
      numbers: result.numbers,
      largest: largestSize(result.numbers),
      chosen: result.at,
      bars: true,
      width: width - LABELS - MARGIN - 8,
      height: thick,
      className: lit,
      open: own,
    },
    tell,
  );
  strip.toggleAttribute("data-first", true);
  const place = { x: LABELS, y: frame.top, width: width - LABELS - MARGIN, height: thick };
  const pictures = matrices.map((matrix, i) => {
    const isOpen = matrix.kind === kind;
    const picture = pictureOf(app, matrix, { cell: cells[i], marked: isOpen ? at : null, room }, tell, open);
    const left = LABELS + (i % 2) * ((place.width + BETWEEN) / 2);
    return put(picture, { x: left, y: frame.pictures + Math.floor(i / 2) * high });
  });
  const middle = LABELS + place.width / 2;
  return {
    parts: [
      innerLines(frame, [drawing("g", { class: "gfz-fan" }, fan)]),
      heading(step(5, names.result), place),
      sumBox(app, strip, place, { numbers: result.numbers, at: result.at, products: numbers("value") }),
      parts.length > 0 &&
        bands.map(([order, name, said, list, y, className]) =>
          vectorBand(
            step(order, name),
            {
              stop: `band ${order}`,
              name: said,
              numbers: list,
              largest: largestSize(list),
              className,
              open: stopAt,
            },
            { y, height: thick, width },
            tell,
          ),
        ),
      put(element("span", { class: "gfz-step" }, element("i", {}, 2), app.t("panel.weights")), {
        x: 18,
        y: frame.pictures,
      }),
      put(
        element(
          "p",
          { class: "gfz-facts gfz-pixel" },
          app.t("zoom.weights.pixel"),
          signsOf(app).map((sign) => element("span", {}, sign)),
        ),
        {
          x: 18,
          y: frame.pictures + NAME,
        },
      ),
      pictures,
    ],
    outside: isAsked
      ? [enteringLine(ASKED, middle, height, { y: frame.x, height: thick }, neighbours(app, box)[0])]
      : [],
  };
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
