// Draws attention. Self-attention: arcs between words of the same side. Cross-attention: for each source word a ribbon
// (a horizontal line that stands for its vector in the memory), which crosses the strands (the vertical lines of the
// decoder's words); a knot (a dot) at a crossing shows the attention weight.
import { MARKED_FROM as OUTLINED } from "../../engine/alignment.ts";
import { drawing, pressable } from "../app/drawing.ts";
import { FAMILIES, boxKey } from "../app/heads.ts";
import { boxOf } from "./geometry.ts";
import { ribbonHeight, ribbonPath } from "./ribbons.ts";
import { HUES, LINE, path, rectangle, text } from "./pen.ts";
import { rowPathOf, pointOf } from "./row_path.ts";
import { arcPath } from "./strands.ts";
import { probabilityWords, tokenName } from "../app/wording.ts";
import { rowOfHead, times } from "../../engine/tensor.ts";
import { isHeadOff } from "./shown.ts";

import type { Stack, Tensor } from "../../engine/types.ts";
import type { Child, FamilyId } from "../app/types.ts";
import type { RowPath } from "./row_path.ts";
import type { Pen } from "./pen.ts";
import type { StageNumbers } from "./shown.ts";

/** The style of a line from before the reader's changes. */
const OLD = { "stroke-dasharray": "2 5", opacity: 0.7, class: "gfs-old" };

// Arcs run from the words that are attended to, below, up to the word that attends.

export function drawArcs(pen: Pen) {
  const { geometry, numbers } = pen;
  const { decoder } = geometry;
  const { columns } = decoder;
  const self = boxOf(decoder, "self_attention").y;
  const next = columns.at[numbers.row + 1];
  const isLater = seesLater(numbers, "decoder");
  const from = next === undefined ? decoder.room[1] : (columns.at[numbers.row] + next) / 2;
  return [
    ...FAMILIES.flatMap(({ id }) => faintArcs(pen, id, isLater)),
    !isLater &&
      from < decoder.room[1] &&
      rectangle([Math.min(from, decoder.room[1]), decoder.room[1]], [self[0] + 1, self[1] - 1], {
        fill: "url(#gfs-hatch)",
        opacity: 0.7,
        stroke: "none",
      }),
  ];
}

/** Returns whether a word of the decoder attends to a later word, because the mask was changed. */
function seesLater({ weights, heads }: StageNumbers, id: FamilyId) {
  const rows = [...Array(weights[id].shape[1]).keys()];
  return rows.some((at) =>
    rowOfHead(weights[id], heads[id], at).some((weight, key) => key > at && weight > 0),
  );
}

/**
 * Draws the rows of attention that are not highlighted, as faint arcs. In the decoder, rows after the highlighted row
 * are left out, unless words attend to later words.
 */
function faintArcs(pen: Pen, id: FamilyId, isLater: boolean) {
  const { place, query, isArc, family } = rowPathOf(pen, id);
  if (!isArc) return [];
  const { weights, heads } = pen.numbers;
  const isWhole = id === "encoder" || (id === "cross" ? seesLater(pen.numbers, id) : isLater);
  const count = Math.min(place.columns.at.length, weights[id].shape[1], isWhole ? Infinity : query + 1);
  const made: SVGElement[] = [];
  for (let to = 0; to < count; to++) {
    if (to === query) continue;
    let d = "";
    let strongest = 0;
    rowOfHead(weights[id], heads[id], to).forEach((weight, from) => {
      if (weight < 0.04 || from >= count) return;
      strongest = Math.max(strongest, weight);
      d += arcPath(place, from, to, family.sublayer);
    });
    if (d)
      made.push(
        path(d, "var(--ink3)", 0.5 + strongest, {
          opacity: 0.12 + 0.16 * strongest,
          class: "gfs-arcs",
          "data-column": to,
          "data-stack": place.stack,
        }),
      );
  }
  return made;
}

/**
 * Draws the highlighted row as arcs. A dashed arc shows a weight from before the reader's changes that the changes have
 * made smaller.
 */
