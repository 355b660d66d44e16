// Add & norm opened in place: rows of numbers one above the other. Each column shows one dimension: how its sum is
// formed, and how the sum is normalised.
import { fixedText, digitsText } from "../../engine/number_text.ts";
import { lineFromBelow, lineFromLeft, lineUpwards, lowEdge, numberX } from "./lines.ts";
import { besideOf, boxPanel, gap, over, stripBox } from "./rows.ts";
import { element } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { degrees, readAddNorm, sentenceOf } from "./add_norm_reading.ts";
import { guessSentence, guessesPanel, readGuesses } from "./guesses_panel.ts";
import { largestSize } from "./strips.ts";
import { probabilityWords } from "../app/wording.ts";
import { ASKED, KEYED, neighbours, stepButton, turner } from "./zoom_parts.ts";
import { emptyPanel } from "./zoom_segments.ts";
import { segmentOf } from "../app/boxes.ts";

import type { App } from "../app/app.ts";
import type { Box } from "./rows.ts";
import type { Child } from "../app/types.ts";
import type { Guess, Kind, Reading } from "./add_norm_reading.ts";
import type { Heading, Line, Receipt } from "./receipt.ts";
import type { Place, Tell } from "./strips.ts";
import type { Lit, Opened } from "./opened.ts";

/** The sign before a row's number in the open column. */
const SIGNS: Partial<Record<Kind, string>> = { output: "+", added: "=", gain: "×", bias: "+", normed: "=" };
const COLUMNS = "154px minmax(0, 1fr) 210px";
/** The heights in px of a row, of a row of learned numbers, and of the gap that has the open column's number. */
const [TALL, LOW, ABOVE] = [
  [50, 68],
  [22, 40],
  [30, 50],
] as const;

/** Opens the Add & norm, the Add or the Norm that `state.zoom` names. */
export async function addNormView(app: App, lit: Lit | null): Promise<Opened | null> {
  const reading = await readAddNorm(app, lit);
  if (!reading) return null;
  const { box, row, at, stack, layer, id, notes, made, cell, word } = reading;
  const segment = segmentOf(app.state, box);
  const guesses = segment && (await readGuesses(app, stack));
  const name = app.t(`stage.${stack}`);
  return {
    place: [box, row, at].join(),
    name: id === "norm" ? app.t("zoom.add.final", name) : app.t(`zoom.add.place.${id}`, name, layer),
    sentence: guesses ? guessSentence(app, guesses, box, stack, row, word) : sentenceOf(reading),
    remarks: guesses ? [app.t("zoom.guesses.about")] : [...new Set([...notes, ...(made?.notes ?? [])])],
    cell,
    receipt: guesses ? null : receipt(app, reading),
    made: guesses ? null : made,
    beside: segment && turner(app, stack, reading),
    panel: () => {
      if (guesses) return guessesPanel(app, guesses, box, stack, row);
      if (segment) return emptyPanel(app.t("numbers.needsModel"));
      return boxPanel(app, (tell) => boxOf(app, reading, tell));
    },
  };
}

/** Returns the arithmetic of the open column, from the sum to the norm's result. */
function receipt(app: App, reading: Reading): Receipt {
  const { lines: all, at, made } = reading;
  const number = (kind: Kind) => all.find((one) => one.kind === kind)?.numbers[at] ?? NaN;
  const adds = all.some(({ kind }) => kind === "output");
  const terms = all.filter(({ kind }) => kind === "input" || (adds && kind === "output"));
  const parts = terms.map(({ kind }) => ({ label: nameOf(app, reading, kind), value: number(kind) }));
  const steps = (made?.steps ?? []).filter(({ label }) => label !== "x");
  const stages: [string, number][] = [
    ...(adds ? [[app.t("zoom.sum"), number("added")] as [string, number]] : []),
    ...steps.map(({ label, value }): [string, number] => [label, value]),
    ...(made?.parts ?? []).map(({ label, value = 0 }): [string, number] => [label, value]),
    ...(made ? [[app.t("zoom.result"), made.result] as [string, number]] : []),
  ];
  const lines = stages.map(([label, value], place): Line => {
    return [label, digitsText(value), place === stages.length - 1 ? ASKED : ""];
  });
  const headings: Heading[] = [[app.t("numbers.dimension", at)], [""]];
  return { parts, headings, lines };
}

