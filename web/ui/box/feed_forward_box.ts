// The rows of an opened feed-forward network: the output, all units, a table of the strongest units, and x.
import { times } from "../../engine/tensor.ts";
import { ACTIVATIONS } from "../../engine/activations.ts";
import { fixedText, numberText } from "../../engine/number_text.ts";
import { fanOf, lineFromBelow, lineUpwards, lowEdge, numberX } from "./lines.ts";
import { besideOf, gap, over, stripBox, sumBelow, tableOf } from "./rows.ts";
import { element } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { largestOf } from "./feed_forward_reading.ts";
import { createStrip, largestSize } from "./strips.ts";
import {
  ASKED,
  HIDDEN,
  KEYED,
  barOf,
  neighbours,
  stepButton,
  stepName,
  stopButton,
  tableRow,
} from "./zoom_parts.ts";

import type { App } from "../app/app.ts";
import type { Box } from "./rows.ts";
import type { Child } from "../app/types.ts";
import type { Kind, Reading } from "./feed_forward_reading.ts";
import type { Ruler, Strip, Tell } from "./strips.ts";

/** The width in px for which the grid of units is made, and the height that its cells then get together. */
const [GRID, TALL] = [850, 68];
const LARGEST_CELL = 18;
const signed = (value: number) => `${value > 0 ? "+" : ""}${fixedText(value)}`;

/** Returns the rows of an opened network. */
export function feedForwardBox(app: App, reading: Reading, tell: Tell): Box {
  const { box, stack, numbers, matrices, direct } = reading;
  const said = sumBelow(app, numbers.output, reading.output, reading.products);
  const output = stripBox(pointStrip(app, reading, "output", "gfz-plain"), tell, "", said);
  const units = unitStrips(app, reading, tell);
  const read = stripBox(pointStrip(app, reading, "read", ASKED), tell, "gfz-query");
  const all = app.t("zoom.units.all", numbers.activated.length);
  const [from, to] = neighbours(app, box);
  const strip = matrices ? "minmax(0, 1fr)" : "0";
  const words = matrices ? "190px" : "minmax(0, 1fr)";
  return {
    columns: `126px ${strip} 76px 140px ${matrices ? strip : "18px"} ${direct ? 84 : 0}px ${words} 24px`,
    rows: [
      gap([14, 26]),
      {
        height: [32, 40],
        name: stepOf(app, reading, 7, "output", ["× W", element("sub", {}, "2")]),
        parts: [output],
      },
      gap([40, 64]),
      { height: "auto", name: stepName(5, all), parts: [gridOf(app, reading, units)] },
      gap([24, 34]),
      unitTable(app, reading, tell),
      gap([12, 18]),
      {
        height: [34, 40],
        name: stepOf(app, reading, 1, "read", "x"),
        parts: [
          over(matrices ? "2" : "3 / 5", read),
          over(matrices ? "3 / -2" : "5 / -2", besideOf(app, stack, reading)),
        ],
      },
      gap([14, 30]),
    ],
    lines: (ruler) => linesOf(reading, { output, units, read }, ruler),
    outside: (ruler, height) => [
      lineFromBelow(ASKED, numberX(ruler(read), 1, 0), height, from),
      lineUpwards(KEYED, numberX(ruler(output), 1, 0), to),
    ],
  };
}

function openNumber(app: App, { box, names, row, unit }: Reading, kind: Kind, at: number, key = unit) {
  app.show({ zoom: { box, key }, selected: { name: names[kind], index: [row, at] } });
}

function stepOf(app: App, reading: Reading, at: number, kind: Kind, name: Child) {
  const { open, output, numbers, unit } = reading;
  const place = kind === "output" ? output : kind === "read" ? largestOf(numbers.read) : unit;
  const isOpen = open.kind === kind && (kind !== "hidden" || open.isChosen);
  return stepButton(at, name, kind, isOpen, () => openNumber(app, reading, kind, place));
}

/** Returns a point's numbers as a strip. */
function pointStrip(
  app: App,
  reading: Reading,
  kind: "read" | "output",
  className: string,
  stop: string = kind,
): Strip {
  const { numbers, open, output, word } = reading;
  const shown = kind === "output" ? output : open.at;
  return {
    stop,
    name: app.t(`zoom.strip.${kind}`, word),
    numbers: numbers[kind],
    largest: largestSize(numbers[kind]),
    chosen: kind === "output" || open.kind === kind ? shown : null,
    className,
    open: (at) => openNumber(app, reading, kind, at),
  };
}

