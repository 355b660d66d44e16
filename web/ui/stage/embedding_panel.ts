// The panel of an opened embedding: a word's row of the table, scaled, plus a number of each position's wave.
import { fixedText, digitsText } from "../../engine/number_text.ts";
import { button, element } from "../dom.ts";
import { drawing } from "../figure.ts";
import { largestSize } from "./strips.ts";
import { LABELS, MARGIN, stripX, vectorBand } from "./zoom_band.ts";
import { KEYED, outerLine, panelIn, put, stepButton } from "./zoom_parts.ts";

import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { EmbeddingReading, Summed, Wave } from "./embedding_reading.ts";
import type { Tell } from "./strips.ts";
import type { Band } from "./zoom_band.ts";

interface Frame {
  width: number;
  height: number;
  sum: Band;
  position: Band;
  /** The waves, from the top; `right`: where they end. */
  waves: { y: number; height: number; right: number };
  scaled: Band;
  entry: Band;
  word: Band;
}

/** The steps, and the point whose number each opens. */
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
const NEAREST = 230; // the width of the list of the nearest words
const ROOMY = { top: 24, strip: 40, said: 34, rise: 44, waves: 3 * 68, words: 24, foot: 34 };
const TIGHT = { top: 12, strip: 30, said: 28, rise: 30, waves: 3 * 50, words: 22, foot: 14 };
const [ROOMY_FROM, HIGHEST] = [740, 3 * 140];

/** Returns the places of the parts in a room. */
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

/** Returns the panel and, where it needs no scrolling, the lines that lead into it and out of it. */
export function embeddingPanel(app: App, reading: EmbeddingReading, room: HTMLElement): Child[] {
  return panelIn(app, room, embeddingFrame, (frame, tell) => {
    const panel = new Panel(app, reading, frame, tell);
    return { parts: panel.parts(), outside: panel.outside() };
  });
}

class Panel {
  #app: App;
  #reading: EmbeddingReading;
  #frame: Frame;
  #tell: Tell;