/** Returns the name of a row; the added row is named after its sub-layer. */
function nameOf(app: App, { id, symbols }: Reading, kind: Kind) {
  if (kind === "input") return symbols.x;
  return app.t(kind === "output" ? `zoom.add.from.${id.split(".")[0]}` : `zoom.add.row.${kind}`);
}

/** Returns the rows of numbers, from the result down to x. */
function boxOf(app: App, reading: Reading, tell: Tell): Box {
  const { box, stack, lines } = reading;
  const strips = lines.map((_, place) => stripRow(app, reading, place, tell));
  const [below, above] = neighbours(app, box);
  const beside = besideOf(app, stack, reading, lines[0].numbers.length);
  const rows = strips.flatMap(({ name, strip, facts, isLearned }) => [
    { height: isLearned ? LOW : TALL, name, parts: [strip, over("3", facts)] },
    gap(isLearned ? ABOVE[0] : ABOVE),
  ]);
  return {
    columns: COLUMNS,
    isRising: true,
    rows: [...rows.reverse(), gap(12), { height: 24, parts: [beside] }, gap([14, 60])],
    lines: (ruler) =>
      columnLines(
        reading,
        strips.map(({ strip }) => ruler(strip.children[0])),
      ),
    outside: (ruler, height) => {
      const { x, width } = ruler(strips[0].strip);
      const added = strips[lines.findIndex(({ kind }) => kind === "output")];
      return [
        lineFromBelow(ASKED, x + width / 2, height, below),
        lineUpwards(ASKED, x + width / 2, above),
        added && lineFromLeft(KEYED, ruler(added.strip)),
      ];
    },
  };
}

/** Returns the name, the numbers and the facts of a row. */
function stripRow(app: App, reading: Reading, place: number, tell: Tell) {
  const { box, lines, at, word } = reading;
  const { kind, numbers } = lines[place];
  const isEnd = place === 0 || place === lines.length - 1;
  const open = (key: number) => app.show({ zoom: { box, key }, selected: null });
  const alike = lines.filter((one) => scaleOf(one.kind) === scaleOf(kind));
  const strip = stripBox(
    {
      stop: kind,
      name: app.t("zoom.add.strip", nameOf(app, reading, kind), word),
      numbers,
      largest: largestSize(...alike.map((one) => one.numbers)),
      chosen: at,
      className: isEnd ? ASKED : kind === "output" ? KEYED : "gfz-plain",
      open,
    },
    tell,
    isEnd ? "gfz-query" : "",
  );
  strip.children[0].toggleAttribute("data-first", place === lines.length - 1);
  return {
    name: stepButton(place + 1, nameOf(app, reading, kind), kind, false, () => open(at)),
    strip,
    facts: element("div", "gfz-facts", factsOf(app, reading, kind, place)),
    isLearned: kind === "gain" || kind === "bias",
  };
}

/** Returns the open column, and its numbers above the rows. */
function columnLines({ lines, at }: Reading, places: Place[]) {
  const count = lines[0].numbers.length;
  const [bottom, top] = [places[0], places[places.length - 1]];
  const [x, cell] = [numberX(top, count, at), top.width / count];
  const isLeft = x > top.x + top.width - 90;
  const texts = lines.map(({ kind, numbers }, place) => {
    const value = digitsText(numbers[at]);
    const sign = value.startsWith("−") && SIGNS[kind] === "+" ? "" : `${SIGNS[kind] ?? ""} `;
    const side = isLeft ? { x: x - cell, "text-anchor": "end" } : { x: x + cell, "text-anchor": "start" };
    return drawing("text", { ...side, y: places[place].y - 7 }, sign + value);
  });
  const width = Math.max(2, cell);
  const band = { x: x - width / 2, y: top.y, width, height: lowEdge(bottom) - top.y };
  return [drawing("g", "gfz-column", drawing("rect", { class: "gfz-band", ...band }), texts)];
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