function litArcs(pen: Pen, { place, family, query }: RowPath) {
  const { rows, before } = pen.numbers;
  const hue = `var(${HUES[place.stack]})`;
  const row = rows[family.id];
  const way = (from: number) => arcPath(place, from, query, family.sublayer);
  return [
    ...changedKeys(row, before.rows[family.id]).map((from) => path(way(from), hue, 1.5, OLD)),
    ...[...row].flatMap((weight, from) =>
      weight < 0.01 || from >= place.columns.at.length
        ? []
        : [path(way(from), hue, 0.8 + 4 * weight, { opacity: 0.4 + 0.6 * weight, class: "gfs-lit-arc" })],
    ),
  ];
}

/** Returns the indices of the words to which a row attended clearly more before the changes. */
function changedKeys(now: Float32Array, before: Float32Array | undefined) {
  return [...(before ?? []).keys()].filter((key) => (before?.[key] ?? 0) - (now[key] ?? 0) > OUTLINED);
}

// Cross-attention: the memory's ribbons cross the words' strands; the area of a knot at a crossing shows the weight

export function drawRibbons(pen: Pen) {
  const { geometry, numbers } = pen;
  if (numbers.steps.crossKeyValue.side === "target") return []; // a mistake makes the decoder attend to its own words
  const { decoder } = geometry;
  const count = numbers.read.length;
  const x = decoder.columns.at[numbers.row];
  const faint = times(count, (source) =>
    path(
      `${ribbonPath(geometry, source, count)}M${decoder.x[0]} ${ribbonHeight(geometry, source, count)}H${x}`,
      "var(--strand)",
      geometry.narrow ? 0.75 : 1,
      { class: "gfs-ribbon", "data-column": source },
    ),
  );
  return [...faint, ...knots(pen)];
}

/** Returns the knots (dots whose area is an attention weight) of the output words before the highlighted word. */
function knots({ geometry, numbers }: Pen) {
  const { decoder } = geometry;
  const count = numbers.read.length;
  const [top, bottom] = boxOf(decoder, "cross_attention").y;
  const largest = Math.min(5.2, Math.max(2.6, (0.45 * (bottom - top - 30)) / Math.max(count - 1, 1)));
  const made: SVGElement[] = [];
  for (let row = 0; row < numbers.row; row++) {
    rowOfHead(numbers.weights.cross, numbers.heads.cross, row).forEach((weight, source) => {
      if (weight < 0.02) return;
      made.push(
        drawing("circle", {
          cx: decoder.columns.at[row],
          cy: ribbonHeight(geometry, source, count),
          r: largest * Math.sqrt(weight),
          fill: "var(--knot)",
          stroke: "var(--att-on)",
          "stroke-width": 1,
        }),
      );
    });
  }
  return made;
}

/** Draws the highlighted row of each attention, with the handle that the reader can drag. */
export function drawLook(pen: Pen) {
  return FAMILIES.flatMap(({ id }) => {
    const look = rowPathOf(pen, id);
    return [...(look.isArc ? litArcs(pen, look) : litRibbons(pen, look)), ...handle(pen, look)];
  });
}

/** Draws the highlighted row of cross-attention: ribbons and knots, and the labels Q, K and V. */
function litRibbons(pen: Pen, { query, place, stops }: RowPath): Child[] {
  const { geometry, numbers } = pen;
  const { read, source, before } = numbers;
  const x = place.columns.at[query];
  const looked = stops[Math.round(numbers.at.cross)];
  const isOff = isHeadOff(numbers, "cross", numbers.heads.cross);
  const lit = [...read.keys()].filter((key) => read[key] > 0.02 || key === source);
  const way = (key: number) => `${ribbonPath(geometry, key, read.length)}H${x}`;
  const cross = boxOf(place, "cross_attention").y;
  const hides = (y: number) => Math.abs(y - cross[1] + 15) < 17;
  return [
    ...changedKeys(read, before.rows.cross).map((key) => path(way(key), "var(--src)", 1.5, OLD)),
    ...lit.map((key) =>
      path(way(key), "var(--src)", 1 + (geometry.narrow ? 2.5 : 3.5) * read[key], {
        "stroke-linejoin": "round",
        class: "gfs-lit-ribbon",
        ...(isOff && { "stroke-dasharray": "3 6", opacity: 0.6 }),
      }),
    ),
    !geometry.narrow && tag(pen, place.x[0], looked, "K V", "var(--src)"),
    !geometry.narrow &&
      !lit.some((key) => hides(stops[key])) &&
      !hides(looked) &&
      tag(pen, x, cross[1] - 15, "Q", "var(--tgt)"),
    ...lit.map((key) =>
      drawing("circle", {
        cx: x,
        cy: stops[key],
        r: 2 + 4.5 * Math.sqrt(read[key]),
        fill: "var(--src)",
        stroke: "var(--card)",
      }),
    ),
  ];
}

