// The pen, with which every part of the figure is drawn, and the simplest shapes.
import { drawing } from "../app/drawing.ts";

import type { Stack } from "../../engine/types.ts";
import type { Child, Colours, FamilyId } from "../app/types.ts";
import type { Geometry, Span, StackPlace } from "./geometry.ts";
import type { StageNumbers, Wave } from "./shown.ts";

/** What drawing functions need: the layout, the numbers, and the settings of the stage. */
export interface Pen {
  geometry: Geometry;
  numbers: StageNumbers;
  /** The highlighted box, such as "decoder.cross_attention". */
  box: string;
  colours: Colours;
  measure(text: string, size?: number, weight?: number): number;
  t(key: string, ...values: (string | number)[]): string;
  /** The names of the two languages. */
  languages: { source: string; target: string };
  /** The heads that have pictures, in ascending order, by family. */
  pictured: Record<FamilyId, number[]>;
  /** The waves of two dimensions of each stack's positions; null without positions. */
  waves: Record<Stack, Wave[]> | null;
  /** The font size of the words, in px of the plane. */
  wordSize: number;
  /** Whether the encoder has not produced the memory yet. */
  isEarly: boolean;
  /**
   * How many words have been written at this point of Play or of a chapter; −1: the decoder has not begun; null: all
   * words.
   */
  written: number | null;
}

export interface TextStyle {
  anchor?: "start" | "middle" | "end";
  size?: number;
  fill?: string;
  weight?: number;
  /** The class of the text element. */
  kind?: string;
  /** By how many lines the text is below `y`. */
  down?: number;
}

/** The distance between lines, in em. */
export const LINE = 1.25;
export const SIDES = { encoder: "source", decoder: "target" } as const;
export const HUES = { encoder: "--src", decoder: "--tgt" } as const;

/** Returns a line of text, centred vertically at `y`. */
export function text(x: number, y: number, content: Child, style: TextStyle = {}) {
  const { anchor = "start", size = 12, fill = "var(--ink2)", weight = 400, kind = "", down = 0 } = style;
  return drawing(
    "text",
    {
      x,
      y,
      dy: `${0.36 + LINE * down}em`,
      "text-anchor": anchor,
      class: kind,
      style: `font-size:max(${size}px,var(--least,0px));fill:${fill};font-weight:${weight}`,
    },
    content,
  );
}

/** Returns lines of text, centred vertically as a group. */
export function lines(x: number, y: number, all: string[], style: TextStyle = {}) {
  return all.map((one, at) => text(x, y, one, { ...style, down: at - (all.length - 1) / 2 }));
}

export function rectangle([x0, x1]: Span, [y0, y1]: Span, attributes: Record<string, string | number> = {}) {
  return drawing("rect", {
    x: x0 + 0.5,
    y: y0 + 0.5,
    width: x1 - x0 - 1,
    height: y1 - y0 - 1,
    ...attributes,
  });
}

export function path(
  d: string,
  stroke: string,
  width: number,
  attributes: Record<string, string | number> = {},
) {
  return drawing("path", { d, fill: "none", stroke, "stroke-width": width, ...attributes });
}

/**
 * Returns how many columns of a stack have been computed: all columns of the encoder, and the decoder's columns up to
 * the highlighted row.
 */
export function reached({ stack }: StackPlace, { row }: StageNumbers) {
  return stack === "encoder" ? Infinity : row + 1;
}

/** Returns how strongly a column is highlighted, from 0 to 1. */
export function light(stack: Stack, { read, row, source }: StageNumbers, column: number) {
  if (stack === "decoder") return Number(column === row);
  return column === source ? Math.max(read[column] ?? 0, 0.3) : (read[column] ?? 0);
}
