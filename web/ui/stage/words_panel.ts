// The panel of an opened Linear or Softmax: the last vector times a word's row of the output matrix, the logits of all
// words, and the words that compete, from logit to probability.
import { decimalsOf, fixedText, numberText } from "../../engine/number_text.ts";
import { largestAt } from "../../engine/tensor.ts";
import { button, element, refill } from "../dom.ts";
import { drawing, slider } from "../figure.ts";
import { largestSize } from "./strips.ts";
import { groupedText, powerText, probabilityWords, tokenName } from "./words.ts";
import { largestOfParts, PLAIN, rankOf, sampledWords } from "./words_reading.ts";
import { LABELS, MARGIN, stripX, vectorBand } from "./zoom_band.ts";
import { fanOf, HIDDEN, KEYED, outerLine, panelIn, put, stepButton, tableRow } from "./zoom_parts.ts";

import type { Sampling } from "../../engine/sampling.ts";
import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Tell } from "./strips.ts";
import type { Rival, Sampled, WordsReading } from "./words_reading.ts";
import type { Band } from "./zoom_band.ts";

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

/** The steps, from the first to the last. */
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
/** The right edges of the numbers, and the left edges of the bars and of the last column. */
const COLUMNS = { logit: 214, scaled: 350, power: 480, bars: 520 };
const DRAWN = 170;
const ROOMY = { top: 24, result: 38, gap: 12, head: 34, rise: 46, logits: 64, fan: 62, strip: 30, foot: 34 };
const TIGHT = { top: 12, result: 34, gap: 6, head: 30, rise: 32, logits: 44, fan: 38, strip: 22, foot: 14 };
const [ROOMY_FROM, LEAST, MOST, FLAT] = [740, 18, 28, 20];
const HIGHEST_TOP_K = 50;

/** What the reader has set, which is no part of the address: it changes no translation. */
const settings: WeakMap<App, Sampling> = new WeakMap();

/** Returns the places of the parts in a room; `flat`: with low rows, so that the logits are high. */
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

/** Returns the panel and, where it needs no scrolling, the lines that lead into it and out of it. */
export function wordsPanel(app: App, reading: WordsReading, room: HTMLElement): Child[] {
  const isFlat = reading.box.endsWith("linear");
  return panelIn(
    app,
    room,
    (inner) => wordsFrame(inner, reading.rivals.length + 2, isFlat),
    (frame, tell) => {
      const panel = new Panel(app, reading, frame, tell);
      return { parts: panel.parts(), outside: panel.outside() };
    },
  );
}

class Panel {
  #app: App;
  #reading: WordsReading;
  #frame: Frame;
  #tell: Tell;
  #sampling: Sampling;
  #sampled: Sampled;
  #head = element("thead");
  #body = element("tbody");
  /** The word with the largest logit of each tick. */
  #ticks: Int32Array;

  constructor(app: App, reading: WordsReading, frame: Frame, tell: Tell) {
    [this.#app, this.#reading, this.#frame, this.#tell] = [app, reading, frame, tell];
    const { trace } = app.result.current;
    const start = { ...PLAIN, topK: trace.words ? HIGHEST_TOP_K : 0 }; // a recording cannot draw all words
    this.#sampling = settings.get(app) ?? start;
    settings.set(app, this.#sampling);
    this.#sampled = sampledWords(reading, this.#sampling);
    this.#ticks = largestOfParts(reading.logits, Math.floor(frame.width - LABELS - MARGIN - 8));
  }

  parts() {
    this.#fill();
    return [
      this.#lines(),
      this.#result(),
      this.#sliders(),
      this.#table(),
      this.#logits(),
      ...this.#product(),
    ];
  }

  #t(key: string, ...values: (string | number)[]) {
    return this.#app.t(key, ...values);
  }

  #openWord(id: number, name: string | null = null) {
    const { box, row } = this.#reading;
    this.#app.show({ zoom: { box, key: id }, selected: name ? { name, index: [row, id] } : null });
  }

