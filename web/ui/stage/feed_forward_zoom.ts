// A feed-forward network opened in place: its units at one word, with an explanation.
import { ACTIVATIONS } from "../../engine/activations.ts";
import { fixedText, decimalsOf, numberText } from "../../engine/number_text.ts";
import { button, element } from "../dom.ts";
import { drawing } from "../figure.ts";
import { frameOf } from "./feed_forward_frame.ts";
import { askForWords, largestOf, readFeedForward, sentenceOf, wordsWait } from "./feed_forward_reading.ts";
import { explanationReceipt, receiptTable } from "./receipt.ts";
import { createStrip, largestSize } from "./strips.ts";
import { partOf, weightsPanel } from "./weights_panel.ts";
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
  rowsTable,
  stepButton,
  stopButton,
  sumBox,
  tableRow,
  turner,
} from "./zoom_parts.ts";
import { emptyPanel, withSegments } from "./zoom_segments.ts";
import { segmentOf } from "../boxes.ts";

import type { Tensor } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Frame } from "./feed_forward_frame.ts";
import type { Kind, Reading } from "./feed_forward_reading.ts";
import type { Heading, Line } from "./receipt.ts";
import type { Strip, Tell } from "./strips.ts";
import type { Weights } from "./weights_panel.ts";
import type { Lit, Opened } from "./opened.ts";

/** Opens the feed-forward network that `state.zoom` names. */
export async function feedForwardView(app: App, lit: Lit | null): Promise<Opened | null> {
  const segment = app.state.zoom && segmentOf(app.state, app.state.zoom.box);
  const expand = segment && (await expandOf(app));
  const reading = await readFeedForward(app, lit, segment ? "hidden" : "activated");
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
      withSegments(app, box, {
        beside: segment && turner(app, stack, reading),
        own: () => {
          if (segment && (!expand || !reading.contract)) return emptyPanel(app.t("numbers.needsModel"));
          if (expand && reading.contract)
            return weightsPanel(app, weightsOf(app, reading, [expand, reading.contract]), room);
          return panelIn(
            app,
            room,
            (inner) =>
              frameOf(inner, {
                units: reading.numbers.activated.length,
                listed: reading.units.length,
                hasMatrices: reading.matrices !== null,
                hasScores: reading.direct !== null,
              }),
            (frame, tell) => draw(app, reading, frame, tell),
          );
        },
      }),
  };
}

/** Returns W₁ of the opened network; null in a recording. */
async function expandOf({ engine, state, result }: App) {
  if (engine.live === false) return null;
  const names = ["weight", "bias"].map((part) => `${state.zoom?.box}.expand.${part}`);
  return (await engine.modelWith(names, result.current.changes.checkpoint)).weight(names[0]);
}

/** Returns both matrices of the network, and the place of the open number in these matrices. */
function weightsOf(app: App, reading: Reading, [expand, contract]: Tensor[]): Weights<Kind> {
  const { box, open, numbers, names, row, unit, word } = reading;
  const { kind, at, made } = open;
  const isAsked = kind === "hidden";
  const units = numbers.hidden.length;
  return {
    box,
    matrices: [
      { kind: "hidden", sub: "1", weights: expand, isTurned: false },
      { kind: "output", sub: "2", weights: partOf(contract, 0, units, true), isTurned: true },
    ],
    kind,
    at,
    names: {
      x: isAsked ? app.t("zoom.strip.read", word) : app.t("zoom.strip.units"),
      result: app.t(isAsked ? "zoom.units.before" : "point.end"),
    },
    isAsked,
    result: { numbers: numbers[kind], at },
    made,
    open: (of, to) =>
      app.show({
        zoom: { box, key: of === "hidden" ? to : unit },
        selected: { name: names[of], index: [row, to] },
      }),
  };
}

/** Returns the open number's arithmetic; for a unit, from the products with the unit's row of W₁ to its activation. */
function receipt(app: App, { open, hidden, unit, numbers }: Reading, most: number): Child {
  if (open.kind === "read" || open.kind === "output") return explanationReceipt(app, open.made, most);
  const headings = hidden.columns.map((text): Heading => [text]);
  const [before, after] = [numbers.hidden[unit], numbers.activated[unit]];
  const written = (value: number) => fixedText(value, decimalsOf([before, after]));
  const lines: Line[] = [
    [app.t("zoom.sum"), written(before)],
    [ACTIVATIONS[app.config.activation].name, written(after), KEYED],
  ];
  return [
    element("p", { class: "gfz-formula" }, hidden.formula),
    receiptTable(app, hidden.parts, headings, lines, most),
  ];
}

const signed = (value: number) => `${value > 0 ? "+" : ""}${fixedText(value)}`;

