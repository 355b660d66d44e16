// The rows of an opened embedding: a word's scaled row of the embedding table, the vector of its position, and their
// sum; each dimension of the position vectors is drawn as a wave.
import { fixedText, digitsText } from "../../engine/number_text.ts";
import { lineFromBelow, lineUpwards, lowEdge, numberX } from "./lines.ts";
import { below, gap, noteOf, over, stripBox } from "./rows.ts";
import { element } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { largestSize } from "./strips.ts";
import { KEYED, barOf, stepButton, stepName, stopButton } from "./zoom_parts.ts";

import type { App } from "../app/app.ts";
import type { Box, Row } from "./rows.ts";
import type { Child } from "../app/types.ts";
import type { EmbeddingReading, Summed } from "../figure/embedding_reading.ts";
import type { Place, Ruler, Tell } from "./strips.ts";
import type { Wave } from "../figure/shown.ts";

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
type Band = Exclude<Step, "word" | "waves">;
/** A part of the panel for each vector that is shown. */
type Bands = Partial<Record<Band, HTMLElement>>;

/** The waves are drawn from the first to the last word, which stand at this distance from the edges, in px. */
const EDGE = 20;
/** The share of the width, in %, up to which a number stands at the right of its column: then the nearest words follow. */
const FAR = 65;
/** Where a line leaves the word's box, in px from its left edge. */
const STEM = 40;

/** Returns the rows of an opened embedding. */
export function embeddingBox(app: App, reading: EmbeddingReading, tell: Tell): Box {
  const { vectors, positions, scale, entry } = reading;
  const bands: Bands = {};
  const band = (step: Band, numbers: Float32Array | null | false, className: string): Row => {
    if (!numbers) return gap([30, 40]);
    bands[step] = stripBox(
      stripOf(app, reading, step, numbers, className),
      tell,
      "",
      belowOf(reading, numbers),
    );
    return { height: [30, 40], name: stepOf(app, reading, step), parts: [bands[step]] };
  };
  const field = over("2", element("div"));
  const word = wordBox(app, reading);
  return {
    columns: "126px minmax(0, 1fr) 40px 230px 36px",
    rows: [
      gap([12, 24]),
      band("sum", vectors.input, KEYED),
      gap([28, 34]),
      band("position", positions !== "none" && vectors.positions, "gfz-plain"),
      { height: [30, 44], name: reading.waves.length > 0 && stepOf(app, reading, "waves") },
      wavesRow(app, reading, field),
      gap([36, 41]),
      band("scaled", (scale.symbol !== "" || !entry) && vectors.embedding, ""),
      gap([28, 34]),
      entry
        ? band("entry", entry, "gfz-plain")
        : { height: [30, 40], parts: [noteOf(app.t("numbers.needsModel"))] },
      gap([28, 34]),
      { height: [26, 36], name: stepOf(app, reading, "word"), parts: [word] },
      gap([14, 34]),
    ],
    lines: (ruler) => [
      sumLines(reading, bands, [word, field], ruler),
      reading.waves.length > 0 && wavesLines(reading, ruler(field)),
    ],
    outside: (ruler, height) => [
      lineFromBelow(KEYED, ruler(word).x + STEM, height, app.t("zoom.from.words")),
      lineUpwards(KEYED, numberX(ruler(bands.sum as HTMLElement), 1, 0), app.t("zoom.to.layer")),
    ],
  };
}

function openNumber(app: App, { side, row }: EmbeddingReading, kind: Summed, at: number) {
  app.show({ selected: { name: `${side}.${kind}`, index: [row, at] } });
}

function stepOf(app: App, reading: EmbeddingReading, step: Step) {
  const { open, row, scale, id } = reading;
  const kind = STEPS[step];
  const value = { position: row, scaled: scale.symbol, entry: id }[step as string] ?? "";
  const name = app.t(`zoom.embedding.${step}`, value);
  const at = Object.keys(STEPS).indexOf(step) + 1;
  if (!kind) return stepName(at, name);
  return stepButton(at, name, step, kind === open.kind, () => openNumber(app, reading, kind, open.at));
}

/** Returns one vector of the sum as a strip. */
function stripOf(app: App, reading: EmbeddingReading, step: Band, numbers: Float32Array, className: string) {
  const { words, row, open } = reading;
  return {
    stop: step,
    name: app.t(`zoom.embedding.strip.${step}`, words[row], row),
    numbers,
    bars: true,
    chosen: open.at,
    className,
    open: (at: number) => openNumber(app, reading, STEPS[step], at),
  };
}

/** Returns the number of a vector in the open dimension, which is shown below it. */
function belowOf({ open }: EmbeddingReading, numbers: Float32Array) {
  return below(open.at, numbers.length, FAR, element("strong", {}, digitsText(numbers[open.at])));
}

function wordBox(app: App, { words, row, id }: EmbeddingReading) {
  return element(
    "div",
    { class: "gfz-box gfz-head gfz-result", "data-on": true },
    element("bdi", { class: KEYED }, words[row]),
    app.t("zoom.embedding.id", id),
  );
}

// The waves

