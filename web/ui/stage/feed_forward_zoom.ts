// A feed-forward network opened where it stands: its units at one word, beside what they say in words.
import { fixedText, decimalsOf, numberText } from "../../engine/number_text.ts";
import { button, element } from "../dom.ts";
import { drawing } from "../figure.ts";
import { frameOf } from "./feed_forward_frame.ts";
import { askForWords, largestOf, readFeedForward, sentenceOf, wordsWait } from "./feed_forward_reading.ts";
import { explanationReceipt, receiptTable } from "./receipt.ts";
import { createStrip, largestSize } from "./strips.ts";
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
  rowsTable,
  stepButton,
  sumBox,
  tableRow,
  turner,
} from "./zoom_parts.ts";

import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Frame } from "./feed_forward_frame.ts";
import type { Kind, Reading } from "./feed_forward_reading.ts";
import type { Heading, Line } from "./receipt.ts";
import type { Strip, Tell } from "./strips.ts";
import type { Lit, Opened } from "./zoom_frame.ts";

/** Opens the feed-forward network of `state.zoom`. */
export async function feedForwardView(app: App, lit: Lit | null): Promise<Opened | null> {
  const reading = await readFeedForward(app, lit);
  if (!reading) return null;
  const { box, stack, layer, row, unit, side, open, notes, names } = reading;
  return {
    kind: "ffn",
    place: [box, row, unit].join(),
    name: app.t("zoom.layer", app.t(`numbers.feed.${stack}`), layer),
    sides: { keys: side, query: side },
    sentence: sentenceOf(reading, app.t("word.comma")),
    remarks: [
      ...new Set([...notes, ...open.made.notes]),
      wordsWait(app) && button(app.t("zoom.units.ask"), () => askForWords(app), { className: "gfz-link" }),
    ],
    receipt: (most) => receipt(app, reading, most),
    cell: { name: names[open.kind], index: [row, open.at] },
    panel: (room) =>
      panelIn(
        app,
        room,
        (inner) =>
          frameOf(inner, {
            units: reading.numbers.activated.length,
            listed: reading.units.length,
            hasMatrices: reading.matrices !== null,
            hasScores: reading.direct !== null,
          }),
        (frame, tell) => new Panel(app, reading, frame, tell).drawn(),
      ),
  };
}

/** Returns the open number's arithmetic; of a unit, from the products with its row of W₁ to its activation. */
function receipt(app: App, { open, hidden, unit, numbers }: Reading, most: number): Child {
  if (open.kind === "read" || open.kind === "output") return explanationReceipt(app, open.made, most);
  const headings = hidden.columns.map((text): Heading => [text]);
  const [before, after] = [numbers.hidden[unit], numbers.activated[unit]];
  const written = (value: number) => fixedText(value, decimalsOf([before, after]));
  const lines: Line[] = [
    [app.t("zoom.sum"), written(before)],
    [activationName(app), written(after), KEYED],
  ];
  return [
    element("p", { className: "gfz-formula" }, hidden.formula),
    receiptTable(app, hidden.parts, headings, lines, most),
  ];
}

function activationName({ config }: App) {
  return { relu: "ReLU", gelu: "GELU", silu: "SiLU" }[config.activation];
}

const signed = (value: number) => `${value > 0 ? "+" : ""}${fixedText(value)}`;

class Panel {
  #app: App;
  #reading: Reading;
  #frame: Frame;
  #tell: Tell;

  constructor(app: App, reading: Reading, frame: Frame, tell: Tell) {
    [this.#app, this.#reading, this.#frame, this.#tell] = [app, reading, frame, tell];
  }

  drawn() {
    return {
      parts: [
        this.#lines(),
        ...this.#headings(),
        this.#output(),
        this.#grid(),
        this.#table(),
        ...this.#below(),
      ],
      outside: this.#outside(),
    };
  }

  #t(key: string, ...values: (string | number)[]) {
    return this.#app.t(key, ...values);
  }

