// Add & norm opened in place: rows of numbers one above the other. Each column shows one dimension: how its sum is
// formed, and how the sum is normalised.
import { fixedText, digitsText } from "../../engine/number_text.ts";
import { element } from "../dom.ts";
import { drawing } from "../figure.ts";
import { degrees, readAddNorm, sentenceOf } from "./add_norm_reading.ts";
import { guessSentence, guessesPanel, readGuesses } from "./guesses_panel.ts";
import { receiptTable } from "./receipt.ts";
import { createStrip, largestSize } from "./strips.ts";
import { probabilityWords } from "./words.ts";
import {
  ASKED,
  KEYED,
  enteringLine,
  innerLines,
  leavingLine,
  legend,
  neighbours,
  panelIn,
  put,
  stepButton,
  turner,
} from "./zoom_parts.ts";
import { emptyPanel, withSegments } from "./zoom_segments.ts";
import { segmentOf } from "../boxes.ts";

import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Guess, Kind, Reading } from "./add_norm_reading.ts";
import type { Band } from "./zoom_parts.ts";
import type { Line } from "./receipt.ts";
import type { Tell } from "./strips.ts";
import type { Lit, Opened } from "./opened.ts";

/** The sign before a row's number in the open column. */
const SIGNS: Partial<Record<Kind, string>> = { output: "+", added: "=", gain: "×", bias: "+", normed: "=" };
const [SMALLEST, LABELS, FACTS] = [908, 154, 210];
const PITCH = { least: 80, most: 118 }; // px from one row to the next
// px for the open column's number; the share of the pitch that rows of learned numbers get
const [NUMBER, LOW] = [30, 0.62];
const [TALLEST, ROOMY_FROM] = [68, 780];

interface Frame {
  width: number;
  height: number;
  /** The width of a row of numbers. */
  strip: number;
  /** The vertical positions of the rows, from the bottom up. */
  rows: Band[];
}

/** Returns the layout of the rows in a room. The panel is larger than the room if the room is too low or too narrow. */
export function frameOf(room: { width: number; height: number }, kinds: Kind[]): Frame {
  const [top, foot] = room.height < ROOMY_FROM ? [0, 50] : [4, 66];
  const width = Math.max(SMALLEST, room.width);
  const shares = kinds.map((kind) => (kind === "gain" || kind === "bias" ? LOW : 1));
  const all = shares.reduce((sum, share) => sum + share, 0);
  const pitch = Math.max(PITCH.least, Math.min(PITCH.most, (room.height - top - foot) / all));
  const bottom = Math.floor(top + all * pitch);
  let y = bottom;
  const rows = shares.map((share): Band => {
    const height = Math.min(TALLEST, Math.floor(pitch * share - NUMBER));
    const row = { y: y - height, height };
    y -= Math.floor(pitch * share);
    return row;
  });
  return { width, height: bottom + foot, strip: width - LABELS - FACTS, rows };
}

/** Opens the Add & norm, the Add or the Norm that `state.zoom` names. */
export async function addNormView(app: App, lit: Lit | null): Promise<Opened | null> {
  const reading = await readAddNorm(app, lit);
  if (!reading) return null;
  const { box, row, at, stack, layer, id, side, from, notes, made, cell, word } = reading;
  const segment = segmentOf(app.state, box);
  const guesses = segment && (await readGuesses(app, stack));
  const name = app.t(`stage.${stack}`);
  return {
    kind: "add",
    place: [box, row, at].join(),
    name: id === "norm" ? app.t("zoom.add.final", name) : app.t(`zoom.add.place.${id}`, name, layer),
    sides: { keys: from, query: side },
    sentence: guesses ? guessSentence(app, guesses, box, stack, row, word) : sentenceOf(reading),
    remarks: guesses ? [app.t("zoom.guesses.about")] : [...new Set([...notes, ...(made?.notes ?? [])])],
    receipt: (most) => (guesses ? null : receipt(app, reading, most)),
    cell,
    panel: (room) =>
      withSegments(app, box, {
        beside: segment && turner(app, stack, reading),
        own: () => {
          if (guesses) return guessesPanel(app, guesses, box, stack, row);
          if (segment) return emptyPanel(app.t("numbers.needsModel"));
          const kinds = reading.lines.map(({ kind }) => kind);
          const frameFor = (inner: { width: number; height: number }) => frameOf(inner, kinds);
          return panelIn(app, room, frameFor, (frame, tell) => draw(app, reading, frame, tell));
        },
      }),
  };
}

/** Returns the arithmetic of the open column, from the sum to the norm's result. */
function receipt(app: App, reading: Reading, most: number): Child {
  const { lines, at, made } = reading;
  const number = (kind: Kind) => lines.find((one) => one.kind === kind)?.numbers[at] ?? NaN;
  const adds = lines.some(({ kind }) => kind === "output");
  const terms = lines.filter(({ kind }) => kind === "input" || (adds && kind === "output"));
  const parts = terms.map(({ kind }) => ({ label: nameOf(app, reading, kind), value: number(kind) }));
  const steps = (made?.steps ?? []).filter(({ label }) => label !== "x");
  const stages: [string, number][] = [
    ...(adds ? [[app.t("zoom.sum"), number("added")] as [string, number]] : []),
    ...steps.map(({ label, value }): [string, number] => [label, value]),
    ...(made?.parts ?? []).map(({ label, value = 0 }): [string, number] => [label, value]),
    ...(made ? [[app.t("zoom.result"), made.result] as [string, number]] : []),
  ];
  const rows = stages.map(([label, value], place): Line => {
    return [label, digitsText(value), place === stages.length - 1 ? ASKED : ""];
  });
  const headings = [[app.t("numbers.dimension", at)], [""]] as const;
  return receiptTable(app, parts, [...headings], rows, most);
}

