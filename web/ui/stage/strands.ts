// Words and their strands, which rise through the boxes.
import { drawing } from "../figure.ts";
import { boxOf, middle, ribbonHeight } from "./geometry.ts";
import { path, reached, text } from "./pen.ts";
import { tokenName } from "./words.ts";

import type { Stack } from "../../engine/types.ts";
import type { Child } from "../types.ts";
import type { Geometry, Span, StackPlace } from "./geometry.ts";
import type { Pen, TextStyle } from "./pen.ts";

/** Draws the faint strands of all words, without the parts in which attention takes over. */
export function drawStrands(pen: Pen) {
  const { geometry, numbers } = pen;
  return [geometry.encoder, geometry.decoder].map((place) => {
    const all = strandParts(place, geometry);
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

/** Returns the parts of a strand from the words upwards, as pairs of heights; without self-attention, which bends it. */
function strandParts(place: StackPlace, geometry: Geometry): Span[] {
  const self = boxOf(place, "self_attention").y;
  const top =
    place.stack === "encoder"
      ? encoderTop(place)
      : geometry.narrow
        ? boxOf(place, "softmax").y[1]
        : geometry.written[1];
  return [
    [place.words[0] + (geometry.narrow ? 0 : 1), self[1]],
    [self[0], top],
  ];
}

function encoderTop({ card, boxes: all, edges }: StackPlace) {
  return Math.min(card[0], ...all.map(({ y }) => y[0]), ...edges.map(({ y }) => y[0]));
}

/** Draws the lit strands: the source words that are read, and the word that is written. */
export function drawLitStrands(pen: Pen) {
  const { geometry, numbers } = pen;
  const { encoder, decoder } = geometry;
  const made: Child[] = [];
  const seg = (place: StackPlace, column: number, width: number, parts: Span[], hue: string) => {
    const x = place.columns.at[column];
    made.push(
      path(parts.map(([from, to]) => `M${x} ${from}V${to}`).join(""), `var(${hue})`, width, {
        class: "gfs-lit-strand",
      }),
    );
  };
  numbers.read.forEach((weight, column) => {
    const on = column === numbers.source;
    if (weight > 0.02 || on)
      seg(encoder, column, 1 + 2.5 * Math.max(weight, on ? 0.2 : 0), between(encoder, geometry), "--src");
  });
  const knot = crossing(pen, numbers.source);
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

/** Returns the parts of a lit strand between the boxes whose tiles stand in its way, from the bottom up. */
function between(
  place: StackPlace,
  geometry: Geometry,
  top = place.stack === "encoder" ? encoderTop(place) : geometry.written[1],
): Span[] {
  const stops = place.boxes
    .filter(
      ({ id, kind }) =>
        kind === "add" || kind === "emb" || kind === "ffn" || id === "self_attention" || id === "softmax",
    )
    .filter(({ id }) => id !== "positions" && id !== "softmax")
    .sort((a, b) => b.y[0] - a.y[0]);
  const parts: Span[] = [];
  let from = place.words[0];
  for (const { y } of stops) {
    parts.push([from, y[1]]);
    from = y[0];
  }
  return [...parts, [from, top]];
}

/** Returns the parts below a height and those above it. */
function split(parts: Span[], at: number): [Span[], Span[]] {
  return [parts.filter(([, to]) => to >= at), parts.filter(([from]) => from < at)];
}

/** Returns the way from a word that is read to the word that reads, through the box of self-attention. */
export function arcPath(place: StackPlace, from: number, to: number) {
  const [top, bottom] = boxOf(place, "self_attention").y;
  const { at } = place.columns;
  const y = (top + bottom) / 2;
  return `M${at[from]} ${bottom - 1}C${at[from]} ${y} ${at[to]} ${y} ${at[to]} ${top + 1}`;
}

/** Returns the height at which the lit ribbon crosses the lit strand. */
export function crossing({ geometry, numbers }: Pen, source: number) {
  return ribbonHeight(geometry, source, numbers.read.length);
}

/** Draws the words that the stacks read and, on a wide stage, those that the decoder writes. */
export function drawWords(pen: Pen) {
  const { geometry, numbers } = pen;
  const { translated, row, source } = numbers;
  const { encoder, decoder, written } = geometry;
  const word = (
    stack: Stack | "output",
    place: StackPlace,
    column: number,
    y: number,
    token: string,
    style: TextStyle,
    pill = false,
  ) => {
    const x = place.columns.at[column];
    const name = tokenName(token, pen.t);
    const width = place.columns.width[column];
    const shown = place.columns.shown[column] || pill;
    const size = pen.wordSize;
    const wide = pen.measure(name, size, 650) + 12;
    const tall = size + 9;
    return drawing(
      "g",
      {
        class: "gfs-word",
        "data-word": stack,
        "data-column": column,
        role: "button",
        tabindex: -1,
        "aria-label": name,
      },
      drawing("rect", { x: x - width / 2, y: y - 13, width, height: 26, fill: "transparent" }),
      pill &&
        drawing("rect", {
          x: x - wide / 2,
          y: y - tall / 2,
          width: wide,
          height: tall,
          rx: tall / 2,
          fill: "var(--tgt)",
        }),
      !shown && text(x, y, width > 14 ? "…" : "·", { anchor: "middle", fill: "var(--ink3)" }),
      shown &&
        text(x, y, drawing("tspan", { direction: "auto" }, name), { anchor: "middle", size, ...style }),
    );
  };
  const quiet = (token: string) => (/^<.*>$/.test(token) ? "var(--ink3)" : "var(--ink)");
  const made = [
    ...translated.sourceTokens.map((token, at) =>
      word(
        "encoder",
        encoder,
        at,
        middle(encoder.words),
        token,
        at === source ? { fill: "var(--src)", weight: 650 } : { fill: quiet(token) },
      ),
    ),
    ...translated.targetTokens
      .slice(0, pen.written === null ? undefined : Math.min(row, pen.written) + 1)
      .map((token, at) =>
        word(
          "decoder",
          decoder,
          at,
          middle(decoder.words),
          token,
          at === row
            ? { fill: "var(--tgt)", weight: 650 }
            : { fill: at > row ? "var(--ink3)" : quiet(token) },
        ),
      ),
  ];
  if (geometry.narrow)
    return made.filter((_, at) => at === source || at === translated.sourceTokens.length + row);
  const output = translated.outputTokens
    .slice(0, pen.written === null ? undefined : Math.max(0, pen.written))
    .map((token, at) =>
      word(
        "output",
        decoder,
        at,
        middle(written),
        token,
        at === row
          ? { fill: "var(--paper)", weight: 650 }
          : { fill: at > row ? "var(--ink3)" : "var(--ink)" },
        at === row,
      ),
    );
  return [...made, ...output];
}
