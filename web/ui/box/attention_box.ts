// The rows of an opened attention: its nine steps, and a table with a row for each key.
import { times } from "../../engine/tensor.ts";
import { decimalsFor, decimalsOf, fixedText } from "../../engine/number_text.ts";
import { fanOf, lineFromBelow, lineFromLeft, lineUpwards, lowEdge, numberX } from "./lines.ts";
import { besideOf, gap, over, sumBelow, tableOf } from "./rows.ts";
import { element, named } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { firstNumber, KINDS, leadOf } from "./attention_reading.ts";
import { differenceText, powerText, probabilityWords } from "../app/wording.ts";
import { createStrip, largestSize, MOST_SQUARES } from "./strips.ts";
import {
  ASKED,
  HIDDEN,
  KEYED,
  barOf,
  neighbours,
  rowAt,
  stepButton,
  stopButton,
  tableRow,
} from "./zoom_parts.ts";

import type { App } from "../app/app.ts";
import type { Box } from "./rows.ts";
import type { Child } from "../app/types.ts";
import type { Key, Kind, Reading } from "./attention_reading.ts";
import type { Ruler, Strip, Tell } from "./strips.ts";

/** What each part of the panel is made from. */
interface Panel {
  app: App;
  reading: Reading;
  tell: Tell;
  /** The largest absolute values among the keys and among the values; a number of this size fills its cell. */
  largest: { key: number; value: number };
}

/** The steps; each step is named after the point whose numbers it opens. The mask has no numbers of its own. */
const STEPS = [...KINDS.slice(0, 3), "mask" as const, ...KINDS.slice(3)];
/** If a score is larger than this number, its power of e is too long to read. */
const LARGEST_EXPONENT = 12;
/** The largest width of a number's cell, in px. */
const CELL = 18;
/** More heads than these are named by their numbers only. */
const MOST_NAMED = 12;

/** Opens another head of the opened attention. */
export function chooseHead(app: App, { family, layer }: Reading, head: number) {
  app.show({ heads: { ...app.state.heads, [family.id]: { layer, head } } });
}

/** Returns the rows of an opened attention. */
export function attentionBox(app: App, reading: Reading, tell: Tell): Box {
  const { box, family, row, queries, query: word, tensors, key } = reading;
  const panel = { app, reading, tell, largest: largestNumbers(reading) };
  const [output, heads] = [outputBox(panel), headBoxes(panel)];
  const sum = wideBox(stripOf(panel, "heads", { className: KEYED }), "gfz-head");
  sum.toggleAttribute("data-on", true);
  const query = wideBox(stripOf(panel, "query", { className: ASKED }), "gfz-query");
  const table = keyTable(panel);
  const [below, above] = neighbours(app, box);
  const [keys, values] = [tensors.query, tensors.value].map(({ shape }) => `minmax(0, ${shape[2] * CELL}px)`);
  return {
    columns: `126px ${keys} 70px 112px minmax(164px, 1fr) ${values} 36px`,
    rows: [
      gap([14, 26]),
      { height: [32, 40], name: stepOf(panel, "output"), parts: [output] },
      gap([44, 76]),
      { height: [28, 34], name: stepOf(panel, "joined"), parts: [heads] },
      gap([38, 46]),
      {
        height: [32, 36],
        parts: [over("5", element("div", "gfz-sum-name", stepOf(panel, "heads"))), over("6", sum)],
      },
      gap([0, 6]),
      table.row,
      gap([14, 18]),
      {
        height: [32, 36],
        name: stepOf(panel, "query"),
        parts: [over("2", query), over("3 / -2", besideOf(app, family.stack, { row, rows: queries, word }))],
      },
      gap([16, 34]),
    ],
    lines: (ruler) => linesOf(reading, { output, heads, sum, query }, ruler),
    outside: (ruler, height) => [
      table.rows.map((one, at) => lineFromLeft(at === key ? KEYED : "gfz-thread", ruler(one))),
      lineFromBelow(ASKED, numberX(ruler(query), 1, 0), height, below),
      lineUpwards(KEYED, numberX(ruler(output), 1, 0), above),
    ],
  };
}

// Numbers

function numbersOf(reading: Reading, kind: Kind, key = reading.key) {
  return rowAt(reading.tensors[kind], leadOf({ ...reading, key }, kind));
}

function largestNumbers(reading: Reading) {
  const all = (kind: "key" | "value") => reading.keys.map((_, key) => numbersOf(reading, kind, key));
  return {
    key: largestSize(numbersOf(reading, "query"), ...all("key")),
    value: largestSize(numbersOf(reading, "heads"), ...all("value")),
  };
}

function openNumber({ app, reading }: Panel, kind: Kind, at: number, key = reading.key) {
  const { box } = reading;
  const lead = leadOf({ ...reading, key }, kind);
  app.show({ zoom: { box, key }, selected: { name: `${box}.${kind}`, index: [...lead, at] } });
}

