// The panel of an opened embedding: a word's scaled row of the embedding table, the vector of its position, and their
// sum; each dimension of the position vectors is drawn as a wave.
import { fixedText, digitsText } from "../../engine/number_text.ts";
import { element } from "../dom.ts";
import { drawing } from "../figure.ts";
import { largestSize } from "./strips.ts";
import { LABELS, MARGIN, stripX, vectorBand } from "./zoom_band.ts";
import {
  KEYED,
  barOf,
  enteringLine,
  heading,
  innerLines,
  leavingLine,
  noteAt,
  panelIn,
  put,
  stepButton,
  stopButton,
} from "./zoom_parts.ts";

import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { EmbeddingReading, Summed } from "./embedding_reading.ts";
import type { Tell } from "./strips.ts";
import type { Band } from "./zoom_parts.ts";
import type { Wave } from "./shown.ts";

interface Frame {
  width: number;
  height: number;
  sum: Band;
  position: Band;
  /** The area of the waves; `right`: its right edge. */
  waves: { y: number; height: number; right: number };
  scaled: Band;
  entry: Band;
  word: Band;
}

/** The steps, and the point whose number each step opens. */
const STEPS = {
  word: null,
  entry: "embedding",
  scaled: "embedding",
  waves: "positions",
  position: "positions",
  sum: "input",
} as const;
type Step = keyof typeof STEPS;
const SMALLEST = 908;
const NEAREST = 230; // px: width of the list of nearest words
const ROOMY = { top: 24, strip: 40, said: 34, rise: 44, waves: 3 * 68, words: 24, foot: 34 };
const TIGHT = { top: 12, strip: 30, said: 28, rise: 30, waves: 3 * 50, words: 22, foot: 14 };
const [ROOMY_FROM, HIGHEST] = [740, 3 * 140];

/** Returns the layout of the parts in a room. */
export function embeddingFrame(room: { width: number; height: number }): Frame {
  const gaps = room.height < ROOMY_FROM ? TIGHT : ROOMY;
  const fixed = gaps.top + 5 * gaps.strip - 4 + 3.5 * gaps.said + gaps.rise + gaps.words + gaps.foot;
  const tall = Math.max(gaps.waves, Math.min(HIGHEST, room.height - fixed));
  const width = Math.max(SMALLEST, room.width);
  const sum = { y: gaps.top, height: gaps.strip };
  const position = { y: sum.y + gaps.strip + gaps.said, height: gaps.strip };
  const waves = {
    y: position.y + gaps.strip + gaps.rise,
    height: tall,
    right: width - MARGIN - NEAREST - 40,
  };
  const scaled = { y: waves.y + tall + gaps.words + gaps.said / 2, height: gaps.strip };
  const entry = { y: scaled.y + gaps.strip + gaps.said, height: gaps.strip };
  const word = { y: entry.y + gaps.strip + gaps.said, height: gaps.strip - 4 };
  return { width, height: word.y + word.height + gaps.foot, sum, position, waves, scaled, entry, word };
}

/** Returns the panel and, if it fits without scrolling, the lines that enter and leave the panel. */
export function embeddingPanel(app: App, reading: EmbeddingReading, room: HTMLElement): Child[] {
  return panelIn(app, room, embeddingFrame, (frame, tell) => draw(app, reading, frame, tell));
}