// All units

/** Returns all units as strips of squares, one for each line of the grid. */
function unitStrips(app: App, reading: Reading, tell: Tell) {
  const { numbers, unit } = reading;
  const all = numbers.activated;
  const lines = Math.max(1, Math.floor(Math.sqrt((all.length * TALL) / GRID)));
  const columns = Math.ceil(all.length / lines);
  const largest = largestSize(all);
  return times(lines, (line) => {
    const from = line * columns;
    const part = all.subarray(from, from + columns);
    const strip = createStrip(
      {
        stop: `units ${line}`,
        name: app.t("zoom.strip.units"),
        numbers: part,
        textOf: (at) => `${from + at}: ${numberText(part[at], 4)}`,
        largest,
        bars: false,
        chosen: unit >= from && unit < from + part.length ? unit - from : null,
        className: "gfz-plain",
        open: (at) => openNumber(app, reading, "activated", from + at, from + at),
      },
      tell,
    );
    strip.style.width = `${(100 * part.length) / columns}%`;
    return { strip, count: part.length };
  });
}

/** Returns the grid of all units, with a text about them. */
function gridOf(app: App, { active, numbers, direct }: Reading, units: ReturnType<typeof unitStrips>) {
  const said = [app.t("zoom.units.active", active, numbers.activated.length)];
  if (direct) said.push(app.t("zoom.units.sum", direct.word, direct.rival, signed(direct.sum)));
  const strips = units.map(({ strip }) => strip);
  const grid = element("div", "gfz-units", strips, element("p", "gfz-made", said.join(" · ")));
  const [{ count }] = units;
  grid.style.cssText = `aspect-ratio: ${count} / ${units.length}; max-width: ${count * LARGEST_CELL}px`;
  return grid;
}

// The table

function unitTable(app: App, reading: Reading, tell: Tell) {
  const { word, units, matrices, direct, words } = reading;
  const heads: Child[] = [
    element("span", { class: HIDDEN }, app.t("zoom.units.one")),
    matrices && stepOf(app, reading, 2, "hidden", app.t("zoom.units.rows")),
    stepOf(app, reading, 3, "hidden", app.t("zoom.units.before")),
    stepOf(app, reading, 4, "activated", ACTIVATIONS[app.config.activation].name),
    matrices && stepName(6, app.t("zoom.units.columns")),
    direct &&
      element(
        "span",
        { title: app.t("zoom.units.direct", direct.word, direct.rival) },
        `${direct.word} − ${direct.rival}`,
      ),
    words && app.t("zoom.units.words"),
  ];
  const largest = largestSizes(reading);
  const rows = units.map((_, at) => unitRow(app, reading, at, largest, tell));
  const lines = units.length + (matrices ? 2 : 0);
  return tableOf(app.t("zoom.units.table", word), heads, rows, { lines });
}

/**
 * Returns the largest absolute values among the rows of W₁, the columns of W₂ and the units; a number of this size
 * fills its cell or its bar.
 */
function largestSizes({ units, matrices, numbers }: Reading) {
  const columns = units.map((unit, at) =>
    (matrices?.columns[at] ?? []).map((one) => one * numbers.activated[unit]),
  );
  return {
    row: largestSize(...(matrices?.rows ?? [])),
    column: largestSize(...columns),
    unit: largestSize(numbers.activated),
  };
}

function unitRow(
  app: App,
  reading: Reading,
  at: number,
  largest: ReturnType<typeof largestSizes>,
  tell: Tell,
) {
  const { numbers, units, direct, words, matrices } = reading;
  const unit = units[at];
  const isOpen = unit === reading.unit;
  const lit = isOpen ? KEYED : "gfz-quiet";
  const activation = numbers.activated[unit];
  const openUnit = () => openNumber(app, reading, "activated", unit, unit);
  const name = stopButton(`unit ${at}`, app.t("zoom.units.name", unit), openUnit, { className: lit });
  const bar = barOf((56 * Math.max(0, activation)) / largest.unit);
  const made = stopButton(`activated ${at}`, [bar, fixedText(activation)], openUnit);
  made.toggleAttribute("data-first", isOpen);
  const cells: Child[] = [
    matrices && weightStrips(app, reading, at, largest.row, tell),
    sumCell(app, reading, at),
    made,
    matrices && columnStrip(app, reading, at, largest.column, tell),
    direct && element("span", "gfz-number", signed(direct.parts[unit])),
    words &&
      element(
        "bdi",
        { class: "gfz-speaks", title: words[at].join(" ") },
        words[at].slice(0, isOpen ? 5 : 3).join(app.t("word.comma")),
      ),
  ];
  return tableRow(name, cells, isOpen);
}

