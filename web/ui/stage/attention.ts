// The attentions: arcs between words of one side, ribbons of the memory that cross the strands of the other.
import { drawing } from "../figure.ts";
import { boxOf, ribbonHeight, ribbonPath } from "./geometry.ts";
import { isHeadOff, rowOfHead } from "./numbers.ts";
import { HUES, path, rectangle, text } from "./pen.ts";
import { arcPath, crossing } from "./strands.ts";
import { probabilityWords, tokenName } from "./words.ts";

import type { Stack, Tensor } from "../../engine/types.ts";
import type { FamilyId } from "../types.ts";
import type { StackPlace } from "./geometry.ts";
import type { Pen } from "./pen.ts";

// Self-attention: arcs from the words that are read, below, to the word that reads, above

export function drawArcs(pen: Pen) {
  const { geometry, numbers } = pen;
  const { encoder, decoder } = geometry;
  const { columns } = decoder;
  const self = boxOf(decoder, "self_attention").y;
  const next = columns.at[numbers.row + 1];
  const from = next === undefined ? decoder.room[1] : (columns.at[numbers.row] + next) / 2;
  const rows = rowsOf(numbers.weights.decoder, numbers.heads.decoder);
  const seesLater = rows.some((row, at) => row.some((weight, key) => key > at && weight > 0)); // the mask is changed
  return [
    ...arcs(encoder, rowsOf(numbers.weights.encoder, numbers.heads.encoder), numbers.source, Infinity),
    !seesLater &&
      from < decoder.room[1] &&
      rectangle([Math.min(from, decoder.room[1]), decoder.room[1]], [self[0] + 1, self[1] - 1], {
        fill: "url(#gfs-hatch)",
        opacity: 0.7,
        stroke: "none",
      }),
    ...arcs(decoder, rows, numbers.row, seesLater ? Infinity : numbers.row + 1),
  ];
}

function rowsOf(weights: Tensor, head: number) {
  return Array.from({ length: weights.shape[1] }, (_, row) => rowOfHead(weights, head, row));
}