/** Returns a point's numbers as a strip. */
function stripOf(panel: Panel, kind: Kind, strip: Partial<Strip>, key = panel.reading.key) {
  const { app, reading, tell, largest } = panel;
  const { open, keys, query } = reading;
  const word = kind === "key" || kind === "value" ? keys[key].word : query;
  const isOpen = open.isChosen && open.kind === kind && key === reading.key;
  return createStrip(
    {
      stop: `${kind} ${key}`,
      name: app.t(`zoom.strip.${kind}`, word),
      numbers: numbersOf(reading, kind, key),
      largest: kind === "value" || kind === "heads" ? largest.value : largest.key,
      chosen: isOpen ? open.at : null,
      open: (at) => openNumber(panel, kind, at, key),
      ...strip,
    },
    tell,
  );
}

/** Returns a strip in a box that is a little wider than the strip's column. */
function wideBox(strip: SVGSVGElement, className: string) {
  return element("div", `gfz-box gfz-wide ${className}`, strip);
}

/** Returns a step's number and name, as a button that opens its most important number. */
function stepOf(panel: Panel, kind: Kind | "mask") {
  const { app, reading } = panel;
  const { isMask, open, output } = reading;
  const [place, name] = [STEPS.indexOf(kind) + 1, app.t(`zoom.step.${kind}`)];
  if (kind === "mask") return stepButton(place, name, kind, isMask, () => openMask(panel, null));
  const at = () => (kind === "output" ? output : firstNumber(reading, kind));
  const content = [name, kind === "output" && element("sub", {}, "O")];
  return stepButton(place, content, kind, !isMask && open.kind === kind, () => openNumber(panel, kind, at()));
}

/** Shows the text about what the mask does to a key, or to the whole row. */
function openMask({ app, reading: { box } }: Panel, key: number | null) {
  app.show({ zoom: { box, key, mask: true }, selected: null });
}

// Above the table

function outputBox(panel: Panel) {
  const { output: at, products } = panel.reading;
  const numbers = numbersOf(panel.reading, "output");
  const look = { bars: true, largest: largestSize(numbers), chosen: at, className: "gfz-plain" };
  const said = sumBelow(panel.app, numbers, at, products);
  return element("div", "gfz-box", stripOf(panel, "output", look), said);
}

/** Returns the joined heads side by side. */
function headBoxes(panel: Panel) {
  const { heads } = panel.reading;
  const all = times(heads, (one) => headBox(panel, one));
  return element("div", "gfz-heads", all);
}

function headBox(panel: Panel, one: number) {
  const { app, reading } = panel;
  const { heads, head, open } = reading;
  const numbers = numbersOf(reading, "joined");
  const count = numbers.length / heads;
  const first = one * count;
  const at = open.isChosen && open.kind === "joined" ? open.at - first : -1;
  const strip = stripOf(panel, "joined", {
    stop: `joined ${one}`,
    name: app.t("zoom.strip.head", one),
    numbers: numbers.subarray(first, first + count),
    largest: largestSize(numbers),
    bars: true,
    chosen: at >= 0 && at < count ? at : null,
    className: one === head ? KEYED : "gfz-plain",
    open: (place) => openNumber(panel, "joined", first + place),
  });
  const said = `${app.t("word.head")} ${one}`;
  const name = stopButton(
    `head ${one}`,
    heads > MOST_NAMED ? String(one) : said,
    () => chooseHead(app, reading, one),
    {
      pressed: one === head,
    },
  );
  name.ariaLabel = said;
  const box = element("div", "gfz-box gfz-head", strip, name);
  box.toggleAttribute("data-on", one === head);
  return box;
}

// The table

function keyTable(panel: Panel) {
  const { app, reading } = panel;
  const heads: Child[] = [
    element("span", { class: HIDDEN }, app.t("numbers.word")),
    ...(["key", "scores", "mask", "weights", "value"] as const).map((kind) => stepOf(panel, kind)),
  ];
  const rows = reading.keys.map((key, at) => keyRow(panel, key, at));
  const lines = rows.length + 2; // the open row has three lines
  return { rows, row: tableOf(app.t("zoom.table", reading.query), heads, rows, { lines }) };
}

function keyRow(panel: Panel, key: Key, at: number) {
  const { app, reading } = panel;
  const isOpen = at === reading.key;
  const className = isOpen ? KEYED : "gfz-quiet";
  const openKey = () => app.show({ zoom: { box: reading.box, key: at }, selected: null });
  const word = stopButton(`word ${at}`, element("bdi", {}, key.word), openKey, {
    className,
    title: key.word,
  });
  const cells = [
    keyStrips(panel, at, className),
    scoreCell(panel, key, at),
    maskCell(panel, key, at),
    weightCell(panel, key, at),
    valueStrip(panel, key, at, className),
  ];
  return tableRow(word, cells, isOpen);
}

/** Returns a key as a strip; for the open key, with the query above it, and below it the products of both. */
function keyStrips(panel: Panel, at: number, className: string): Child[] {
  const { app, reading } = panel;
  const key = stripOf(panel, "key", { className }, at);
  if (at !== reading.key) return [key];
  const offered = numbersOf(reading, "key");
  const numbers = numbersOf(reading, "query").map((value, i) => value * offered[i]);
  const products = {
    stop: "products",
    name: app.t("zoom.strip.products"),
    numbers,
    largest: largestSize(numbers),
    chosen: null,
    open: () => openNumber(panel, "scores", reading.key),
  };
  return [
    stripOf(panel, "query", { stop: "query above", className: ASKED }),
    key,
    stripOf(panel, "scores", products),
  ];
}

