// The layout of the stage: the boxes of Figure 1, and a column for each word. Lengths are in px of the stage's own plane,
// which is scaled as a whole.
import { times } from "../../engine/tensor.ts";
import { boxesOf } from "../app/boxes.ts";

import type { Stack } from "../../engine/types.ts";
import type { BoxEntry, Kind, Shape } from "../app/boxes.ts";

/** An interval: top and bottom, or left and right. */
export type Span = [from: number, to: number];

/** A box of a stack, by its id and kind in the table of boxes. */
export interface Box {
  id: string;
  kind: Kind;
  y: Span;
}

/**
 * The columns of a side's words: their middles, their widths, whether a column shows its word or only a thin line (a
 * thread), and the vertical offset of each word. Words that are too wide for one line alternate between two lines.
 */
export interface Columns {
  at: number[];
  width: number[];
  shown: boolean[];
  out: number[];
}

export interface StackPlace {
  stack: Stack;
  /** The left and right edges of the boxes. */
  x: Span;
  /** The part of the boxes that contains the words' columns. */
  room: Span;
  /** The left edge of the boxes' names. */
  names: number;
  /** The side on which the residual connections run: −1 = left, 1 = right. */
  side: -1 | 1;
  boxes: Box[];
  /** Top and bottom of the open layer's card. */
  card: Span;
  /** The closed layers, of which only edges are visible. */
  edges: { layer: number; y: Span }[];
  /** Top and bottom of the line with the words that the stack reads. */
  words: Span;
  columns: Columns;
}

export interface Geometry {
  width: number;
  height: number;
  narrow: boolean;
  encoder: StackPlace;
  decoder: StackPlace;
  /** Top and bottom of the line with the words that the decoder writes. */
  written: Span;
  /** The number of candidates that the softmax box shows, and the distance between their lines. */
  candidates: number;
  line: number;
  /** The size of the smallest type, in px of the plane. */
  least: number;
}

export interface Plan {
  width: number;
  height: number;
  /** The sizes of the smallest type and of one px of the screen, in px of the plane. */
  least: number;
  near: number;
  shape: Shape;
  layers: Record<Stack, number>;
  /** The open layer of each stack. */
  open: Record<Stack, number>;
  /** The highlighted box, which gets the height that remains. */
  lit: string;
  /** Whether a chapter is open, whose foot stands below the words. */
  tour: boolean;
  /** Whether the words of a second translation are shown under the written words. */
  second: boolean;
  /** The maximum number of lines on which the words of one side may stand alternately. */
  lines: 1 | 2;
  /** The width of the longest name of a stack's boxes. */
  names: Record<Stack, number>;
  /** Whether only the encoder is visible, as wide as the figure, because the decoder has not begun. */
  alone: boolean;
  /** For each column, its labels, one above the other, and whether the column must show its word. */
  columns: Record<
    Stack,
    { labels: string[][]; keep(column: number): boolean; lit: number; leftwards: boolean }
  >;
  /** Returns the width of a word, in bold type and with a frame if it is highlighted. */
  measure(text: string, isLit?: boolean): number;
}

/** The usual height and the least height of a box. */
interface Row {
  id: string;
  kind: Kind;
  usual: number;
  least: number;
}

export const NARROW = 1024;
const LEAST_ROOM = 200; // the room may be smaller for a moment while the page is laid out
const WIDE = { width: 1440, height: 900, largest: 1.25 };
/** Below this size, the figure is scaled down, but its type is not. */
const SMALL = { width: 1280, height: 720, scale: 0.7 };
const TYPE = 12;
const LECTURE_TYPE = 14;
const [THREAD, LEAST] = [12, 16]; // least width of a column: with only a thread, and with its word
const GAP = 8;
const LINE = 26; // distance between two lines of words
/** Below this height in px, a plane is too low for the usual space around its texts. */
export const LOW = 850;
const TOUR = 72; // height of the chapters' foot, with the space above it
const HEAD = 22; // the line of a card that shows the layer's number
const SLIM = 26;
const TALL = 52; // height of an add & norm when it is highlighted; otherwise it is SLIM
const EDGE = { usual: 16, slim: 8 };
const ROOMY = 104; // least height of a highlighted box, in px of the screen
const NARROW_LIT = 44; // the same on a narrow figure, in px
/** The boxes that take the height of cross-attention when they are highlighted. */
const TAKES_ROOM = /^decoder\.(self_attention|feed_forward|softmax)$|(embedding|positions)$/;
export const MOST_CANDIDATES = 6;

