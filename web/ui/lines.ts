// Attention as lines: the words that are read on the left, the words that read on the right, and between them a line
// for each weight, as thick as the weight.
import { numberText } from "../engine/number_text.ts";
import { element, refill } from "./dom.ts";
import { drawing } from "./figure.ts";

import type { Picture } from "./types.ts";

/** The part of a picture that lines show. */
type Woven = Pick<
  Picture,
  "values" | "offset" | "rows" | "columns" | "rowLabels" | "columnLabels" | "blocked"
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
  blocked,
}: Omit<Woven, "rowLabels" | "columnLabels">): Line[] {
  const found: Line[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const weight = values[offset + row * columns + column];
      if (weight >= LEAST && !blocked(row, column)) found.push({ row, column, weight });
    }
  }
  return found.sort((a, b) => b.weight - a.weight).slice(0, MOST);
}

/** Where the two columns of words are, in px. */
interface Layout {
  width: number;
  /** From word to word. */
  step: number;
  /** The ends of the lines. */
  left: number;
  right: number;
}

/** How a picture is told: its name, the names of its two sides, and the weights of a word. */
interface Said {
  label: string;
  columns: string;
  rows: string;
  word: (word: string, weights: string) => string;
}

/** What follows when the reader clicks a line, or points at a word, or at none. */
interface Reactions {
  chosen: (row: number, column: number) => void;
  hovered?: (at: { axis: Axis; place: number } | null) => void;
}

/** A drawing of attention as lines. */
export class Lines {
  element = element("div", { className: "gf-lines" });
  #react: Required<Reactions>;
  #layout: Layout = { width: 300, step: 24, left: 0, right: 0 };
  #lines: Line[] = [];
  #paths: SVGPathElement[] = [];
  #words: Record<Axis, SVGGElement[]> = { rows: [], columns: [] };
  #numbers = drawing("g");

  constructor({ chosen, hovered = () => {} }: Reactions) {
    this.#react = { chosen, hovered };
  }

  /** Draws the weights. */
  draw(picture: Woven, said: Said) {
    const layout = layoutOf(picture, this.element.clientWidth);
    this.#layout = layout;
    this.#lines = linesOf(picture);
    this.#paths = this.#lines.map((line) => pathOf(line, layout));
    this.#numbers = drawing("g", { "aria-hidden": "true", class: "gf-lines-numbers" });
    this.#words = { columns: this.#side("columns", picture, said), rows: this.#side("rows", picture, said) };
    const { width } = layout;
    const height = Math.max(picture.rows, picture.columns) * layout.step + 30;
    const svg = drawing(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": said.label },
      drawing("text", { x: 0, y: 12, "text-anchor": "start", class: "gf-lines-side" }, said.columns),
      drawing("text", { x: width, y: 12, "text-anchor": "end", class: "gf-lines-side" }, said.rows),
      this.#strokes(),
      this.#words.columns,
      this.#words.rows,
      this.#numbers,
    );
    refill(this.element, svg);
  }

  /** Lights the lines of these words, unless the reader has a word of their own. */
  light({ rows, columns }: { rows: number[]; columns: number[] }) {
    if (this.element.matches(":hover, :focus-within")) return;
    this.#show(rows.length > 0 ? "rows" : "columns", rows.length > 0 ? rows : columns);
  }

  #strokes() {
    const strokes = drawing("g", { "aria-hidden": "true", class: "gf-lines-strokes" }, this.#paths);
    strokes.addEventListener("click", (event) => {
      const at = this.#paths.findIndex((one) => one === event.target);
      if (at >= 0) this.#react.chosen(this.#lines[at].row, this.#lines[at].column);
    });
    return strokes;
  }

  /** Returns the words of one side. */
  #side(axis: Axis, picture: Woven, said: Said) {
    const [own, other] = axis === "rows" ? (["row", "column"] as const) : (["column", "row"] as const);
    const labels = axis === "rows" ? picture.rowLabels : picture.columnLabels;
    const others = axis === "rows" ? picture.columnLabels : picture.rowLabels;
    return labels.map((label, place) => {
      const lines = this.#lines.filter((line) => line[own] === place);
      const weights = lines.map((line) => `${others[line[other]]} ${numberText(line.weight, 2)}`);
      const made = wordOf(axis, place, label, said.word(label, weights.join(", ") || "–"), this.#layout);
      this.#listen(made, axis, place, lines[0]);
      return made;
    });
  }

