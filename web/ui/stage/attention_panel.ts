// The panel of an opened attention: its nine steps, and the row of each key.
import { decimalsOf, fixedText } from "../../engine/number_text.ts";
import { button, element } from "../dom.ts";
import { drawing } from "../figure.ts";
import { frameOf, headBoxes } from "./attention_frame.ts";
import { firstNumber, KINDS, leadOf } from "./attention_reading.ts";
import { powerText, probabilityWords } from "./words.ts";
import { createStrip, largestSize, MOST_SQUARES } from "./strips.ts";
import {
  ASKED,
  HIDDEN,
  KEYED,
  fanOf,
  legend,
  neighbours,
  outerLine,
  panelIn,
  put,
  rowAt,
  stepButton,
  sumBox,
  turner,
  rowsTable,
  tableRow,
} from "./zoom_parts.ts";

import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Frame } from "./attention_frame.ts";
import type { Key, Kind, Reading } from "./attention_reading.ts";
import type { Strip, Tell } from "./strips.ts";

/** The steps, by the point whose number they open; the mask has no number of its own. */
const STEPS = [...KINDS.slice(0, 3), "mask" as const, ...KINDS.slice(3)];
/** A larger score has a power of e that is too long to be read. */
const LARGEST_EXPONENT = 12;
/** The width of the number beside a bar. */
const NUMBER = 56;

/** Chooses a head of the opened attention. */
export function chooseHead(app: App, { family, layer }: Reading, head: number) {
  app.show({ heads: { ...app.state.heads, [family.id]: { layer, head } } });
}

/** Returns the panel and, where it needs no scrolling, the lines that lead into it and out of it. */
export function attentionPanel(app: App, reading: Reading, room: HTMLElement): Child[] {
  const { keys, tensors } = reading;
  const [keyWidth, valueWidth] = [tensors.query, tensors.value].map(({ shape }) => shape[2]);
  return panelIn(
    app,
    room,
    (inner) => frameOf(inner, { keys: keys.length, keyWidth, valueWidth }),
    (frame, tell) => {
      const panel = new Panel(app, reading, frame, tell);
      return { parts: panel.parts(), outside: panel.outside() };
    },
  );
}

class Panel {
  #app: App;
  #reading: Reading;
  #frame: Frame;
  #tell: Tell;
  /** The numbers that fill a cell of the keys and of the values. */
  #largest: { key: number; value: number };

