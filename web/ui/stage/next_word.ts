// The next word: its logit among the logits of all words, its probability, and what the model would write at each
// box.
import { drawing, pressable } from "../figure.ts";
import { boxOf, middle, rounded } from "./geometry.ts";
import { path, rectangle, text } from "./pen.ts";
import { largestOfParts } from "./words_reading.ts";
import { probabilityWords, tokenName } from "./words.ts";

import type { Child } from "../types.ts";
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

/** Draws the likeliest next words as bars that start at the vertical line (the strand) of the highlighted word. */
export function drawSoftmax(pen: Pen) {
  const { geometry, numbers, measure } = pen;
  const { decoder, narrow } = geometry;
  const [top, bottom] = boxOf(decoder, "softmax").y;
  const written = numbers.translated.hypothesis.ids[numbers.row];
  const [count, all] = [geometry.candidates, numbers.candidates];
  const last = Math.max(
    count - 1,
    all.findIndex(({ id }) => id === written),
  ); // the written word is always drawn, even if it is unlikely, because the sentence names this word
  const shown = [...all.slice(0, count - 1), ...all.slice(last, last + 1)].map((one) => ({
    ...one,
    name: tokenName(one.token, pen.t),
  }));
  if (shown.length === 0) return [];
  const x = decoder.columns.at[numbers.row];
  const flip = x > decoder.room[1] - (narrow ? 110 : 185);
  const names = Math.max(...shown.map(({ name }, at) => measure(name, at ? 12 : 14, at ? 400 : 650)));
  const beside = !flip && x - decoder.x[0] > names + 24;
  const full = Math.max(
    30,
    Math.min(
      190,
      flip ? x - decoder.x[0] - names - 90 : decoder.room[1] - x - 52 - (beside ? 0 : names + 16),
    ),
  );
  const first = top + 14;
  const sign = flip ? -1 : 1;
  const cover: Span = flip
    ? [x - full - 70 - names, x - 1]
    : beside
      ? [x - names - 20, x - 1]
      : [x + 2, x + full + names + 80];
  const made: Child[] = [rectangle(cover, [top + 2, bottom - 2], { fill: "var(--sof)", stroke: "none" })];
  if (beside && !narrow && numbers.logits.length > 0) {
    const [lead, linear] = [linearX(pen), boxOf(decoder, "linear").y];
    if (lead < x - 60)
      made.push(
        path(
          rounded(6, [lead, linear[0] + 5], [lead, first], [x - 16 - measure(shown[0].name, 14, 650), first]),
          "var(--tgt)",
          1,
        ),
      );
  }
  shown.forEach(({ id, name, probability }, at) => {
    const y = first + at * geometry.line;
    const isWritten = id === written;
    const [size, weight] = at === 0 ? [14, 650] : [12, isWritten ? 650 : 400];
    const bar = Math.max(1.5, full * probability);
    const start = x + sign * (at ? 3 : 0);
    const number = probabilityWords(probability);
    made.push(
      drawing("rect", {
        x: flip ? start - bar : start,
        y: y - (at ? 5.5 : 7),
        width: bar,
        height: at ? 11 : 14,
        rx: 1,
        class: isWritten ? "gfs-bar-written" : "",
        fill: isWritten ? "var(--tgt)" : "var(--ink3)",
      }),
      text(x + sign * (bar + 8), y, number, {
        anchor: flip ? "end" : "start",
        fill: at ? "var(--ink3)" : "var(--ink)",
        weight,
        size,
      }),
      text(beside ? x - 11 : x + sign * (bar + 16 + measure(number, size, weight)), y, name, {
        anchor: beside || flip ? "end" : "start",
        size,
        weight,
        fill: isWritten ? "var(--tgt)" : "var(--ink2)",
      }),
    );
  });
  return made;
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
  return numbers.guesses.flatMap(({ at, id, token, probability }) => {
    const y = guessHeight(decoder, at);
    if (y === null) return [];
    const guess = [tokenName(token, pen.t), probabilityWords(probability)];
    const [said, title] = [guess.join(" "), pen.t("stage.guess", ...guess)];
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
