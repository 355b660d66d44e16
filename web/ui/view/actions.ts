// What the reader can choose on the figure: a word, a head, a layer, a box, a guess.
import { boxName, boxOfPanel } from "../app/boxes.ts";
import { headsAt } from "../app/heads.ts";
import { clamp } from "../../engine/tensor.ts";
import { viewOf } from "../box/zoom_views.ts";

import type { Stack } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { FamilyId } from "../app/types.ts";
import type { FigureView } from "../figure/figure_view.ts";
import type { StageNumbers } from "../figure/shown.ts";

/** Returns the full name of a box, with the number of the open layer, if the box can be opened. */
export function openableName(box: string, { open }: StageNumbers) {
  const [stack, id] = box.split(/\.(.*)/) as [Stack, string];
  const name = boxName(stack, id, open[stack]);
  return viewOf(name) && name;
}

/** Highlights a word: a source word, or an output word that was clicked where it is written or read. */
export function chooseWord(app: App, kind: string, column: number, box: string) {
  if (kind === "encoder") return app.show({ sourceWord: column }); // keeps the highlighted output word
  app.show({
    row: column,
    sourceWord: null,
    ...(box.startsWith("encoder") && { box: "decoder.cross_attention" }),
  });
}

export function chooseHead(app: App, family: FamilyId, head: number) {
  if (head >= app.config.heads) return;
  const { heads } = app.state;
  app.show({
    heads: { ...heads, [family]: { ...heads[family], head } },
    ...(family !== "encoder" && { sourceWord: null }), // a head of the encoder keeps the highlighted source word
  });
}

export function openLayer(app: App, stack: Stack, layer: number) {
  app.show({ heads: headsAt(app.state.heads, stack, layer), sourceWord: null });
}

/**
 * Opens the panel of guesses at the clicked guess's box, or at a closed layer's last box. If "why" was clicked, opens
 * the panel "Why?".
 */
export function openGuess(app: App, at: string, { row, open }: StageNumbers) {
  if (at === "why") return app.show({ zoom: boxOfPanel(app.config, at), panel: at, row });
  const [, layer = open.decoder] = /^layer\.(\d+)$/.exec(at) ?? [];
  const box = boxName("decoder", /^layer/.test(at) ? "feed_forward.add" : at, Number(layer));
  app.show({ zoom: { box, key: null }, panel: "guesses", row });
}

/** Highlights a box; if the box is already highlighted, or in a chapter, opens it. */
export function openBox(app: App, { pen, act }: FigureView, box: string) {
  if (box !== app.state.box && !act) return app.show({ box });
  const name = pen && openableName(box, pen.numbers);
  if (!name) return; // addresses may name boxes that cannot be opened
  const { row, source } = pen.numbers;
  app.show({ zoom: { box: name, key: null }, panel: "calculation", row, sourceWord: source });
}

/** Highlights the box above or below; above the encoder is cross-attention. */
export function moveBox(app: App, { pen }: FigureView, up: number) {
  const [stack, id] = app.state.box.split(/\.(.*)/) as [Stack, string];
  const order = (pen?.geometry[stack].boxes ?? []).map((box) => box.id);
  const at = order.indexOf(id) + up;
  if (at >= order.length && stack === "encoder") return app.show({ box: "decoder.cross_attention" });
  app.show({ box: `${stack}.${order[clamp(at, order.length)]}` });
}