  #open(kind: Kind, at: number, unit = this.#reading.unit) {
    const { box, names, row } = this.#reading;
    this.#app.show({ zoom: { box, key: unit }, selected: { name: names[kind], index: [row, at] } });
  }

  #openUnit(unit: number) {
    this.#open("activated", unit, unit);
  }

  #strip(strip: Omit<Strip, "largest"> & Partial<Pick<Strip, "largest">>) {
    return createStrip({ largest: largestSize(strip.numbers), ...strip }, this.#tell);
  }

  /** Returns a point's numbers as a strip. */
  #point(kind: "read" | "output", size: { width: number; height: number; className: string; stop?: string }) {
    const { numbers, open, output, word } = this.#reading;
    const shown = kind === "output" ? output : open.at;
    return this.#strip({
      stop: kind,
      name: this.#t(`zoom.strip.${kind}`, word),
      numbers: numbers[kind],
      chosen: kind === "output" || open.kind === kind ? shown : null,
      open: (at) => this.#open(kind, at),
      ...size,
    });
  }

  #step(at: number, name: Child, kind: Kind) {
    const { open, numbers, unit, output } = this.#reading;
    const place = kind === "output" ? output : kind === "read" ? largestOf(numbers.read) : unit;
    const isOpen = open.kind === kind && (kind !== "hidden" || open.isChosen);
    return stepButton(at, name, kind, isOpen, () => this.#open(kind, place));
  }

  #headings() {
    const { output, grid, read } = this.#frame;
    const { numbers } = this.#reading;
    const place = (y: number, child: HTMLElement) =>
      put(element("div", { className: "gfz-heading" }, child), { x: 18, y: y - 12 });
    const all = element(
      "span",
      { className: "gfz-step" },
      element("i", {}, 5),
      this.#t("zoom.units.all", numbers.activated.length),
    );
    return [
      place(output.y + output.height / 2, this.#step(7, ["× W", element("sub", {}, "2")], "output")),
      place(grid.y + (grid.rows * grid.cell) / 2, all),
      place(read.y + read.height / 2, this.#step(1, "x", "read")),
    ];
  }

  /** Returns the lines from the units to the open number of the output, and from x to the rows of W₁. */
  #lines() {
    const { width, height, output, grid, wide, rows, row, read, strip } = this.#frame;
    const { products, output: at, numbers, unit, units } = this.#reading;
    const to = wide.x + 4 + ((at + 0.5) * (wide.width - 8)) / numbers.output.length;
    const fan = fanOf(products ?? [], [to, output.y + output.height], (one) => [
      wide.x + ((one % grid.columns) + 0.5) * grid.cell,
      grid.y + Math.floor(one / grid.columns) * grid.cell + 2,
      one === unit ? KEYED : "",
    ]);
    const end = rows + (units.length + 2) * row;
    const [x, y] = [
      wide.x + (unit % grid.columns) * grid.cell,
      grid.y + Math.floor(unit / grid.columns) * grid.cell,
    ];
    return drawing(
      "svg",
      { class: "gfz-lines", width, height, "aria-hidden": "true" },
      drawing("g", { class: "gfz-fan" }, fan),
      strip > 0 && drawing("path", { class: "gfz-dots", d: `M${wide.x + strip / 2} ${end}V${read.y - 1}` }),
      drawing("rect", {
        class: "gfz-found",
        x: x - 1,
        y: y - 1,
        width: grid.cell + 2,
        height: grid.cell + 2,
        rx: 2,
      }),
    );
  }

  #output() {
    const { output, wide } = this.#frame;
    const { output: at, products, numbers } = this.#reading;
    const strip = this.#point("output", {
      width: wide.width - 8,
      height: output.height,
      className: "gfz-plain",
    });
    return sumBox(this.#app, strip, { ...wide, ...output }, { numbers: numbers.output, at, products });
  }

  /** Returns all units as rows of squares. */
  #grid() {
    const { grid, wide } = this.#frame;
    const { numbers, active, unit, direct } = this.#reading;
    const all = numbers.activated;
    const largest = largestSize(all);
    const strips = Array.from({ length: grid.rows }, (_, line) => {
      const from = line * grid.columns;
      const part = all.subarray(from, from + grid.columns);
      return this.#strip({
        stop: `units ${line}`,
        name: this.#t("zoom.strip.units"),
        numbers: part,
        textOf: (at) => `${from + at}: ${numberText(part[at], 4)}`,
        largest,
        bars: false,
        chosen: unit >= from && unit < from + part.length ? unit - from : null,
        width: part.length * grid.cell,
        height: grid.cell,
        className: "gfz-plain",
        open: (at) => this.#openUnit(from + at),
      });
    });
    const said = [
      this.#t("zoom.units.active", active, all.length),
      direct && this.#t("zoom.units.sum", direct.word, direct.rival, signed(direct.sum)),
    ].filter((one) => one !== null);
    const told = element("p", { className: "gfz-made" }, said.join(" · "));
    const made = element("div", { className: "gfz-units" }, strips, told);
    return put(made, { ...wide, y: grid.y, height: grid.rows * grid.cell });
  }

  // The table

  #table() {
    const { rows, row, widths, strip } = this.#frame;
    const { direct, words, word, units } = this.#reading;
    const heads: Child[] = [
      element("span", { className: HIDDEN }, this.#t("zoom.units.one")),
      strip > 0 && this.#step(2, this.#t("zoom.units.rows"), "hidden"),
      this.#step(3, this.#t("zoom.units.before"), "hidden"),
      this.#step(4, activationName(this.#app), "activated"),
      strip > 0 &&
        element("span", { className: "gfz-step" }, element("i", {}, 6), this.#t("zoom.units.columns")),
      direct &&
        element(
          "span",
          { title: this.#t("zoom.units.direct", direct.word, direct.rival) },
          `${direct.word} − ${direct.rival}`,
        ),
      words && this.#t("zoom.units.words"),
    ];
    const largest = this.#largest();
    const drawn = units.map((unit, at) => this.#unitRow(unit, at, largest));
    return rowsTable(this.#t("zoom.units.table", word), { widths, row, y: rows }, heads, drawn);
  }

  #unitRow(unit: number, at: number, largest: Record<"row" | "column" | "unit", number>) {
    const { numbers, matrices, words, direct, unit: chosen } = this.#reading;
    const { strip, row } = this.#frame;
    const isOpen = unit === chosen;
    const lit = isOpen ? KEYED : "gfz-quiet";
    const size = { width: strip, height: row, className: lit };
    const activation = numbers.activated[unit];
    const name = button(this.#t("zoom.units.name", unit), () => this.#openUnit(unit), { className: lit });
    name.dataset.stop = `unit ${at}`;
    const sum = button(fixedText(numbers.hidden[unit]), () => this.#open("hidden", unit, unit));
    sum.dataset.stop = `hidden ${at}`;
    const labels = isOpen && matrices !== null;
    const bar = element("i", {
      style: `width: ${Math.max(1, (56 * Math.max(0, activation)) / largest.unit)}px`,
    });
    const made = button([bar, fixedText(activation)], () => this.#openUnit(unit));
    made.dataset.stop = `activated ${at}`;
    made.toggleAttribute("data-first", isOpen);
    const cells: Child[] = [
      matrices && this.#reads(unit, at, matrices.rows[at], largest.row, size),
      [
        labels && element("span", { className: ASKED }, "x"),
        labels && element("span", { className: KEYED }, "w"),
        sum,
        labels && element("span", {}, "x × w"),
      ],
      made,
      matrices &&
        this.#strip({
          stop: `column ${at}`,
          name: this.#t("zoom.strip.column", unit),
          numbers: matrices.columns[at].map((value) => value * activation),
          largest: largest.column,
          open: (d) => this.#open("output", d, unit),
          ...size,
        }),
      direct && element("span", { className: "gfz-number" }, signed(direct.parts[unit])),
      words &&
        element(
          "bdi",
          { className: "gfz-speaks", title: words[at].join(" ") },
          words[at].slice(0, isOpen ? 5 : 3).join(this.#t("word.comma")),
        ),
    ];
    return tableRow(name, cells, isOpen);
  }

  /** Returns the sizes that fill a cell of the rows of W₁ and of the columns of W₂, and the bar of a unit. */
  #largest() {
    const { matrices, units, numbers } = this.#reading;
    const columns = units.map((unit, at) =>
      (matrices?.columns[at] ?? []).map((one) => one * numbers.activated[unit]),
    );
    return {
      row: largestSize(...(matrices?.rows ?? [])),
      column: largestSize(...columns),
      unit: largestSize(numbers.activated),
    };
  }

  /** Returns a unit's row of W₁; of the open unit, below x and above their products, number by number. */
  #reads(
    unit: number,
    at: number,
    weights: Float32Array,
    largest: number,
    size: { width: number; height: number; className: string },
  ) {
    const { numbers, unit: chosen } = this.#reading;
    const row = this.#strip({
      stop: `row ${at}`,
      name: this.#t("zoom.strip.row", unit),
      numbers: weights,
      largest,
      open: () => this.#open("hidden", unit, unit),
      ...size,
    });
    if (unit !== chosen) return [row];
    const products = this.#strip({
      stop: "products",
      name: "x × w",
      numbers: numbers.read.map((value, i) => value * weights[i]),
      open: () => this.#open("hidden", unit, unit),
      ...size,
      className: "",
    });
    return [this.#point("read", { ...size, className: ASKED, stop: "read above" }), row, products];
  }

  // Below the table, and around the panel

  #below() {
    const { read, wide, strip } = this.#frame;
    const width = Math.max(strip, 180);
    const made = this.#point("read", { width: width - 8, height: read.height - 4, className: ASKED });
    const y = read.y + read.height / 2;
    return [
      put(element("div", { className: "gfz-box gfz-query" }, made), { x: wide.x, width, ...read }),
      put(turner(this.#app, this.#reading.stack, this.#reading), { x: wide.x + width + 18, y: y - 13 }),
      put(legend(this.#app), { y: y - 12 }),
    ];
  }

  #outside() {
    const { wide, strip, height, read, output } = this.#frame;
    const [below, above] = neighbours(this.#app, this.#reading.box);
    const [x, up] = [wide.x + Math.max(strip, 180) / 2, wide.x + wide.width / 2];
    return [
      outerLine(ASKED, `M${x} ${height + 48}V${read.y + read.height}`, [x + 14, height + 30], below),
      outerLine(KEYED, `M${up} -48V${output.y}`, [up + 14, -20], above),
    ];
  }
}
