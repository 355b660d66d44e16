// The rows of an opened Linear or Softmax: the competing words, from logit to probability, the logits of all words, and
// the last vector times a word's row of the output matrix.
import { decimalsFor, fixedText, numberText } from "../../engine/number_text.ts";
import { largestAt } from "../../engine/tensor.ts";
import { fanOf, lineFromBelow, lineUpwards, lowEdge, numberX } from "./lines.ts";
import { NEAR, below, gap, noteOf, over, stripBox, tableOf } from "./rows.ts";
import { element } from "../app/dom.ts";
import { drawing, slider } from "../app/drawing.ts";
import { differenceText, groupedText, powerText, probabilityWords, tokenName } from "../app/wording.ts";
import { largestOfParts, PLAIN, rankOf, sampledWords } from "../figure/words_reading.ts";
import { HIDDEN, KEYED, barOf, stepButton, stopButton, tableRow } from "./zoom_parts.ts";

import type { Sampling } from "../../engine/sampling.ts";
import type { App } from "../app/app.ts";
import type { Box, Row } from "./rows.ts";
import type { Child } from "../app/types.ts";
import type { Ruler, Tell } from "./strips.ts";
import type { Rival, WordsReading } from "../figure/words_reading.ts";

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
const COLUMNS = "126px 88px 136px 130px minmax(0, 1fr) 134px 36px";
const HIGHEST_TOP_K = 50;
/** The most logits that are drawn side by side; with more words, one stands for several. */
const TICKS = 900;
/** Where the line of the last vector enters, and where that of the words leaves, in px from the left of their parts. */
const [ENTERS, LEAVES] = [180, 60];

/** What each part of the panel is made from. */
interface Panel {
  app: App;
  reading: WordsReading;
  tell: Tell;
  sampling: Sampling;
  sampled: ReturnType<typeof sampledWords>;
  /** For each tick, the word with the largest logit in its part of the vocabulary. */
  ticks: ReturnType<typeof largestOfParts>;
}

/**
 * The reader's settings for sampling. The address does not contain them, because they do not change the translation.
 */
const settings: WeakMap<App, Sampling> = new WeakMap();

/** Returns the rows of an opened Linear or Softmax. */
export function wordsBox(app: App, reading: WordsReading, tell: Tell): Box {
  const { box, logits, products, open } = reading;
  const sampling = settingsOf(app);
  const sampled = sampledWords(reading, sampling);
  const panel: Panel = { app, reading, tell, sampling, sampled, ticks: largestOfParts(logits, TICKS) };
  const isFlat = box.endsWith("linear"); // low rows leave more height for the logits
  const words = wordTable(panel, isFlat);
  const [table] = words.parts;
  const result = resultBox(panel);
  const strips = {
    logits: logitsBox(panel),
    product: productBox(panel, "product"),
    vector: productBox(panel, "vector"),
  };
  const matrix = productBox(panel, "matrix");
  const row = (step: Step, part: HTMLElement): Row => {
    return { height: [22, 30], name: stepOf(panel, step), parts: [part] };
  };
  const missing = { height: [22, 30] as const, parts: [noteOf(app.t("numbers.needsModel"))] };
  return {
    columns: COLUMNS,
    rows: [
      gap([12, 24]),
      { height: [34, 38], parts: [slidersOf(panel, table, isFlat), over("5", result)] },
      gap([6, 12]),
      words,
      gap([32, 46]),
      {
        height: isFlat ? [44, 220] : [44, 104],
        name: [stepOf(panel, "logit"), searchField(panel)],
        parts: [strips.logits],
      },
      gap([38, 62]),
      ...(open.matrix && products
        ? [row("product", strips.product), gap(6), row("matrix", matrix)]
        : [missing, gap(36)]),
      gap(6),
      row("vector", strips.vector),
      gap([14, 34]),
    ],
    lines: (ruler) => linesOf(panel, strips, table, ruler),
    outside: (ruler, height) => [
      lineFromBelow(KEYED, ruler(strips.vector).x + ENTERS, height, enteringText(app)),
      lineUpwards(KEYED, ruler(result).x + LEAVES, app.t("zoom.to.words")),
    ],
  };
}

function settingsOf(app: App) {
  const { words } = app.result.current.trace;
  // a recording knows only some words
  const sampling = settings.get(app) ?? { ...PLAIN, topK: words ? HIGHEST_TOP_K : 0 };
  sampling.temperature = app.state.temperature;
  settings.set(app, sampling);
  return sampling;
}

function enteringText(app: App) {
  const { norm, final_norm: final } = app.config;
  return app.t(`zoom.from.${norm === "post" ? "sum" : final ? "norm" : "add"}`);
}

function openWord({ app, reading: { box, row } }: Panel, id: number, name: string | null = null) {
  app.show({ zoom: { box, key: id }, selected: name ? { name, index: [row, id] } : null });
}

function openPart({ app, reading: { box, row, open } }: Panel, at: number) {
  app.show({ zoom: { box, key: open.id }, selected: { name: "decoder.output", index: [row, at] } });
}

