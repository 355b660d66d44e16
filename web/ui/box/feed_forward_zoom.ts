// A feed-forward network opened in place: its units at one word, with an explanation.
import { ACTIVATIONS } from "../../engine/activations.ts";
import { fixedText, decimalsOf } from "../../engine/number_text.ts";
import { boxPanel } from "./rows.ts";
import { button } from "../app/dom.ts";
import { feedForwardBox } from "./feed_forward_box.ts";
import { askForWords, readFeedForward, sentenceOf, wordsWait } from "./feed_forward_reading.ts";
import { receiptOf } from "./receipt.ts";
import { partOf, weightsBox } from "./weights_panel.ts";
import { KEYED, turner } from "./zoom_parts.ts";
import { emptyPanel } from "./zoom_segments.ts";
import { segmentOf } from "../app/boxes.ts";

import type { Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Kind, Reading } from "./feed_forward_reading.ts";
import type { Heading, Line, Receipt } from "./receipt.ts";
import type { Weights } from "./weights_panel.ts";
import type { Lit, Opened } from "./opened.ts";

/** Opens the feed-forward network that `state.zoom` names. */
export async function feedForwardView(app: App, lit: Lit | null): Promise<Opened | null> {
  const segment = app.state.zoom && segmentOf(app.state, app.state.zoom.box);
  const expand = segment && (await expandOf(app));
  const reading = await readFeedForward(app, lit, segment ? "hidden" : "activated");
  if (!reading) return null;
  const { box, stack, layer, row, unit, open, notes, names } = reading;
  return {
    place: [box, row, unit].join(),
    name: app.t("zoom.layer", app.t(`numbers.feed.${stack}`), layer),
    sentence: sentenceOf(reading, app.t("word.comma")),
    remarks: [
      ...new Set([...notes, ...open.made.notes]),
      wordsWait(app) && button(app.t("zoom.units.ask"), () => askForWords(app), { className: "gfz-link" }),
    ],
    cell: { name: names[open.kind], index: [row, open.at] },
    receipt: receipt(app, reading),
    made: open.made,
    beside: segment && turner(app, stack, reading),
    panel: (room) => {
      if (segment && (!expand || !reading.contract)) return emptyPanel(app.t("numbers.needsModel"));
      if (expand && reading.contract) {
        const weights = weightsOf(app, reading, [expand, reading.contract]);
        return boxPanel(app, (tell) => weightsBox(app, weights, room, tell));
      }
      return boxPanel(app, (tell) => feedForwardBox(app, reading, tell));
    },
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
function receipt(app: App, { open, hidden, unit, numbers }: Reading): Receipt {
  if (open.kind === "read" || open.kind === "output") return receiptOf(open.made);
  const headings = hidden.columns.map((text): Heading => [text]);
  const [before, after] = [numbers.hidden[unit], numbers.activated[unit]];
  const written = (value: number) => fixedText(value, decimalsOf([before, after]));
  const lines: Line[] = [
    [app.t("zoom.sum"), written(before)],
    [ACTIVATIONS[app.config.activation].name, written(after), KEYED],
  ];
  return { formula: hidden.formula, parts: hidden.parts, headings, lines };
}
