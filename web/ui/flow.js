// One picture of the model: the source words pass the encoder's layers and become the memory; the decoder's layers read
// the written words and the memory, and choose the next word. A line per stack is the residual stream: each box reads
// from it and adds its result to it.
import { hasAny } from "./app.js";
import { element, refill, tokenElement } from "./dom.js";
import { elementSvg, saveMenu } from "./take_away.js";

/**
 * @import { ModelConfig, Stack } from "../engine/types.js"
 * @import { App } from "./app.js"
 * @import { Looks } from "./types.js"
 */

/** @typedef {{id: string, kind: string, point: string, layer: number | null}} Box */

/**
 * The boxes that a step of the ribbon lights, by the step; a step that is missing lights none.
 * @type {Record<string, string[]>}
 */
const KINDS = {
  tokens: ["input"],
  embedding: ["input"],
  positions: ["input"],
  projections: ["self_attention"],
  scores: ["self_attention"],
  mask: ["self_attention"],
  softmax: ["self_attention"],
  heads: ["self_attention"],
  joined: ["self_attention"],
  norm: ["self_attention", "cross_attention", "feed_forward"],
  feed_forward: ["feed_forward"],
  cross: ["memory", "cross_attention"],
  logits: ["next"],
  next: ["next"],
};

/**
 * Returns the boxes of a stack, from its input to its end; `id` is the beginning of the names of a box's points.
 * @param {ModelConfig} config
 * @param {Stack} stack
 * @returns {Box[]}
 */
export function boxesOf(config, stack) {
  const inEncoder = stack === "encoder";
  const side = inEncoder ? "source" : "target";
  const [count, parts] = inEncoder
    ? [config.encoder_layers, ["self_attention", "feed_forward"]]
    : [config.decoder_layers, ["self_attention", "cross_attention", "feed_forward"]];
  const ends = { feed_forward: "activated", self_attention: "weights", cross_attention: "weights" };
  const layers = Array.from({ length: count }, (_, layer) =>
    parts.map((kind) => {
      const id = `${stack}.layers.${layer}.${kind}`;
      return { id, kind, layer, point: `${id}.${ends[/** @type {keyof typeof ends} */ (kind)]}` };
    }),
  );
  const last = inEncoder
    ? { id: "encoder.output", kind: "memory", point: "encoder.output", layer: null }
    : { id: "log", kind: "next", point: "log_probs", layer: null };
  return [{ id: side, kind: "input", point: `${side}.input`, layer: null }, ...layers.flat(), last];
}

/**
 * Returns the ids of the boxes that belong to what the page shows: the point in view, or the step of the ribbon. While
 * words are played, a step lights the stack that works.
 * @param {ModelConfig} config
 * @param {Pick<Looks, "stage" | "point" | "step" | "shown">} looks
 */
export function litBoxes(config, { stage, point, step, shown }) {
  const all = [...boxesOf(config, "encoder"), ...boxesOf(config, "decoder")];
  if (stage === "point") {
    return all.filter(({ id }) => point.name.startsWith(id)).map(({ id }) => id);
  }
  const kinds = (step && KINDS[step]) || [];
  const working = (/** @type {string} */ id) =>
    shown === null || /^(source|encoder\.l)/.test(id) === (shown === 0);
  return all.filter(({ id, kind }) => kinds.includes(kind) && working(id)).map(({ id }) => id);
}

/**
 * Returns the picture as an element.
 * @param {App} app
 */
export function createFlow(app) {
  const { config } = app;
  const picture = element("section", { className: "gf-flow" });
  const frame = element("div", { className: "gf-flow-frame" });
  /** @type {Map<string, HTMLElement>} */
  const boxes = new Map();
  picture.classList.toggle("gf-flow-many", config.encoder_layers + config.decoder_layers > 4);

  const line = () => element("i", { className: "gf-flow-line" });

  /**
   * @param {Box} box
   * @param {Stack} stack
   */
  function draw({ id, kind, point, layer }, stack) {
    const name = app.t(`flow.${kind === "input" ? `${stack}.input` : kind}`);
    const about = kind === "memory" ? app.t("flow.memory.about") : name;
    const where = layer === null ? about : app.t("flow.box", app.t(`flow.${stack}`), layer, name);
    const show = () => app.show({ stage: "point", point: { name: point, head: app.ui.point.head } });
    const made = element(
      "button",
      {
        type: "button",
        className: `gf-flow-box gf-flow-${kind}`,
        "aria-label": where,
        title: where,
        onclick: show,
      },
      layer === null ? name : app.t(`flow.${kind}.short`),
      layer !== null && element("i", { className: "gf-flow-stubs" }),
      kind === "cross_attention" && element("i", { className: "gf-flow-tap" }),
    );
    boxes.set(id, made);
    return made;
  }

  /**
   * @param {Stack} stack
   * @param {string[]} words
   */
  function row(stack, words) {
    const all = boxesOf(config, stack);
    const [input, ...rest] = all.map((box) => draw(box, stack));
    refill(
      input,
      words.length > 0 &&
        element(
          "span",
          { className: "gf-flow-words" },
          words.map((word) => tokenElement(word)),
        ),
    );
    input.setAttribute("aria-label", `${input.title}: ${words.join(" ")}`);
    const per = stack === "encoder" ? 2 : 3;
    const last = rest.pop();
    const layers = Array.from({ length: rest.length / per }, (_, layer) =>
      element(
        "div",
        { className: "gf-flow-layer" },
        element("small", { "aria-hidden": "true" }, layer),
        rest.slice(layer * per, (layer + 1) * per),
      ),
    );
    const stream = element(
      "div",
      { className: "gf-flow-stream", title: app.t("flow.stream") },
      line(),
      layers,
    );
    return { line: [element("strong", {}, app.t(`flow.${stack}`)), input, stream], last };
  }

  function fill() {
    const { sourceTokens, targetTokens, outputTokens } = app.result.current;
    const { word } = app.ui;
    const shown = app.ui.shown ?? Math.min((word ?? Infinity) + 1, targetTokens.length);
    picture.setAttribute("aria-label", app.t("flow.label"));
    const encoder = row("encoder", sourceTokens);
    const decoder = row("decoder", targetTokens.slice(0, Math.max(1, shown)));
    const isWritten = app.ui.shown === null || app.ui.step === "next";
    decoder.last?.append(" ", tokenElement(isWritten ? outputTokens[shown - 1] : "…"));
    refill(
      picture,
      element("div", { className: "gf-flow-row gf-flow-encoder" }, encoder.line),
      element("div", { className: "gf-flow-row gf-flow-middle" }, encoder.last),
      element("div", { className: "gf-flow-row gf-flow-decoder" }, line(), decoder.line, decoder.last),
    );
    refill(
      frame,
      picture,
      saveMenu(app, "model", () => elementSvg(app, picture, app.t("flow.label"))),
    );
    light();
  }

  function light() {
    const lit = litBoxes(config, app.ui);
    for (const [id, box] of boxes) {
      if (lit.includes(id)) box.setAttribute("aria-current", "true");
      else box.removeAttribute("aria-current");
    }
  }
  fill();
  app.on("result", fill);
  app.on("ui", (keys) => {
    if (hasAny(keys, "language", "shown", "word") || (app.ui.shown !== null && keys.includes("step"))) fill();
    else if (hasAny(keys, "step", "stage", "point")) light();
  });
  return frame;
}
