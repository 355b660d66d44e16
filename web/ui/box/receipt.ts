// The receipt of a number: the terms that sum to it, and the steps after the sum.
import { decimalsOf, fixedText, numberText } from "../../engine/number_text.ts";
import { largestAt } from "../../engine/tensor.ts";
import { button, element } from "../app/dom.ts";
import { tokenName } from "../app/wording.ts";

import type { Cell, Explanation, Part } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";

/** A heading of the table, and the class that colours it. */
export type Heading = readonly [text: string, className?: string];
/** A line below the table: its label, its number as text, the class that colours the line, and the number's cell. */
export type Line = readonly [label: string, text: string, className?: string, cell?: Cell];
/** Opens the arithmetic of a number. */
type Go = (cell: Cell) => void;

export const SIDES = ["left", "right", "value"] as const;
const sizeOf = ({ value, left }: Part) => Math.abs(value ?? left ?? 0);

/**
 * Returns a number's terms as a table: the largest terms in their original order, the sum of the other terms, and lines
 * below. `headings`: the headings of the columns of numbers, optionally preceded by a heading of the column of labels.
 * `most`: the maximum number of terms. `go`: makes each number that has a cell a button.
 */
export function receiptTable(
  app: App,
  parts: Part[],
  headings: Heading[],
  lines: Line[],
  most: number,
  go?: Go,
) {
  const count = parts.length > most + 1 ? most : parts.length; // avoids a line for "the other 1"
  const shown = new Set([...largestAt(parts.map(sizeOf), count), parts.findIndex(({ own }) => own)]);
  const sides = SIDES.filter((side) => parts.some((part) => part[side] !== undefined));
  const labelled = headings.length > sides.length;
  const decimals = SIDES.map((side) => decimalsOf(parts.map((part) => part[side] ?? 0)));
  const numberOf = (part: Part, side: (typeof SIDES)[number]) =>
    fixedText(part[side] ?? NaN, decimals[SIDES.indexOf(side)]);
  const others = parts.filter((_, at) => !shown.has(at));
  const row = (part: Part) =>
    element(
      "tr",
      { class: part.own ? "gfz-own" : "" },
      labelled && element("th", { scope: "row" }, element("bdi", {}, tokenName(part.label, app.t))),
      sides.map((side) =>
        element("td", {}, part[side] !== undefined && linked(numberOf(part, side), cellOf(part, side), go)),
      ),
    );
  const below = ([label, text, className = "", cell]: Line) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", colSpan: Math.max(1, headings.length - 1) }, label),
      element("td", { className }, linked(text, cell, go)),
    );
  const rest = { label: "", value: others.reduce((sum, part) => sum + (part.value ?? 0), 0) };
  return element(
    "table",
    `gfz-receipt ${sides.length === 3 && !labelled ? "gfz-products" : ""}`,
    parts.length > 0 && element("caption", {}, app.t("numbers.rounded")),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        headings.map(([text, className]) =>
          text ? element("th", { scope: "col", className }, text) : element("td"),
        ),
      ),
    ),
    element(
      "tbody",
      {},
      parts.filter((_, at) => shown.has(at)).map(row),
      others.length > 0 && below([app.t("numbers.rest", others.length), numberOf(rest, "value")]),
    ),
    element("tfoot", { class: lines.length > 4 ? "gfz-dense" : "" }, lines.map(below)),
  );
}

/** Returns the cell of one factor of a term, or of the term's value. */
function cellOf({ left, from = [] }: Part, side: (typeof SIDES)[number]) {
  const linked = left === undefined ? ["value"] : SIDES;
  return from[linked.indexOf(side)];
}

/** Returns a number as text or, if the number has a cell, as a button that opens the cell's arithmetic. */
function linked(text: string, cell: Cell | undefined, go: Go | undefined) {
  if (!cell || !go) return text;
  const title = `${cell.name}[${cell.index.join(", ")}]`;
  return button(text, () => go(cell), { className: "gfz-link", title });
}

/**
 * Returns a number's formula, its terms, and the lines that lead to its result. `exact`: show as many digits as each
 * number needs.
 */
export function explanationReceipt(app: App, made: Explanation, most: number, exact = false): Child[] {
  const headings = made.columns.filter((text) => text !== "").map((text): Heading => [text]);
  const decimals = decimalsOf([made.result]);
  const written = (value: number) => (exact ? numberText(value) : fixedText(value, decimals));
  const stages = [...(made.total ? [made.total] : []), ...made.steps];
  if (stages.length === 0) stages.push({ label: app.t("zoom.result"), value: made.result });
  const lines = stages.map(({ label, value }, at): Line => {
    return [label, written(value), at === stages.length - 1 ? "gfz-keyed" : ""];
  });
  return [
    element("p", "gfz-formula", made.formula),
    receiptTable(app, headings.length > 0 ? made.parts : [], headings, lines, most),
  ];
}
