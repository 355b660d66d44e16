// One picture of the model: the source words pass the encoder's layers and become the memory; the decoder's layers read
// the written words and the memory, and choose the next word. A line per stack is the residual stream: each box reads
// from it and adds its result to it.
import { element, refill, tokenElement } from "./dom.ts";
import { elementSvg, saveMenu } from "./take_away.ts";

import type { ModelConfig, Stack } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { State } from "./state.ts";
import type { Looks } from "./types.ts";

interface Box {
  id: string;
  kind: string;
  point: string;
  layer: number | null;
}

/** What the boxes and the words in them are drawn from. */
const FILLED: (keyof State)[] = ["result", "language", "word"];

/** Returns the boxes of a stack, from its input to its end; `id` is the beginning of the names of a box's points. */
export function boxesOf(config: ModelConfig, stack: Stack): Box[] {
  const inEncoder = stack === "encoder";
  const side = inEncoder ? "source" : "target";
  const [count, parts] = inEncoder
    ? [config.encoder_layers, ["self_attention", "feed_forward"]]
    : [config.decoder_layers, ["self_attention", "cross_attention", "feed_forward"]];
  const ends = { feed_forward: "activated", self_attention: "weights", cross_attention: "weights" };
  const layers = Array.from({ length: count }, (_, layer) =>
    parts.map((kind) => {
      const id = `${stack}.layers.${layer}.${kind}`;
      return { id, kind, layer, point: `${id}.${ends[kind as keyof typeof ends]}` };
    }),
  );
  const last = inEncoder
    ? { id: "encoder.output", kind: "memory", point: "encoder.output", layer: null }
    : { id: "log", kind: "next", point: "log_probs", layer: null };
  return [{ id: side, kind: "input", point: `${side}.input`, layer: null }, ...layers.flat(), last];
}

/** Returns the ids of the boxes that belong to the point in view. */
export function litBoxes(config: ModelConfig, { stage, point }: Pick<Looks, "stage" | "point">) {
  if (stage !== "point") return [];
  const all = [...boxesOf(config, "encoder"), ...boxesOf(config, "decoder")];
  return all.filter(({ id }) => point.name.startsWith(id)).map(({ id }) => id);
}

/** Returns the picture as an element. */
export function createFlow(app: App) {
  const { config } = app;
  const picture = element("section", { className: "gf-flow" });
  const frame = element("div", { className: "gf-flow-frame" });
  const boxes: Map<string, HTMLElement> = new Map();
  picture.classList.toggle("gf-flow-many", config.encoder_layers + config.decoder_layers > 4);

  const line = () => element("i", { className: "gf-flow-line" });

  function draw({ id, kind, point, layer }: Box, stack: Stack) {
    const name = app.t(`flow.${kind === "input" ? `${stack}.input` : kind}`);
    const about = kind === "memory" ? app.t("flow.memory.about") : name;
    const where = layer === null ? about : app.t("flow.box", app.t(`flow.${stack}`), layer, name);
    const show = () => app.show({ stage: "point", point: { name: point, head: app.state.point.head } });
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

  function row(stack: Stack, words: string[]) {
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
    const { word } = app.state;
    const shown = Math.min((word ?? Infinity) + 1, targetTokens.length);
    picture.setAttribute("aria-label", app.t("flow.label"));
    const encoder = row("encoder", sourceTokens);
    const decoder = row("decoder", targetTokens.slice(0, Math.max(1, shown)));
    decoder.last?.append(" ", tokenElement(outputTokens[shown - 1]));
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
    const lit = litBoxes(config, app.state);
    for (const [id, box] of boxes) {
      if (lit.includes(id)) box.setAttribute("aria-current", "true");
      else box.removeAttribute("aria-current");
    }
  }
  fill();
  app.on([...FILLED, "stage", "point"], (_, changed) => {
    if (FILLED.some((key) => changed.has(key))) fill();
    else light();
  });
  return frame;
}