/**
 * Returns the size of the figure's plane in a room, its scale, its smallest type in px of the plane, and the style that
 * places it. `whole`: the stage fills the screen. `norms`: the decoder's norms that are boxes of their own.
 */
export function planeOf(room: number, whole = false, tall = innerHeight, norms = 0) {
  if (room < NARROW)
    return { width: Math.max(room, LEAST_ROOM), height: tall, scale: 1, least: TYPE, near: 1, css: "" };
  const fits = ({ width, height }: { width: number; height: number }) =>
    Math.min(room / width, tall / height);
  const larger = Math.min(whole ? Infinity : WIDE.largest, fits(WIDE));
  const small = { ...SMALL, height: SMALL.height + norms * (SLIM + 2 * GAP) };
  const scale = Math.max(SMALL.scale, larger, Math.min(1, fits(small)));
  const width = Math.min(WIDE.width, room / scale);
  const height = Math.max(small.height, Math.min(WIDE.height, Math.round(tall / scale)));
  const margin = Math.max(0, (room - width * scale) / 2);
  const near = Math.max(1, 1 / scale);
  const least = (whole ? LECTURE_TYPE : TYPE) * near;
  const css = `width:${width}px;height:${height}px;transform:scale(${scale});margin-left:${margin}px;--least:${least}px;--near:${near}`;
  return { width, height, scale, least, near, css };
}

export type Plane = ReturnType<typeof planeOf>;

/** Returns the layout of the figure. */
export function geometryOf(plan: Plan): Geometry {
  return plan.width < NARROW ? narrow(plan) : wide(plan);
}

/** Returns the box of this name in a stack. */
export function boxOf({ boxes }: StackPlace, id: string) {
  const found = boxes.find((box) => box.id === id);
  if (!found) throw new Error(`the figure has no box "${id}"`);
  return found;
}

export function middle([from, to]: Span) {
  return (from + to) / 2;
}

/** Returns the boxes of a layer from the bottom up, with their heights. */
function layerRows(stack: Stack, { shape, lit, second, lines, near }: Plan, scale = 1): Row[] {
  const roomy = ROOMY * near;
  // in a low window, second lines of words take height from the attentions
  const low = second || lines > 1 ? scale * 0.9 : scale;
  return boxesOf(stack, shape).layer.map(({ id, kind }): Row => {
    const isLit = lit === `${stack}.${id}`;
    if (kind === "add") return { id, kind, usual: (isLit ? TALL : SLIM) * scale, least: SLIM * scale };
    const isTall = isLit || (stack === "decoder" && id === "cross_attention" && !TAKES_ROOM.test(lit));
    const isNetwork = kind === "ffn";
    const room = isNetwork ? roomy : Math.max(120, roomy);
    const [usual, least] = isTall ? [178, room] : isNetwork ? [48, 32] : [84, 52];
    return { id, kind, usual: usual * scale, least: least * low };
  });
}

/**
 * Returns heights that add up to at most `room`, if possible. Each row shrinks in proportion to the difference
 * between its usual and its least height.
 */
function fitted(rows: Row[], room: number) {
  const spare = rows.reduce((sum, { usual, least }) => sum + usual - least, 0);
  const over = rows.reduce((sum, { usual }) => sum + usual, 0) - room;
  const share = over <= 0 || spare === 0 ? 0 : Math.min(1, over / spare);
  return rows.map(({ usual, least }) => Math.round(usual - share * (usual - least)));
}

