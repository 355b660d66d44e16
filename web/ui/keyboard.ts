// Grids for the keyboard and the screen reader. The picture is a canvas; beside it, one focusable grid contains
// only the reader's cell, so that a grid of any size needs five nodes.
import { element } from "./dom.ts";

const STEPS_OF_KEYS: Record<string, [down: number, right: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
};
let counted = 0;

/**
 * Returns {element, place(row, column), resize(rows, columns), name(text)}: arrows, Home, End and Page keys move, Enter
 * or the space bar chooses. `describe(row, column)` names a cell; `moved` and `chosen` get the reader's cell.
 */
export function keyboardGrid({
  label,
  describe,
  moved,
  chosen,
}: {
  label: string;
  describe: (row: number, column: number) => string;
  moved: (row: number, column: number) => void;
  chosen: (row: number, column: number) => void;
}) {
  const id = `gf-cell-${++counted}`;
  const cell = element("div", { role: "gridcell", id });
  const row = element("div", { role: "row" }, cell);
  const grid = element(
    "div",
    {
      role: "grid",
      tabindex: "0",
      className: "gf-keys",
      "aria-label": label,
      "aria-activedescendant": id,
    },
    row,
  );
  const size = { rows: 1, columns: 1 };
  const at = { row: 0, column: 0 };

  function place(to: number, across: number, { tell = true } = {}) {
    at.row = Math.max(0, Math.min(size.rows - 1, to));
    at.column = Math.max(0, Math.min(size.columns - 1, across));
    row.setAttribute("aria-rowindex", String(at.row + 1));
    cell.setAttribute("aria-colindex", String(at.column + 1));
    cell.setAttribute("aria-label", describe(at.row, at.column));
    if (tell) moved(at.row, at.column);
  }
  grid.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS_OF_KEYS[event.key];
    if (step) place(at.row + step[0], at.column + step[1]);
    else if (event.key === "Home") place(at.row, 0);
    else if (event.key === "End") place(at.row, size.columns - 1);
    else if (event.key === "Enter" || event.key === " ") chosen(at.row, at.column);
    else return;
    event.preventDefault();
  });
  grid.addEventListener("focus", () => place(at.row, at.column));
  return {
    element: grid,
    place,
    resize(rows: number, columns: number) {
      Object.assign(size, { rows: Math.max(rows, 1), columns: Math.max(columns, 1) });
      grid.setAttribute("aria-rowcount", String(size.rows));
      grid.setAttribute("aria-colcount", String(size.columns));
      place(at.row, at.column, { tell: false });
    },
    name(text: string) {
      grid.setAttribute("aria-label", text);
    },
  };
}