  /** Lets a word show its lines, open the `strongest`, and pass the focus on. */
  #listen(word: SVGGElement, axis: Axis, place: number, strongest?: Line) {
    const enter = () => {
      this.#show(axis, [place]);
      this.#react.hovered({ axis, place });
    };
    const leave = () => {
      this.#show(axis, []);
      this.#react.hovered(null);
    };
    const open = () => strongest && this.#react.chosen(strongest.row, strongest.column);
    for (const type of ["pointerenter", "focus"]) word.addEventListener(type, enter);
    for (const type of ["pointerleave", "blur"]) word.addEventListener(type, leave);
    word.addEventListener("click", () => (matchMedia(COARSE).matches ? enter() : open()));
    word.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") open();
      else if (!this.#move(axis, place, event.key)) return;
      event.preventDefault();
    });
  }

  /** Moves the focus from a word by an arrow key. Returns whether the key is one. */
  #move(axis: Axis, place: number, key: string) {
    const down = Number(key === "ArrowDown") - Number(key === "ArrowUp");
    const across = key === "ArrowLeft" ? "columns" : key === "ArrowRight" ? "rows" : null;
    if (!down && !across && key !== "Home" && key !== "End") return false;
    const column = this.#words[across ?? axis];
    const wanted = key === "Home" ? 0 : key === "End" ? Infinity : place + down;
    const next = column[Math.max(0, Math.min(column.length - 1, wanted))];
    for (const one of [...this.#words.rows, ...this.#words.columns])
      one.setAttribute("tabindex", one === next ? "0" : "-1");
    next.focus();
    return true;
  }

  /** Shows only the lines of these words, with numbers; of no words: all lines. */
  #show(axis: Axis, places: number[]) {
    const isRow = axis === "rows";
    const mine = ({ row, column }: Line) => places.includes(isRow ? row : column);
    this.element.classList.toggle("gf-lines-one", places.length > 0);
    this.#paths.forEach((one, at) => one.classList.toggle("gf-on", mine(this.#lines[at])));
    for (const other of ["rows", "columns"] as const)
      this.#words[other].forEach((one, place) =>
        one.classList.toggle("gf-lit", other === axis && places.includes(place)),
      );
    const numbers = this.#lines.filter(mine).map((line) => numberOf(line, axis, this.#layout));
    refill(this.#numbers, numbers);
  }
}

/** Returns the layout of a picture in this room. */
function layoutOf({ columnLabels, rowLabels }: Woven, room: number): Layout {
  const width = Math.max(220, Math.min(620, room || 300));
  const widthOf = (labels: string[]) => {
    const longest = Math.max(3, ...labels.map((text) => [...text].length));
    return Math.min(0.36 * width, longest * LETTER + 12);
  };
  const step = matchMedia(COARSE).matches ? 44 : 24;
  return { width, step, left: widthOf(columnLabels), right: width - widthOf(rowLabels) };
}

/** Returns the height of the middle of a word. */
function middle({ step }: Layout, place: number) {
  return (place + 0.5) * step + 22;
}

function pathOf({ row, column, weight }: Line, layout: Layout) {
  const { left, right } = layout;
  const [from, to, bend] = [middle(layout, column), middle(layout, row), (left + right) / 2];
  const made = drawing("path", {
    d: `M${left} ${from}C${bend} ${from} ${bend} ${to} ${right} ${to}`,
    "stroke-width": Math.max(1, THICKEST * weight),
    "stroke-opacity": (0.15 + 0.8 * weight).toFixed(2),
  });
  made.append(drawing("title", {}, numberText(weight, 3)));
  return made;
}

/** Returns a word of one side; `name` says it with its weights. */
function wordOf(axis: Axis, place: number, label: string, name: string, layout: Layout) {
  const { width, step, left, right } = layout;
  const isRow = axis === "rows";
  const x = isRow ? right + 6 : left - 6;
  const y = middle(layout, place);
  const letters = Math.max(3, Math.floor((isRow ? width - x : x) / LETTER));
  const box = { x: isRow ? right : 0, y: y - step / 2, width: isRow ? width - right : left, height: step };
  const anchor = isRow ? "start" : "end";
  return drawing(
    "g",
    { role: "button", tabindex: isRow && place === 0 ? 0 : -1, "aria-label": name, class: "gf-lines-word" },
    drawing("title", {}, name),
    drawing("rect", { ...box, rx: 4 }),
    drawing("text", { x, y: y + 4.5, "text-anchor": anchor }, shortened(label, letters)),
  );
}

/** Returns the weight of a line, beside the end that is opposite a word of this side. */
function numberOf({ row, column, weight }: Line, axis: Axis, layout: Layout) {
  const isRow = axis === "rows";
  const x = isRow ? layout.left + 4 : layout.right - 4;
  const y = middle(layout, isRow ? column : row) + 4;
  return drawing("text", { x, y, "text-anchor": isRow ? "start" : "end" }, numberText(weight, 2));
}

function shortened(text: string, letters: number) {
  const all = [...text];
  return all.length > letters ? `${all.slice(0, letters - 1).join("")}…` : text;
}