/** Stacks boxes upwards from `bottom`. Returns the boxes, and the top edge of the highest box. */
function stacked(rows: Row[], heights: number[], bottom: number, gap = GAP) {
  let y = bottom;
  const boxes = rows.map(({ id, kind }, at): Box => {
    const span: Span = [y - heights[at], y];
    y = span[0] - gap;
    return { id, kind, y: span };
  });
  return { boxes, top: y + gap };
}

/**
 * Returns the middles of words that are packed as tightly as possible, and the right end of the last word. `raised`:
 * the words of the second line.
 */
function closest(sizes: number[][], least: number, raised: boolean[]) {
  const at: number[] = [];
  let end = 0;
  for (const [here, words] of sizes.entries()) {
    const before = raised.lastIndexOf(raised[here], here - 1);
    const isFirst = here === 0 || before < 0;
    const apart = isFirst ? 0 : Math.max(...words.map((word, line) => (word + sizes[before][line]) / 2)) + 3;
    const half = Math.max(...words) / 2;
    at.push(Math.max(half, (at[here - 1] ?? -least / 2) + least, isFirst ? 0 : at[before] + apart));
    end = Math.max(end, at[here] + half);
  }
  return { at, end };
}

/** Packs words into a room. On two lines, the words alternate between the lines. */
function packed(sizes: number[][], least: number, lines: number, room: number) {
  const [one, two] = [1, 2].map((count) => {
    const raised = sizes.map((_, at) => at % count > 0);
    return { ...closest(sizes, least, raised), raised };
  });
  return lines > 1 && one.end > room ? two : one;
}

/** Returns the columns of words in this room. If not all words fit, the words for which `keep` is true are shown. */
export function columnsOf(
  labels: string[][],
  [from, to]: Span,
  keep: (column: number) => boolean,
  measure: (text: string, column: number) => number,
  leftwards = false,
  most = 26,
  turns = 1,
): Columns {
  const sizes = labels.map((words, at) => words.map((word) => measure(word, at)));
  const room = to - from;
  const round = (at: number[]) => at.map((x) => Math.round(leftwards ? to - x : from + x));
  for (const [least, lines] of [
    [24, 1],
    [LEAST, 1],
    [LEAST, turns],
  ]) {
    const { at: tight, end, raised } = packed(sizes, least, lines, room);
    const extra = Math.min(most, (room - end) / sizes.length);
    if (extra < 0) continue;
    const at = tight.map((x, here) => x + extra * (here + 0.5));
    const width = at.map((x, here) => Math.min(x - (at[here - 1] ?? -x), (at[here + 1] ?? 2 * room - x) - x));
    return {
      at: round(at),
      width,
      shown: at.map(() => true),
      out: raised.map((one) => (one ? LINE : 0)),
    };
  }
  const full = sizes.map((words) => Math.max(LEAST, ...words) + 3);
  const shown = full.map((_, at) => keep(at));
  const taken = () => full.reduce((sum, width, at) => sum + (shown[at] ? width : THREAD), 0);
  const kept = [...full.keys()].filter((at) => shown[at]);
  const away = (at: number) => Math.min(...kept.map((one) => Math.abs(one - at)));
  const nearest = [...full.keys()].filter((at) => !shown[at]).sort((a, b) => away(a) - away(b));
  for (const at of nearest) {
    shown[at] = true;
    if (taken() > room) shown[at] = false;
  }
  const wide = full.reduce((sum, width, at) => sum + (shown[at] ? width : 0), 0);
  const closed = shown.filter((one) => !one).length;
  const thin = closed ? Math.max(1, (room - wide) / closed) : 0;
  const squeeze = Math.min(1, room / (wide + thin * closed)); // even the words that must be shown may be too many
  const width = full.map((one, at) => (shown[at] ? one : thin) * squeeze);
  let x = 0;
  const at = width.map((one) => (x += one) - one / 2);
  return { at: round(at), width, shown, out: at.map(() => 0) };
}

