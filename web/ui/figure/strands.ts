// Words and their strands: each strand is a line that rises from a word through the boxes.
import { times } from "../../engine/tensor.ts";
import { drawing, pressable } from "../app/drawing.ts";
import { boxOf, middle, topOf } from "./geometry.ts";
import { rowPathOf, pointOf } from "./row_path.ts";
import { path, reached, text } from "./pen.ts";
import { tokenName } from "../app/wording.ts";

import type { Stack } from "../../engine/types.ts";
import type { Child } from "../app/types.ts";
import type { Geometry, Span, StackPlace } from "./geometry.ts";
import type { Pen, TextStyle } from "./pen.ts";
import type { Seat, StageNumbers } from "./shown.ts";

/** Draws the faint strands of all words, with gaps where arcs of attention take their place. */
export function drawStrands(pen: Pen) {
  const { geometry, numbers } = pen;
  return [geometry.encoder, geometry.decoder].map((place) => {
    const all = strandParts(place, pen);
    const made = place.columns.at.slice(0, reached(place, numbers)).map((x, column) =>
      drawing("path", {
        class: "gfs-strand",
        "data-column": column,
        "data-stack": place.stack,
        d: all.map(([from, to]) => `M${x} ${from}V${to}`).join(""),
        stroke: "var(--strand)",
        fill: "none",
      }),
    );
    return drawing("g", {}, made);
  });
}

/**
 * Returns the vertical parts of a strand, from the words upwards, as pairs of heights. Boxes with arcs are left out.
 */
function strandParts(place: StackPlace, { geometry, numbers }: Pen): Span[] {
  const bent = arcBoxes(place, numbers).map(({ y }) => y);
  const top =
    place.stack === "encoder"
      ? topOf(place)
      : geometry.narrow
        ? boxOf(place, "softmax").y[1]
        : geometry.written[1];
  const ends = [place.words[0] + (geometry.narrow ? 0 : 1), ...bent.flatMap(([from, to]) => [to, from]), top];
  return times(ends.length / 2, (at) => [ends[2 * at], ends[2 * at + 1]]);
}

/**
 * Draws the highlighted strands: the strands of the source words that are attended to, and the strand of the written
 * word.
 */
export function drawLitStrands(pen: Pen) {
  const { geometry, numbers } = pen;
  const { encoder, decoder } = geometry;
  const made: Child[] = [];
  const seg = (place: StackPlace, column: number, width: number, parts: Span[], hue: string) => {
    const x = place.columns.at[column];
    made.push(path(parts.map(([from, to]) => `M${x} ${from}V${to}`).join(""), `var(${hue})`, width));
  };
  numbers.read.forEach((weight, column) => {
    const on = column === numbers.source;
    if (weight > 0.02 || on)
      seg(encoder, column, 1 + 2.5 * Math.max(weight, on ? 0.2 : 0), between(encoder, geometry), "--src");
  });
  if (numbers.steps.crossKeyValue.side === "target") {
    const stops = between(
      decoder,
      geometry,
      geometry.narrow ? boxOf(decoder, "softmax").y[0] - 4 : undefined,
      true,
    );
    seg(decoder, numbers.row, 3.5, stops, "--tgt");
    return made;
  }
  const knot = crossing(pen);
  const cross = boxOf(decoder, "cross_attention").y;
  const after = geometry.narrow ? boxOf(decoder, "softmax").y[0] - 4 : geometry.written[1];
  const parts = between(decoder, geometry, after);
  const [, above] = split(parts, cross[0]);
  const [below] = split(parts, cross[1]);
  seg(decoder, numbers.row, 3.5, [...below, [cross[1], knot], ...above], "--tgt");
  const add = decoder.boxes.find(({ y }) => y[1] <= cross[0] && y[1] > cross[0] - 40);
  seg(decoder, numbers.row, 3.5, [[knot, add ? add.y[1] : cross[0]]], "--src");
  return made;
}

/** Returns the vertical parts of a highlighted strand, from the bottom up. Boxes with tiles are left out. */
function between(
  place: StackPlace,
  geometry: Geometry,
  top = place.stack === "encoder" ? topOf(place) : geometry.written[1],
  isBent = false,
): Span[] {
  const stops = place.boxes
    .filter(
      ({ id, kind }) => /^(add|emb|ffn)$/.test(kind) || id === "self_attention" || (isBent && kind === "att"),
    )
    .filter(({ id }) => id !== "positions")
    .sort((a, b) => b.y[0] - a.y[0]);
  const parts: Span[] = [];
  let from = place.words[0];
  for (const { y } of stops) {
    parts.push([from, y[1]]);
    from = y[0];
  }
  return [...parts, [from, top]];
}

/** Returns the parts that begin below a height, and the parts that end above it. */
function split(parts: Span[], at: number): [Span[], Span[]] {
  return [parts.filter(([, to]) => to >= at), parts.filter(([from]) => from < at)];
}

/**
 * Returns the boxes of a stack that attend to words of the stack itself, and are drawn with arcs, from the bottom up.
 */
function arcBoxes({ stack, boxes }: StackPlace, { steps }: StageNumbers) {
  const isOwn = steps.crossKeyValue.side === stack.replace("decoder", "target");
  return boxes.filter(({ id }) => id === "self_attention" || (isOwn && id === "cross_attention"));
}