/**
 * Draws the handle of a highlighted row with its largest weight and, if the reader has chosen a different source word,
 * that word's weight.
 */
function handle(pen: Pen, look: RowPath) {
  const { numbers, geometry } = pen;
  const { family, place, isArc } = look;
  const at = numbers.at[family.id];
  const key = Math.round(at);
  const { x, y } = pointOf(look, at);
  const box = boxOf(place, family.sublayer).y;
  const isLit = pen.box === `${family.stack}.${family.sublayer}`;
  const { source } = numbers;
  const size = pen.wordSize > 16 ? 18 : 13; // large in lecture mode
  const labelled = isArc ? [key] : [key, source];
  const roomy = labelled.every(
    (one) => x + 16 + pen.measure(weightText(pen, look, one), size, 650) < place.room[1],
  );
  const label = (one: number, height: number, weight: number) =>
    text(x + (roomy ? 13 : -13), height, weightText(pen, look, one), {
      fill: hueOf(look),
      weight,
      size,
      anchor: roomy ? "start" : "end",
      kind: "gfs-halo",
    });
  const height = y + (isArc ? (size > 13 ? -3 : -8) : roomy ? 0 : y - box[0] < 30 ? 14 : -13);
  const other = look.stops[source] < y ? -1 : 1;
  const isStop = isLit || (!isArc && !pen.box.endsWith("self_attention"));
  return [
    knot(pen, look, key, isStop),
    (!isArc || (isLit && !geometry.narrow)) && label(key, height, 650),
    !isArc &&
      source !== key &&
      label(source, height + other * Math.max(16, other * (look.stops[source] - y)), 400),
  ];
}

const hueOf = ({ isArc, place }: RowPath) => (isArc ? `var(${HUES[place.stack]})` : "var(--src)");

/** Returns a word that a row can attend to, with its weight. */
function weightText({ numbers, geometry, t }: Pen, { family, tokens, head }: RowPath, at: number) {
  const off = isHeadOff(numbers, family.id, head) ? ` · ${t("stage.off")}` : "";
  const measure = geometry.narrow ? "" : `· ${t("word.weight")} `;
  return `${tokenName(tokens[at] ?? "", t)} ${measure}${probabilityWords(numbers.rows[family.id][at] ?? 0)}${off}`;
}

/** Draws the handle itself, a slider for the keyboard; `isStop`: whether Tab reaches it. */
function knot(pen: Pen, look: RowPath, key: number, isStop: boolean) {
  const { family, tokens, place, isArc } = look;
  const { x, y } = pointOf(look, pen.numbers.at[family.id]);
  const bottom = boxOf(place, family.sublayer).y[1];
  return drawing(
    "g",
    {
      class: `gfs-handle${family.id === "cross" ? " gfs-knot" : ""}`,
      "data-family": family.id,
      role: "slider",
      tabindex: isStop ? 0 : -1,
      "aria-label": `${pen.t(`family.${family.id}`)}: ${pen.t("stage.knot")}`,
      "aria-orientation": isArc ? "horizontal" : "vertical",
      "aria-valuetext": weightText(pen, look, key),
      "aria-valuemin": 0,
      "aria-valuemax": tokens.length - 1,
      "aria-valuenow": key,
    },
    drawing("rect", {
      x: x - 22,
      y: isArc ? bottom - 42 : y - 22,
      width: 44,
      height: 44,
      fill: "transparent",
    }),
    drawing("circle", {
      cx: x,
      cy: y,
      r: isArc ? 5 : 6.5,
      fill: hueOf(look),
      stroke: "var(--card)",
      "stroke-width": 1.5,
      class: "gfs-dot",
    }),
  );
}