/** Returns the height of a closed layer's edge, and the total heights below and above the open layer. */
function edgeHeights(layers: number, open: number, isTight = false) {
  const height = layers > 2 || isTight ? EDGE.slim : EDGE.usual;
  const span = (count: number) => count * height + (count ? 5 : 0);
  return { height, below: span(open), above: span(layers - 1 - open) };
}

/** Returns the x coordinate at which the decoder begins, at about 48 % of the figure's width (686 px of 1440 px). */
export function splitOf(width: number) {
  return Math.round(width * 0.4765);
}

/** The layout with the encoder at the left and the decoder at the right, as in the paper. */
function wide(plan: Plan): Geometry {
  const { width, height } = plan;
  const common = commonOf(plan);
  const { heights, ...right } = decoderOf(plan, common);
  const encoder = encoderOf(plan, common, heights);
  return { width, height, narrow: false, encoder, ...right, least: plan.least };
}

/** What both stacks of the wide layout share. */
function commonOf(plan: Plan) {
  const { height, layers, open } = plan;
  const two = plan.lines > 1;
  // leaves room for the examples and the notice, or for the foot of the chapters
  const bottom = height - (plan.tour ? TOUR + (two ? LINE : 0) : two ? 72 : 76);
  const words: Span = [bottom - 32, bottom];
  // closed layers are below the encoder's open layer and above the decoder's open layer
  const isTight = height < 800 && open.encoder > 0 && open.decoder < layers.decoder - 1;
  const edges = {
    encoder: edgeHeights(layers.encoder, open.encoder, isTight),
    decoder: edgeHeights(layers.decoder, open.decoder, isTight),
  };
  const below = Math.max(edges.encoder.below, edges.decoder.below);
  const { inputs: read, outputs } = boxesOf("decoder", plan.shape);
  const low = plan.second || plan.lines > 1 ? SLIM : 2 * SLIM;
  const tall = height < 800 && !plan.alone ? low : ROOMY * plan.near;
  const embeddings = read.map(({ id, kind }): Row => {
    const isLit = plan.lit.endsWith(`coder.${id}`);
    return { id, kind, usual: isLit ? tall : SLIM, least: SLIM };
  });
  const norms = outputs.flatMap(({ id, kind }): Row[] =>
    kind === "add" ? [{ id, kind, usual: 26, least: 26 }] : [],
  );
  const own = layerRows("encoder", plan);
  const lit = plan.alone && [...own, ...embeddings].find(({ id }) => plan.lit === `encoder.${id}`);
  if (lit) {
    const taken = [...own, ...embeddings].reduce((sum, { usual }) => sum + usual + GAP, 0);
    const around = below + edges.encoder.above + norms.length * 34 + HEAD + GAP + 21;
    lit.usual += words[0] - taken - around - (height < LOW ? (plan.tour ? 175 : 185) : plan.tour ? 245 : 290); // leaves room for the sentence above
  }
  const usual = embeddings.map((row) => row.usual);
  const inputs = stacked(embeddings, usual, words[0] - 10);
  const floor = inputs.top - 11 - below - GAP; // where the open layers begin, at the same height in both stacks
  return { words, edges, outputs, norms, own, inputs, floor };
}

type Common = ReturnType<typeof commonOf>;

/** Returns the place of an open layer's boxes, its card, the norm above it, and what is above both. */
function layerOf({ norms, edges, floor }: Common, stack: Stack, rows: Row[], heights: number[]) {
  const inner = stacked(rows, heights, floor);
  const card: Span = [inner.top - HEAD, floor + GAP];
  const edge = card[0] - edges[stack].above;
  const final = stacked(norms, [26], edge - GAP);
  return { boxes: [...inner.boxes, ...final.boxes], card, top: norms.length ? final.top : edge };
}