/** Returns a step's number and name, as a button that opens the open word's number at this step. */
function stepOf(panel: Panel, step: Step, name?: Child) {
  const { app, reading } = panel;
  const { part, box, open, vector } = reading;
  const at = STEPS.indexOf(step) + 1;
  const { selected } = app.state;
  const ofLogit = selected?.name === "logits" || (!selected && box.endsWith("linear"));
  const opened = part ? "vector" : ofLogit ? "logit" : "probability";
  const said = name ?? app.t(`zoom.words.${step}`, ...(step === "matrix" ? [open.word] : []));
  return stepButton(at, said, step, step === opened, () => {
    if (step === "vector") openPart(panel, largestAt(vector.map(Math.abs), 1)[0]);
    else openWord(panel, open.id, STEPS.indexOf(step) < 4 ? "logits" : "log_probs");
  });
}

// Above the words

function resultBox({ app, reading: { rivals, written } }: Panel) {
  const word = rivals.find(({ id }) => id === written);
  const box = element(
    "div",
    { class: "gfz-box gfz-head gfz-result", "data-on": true },
    app.t("zoom.words.written"),
    element("bdi", { class: KEYED }, word?.word),
    word && probabilityWords(word.probability),
  );
  box.style.marginLeft = "40px"; // above the bars, which have the same distance from their column
  return box;
}

/**
 * Returns the sliders for sampling. The sliders show which words could be drawn, but do not change the translation.
 */
function slidersOf(panel: Panel, table: HTMLTableElement, isFlat: boolean) {
  const { app, sampling, reading } = panel;
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
      panel.sampled = sampledWords(reading, sampling);
      const [fresh] = wordTable(panel, isFlat).parts;
      table.tHead = fresh.tHead;
      table.tBodies[0].replaceWith(fresh.tBodies[0]);
    });
  };
  const sliders = element(
    "div",
    { class: "gfz-sliders", role: "group", "aria-label": app.t("zoom.words.sliders") },
    one("temperature", 0, 4, 0.05),
    one("topK", least, most, 1, 0),
    one("topP", 0.05, 1, 0.05),
  );
  return over("1 / 5", sliders);
}

// The words

function wordTable(panel: Panel, isFlat: boolean) {
  const { app, reading, sampled } = panel;
  const exponent = sampled.shift ? app.t("zoom.words.shifted") : "x";
  const heads: Child[] = [
    element("span", { class: HIDDEN }, app.t("numbers.word")),
    stepOf(panel, "logit"),
    stepOf(panel, "temperature", `÷ ${app.t("zoom.words.t")}`),
    stepOf(panel, "power", element("span", {}, "e", element("sup", {}, exponent))),
    stepOf(panel, "probability"),
    stepOf(panel, "drawn"),
  ];
  const rows = reading.rivals.map((rival) => wordRow(panel, rival));
  const look = { lines: rows.length + 2, most: isFlat ? 20 : 28, className: "gfz-words" };
  return tableOf(app.t("zoom.words.table", reading.read), heads, [rows, sumRows(panel)], look);
}

function wordRow(panel: Panel, { id, word, logit, probability }: Rival) {
  const { app, reading, sampled, sampling } = panel;
  const { open, written, isLikeliest, isForced } = reading;
  const isOpen = id === open.id;
  const number = (content: Child, name: string, stop: string) =>
    stopButton(`${stop} ${id}`, content, () => openWord(panel, id, name));
  const name = stopButton(`word ${id}`, element("bdi", {}, word), () => openWord(panel, id), {
    className: "gfz-name",
    title: word,
  });
  const { scaled, power, share } = sampled;
  const chance = Number.isNaN(share(id)) ? probability : share(id);
  const shown = number([barOf(`(100% - 50px) * ${chance}`), probabilityWords(chance)], "log_probs", "share");
  shown.toggleAttribute("data-first", isOpen);
  const isUnlikely = id === written && !isLikeliest;
  const cells: Child[] = [
    number(textOf(panel, logit), "logits", "logit"),
    element("bdi", {}, sampling.temperature > 0 && textOf(panel, scaled(id))),
    element("bdi", {}, powerText(power(id))),
    [shown, isUnlikely && element("small", {}, app.t(`zoom.words.${isForced ? "forced" : "beam"}`))],
    element("bdi", {}, drawnText(panel, id)),
  ];
  return tableRow(name, cells, isOpen, id === written ? KEYED : "");
}

function textOf({ sampled, reading }: Panel, value: number) {
  const { scaled, shift } = sampled;
  const decimals = decimalsFor([shift, ...reading.rivals.map(({ id }) => scaled(id))], (least, ...all) =>
    all.map((one) => differenceText(one, least)).join(),
  );
  return Number.isNaN(value) ? "" : fixedText(value, decimals);
}

function drawnText({ app, sampled }: Panel, id: number) {
  if (app.engine.live === "remote") return "";
  const chance = sampled.drawn.get(id);
  return chance === undefined ? app.t("zoom.words.out") : `✓ ${probabilityWords(chance)}`;
}