/** Returns the row of the waves, which are drawn in `field`: the names of their dimensions, and the nearest words. */
function wavesRow(app: App, reading: EmbeddingReading, field: HTMLElement): Row {
  const { waves, open } = reading;
  const off = app.config.positions === "none" ? "positions.none" : "positions.off";
  const names = waves.map(({ dimension }) =>
    stopButton(
      `dimension ${dimension}`,
      app.t("zoom.embedding.dimension", dimension),
      () => openNumber(app, reading, "positions", dimension),
      { className: dimension === open.at ? `gfz-dimension ${KEYED}` : "gfz-dimension" },
    ),
  );
  return {
    height: [212, 420],
    parts: [
      waves.length > 0 ? over("1", element("div", "gfz-dimensions", names)) : over("2", noteOf(app.t(off))),
      field,
      over("4", nearestOf(app, reading)),
    ],
  };
}

/** Returns the words whose rows of the table are most similar. */
function nearestOf(app: App, { nearest, words, row }: EmbeddingReading) {
  if (!nearest) return noteOf(app.t("zoom.embedding.nearest.none"));
  return element(
    "table",
    "gfz-nearest",
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
}

/** Returns the x coordinate of a position among the waves. */
function positionX({ words }: EmbeddingReading, { x, width }: Place, at: number) {
  return x + EDGE + (at * (width - 2 * EDGE)) / Math.max(1, words.length - 1);
}

/** Returns the waves, the words below them, and a vertical line at the open word. */
function wavesLines(reading: EmbeddingReading, field: Place) {
  const { waves, row } = reading;
  const tall = field.height / waves.length;
  const x = positionX(reading, field, row);
  return drawing(
    "g",
    "gfz-waves",
    drawing("path", { class: "gfz-ruler", d: `M${x} ${field.y}v${field.height}` }),
    waves.map((wave, at) => waveLine(reading, wave, { ...field, y: field.y + at * tall, height: tall })),
    wordsBelow(reading, field),
  );
}

function waveLine(reading: EmbeddingReading, { dimension, numbers, steps }: Wave, place: Place) {
  const { row, words, open } = reading;
  const [middle, most] = [place.y + place.height / 2, largestSize(numbers)];
  const x = (at: number) => positionX(reading, place, at);
  const y = (value: number) => middle - (value / most) * (place.height / 2 - 9);
  const points = Array.from(numbers, (value, at) => `${x(at / steps).toFixed(1)} ${y(value).toFixed(1)}`);
  const isOpen = dimension === open.at;
  const number = numbers[row * steps];
  const isLast = row > words.length * 0.8;
  const text = {
    x: x(row) + (isLast ? -10 : 10),
    y: y(number) + (number < 0 ? 14 : -6),
    "text-anchor": isLast ? "end" : "start",
    class: "gfs-halo",
    style: "stroke: var(--emb)",
  };
  return drawing(
    "g",
    { class: isOpen ? KEYED : "gfz-plain" },
    drawing("path", { class: "gfz-thread", d: `M${place.x} ${middle}h${place.width}` }),
    drawing("path", { d: `M${points.join("L")}`, "stroke-width": isOpen ? 2 : 1.25 }),
    words.map((_, at) => drawing("circle", { cx: x(at), cy: y(numbers[at * steps]), r: at === row ? 5 : 2 })),
    drawing("text", text, digitsText(number)),
  );
}

/** Returns the words below the waves in two lines: as many words as fit, and always the chosen word. */
function wordsBelow(reading: EmbeddingReading, field: Place) {
  const { words, row } = reading;
  const lines: [number, number][][] = [[], []];
  return [...new Set([row, ...words.keys()])].map((at) => {
    const [x, half] = [positionX(reading, field, at), (words[at].length + 1) * 3.6];
    const line = lines.findIndex((taken) => !taken.some(([from, to]) => x - half < to && x + half > from));
    if (line < 0) return null;
    lines[line].push([x - half, x + half]);
    const look = { class: at === row ? KEYED : "", "text-anchor": "middle" };
    return drawing("text", { ...look, x, y: lowEdge(field) + 14 + 13 * line }, words[at]);
  });
}

/** Returns lines that connect the open dimension's numbers with their sum. */
function sumLines(
  reading: EmbeddingReading,
  bands: Bands,
  [word, field]: HTMLElement[],
  ruler: Ruler,
): Child {
  const { vectors, open, waves, row } = reading;
  const placeOf = (step: Band) => {
    const part = bands[step];
    return part && ruler(part.children[0]);
  };
  const [sum, position, scaled, entry] = (["sum", "position", "scaled", "entry"] as const).map(placeOf);
  const [low, from, stem] = [scaled ?? entry, entry ?? scaled, ruler(word)];
  if (!sum || !low || !from) return null;
  const x = numberX(sum, vectors.input.length, open.at);
  const up = lowEdge(position ?? sum);
  const [dot, top] = [positionX(reading, ruler(field), row), ruler(field).y + 4];
  const bend = (top - up) / 2;
  const isShown = position && waves.some(({ dimension }) => dimension === open.at);
  return drawing(
    "g",
    "gfz-sum",
    drawing("path", { d: `M${x} ${from.y}V${low.y}` }),
    drawing("path", { class: "gfz-dots", d: `M${x} ${low.y}V${up}` }),
    drawing("path", { d: `M${x} ${up}V${lowEdge(sum)}` }),
    drawing("path", { d: `M${stem.x + STEM} ${stem.y}V${lowEdge(from)}` }),
    isShown && drawing("path", { d: `M${dot} ${top}C${dot} ${top - bend} ${x} ${up + bend} ${x} ${up}` }),
  );
}
