// The receipt of a number: its formula, the terms that sum to it, and the steps after the sum.
import { decimalsOf, fixedText, numberText } from "../../engine/number_text.ts";
import { snippet } from "../../engine/snippet.ts";
import { largestAt } from "../../engine/tensor.ts";
import { button, copyText, element } from "../app/dom.ts";
import { tokenName } from "../app/wording.ts";

import type { Cell, Explanation, Part } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";

/** A heading of the table, and the class that colours it. */
export type Heading = readonly [text: string, className?: string];
/** A line beside the terms: its label, its number as text, the class that colours the line, and the number's cell. */
export type Line = readonly [label: Child, text: string, className?: string, cell?: Cell];
/** Returns a cell in the notation of code, such as encoder.output[0, 3]. */
export const cellCode = ({ name, index }: Cell) => `${name}[${index.join(", ")}]`;
/** Opens the arithmetic of a number. */
type Go = (cell: Cell) => void;

/** The arithmetic of a number, as a table. */
export interface Receipt {
  formula?: string;
  /** The formula with the numbers filled in. */
  numbers?: string;
  /** The lines above the terms. */
  before?: Line[];
  parts: Part[];
  /** The headings of the columns of numbers, optionally preceded by a heading of the column of labels. */
  headings: Heading[];
  /** The lines below the terms. */
  lines: Line[];
  /** A note on the rounding of the result. */
  note?: string;
}

const SIDES = ["left", "right", "value"] as const;
const sizeOf = ({ value, left }: Part) => Math.abs(value ?? left ?? 0);

/** Returns the receipt of any number: its terms and steps, in the order of the computation. */
export function receiptOf(made: Explanation, note = ""): Receipt {
  const { formula, numbers, parts, columns, steps, stepsFirst, total, result } = made;
  const staged = steps.map(({ label, text, value, from }): Line => [
    `${label} ${text ?? ""}`,
    numberText(value, 4),
    "",
    from?.[0],
  ]);
  const sum: Line[] = total ? [[total.label, numberText(total.value, 4)]] : [];
  if (!total && !steps.length) sum.push(["=", numberText(result, 4)]);
  const sides = SIDES.filter((side) => parts.some((part) => part[side] !== undefined));
  const headings = [columns[0], ...sides.map((side) => columns[SIDES.indexOf(side) + 1])];
  return {
    formula,
    numbers: numbers ?? undefined,
    parts,
    note,
    headings: parts.length > 0 ? headings.map((text = ""): Heading => [text]) : [],
    ...(stepsFirst ? { before: staged, lines: sum } : { lines: [...sum, ...staged] }),
  };
}

/**
 * Returns a receipt with the largest terms in their original order, and the sum of the other terms. `most`: the maximum
 * number of terms. `go` opens the arithmetic of a term; `whole` shows all terms.
 */
export function receiptElements(
  app: App,
  receipt: Receipt,
  most: number,
  go: Go,
  whole: () => unknown,
): Child[] {
  const { formula, numbers, before = [], parts, headings, lines, note } = receipt;
  return [
    formula &&
      element(
        "p",
        "gfz-formula",
        element("code", {}, formula),
        numbers && element("code", {}, `= ${numbers}`),
      ),
    before.length > 0 && table(app, [], [], before, most, go, whole),
    parts.length + lines.length > 0 && table(app, parts, headings, lines, most, go, whole),
    note && element("p", "gfz-note", note),
  ];
}

function table(
  app: App,
  parts: Part[],
  headings: Heading[],
  lines: Line[],
  most: number,
  go: Go,
  whole: () => unknown,
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
    element("thead", {}, element("tr", {}, headings.map(headingCell))),
    element(
      "tbody",
      {},
      parts.filter((_, at) => shown.has(at)).map(row),
      others.length > 0 &&
        below([
          button(app.t("numbers.rest", others.length), whole, {
            className: "gfz-link",
            title: app.t("numbers.all"),
          }),
          numberOf(rest, "value"),
        ]),
    ),
    element("tfoot", { class: lines.length > 4 ? "gfz-dense" : "" }, lines.map(below)),
  );
}

function headingCell([text, className]: Heading) {
  return text ? element("th", { scope: "col", className }, text) : element("td");
}

/** Returns the cell of one factor of a term, or of the term's value. */
function cellOf({ left, from = [] }: Part, side: (typeof SIDES)[number]) {
  const linked = left === undefined ? ["value"] : SIDES;
  return from[linked.indexOf(side)];
}

/** Returns a number as text or, if the number has a cell, as a button that opens the cell's arithmetic. */
function linked(text: string, cell: Cell | undefined, go: Go) {
  if (!cell) return text;
  return button(text, () => go(cell), { className: "gfz-link", title: cellCode(cell) });
}

/** Returns buttons that copy the calculation as Python, or show the code selected if the browser refuses to copy. */
export function copying(app: App, made: Parameters<typeof snippet>[0]) {
  const said = element("p", { role: "status" });
  const area = element("textarea", { readOnly: true, rows: 8, hidden: true, "aria-label": "Python" });
  const copy = (library: "numpy" | "torch", label: string) =>
    button(
      app.t("numbers.copy", label),
      async () => {
        area.value = snippet(made, library);
        const isCopied = await copyText(area, area);
        said.textContent = isCopied ? app.t("numbers.copied", label) : app.t("numbers.copyByHand");
      },
      { className: "gfz-link" },
    );
  return element("div", "gfz-copy", copy("numpy", "NumPy"), copy("torch", "PyTorch"), said, area);
}
