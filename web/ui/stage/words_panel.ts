// The panel of an opened Linear or Softmax: the last vector times a word's row of the output matrix, the logits of all
// words, and the competing words, from logit to probability.
import { decimalsFor, fixedText, numberText } from "../../engine/number_text.ts";
import { largestAt } from "../../engine/tensor.ts";
import { element, refill } from "../dom.ts";
import { drawing, slider } from "../figure.ts";
import { largestSize } from "./strips.ts";
import { differenceText, groupedText, powerText, probabilityWords, tokenName } from "./words.ts";
import { largestOfParts, PLAIN, rankOf, sampledWords } from "./words_reading.ts";
import { LABELS, MARGIN, stripX, vectorBand } from "./zoom_band.ts";
import {
  HIDDEN,
  KEYED,
  barOf,
  enteringLine,
  fanOf,
  innerLines,
  leavingLine,
  noteAt,
  panelIn,
  put,
  stepButton,
  stopButton,
  tableRow,
} from "./zoom_parts.ts";

import type { Sampling } from "../../engine/sampling.ts";
import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Tell } from "./strips.ts";
import type { Rival, WordsReading } from "./words_reading.ts";
import type { Band } from "./zoom_parts.ts";

interface Frame {
  width: number;
  height: number;
  result: Band;
  rows: number;
  row: number;
  logits: Band;
  products: Band;
  matrix: Band;
  vector: Band;
}

/** The steps, in the order of the computation. */
const STEPS = [
  "vector",
  "matrix",
  "product",
  "logit",
  "temperature",
  "power",
  "probability",
  "drawn",
] as const;
type Step = (typeof STEPS)[number];
const SMALLEST = 908;
/** The right edges of the columns of numbers, and the left edge of the bars, in px. */
const COLUMNS = { logit: 214, scaled: 350, power: 480, bars: 520 };
const DRAWN = 170;
const ROOMY = { top: 24, result: 38, gap: 12, head: 34, rise: 46, logits: 64, fan: 62, strip: 30, foot: 34 };
const TIGHT = { top: 12, result: 34, gap: 6, head: 30, rise: 32, logits: 44, fan: 38, strip: 22, foot: 14 };
const [ROOMY_FROM, LEAST, MOST, FLAT] = [740, 18, 28, 20];
const HIGHEST_TOP_K = 50;

/**
 * The reader's settings for sampling. The address does not contain them, because they do not change the translation.
 */
const settings: WeakMap<App, Sampling> = new WeakMap();

/** Returns the layout of the parts in a room. `flat`: use low rows, so that there is more height for the logits. */
export function wordsFrame(room: { width: number; height: number }, rows: number, flat: boolean): Frame {
  const gaps = room.height < ROOMY_FROM ? TIGHT : ROOMY;
  const fixed =
    gaps.top + gaps.result + gaps.gap + gaps.head + gaps.rise + gaps.fan + 3 * gaps.strip + 12 + gaps.foot;
  const fitting = Math.floor((room.height - fixed - gaps.logits) / rows);
  const row = Math.max(LEAST, Math.min(flat ? FLAT : MOST, fitting));
  const spare = Math.max(0, room.height - fixed - rows * row - gaps.logits);
  const logits = gaps.logits + Math.min(flat ? 160 : 40, spare);
  const result = { y: gaps.top, height: gaps.result };
  const first = result.y + result.height + gaps.gap + gaps.head;
  const strips = first + rows * row + gaps.rise;
  const at = (place: number) => ({
    y: strips + logits + gaps.fan + place * (gaps.strip + 6),
    height: gaps.strip,
  });
  return {
    width: Math.max(SMALLEST, room.width),
    height: at(2).y + gaps.strip + gaps.foot,
    result,
    rows: first,
    row,
    logits: { y: strips, height: logits },
    products: at(0),
    matrix: at(1),
    vector: at(2),
  };
}

/** Returns the panel and, if it fits without scrolling, the lines that enter and leave the panel. */
export function wordsPanel(app: App, reading: WordsReading, room: HTMLElement): Child[] {
  const isFlat = reading.box.endsWith("linear");
  return panelIn(
    app,
    room,
    (inner) => wordsFrame(inner, reading.rivals.length + 2, isFlat),
    (frame, tell) => draw(app, reading, frame, tell),
  );
}

