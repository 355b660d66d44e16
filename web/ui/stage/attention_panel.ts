// The panel of an opened attention: its nine steps, and a table with a row for each key.
import { decimalsFor, decimalsOf, fixedText } from "../../engine/number_text.ts";
import { element, named } from "../dom.ts";
import { drawing } from "../figure.ts";
import { frameOf, headBoxes } from "./attention_frame.ts";
import { firstNumber, KINDS, leadOf } from "./attention_reading.ts";
import { differenceText, powerText, probabilityWords } from "./words.ts";
import { createStrip, largestSize, MOST_SQUARES } from "./strips.ts";
import {
  ASKED,
  HIDDEN,
  KEYED,
  barOf,
  enteringLine,
  fanOf,
  heading,
  innerLines,
  leavingLine,
  legend,
  neighbours,
  panelIn,
  put,
  rowAt,
  rowsTable,
  stepButton,
  stopButton,
  sumBox,
  tableRow,
  turner,
} from "./zoom_parts.ts";

import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Frame } from "./attention_frame.ts";
import type { Key, Kind, Reading } from "./attention_reading.ts";
import type { Strip, Tell } from "./strips.ts";

/** The steps; each step is named after the point whose numbers it opens. The mask has no numbers of its own. */
const STEPS = [...KINDS.slice(0, 3), "mask" as const, ...KINDS.slice(3)];
/** If a score is larger than this number, its power of e is too long to read. */
const LARGEST_EXPONENT = 12;
/** The width of the number beside a bar, in px. */
const NUMBER = 56;

/** Opens another head of the opened attention. */
export function chooseHead(app: App, { family, layer }: Reading, head: number) {
  app.show({ heads: { ...app.state.heads, [family.id]: { layer, head } } });
}

/** Returns the panel and, if it fits without scrolling, the lines that enter and leave the panel. */
export function attentionPanel(app: App, reading: Reading, room: HTMLElement): Child[] {
  const { keys, tensors } = reading;
  const [keyWidth, valueWidth] = [tensors.query, tensors.value].map(({ shape }) => shape[2]);
  return panelIn(
    app,
    room,
    (inner) => frameOf(inner, { keys: keys.length, keyWidth, valueWidth }),
    (frame, tell) => draw(app, reading, frame, tell),
  );
}

