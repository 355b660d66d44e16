// The outline: Figure 1 as the paper draws it, with names inside the boxes. The next act expands the boxes into the
// figure.
import { boxesOf } from "../app/boxes.ts";
import { drawing } from "../app/drawing.ts";
import { boxKey } from "../app/heads.ts";
import { along } from "./flight.ts";
import { middle, NARROW, rounded } from "./geometry.ts";
import { wantsStillness } from "./glide.ts";
import { path, rectangle, text } from "./pen.ts";
import { languageNames, probabilityWords, tokenName } from "../app/wording.ts";

import type { ModelConfig, Stack } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { BoxEntry, Kind } from "../app/boxes.ts";
import type { Child } from "../app/types.ts";
import type { Area, Plane, Span } from "./geometry.ts";

interface OutlineBox extends Area {
  id: string;
  stack: Stack;
  kind: Kind;
}

interface OutlinePlan {
  width: number;
  height: number;
  narrow: boolean;
  boxes: OutlineBox[];
  x: Record<Stack, Span>;
  card: Record<Stack, Span>;
}

const HEIGHTS: Record<Kind, number> = { emb: 33, att: 54, add: 26, ffn: 40, lin: 34, sof: 34 };

/** Returns the layout of the outline, with one layer for each stack, in the order of post-norm or pre-norm. */
export function outlinePlan({ norm }: ModelConfig, { width, height }: Plane): OutlinePlan {
  const isPreNorm = norm === "pre";
  const narrow = width < NARROW;
  const wide = Math.min(228, (width - 110) / 2);
  const half = narrow ? (wide < 228 ? 25 : 88) : 88;
  const centre = narrow ? width / 2 : width * 0.643;
  const x: Record<Stack, Span> = {
    encoder: [centre - half - wide, centre - half],
    decoder: [centre + half, centre + half + wide],
  };
  const floor = 741;
  const stacked = (stack: Stack) => {
    let y = floor;
    const put = ({ id, kind }: BoxEntry, gap: number): OutlineBox => {
      const span: Span = [y - gap - HEIGHTS[kind], y - gap];
      y = span[0];
      return { id, stack, kind, x: x[stack], y: span };
    };
    const { inputs, layer, outputs } = boxesOf(stack, { isPreNorm, hasFinalNorm: false });
    // the boxes of a sub-layer stand close together
    const gapBelow = (at: number) =>
      at === 0 ? 84 : layer[at - 1].id.endsWith(".add") ? (isPreNorm ? 22 : 34) : 3;
    const boxes = [put(inputs[0], 0), ...layer.map((box, at) => put(box, gapBelow(at)))];
    const card: Span = [y - 40, floor - HEIGHTS.emb - 34];
    y = card[0];
    boxes.push(...outputs.map((box, at) => put(box, at ? 28 : 30)));
    return { boxes, card };
  };
  const [encoder, decoder] = [stacked("encoder"), stacked("decoder")];
  const top = Math.min(...decoder.boxes.map(({ y }) => y[0])) - 70;
  const room: Span = narrow
    ? [20, Math.min(640, height * 0.63)]
    : [(66 * height) / 900, (800 * height) / 900];
  const share = Math.min(1, (room[1] - room[0]) / (812 - top));
  const moved = (y: number) => Math.round(room[1] - (812 - y) * share);
  const span = ([from, to]: Span): Span => [moved(from), moved(to)];
  return {
    width,
    height: narrow ? room[1] + 30 : height,
    narrow,
    x,
    boxes: [...encoder.boxes, ...decoder.boxes].map((box) => ({ ...box, y: span(box.y) })),
    card: { encoder: span(encoder.card), decoder: span(decoder.card) },
  };
}

/** Draws the outline. `isWritten`: whether the model has written its first word. */
export function drawOutline(app: App, plan: OutlinePlan, isWritten: boolean) {
  const { boxes, x, card, narrow } = plan;
  const { outputTokens, hypothesis } = app.result.current;
  const word = isWritten && tokenName(outputTokens[0], app.t);
  const [centre, top] = [middle(x.decoder), boxOf(boxes, "decoder", "softmax").y[0] - 52];
  const { config } = app;
  const stacks = ["encoder", "decoder"] as const;
  return drawing(
    "g",
    { role: "img", "aria-label": app.t("outline.label") },
    stacks.map((stack) => cardOf(app, plan, stack, config[`${stack}_layers`])),
    boxes.map((box) => boxIn(app, box, narrow)),
    stacks.map((stack) => flowOf(plan, stack)),
    memoryOf(plan),
    sentenceOf(app, plan),
    rectangle([centre - 40, centre + 40], [top - 14, top + 14], {
      rx: 14,
      fill: "none",
      stroke: "var(--tgt)",
      "stroke-dasharray": word ? "" : "4 4",
    }),
    text(centre, top, word || "?", { anchor: "middle", size: 15, weight: 650, fill: "var(--tgt)" }),
    word && text(centre + 52, top, probabilityWords(Math.exp(hypothesis.tokenLogProbs[0]))),
    stacks.map((stack) =>
      text(x[stack][0] - (narrow ? 14 : 28), card[stack][0] - 14, app.t(`stage.${stack}`), {
        size: 15,
        weight: 650,
        fill: "var(--ink)",
      }),
    ),
  );
}