/** Returns the parts of the panel, and the lines outside it. */
function draw(
  app: App,
  reading: WordsReading,
  frame: Frame,
  tell: Tell,
): { parts: Child[]; outside: Child[] } {
  const { box, open, part, rivals, written, isForced, isLikeliest, logits, vector, made, products } = reading;
  const [head, body] = [element("thead"), element("tbody")];
  const { words } = app.result.current.trace;
  // a recording knows only some words
  const sampling = settings.get(app) ?? { ...PLAIN, topK: words ? HIGHEST_TOP_K : 0 };
  sampling.temperature = app.state.temperature;
  settings.set(app, sampling);
  let sampled = sampledWords(reading, sampling);
  /** For each tick, the word with the largest logit in its part of the vocabulary. */
  const ticks = largestOfParts(reading.logits, Math.floor(frame.width - LABELS - MARGIN - 8));

  function parts() {
    fill();
    return [drawLines(), drawResult(), drawSliders(), drawTable(), drawLogits(), ...drawProduct()];
  }

  function openWord(id: number, name: string | null = null) {
    const { row } = reading;
    app.show({ zoom: { box, key: id }, selected: name ? { name, index: [row, id] } : null });
  }

  /** Returns a step's number and name, as a button that opens the open word's number at this step. */
  function stepOf(step: Step, name: Child = app.t(`zoom.words.${step}`)) {
    const at = STEPS.indexOf(step) + 1;
    const { selected } = app.state;
    const ofLogit = selected?.name === "logits" || (!selected && box.endsWith("linear"));
    const opened = part ? "vector" : ofLogit ? "logit" : "probability";
    return stepButton(at, name, step, step === opened, () => {
      if (step === "vector") openPart(largestAt(reading.vector.map(Math.abs), 1)[0]);
      else openWord(open.id, STEPS.indexOf(step) < 4 ? "logits" : "log_probs");
    });
  }

  function openPart(at: number) {
    const { row } = reading;
    app.show({
      zoom: { box, key: open.id },
      selected: { name: "decoder.output", index: [row, at] },
    });
  }

  // Above the words

  function drawResult() {
    const { result } = frame;
    const word = rivals.find(({ id }) => id === written);
    const box = element(
      "div",
      { class: "gfz-box gfz-head gfz-result" },
      app.t("zoom.words.written"),
      element("bdi", { class: KEYED }, word?.word),
      word && probabilityWords(word.probability),
    );
    box.toggleAttribute("data-on", true);
    return put(box, { x: COLUMNS.bars, y: result.y, height: result.height });
  }

  /**
   * Returns the sliders for sampling. The sliders show which words could be drawn, but do not change the translation.
   */
  function drawSliders() {
    const { result } = frame;
    const { trace } = app.result.current;
    if (app.engine.live === "remote") return null;
    const recorded = trace.words && Math.max(1, Math.min(...trace.words.ids.map(({ length }) => length - 1)));
    const [least, most] = recorded ? [1, Math.min(recorded, HIGHEST_TOP_K)] : [0, HIGHEST_TOP_K];
    const one = (name: keyof Sampling, low: number, high: number, step: number, all?: number) => {
      const written = (value: number) =>
        value === all ? app.t("steps.all") : fixedText(value, step < 1 ? 2 : 0);
      return slider(app.t(`steps.${name}`), { low, high, step, value: sampling[name], written }, (value) => {
        sampling[name] = value;
        if (name === "temperature") app.show({ temperature: value });
        sampled = sampledWords(reading, sampling);
        fill();
      });
    };
    const sliders = element(
      "div",
      { class: "gfz-sliders", role: "group", "aria-label": app.t("zoom.words.sliders") },
      one("temperature", 0, 4, 0.05),
      one("topK", least, most, 1, 0),
      one("topP", 0.05, 1, 0.05),
    );
    return put(sliders, { x: 18, y: result.y, width: COLUMNS.power - 18 });
  }

  // The words

  function drawTable() {
    const { rows, row, width } = frame;
    const { logit, scaled, power } = COLUMNS;
    const widths = [LABELS, logit - LABELS, scaled - logit, power - scaled, width - power - DRAWN, DRAWN];
    const cols = widths.map((one) => element("col", { style: `width: ${one}px` }));
    const table = element(
      "table",
      { class: "gfz-rows gfz-words", style: `--rh: ${row}px` },
      element("caption", { class: HIDDEN }, app.t("zoom.words.table", reading.read)),
      element("colgroup", {}, cols),
      head,
      body,
    );
    return put(table, { x: 0, y: rows - 34, width });
  }

  /** Fills the table, at first and whenever the reader moves a slider. */
  function fill() {
    const { shift } = sampled;
    const exponent = shift ? app.t("zoom.words.shifted") : "x";
    const heads: Child[] = [
      element("span", { class: HIDDEN }, app.t("numbers.word")),
      stepOf("logit"),
      stepOf("temperature", `÷ ${app.t("zoom.words.t")}`),
      stepOf("power", element("span", {}, "e", element("sup", {}, exponent))),
      stepOf("probability"),
      stepOf("drawn"),
    ];
    refill(
      head,
      element(
        "tr",
        {},
        heads.map((head) => element("th", { scope: "col" }, head)),
      ),
    );
    refill(
      body,
      rivals.map((rival) => drawRow(rival)),
      drawSums(),
    );
  }

  function drawRow({ id, word, logit, probability }: Rival) {
    const isOpen = id === open.id;
    const number = (content: Child, name: string, stop: string) =>
      stopButton(`${stop} ${id}`, content, () => openWord(id, name));
    const name = stopButton(`word ${id}`, element("bdi", {}, word), () => openWord(id), {
      className: "gfz-name",
      title: word,
    });
    const { scaled, power, share } = sampled;
    const chance = Number.isNaN(share(id)) ? probability : share(id);
    const bar = barOf(fullWidth() * chance);
    const shown = number([bar, probabilityWords(chance)], "log_probs", "share");
    shown.toggleAttribute("data-first", isOpen);
    const isUnlikely = id === written && !isLikeliest;
    const cells: Child[] = [
      number(textOf(logit), "logits", "logit"),
      element("bdi", {}, sampling.temperature > 0 && textOf(scaled(id))),
      element("bdi", {}, powerText(power(id))),
      [shown, isUnlikely && element("small", {}, app.t(`zoom.words.${isForced ? "forced" : "beam"}`))],
      element("bdi", {}, drawnText(id)),
    ];
    return tableRow(name, cells, isOpen, id === written ? KEYED : "");
  }

  function fullWidth() {
    return frame.width - COLUMNS.bars - DRAWN - 90;
  }

  function textOf(value: number) {
    const { scaled, shift } = sampled;
    const decimals = decimalsFor([shift, ...rivals.map(({ id }) => scaled(id))], (least, ...all) =>
      all.map((one) => differenceText(one, least)).join(),
    );
    return Number.isNaN(value) ? "" : fixedText(value, decimals);
  }

  function drawnText(id: number) {
    const { drawn } = sampled;
    if (app.engine.live === "remote") return "";
    const chance = drawn.get(id);
    return chance === undefined ? app.t("zoom.words.out") : `✓ ${probabilityWords(chance)}`;
  }

  /** Returns a row for all words that are not listed, and the sum by which each power is divided. */
  function drawSums() {
    const { sum, power, share, drawn } = sampled;
    const total = (of: (id: number) => number) => rivals.reduce((all, { id }) => all + of(id), 0);
    const others = logits.length - rivals.length;
    const left = drawn.size - rivals.filter(({ id }) => drawn.has(id)).length;
    const row = (name: string, ...cells: Child[]) =>
      element(
        "tr",
        { class: "gfz-sums" },
        element("th", { scope: "row" }, element("span", {}, name)),
        ["", "", ...cells].map((cell) => element("td", {}, element("bdi", {}, cell))),
      );
    const rest = Math.max(0, 1 - total(share));
    const isRemote = app.engine.live === "remote";
    return [
      row(
        app.t("zoom.words.others", groupedText(others)),
        powerText(Math.max(0, sum - total(power))),
        probabilityWords(rest),
        !isRemote && app.t("zoom.words.others.drawn", groupedText(left)),
      ),
      row(app.t("zoom.words.all", groupedText(logits.length)), powerText(sum), probabilityWords(1), ""),
    ];
  }

  // Below the words

  function drawLogits() {
    const { logits: band, width } = frame;
    const tick = tickOf(open.id);
    const numbers = Float32Array.from(ticks, (id) => logits[id] || 0);
    const largest = Math.max(...numbers, 1e-6);
    const strip = {
      stop: "ticks",
      name: app.t("zoom.words.ticks"),
      numbers,
      largest,
      chosen: tick,
      low: Math.max(largest / 8, -Math.min(...numbers)),
      className: open.id === written ? "gfz-plain gfz-ticks" : "gfz-plain",
      textOf: (at: number) => {
        const id = ticks[at];
        if (id < 0) return app.t("zoom.words.unknown");
        return app.t(
          "zoom.words.tick",
          nameOf(id),
          numberText(logits[id], 2),
          groupedText(rankOf(logits, id)),
        );
      },
      open: (at: number) => ticks[at] >= 0 && openWord(ticks[at], "logits"),
    };
    const products = made.parts.filter(({ right }) => right !== undefined).length;
    const bias = made.parts.length > products;
    const x = stripX(width, ticks.length, tick) - LABELS;
    const said = element(
      "p",
      { class: "gfz-made" },
      products > 0 && app.t(bias ? "zoom.products" : "zoom.words.products", vector.length),
      element("strong", {}, textOf(open.logit)),
    );
    said.style.cssText = x > 320 ? `right: ${width - LABELS - MARGIN - x + 14}px` : `left: ${x + 14}px`;
    return [
      ...vectorBand(stepOf("logit"), strip, { ...band, width }, tell, said),
      put(drawSearch(), { x: 18, y: band.y + band.height / 2 + 14, width: 98 }),
    ];
  }

  /** Returns the index of the tick that stands for a word. */
  function tickOf(id: number) {
    return Math.floor((id * ticks.length) / reading.logits.length);
  }

  function nameOf(id: number) {
    return tokenName(app.engine.tokens("target", [id])[0], app.t);
  }

  /** Returns a field that finds a word of the vocabulary and opens it. */
  function drawSearch() {
    const name = app.t("zoom.words.find");
    const find = () => {
      const typed = field.value.trim().toLowerCase();
      if (!typed) return;
      const known = [...logits.keys()].filter((id) => !Number.isNaN(logits[id]));
      const names = app.engine
        .tokens("target", known)
        .map((token) => token.replaceAll("▁", "").toLowerCase());
      const tests = [(one: string) => one === typed, (one: string) => one.startsWith(typed)];
      const at = tests.map((test) => names.findIndex(test)).find((place) => place >= 0);
      if (at !== undefined) return openWord(known[at], "logits");
      field.setCustomValidity(app.t("zoom.words.find.none"));
      field.reportValidity();
    };
    const field: HTMLInputElement = element("input", {
      type: "search",
      class: "gfz-find",
      placeholder: name,
      "aria-label": name,
      onchange: find,
      oninput: () => field.setCustomValidity(""),
    });
    return field;
  }

  /** Returns the last vector, the open word's row of the output matrix, and their products. */
  function drawProduct() {
    const { vector: last, matrix, products: place, width } = frame;
    const band = (
      step: Step,
      place: Band,
      numbers: ArrayLike<number>,
      chosen: number | null,
      className: string,
    ) =>
      vectorBand(
        stepOf(step, step === "matrix" ? app.t("zoom.words.matrix", open.word) : undefined),
        {
          stop: step,
          name: app.t(`zoom.words.strip.${step}`, open.word),
          numbers,
          largest: largestSize(numbers),
          chosen,
          className,
          open: (at) => (step === "vector" ? openPart(at) : openWord(open.id, "logits")),
        },
        { ...place, width },
        tell,
      );
    return [
      ...(open.matrix && products
        ? [
            ...band("product", place, products, null, ""),
            ...band("matrix", matrix, open.matrix, null, "gfz-plain"),
          ]
        : [noteAt(app.t("numbers.needsModel"), { x: LABELS, y: place.y, width: width - LABELS - MARGIN })]),
      ...band("vector", last, vector, part?.at ?? null, KEYED),
    ];
  }

  // Lines

  function drawLines() {
    const { width, logits: band, products: from, rows, row } = frame;
    const products = reading.products ?? [];
    const tickX = (id: number) => stripX(width, ticks.length, tickOf(id));
    const fan = fanOf([...products], [tickX(open.id), band.y + band.height], (i) => {
      return [stripX(width, vector.length, i), from.y, ""];
    });
    const end = rows + (rivals.length + 2) * row;
    const rise = (band.y - end) / 2;
    const risen = rivals.map(({ id }) =>
      drawing("path", {
        class: id === written ? KEYED : id === open.id ? "gfz-open" : "",
        d: `M${tickX(id)} ${band.y}C${tickX(id)} ${band.y - rise} ${COLUMNS.logit - 12} ${end + rise} ${COLUMNS.logit - 12} ${end}`,
        "stroke-width": id === open.id || id === written ? 2 : 1,
        opacity: id === open.id || id === written ? 1 : 0.5,
      }),
    );
    return innerLines(frame, [
      drawing("g", { class: "gfz-fan" }, fan),
      drawing("g", { class: "gfz-fan" }, risen),
    ]);
  }

  /** Returns the lines that enter from below and leave upwards. */
  function outside() {
    const { height, vector, result } = frame;
    const { norm, final_norm: final } = app.config;
    const [ask, up] = [LABELS + 180, COLUMNS.bars + 60];
    const from = norm === "post" ? "sum" : final ? "norm" : "add";
    return [
      enteringLine(KEYED, ask, height, vector, app.t(`zoom.from.${from}`)),
      leavingLine(KEYED, up, result, app.t("zoom.to.words")),
    ];
  }
  return { parts: parts(), outside: outside() };
}