/** Returns the parts of the panel, and the lines outside it. */
function draw(
  app: App,
  reading: EmbeddingReading,
  frame: Frame,
  tell: Tell,
): { parts: Child[]; outside: Child[] } {
  const { vectors, positions, scale, side, row, open, id, words, waves, nearest } = reading;
  function parts() {
    const { sum, position, scaled, entry } = frame;
    const row = reading.entry;
    return [
      drawLines(),
      ...drawBand("sum", sum, vectors.input, KEYED),
      ...(positions === "none" ? [] : drawBand("position", position, vectors.positions, "gfz-plain")),
      ...drawWaves(),
      ...drawNearest(),
      ...(scale.symbol || !row ? drawBand("scaled", scaled, vectors.embedding, "") : []),
      ...(row ? drawBand("entry", entry, row, "gfz-plain") : [drawMissing()]),
      ...drawWord(),
    ];
  }

  function openNumber(kind: Summed, at: number) {
    app.show({ selected: { name: `${side}.${kind}`, index: [row, at] } });
  }

  function stepOf(step: Step, ...values: (string | number)[]) {
    const kind = STEPS[step];
    const name = app.t(`zoom.embedding.${step}`, ...values);
    const at = Object.keys(STEPS).indexOf(step) + 1;
    if (!kind) return element("span", { class: "gfz-step" }, element("i", {}, at), name);
    return stepButton(at, name, step, kind === open.kind, () => openNumber(kind, open.at));
  }

  /** Returns one vector of the sum, with its number in the open dimension. */
  function drawBand(
    step: Exclude<Step, "word" | "waves">,
    band: Band,
    numbers: Float32Array,
    className: string,
  ) {
    const { width } = frame;
    const values = { sum: [], position: [row], scaled: [scale.symbol], entry: [id] }[step];
    const said = element("p", { class: "gfz-made" }, element("strong", {}, digitsText(numbers[open.at])));
    const x = stripX(width, numbers.length, open.at) - LABELS;
    const isFar = x + 70 > frame.waves.right - LABELS; // no room before the list of nearest words
    if (isFar) said.style.right = `${width - LABELS - MARGIN - x + 8}px`;
    else said.style.left = `${x + 8}px`;
    const strip = {
      stop: step,
      name: app.t(`zoom.embedding.strip.${step}`, words[row], row),
      numbers,
      largest: largestSize(numbers),
      chosen: open.at,
      className,
      open: (at: number) => openNumber(STEPS[step], at),
    };
    return vectorBand(stepOf(step, ...values), strip, { ...band, width }, tell, said);
  }

  function drawMissing() {
    const { entry, width } = frame;
    return noteAt(app.t("numbers.needsModel"), { x: LABELS, y: entry.y, width: width - LABELS - MARGIN });
  }

  function drawWord() {
    const { word: band } = frame;
    const box = element(
      "div",
      { class: "gfz-box gfz-head gfz-result" },
      element("bdi", { class: KEYED }, words[row]),
      app.t("zoom.embedding.id", id),
    );
    box.toggleAttribute("data-on", true);
    return [heading(stepOf("word"), band), put(box, { x: LABELS, y: band.y, height: band.height })];
  }

  // The waves

  /** Returns the x coordinate of a position, in px of the panel. */
  function positionX(at: number) {
    const { right } = frame.waves;
    const last = Math.max(1, reading.words.length - 1);
    return LABELS + 20 + (at * (right - LABELS - 40)) / last;
  }

  function drawWaves() {
    const { waves: place } = frame;
    if (waves.length === 0) {
      const off = app.config.positions === "none" ? "positions.none" : "positions.off";
      return [noteAt(app.t(off), { x: LABELS, y: place.y, width: place.right - LABELS })];
    }
    const tall = place.height / waves.length;
    const names = waves.map(({ dimension }, at) => {
      const made = stopButton(
        `dimension ${dimension}`,
        app.t("zoom.embedding.dimension", dimension),
        () => openNumber("positions", dimension),
        {
          className: dimension === reading.open.at ? `gfz-dimension ${KEYED}` : "gfz-dimension",
        },
      );
      return put(made, { x: 18, y: place.y + (at + 0.5) * tall - 12, width: LABELS - 18 });
    });
    const svg = innerLines(
      frame,
      [
        drawChosen(),
        waves.map((wave, at) => drawWave(wave, place.y + (at + 0.5) * tall, tall / 2 - 9)),
        drawWords(),
      ],
      "gfz-waves",
    );
    return [svg, heading(stepOf("waves"), { y: place.y - 30, height: 24 }), ...names];
  }

  /** Returns the vertical line at the chosen position. */
  function drawChosen() {
    const { waves } = frame;
    const x = positionX(reading.row);
    return drawing("path", { class: "gfz-ruler", d: `M${x} ${waves.y}V${waves.y + waves.height}` });
  }

  function drawWave({ dimension, numbers, steps }: Wave, middle: number, tall: number) {
    const most = largestSize(numbers);
    const y = (value: number) => middle - (value / most) * tall;
    const points = Array.from(
      numbers,
      (value, at) => `${positionX(at / steps).toFixed(1)} ${y(value).toFixed(1)}`,
    );
    const isOpen = dimension === open.at;
    const number = numbers[row * steps];
    const [x, isLast] = [positionX(row), row > words.length * 0.8];
    return drawing(
      "g",
      { class: isOpen ? KEYED : "gfz-plain" },
      drawing("path", { class: "gfz-thread", d: `M${LABELS} ${middle}H${frame.waves.right}` }),
      drawing("path", { d: `M${points.join("L")}`, "stroke-width": isOpen ? 2 : 1.25 }),
      words.map((_, at) =>
        drawing("circle", { cx: positionX(at), cy: y(numbers[at * steps]), r: at === row ? 5 : 2 }),
      ),
      drawing(
        "text",
        {
          x: x + (isLast ? -10 : 10),
          y: y(number) + (number < 0 ? 14 : -6),
          "text-anchor": isLast ? "end" : "start",
          class: "gfs-halo",
          style: "stroke: var(--emb)",
        },
        digitsText(number),
      ),
    );
  }

  /** Returns the words below the waves in two lines: as many words as fit, and always the chosen word. */
  function drawWords() {
    const { waves } = frame;
    const half = (at: number) => (words[at].length + 1) * 3.6;
    const lines: [number, number][][] = [[], []];
    return [...new Set([row, ...words.keys()])].map((at) => {
      const [left, right] = [positionX(at) - half(at), positionX(at) + half(at)];
      const line = lines.findIndex((taken) => !taken.some(([from, to]) => left < to && right > from));
      if (line < 0) return null;
      lines[line].push([left, right]);
      const y = waves.y + waves.height + 14 + 13 * line;
      const look = { class: at === row ? KEYED : "", "text-anchor": "middle" };
      return drawing("text", { ...look, x: positionX(at), y }, words[at]);
    });
  }

  function drawNearest() {
    const { waves, width } = frame;
    const x = width - MARGIN - NEAREST;
    if (!nearest) {
      return [noteAt(app.t("zoom.embedding.nearest.none"), { x, y: waves.y, width: NEAREST })];
    }
    const table = element(
      "table",
      { class: "gfz-nearest" },
      element("caption", {}, app.t("zoom.embedding.nearest", words[row])),
      element(
        "tbody",
        {},
        nearest.map(({ word, cosine }) =>
          element(
            "tr",
            {},
            element("th", { scope: "row" }, element("bdi", {}, word)),
            element("td", {}, barOf(90 * Math.abs(cosine)), fixedText(cosine)),
          ),
        ),
      ),
    );
    return [put(table, { x, y: waves.y - 28, width: NEAREST })];
  }

  // Lines

  /** Returns lines that connect the open dimension's numbers with their sum. */
  function drawLines() {
    const { width, sum, position, waves, scaled, entry, word } = frame;
    const x = stripX(width, vectors.input.length, open.at);
    const low = (band: Band) => band.y + band.height;
    const from = reading.entry ? (scale.symbol ? entry : scaled) : scaled;
    const at = reading.waves.findIndex(({ dimension }) => dimension === open.at);
    const dot = positionX(row);
    const top = waves.y + 4;
    const bend = (top - low(position)) / 2;
    return innerLines(frame, [
      drawing(
        "g",
        { class: "gfz-sum" },
        drawing("path", { d: `M${x} ${from.y}V${scaled.y}` }),
        drawing("path", { class: "gfz-dots", d: `M${x} ${scaled.y}V${low(position)}` }),
        drawing("path", { d: `M${x} ${low(position)}V${low(sum)}` }),
        drawing("path", { d: `M${LABELS + 40} ${word.y}V${low(entry)}` }),
        positions !== "none" &&
          at >= 0 &&
          drawing("path", {
            d: `M${dot} ${top}C${dot} ${top - bend} ${x} ${low(position) + bend} ${x} ${low(position)}`,
          }),
      ),
    ]);
  }

  /** Returns the lines that enter from below and leave upwards. */
  function outside() {
    const { height, word, sum, width } = frame;
    const up = LABELS + (width - LABELS - MARGIN) / 2;
    return [
      enteringLine(KEYED, LABELS + 40, height, word, app.t("zoom.from.words")),
      leavingLine(KEYED, up, sum, app.t("zoom.to.layer")),
    ];
  }
  return { parts: parts(), outside: outside() };
}
