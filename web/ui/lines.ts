// Attention as lines: the words that are read on the left, the words that read on the right, and between them a line
// for each weight, as thick as the weight.
import { numberText } from "../engine/number_text.ts";
import { element, refill } from "./dom.ts";
import { drawing } from "./figure.ts";

import type { Picture } from "./types.ts";

/** The part of a picture that lines show. */
type Woven = Pick<
  Picture,
  "values" | "offset" | "rows" | "columns" | "rowLabels" | "columnLabels" | "hidden" | "blocked"
>;

interface Line {
  row: number;
  column: number;
  weight: number;
}
type Axis = "rows" | "columns";

const LEAST = 0.02;
const MOST = 600;
const THICKEST = 9;
const LETTER = 7.4; // width of a letter in px, about
const COARSE = "(pointer: coarse)";

/** Returns the weights of a picture that are drawn: at least 0.02, the largest first, in rows that are shown. */
export function linesOf({
  values,
  offset,
  rows,
  columns,
  hidden,
  blocked,
}: Omit<Woven, "rowLabels" | "columnLabels">): Line[] {
  const found: Line[] = [];
  for (let row = 0; row < rows; row++) {
    if (hidden(row)) continue;
    for (let column = 0; column < columns; column++) {
      const weight = values[offset + row * columns + column];
      if (weight >= LEAST && !blocked(row, column)) found.push({ row, column, weight });
    }
  }
  return found.sort((a, b) => b.weight - a.weight).slice(0, MOST);
}

/**
 * Returns {element, draw, light}. `chosen` gets the row and column of a line that is clicked; `hovered` gets the
 * word under the pointer, or null.
 */