/** Animates a dot from the sentence to the first word that the model writes. */
export async function writeFirst(layer: SVGElement, plan: OutlinePlan) {
  const dot = drawing("circle", { r: 8, fill: "var(--tgt)" });
  if (!wantsStillness()) await along(layer, dot, wayOf(plan), { delay: 0, duration: 2000 });
}

function boxOf(boxes: OutlineBox[], stack: Stack, id: string) {
  return boxes.find((box) => box.stack === stack && box.id === id) as OutlineBox;
}

/**
 * Draws the card of a stack's layer and the number of layers; a second card lies behind the first if the stack has
 * several layers.
 */
function cardOf(app: App, { x, card, narrow }: OutlinePlan, stack: Stack, layers: number): Child[] {
  const out = narrow ? 14 : 30;
  const span: Span = [x[stack][0] - out, x[stack][1] + out];
  const look = { rx: 12, fill: "var(--card)", stroke: "var(--card-line)" };
  const [left, top] = stack === "encoder" ? [span[0] - 14, "end"] : [span[1] + 14, "start"];
  return [
    layers > 1 && rectangle([span[0] + 8, span[1] - 8], [card[stack][0] + 10, card[stack][1] + 10], look),
    rectangle(span, card[stack], look),
    narrow
      ? text(span[1] - 8, card[stack][0] + 13, `${layers} ×`, { anchor: "end" })
      : text(left, middle(card[stack]), `${layers} ×`, { size: 15, anchor: top as "start" | "end" }),
  ];
}

function boxIn(app: App, { stack, id, kind, x, y }: OutlineBox, narrow: boolean) {
  const adds = id.endsWith(".add") && app.config.norm === "pre";
  const key = adds
    ? "stage.box.add"
    : id === "embedding"
      ? "outline.embedding"
      : boxKey(app.changes, stack, id);
  const named = app.t(key).split("|");
  const fits = y[1] - y[0] >= (narrow ? 30 : 34) ? 2 : 1;
  const space = app.state.language === "zh" ? "" : " ";
  const shown =
    fits === 1 || named.length < 2 || kind === "ffn" || (named.length === 2 && !narrow)
      ? [named.join(space)]
      : [named[0], named.slice(1).join(space)];
  return drawing(
    "g",
    { class: "gfs-box", "data-box": `${stack}.${id}` },
    rectangle(x, y, { rx: 6, fill: `var(--${kind})`, stroke: `var(--${kind}-l)` }),
    shown.map((one, at) =>
      text(middle(x), middle(y) + (at - (shown.length - 1) / 2) * 16, one, {
        anchor: "middle",
        size: narrow ? 12 : 14,
        fill: "var(--ink)",
      }),
    ),
  );
}

/** Returns the SVG path of an arrowhead that points up. */
const tip = (x: number, y: number) => `M${x - 4} ${y + 6}L${x} ${y}L${x + 4} ${y + 6}`;

