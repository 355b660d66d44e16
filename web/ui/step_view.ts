// What a step of the ribbon does with one row: tokens and their ids, the mask, score to weight, and the next words.
import { attentionStages } from "../engine/forward.ts";
import { stepsUnder } from "../engine/mistakes.ts";
import { drawable } from "../engine/sampling.ts";
import { numberText, percentText } from "../engine/number_text.ts";
import { largestAt, rowOf } from "../engine/tensor.ts";
import { element, refill, tokenElement } from "./dom.ts";
import { remark, slider } from "./figure.ts";
import { latestOnly } from "./latest.ts";
import { barCell } from "./numbers_panel.ts";

import type { Sampling } from "../engine/sampling.ts";
import type { Mask, Stack, Tensor } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Child } from "./types.ts";

interface Read {
  step: string;
  stack: Stack;
  attention: string;
  tensors: Tensor[];
}

const POINTS: Record<string, string[]> = {
  tokens: [],
  mask: [],
  scores: ["scores", "weights"],
  softmax: ["scores", "weights"],
  logits: ["logits"],
  next: ["log_probs"],
};
const LIKELIEST = 10;
const HIGHEST_TOP_K = 50;

/**
 * Returns the view of the present step as an element, hidden if the step has none, and the function that redraws it.
 * `where`: returns the stack and the layer of the step. `isHurried`: returns whether steps follow each other too fast
 * to be read.
 */
export function createStepView(
  app: App,
  where: () => { stack: Stack; layer: number },
  isHurried: () => boolean,
) {
  let row = 0;
  const sampling = { temperature: 1, topK: app.engine.live === false ? HIGHEST_TOP_K : 0, topP: 1 };
  const pick = element("select");
  const rowLabel = element("label", {}, pick);
  const sliders = element("div");
  const body = element("div");
  const view = element(
    "div",
    { className: "gf-step-view", role: "group", tabindex: "0" },
    rowLabel,
    sliders,
    body,
  );
  pick.addEventListener("change", () => {
    row = Number(pick.value);
    draw();
  });

  async function prepared(): Promise<Read | null> {
    const { step } = app.state;
    if (step === null || !(step in POINTS) || isHurried()) return null;
    const { stack, layer } = where();
    const attention = `${stack}.layers.${layer}.self_attention`;
    const name = (point: string) => (/^log/.test(point) ? point : `${attention}.${point}`);
    const { trace } = app.result.current;
    const tensors = await Promise.all(POINTS[step].map((point) => trace.get(name(point))));
    return { step, stack, attention, tensors };
  }

  function show(read: Read | null) {
    const { shown } = app.state;
    view.toggleAttribute("data-playing", shown !== null);
    view.hidden = !read && (shown === null || isHurried());
    rowLabel.hidden = !read || POINTS[read.step].length === 0;
    sliders.hidden = read?.step !== "next";
    if (!read) return refill(body);
    view.setAttribute("aria-label", app.t(`step.${read.step}`));
    const words = rowsOf(app, read);
    const at = shown ? words.length - 1 : Math.min(row, words.length - 1);
    const options = words.map((word, place) =>
      element("option", { value: String(place), selected: place === at }, word),
    );
    pick.setAttribute("aria-label", app.t("steps.row"));
    refill(pick, options);
    refill(body, contentOf(read, at, words[at]));
  }
  const draw = latestOnly(app.signal, prepared, show);

  function contentOf(read: Read, at: number, word: string) {
    if (read.step === "tokens") return tokens(app);
    if (read.step === "mask") return maskTable(app, read);
    if (read.step === "logits") return likeliest(app, read.tensors[0], at, word, null);
    if (read.step === "next") return likeliest(app, read.tensors[0], at, word, sampling);
    return stages(app, read, at, word);
  }

  function fill() {
    const { words } = app.result.current.trace;
    const least = words ? 1 : 0; // a recording knows the shares of its words only, so that all words cannot be drawn
    const most = words ? Math.max(1, Math.min(...words.ids.map(({ length }) => length - 1))) : HIGHEST_TOP_K;
    sampling.topK = Math.max(least, Math.min(sampling.topK, most));
    const one: (
      name: keyof typeof sampling,
      low: number,
      high: number,
      step: number,
      all?: number,
    ) => Child = (name, low, high, step, all) => {
      const written = (value: number) =>
        value === all ? app.t("steps.all") : numberText(value, step < 1 ? 2 : 0);
      const range = { low, high, step, value: sampling[name], written };
      return slider(app.t(`steps.${name}`), range, (value) => {
        sampling[name] = value;
        draw();
      });
    };
    refill(
      sliders,
      one("temperature", 0, 2, 0.05),
      one("topK", least, most, 1, 0),
      one("topP", 0.05, 1, 0.05),
    );
  }
  fill();
  app.on(["result", "language"], fill);
  app.on(["result", "language", "step", "shown", "stage", "point", "heads"], () => draw());
  return { element: view, draw };
}