/** Returns the decoder, the written words, and the heights of the boxes in its layer. */
function decoderOf(plan: Plan, common: Common) {
  const { width, layers, open } = plan;
  const { words, edges, outputs, norms, inputs, floor } = common;
  // if the encoder is alone, the decoder is out of sight, beyond the right edge
  const split = plan.alone ? width + 200 : splitOf(width);
  const right = split + width - 38 - splitOf(width);
  const names = right - 6 - Math.max(66, plan.names.decoder);
  const room: Span = [split + 4, names - 6];
  const columns = columnsFor("decoder", plan, room);
  const isSoft = plan.lit === "decoder.softmax";
  const candidates = isSoft ? MOST_CANDIDATES : plan.height < 900 ? 3 : 5;
  const line = Math.max(16.2, plan.least * 1.25);
  const softmax = Math.max(candidates * line + 11, isSoft ? ROOMY * plan.near : 0);
  const under = plan.second ? 26 : 0;
  const fixed = 140 + HEAD + Math.max(...columns.out) + under + softmax;
  const rows = layerRows("decoder", plan);
  const above = fixed + edges.decoder.above + norms.length * 34;
  const heights = fitted(rows, floor - above - (rows.length - 1) * GAP);
  const { boxes, card, top } = layerOf(common, "decoder", rows, heights);
  const linear: Span = [top - 38, top - 10];
  const soft: Span = [linear[0] - 10 - softmax, linear[0] - 10];
  const decoder: StackPlace = {
    stack: "decoder",
    x: [split, right],
    room,
    names,
    side: 1,
    boxes: [...inputs.boxes, ...boxes, ...wordBoxes(outputs, linear, soft)],
    card,
    edges: edgesOf(layers.decoder, open.decoder, card, edges.decoder.height),
    words,
    columns,
  };
  const written: Span = [soft[0] - 36 - under, soft[0] - 10 - under];
  return {
    decoder,
    written,
    candidates,
    line,
    heights: new Map(rows.map(({ id }, at) => [id, heights[at]])),
  };
}

/** Returns the encoder; its boxes have the heights of the decoder's, unless one is highlighted. */
function encoderOf(plan: Plan, common: Common, heights: Map<string, number>): StackPlace {
  const { width, layers, open } = plan;
  const { words, edges, own, inputs } = common;
  const edge = plan.alone ? width - 38 : splitOf(width) - 64;
  const room: Span = [58 + Math.max(66, plan.names.encoder), edge - 4];
  const level = own.map(({ id, usual }) => {
    if (plan.alone) return usual;
    const height = heights.get(id) as number;
    return `encoder.${id}` === plan.lit
      ? Math.min(usual, Math.max(84, plan.height - 600)) // a low window needs room for the sentence above
      : `decoder.${id}` === plan.lit
        ? Math.min(height, usual)
        : height;
  });
  const { boxes, card } = layerOf(common, "encoder", own, level);
  return {
    stack: "encoder",
    x: [40, edge],
    room,
    names: 52,
    side: -1,
    boxes: [...inputs.boxes, ...boxes],
    card,
    edges: edgesOf(layers.encoder, open.encoder, card, edges.encoder.height),
    words,
    columns: columnsFor("encoder", plan, room),
  };
}