  constructor(app: App, reading: EmbeddingReading, frame: Frame, tell: Tell) {
    [this.#app, this.#reading, this.#frame, this.#tell] = [app, reading, frame, tell];
  }

  parts() {
    const { sum, position, scaled, entry } = this.#frame;
    const { vectors, positions, scale } = this.#reading;
    const row = this.#reading.entry;
    return [
      this.#lines(),
      ...this.#band("sum", sum, vectors.input, KEYED),
      ...(positions === "none" ? [] : this.#band("position", position, vectors.positions, "gfz-plain")),
      ...this.#waves(),
      ...this.#nearest(),
      ...(scale.symbol || !row ? this.#band("scaled", scaled, vectors.embedding, "") : []),
      ...(row ? this.#band("entry", entry, row, "gfz-plain") : [this.#missing()]),
      ...this.#word(),
    ];
  }

  #t(key: string, ...values: (string | number)[]) {
    return this.#app.t(key, ...values);
  }

  #open(kind: Summed, at: number) {
    const { side, row } = this.#reading;
    this.#app.show({ selected: { name: `${side}.${kind}`, index: [row, at] } });
  }

  #step(step: Step, ...values: (string | number)[]) {
    const { open } = this.#reading;
    const kind = STEPS[step];
    const name = this.#t(`zoom.embedding.${step}`, ...values);
    const at = Object.keys(STEPS).indexOf(step) + 1;
    if (!kind) return element("span", { className: "gfz-step" }, element("i", {}, at), name);
    return stepButton(at, name, step, kind === open.kind, () => this.#open(kind, open.at));
  }

  /** Returns a vector of the sum, with its number in the open dimension. */
  #band(step: Exclude<Step, "word" | "waves">, band: Band, numbers: Float32Array, className: string) {
    const { open, id, row, scale, words } = this.#reading;
    const { width } = this.#frame;
    const values = { sum: [], position: [row], scaled: [scale.symbol], entry: [id] }[step];
    const said = element("p", { className: "gfz-made" }, element("strong", {}, digitsText(numbers[open.at])));
    const x = stripX(width, numbers.length, open.at) - LABELS;
    const isFar = x + 70 > this.#frame.waves.right - LABELS; // the nearest words begin there
    if (isFar) said.style.right = `${width - LABELS - MARGIN - x + 8}px`;
    else said.style.left = `${x + 8}px`;
    const strip = {
      stop: step,
      name: this.#t(`zoom.embedding.strip.${step}`, words[row], row),
      numbers,
      largest: largestSize(numbers),
      chosen: open.at,
      className,
      open: (at: number) => this.#open(STEPS[step], at),
    };
    return vectorBand(this.#step(step, ...values), strip, { ...band, width }, this.#tell, said);
  }

  #missing() {
    const { entry, width } = this.#frame;
    const note = element("p", { className: "gfz-note" }, this.#t("numbers.needsModel"));
    return put(note, { x: LABELS, y: entry.y, width: width - LABELS - MARGIN });
  }

  #word() {
    const { word: band } = this.#frame;
    const { words, row, id } = this.#reading;
    const box = element(
      "div",
      { className: "gfz-box gfz-head gfz-result" },
      element("bdi", { className: KEYED }, words[row]),
      this.#t("zoom.embedding.id", id),
    );
    box.toggleAttribute("data-on", true);
    return [
      put(element("div", { className: "gfz-heading" }, this.#step("word")), {
        x: 18,
        y: band.y + band.height / 2 - 12,
      }),
      put(box, { x: LABELS, y: band.y, height: band.height }),
    ];
  }

  // The waves

  /** Returns where a position stands, in px of the panel. */
  #positionX(at: number) {
    const { right } = this.#frame.waves;
    const last = Math.max(1, this.#reading.words.length - 1);
    return LABELS + 20 + (at * (right - LABELS - 40)) / last;
  }

  #waves() {
    const { waves: place, width } = this.#frame;
    const { waves } = this.#reading;
    if (waves.length === 0) {
      const off = this.#app.config.positions === "none" ? "positions.none" : "positions.off";
      const note = element("p", { className: "gfz-note" }, this.#t(off));
      return [put(note, { x: LABELS, y: place.y, width: place.right - LABELS })];
    }
    const tall = place.height / waves.length;
    const heading = put(element("div", { className: "gfz-heading" }, this.#step("waves")), {
      x: 18,
      y: place.y - 30,
    });
    const names = waves.map(({ dimension }, at) => {
      const made = button(
        this.#t("zoom.embedding.dimension", dimension),
        () => this.#open("positions", dimension),
        {
          className: dimension === this.#reading.open.at ? `gfz-dimension ${KEYED}` : "gfz-dimension",
        },
      );
      made.dataset.stop = `dimension ${dimension}`;
      return put(made, { x: 18, y: place.y + (at + 0.5) * tall - 12, width: LABELS - 18 });
    });
    const svg = drawing(
      "svg",
      { class: "gfz-lines gfz-waves", width, height: this.#frame.height, "aria-hidden": "true" },
      this.#chosen(),
      waves.map((wave, at) => this.#wave(wave, place.y + (at + 0.5) * tall, tall / 2 - 9)),
      this.#words(),
    );
    return [svg, heading, ...names];
  }

  /** Returns the line of the chosen position. */
  #chosen() {
    const { waves } = this.#frame;
    const x = this.#positionX(this.#reading.row);
    return drawing("path", { class: "gfz-ruler", d: `M${x} ${waves.y}V${waves.y + waves.height}` });
  }

  #wave({ dimension, numbers, steps }: Wave, middle: number, tall: number) {
    const { row, open, words } = this.#reading;
    const most = largestSize(numbers);
    const y = (value: number) => middle - (value / most) * tall;
    const points = Array.from(
      numbers,
      (value, at) => `${this.#positionX(at / steps).toFixed(1)} ${y(value).toFixed(1)}`,
    );
    const isOpen = dimension === open.at;
    const number = numbers[row * steps];
    const [x, isLast] = [this.#positionX(row), row > words.length * 0.8];
    return drawing(
      "g",
      { class: isOpen ? KEYED : "gfz-plain" },
      drawing("path", { class: "gfz-thread", d: `M${LABELS} ${middle}H${this.#frame.waves.right}` }),
      drawing("path", { d: `M${points.join("L")}`, "stroke-width": isOpen ? 2 : 1.25 }),
      words.map((_, at) =>
        drawing("circle", { cx: this.#positionX(at), cy: y(numbers[at * steps]), r: at === row ? 5 : 2 }),
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

  /** Returns the words below the waves in two lines, as many as there is room for, and the chosen one. */
  #words() {
    const { words, row } = this.#reading;
    const { waves } = this.#frame;
    const half = (at: number) => (words[at].length + 1) * 3.6;
    const lines: [number, number][][] = [[], []];
    return [...new Set([row, ...words.keys()])].map((at) => {
      const [left, right] = [this.#positionX(at) - half(at), this.#positionX(at) + half(at)];
      const line = lines.findIndex((taken) => !taken.some(([from, to]) => left < to && right > from));
      if (line < 0) return null;
      lines[line].push([left, right]);
      const y = waves.y + waves.height + 14 + 13 * line;
      const look = { class: at === row ? KEYED : "", "text-anchor": "middle" };
      return drawing("text", { ...look, x: this.#positionX(at), y }, words[at]);
    });
  }

  #nearest() {
    const { waves, width } = this.#frame;
    const { nearest, words, row } = this.#reading;
    const x = width - MARGIN - NEAREST;
    if (!nearest) {
      const note = element("p", { className: "gfz-note" }, this.#t("zoom.embedding.nearest.none"));
      return [put(note, { x, y: waves.y, width: NEAREST })];
    }
    const table = element(
      "table",
      { className: "gfz-nearest" },
      element("caption", {}, this.#t("zoom.embedding.nearest", words[row])),
      element(
        "tbody",
        {},
        nearest.map(({ word, cosine }) =>
          element(
            "tr",
            {},
            element("th", { scope: "row" }, element("bdi", {}, word)),
            element(
              "td",
              {},
              element("i", { style: `width: ${Math.max(1, 90 * Math.abs(cosine))}px` }),
              fixedText(cosine),
            ),
          ),
        ),
      ),
    );
    return [put(table, { x, y: waves.y - 28, width: NEAREST })];
  }

  // Lines

  /** Returns how the open dimension's numbers come together. */
  #lines() {
    const { width, height, sum, position, waves, scaled, entry, word } = this.#frame;
    const { open, positions, row, vectors, scale } = this.#reading;
    const x = stripX(width, vectors.input.length, open.at);
    const low = (band: Band) => band.y + band.height;
    const from = this.#reading.entry ? (scale.symbol ? entry : scaled) : scaled;
    const at = this.#reading.waves.findIndex(({ dimension }) => dimension === open.at);
    const dot = this.#positionX(row);
    const top = waves.y + 4;
    const bend = (top - low(position)) / 2;
    return drawing(
      "svg",
      { class: "gfz-lines", width, height, "aria-hidden": "true" },
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
    );
  }

  /** Returns the lines from below and to above. */
  outside() {
    const { height, word, sum, width } = this.#frame;
    const up = LABELS + (width - LABELS - MARGIN) / 2;
    return [
      ...outerLine(
        KEYED,
        `M${LABELS + 40} ${height + 48}V${word.y + word.height}`,
        [LABELS + 54, height + 30],
        this.#t("zoom.from.words"),
      ),
      ...outerLine(KEYED, `M${up} -48V${sum.y}`, [up + 14, -20], this.#t("zoom.to.layer")),
    ];
  }
}
