// An attention opened in place: one head's row as a worked calculation, with an explanation.
import { decimalsFor, decimalsOf, fixedText } from "../../engine/number_text.ts";
import { button } from "../app/dom.ts";
import { STEPS } from "../../engine/forward.ts";
import { boxPanel } from "./rows.ts";
import { attentionBox, chooseHead } from "./attention_box.ts";
import { hidesLater, leadOf, readAttention, restingPlaces, sentenceOf } from "./attention_reading.ts";
import { receiptOf } from "./receipt.ts";
import { probabilityWords } from "../app/wording.ts";
import { partOf, weightsBox } from "./weights_panel.ts";
import { readRollout, rolloutBox, rolloutSentence } from "./rollout_panel.ts";
import { ASKED, KEYED, rowAt, turner } from "./zoom_parts.ts";
import { emptyPanel } from "./zoom_segments.ts";
import { segmentOf } from "../app/boxes.ts";

import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Kind, Reading } from "./attention_reading.ts";
import type { Heading, Line, Receipt } from "./receipt.ts";
import type { Matrix, Weights } from "./weights_panel.ts";
import type { Lit, Opened } from "./opened.ts";

/** Opens the attention that `state.zoom` names. */
export async function attentionView(app: App, lit: Lit | null): Promise<Opened | null> {
  const segment = app.state.zoom && segmentOf(app.state, app.state.zoom.box);
  const first = segment === "weights" ? "query" : "weights";
  if (segment === "weights") await matricesOf(app); // fetches the matrices, from which the open number is computed
  const reading = await readAttention(app, lit, first);
  if (!reading) return null;
  const weights = segment === "weights" ? await weightsOf(app, reading) : null;
  const rollout = segment === "rollout" ? await readRollout(app, reading) : null;
  const { box, head, row, key, open, family, layer } = reading;
  return {
    place: [box, head, row, key].join(),
    name: rollout
      ? app.t(`family.${family.id}`)
      : app.t("zoom.place", app.t(`family.${family.id}`), layer, head),
    sentence: rollout ? rolloutSentence(rollout, reading) : sentenceOf(reading),
    remarks: rollout ? [app.t("zoom.rollout.about")] : remarksOn(app, reading),
    cell: { name: `${box}.${open.kind}`, index: [...leadOf(reading, open.kind), open.at] },
    receipt: rollout ? null : receipt(app, reading),
    made: rollout ? null : open.made,
    beside: segment && turner(app, family.stack, { row, rows: reading.queries, word: reading.query }),
    panel: (room) => {
      if (rollout) return boxPanel(app, (tell) => rolloutBox(app, rollout, reading, room, tell));
      if (weights) return boxPanel(app, (tell) => weightsBox(app, weights, room, tell));
      if (segment) return emptyPanel(app.t("numbers.needsModel"));
      return boxPanel(app, (tell) => attentionBox(app, reading, tell));
    },
  };
}

/** Returns the matrices of the opened attention, [W_Q; W_K; W_V] and W_O; null in a recording. */
async function matricesOf({ engine, state, result }: App) {
  if (engine.live === false || !state.zoom) return null;
  const parts = ["input", "output"].map((part) => `${state.zoom?.box}.${part}_projection`);
  const names = parts.flatMap((part) => [`${part}.weight`, `${part}.bias`]);
  const model = await engine.modelWith(names, result.current.changes.checkpoint);
  return parts.map((part) => model.weight(`${part}.weight`));
}