/** Returns the parts of the panel, and the lines outside it. */
function draw(app: App, reading: Reading, frame: Frame, tell: Tell): { parts: Child[]; outside: Child[] } {
  const { box, names, numbers, open, output, word, unit, products, units, active, direct, words, matrices } =
    reading;
  function drawn() {
    return {
      parts: [drawLines(), ...drawHeadings(), drawOutput(), drawGrid(), drawTable(), ...drawBelow()],
      outside: drawOutside(),
    };
  }

  function openNumber(kind: Kind, at: number, unit = reading.unit) {
    const { row } = reading;
    app.show({ zoom: { box, key: unit }, selected: { name: names[kind], index: [row, at] } });
  }

  function openUnit(unit: number) {
    openNumber("activated", unit, unit);
  }

  function stripOf(strip: Omit<Strip, "largest"> & Partial<Pick<Strip, "largest">>) {
    return createStrip({ largest: largestSize(strip.numbers), ...strip }, tell);
  }

  /** Returns a point's numbers as a strip. */
  function pointStrip(
    kind: "read" | "output",
    size: { width: number; height: number; className: string; stop?: string },
  ) {
    const shown = kind === "output" ? output : open.at;
    return stripOf({
      stop: kind,
      name: app.t(`zoom.strip.${kind}`, word),
      numbers: numbers[kind],
      chosen: kind === "output" || open.kind === kind ? shown : null,
      open: (at) => openNumber(kind, at),
      ...size,
    });
  }

  function stepOf(at: number, name: Child, kind: Kind) {
    const place = kind === "output" ? output : kind === "read" ? largestOf(numbers.read) : unit;
    const isOpen = open.kind === kind && (kind !== "hidden" || open.isChosen);
    return stepButton(at, name, kind, isOpen, () => openNumber(kind, place));
  }

  function drawHeadings() {
    const { output, grid, read } = frame;
    const all = element(
      "span",
      { class: "gfz-step" },
      element("i", {}, 5),
      app.t("zoom.units.all", numbers.activated.length),
    );
    return [
      heading(stepOf(7, ["× W", element("sub", {}, "2")], "output"), output),
      heading(all, { y: grid.y, height: grid.rows * grid.cell }),
      heading(stepOf(1, "x", "read"), read),
    ];
  }

  /** Returns the lines from the units to the open number of the output, and from x to the rows of W₁. */
  function drawLines() {
    const { output, grid, wide, rows, row, read, strip } = frame;
    const { output: at } = reading;
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
    return innerLines(frame, [
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
    ]);
  }

  function drawOutput() {
    const { output, wide } = frame;
    const { output: at } = reading;
    const strip = pointStrip("output", {
      width: wide.width - 8,
      height: output.height,
      className: "gfz-plain",
    });
    return sumBox(app, strip, { ...wide, ...output }, { numbers: numbers.output, at, products });
  }

  /** Returns all units as a grid of squares. */
  function drawGrid() {
    const { grid, wide } = frame;
    const all = numbers.activated;
    const largest = largestSize(all);
    const strips = Array.from({ length: grid.rows }, (_, line) => {
      const from = line * grid.columns;
      const part = all.subarray(from, from + grid.columns);
      return stripOf({
        stop: `units ${line}`,
        name: app.t("zoom.strip.units"),
        numbers: part,
        textOf: (at) => `${from + at}: ${numberText(part[at], 4)}`,
        largest,
        bars: false,
        chosen: unit >= from && unit < from + part.length ? unit - from : null,
        width: part.length * grid.cell,
        height: grid.cell,
        className: "gfz-plain",
        open: (at) => openUnit(from + at),
      });
    });
    const said = [
      app.t("zoom.units.active", active, all.length),
      direct && app.t("zoom.units.sum", direct.word, direct.rival, signed(direct.sum)),
    ].filter((one) => one !== null);
    const told = element("p", { class: "gfz-made" }, said.join(" · "));
    const made = element("div", { class: "gfz-units" }, strips, told);
    return put(made, { ...wide, y: grid.y, height: grid.rows * grid.cell });
  }

  // The table

  function drawTable() {
    const { rows, row, widths, strip } = frame;
    const heads: Child[] = [
      element("span", { class: HIDDEN }, app.t("zoom.units.one")),
      strip > 0 && stepOf(2, app.t("zoom.units.rows"), "hidden"),
      stepOf(3, app.t("zoom.units.before"), "hidden"),
      stepOf(4, ACTIVATIONS[app.config.activation].name, "activated"),
      strip > 0 && element("span", { class: "gfz-step" }, element("i", {}, 6), app.t("zoom.units.columns")),
      direct &&
        element(
          "span",
          { title: app.t("zoom.units.direct", direct.word, direct.rival) },
          `${direct.word} − ${direct.rival}`,
        ),
      words && app.t("zoom.units.words"),
    ];
    const largest = largestSizes();
    const drawn = units.map((unit, at) => drawUnitRow(unit, at, largest));
    return rowsTable(app.t("zoom.units.table", word), { widths, row, y: rows }, heads, drawn);
  }

  function drawUnitRow(unit: number, at: number, largest: Record<"row" | "column" | "unit", number>) {
    const { unit: chosen } = reading;
    const { strip, row } = frame;
    const isOpen = unit === chosen;
    const lit = isOpen ? KEYED : "gfz-quiet";
    const size = { width: strip, height: row, className: lit };
    const activation = numbers.activated[unit];
    const name = stopButton(`unit ${at}`, app.t("zoom.units.name", unit), () => openUnit(unit), {
      className: lit,
    });
    const sum = stopButton(`hidden ${at}`, fixedText(numbers.hidden[unit]), () =>
      openNumber("hidden", unit, unit),
    );
    const labels = isOpen && matrices !== null;
    const bar = barOf((56 * Math.max(0, activation)) / largest.unit);
    const made = stopButton(`activated ${at}`, [bar, fixedText(activation)], () => openUnit(unit));
    made.toggleAttribute("data-first", isOpen);
    const cells: Child[] = [
      matrices && drawReads(unit, at, matrices.rows[at], largest.row, size),
      [
        labels && element("span", { class: ASKED }, "x"),
        labels && element("span", { class: KEYED }, "w"),
        sum,
        labels && element("span", {}, "x × w"),
      ],
      made,
      matrices &&
        stripOf({
          stop: `column ${at}`,
          name: app.t("zoom.strip.column", unit),
          numbers: matrices.columns[at].map((value) => value * activation),
          largest: largest.column,
          open: (d) => openNumber("output", d, unit),
          ...size,
        }),
      direct && element("span", { class: "gfz-number" }, signed(direct.parts[unit])),
      words &&
        element(
          "bdi",
          { class: "gfz-speaks", title: words[at].join(" ") },
          words[at].slice(0, isOpen ? 5 : 3).join(app.t("word.comma")),
        ),
    ];
    return tableRow(name, cells, isOpen);
  }

  /**
   * Returns the largest absolute values among the rows of W₁, the columns of W₂ and the units; a number of this size
   * fills its cell or its bar.
   */
  function largestSizes() {
    const columns = units.map((unit, at) =>
      (matrices?.columns[at] ?? []).map((one) => one * numbers.activated[unit]),
    );
    return {
      row: largestSize(...(matrices?.rows ?? [])),
      column: largestSize(...columns),
      unit: largestSize(numbers.activated),
    };
  }

  /**
   * Returns a unit's row of W₁. For the open unit, the row is drawn below x, and the products of both are drawn above
   * x.
   */
  function drawReads(
    unit: number,
    at: number,
    weights: Float32Array,
    largest: number,
    size: { width: number; height: number; className: string },
  ) {
    const { unit: chosen } = reading;
    const row = stripOf({
      stop: `row ${at}`,
      name: app.t("zoom.strip.row", unit),
      numbers: weights,
      largest,
      open: () => openNumber("hidden", unit, unit),
      ...size,
    });
    if (unit !== chosen) return [row];
    const products = stripOf({
      stop: "products",
      name: "x × w",
      numbers: numbers.read.map((value, i) => value * weights[i]),
      open: () => openNumber("hidden", unit, unit),
      ...size,
      className: "",
    });
    return [pointStrip("read", { ...size, className: ASKED, stop: "read above" }), row, products];
  }

  // Below the table, and outside the panel

  function drawBelow() {
    const { read, wide, strip } = frame;
    const width = Math.max(strip, 180);
    const made = pointStrip("read", { width: width - 8, height: read.height - 4, className: ASKED });
    const y = read.y + read.height / 2;
    return [
      put(element("div", { class: "gfz-box gfz-query" }, made), { x: wide.x, width, ...read }),
      put(turner(app, reading.stack, reading), { x: wide.x + width + 18, y: y - 13 }),
      put(legend(app), { y: y - 12 }),
    ];
  }

  function drawOutside() {
    const { wide, strip, height, read, output } = frame;
    const [below, above] = neighbours(app, reading.box);
    const [x, up] = [wide.x + Math.max(strip, 180) / 2, wide.x + wide.width / 2];
    return [enteringLine(ASKED, x, height, read, below), leavingLine(KEYED, up, output, above)];
  }
  return drawn();
}
