// Draws a second translation on the figure.
import { rowOfHead } from "../../engine/tensor.ts";
import { MARKED_FROM } from "../../engine/alignment.ts";
import { BLANK_BELOW, numberText } from "../../engine/number_text.ts";
import { drawing } from "../app/drawing.ts";
import { FAMILIES } from "../app/heads.ts";
import { ribbonHeight, ribbonPath } from "./ribbons.ts";
import { rowPathOf } from "./row_path.ts";
import { path, text } from "./pen.ts";
import { arcPath } from "./strands.ts";
import { probabilityWords, tokenName } from "../app/wording.ts";

import type { Child, FamilyId } from "../app/types.ts";
import type { StackPlace } from "./geometry.ts";
import type { Pen } from "./pen.ts";
import type { Seat, Second } from "./shown.ts";

/**
 * Draws the second translation: its words under the words of the first translation, its highlighted rows as dashed
 * lines, and outlines where weights differ.
 */
export function drawSecond(pen: Pen): Child[] {
  const { geometry, numbers } = pen;
  const { second } = numbers;
  if (!second) return [];
  const { encoder, decoder, narrow, written } = geometry;
  return [
    ...FAMILIES.flatMap(({ id }) => [...dashed(pen, second, id), ...outlines(pen, second, id)]),
    !narrow && [
      ...words(pen, encoder, second.source, encoder.words[1] + 15, "var(--src)"),
      ...words(pen, decoder, second.written, written[1] + 6, "var(--tgt)"),
      ...second.written.flatMap(({ column, change }) =>
        Math.abs(change) < BLANK_BELOW || !decoder.columns.shown[column]
          ? []
          : [label(decoder.columns.at[column], written[1] + 22, numberText(change, 2, true))],
      ),
    ],
  ];
}

function label(x: number, y: number, content: Child, colour = "var(--ink3)") {
  return text(x, y, content, { anchor: "middle", fill: colour, kind: "gfs-second-word" });
}

/**
 * Draws the second translation's words under the words of a stack; words that only the second translation has are
 * coloured and underlined.
 */
function words(pen: Pen, { columns }: StackPlace, seats: Seat[], y: number, colour: string) {
  return columns.at.flatMap((x, column) => {
    const here = columns.shown[column] ? seats.filter((one) => one.column === column) : [];
    if (here.length === 0) return [];
    const parts = here.map(({ token, isOwn }, at) => [
      at > 0 && " ",
      drawing("tspan", isOwn ? { class: "gfs-own", fill: colour } : {}, tokenName(token, pen.t)),
    ]);
    return [label(x, y, parts)];
  });
}

function dashed(pen: Pen, { lit }: Second, id: FamilyId) {
  const { geometry, numbers } = pen;
  const row = lit[id];
  if (!row) return [];
  const { isArc, place, query, family } = rowPathOf(pen, id);
  return [...row.keys()]
    .filter((key) => row[key] >= MARKED_FROM)
    .map((key) => {
      const way = isArc
        ? arcPath(place, key, query, family.sublayer)
        : `${ribbonPath(geometry, key, numbers.read.length)}H${place.columns.at[query]}`;
      return path(way, "var(--ink)", 0.75 + 1.5 * row[key], { class: "gfs-second-line" });
    });
}

/**
 * Draws an outline around each weight of the shown head that differs much, with its value in the second translation.
 */
function outlines(pen: Pen, { changes }: Second, id: FamilyId) {
  const { geometry, numbers } = pen;
  const { isArc, place, query, attention, head, tokens, family } = rowPathOf(pen, id);
  const change = changes.get(`${attention}.weights`);
  if (!change) return [];
  const { translated, weights, at } = numbers;
  const readers = id === "encoder" ? translated.sourceTokens : translated.outputTokens;
  const last = id === "encoder" ? Infinity : query + 1;
  const made: SVGElement[] = [];
  for (let row = 0; row < Math.min(change.shape[1], last); row++)
    rowOfHead(change, head, row).forEach((more, key) => {
      if (Math.abs(more) <= MARKED_FROM || key >= tokens.length) return;
      const here = rowOfHead(weights[id], head, row)[key];
      const names = [readers[row] ?? "", tokens[key]].map((token) => tokenName(token, pen.t));
      const values = [here, here + more].map(probabilityWords);
      const way = arcPath(place, key, row, family.sublayer);
      const centre = { cx: place.columns.at[row], cy: ribbonHeight(geometry, key, numbers.read.length) };
      const isHeld = row === query && key === Math.round(at[id]); // the draggable handle covers this weight
      made.push(
        drawing(
          "g",
          { class: isHeld ? "gfs-differs gfs-held" : "gfs-differs" },
          drawing("title", {}, pen.t("second.weight", ...names, ...values)),
          isArc
            ? [path(way, "var(--ink)", 1.25, { "stroke-dasharray": "1 3" }), path(way, "transparent", 9)]
            : drawing("circle", { ...centre, r: 8.5, fill: "transparent", stroke: "var(--ink)" }),
        ),
      );
    });
  return made;
}