/** Returns the parts of the matrices that belong to the shown head, and the open number's place in these parts. */
async function weightsOf(app: App, reading: Reading): Promise<Weights<Kind> | null> {
  const all = await matricesOf(app);
  if (!all) return null;
  const [input, output] = all;
  const { heads, d_k: keys, d_v: values } = app.config;
  const { box, head, open, query, key, steps, tensors } = reading;
  const { kind, at, made } = open;
  const part = (of: Kind, sub: string, from: number, count: number): Matrix<Kind> => {
    const isTurned = of === "output";
    return { kind: of, sub, weights: partOf(isTurned ? output : input, from, count, isTurned), isTurned };
  };
  const isAsked = kind === "query" || kind === "output";
  const result = { query: "numbers.query", key: "numbers.key", value: "word.value" }[kind as string];
  return {
    box,
    matrices: [
      part("query", "Q", head * keys, keys),
      part("key", "K", (heads + head) * keys, keys),
      part("value", "V", 2 * heads * keys + head * values, values),
      part("output", "O", head * values, values),
    ],
    kind,
    at: kind === "output" || steps.headRow === STEPS.headRow ? at : null,
    names: {
      x:
        kind === "output"
          ? app.t("zoom.step.joined")
          : app.t("zoom.strip.read", isAsked ? query : reading.keys[key].word),
      result: app.t(result ?? "point.end"),
    },
    isAsked,
    result: { numbers: rowAt(tensors[kind], leadOf(reading, kind)), at },
    made,
    open: (of, to) =>
      app.show({
        zoom: { box, key },
        selected: { name: `${box}.${of}`, index: [...leadOf(reading, of), to] },
      }),
  };
}

function remarksOn(app: App, reading: Reading): Child[] {
  const { box, notes, open, widest, keys, unmasked } = reading;
  const resting = restingPlaces(keys, app.labels(`${box}.weights`).columns ?? []);
  const said = [...new Set([...notes, ...open.made.notes])];
  if (unmasked && sentenceOf(reading).key.startsWith("zoom.about.mask")) {
    const share = keys.reduce((sum, { isAllowed }, at) => sum + (isAllowed ? 0 : unmasked[at]), 0);
    const why = hidesLater(reading) && app.t("zoom.mask.why");
    return [...said, why, app.t("zoom.mask.without", probabilityWords(share))];
  }
  return [
    ...said,
    resting && app.t("zoom.resting", resting.share.toFixed(2), resting.words.join(app.t("word.comma"))),
    widest !== null &&
      reading.weight.steps.length > 0 && // if there are no steps, the weights do not come from a softmax
      open.kind === "weights" &&
      button(app.t("zoom.widest", widest), () => chooseHead(app, reading, widest), { className: "gfz-link" }),
  ];
}

/**
 * Returns the open number's arithmetic or, if the reader has chosen no number, the steps from the products to the
 * weight.
 */
function receipt(app: App, reading: Reading): Receipt {
  const { open, score, keys, unmasked, isMask } = reading;
  const headed = (names: string[], classes: string[] = []) =>
    names.map((key, at): Heading => [app.t(key), classes[at]]);
  if (isMask && unmasked) {
    const parts = keys.map(({ word: label, weight: left }, at) => ({ label, left, value: unmasked[at] }));
    return { parts, headings: headed(["numbers.word", "zoom.masked", "zoom.unmasked"]), lines: [] };
  }
  if (open.kind !== "scores" && open.isChosen) return receiptOf(open.made);
  const headings = headed(["numbers.query", "numbers.key", "zoom.product"], [ASKED, KEYED, ""]);
  return { parts: score.parts, headings, lines: scoreLines(app, reading) };
}

/** Returns the lines that lead from the sum of the products to the weight. */
function scoreLines(app: App, { score, weight, divisor, steps, keys, key }: Reading): Line[] {
  const { isAllowed, weight: share } = keys[key];
  const decimals = decimalsOf(keys.map((one) => one.score));
  const sum = score.total?.value ?? 0;
  const scaled = (rounded: number) => fixedText((rounded / sum) * score.result, decimals);
  const name = weight.steps.length === 0 ? "word.weight" : `zoom.softmax.${steps.softmax.over}`;
  return [
    ...(score.total ? [[app.t("zoom.sum"), fixedText(sum, decimalsFor([sum], scaled))] as const] : []),
    [app.t(divisor ? "zoom.scaled" : "zoom.unscaled", divisor), fixedText(score.result, decimals)],
    ...(isAllowed ? [] : [[app.t("numbers.mask"), app.t(steps.blocked.text)] as const]),
    [app.t(name), probabilityWords(share), KEYED],
  ];
}