/** Returns the parts of the panel, and the lines outside it. */
function draw(app: App, reading: Reading, frame: Frame, tell: Tell): { parts: Child[]; outside: Child[] } {
  const {
    box,
    open,
    keys,
    query,
    output,
    heads,
    head,
    tensors,
    products,
    steps,
    score,
    divisor,
    weight,
    key,
    queries,
    family,
    isMask,
  } = reading;
  const all = (kind: "key" | "value") => reading.keys.map((_, key) => numbersOf(kind, key));
  /** The largest absolute values among the keys and among the values; a number of this size fills its cell. */
  const largest = {
    key: largestSize(numbersOf("query"), ...all("key")),
    value: largestSize(numbersOf("heads"), ...all("value")),
  };

  function parts() {
    return [
      drawLines(),
      ...drawHeadings(),
      drawOutputs(),
      ...drawHeads(),
      drawSum(),
      drawTable(),
      drawQuery(),
      ...drawBeside(),
    ];
  }

  // Helpers

  function numbersOf(kind: Kind, key = reading.key) {
    return rowAt(reading.tensors[kind], leadOf({ ...reading, key }, kind));
  }

  function openNumber(kind: Kind, at: number, key = reading.key) {
    const lead = leadOf({ ...reading, key }, kind);
    app.show({ zoom: { box, key }, selected: { name: `${box}.${kind}`, index: [...lead, at] } });
  }

  /** Shows the text about what the mask does to a key, or to the whole row. */
  function openMask(key: number | null) {
    app.show({ zoom: { box, key, mask: true }, selected: null });
  }

  /** Returns a point's numbers as a strip. */
  function stripOf(kind: Kind, strip: Partial<Strip> & Pick<Strip, "width" | "height">, key = reading.key) {
    const word = kind === "key" || kind === "value" ? keys[key].word : query;
    const isOpen = open.isChosen && open.kind === kind && key === reading.key;
    return createStrip(
      {
        stop: `${kind} ${key}`,
        name: app.t(`zoom.strip.${kind}`, word),
        numbers: numbersOf(kind, key),
        largest: kind === "value" || kind === "heads" ? largest.value : largest.key,
        chosen: isOpen ? open.at : null,
        open: (at) => openNumber(kind, at, key),
        ...strip,
      },
      tell,
    );
  }

  /** Returns a step's number and name, as a button that opens its most important number. */
  function stepOf(kind: Kind | "mask") {
    const [place, name] = [STEPS.indexOf(kind) + 1, app.t(`zoom.step.${kind}`)];
    if (kind === "mask") return stepButton(place, name, kind, isMask, () => openMask(null));
    const at = () => (kind === "output" ? output : firstNumber(reading, kind));
    const content = [name, kind === "output" && element("sub", {}, "O")];
    return stepButton(place, content, kind, !isMask && open.kind === kind, () => openNumber(kind, at()));
  }

  // Above the table

  /** Returns the lines between the parts; the strips and words lie on them. */
  function drawLines() {
    const { joined, output, sum, values, keys, rows, row, query } = frame;
    const { output: at } = reading;
    const boxes = headBoxes(frame, heads);
    const count = tensors.value.shape[2];
    const box = boxes.at(head);
    const [left, right] = [values.x - 8, values.x + values.cell * count + 8];
    const from = joined.y + joined.height;
    const funnel = `M${box} ${from + 2}L${left} ${sum.y}H${right}L${box + boxes.width} ${from + 2}Z`;
    const bottom = output.y + output.height;
    const fan = fanOf(products ?? [], [outputX(at), bottom], (i) => [
      boxes.at(Math.floor(i / count)) + 4 + (((i % count) + 0.5) * (boxes.width - 8)) / count,
      joined.y,
      Math.floor(i / count) === head ? KEYED : "",
    ]);
    const end = rows + (reading.keys.length + 2) * row;
    const width1 = tensors.query.shape[2];
    const dots = Array.from({ length: width1 > MOST_SQUARES ? 0 : width1 }, (_, i) => {
      const x = keys.x + (i + 0.5) * keys.cell;
      return drawing("path", { d: `M${x} ${end}V${query.y - 1}` });
    });
    return innerLines(frame, [
      drawing("path", { class: "gfz-funnel", d: funnel }),
      drawing("g", { class: "gfz-fan" }, fan),
      drawing("g", { class: "gfz-dots" }, dots),
    ]);
  }

  /** Returns the x coordinate of the middle of a number of the output. */
  function outputX(at: number) {
    const { keys } = frame;
    const [, count] = reading.tensors.output.shape;
    return keys.x + 4 + ((at + 0.5) * (wideOf() - 8)) / count;
  }

  /** Returns the width that the joined heads and the output share. */
  function wideOf() {
    const boxes = headBoxes(frame, heads);
    return boxes.at(heads - 1) + boxes.width - frame.keys.x;
  }

  function drawHeadings() {
    const { output, joined, sum, values, query } = frame;
    return [
      heading(stepOf("output"), output),
      heading(stepOf("joined"), joined),
      heading(stepOf("heads"), sum, values.x - 152),
      heading(stepOf("query"), query),
    ];
  }

  function drawOutputs() {
    const { output, keys } = frame;
    const { output: at } = reading;
    const numbers = numbersOf("output");
    const wide = wideOf();
    const strip = stripOf("output", {
      width: wide - 8,
      height: output.height,
      bars: true,
      largest: largestSize(numbers),
      chosen: at,
      className: "gfz-plain",
    });
    return sumBox(app, strip, { x: keys.x, width: wide, ...output }, { numbers, at, products });
  }

  function drawHeads() {
    const { joined } = frame;
    const boxes = headBoxes(frame, heads);
    const numbers = numbersOf("joined");
    const count = numbers.length / heads;
    const open = reading.open;
    const largest = largestSize(numbers);
    return Array.from({ length: heads }, (_, one) => {
      const first = one * count;
      const at = open.isChosen && open.kind === "joined" ? open.at - first : -1;
      const strip = stripOf("joined", {
        stop: `joined ${one}`,
        name: app.t("zoom.strip.head", one),
        numbers: numbers.subarray(first, first + count),
        largest,
        bars: true,
        width: boxes.width - 8,
        height: joined.height,
        chosen: at >= 0 && at < count ? at : null,
        className: one === head ? KEYED : "gfz-plain",
        open: (place) => openNumber("joined", first + place),
      });
      const text = boxes.width < 56 ? String(one) : `${app.t("word.head")} ${one}`;
      const name = stopButton(`head ${one}`, text, () => chooseHead(app, reading, one), {
        pressed: one === head,
      });
      name.ariaLabel = `${app.t("word.head")} ${one}`;
      const box = element("div", { class: "gfz-box gfz-head" }, strip, name);
      box.toggleAttribute("data-on", one === head);
      return put(box, { x: boxes.at(one), y: joined.y, width: boxes.width, height: joined.height });
    });
  }

  function drawSum() {
    const { sum, values } = frame;
    const width = values.cell * reading.tensors.value.shape[2];
    const strip = stripOf("heads", { width, height: sum.height - 4, className: KEYED });
    const box = element("div", { class: "gfz-box gfz-head" }, strip);
    box.toggleAttribute("data-on", true);
    return put(box, { x: values.x - 8, y: sum.y, width: width + 16, height: sum.height });
  }

  // The table

  function drawTable() {
    const { rows, row, width, keys, scores, weights, values } = frame;
    const widths = [keys.x, scores - 70 - keys.x, 70, weights - scores, values.x - weights, width - values.x];
    const heads: Child[] = [
      element("span", { class: HIDDEN }, app.t("numbers.word")),
      stepOf("key"),
      stepOf("scores"),
      stepOf("mask"),
      stepOf("weights"),
      stepOf("value"),
    ];
    const drawn = reading.keys.map((key, at) => drawKeyRow(key, at));
    return rowsTable(app.t("zoom.table", query), { widths, row, y: rows }, heads, drawn);
  }

  function drawKeyRow(key: Key, at: number) {
    const { keys, values, row } = frame;
    const isOpen = at === reading.key;
    const lit = isOpen ? KEYED : "gfz-quiet";
    const [keyWidth, valueWidth] = (["key", "value"] as const).map((kind) => numbersOf(kind).length);
    const word = stopButton(`word ${at}`, element("bdi", {}, key.word), () => openKey(at), {
      className: lit,
      title: key.word,
    });
    const strip = stripOf("key", { width: keys.cell * keyWidth, height: row, className: lit }, at);
    const cells = [
      isOpen ? drawProducts(strip) : strip,
      drawScore(key, at, isOpen),
      drawMask(key, at, isOpen),
      drawWeight(key, at, isOpen),
      drawValue(key, at, { width: values.cell * valueWidth, height: row, className: lit }),
    ];
    return tableRow(word, cells, isOpen);
  }

  /** Opens the row of another key. */
  function openKey(key: number) {
    app.show({ zoom: { box: reading.box, key }, selected: null });
  }

  /**
   * Returns two drawings: below the query the open key, and above the query the product of each number of the key and
   * the number of the query in the same dimension.
   */
  function drawProducts(key: SVGSVGElement): Child[] {
    const { keys, row } = frame;
    const [asked, offered] = [numbersOf("query"), numbersOf("key")];
    const width = keys.cell * asked.length;
    const products = asked.map((value, i) => value * offered[i]);
    const plain = {
      stop: "products",
      name: app.t("zoom.strip.products"),
      numbers: products,
      largest: largestSize(products),
      chosen: null,
      className: "",
      open: () => openNumber("scores", reading.key),
    };
    return [
      stripOf("query", { stop: "query above", width, height: row, className: ASKED }),
      key,
      stripOf("scores", { ...plain, width, height: row }),
    ];
  }

  function scoreText(score: number) {
    return fixedText(score, decimalsOf(reading.keys.map((one) => one.score)));
  }

  function drawScore(key: Key, at: number, isOpen: boolean): Child[] {
    const score = stopButton(`scores ${at}`, scoreText(key.score), () => openNumber("scores", at, at));
    if (!isOpen) return [score];
    return [
      element("span", { class: ASKED }, "q"),
      element("span", { class: KEYED }, "k"),
      score,
      element("span", {}, "q × k"),
    ];
  }

  function drawMask({ isAllowed }: Key, at: number, isOpen: boolean): Child[] {
    const mark = named(
      stopButton(`mask ${at}`, isAllowed ? "✓" : "×", () => openMask(at)),
      app.t(isAllowed ? "numbers.allowed" : steps.blocked.text),
    );
    if (!isOpen || !score.total) return [mark];
    const { value } = score.total;
    const decimals = decimalsFor([value], (sum) => scoreText((sum / value) * score.result));
    const sum = `Σ ${fixedText(value, decimals)}${divisor && ` ÷ ${divisor}`}`;
    return [element("span"), mark, element("small", {}, sum)];
  }

  function drawWeight({ weight, isAllowed, score }: Key, at: number, isOpen: boolean): Child[] {
    if (!isAllowed && weight === 0) return [];
    const { weights, values } = frame;
    const full = Math.min(160, values.x - weights - NUMBER - 24);
    const bar = barOf(full * Math.min(1, weight));
    const made = stopButton(isOpen ? "weights" : `weights ${at}`, [bar, probabilityWords(weight)], () =>
      openNumber("weights", at, at),
    );
    made.toggleAttribute("data-first", isOpen);
    const powers = isOpen && powersOf(score);
    if (!powers) return [made];
    const [power, sum] = powers;
    return [
      element(
        "small",
        {},
        "e",
        element("sup", {}, fixedText(score, decimalsFor([score], differenceText))),
        ` = ${power}`,
      ),
      made,
      element("small", {}, app.t("zoom.powers", sum)),
    ];
  }

  /**
   * Returns e to the power of the open score, and the sum of all such powers; null if the weight was not computed
   * from these powers.
   */
  function powersOf(score: number) {
    const filled = keys.map((one) => (one.isAllowed ? one.score : steps.blocked.of(one.score)));
    if (weight.steps.length === 0 || steps.softmax.over !== "key" || !keys[key].isAllowed) return null;
    if (Math.max(...filled) > LARGEST_EXPONENT || score < -LARGEST_EXPONENT) return null;
    const sum = filled.reduce((total, one) => total + Math.exp(one), 0);
    return [Math.exp(score), sum].map((power) => powerText(power));
  }

  /** Returns a key's value as a faint strip, and drawn over it the value times the weight. */
  function drawValue(
    { weight }: Key,
    at: number,
    size: { width: number; height: number; className: string },
  ) {
    const whole = stripOf("value", { ...size, className: `${size.className} gfz-faint` }, at);
    if (!(weight > 0.002)) return whole;
    const numbers = numbersOf("value", at).map((value) => value * weight);
    const part = stripOf("value", { ...size, numbers }, at);
    const paths = [...part.querySelectorAll("path")];
    whole.append(drawing("g", { class: "gfz-part" }, paths));
    return whole;
  }

  // Below the table

  function drawQuery() {
    const { keys, query } = frame;
    const width = keys.cell * numbersOf("query").length;
    const strip = stripOf("query", { width, height: query.height - 4, className: ASKED });
    const box = element("div", { class: "gfz-box gfz-query" }, strip);
    return put(box, { x: keys.x - 8, y: query.y, width: width + 16, height: query.height });
  }

  /** Returns the elements beside the query: its word with buttons to change it, and a legend. */
  function drawBeside() {
    const { query, keys } = frame;
    const { row, query: word } = reading;
    const x = keys.x + keys.cell * numbersOf("query").length + 18;
    const [turn, signs] = [turner(app, family.stack, { row, rows: queries, word }), legend(app)];
    const y = query.y + query.height / 2;
    return [put(turn, { x, y: y - 13 }), put(signs, { y: y - 12 })];
  }

  // Outside the panel

  /** Returns the lines that enter from below and from the left, and the line that leaves upwards. */
  function outside() {
    const { keys, query, height, rows, row, output } = frame;
    const { keys: all } = reading;
    const ask = keys.x + (keys.cell * tensors.query.shape[2]) / 2;
    const up = keys.x + wideOf() / 2;
    const [below, above] = neighbours(app, box);
    const words = all.map((_, at) => {
      const y = rows + (at + 0.5 + (at > key ? 2 : at === key ? 1 : 0)) * row;
      const isOpen = at === key;
      return drawing("path", {
        class: isOpen ? KEYED : "gfz-thread",
        d: `M-20 ${y}H${isOpen ? 16 : 12}`,
      });
    });
    return [...words, enteringLine(ASKED, ask, height, query, below), leavingLine(KEYED, up, output, above)];
  }
  return { parts: parts(), outside: outside() };
}
