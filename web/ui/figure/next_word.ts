// The next word: its logit among the logits of all words, its probability, and what the model would write at each
// box.
import { drawing, pressable } from "../app/drawing.ts";
import { boxOf, middle, rounded } from "./geometry.ts";
import { path, rectangle, text } from "./pen.ts";
import { largestOfParts } from "./words_reading.ts";
import { probabilityWords, tokenName } from "../app/wording.ts";

import type { Span, StackPlace } from "./geometry.ts";
import type { Pen } from "./pen.ts";

/** Draws one tick for each logit; for a large vocabulary, the largest logit at each px. */
export function drawLinear(pen: Pen) {
  const { geometry, numbers } = pen;
  const { decoder, narrow } = geometry;
  const box = boxOf(decoder, "linear").y;
  const { logits } = numbers;
  if (logits.length === 0) return [];
  const [x0, room] = [decoder.x[0] + (narrow ? 6 : 10), decoder.room[1] - decoder.x[0] - 16];
  const base = box[1] - (narrow ? 3 : 5);
  const tall = box[1] - box[0] - 8;
  const ticks = [...largestOfParts(logits, Math.floor(room))];
  const most = Math.max(...logits.filter(Number.isFinite), 1e-6);
  const d = ticks
    .map(
      (id, at) =>
        `M${(x0 + (at * room) / ticks.length).toFixed(1)} ${base}v${(-Math.max(0, (logits[id] / most) * tall || 0) - 0.8).toFixed(1)}`,
    )
    .join("");
  return [path(d, "var(--ink3)", 0.75), path(`M${linearX(pen)} ${base}v${-tall}`, "var(--tgt)", 2.5)];
}

/** Returns the x coordinate of the written word's tick. */
function linearX({ geometry: { decoder, narrow }, numbers }: Pen) {
  const id = numbers.translated.hypothesis.ids[numbers.row] ?? 0;
  return Math.round(
    decoder.x[0] + (narrow ? 6 : 10) + (id * (decoder.room[1] - decoder.x[0] - 16)) / numbers.logits.length,
  );
}

/** A word as a bar of the softmax box. */
interface Bar {
  id: number;
  name: string;
  probability: number;
}

/** Where the bars stand: to the left or the right of the strand at `x`, with the names beside them or on the other side. */
interface Bars {
  x: number;
  /** Whether the bars grow to the left. */
  flip: boolean;
  /** Whether the names stand on the other side of the strand. */
  beside: boolean;
  /** The length of a bar with probability 1, and the width of the widest name. */
  full: number;
  names: number;
  first: number;
  written: number;
}

/** Draws the likeliest next words as bars that start at the vertical line (the strand) of the highlighted word. */
export function drawSoftmax(pen: Pen) {
  const shown = likeliest(pen);
  if (shown.length === 0) return [];
  const bars = barsOf(pen, shown);
  const { x, flip, beside, full, names } = bars;
  const [top, bottom] = boxOf(pen.geometry.decoder, "softmax").y;
  const cover: Span = flip
    ? [x - full - 70 - names, x - 1]
    : beside
      ? [x - names - 20, x - 1]
      : [x + 2, x + full + names + 80];
  return [
    rectangle(cover, [top + 2, bottom - 2], { fill: "var(--sof)", stroke: "none" }),
    leadFrom(pen, shown[0].name, bars),
    shown.map((bar, at) => drawBar(pen, bar, at, bars)),
  ];
}

/** Returns the words that the box shows, the likeliest first. */
function likeliest({ geometry, numbers, t }: Pen): Bar[] {
  const written = numbers.translated.hypothesis.ids[numbers.row];
  const [count, all] = [geometry.candidates, numbers.candidates];
  const last = Math.max(
    count - 1,
    all.findIndex(({ id }) => id === written),
  ); // the written word is always drawn, even if it is unlikely, because the sentence names this word
  return [...all.slice(0, count - 1), ...all.slice(last, last + 1)].map((one) => ({
    ...one,
    name: tokenName(one.token, t),
  }));
}

function barsOf({ geometry, numbers, measure }: Pen, shown: Bar[]): Bars {
  const { decoder, narrow } = geometry;
  const x = decoder.columns.at[numbers.row];
  const flip = x > decoder.room[1] - (narrow ? 110 : 185);
  const names = Math.max(...shown.map(({ name }, at) => measure(name, at ? 12 : 14, at ? 400 : 650)));
  const beside = !flip && x - decoder.x[0] > names + 24;
  const room = flip ? x - decoder.x[0] - names - 90 : decoder.room[1] - x - 52 - (beside ? 0 : names + 16);
  const full = Math.max(30, Math.min(190, room));
  const written = numbers.translated.hypothesis.ids[numbers.row];
  return { x, flip, beside, full, names, first: boxOf(decoder, "softmax").y[0] + 14, written };
}