  constructor(app: App, reading: Reading, frame: Frame, tell: Tell) {
    [this.#app, this.#reading, this.#frame, this.#tell] = [app, reading, frame, tell];
    const all = (kind: "key" | "value") => reading.keys.map((_, key) => this.#row(kind, key));
    this.#largest = {
      key: largestSize(this.#row("query"), ...all("key")),
      value: largestSize(this.#row("heads"), ...all("value")),
    };
  }

  parts() {
    return [
      this.#lines(),
      ...this.#headings(),
      this.#outputs(),
      ...this.#heads(),
      this.#sum(),
      this.#table(),
      this.#query(),
      ...this.#beside(),
    ];
  }

  // What the parts share

  #row(kind: Kind, key = this.#reading.key) {
    return rowAt(this.#reading.tensors[kind], leadOf({ ...this.#reading, key }, kind));
  }

  #open(kind: Kind, at: number, key = this.#reading.key) {
    const { box } = this.#reading;
    const lead = leadOf({ ...this.#reading, key }, kind);
    this.#app.show({ zoom: { box, key }, selected: { name: `${box}.${kind}`, index: [...lead, at] } });
  }

  /** Returns the numbers of a point as a strip. */
  #strip(kind: Kind, strip: Partial<Strip> & Pick<Strip, "width" | "height">, key = this.#reading.key) {
    const { open, keys, query } = this.#reading;
    const word = kind === "key" || kind === "value" ? keys[key].word : query;
    const isOpen = open.isChosen && open.kind === kind && key === this.#reading.key;
    return createStrip(
      {
        stop: `${kind} ${key}`,
        name: this.#app.t(`zoom.strip.${kind}`, word),
        numbers: this.#row(kind, key),
        largest: kind === "value" || kind === "heads" ? this.#largest.value : this.#largest.key,
        chosen: isOpen ? open.at : null,
        open: (at) => this.#open(kind, at, key),
        ...strip,
      },
      this.#tell,
    );
  }

  /** Returns a step's number and name, as a button that opens its most important number. */
  #step(kind: Kind | "mask") {
    const { open, output } = this.#reading;
    const [place, name] = [STEPS.indexOf(kind) + 1, this.#app.t(`zoom.step.${kind}`)];
    if (kind === "mask") return element("span", { className: "gfz-step" }, element("i", {}, place), name);
    const at = () => (kind === "output" ? output : firstNumber(this.#reading, kind));
    const content = [name, kind === "output" && element("sub", {}, "O")];
    return stepButton(place, content, kind, open.kind === kind, () => this.#open(kind, at()));
  }

  // Above the table

  /** Returns the lines between the parts; the strips and words lie on them. */
  #lines() {
    const { width, height, joined, output, sum, values, keys, rows, row, query } = this.#frame;
    const { heads, head, tensors, products, output: at } = this.#reading;
    const boxes = headBoxes(this.#frame, heads);
    const count = tensors.value.shape[2];
    const box = boxes.at(head);
    const [left, right] = [values.x - 8, values.x + values.cell * count + 8];
    const from = joined.y + joined.height;
    const funnel = `M${box} ${from + 2}L${left} ${sum.y}H${right}L${box + boxes.width} ${from + 2}Z`;
    const bottom = output.y + output.height;
    const fan = fanOf(products ?? [], [this.#outputX(at), bottom], (i) => [
      boxes.at(Math.floor(i / count)) + 4 + (((i % count) + 0.5) * (boxes.width - 8)) / count,
      joined.y,
      Math.floor(i / count) === head ? KEYED : "",
    ]);
    const end = rows + (this.#reading.keys.length + 2) * row;
    const width1 = tensors.query.shape[2];
    const dots = Array.from({ length: width1 > MOST_SQUARES ? 0 : width1 }, (_, i) => {
      const x = keys.x + (i + 0.5) * keys.cell;
      return drawing("path", { d: `M${x} ${end}V${query.y - 1}` });
    });
    return drawing(
      "svg",
      { class: "gfz-lines", width, height, "aria-hidden": "true" },
      drawing("path", { class: "gfz-funnel", d: funnel }),
      drawing("g", { class: "gfz-fan" }, fan),
      drawing("g", { class: "gfz-dots" }, dots),
    );
  }

  /** Returns the middle of a number of the output. */
  #outputX(at: number) {
    const { keys } = this.#frame;
    const [, count] = this.#reading.tensors.output.shape;
    return keys.x + 4 + ((at + 0.5) * (this.#wide() - 8)) / count;
  }

  /** Returns the width of the joined heads and of the output. */
  #wide() {
    const { heads } = this.#reading;
    const boxes = headBoxes(this.#frame, heads);
    return boxes.at(heads - 1) + boxes.width - this.#frame.keys.x;
  }

  #headings() {
    const { output, joined, sum, values, query } = this.#frame;
    const place = (kind: Kind, x: number, { y, height }: { y: number; height: number }) =>
      put(element("div", { className: "gfz-heading" }, this.#step(kind)), { x, y: y + height / 2 - 12 });
    return [
      place("output", 18, output),
      place("joined", 18, joined),
      place("heads", values.x - 152, sum),
      place("query", 18, query),
    ];
  }

  #outputs() {
    const { output, keys } = this.#frame;
    const { output: at, products } = this.#reading;
    const numbers = this.#row("output");
    const wide = this.#wide();
    const strip = this.#strip("output", {
      width: wide - 8,
      height: output.height,
      bars: true,
      largest: largestSize(numbers),
      chosen: at,
      className: "gfz-plain",
    });
    return sumBox(this.#app, strip, { x: keys.x, width: wide, ...output }, { numbers, at, products });
  }

  #heads() {
    const { joined } = this.#frame;
    const { heads, head } = this.#reading;
    const boxes = headBoxes(this.#frame, heads);
    const numbers = this.#row("joined");
    const count = numbers.length / heads;
    const open = this.#reading.open;
    const largest = largestSize(numbers);
    return Array.from({ length: heads }, (_, one) => {
      const first = one * count;
      const at = open.isChosen && open.kind === "joined" ? open.at - first : -1;
      const strip = this.#strip("joined", {
        stop: `joined ${one}`,
        name: this.#app.t("zoom.strip.head", one),
        numbers: numbers.subarray(first, first + count),
        largest,
        bars: true,
        width: boxes.width - 8,
        height: joined.height,
        chosen: at >= 0 && at < count ? at : null,
        className: one === head ? KEYED : "gfz-plain",
        open: (place) => this.#open("joined", first + place),
      });
      const text = boxes.width < 56 ? String(one) : `${this.#app.t("word.head")} ${one}`;
      const name = button(text, () => chooseHead(this.#app, this.#reading, one), { pressed: one === head });
      name.setAttribute("aria-label", `${this.#app.t("word.head")} ${one}`);
      name.dataset.stop = `head ${one}`;
      const box = element("div", { className: "gfz-box gfz-head" }, strip, name);
      box.toggleAttribute("data-on", one === head);
      return put(box, { x: boxes.at(one), y: joined.y, width: boxes.width, height: joined.height });
    });
  }

  #sum() {
    const { sum, values } = this.#frame;
    const width = values.cell * this.#reading.tensors.value.shape[2];
    const strip = this.#strip("heads", { width, height: sum.height - 4, className: KEYED });
    const box = element("div", { className: "gfz-box gfz-head" }, strip);
    box.toggleAttribute("data-on", true);
    return put(box, { x: values.x - 8, y: sum.y, width: width + 16, height: sum.height });
  }

  // The table

  #table() {
    const { rows, row, width, keys, scores, weights, values } = this.#frame;
    const { query } = this.#reading;
    const widths = [keys.x, scores - 70 - keys.x, 70, weights - scores, values.x - weights, width - values.x];
    const heads: Child[] = [
      element("span", { className: HIDDEN }, this.#app.t("numbers.word")),
      this.#step("key"),
      this.#step("scores"),
      this.#step("mask"),
      this.#step("weights"),
      this.#step("value"),
    ];
    const drawn = this.#reading.keys.map((key, at) => this.#keyRow(key, at));
    return rowsTable(this.#app.t("zoom.table", query), { widths, row, y: rows }, heads, drawn);
  }

  #keyRow(key: Key, at: number) {
    const { keys, values, row } = this.#frame;
    const isOpen = at === this.#reading.key;
    const lit = isOpen ? KEYED : "gfz-quiet";
    const [keyWidth, valueWidth] = (["key", "value"] as const).map((kind) => this.#row(kind).length);
    const word = button(element("bdi", {}, key.word), () => this.#turnTo(at), {
      className: lit,
      title: key.word,
    });
    word.dataset.stop = `word ${at}`;
    const strip = this.#strip("key", { width: keys.cell * keyWidth, height: row, className: lit }, at);
    const cells = [
      isOpen ? this.#products(strip) : strip,
      this.#score(key, at, isOpen),
      this.#mask(key, isOpen),
      this.#weight(key, at, isOpen),
      this.#value(key, at, { width: values.cell * valueWidth, height: row, className: lit }),
    ];
    return tableRow(word, cells, isOpen);
  }

  /** Opens the row of another key. */
  #turnTo(key: number) {
    this.#app.show({ zoom: { box: this.#reading.box, key }, selected: null });
  }

  /** Returns the open key below the query and above their products, number by number. */
  #products(key: SVGSVGElement): Child[] {
    const { keys, row } = this.#frame;
    const [asked, offered] = [this.#row("query"), this.#row("key")];
    const width = keys.cell * asked.length;
    const products = asked.map((value, i) => value * offered[i]);
    const plain = {
      stop: "products",
      name: this.#app.t("zoom.strip.products"),
      numbers: products,
      largest: largestSize(products),
      chosen: null,
      className: "",
      open: () => this.#open("scores", this.#reading.key),
    };
    return [
      this.#strip("query", { stop: "query above", width, height: row, className: ASKED }),
      key,
      this.#strip("scores", { ...plain, width, height: row }),
    ];
  }

  #scoreText(score: number) {
    return fixedText(score, decimalsOf(this.#reading.keys.map((one) => one.score)));
  }

  #score(key: Key, at: number, isOpen: boolean): Child[] {
    const score = button(this.#scoreText(key.score), () => this.#open("scores", at, at));
    score.dataset.stop = `scores ${at}`;
    if (!isOpen) return [score];
    return [
      element("span", { className: ASKED }, "q"),
      element("span", { className: KEYED }, "k"),
      score,
      element("span", {}, "q × k"),
    ];
  }

  #mask({ isAllowed }: Key, isOpen: boolean): Child[] {
    const { steps, score, divisor } = this.#reading;
    const said = this.#app.t(isAllowed ? "numbers.allowed" : steps.blocked.text);
    const mark = element("span", { role: "img", "aria-label": said, title: said }, isAllowed ? "✓" : "×");
    if (!isOpen || !score.total) return [mark];
    const sum = `Σ ${this.#scoreText(score.total.value)}${divisor && ` ÷ ${divisor}`}`;
    return [element("span"), mark, element("small", {}, sum)];
  }

  #weight({ weight, isAllowed, score }: Key, at: number, isOpen: boolean): Child[] {
    if (!isAllowed && weight === 0) return [];
    const { weights, values } = this.#frame;
    const full = Math.min(160, values.x - weights - NUMBER - 24);
    const bar = element("i", { style: `width: ${Math.max(1, full * Math.min(1, weight))}px` });
    const made = button([bar, probabilityWords(weight)], () => this.#open("weights", at, at));
    made.dataset.stop = isOpen ? "weights" : `weights ${at}`;
    made.toggleAttribute("data-first", isOpen);
    const powers = isOpen && this.#powers(score);
    if (!powers) return [made];
    const [power, sum] = powers;
    return [
      element("small", {}, "e", element("sup", {}, this.#scoreText(score)), ` = ${power}`),
      made,
      element("small", {}, this.#app.t("zoom.powers", sum)),
    ];
  }

  /** Returns e to the power of the open score, and the sum of these powers, if this is how the weight was made. */
  #powers(score: number) {
    const { keys, steps, weight, key } = this.#reading;
    const filled = keys.map((one) => (one.isAllowed ? one.score : steps.blocked.of(one.score)));
    if (weight.steps.length === 0 || steps.softmax.over !== "key" || !keys[key].isAllowed) return null;
    if (Math.max(...filled) > LARGEST_EXPONENT || score < -LARGEST_EXPONENT) return null;
    const sum = filled.reduce((total, one) => total + Math.exp(one), 0);
    return [Math.exp(score), sum].map((power) => powerText(power));
  }

  /** Returns a key's value, faint, and on it the value times the weight. */
  #value({ weight }: Key, at: number, size: { width: number; height: number; className: string }) {
    const whole = this.#strip("value", { ...size, className: `${size.className} gfz-faint` }, at);
    if (!(weight > 0.002)) return whole;
    const numbers = this.#row("value", at).map((value) => value * weight);
    const part = this.#strip("value", { ...size, numbers }, at);
    const paths = [...part.querySelectorAll("path")];
    whole.append(drawing("g", { class: "gfz-part" }, paths));
    return whole;
  }

  // Below the table

  #query() {
    const { keys, query } = this.#frame;
    const width = keys.cell * this.#row("query").length;
    const strip = this.#strip("query", { width, height: query.height - 4, className: ASKED });
    const box = element("div", { className: "gfz-box gfz-query" }, strip);
    return put(box, { x: keys.x - 8, y: query.y, width: width + 16, height: query.height });
  }

  /** Returns what stands beside the query: its word, and how squares are read. */
  #beside() {
    const { query, keys } = this.#frame;
    const { row, queries, query: word, family } = this.#reading;
    const x = keys.x + keys.cell * this.#row("query").length + 18;
    const [turn, signs] = [turner(this.#app, family.stack, { row, rows: queries, word }), legend(this.#app)];
    const y = query.y + query.height / 2;
    return [put(turn, { x, y: y - 13 }), put(signs, { y: y - 12 })];
  }

  // Around the panel

  /** Returns the lines from below, from the left and to above. */
  outside() {
    const { keys, query, height, rows, row, output } = this.#frame;
    const { keys: all, key, tensors, box } = this.#reading;
    const ask = keys.x + (keys.cell * tensors.query.shape[2]) / 2;
    const up = keys.x + this.#wide() / 2;
    const [below, above] = neighbours(this.#app, box);
    const words = all.map((_, at) => {
      const y = rows + (at + 0.5 + (at > key ? 2 : at === key ? 1 : 0)) * row;
      const isOpen = at === key;
      return drawing("path", {
        class: isOpen ? KEYED : "gfz-thread",
        d: `M-20 ${y}H${isOpen ? 16 : 12}`,
      });
    });
    return [
      ...words,
      outerLine(ASKED, `M${ask} ${height + 48}V${query.y + query.height}`, [ask + 14, height + 30], below),
      outerLine(KEYED, `M${up} -48V${output.y}`, [up + 14, -20], above),
    ];
  }
}