/** Draws the arrows of a stack: from box to box, three into each attention, and one around each sub-layer. */
function flowOf({ boxes, x, narrow }: OutlinePlan, stack: Stack) {
  const own = boxes.filter((box) => box.stack === stack);
  const centre = middle(x[stack]);
  const way = stack === "encoder" ? -1 : 1;
  const edge = x[stack][way < 0 ? 0 : 1];
  const out = edge + way * (narrow ? 8 : 15);
  const line = (d: string) => path(d, "var(--loop)", 1.5);
  const made: Child[] = [];
  own.forEach((box, at) => {
    const below = own[at - 1];
    const from = below ? below.y[0] : box.y[1] + 28;
    const isAsked = box.id === "cross_attention" && below.id === "self_attention.add"; // drawn together with the memory
    if (from - box.y[1] > 8 && !isAsked)
      made.push(line(`M${centre} ${from}V${box.y[1]}${tip(centre, box.y[1])}`));
    if (!box.id.endsWith("attention") && box.id !== "feed_forward") return;
    const start = own.find(({ id }) => id === `${box.id}.norm`) ?? box;
    const joint = isAsked ? from - 4 : start.y[1] + Math.min(22, (from - start.y[1]) * 0.6);
    const add = boxOf(own, stack, `${box.id}.add`);
    made.push(
      line(rounded(8, [centre, joint], [out, joint], [out, middle(add.y)], [edge, middle(add.y)])),
      line(
        `M${edge + way * 6} ${middle(add.y) - 4}L${edge} ${middle(add.y)}L${edge + way * 6} ${middle(add.y) + 4}`,
      ),
    );
    if (box.id !== "self_attention" || start !== box) return;
    const fork = box.y[1] + 13;
    made.push(
      line(
        rounded(
          6,
          [centre - 46, box.y[1]],
          [centre - 46, fork],
          [centre + 46, fork],
          [centre + 46, box.y[1]],
        ),
      ),
      line(tip(centre - 46, box.y[1]) + tip(centre + 46, box.y[1])),
    );
  });
  const last = own[own.length - 1];
  if (stack === "decoder")
    made.push(line(`M${centre} ${last.y[0]}V${last.y[0] - 34}${tip(centre, last.y[0] - 34)}`));
  return made;
}

/** Draws the memory's arrows, from the encoder's last box into cross-attention. */
function memoryOf({ boxes, x, card }: OutlinePlan) {
  const [top, cross] = [
    boxOf(boxes, "encoder", "feed_forward.add"),
    boxOf(boxes, "decoder", "cross_attention"),
  ];
  const [from, to] = [middle(x.encoder), middle(x.decoder)];
  const [up, bus] = [card.encoder[0] - 28, (x.encoder[1] + x.decoder[0]) / 2];
  const self = boxOf(boxes, "decoder", "self_attention.add");
  const [under, asks] = [0.36, 0.62].map((share) =>
    Math.round(cross.y[1] + share * (self.y[0] - cross.y[1])),
  );
  const arrow = (at: number, colour: string) => path(tip(at, cross.y[1]), colour, 2);
  return [
    path(
      `${rounded(10, [from, top.y[0]], [from, up], [bus, up], [bus, under], [to, under], [to, cross.y[1]])}M${to - 46} ${under}V${cross.y[1]}`,
      "var(--src)",
      2.5,
    ),
    arrow(to, "var(--src)"),
    arrow(to - 46, "var(--src)"),
    path(rounded(6, [to, self.y[0]], [to, asks], [to + 46, asks], [to + 46, cross.y[1]]), "var(--tgt)", 2),
    arrow(to + 46, "var(--tgt)"),
  ];
}

/** Draws the sentence under the encoder, and what the decoder has written so far. */
function sentenceOf(app: App, { boxes, x, width, narrow }: OutlinePlan): Child[] {
  const bottom = boxOf(boxes, "encoder", "embedding").y[1] + 28;
  const centre = middle(x.encoder);
  const sentence = app.state.sentence;
  const fits = narrow ? Math.floor(((x.encoder[1] - x.encoder[0]) / 12) * 1.9) : 66;
  const shown = sentence.length > fits ? `${sentence.slice(0, fits - 1)}…` : sentence;
  const size = narrow ? 12 : 16;
  const half = narrow ? centre - 8 : Math.max(centre - x.encoder[0], (shown.length * size * 0.5) / 2 + 20);
  return [
    rectangle([Math.max(4, centre - half), Math.min(width, centre + half)], [bottom, bottom + 34], {
      rx: 6,
      fill: "var(--card)",
      stroke: "var(--src)",
      "stroke-width": 1.5,
    }),
    text(centre, bottom + 17, shown, { anchor: "middle", size, fill: "var(--ink)" }),
    text(middle(x.decoder), bottom + 17, app.t("outline.nothing", languageNames(app).target), {
      anchor: "middle",
      size: narrow ? 12 : 14,
      fill: "var(--ink3)",
    }),
  ];
}

/** Returns the path from the sentence through the encoder, the memory and the decoder to the written word. */
function wayOf({ boxes, x, card }: OutlinePlan) {
  const from = boxOf(boxes, "encoder", "embedding").y[1] + 28;
  const [reads, writes] = ["cross_attention", "softmax"].map((id) => boxOf(boxes, "decoder", id).y);
  return `M${middle(x.encoder)} ${from}V${card.encoder[0] - 28}H${(x.encoder[1] + x.decoder[0]) / 2}V${reads[1] + 9}H${middle(x.decoder)}V${writes[0] - 52}`;
}
