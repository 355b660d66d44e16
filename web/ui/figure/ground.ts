// The background of the figure: the cards of the layers, the boxes and their names, and the residual connections.
import { drawing, pressable } from "../app/drawing.ts";
import { boxKey } from "../app/heads.ts";
import { boxOf, middle, rounded, topOf } from "./geometry.ts";
import { memoryTop } from "./ribbons.ts";
import { HUES, LINE, lines, path, rectangle, text } from "./pen.ts";

import type { Box, Span, StackPlace } from "./geometry.ts";
import type { Pen } from "./pen.ts";

/** Draws everything that does not depend on which word is highlighted. */
export function drawGround(pen: Pen) {
  const { geometry } = pen;
  const stacks = [geometry.encoder, geometry.decoder];
  return [hatching(), ...stacks.flatMap((place) => [...cards(pen, place), ...boxes(pen, place)])];
}

function hatching() {
  const line = drawing("line", { x1: 0, y1: 0, x2: 0, y2: 7, stroke: "var(--att-l)", "stroke-width": 1.5 });
  const pattern = drawing(
    "pattern",
    { id: "gfs-hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    line,
  );
  return drawing("defs", {}, pattern);
}

function cards(pen: Pen, { stack, x: [x0, x1], card, edges, names }: StackPlace) {
  const { narrow } = pen.geometry;
  const out = narrow ? 6 : 24;
  const wide: Span = [
    x0 - (stack === "encoder" ? out : out / 3),
    x1 + (stack === "decoder" ? out - 2 : out / 3),
  ];
  const look = { fill: "var(--card)", stroke: "var(--card-line)" };
  const label = (layer: number) => pen.t("stage.layer", layer);
  return [
    ...[...edges].reverse().flatMap(({ layer, y }) => [
      drawing(
        "g",
        {
          class: "gfs-edge",
          "data-layer": layer,
          "data-stack": stack,
          ...pressable(pen.t(`stage.open.${stack}`, layer)),
        },
        rectangle([wide[0] + 6, wide[1] - 6], y[0] < card[0] ? [y[0], y[1] + 10] : [y[0] - 10, y[1]], {
          rx: 9,
          ...look,
        }),
        y[1] - y[0] >= pen.geometry.least + 4 &&
          !narrow &&
          text(names, middle(y) + 1, label(layer), { fill: "var(--ink3)" }),
      ),
    ]),
    rectangle(wide, card, { rx: 10, ...look }),
    !narrow && text(names, card[0] + 12, label(pen.numbers.open[stack]), { weight: 620 }),
  ].filter((one) => one !== false);
}

function boxes(pen: Pen, place: StackPlace) {
  // a narrow figure shows the positions in the box of the embedding
  const lit = pen.geometry.narrow ? pen.box.replace("positions", "embedding") : pen.box;
  return place.boxes.map((box) => {
    const key = `${place.stack}.${box.id}`;
    const isLit = key === lit;
    const kind = isLit && box.kind === "att" ? "att-on" : box.kind;
    const made = drawing(
      "g",
      {
        class: "gfs-box",
        "data-box": key,
        ...pressable(nameOf(pen, place, box)),
      },
      rectangle(place.x, box.y, {
        rx: 5,
        fill: `var(--${kind})`,
        stroke: isLit ? "var(--ink)" : `var(--${box.kind}-l)`,
        "stroke-width": isLit ? 1.5 : 1,
      }),
    );
    return made;
  });
}

/** Returns the text that names a box. In a pre-norm model, the box after the sub-layer only adds. */
function labelOf({ t, numbers }: Pen, { stack, boxes: all }: StackPlace, { id }: Box) {
  const adds = id.endsWith(".add") && all.some((one) => one.id === id.replace(".add", ".norm"));
  return t(adds ? "stage.box.add" : boxKey(numbers.translated.changes, stack, id));
}

/** Returns a box's full name, such as "Decoder: Add & norm". */
function nameOf(pen: Pen, place: StackPlace, box: Box) {
  return `${pen.t(`stage.${place.stack}`)}: ${labelOf(pen, place, box).replaceAll("|", " ")}`;
}

/** Draws the boxes' names above everything else. */
export function drawNames(pen: Pen) {
  const { geometry, languages, numbers } = pen;
  const { encoder, decoder, narrow } = geometry;
  const named = [encoder, decoder].flatMap((place) =>
    place.boxes.flatMap((box) => {
      const isLit = `${place.stack}.${box.id}` === pen.box;
      const shown = labelOf(pen, place, box).split("|");
      const style = isLit ? { fill: "var(--ink)", weight: 650 } : {};
      const line = LINE * geometry.least;
      const fits = Math.max(1, Math.floor((box.y[1] - box.y[0] + 5) / line));
      const pictured = isLit && box.kind === "att" && !narrow;
      const up = box.kind === "sof" ? 12 : 0; // leaves room for the button "Why?" below
      const y = pictured ? box.y[0] + 8 + (line / 2) * shown.length : middle(box.y) - up;
      const named = lines(place.names, y, shown.slice(0, fits), style);
      return drawing("g", { class: "gfs-box-name", "data-box": `${place.stack}.${box.id}` }, named);
    }),
  );
  if (narrow) return named;
  const heading = { size: 15, weight: 650, fill: "var(--ink)" };
  const count = encoder.columns.at.length;
  return [
    ...named,
    text(40, topOf(encoder) - 18, pen.t("stage.encoder"), heading),
    geometry.written[0] < 44
      ? text(decoder.x[0] - 10, 30, pen.t("stage.decoder"), { ...heading, anchor: "end" })
      : text(decoder.x[0], 30, pen.t("stage.decoder"), heading),
    !pen.isEarly &&
      text(
        Math.min(encoder.columns.at[0], encoder.columns.at[count - 1]) + 14,
        memoryTop(geometry, count) - 11,
        pen.t(
          numbers.steps.crossKeyValue.side === "source" ? "stage.memory" : "stage.memory.unread",
          languages.source,
        ),
        {
          fill: "var(--ink3)",
        },
      ),
    ...lines(decoder.names, middle(geometry.written), [pen.t("stage.written")], {
      weight: 620,
      fill: "var(--ink)",
    }),
    ...lines(decoder.names, middle(decoder.words), pen.t("stage.so.far", languages.target).split("|")),
    text(encoder.names, middle(encoder.words), languages.source, { weight: 620, fill: "var(--ink)" }),
  ];
}

/** Draws the residual connections, which run outside the boxes as in the paper. */
export function drawLoops(pen: Pen) {
  const { geometry, box } = pen;
  const { normed } = pen.numbers.steps.shortcut;
  return [geometry.encoder, geometry.decoder].flatMap((place) => {
    const sublayers = place.boxes.filter(({ kind }) => kind === "att" || kind === "ffn");
    return sublayers.map((one) => {
      const norm = place.boxes.find(({ id }) => id === `${one.id}.norm`);
      const from = (!normed && norm) || one;
      const lit = [one.id, `${one.id}.add`].some((id) => `${place.stack}.${id}` === box);
      return loop(
        place,
        one.id,
        from.y[1] + 4,
        middle(boxOf(place, `${one.id}.add`).y),
        lit,
        geometry.narrow,
        normed && !norm && pen.t("stage.box.encoder.norm"),
      );
    });
  });
}

function loop(
  place: StackPlace,
  id: string,
  from: number,
  to: number,
  lit: boolean,
  narrow: boolean,
  norm: string | false,
) {
  const { side, x } = place;
  const start = side < 0 ? x[0] : x[1];
  const [end, r] = [start + side * (narrow ? 6 : 13), narrow ? 3 : 5];
  const colour = lit ? `var(${HUES[place.stack]})` : "var(--loop)";
  const way = rounded(r, [start, from], [end, from], [end, to], [start + side * 2, to]);
  const arrow = `M${start + side * 6} ${to - 3.5}L${start + side} ${to}L${start + side * 6} ${to + 3.5}`;
  const width = lit ? 1.75 : 1.25;
  return [
    path(way, colour, width, { class: "gfs-loop", "data-box": `${place.stack}.${id}` }),
    path(arrow, colour, width),
    norm &&
      drawing(
        "rect",
        { x: end - 5, y: (from + to) / 2 - 9, width: 10, height: 18, rx: 2, class: "gfs-loop-norm" },
        drawing("title", {}, norm),
      ), // the mark of a mistake that also normalises the residual
  ];
}