function tag(pen: Pen, x: number, y: number, content: string, colour: string) {
  const width = pen.measure(content, 12, 650) + 10;
  const tall = pen.geometry.least + 5;
  return drawing(
    "g",
    "gfs-tag",
    drawing("rect", {
      x: x - width / 2,
      y: y - tall / 2,
      width,
      height: tall,
      rx: tall / 2,
      fill: "var(--card)",
      stroke: colour,
    }),
    text(x, y, content, { anchor: "middle", weight: 650, fill: colour }),
  );
}

/** Draws small pictures of the highlighted attention's heads inside its box. */
export function drawHeads(pen: Pen) {
  const { geometry, numbers, box } = pen;
  if (geometry.narrow || !box.endsWith("attention")) return [];
  const [stack, id] = box.split(".") as [Stack, string];
  const family: FamilyId = stack === "encoder" ? "encoder" : id === "cross_attention" ? "cross" : "decoder";
  const place = geometry[stack];
  const { y } = boxOf(place, id);
  const weights = numbers.weights[family];
  const heads = pen.pictured[family];
  const lit = stack === "encoder" ? numbers.source : numbers.row;
  const names = pen.t(boxKey(numbers.translated.changes, stack, id)).split("|").length;
  const top = y[0] + 14 + names * LINE * geometry.least;
  const rows = Math.ceil(heads.length / 2);
  const tall = Math.min(29, Math.floor((y[1] - top - 2) / rows) - 3);
  if (tall < 12) return [];
  return heads.map((head, at) => {
    const [x, up] = [place.names - 2 + (at % 2) * 36, top + Math.floor(at / 2) * (tall + 3)];
    return headPicture(pen, weights, head, [x, up], [33, tall], lit, head === numbers.heads[family], family);
  });
}

function headPicture(
  pen: Pen,
  weights: Tensor,
  head: number,
  [x, y]: [number, number],
  [width, height]: [number, number],
  lit: number,
  chosen: boolean,
  family: FamilyId,
) {
  const [, rows, columns] = weights.shape;
  const until = family === "encoder" ? rows : Math.min(rows, pen.numbers.row + 1);
  const [across, down] = [(width - 6) / Math.max(until, 8), (height - 4) / Math.max(columns, 8)];
  const tenths = (size: number) => size.toFixed(1);
  const wide = tenths(Math.max(1.2, across));
  const dot = `h${wide}v${tenths(Math.max(1, down))}h-${wide}z`;
  const dots: SVGElement[] = [];
  const { isArc, place } = rowPathOf(pen, family);
  const hue = isArc ? `var(${HUES[place.stack]})` : "var(--src)";
  for (const [own, colour] of [
    [false, "var(--ink2)"],
    [true, hue],
  ] as const) {
    let d = "";
    for (let row = 0; row < until; row++) {
      if ((row === lit) !== own) continue;
      rowOfHead(weights, head, row).forEach((weight, column) => {
        if (weight > 0.15) d += `M${tenths(x + 3 + row * across)} ${tenths(y + 2 + column * down)}${dot}`;
      });
    }
    if (d) dots.push(drawing("path", { d, fill: colour, opacity: own ? 1 : 0.7 }));
  }
  return drawing(
    "g",
    {
      class: "gfs-head",
      "data-head": head,
      "data-family": family,
      ...pressable(pen.t("stage.head", head)),
      "aria-pressed": String(chosen),
    },
    rectangle([x, x + width], [y, y + height], {
      rx: 3,
      fill: "var(--card)",
      stroke: chosen ? "var(--ink)" : "var(--att-l)",
      "stroke-width": chosen ? 2 : 1,
    }),
    dots,
    isHeadOff(pen.numbers, family, head) &&
      path(`M${x + 3} ${y + height - 3}L${x + width - 3} ${y + 3}`, "var(--ink)", 1.5, { class: "gfs-off" }),
    pen.geometry.least <= height &&
      text(x + 4, y + height - 8, String(head), {
        fill: chosen ? "var(--ink)" : "var(--ink3)",
        weight: chosen ? 650 : 400,
        kind: "gfs-halo",
      }),
  );
}