export function createLines({
  chosen,
  hovered = () => {},
}: {
  chosen: (row: number, column: number) => void;
  hovered?: (at: { axis: Axis; place: number } | null) => void;
}) {
  const holder = element("div", { className: "gf-lines" });
  let lines: Line[] = [];
  let paths: SVGPathElement[] = [];
  let words: Record<Axis, SVGGElement[]> = { rows: [], columns: [] };
  let numbers = drawing("g");
  let [width, step, left, right] = [300, 24, 0, 0];
  const middle = (place: number) => (place + 0.5) * step + 22;

  /** Draws the weights; `said` names the picture, the two sides, and the weights of a word. */
  function draw(
    picture: Woven,
    said: { label: string; columns: string; rows: string; word: (word: string, weights: string) => string },
  ) {
    width = Math.max(220, Math.min(620, holder.clientWidth || 300));
    step = matchMedia(COARSE).matches ? 44 : 24;
    const longest = (labels: string[]) => Math.max(3, ...labels.map((text) => [...text].length));
    const room = 0.36 * width;
    left = Math.min(room, longest(picture.columnLabels) * LETTER + 12);
    right = width - Math.min(room, longest(picture.rowLabels) * LETTER + 12);
    lines = linesOf(picture);
    paths = lines.map(path);
    numbers = drawing("g", { "aria-hidden": "true", class: "gf-lines-numbers" });
    words = { columns: side("columns", picture, said), rows: side("rows", picture, said) };
    const height = Math.max(picture.rows, picture.columns) * step + 30;
    const head = (text: string, x = 0, anchor = "start") =>
      drawing("text", { x, y: 12, "text-anchor": anchor, class: "gf-lines-side" }, text);
    const strokes = drawing("g", { "aria-hidden": "true", class: "gf-lines-strokes" }, paths);
    const svg = drawing(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": said.label },
      head(said.columns),
      head(said.rows, width, "end"),
      strokes,
      words.columns,
      words.rows,
      numbers,
    );
    strokes.addEventListener("click", (event) => {
      const at = paths.findIndex((one) => one === event.target);
      if (at >= 0) chosen(lines[at].row, lines[at].column);
    });
    refill(holder, svg);
  }

  function path({ row, column, weight }: Line) {
    const [from, to, bend] = [middle(column), middle(row), (left + right) / 2];
    const made = drawing("path", {
      d: `M${left} ${from}C${bend} ${from} ${bend} ${to} ${right} ${to}`,
      "stroke-width": Math.max(1, THICKEST * weight),
      "stroke-opacity": (0.15 + 0.8 * weight).toFixed(2),
    });
    made.append(drawing("title", {}, numberText(weight, 3)));
    return made;
  }

  function side(axis: Axis, picture: Woven, said: { word: (word: string, weights: string) => string }) {
    const isRow = axis === "rows";
    const labels = isRow ? picture.rowLabels : picture.columnLabels;
    const others = isRow ? picture.columnLabels : picture.rowLabels;
    const x = isRow ? right + 6 : left - 6;
    const letters = Math.max(3, Math.floor((isRow ? width - x : x) / LETTER));
    return labels.map((label, place) => {
      const own = lines.filter((line) => (isRow ? line.row : line.column) === place);
      const weights = own.map(
        ({ row, column, weight }) => `${others[isRow ? column : row]} ${numberText(weight, 2)}`,
      );
      const name = said.word(label, weights.join(", ") || "–");
      const text = drawing(
        "text",
        { x, y: middle(place) + 4.5, "text-anchor": isRow ? "start" : "end" },
        shortened(label, letters),
      );
      const box = {
        x: isRow ? right : 0,
        y: middle(place) - step / 2,
        width: isRow ? width - right : left,
        height: step,
      };
      const made = drawing(
        "g",
        {
          role: "button",
          tabindex: isRow && place === 0 ? 0 : -1,
          "aria-label": name,
          class: "gf-lines-word",
        },
        drawing("title", {}, name),
        drawing("rect", { ...box, rx: 4 }),
        text,
      );
      if (isRow && picture.hidden(place)) made.classList.add("gf-lines-hidden");
      const enter = () => {
        show(axis, [place]);
        hovered({ axis, place });
      };
      const leave = () => {
        show(axis, []);
        hovered(null);
      };
      made.addEventListener("pointerenter", enter);
      made.addEventListener("pointerleave", leave);
      made.addEventListener("focus", enter);
      made.addEventListener("blur", leave);
      const open = () => own.length > 0 && chosen(own[0].row, own[0].column);
      made.addEventListener("click", () => (matchMedia(COARSE).matches ? enter() : open()));
      made.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") open();
        else if (!move(axis, place, event.key)) return;
        event.preventDefault();
      });
      return made;
    });
  }

  /** Moves the focus from a word by an arrow key. Returns whether the key is one. */
  function move(axis: Axis, place: number, key: string) {
    const down = Number(key === "ArrowDown") - Number(key === "ArrowUp");
    const across = key === "ArrowLeft" ? "columns" : key === "ArrowRight" ? "rows" : null;
    if (!down && !across && key !== "Home" && key !== "End") return false;
    const column = words[across ?? axis];
    const wanted = key === "Home" ? 0 : key === "End" ? Infinity : place + down;
    const next = column[Math.max(0, Math.min(column.length - 1, wanted))];
    for (const one of [...words.rows, ...words.columns])
      one.setAttribute("tabindex", one === next ? "0" : "-1");
    next.focus();
    return true;
  }

  /** Shows only the lines of these words, with numbers; of no words: all lines. */
  function show(axis: Axis, places: number[]) {
    const isRow = axis === "rows";
    const mine = ({ row = 0, column = 0 }) => places.includes(isRow ? row : column);
    holder.classList.toggle("gf-lines-one", places.length > 0);
    paths.forEach((one, at) => one.classList.toggle("gf-on", mine(lines[at])));
    for (const other of ["rows", "columns"] as const)
      words[other].forEach((one, place) =>
        one.classList.toggle("gf-lit", other === axis && places.includes(place)),
      );
    const x = isRow ? left + 4 : right - 4;
    refill(
      numbers,
      lines.filter(mine).map(({ row, column, weight }) =>
        drawing(
          "text",
          {
            x,
            y: middle(isRow ? column : row) + 4,
            "text-anchor": isRow ? "start" : "end",
          },
          numberText(weight, 2),
        ),
      ),
    );
  }

  return {
    element: holder,
    draw,
    light({ rows, columns }: { rows: number[]; columns: number[] }) {
      if (holder.matches(":hover, :focus-within")) return; // the reader's own word
      show(rows.length > 0 ? "rows" : "columns", rows.length > 0 ? rows : columns);
    },
  };
}

function shortened(text: string, letters: number) {
  const all = [...text];
  return all.length > letters ? `${all.slice(0, letters - 1).join("")}…` : text;
}