/** Returns a row for all words that are not listed, and the sum by which each power is divided. */
function sumRows({ app, reading: { rivals, logits }, sampled }: Panel) {
  const { sum, power, share, drawn } = sampled;
  const total = (of: (id: number) => number) => rivals.reduce((all, { id }) => all + of(id), 0);
  const others = logits.length - rivals.length;
  const left = drawn.size - rivals.filter(({ id }) => drawn.has(id)).length;
  const row = (name: string, ...cells: Child[]) =>
    element(
      "tr",
      "gfz-sums",
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

/** Returns the index of the tick that stands for a word. */
function tickOf({ ticks, reading: { logits } }: Panel, id: number) {
  return Math.floor((id * ticks.length) / logits.length);
}

/** Returns the logits of all words. */
function logitsBox(panel: Panel) {
  const { app, reading, ticks, tell } = panel;
  const { logits, open, written, made, vector } = reading;
  const tick = tickOf(panel, open.id);
  const numbers = Float32Array.from(ticks, (id) => logits[id] || 0);
  const largest = Math.max(...numbers, 1e-6);
  const strip = {
    stop: "ticks",
    name: app.t("zoom.words.ticks"),
    numbers,
    bars: true,
    largest,
    chosen: tick,
    low: Math.max(largest / 8, -Math.min(...numbers)),
    className: open.id === written ? "gfz-plain gfz-ticks" : "gfz-plain",
    textOf: (at: number) => tickText(panel, ticks[at]),
    open: (at: number) => ticks[at] >= 0 && openWord(panel, ticks[at], "logits"),
  };
  const products = made.parts.filter(({ right }) => right !== undefined).length;
  const text = made.parts.length > products ? "zoom.products" : "zoom.words.products";
  const number = element("strong", {}, textOf(panel, open.logit));
  const said = below(tick, ticks.length, NEAR, products > 0 && app.t(text, vector.length), number);
  return stripBox(strip, tell, "", said);
}

function tickText({ app, reading: { logits } }: Panel, id: number) {
  if (id < 0) return app.t("zoom.words.unknown");
  const name = tokenName(app.engine.tokens("target", [id])[0], app.t);
  return app.t("zoom.words.tick", name, numberText(logits[id], 2), groupedText(rankOf(logits, id)));
}

/** Returns a field that finds a word of the vocabulary and opens it. */
function searchField(panel: Panel) {
  const { app, reading } = panel;
  const name = app.t("zoom.words.find");
  const find = () => {
    const typed = field.value.trim().toLowerCase();
    if (!typed) return;
    const known = [...reading.logits.keys()].filter((id) => !Number.isNaN(reading.logits[id]));
    const names = app.engine.tokens("target", known).map((token) => token.replaceAll("▁", "").toLowerCase());
    const tests = [(one: string) => one === typed, (one: string) => one.startsWith(typed)];
    const at = tests.map((test) => names.findIndex(test)).find((place) => place >= 0);
    if (at !== undefined) return openWord(panel, known[at], "logits");
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

/** Returns the last vector, the open word's row of the output matrix, or their products. */
function productBox(panel: Panel, step: "vector" | "matrix" | "product") {
  const { app, reading, tell } = panel;
  const { open, products, vector, part } = reading;
  const numbers = { vector, matrix: open.matrix, product: products }[step] ?? [];
  const isVector = step === "vector";
  const strip = {
    stop: step,
    name: app.t(`zoom.words.strip.${step}`, open.word),
    numbers,
    bars: true,
    chosen: isVector ? (part?.at ?? null) : null,
    className: { vector: KEYED, matrix: "gfz-plain", product: "" }[step],
    open: (at: number) => (isVector ? openPart(panel, at) : openWord(panel, open.id, "logits")),
  };
  return stripBox(strip, tell);
}

// Lines

/** Returns the lines from the products to the open word's logit, and from the logits to the words. */
function linesOf(
  panel: Panel,
  { logits, product, vector }: Record<"logits" | "product" | "vector", HTMLElement>,
  table: HTMLTableElement,
  ruler: Ruler,
): Child[] {
  const { reading, ticks } = panel;
  const { open, written, rivals } = reading;
  const products = [...(reading.products ?? [])];
  const place = ruler(logits.children[0]);
  const tickX = (id: number) => numberX(place, ticks.length, tickOf(panel, id));
  const [from, top] = [ruler(vector.children[0]), ruler(product).y];
  const fan = fanOf(products, [tickX(open.id), lowEdge(place)], (i) => [
    numberX(from, products.length, i),
    top,
    "",
  ]);
  const end = lowEdge(ruler(table));
  const rise = (place.y - end) / 2;
  const cell = ruler(table.tBodies[0].rows[0].cells[1]);
  const x = cell.x + cell.width - 12;
  const risen = rivals.map(({ id }) => {
    const isLit = id === open.id || id === written;
    return drawing("path", {
      class: id === written ? KEYED : id === open.id ? "gfz-open" : "",
      d: `M${tickX(id)} ${place.y}C${tickX(id)} ${place.y - rise} ${x} ${end + rise} ${x} ${end}`,
      "stroke-width": isLit ? 2 : 1,
      opacity: isLit ? 1 : 0.5,
    });
  });
  return [fan, drawing("g", "gfz-fan", risen)];
}