/** The layout with the decoder above the encoder; the memory rises at the left edge. */
function narrow(plan: Plan): Geometry {
  const { width, layers, open } = plan;
  const scale = width < 700 ? 0.62 : 0.8;
  const x: Span = [44, width - 12];
  const widest = Math.max(plan.names.encoder, plan.names.decoder);
  const names = width - 16 - Math.max(width < 700 ? 73 : 94, widest);
  const room: Span = [50, names - 5];
  const slim = 16;
  const place = (stack: Stack, top: number) => {
    const { height, below, above } = edgeHeights(layers[stack], open[stack]);
    const rows = layerRows(stack, plan, scale);
    const isLit = (id: string) => plan.lit.replace("positions", "embedding") === `${stack}.${id}`;
    const heights = rows.map(({ id, usual }) =>
      Math.max(isLit(id) ? NARROW_LIT : 0, id.includes(".") ? slim : Math.round(usual)),
    );
    const low = isLit("embedding") ? NARROW_LIT : slim;
    const total = heights.reduce((sum, one) => sum + one + 4, 0);
    const head = 8;
    const floor = top + above + head + total;
    const inner = stacked(rows, heights, floor - 4, 4);
    const card: Span = [inner.top - head, floor];
    const [{ id, kind }] = boxesOf(stack, plan.shape).inputs; // the box of the embedding shows the positions, too
    const end = floor + below + 10 + low;
    const outer = stacked([{ id, kind, usual: slim, least: slim }], [low], end);
    const words: Span = [end, end + 18];
    return {
      stack,
      x,
      room,
      names,
      side: 1 as const,
      boxes: [...outer.boxes, ...inner.boxes],
      card,
      edges: edgesOf(layers[stack], open[stack], card, height),
      words,
      columns: columnsFor(stack, { ...plan, lines: 1 }, room),
    };
  };
  const [candidates, line] = [4, 14.5];
  const soft: Span = [8, 8 + candidates * line + 8];
  const linear: Span = [soft[1] + 5, soft[1] + 5 + slim];
  const decoder = place("decoder", linear[1] + 6);
  decoder.boxes.push(...wordBoxes(boxesOf("decoder", plan.shape).outputs, linear, soft));
  const encoder = place(
    "encoder",
    decoder.words[1] + 8 + Math.min(60, 4 + 2.2 * plan.columns.encoder.labels.length),
  );
  return {
    width,
    height: encoder.words[1] + 4,
    narrow: true,
    encoder,
    decoder,
    written: [0, 8],
    candidates,
    line,
    least: plan.least,
  };
}

/** Returns the boxes that turn the decoder's last vector into words. */
function wordBoxes(outputs: BoxEntry[], linear: Span, softmax: Span) {
  const spans: Partial<Record<Kind, Span>> = { lin: linear, sof: softmax };
  return outputs.flatMap(({ id, kind }): Box[] => (spans[kind] ? [{ id, kind, y: spans[kind] }] : []));
}

function columnsFor(stack: Stack, { columns, measure, alone, lines }: Plan, room: Span) {
  const { labels, keep, lit, leftwards } = columns[stack];
  const width = (text: string, column: number) => measure(text, column === lit);
  return columnsOf(labels, room, keep, width, leftwards, alone ? Infinity : 26, lines);
}

function edgesOf(layers: number, open: number, card: Span, height: number) {
  return times(layers, (layer) => {
    const y: Span =
      layer < open
        ? [card[1] + (open - 1 - layer) * height, card[1] + (open - layer) * height + 5]
        : [card[0] - (layer - open) * height - 5, card[0] - (layer - open - 1) * height];
    return { layer, y };
  }).filter(({ layer }) => layer !== open);
}

// Lines

/** Returns the SVG path of a line through these points, made of vertical and horizontal parts with rounded corners. */
export function rounded(radius: number, ...points: [x: number, y: number][]) {
  const beside = ([x, y]: number[], [toX, toY]: number[]) => [
    x + radius * Math.sign(toX - x),
    y + radius * Math.sign(toY - y),
  ];
  return points
    .map((point, at) => {
      const [before, after] = [points[at - 1], points[at + 1]];
      if (!before) return `M${point}`;
      return after ? `L${beside(point, before)}Q${point} ${beside(point, after)}` : `L${point}`;
    })
    .join("");
}

/** Returns the top edge of a stack's boxes and layers. */
export function topOf({ card, boxes, edges }: StackPlace) {
  return Math.min(card[0], ...[...boxes, ...edges].map(({ y }) => y[0]));
}

/** A rectangle on the figure's plane. */
export interface Area {
  x: Span;
  y: Span;
}