  /** Returns a step's number and name, as a button that opens the open word's number of this step. */
  #step(step: Step, name: Child = this.#t(`zoom.words.${step}`)) {
    const at = STEPS.indexOf(step) + 1;
    const { open, part, box } = this.#reading;
    const { selected } = this.#app.state;
    const ofLogit = selected?.name === "logits" || (!selected && box.endsWith("linear"));
    const opened = part ? "vector" : ofLogit ? "logit" : "probability";
    return stepButton(at, name, step, step === opened, () => {
      if (step === "vector") this.#openPart(largestAt(this.#reading.vector.map(Math.abs), 1)[0]);
      else this.#openWord(open.id, STEPS.indexOf(step) < 4 ? "logits" : "log_probs");
    });
  }

  #openPart(at: number) {
    const { box, row, open } = this.#reading;
    this.#app.show({
      zoom: { box, key: open.id },
      selected: { name: "decoder.output", index: [row, at] },
    });
  }

  // Above the words

  #result() {
    const { result } = this.#frame;
    const { rivals, written } = this.#reading;
    const word = rivals.find(({ id }) => id === written);
    const box = element(
      "div",
      { className: "gfz-box gfz-head gfz-result" },
      this.#t("zoom.words.written"),
      element("bdi", { className: KEYED }, word?.word),
      word && probabilityWords(word.probability),
    );
    box.toggleAttribute("data-on", true);
    return put(box, { x: COLUMNS.bars, y: result.y, height: result.height });
  }

  /** Returns the sliders of sampling: they show what would be drawn, and translate nothing. */
  #sliders() {
    const { result } = this.#frame;
    const { trace } = this.#app.result.current;
    if (this.#app.engine.live === "remote") return null;
    const recorded = trace.words && Math.max(1, Math.min(...trace.words.ids.map(({ length }) => length - 1)));
    const [least, most] = recorded ? [1, Math.min(recorded, HIGHEST_TOP_K)] : [0, HIGHEST_TOP_K];
    const one = (name: keyof Sampling, low: number, high: number, step: number, all?: number) => {
      const written = (value: number) =>
        value === all ? this.#t("steps.all") : fixedText(value, step < 1 ? 2 : 0);
      return slider(
        this.#t(`steps.${name}`),
        { low, high, step, value: this.#sampling[name], written },
        (value) => {
          this.#sampling[name] = value;
          this.#sampled = sampledWords(this.#reading, this.#sampling);
          this.#fill();
        },
      );
    };
    const sliders = element(
      "div",
      { className: "gfz-sliders", role: "group", "aria-label": this.#t("zoom.words.sliders") },
      one("temperature", 0, 2, 0.05),
      one("topK", least, most, 1, 0),
      one("topP", 0.05, 1, 0.05),
    );
    return put(sliders, { x: 18, y: result.y, width: COLUMNS.power - 18 });
  }

  // The words

  #table() {
    const { rows, row, width } = this.#frame;
    const { logit, scaled, power } = COLUMNS;
    const widths = [LABELS, logit - LABELS, scaled - logit, power - scaled, width - power - DRAWN, DRAWN];
    const cols = widths.map((one) => element("col", { style: `width: ${one}px` }));
    const table = element(
      "table",
      { className: "gfz-rows gfz-words", style: `--rh: ${row}px` },
      element("caption", { className: HIDDEN }, this.#t("zoom.words.table", this.#reading.read)),
      element("colgroup", {}, cols),
      this.#head,
      this.#body,
    );
    return put(table, { x: 0, y: rows - 34, width });
  }

  /** Fills the table: at first, and when the reader moves a slider. */
  #fill() {
    const { rivals } = this.#reading;
    const { shift } = this.#sampled;
    const exponent = shift ? this.#t("zoom.words.shifted") : "x";
    const heads: Child[] = [
      element("span", { className: HIDDEN }, this.#t("numbers.word")),
      this.#step("logit"),
      this.#step("temperature", `÷ ${this.#t("zoom.words.t")}`),
      this.#step("power", element("span", {}, "e", element("sup", {}, exponent))),
      this.#step("probability"),
      this.#step("drawn"),
    ];
    refill(
      this.#head,
      element(
        "tr",
        {},
        heads.map((head) => element("th", { scope: "col" }, head)),
      ),
    );
    refill(
      this.#body,
      rivals.map((rival) => this.#row(rival)),
      this.#sums(),
    );
  }

  #row({ id, word, logit, probability }: Rival) {
    const { open, written, isForced, isLikeliest } = this.#reading;
    const isOpen = id === open.id;
    const number = (content: Child, name: string, stop: string) => {
      const made = button(content, () => this.#openWord(id, name));
      made.dataset.stop = `${stop} ${id}`;
      return made;
    };
    const name = button(element("bdi", {}, word), () => this.#openWord(id), {
      className: "gfz-name",
      title: word,
    });
    name.dataset.stop = `word ${id}`;
    const { scaled, power, share } = this.#sampled;
    const chance = Number.isNaN(share(id)) ? probability : share(id);
    const bar = element("i", { style: `width: ${Math.max(1, this.#full() * chance)}px` });
    const shown = number([bar, probabilityWords(chance)], "log_probs", "share");
    shown.toggleAttribute("data-first", isOpen);
    const isUnlikely = id === written && !isLikeliest;
    const cells: Child[] = [
      number(this.#text(logit), "logits", "logit"),
      element("bdi", {}, this.#sampling.temperature > 0 && this.#text(scaled(id))),
      element("bdi", {}, powerText(power(id))),
      [shown, isUnlikely && element("small", {}, this.#t(`zoom.words.${isForced ? "forced" : "beam"}`))],
      element("bdi", {}, this.#drawn(id)),
    ];
    return tableRow(name, cells, isOpen, id === written ? KEYED : "");
  }

  #full() {
    return this.#frame.width - COLUMNS.bars - DRAWN - 90;
  }

  #text(value: number) {
    return Number.isNaN(value)
      ? ""
      : fixedText(value, decimalsOf(this.#reading.rivals.map(({ logit }) => logit || 0)));
  }

  #drawn(id: number) {
    const { drawn } = this.#sampled;
    if (this.#app.engine.live === "remote") return "";
    const chance = drawn.get(id);
    return chance === undefined ? this.#t("zoom.words.out") : `✓ ${probabilityWords(chance)}`;
  }

  /** Returns the words that are not listed, in one row, and the sum by which each power is divided. */
  #sums() {
    const { rivals, logits } = this.#reading;
    const { sum, power, share, drawn } = this.#sampled;
    const total = (of: (id: number) => number) => rivals.reduce((all, { id }) => all + of(id), 0);
    const others = logits.length - rivals.length;
    const left = drawn.size - rivals.filter(({ id }) => drawn.has(id)).length;
    const row = (name: string, ...cells: Child[]) =>
      element(
        "tr",
        { className: "gfz-sums" },
        element("th", { scope: "row" }, element("span", {}, name)),
        ["", "", ...cells].map((cell) => element("td", {}, element("bdi", {}, cell))),
      );
    const rest = Math.max(0, 1 - total(share));
    const isRemote = this.#app.engine.live === "remote";
    return [
      row(
        this.#t("zoom.words.others", groupedText(others)),
        powerText(Math.max(0, sum - total(power))),
        probabilityWords(rest),
        !isRemote && this.#t("zoom.words.others.drawn", groupedText(left)),
      ),
      row(this.#t("zoom.words.all", groupedText(logits.length)), powerText(sum), probabilityWords(1), ""),
    ];
  }

  // Below the words

  #logits() {
    const { logits: band, width } = this.#frame;
    const { logits, open, written, vector, made } = this.#reading;
    const tick = this.#tickOf(open.id);
    const numbers = Float32Array.from(this.#ticks, (id) => logits[id] || 0);
    const largest = Math.max(...numbers, 1e-6);
    const strip = {
      stop: "ticks",
      name: this.#t("zoom.words.ticks"),
      numbers,
      largest,
      chosen: tick,
      low: Math.max(largest / 8, -Math.min(...numbers)),
      className: open.id === written ? "gfz-plain gfz-ticks" : "gfz-plain",
      textOf: (at: number) => {
        const id = this.#ticks[at];
        if (id < 0) return this.#t("zoom.words.unknown");
        return this.#t(
          "zoom.words.tick",
          this.#nameOf(id),
          numberText(logits[id], 2),
          groupedText(rankOf(logits, id)),
        );
      },
      open: (at: number) => this.#ticks[at] >= 0 && this.#openWord(this.#ticks[at], "logits"),
    };
    const products = made.parts.filter(({ right }) => right !== undefined).length;
    const bias = made.parts.length > products;
    const x = stripX(width, this.#ticks.length, tick) - LABELS;
    const said = element(
      "p",
      { className: "gfz-made" },
      products > 0 && this.#t(bias ? "zoom.products" : "zoom.words.products", vector.length),
      element("strong", {}, this.#text(open.logit)),
    );
    said.style.cssText = x > 320 ? `right: ${width - LABELS - MARGIN - x + 14}px` : `left: ${x + 14}px`;
    return [
      ...vectorBand(this.#step("logit"), strip, { ...band, width }, this.#tell, said),
      put(this.#search(), { x: 18, y: band.y + band.height / 2 + 14, width: 98 }),
    ];
  }

  /** Returns the tick in which a word's logit stands. */
  #tickOf(id: number) {
    return Math.floor((id * this.#ticks.length) / this.#reading.logits.length);
  }

  #nameOf(id: number) {
    return tokenName(this.#app.engine.tokens("target", [id])[0], this.#app.t);
  }

  /** Returns the field that finds a word of the vocabulary, and opens it. */
  #search() {
    const field = element("input", { type: "search", className: "gfz-find" });
    field.placeholder = this.#t("zoom.words.find");
    field.setAttribute("aria-label", field.placeholder);
    field.addEventListener("change", () => {
      const typed = field.value.trim().toLowerCase();
      if (!typed) return;
      const { logits } = this.#reading;
      const known = [...logits.keys()].filter((id) => !Number.isNaN(logits[id]));
      const names = this.#app.engine
        .tokens("target", known)
        .map((token) => token.replaceAll("▁", "").toLowerCase());
      const tests = [(one: string) => one === typed, (one: string) => one.startsWith(typed)];
      const at = tests.map((test) => names.findIndex(test)).find((place) => place >= 0);
      if (at !== undefined) return this.#openWord(known[at], "logits");
      field.setCustomValidity(this.#t("zoom.words.find.none"));
      field.reportValidity();
    });
    field.addEventListener("input", () => field.setCustomValidity(""));
    return field;
  }

  /** Returns the last vector, the open word's row of the output matrix, and their products. */
  #product() {
    const { vector: last, matrix, products: place, width } = this.#frame;
    const { vector, products, open, part } = this.#reading;
    const band = (
      step: Step,
      place: Band,
      numbers: ArrayLike<number>,
      chosen: number | null,
      className: string,
    ) =>
      vectorBand(
        this.#step(step, step === "matrix" ? this.#t("zoom.words.matrix", open.word) : undefined),
        {
          stop: step,
          name: this.#t(`zoom.words.strip.${step}`, open.word),
          numbers,
          largest: largestSize(numbers),
          chosen,
          className,
          open: (at) => (step === "vector" ? this.#openPart(at) : this.#openWord(open.id, "logits")),
        },
        { ...place, width },
        this.#tell,
      );
    return [
      ...(open.matrix && products
        ? [
            ...band("product", place, products, null, ""),
            ...band("matrix", matrix, open.matrix, null, "gfz-plain"),
          ]
        : [
            put(element("p", { className: "gfz-note" }, this.#t("numbers.needsModel")), {
              x: LABELS,
              y: place.y,
              width: width - LABELS - MARGIN,
            }),
          ]),
      ...band("vector", last, vector, part?.at ?? null, KEYED),
    ];
  }

  // Lines

  #lines() {
    const { width, height, logits: band, products: from, rows, row } = this.#frame;
    const { open, written, vector, rivals } = this.#reading;
    const products = this.#reading.products ?? [];
    const tickX = (id: number) => stripX(width, this.#ticks.length, this.#tickOf(id));
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
    return drawing(
      "svg",
      { class: "gfz-lines", width, height, "aria-hidden": "true" },
      drawing("g", { class: "gfz-fan" }, fan),
      drawing("g", { class: "gfz-fan" }, risen),
    );
  }

  /** Returns the lines from below and to above. */
  outside() {
    const { height, vector, result } = this.#frame;
    const { norm, final_norm: final } = this.#app.config;
    const [ask, up] = [LABELS + 180, COLUMNS.bars + 60];
    const from = norm === "post" ? "sum" : final ? "norm" : "add";
    return [
      ...outerLine(
        KEYED,
        `M${ask} ${height + 48}V${vector.y + vector.height}`,
        [ask + 14, height + 30],
        this.#t(`zoom.from.${from}`),
      ),
      ...outerLine(KEYED, `M${up} -48V${result.y}`, [up + 14, -20], this.#t("zoom.to.words")),
    ];
  }
}