function arcs(place: StackPlace, rows: Float32Array[], lit: number, until: number) {
  const { at } = place.columns;
  const way = (from: number, to: number) => arcPath(place, from, to);
  const count = Math.min(at.length, until, rows.length);
  const made: SVGElement[] = [];
  for (let to = 0; to < count; to++) {
    if (to === lit) continue;
    let d = "";
    let strongest = 0;
    for (let from = 0; from < Math.min(count, rows[to].length); from++) {
      const weight = rows[to][from];
      if (weight < 0.04) continue;
      strongest = Math.max(strongest, weight);
      d += way(from, to);
    }
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
  const row = rows[lit] ?? [];
  for (let from = 0; from < Math.min(count, row.length); from++) {
    if (row[from] < 0.01) continue;
    made.push(
      path(way(from, lit), `var(${HUES[place.stack]})`, 0.8 + 4 * row[from], {
        opacity: 0.4 + 0.6 * row[from],
      }),
    );
  }
  return made;
}

// Cross-attention: the memory's ribbons cross the words' strands, and a knot is as large as the weight

export function drawRibbons(pen: Pen) {
  const { geometry, numbers } = pen;
  const { decoder } = geometry;
  const count = numbers.read.length;
  const x = decoder.columns.at[numbers.row];
  const faint = Array.from({ length: count }, (_, source) =>
    path(
      `${ribbonPath(geometry, source, count)}M${decoder.x[0]} ${ribbonHeight(geometry, source, count)}H${x}`,
      "var(--strand)",
      geometry.narrow ? 0.75 : 1,
      { class: "gfs-ribbon", "data-column": source },
    ),
  );
  return [...faint, ...knots(pen)];
}

/** Returns the knots of the rows before the lit one. */
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

/** Draws the lit row of cross-attention: its ribbons, the knot that can be dragged, and Q, K and V. */
export function drawLook(pen: Pen) {
  const { geometry, numbers } = pen;
  const { decoder } = geometry;
  const count = numbers.read.length;
  const x = decoder.columns.at[numbers.row];
  const y = crossing(pen, numbers.source);
  const isOff = isHeadOff(numbers, "cross", numbers.heads.cross);
  const ribbons = [...numbers.read].flatMap((weight, source) =>
    weight <= 0.02
      ? []
      : [
          path(
            `${ribbonPath(geometry, source, count)}H${x}`,
            "var(--src)",
            1 + (geometry.narrow ? 2.5 : 3.5) * weight,
            {
              "stroke-linejoin": "round",
              class: "gfs-lit-ribbon",
              ...(isOff && { "stroke-dasharray": "3 6", opacity: 0.6 }),
            },
          ),
        ],
  );
  const others = [...numbers.read].flatMap((weight, source) =>
    weight <= 0.02 || source === numbers.source
      ? []
      : [
          drawing("circle", {
            cx: x,
            cy: ribbonHeight(geometry, source, count),
            r: 2 + 4.5 * Math.sqrt(weight),
            fill: "var(--src)",
            stroke: "var(--card)",
          }),
        ],
  );
  const cross = boxOf(decoder, "cross_attention").y;
  const token = tokenName(numbers.translated.sourceTokens[numbers.source] ?? "", pen.t);
  const weight = probabilityWords(numbers.read[numbers.source]);
  const said = [!geometry.narrow && token, weight, isOff && `· ${pen.t("stage.off")}`]
    .filter(Boolean)
    .join(" ");
  const roomy = x < decoder.room[1] - 110;
  const label = text(x + (roomy ? 13 : -13), y + (roomy ? 0 : y - cross[0] < 30 ? 14 : -13), said, {
    fill: "var(--src)",
    weight: 650,
    size: 13,
    anchor: roomy ? "start" : "end",
  });
  label.setAttribute("class", "gfs-halo");
  return [
    ...ribbons,
    !geometry.narrow && tag(pen, decoder.x[0], y, "K V", "var(--src)"),
    !geometry.narrow && cross[1] - y > 32 && tag(pen, x, cross[1] - 15, "Q", "var(--tgt)"),
    ...others,
    drawing(
      "g",
      {
        class: "gfs-knot",
        role: "slider",
        tabindex: 0,
        "aria-label": pen.t("stage.knot"),
        "aria-valuetext": said,
        "aria-valuemin": 0,
        "aria-valuemax": count - 1,
        "aria-valuenow": numbers.source,
      },
      drawing("circle", { cx: x, cy: y, r: 22, fill: "transparent" }),
      drawing("circle", {
        cx: x,
        cy: y,
        r: 6.5,
        fill: "var(--src)",
        stroke: "var(--card)",
        "stroke-width": 1.5,
        class: "gfs-knot-dot",
      }),
    ),
    label,
  ];
}

function tag(pen: Pen, x: number, y: number, content: string, colour: string) {
  const width = pen.measure(content, 12, 650) + 10;
  return drawing(
    "g",
    {},
    drawing("rect", {
      x: x - width / 2,
      y: y - 8.5,
      width,
      height: 17,
      rx: 8.5,
      fill: "var(--card)",
      stroke: colour,
    }),
    text(x, y, content, { anchor: "middle", weight: 650, fill: colour }),
  );
}

/** Draws the small pictures of the lit attention's heads inside its box. */
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
  const names = pen.t(`stage.box.${box}`).split("|").length;
  const top = y[0] + 14 + names * 15;
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
  const dots: SVGElement[] = [];
  const hue = family === "decoder" ? "var(--tgt)" : "var(--src)";
  for (const [own, colour] of [
    [false, "var(--ink2)"],
    [true, hue],
  ] as const) {
    let d = "";
    for (let row = 0; row < until; row++) {
      if ((row === lit) !== own) continue;
      rowOfHead(weights, head, row).forEach((weight, column) => {
        if (weight > 0.15)
          d += `M${(x + 3 + row * across).toFixed(1)} ${(y + 2 + column * down).toFixed(1)}h${Math.max(1.2, across).toFixed(1)}v${Math.max(1, down).toFixed(1)}h${(-Math.max(1.2, across)).toFixed(1)}z`;
      });
    }
    if (d) dots.push(drawing("path", { d, fill: colour, opacity: own ? 1 : 0.7 }));
  }
  const number = text(x + 4, y + height - 8, String(head), {
    fill: chosen ? "var(--ink)" : "var(--ink3)",
    weight: chosen ? 650 : 400,
  });
  number.setAttribute("class", "gfs-halo");
  return drawing(
    "g",
    {
      class: "gfs-head",
      "data-head": head,
      "data-family": family,
      role: "button",
      tabindex: -1,
      "aria-label": pen.t("stage.head", head),
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
    number,
  );
}