/** Returns the words of the rows that are already computed. */
function rowsOf(app: App, { step, attention }: Read) {
  const { rows, rowSide } = app.labels(
    step === "logits" || step === "next" ? "logits" : `${attention}.query`,
  );
  return rowSide === "target" ? rows.slice(0, app.state.shown || rows.length) : rows;
}

/** Returns the tokens of both sides with their ids; those that are not written yet are left out. */
function tokens(app: App) {
  const { sourceIds, targetIds } = app.result.current;
  const line = (side: "source" | "target", key: string, ids: number[]): Child => {
    const words = app.engine.tokens(side, ids);
    const chips = ids.map((id, at) =>
      element("bdi", { className: "gf-token" }, words[at], element("sub", {}, id)),
    );
    return element("p", {}, remark(`${app.t(key)} `), chips);
  };
  return [
    line("source", "output.source", sourceIds),
    line("target", "ribbon.decoder", targetIds.slice(0, app.state.shown ?? targetIds.length)),
  ];
}

/** Returns a table of which rows may attend to which columns. */
function maskTable(app: App, read: Read) {
  const words = rowsOf(app, read);
  const { data, columns } = app.mask(read.attention);
  const { blocked, lateMask } = stepsUnder(app.result.current.changes);
  const masked = lateMask.masks ? "· 0" : stageText(blocked.of(1), false); // after the softmax, a weight becomes 0
  const cell = (at: number) =>
    element("td", { className: data[at] ? "" : "gf-masked" }, data[at] ? "✓" : masked);
  const rows = words.map((word, row) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("bdi", {}, word)),
      words.map((_, column) => cell(row * columns + column)),
    ),
  );
  return keyTable(app.t("steps.mask", read.attention, masked), words, rows);
}

/**
 * Returns one row from scores to weights, in the order of the model's own steps: usually the scores, the scores that the
 * mask leaves, and their softmax. A column of sums tells whether weights sum to 1.
 */
function stages(
  app: App,
  { step, stack, attention, tensors: [scores, weights] }: Read,
  row: number,
  word: string,
) {
  const [heads, rows, columns] = weights.shape;
  const { stage, point } = app.state;
  const chosen = stage === "point" ? point.head : app.state.heads[stack].head;
  const head = Math.min(chosen, heads - 1);
  const mask = app.mask(attention);
  const start = (head * rows + row) * columns;
  const shown = stack === "decoder" ? (app.state.shown ?? columns) : columns;
  const keys = (app.labels(`${attention}.weights`).columns ?? []).slice(0, shown);
  const lines = linesOf(app, attention, scores, mask, [head, row]);
  lines[lines.length - 1].tensor = weights; // as the model computed them
  const line = ({ id, text, tensor: { data }, isWeight }: Line) =>
    element(
      "tr",
      { "aria-current": id === step ? "step" : null },
      element("th", { scope: "row" }, text),
      keys.map((_, column) => {
        const value = data[start + column];
        const isMasked = !mask.data[row * mask.columns + column] && (id === "mask" || value === 0);
        const share = isWeight && !isMasked ? `--share: ${100 * value}%` : "";
        const className = isMasked ? "gf-masked" : share && "gf-confident";
        return element("td", { className, style: share }, stageText(value, isWeight));
      }),
      element(
        "td",
        {},
        isWeight &&
          numberText(
            data.subarray(start, start + columns).reduce((sum, value) => sum + value, 0),
            3,
          ),
      ),
    );
  const order = lines.map(({ text }) => text).join(" → ");
  return keyTable(app.t("steps.stages", word, attention, head, order), [...keys, "Σ"], lines.map(line));
}

