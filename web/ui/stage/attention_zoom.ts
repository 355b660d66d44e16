// An attention opened where it stands: one head's row as a worked calculation, beside what it says in words.
import { decimalsOf, fixedText } from "../../engine/number_text.ts";
import { button } from "../dom.ts";
import { attentionPanel, chooseHead } from "./attention_panel.ts";
import { leadOf, readAttention, restingPlaces, sentenceOf } from "./attention_reading.ts";
import { explanationReceipt, receiptTable } from "./receipt.ts";
import { probabilityWords } from "./words.ts";
import { ASKED, KEYED } from "./zoom_parts.ts";

import type { App } from "../app.ts";
import type { Child } from "../types.ts";
import type { Reading } from "./attention_reading.ts";
import type { Heading, Line } from "./receipt.ts";
import type { Lit, Opened } from "./zoom_frame.ts";

/** Opens the attention of `state.zoom`. */
export async function attentionView(app: App, lit: Lit | null): Promise<Opened | null> {
  const reading = await readAttention(app, lit);
  if (!reading) return null;
  const { box, head, row, key, keySide, querySide, open, family, layer } = reading;
  return {
    kind: "att",
    place: [box, head, row, key].join(),
    name: app.t("zoom.place", app.t(`family.${family.id}`), layer, head),
    sides: { keys: keySide, query: querySide },
    sentence: sentenceOf(reading),
    remarks: remarksOn(app, reading),
    receipt: (most) => receipt(app, reading, most),
    cell: { name: `${box}.${open.kind}`, index: [...leadOf(reading, open.kind), open.at] },
    panel: (room) => attentionPanel(app, reading, room),
  };
}

function remarksOn(app: App, reading: Reading): Child[] {
  const { box, notes, open, widest, keys } = reading;
  const resting = restingPlaces(keys, app.labels(`${box}.weights`).columns ?? []);
  return [
    ...new Set([...notes, ...open.made.notes]),
    resting && app.t("zoom.resting", resting.share.toFixed(2), resting.words.join(app.t("word.comma"))),
    widest !== null &&
      reading.weight.steps.length > 0 && // or else no softmax has made the row
      open.kind === "weights" &&
      button(app.t("zoom.widest", widest), () => chooseHead(app, reading, widest), { className: "gfz-link" }),
  ];
}

/**
 * Returns the open number's arithmetic; without a chosen number, the way from the products to the weight. `most`: the
 * number of terms that are listed.
 */
function receipt(app: App, reading: Reading, most: number): Child {
  const { open, score } = reading;
  const { made, kind } = open;
  if (kind === "scores" || !open.isChosen) {
    const names = ["numbers.query", "numbers.key", "zoom.product"].map((key) => app.t(key));
    const headings = names.map((name, at): Heading => [name, [ASKED, KEYED, ""][at]]);
    return receiptTable(app, score.parts, headings, scoreLines(app, reading), most);
  }
  return explanationReceipt(app, made, most, kind === "weights");
}

/** Returns the lines from the sum of the products to the weight. */
function scoreLines(app: App, { score, weight, divisor, steps, keys, key }: Reading): Line[] {
  const { isAllowed, weight: share } = keys[key];
  const decimals = decimalsOf(keys.map((one) => one.score));
  const name = weight.steps.length === 0 ? "word.weight" : `zoom.softmax.${steps.softmax.over}`;
  return [
    ...(score.total ? [[app.t("zoom.sum"), fixedText(score.total.value, decimals)] as const] : []),
    [app.t(divisor ? "zoom.scaled" : "zoom.unscaled", divisor), fixedText(score.result, decimals)],
    ...(isAllowed ? [] : [[app.t("numbers.mask"), app.t(steps.blocked.text)] as const]),
    [app.t(name), probabilityWords(share), KEYED],
  ];
}
