// The chosen number as a worked calculation: the trail of numbers that led to it, its terms as links to the
// arithmetic of each term, and its code.
import { snippet } from "../../../engine/snippet.ts";
import { numberText } from "../../../engine/number_text.ts";
import { pointText } from "../../../engine/model.ts";
import { button, element, filled } from "../../app/dom.ts";
import { SIDES, receiptTable } from "../receipt.ts";
import { tokenName } from "../../app/wording.ts";

import type { Cell, Explanation } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { Line } from "../receipt.ts";
import type { Child } from "../../app/types.ts";

const [MOST_TERMS, ALL] = [16, 600];

/** Returns the last part of a point's name. */
export const lastOf = (name: string) => name.replace(/^.*\./, "");
/** Returns a cell in the notation of code, such as encoder.output[0, 3]. */
export const cellCode = ({ name, index }: Cell) => `${name}[${index.join(", ")}]`;

/** The trail of numbers that led to the chosen number, and whether all terms are shown. */
export interface Walk {
  trail: Cell[];
  all: boolean;
}

/** Returns the calculation. `go` opens a number of the trail; `redraw` is called when the reader asks for all terms. */
export function workedNumber(
  app: App,
  made: Explanation,
  walk: Walk,
  go: (cell: Cell) => void,
  redraw: () => void,
): Child[] {
  const { name, numbers, notes, parts, difference } = made;
  const off = Math.abs(difference);
  const rounding = app.engine.live === false ? "numbers.rounding.recorded" : "numbers.rounding";
  return [
    element("p", "gfn-quiet", placeText(app, made)),
    element("h3", { tabindex: "-1", "aria-live": "polite" }, told(app, made)),
    element(
      "p",
      "gfn-quiet",
      element("code", {}, `${lastOf(name)}[${made.index.join(", ")}] = ${numberText(made.result, 4)}`),
    ),
    trailOf(app, made, walk, go),
    notes.map((one) => element("p", "gfn-note", one)),
    made.formula &&
      element(
        "p",
        "gfn-formula",
        element("code", {}, made.formula),
        numbers && element("code", {}, `= ${numbers}`),
      ),
    receipt(app, made, walk.all ? ALL : MOST_TERMS, go),
    off > 1e-12 && element("p", "gfn-quiet", app.t(rounding, off.toExponential(0))),
    parts.length > MOST_TERMS + 1 &&
      button(
        app.t("numbers.all"),
        () => {
          walk.all = !walk.all;
          redraw();
        },
        { pressed: walk.all, className: "gfn-pill" },
      ),
    made.code && copying(app, { ...made, code: made.code }),
  ];
}

/** Returns the table of terms and the intermediate steps, in the order of the computation. */
function receipt(
  app: App,
  { parts, columns, steps, stepsFirst, total }: Explanation,
  most: number,
  go: (cell: Cell) => void,
): Child[] {
  const lines = steps.map(({ label, text, value, from }): Line => [
    `${label} ${text}`,
    numberText(value, 4),
    "",
    from?.[0],
  ]);
  const sum: Line[] = total ? [[total.label, numberText(total.value, 4)]] : [];
  const sides = SIDES.filter((side) => parts.some((part) => part[side] !== undefined));
  const headings = [columns[0], ...sides.map((side) => columns[SIDES.indexOf(side) + 1])].map(
    (text = "") => [text] as const,
  );
  const table = (some: boolean, ends: Line[]) =>
    (some || ends.length > 0) && receiptTable(app, some ? parts : [], some ? headings : [], ends, most, go);
  return stepsFirst ? [table(false, lines), table(true, sum)] : [table(parts.length > 0, [...sum, ...lines])];
}

/** Returns a text that locates a number: part of the model, layer and head. */
function placeText(app: App, { name, index }: Cell) {
  const head = index.length > 2 ? `${app.t("word.comma")}${app.t("word.head")} ${index[0]}` : "";
  return groupName(app, name.slice(0, Math.max(0, name.lastIndexOf(".")))) + head;
}

/** Returns the name of a part of the model; `part`: a point's name without its last component. */
export function groupName(app: App, part: string) {
  const [, stack, layer, sublayer] = /^(\w+)\.layers\.(\d+)\.(\w+)$/.exec(part) ?? [];
  if (layer === undefined) return app.t(part ? `numbers.part.${part}` : "point.end");
  const family = sublayer === "cross_attention" ? "cross" : stack;
  const named = sublayer === "feed_forward" ? `numbers.feed.${stack}` : `family.${family}`;
  return `${app.t(named)}${app.t("word.comma")}${app.t("word.layer")} ${layer}`;
}

/**
 * Returns a text that says what a number means, such as "qu' reads street: 0.999", or to which word and dimension the
 * number belongs.
 */
function told(app: App, { name, index, result }: Explanation): Child[] {
  const [t, c] = index.slice(-2);
  const { rows, columns, rowSide, columnSide = rowSide } = app.labels(name);
  const word = (token: string, side: string) => element("bdi", `gfs-${side}`, tokenName(token, app.t));
  const scored = /^log/.test(name) ? app.engine.tokens("target", [c])[0] : undefined;
  const other = columns
    ? word(columns[c], columnSide)
    : scored === undefined
      ? app.t("numbers.dimension", c)
      : word(scored, "target");
  const values = [word(rows[t], rowSide), other, numberText(result, 3)];
  const key = columns ? "numbers.reads" : scored === undefined ? "numbers.has" : "numbers.offers";
  return filled(app.t(key), values);
}

/** Returns the numbers that the reader has visited, in the order in which the model computes them. */
function trailOf(app: App, { name, index }: Cell, { trail }: Walk, go: (cell: Cell) => void) {
  const { names } = app.result.current.trace;
  const ordered = trail.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
  const items = ordered.map((cell) => {
    const link = button(lastOf(cell.name), () => go(cell), { title: cellCode(cell) });
    if (cellCode(cell) === cellCode({ name, index })) link.ariaCurrent = "step";
    return element("li", {}, link);
  });
  return (
    trail.length > 1 && element("ol", { class: "gfn-trail", "aria-label": app.t("numbers.trail") }, items)
  );
}

/** Returns buttons that copy the calculation as Python, or show the code selected if the browser refuses to copy. */
function copying(app: App, made: Parameters<typeof snippet>[0]) {
  const said = element("p", { class: "gfn-quiet", role: "status" });
  const area = element("textarea", { readOnly: true, rows: 8, hidden: true, "aria-label": "Python" });
  const copy = (library: "numpy" | "torch", label: string) =>
    button(
      app.t("numbers.copy", label),
      async () => {
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
      },
      { className: "gfn-pill" },
    );
  return element("div", "gfn-copy", copy("numpy", "NumPy"), copy("torch", "PyTorch"), said, area);
}

/** Returns a sentence that explains a point. */
export function meaningOf(app: App, name: string) {
  return app.t(pointText(app.config, name));
}