interface Line {
  id: string;
  text: string;
  tensor: Tensor;
  isWeight: boolean;
}

/** Returns the stages from scores to weights under the present changes, by the function of the forward pass. */
function linesOf(
  app: App,
  attention: string,
  scores: Tensor,
  mask: Mask,
  [head, row]: [head: number, row: number],
) {
  const { changes } = app.result.current;
  const steps = stepsUnder(changes);
  const { filled, shares, weights } = attentionStages({ steps }, scores, mask);
  const isEarly = steps.blocked.of(1) !== 1; // the mask replaces scores
  const written = changes.overrides[attention] ?? [];
  const isByHand = written.some(([h, query]) => h === head && query === row);
  const softmax = steps.softmax.over === "key" ? "step.softmax" : "steps.columns";
  const line = (id: string, key: string, tensor: Tensor, isWeight: boolean, isDone = true): Line[] =>
    isDone ? [{ id, text: app.t(key), tensor, isWeight }] : [];
  return [
    ...line("scores", "step.scores", scores, false),
    ...line("mask", "step.mask", filled, false, isEarly),
    ...line("softmax", softmax, shares, true),
    ...line("mask", "step.mask", weights, true, steps.lateMask.masks),
    ...line("hand", "changes.hand", weights, true, isByHand),
  ];
}

function stageText(value: number, isWeight: boolean) {
  return value === -Infinity ? "−∞" : numberText(value, 3, !isWeight);
}

function keyTable(caption: string, words: string[], rows: Child[]) {
  const head = words.map((word) => element("th", { scope: "col" }, element("bdi", {}, word)));
  return element(
    "table",
    { className: "gf-table" },
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, element("td"), head)),
    element("tbody", {}, rows),
  );
}

/**
 * Returns the likeliest words after a word, best first, by their logits or, with `sampling`, their probabilities.
 * `tensor`: logits or log probabilities [T, V].
 */
function likeliest(app: App, tensor: Tensor, row: number, word: string, sampling: Sampling | null) {
  const numbers = rowOf(tensor, row);
  const ids = largestAt(numbers, LIKELIEST);
  const names = app.engine.tokens("target", ids);
  const kept = sampling && drawable(numbers, sampling);
  const barOf = (id: number) => (kept ? (kept.get(id) ?? 0) : numbers[id]);
  const largest = kept ? 1 : Math.max(...ids.map((id) => Math.abs(numbers[id])));
  const { hypothesis, trace } = app.result.current;
  const rows = ids.map((id, at) =>
    element(
      "tr",
      { className: kept && id === hypothesis.ids[row] ? "gf-own" : "" },
      element("th", { scope: "row" }, tokenElement(names[at])),
      element("td", {}, numberText(numbers[id], 3)),
      kept && element("td", {}, numberText(Math.exp(numbers[id]), 4)),
      kept && element("td", {}, numberText(barOf(id), 4)),
      barCell(barOf(id), largest),
    ),
  );
  const heads = [
    "steps.word",
    ...(kept ? ["steps.logProb", "steps.probability", "steps.drawn"] : ["step.logits"]),
  ];
  return [
    element(
      "table",
      { className: ids.some((id) => barOf(id) < 0) ? "gf-terms" : "gf-terms gf-positive" },
      element("caption", {}, app.t("steps.likeliest", ids.length, word)),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          heads.map((key) => element("th", { scope: "col" }, app.t(key))),
          element("td"),
        ),
      ),
      element("tbody", {}, rows),
    ),
    kept && remark(app.t("steps.kept", kept.size, numbers.length)),
    trace.words &&
      remark(` ${app.t("ribbon.recorded", trace.words.ids[row].length, percentText(trace.words.rest[row]))}`),
  ];
}