/** Returns a unit's sum; for the open unit, with the names of the strips at its left. */
function sumCell(app: App, reading: Reading, at: number): Child[] {
  const { numbers, matrices } = reading;
  const unit = reading.units[at];
  const sum = stopButton(`hidden ${at}`, fixedText(numbers.hidden[unit]), () =>
    openNumber(app, reading, "hidden", unit, unit),
  );
  if (!matrices || unit !== reading.unit) return [sum];
  return [
    element("span", { class: ASKED }, "x"),
    element("span", { class: KEYED }, "w"),
    sum,
    element("span", {}, "x × w"),
  ];
}

/** Returns a unit's row of W₁. For the open unit, x is drawn above the row, and the products of both below it. */
function weightStrips(app: App, reading: Reading, at: number, largest: number, tell: Tell) {
  const { numbers, matrices } = reading;
  const unit = reading.units[at];
  const isOpen = unit === reading.unit;
  const weights = matrices?.rows[at] ?? new Float32Array();
  const open = () => openNumber(app, reading, "hidden", unit, unit);
  const className = isOpen ? KEYED : "gfz-quiet";
  const name = app.t("zoom.strip.row", unit);
  const row = createStrip({ stop: `row ${at}`, name, numbers: weights, largest, className, open }, tell);
  if (!isOpen) return [row];
  const both = numbers.read.map((value, i) => value * weights[i]);
  const products = { stop: "products", name: "x × w", numbers: both, largest: largestSize(both), open };
  const read = pointStrip(app, reading, "read", ASKED, "read above");
  return [createStrip(read, tell), row, createStrip(products, tell)];
}

/** Returns a unit's column of W₂ times the unit. */
function columnStrip(app: App, reading: Reading, at: number, largest: number, tell: Tell) {
  const { units, numbers, matrices } = reading;
  const unit = units[at];
  const numbersOf = matrices?.columns[at].map((value) => value * numbers.activated[unit]);
  return createStrip(
    {
      stop: `column ${at}`,
      name: app.t("zoom.strip.column", unit),
      numbers: numbersOf ?? [],
      largest,
      className: unit === reading.unit ? KEYED : "gfz-quiet",
      open: (d) => openNumber(app, reading, "output", d, unit),
    },
    tell,
  );
}

// Lines

/** Returns the lines from the units to the open number of the output and from x to the rows, and the open unit's frame. */
function linesOf(
  { unit, numbers, output: at, products, matrices }: Reading,
  parts: { output: HTMLElement; units: ReturnType<typeof unitStrips>; read: HTMLElement },
  ruler: Ruler,
): Child[] {
  const lines = parts.units.map(({ strip, count }) => ({ place: ruler(strip), count }));
  const [{ count, place: first }] = lines;
  const cell = first.width / count;
  const cellAt = (one: number) => {
    const { place } = lines[Math.floor(one / count)];
    return [place.x + (one % count) * cell, place.y];
  };
  const output = ruler(parts.output.children[0]);
  const to: [number, number] = [numberX(output, numbers.output.length, at), lowEdge(output)];
  const fan = fanOf(products ?? [], to, (one) => {
    const [x, y] = cellAt(one);
    return [x + cell / 2, y + 2, one === unit ? KEYED : ""];
  });
  const read = ruler(parts.read);
  const [x, y] = cellAt(unit);
  const found = { x: x - 1, y: y - 1, width: cell + 2, height: cell + 2, rx: 2 };
  return [
    fan,
    matrices && drawing("path", { class: "gfz-dots", d: `M${numberX(read, 1, 0)} ${read.y - 12}v11` }),
    drawing("rect", { class: "gfz-found", ...found }),
  ];
}
