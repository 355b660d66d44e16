// The column beside an opened box: the explanation of the open number, with its receipt.
import { button, element, filled, letArrowsMove, refill } from "../app/dom.ts";
import { cellCode, copying, receiptElements } from "./receipt.ts";
import { lastOf } from "./numbers/worked.ts";

import type { Cell } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Opened, Sentence } from "./opened.ts";

/** The terms of a receipt: how many are listed at most and at least, the height of a term in px, and all terms. */
const [MOST_TERMS, LEAST_TERMS, TERM, ALL] = [16, 5, 18, 600];

/** Returns the column with the explanation of the open number, and a function that fills the column. */
export function createAbout(app: App) {
  const column = element("div", "gfz-about");
  const sentence = element("h2", { "aria-live": "polite", tabindex: "-1" });
  const links = () => [...column.querySelectorAll<HTMLElement>(":is(.gfz-receipt, .gfz-trail) button")];
  letArrowsMove(column, links);
  let isWhole = false;
  let open = "";
  /** The numbers that the reader has followed to the open number. */
  let trail: Cell[] = [];
  const isIn = (cell: Cell) => trail.some((one) => cellCode(one) === cellCode(cell));
  const go = (cell: Cell) => {
    if (!isIn(cell)) trail = [...trail, cell];
    app.select(cell);
  };

  /** `most`: the maximum number of terms. */
  function fill(made: Opened, most: number) {
    const words = element("span", {}, fillIn(app, made.sentence));
    const hadFocus = column.contains(document.activeElement);
    // screen readers would announce the same text again if it were set again
    if (sentence.textContent !== words.textContent) refill(sentence, words);
    refill(
      column,
      button(app.t("stage.back"), () => app.show({ zoom: null }), { className: "gfz-back" }),
      element("p", "gfz-place", made.name),
      sentence,
      made.sentence.section && element("p", "gfz-place", app.t("stage.paper", `§${made.sentence.section}`)),
      trail.length > 1 && trailOf(app, trail, made.cell, go),
      made.remarks.map((one) => (typeof one === "string" ? element("p", "gfz-note", one) : one)),
      made.receipt && receiptElements(app, made.receipt, most, go, () => ((isWhole = true), tell(made))),
      made.made?.code && copying(app, { ...made.made, code: made.made.code }),
    );
    links().forEach((one, at) => (one.tabIndex = at ? -1 : 0));
    if (hadFocus) sentence.focus({ preventScroll: true });
  }

  /** Fills the column with as many terms as it has room for. */
  function tell(made: Opened) {
    if (cellCode(made.cell) !== open) isWhole = false;
    open = cellCode(made.cell);
    if (!isIn(made.cell)) trail = [made.cell]; // a number that was not reached through another begins a new trail
    fill(made, isWhole ? ALL : MOST_TERMS);
    const over = Math.ceil((column.scrollHeight - column.clientHeight) / TERM);
    const terms = column.querySelectorAll(".gfz-receipt tbody tr").length;
    // − 1 for the line "the others"
    if (over > 0 && !isWhole) fill(made, Math.max(LEAST_TERMS, terms - over - 1));
  }
  return { element: column, tell };
}

/** Returns the followed numbers, in the order in which the model computes them. */
function trailOf(app: App, trail: Cell[], open: Cell, go: (cell: Cell) => void) {
  const { names } = app.result.current.trace;
  const ordered = trail.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
  const items = ordered.map((cell) => {
    const link = button(lastOf(cell.name), () => go(cell), { title: cellCode(cell) });
    if (cellCode(cell) === cellCode(open)) link.ariaCurrent = "step";
    return element("li", {}, link);
  });
  return element("ol", { class: "gfz-trail", "aria-label": app.t("numbers.trail") }, items);
}

/** Returns a sentence with its words in the colours of their sides. */
function fillIn(app: App, { key, values }: Sentence): Child[] {
  const parts = values.map((one) =>
    typeof one === "object" ? element("bdi", `gfz-${one.side}`, one.word) : one,
  );
  return filled(app.t(key), parts);
}