/** Returns the name of a row; the added row is named after its sub-layer. */
function nameOf(app: App, { id, symbols }: Reading, kind: Kind) {
  if (kind === "input") return symbols.x;
  return app.t(kind === "output" ? `zoom.add.from.${id.split(".")[0]}` : `zoom.add.row.${kind}`);
}

function draw(app: App, reading: Reading, frame: Frame, tell: Tell): { parts: Child[]; outside: Child[] } {
  const { box, stack, lines, at, word } = reading;
  const { width, height, strip, rows } = frame;
  const open = (key: number) => app.show({ zoom: { box, key }, selected: null });
  const last = lines.length - 1;
  const count = lines[0].numbers.length;
  const cell = (strip - 8) / count;
  const x = LABELS + 4 + (at + 0.5) * cell;
  const isLeft = x > LABELS + strip - 90;
  const side = isLeft ? [x - cell, "end"] : [x + cell, "start"];
  const drawn = lines.map(({ kind, numbers }, place) => {
    const { y, height: tall } = rows[place];
    const name = nameOf(app, reading, kind);
    const made = createStrip(
      {
        stop: kind,
        name: app.t("zoom.add.strip", name, word),
        numbers,
        largest: largestSize(
          ...lines.filter((one) => scaleOf(one.kind) === scaleOf(kind)).map((one) => one.numbers),
        ),
        chosen: at,
        width: strip - 8,
        height: tall,
        className: place === 0 || place === last ? ASKED : kind === "output" ? KEYED : "gfz-plain",
        open,
      },
      tell,
    );
    made.toggleAttribute("data-first", place === last);
    const ends = place === 0 || place === last ? "gfz-query" : "";
    const value = digitsText(numbers[at]);
    const sign = value.startsWith("−") && SIGNS[kind] === "+" ? "" : `${SIGNS[kind] ?? ""} `;
    const text = drawing("text", { x: side[0], y: y - 7, "text-anchor": side[1] }, sign + value);
    const step = stepButton(place + 1, name, kind, false, () => open(at));
    const facts = element("div", { class: "gfz-facts" }, factsOf(app, reading, kind, place));
    const parts = [
      put(step, { x: 18, y: y + tall / 2 - 12 }),
      put(element("div", { class: `gfz-box ${ends}` }, made), {
        x: LABELS,
        y,
        width: strip,
        height: tall,
      }),
      put(facts, { x: width - FACTS + 16, y: y - 2 }),
    ];
    return { parts, text };
  });
  const top = rows[last].y;
  const end = rows[0].y + rows[0].height;
  const column = drawing("rect", {
    class: "gfz-band",
    x: x - Math.max(1, cell / 2),
    y: top,
    width: Math.max(2, cell),
    height: end - top,
  });
  const [below, above] = neighbours(app, box);
  const middle = LABELS + strip / 2;
  const added = rows[lines.findIndex(({ kind }) => kind === "output")];
  const signs = legend(app, count);
  signs.style.right = `${FACTS}px`;
  return {
    parts: [
      innerLines(frame, [column, drawn.map(({ text }) => text)], "gfz-column"),
      drawn.map(({ parts }) => parts),
      put(turner(app, stack, reading), { x: LABELS, y: end + 12 }),
      put(signs, { y: end + 13 }),
    ],
    outside: [
      enteringLine(ASKED, middle, height, rows[0], below),
      leavingLine(ASKED, middle, rows[last], above),
      added && drawing("path", { class: KEYED, d: `M-20 ${added.y + added.height / 2}H16` }),
    ],
  };
}

/**
 * Returns a number that identifies the scale of a row. Rows with the same number share one scale: the rows of the
 * sum, the rows of the norm, and the gain alone.
 */
function scaleOf(kind: Kind) {
  return kind === "gain" ? 2 : Number(kind === "scaled" || kind === "bias" || kind === "normed");
}

/** Returns the facts that are shown beside a row. */
function factsOf(app: App, reading: Reading, kind: Kind, place: number): Child[] {
  const { lines, moments, symbols, cosine, guesses, stack } = reading;
  const last = lines.length - 1;
  const length = (at: number) => Math.hypot(...lines[at].numbers);
  const line = (key: string, ...values: (string | number)[]) => element("p", {}, app.t(key, ...values));
  if (kind === "gain" || kind === "bias") return [];
  if (kind === "scaled" && moments)
    return [
      line("zoom.add.mean", digitsText(moments.mean)),
      line("zoom.add.variance", digitsText(moments.variance)),
      element("p", {}, `${symbols.divisor} ${digitsText(moments.divisor)}`),
    ];
  const said = [line("zoom.add.norm", digitsText(length(place)))];
  if (kind === "output") {
    said.push(line("zoom.add.share", probabilityWords(length(place) / (length(0) + length(place)))));
    return said;
  }
  if (place === last) said.push(line("zoom.add.angle", degrees(cosine), fixedText(cosine)));
  const words = guesses && (place === 0 ? guesses[0] : place === last ? guesses[1] : null);
  return words ? [said, wordsOf(app, words, stack === "decoder")] : said;
}

function wordsOf(app: App, words: Guess[], isDecoder: boolean): Child[] {
  return [
    element("p", {}, app.t(isDecoder ? "zoom.add.guesses" : "zoom.add.nearest")),
    isDecoder
      ? words.map(({ word, probability }) =>
          element("p", {}, element("bdi", {}, word), " ", probabilityWords(probability)),
        )
      : element("p", {}, element("bdi", {}, words.map(({ word }) => word).join(app.t("word.comma")))),
  ];
}