function scoreText({ keys }: Reading, score: number) {
  return fixedText(score, decimalsOf(keys.map((one) => one.score)));
}

function scoreCell(panel: Panel, key: Key, at: number): Child[] {
  const text = scoreText(panel.reading, key.score);
  const score = stopButton(`scores ${at}`, text, () => openNumber(panel, "scores", at, at));
  if (at !== panel.reading.key) return [score];
  return [
    element("span", { class: ASKED }, "q"),
    element("span", { class: KEYED }, "k"),
    score,
    element("span", {}, "q × k"),
  ];
}

function maskCell(panel: Panel, { isAllowed }: Key, at: number): Child[] {
  const { app, reading } = panel;
  const { score, steps, divisor } = reading;
  const mark = named(
    stopButton(`mask ${at}`, isAllowed ? "✓" : "×", () => openMask(panel, at)),
    app.t(isAllowed ? "numbers.allowed" : steps.blocked.text),
  );
  if (at !== reading.key || !score.total) return [mark];
  const { value } = score.total;
  const decimals = decimalsFor([value], (sum) => scoreText(reading, (sum / value) * score.result));
  const sum = `Σ ${fixedText(value, decimals)}${divisor && ` ÷ ${divisor}`}`;
  return [element("span"), mark, element("small", {}, sum)];
}

function weightCell(panel: Panel, { weight, isAllowed, score }: Key, at: number): Child[] {
  if (!isAllowed && weight === 0) return [];
  const isOpen = at === panel.reading.key;
  const bar = barOf(`min(160px, 100% - 80px) * ${Math.min(1, weight)}`);
  const made = stopButton(isOpen ? "weights" : `weights ${at}`, [bar, probabilityWords(weight)], () =>
    openNumber(panel, "weights", at, at),
  );
  made.toggleAttribute("data-first", isOpen);
  const powers = isOpen && powersOf(panel.reading, score);
  if (!powers) return [made];
  const [power, sum] = powers;
  const exponent = element("sup", {}, fixedText(score, decimalsFor([score], differenceText)));
  return [
    element("small", {}, "e", exponent, ` = ${power}`),
    made,
    element("small", {}, panel.app.t("zoom.powers", sum)),
  ];
}

/**
 * Returns e to the power of the open score, and the sum of all such powers; null if the weight was not computed
 * from these powers.
 */
function powersOf({ keys, key, weight, steps }: Reading, score: number) {
  const filled = keys.map((one) => (one.isAllowed ? one.score : steps.blocked.of(one.score)));
  if (weight.steps.length === 0 || steps.softmax.over !== "key" || !keys[key].isAllowed) return null;
  if (Math.max(...filled) > LARGEST_EXPONENT || score < -LARGEST_EXPONENT) return null;
  const sum = filled.reduce((total, one) => total + Math.exp(one), 0);
  return [Math.exp(score), sum].map((power) => powerText(power));
}

/** Returns a key's value as a faint strip, and drawn over it the value times the weight. */
function valueStrip(panel: Panel, { weight }: Key, at: number, className: string) {
  const part =
    weight > 0.002 ? numbersOf(panel.reading, "value", at).map((value) => value * weight) : undefined;
  return stripOf(panel, "value", { className: `${className} gfz-faint`, part }, at);
}

// Lines

/** Returns the lines between the parts; the parts lie on them. */
function linesOf(
  { heads: count, head, products, output: at, tensors }: Reading,
  { output, heads, sum, query }: Record<"output" | "heads" | "sum" | "query", HTMLElement>,
  ruler: Ruler,
): Child[] {
  const boxes = [...heads.children].map(ruler);
  const [strips, result] = [
    [...heads.children].map((one) => ruler(one.children[0])),
    ruler(output.children[0]),
  ];
  const [open, end] = [boxes[head], ruler(sum)];
  const [left, right, from] = [open.x, open.x + open.width, lowEdge(open) + 2];
  const funnel = `M${left} ${from}L${end.x} ${end.y}h${end.width}L${right} ${from}Z`;
  const width = tensors.output.shape[1];
  const each = tensors.joined.shape[1] / count;
  const to: [number, number] = [numberX(result, width, at), lowEdge(result)];
  const fan = fanOf(products ?? [], to, (i) => {
    const of = Math.floor(i / each);
    return [numberX(strips[of], each, i % each), boxes[of].y, of === head ? KEYED : ""];
  });
  const asked = tensors.query.shape[2];
  const place = ruler(query.children[0]);
  const dots = times(asked > MOST_SQUARES ? 0 : asked, (i) =>
    drawing("path", { d: `M${numberX(place, asked, i)} ${place.y - 14}v12` }),
  );
  return [drawing("path", { class: "gfz-funnel", d: funnel }), fan, drawing("g", "gfz-dots", dots)];
}