/** Draws a line from the written word's tick in the box of Linear to the likeliest word. */
function leadFrom(pen: Pen, name: string, { x, beside, first }: Bars) {
  const { geometry, numbers, measure } = pen;
  if (!beside || geometry.narrow || numbers.logits.length === 0) return [];
  const [lead, linear] = [linearX(pen), boxOf(geometry.decoder, "linear").y];
  if (lead >= x - 60) return [];
  const end = x - 16 - measure(name, 14, 650);
  return path(rounded(6, [lead, linear[0] + 5], [lead, first], [end, first]), "var(--tgt)", 1);
}

function drawBar({ geometry, measure }: Pen, { id, name, probability }: Bar, at: number, bars: Bars) {
  const { x, flip, beside, full, first, written } = bars;
  const y = first + at * geometry.line;
  const isWritten = id === written;
  const [size, weight] = at === 0 ? [14, 650] : [12, isWritten ? 650 : 400];
  const bar = Math.max(1.5, full * probability);
  const sign = flip ? -1 : 1;
  const start = x + sign * (at ? 3 : 0);
  const number = probabilityWords(probability);
  const end = x + sign * (bar + 8);
  return [
    drawing("rect", {
      x: flip ? start - bar : start,
      y: y - (at ? 5.5 : 7),
      width: bar,
      height: at ? 11 : 14,
      rx: 1,
      class: isWritten ? "gfs-bar-written" : "",
      fill: isWritten ? "var(--tgt)" : "var(--ink3)",
    }),
    text(end, y, number, {
      anchor: flip ? "end" : "start",
      fill: at ? "var(--ink3)" : "var(--ink)",
      weight,
      size,
    }),
    text(beside ? x - 11 : end + sign * (8 + measure(number, size, weight)), y, name, {
      anchor: beside || flip ? "end" : "start",
      size,
      weight,
      fill: isWritten ? "var(--tgt)" : "var(--ink2)",
    }),
  ];
}

/**
 * Draws the logit lens: beside the vertical line (the strand) of the highlighted word, at each decoder box that adds
 * something, the word that the model would write there.
 */
export function drawGuesses(pen: Pen) {
  const { geometry, numbers } = pen;
  const { decoder, narrow } = geometry;
  if (narrow) return [];
  const x = decoder.columns.at[numbers.row];
  const written = numbers.translated.hypothesis.ids[numbers.row];
  const drawn = numbers.guesses.filter(({ at }) => guessHeight(decoder, at) !== null);
  return drawn.map(({ at, id, token, probability }, place) => {
    const y = guessHeight(decoder, at) as number;
    const guess = [tokenName(token, pen.t), probabilityWords(probability)];
    const said = place ? guess.join(" ") : `${pen.t("stage.guesses")}: ${guess.join(" ")}`;
    const title = pen.t("stage.guess", ...guess);
    const width = pen.measure(said, 12, 620) + 14;
    const left = x + 26 + width > decoder.room[1];
    const from = left ? x - 22 - width : x + 26;
    return chip(pen, at, said, title, [from, y], id === written);
  });
}

/** Draws the button that explains why the highlighted word was written, under the name of the softmax box. */
export function drawWhy(pen: Pen) {
  const { geometry: { decoder }, numbers, t } = pen; // prettier-ignore
  if (pen.written !== null && pen.written <= numbers.row) return []; // the word has not been written yet
  const why = t("why.title", tokenName(numbers.translated.outputTokens[numbers.row] ?? "", t));
  const fits = pen.measure(why, 12, 620) + 14 < decoder.x[1] - decoder.names;
  const y = middle(boxOf(decoder, "softmax").y) + 14;
  return chip(pen, "why", fits ? why : t("panel.why"), why, [decoder.names - 6, y], true);
}

/** Draws a small button on the figure: a guess of the logit lens, or "Why?". */
function chip(
  pen: Pen,
  at: string,
  said: string,
  about: string,
  [from, y]: [number, number],
  isLit: boolean,
) {
  const width = pen.measure(said, 12, 620) + 14;
  const tall = pen.geometry.least + 8;
  return drawing(
    "g",
    {
      class: `gfs-${at === "why" ? at : "guess"}`,
      "data-guess": at,
      ...pressable(about),
    },
    drawing("title", {}, about),
    drawing("rect", {
      x: from,
      y: y - tall / 2,
      width,
      height: tall,
      rx: tall / 2,
      fill: "var(--card)",
      stroke: isLit ? "var(--tgt)" : "var(--hair)",
    }),
    text(from + width / 2, y, said, {
      anchor: "middle",
      weight: isLit ? 650 : 400,
      fill: isLit ? "var(--tgt)" : "var(--ink2)",
    }),
  );
}

function guessHeight(place: StackPlace, at: string) {
  const edge = at.match(/^layer\.(\d+)$/);
  if (!edge) return middle(boxOf(place, at).y);
  const found = place.edges.find(({ layer }) => layer === Number(edge[1]));
  return found && found.y[1] - found.y[0] >= 16 ? middle(found.y) + 1 : null;
}