/**
 * Returns the path of an arc through a box of attention, from the word that is attended to up to the word that attends.
 */
export function arcPath(place: StackPlace, from: number, to: number, id = "self_attention") {
  const [top, bottom] = boxOf(place, id).y;
  const { at } = place.columns;
  const y = (top + bottom) / 2;
  return `M${at[from]} ${bottom - 1}C${at[from]} ${y} ${at[to]} ${y} ${at[to]} ${top + 1}`;
}

/**
 * Returns the height at which the ribbon of the highlighted source word crosses the strand of the highlighted output
 * word.
 */
export function crossing(pen: Pen) {
  return pointOf(rowPathOf(pen, "cross"), pen.numbers.at.cross).y;
}

/** A word on the figure: where it stands, and how it looks. */
interface Word {
  /** The stack that reads the word, or "output" for a written word. */
  stack: Stack | "output";
  place: StackPlace;
  column: number;
  /** The height of the line. */
  line: number;
  token: string;
  style: TextStyle;
  /** Whether the word has a coloured background. */
  isPill?: boolean;
  /** Whether only the first of two translations has the word. */
  isOwn?: boolean;
}

/** Draws the words that the stacks read and, on a wide stage, the words that the decoder writes. */
export function drawWords(pen: Pen) {
  const { geometry, numbers } = pen;
  const { row, source, translated } = numbers;
  const read = [...sourceWords(pen), ...targetWords(pen)].map((one) => drawWord(pen, one));
  if (geometry.narrow)
    return read.filter((_, at) => at === source || at === translated.sourceTokens.length + row);
  return [...read, ...writtenWords(pen).map((one) => drawWord(pen, one)), wordBefore(pen)];
}

/** Returns whether only the first translation has the word of a column. */
function isOwn(seats: Seat[] | undefined, column: number) {
  return seats !== undefined && !seats.some((one) => one.column === column && !one.isOwn);
}

/** Returns the colour of a word that is not highlighted. */
const quiet = (token: string) => (/^<.*>$/.test(token) ? "var(--ink3)" : "var(--ink)");

function sourceWords({ geometry: { encoder }, numbers }: Pen): Word[] {
  const { translated, source, second } = numbers;
  return translated.sourceTokens.map((token, column) => ({
    stack: "encoder",
    place: encoder,
    column,
    line: middle(encoder.words),
    token,
    style: column === source ? { fill: "var(--src)", weight: 650 } : { fill: quiet(token) },
    isOwn: isOwn(second?.source, column),
  }));
}

function targetWords({ geometry: { decoder }, numbers, written }: Pen): Word[] {
  const { translated, row } = numbers;
  const known = translated.targetTokens.slice(0, written === null ? undefined : Math.min(row, written) + 1);
  return known.map((token, column) => ({
    stack: "decoder",
    place: decoder,
    column,
    line: middle(decoder.words),
    token,
    style:
      column === row
        ? { fill: "var(--tgt)", weight: 650 }
        : { fill: column > row ? "var(--ink3)" : quiet(token) },
  }));
}

function writtenWords({ geometry: { decoder, written: line }, numbers, written }: Pen): Word[] {
  const { translated, row, second } = numbers;
  const known = translated.outputTokens.slice(0, written === null ? undefined : Math.max(0, written));
  return known.map((token, column) => ({
    stack: "output",
    place: decoder,
    column,
    line: middle(line),
    token,
    style:
      column === row
        ? { fill: "var(--paper)", weight: 650 }
        : { fill: column > row ? "var(--ink3)" : "var(--ink)" },
    isPill: column === row,
    isOwn: isOwn(second?.written, column),
  }));
}

function drawWord(
  pen: Pen,
  { stack, place, column, line, token, style, isPill = false, isOwn = false }: Word,
) {
  const x = place.columns.at[column];
  const y = line + (stack === "output" ? -1 : 1) * place.columns.out[column];
  const name = tokenName(token, pen.t);
  const width = place.columns.width[column];
  const shown = place.columns.shown[column] || isPill;
  const size = pen.wordSize;
  const wide = pen.measure(name, size, 650) + 12;
  const tall = size + 9;
  const around = { x: x - wide / 2, y: y - tall / 2, width: wide, height: tall, rx: tall / 2 };
  return drawing(
    "g",
    { class: "gfs-word", "data-word": stack, "data-column": column, ...pressable(name) },
    drawing("rect", { x: x - width / 2, y: y - 13, width, height: 26, fill: "transparent" }),
    isPill && drawing("rect", { ...around, fill: "var(--tgt)" }),
    shown
      ? text(x, y, drawing("tspan", { direction: "auto", ...(isOwn && { class: "gfs-first" }) }, name), {
          anchor: "middle",
          size,
          ...style,
        })
      : text(x, y, width > 14 ? "…" : "·", { anchor: "middle", fill: "var(--ink3)" }),
  );
}

/** Draws the word that stood at the highlighted position before the changes above the written words, struck out. */
function wordBefore({ geometry: { decoder, written }, numbers, t }: Pen) {
  const { row, before } = numbers;
  const [x, y] = [decoder.columns.at[row], middle(written) - 21 - Math.max(...decoder.columns.out)];
  if (before.word === null || y <= 12) return null;
  const style = { anchor: "middle", fill: "var(--ink3)", kind: "gfs-struck" } as const;
  return text(x, y, tokenName(before.word, t), style);
}
