// The paper's steps in order, and where each is shown.
import { NORM } from "../engine/norms.ts";
import { layersOf } from "./heads.ts";

import type { ModelConfig, Stack } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Looks } from "./types.ts";

export interface Step {
  id: string;
  formula: (config: ModelConfig) => string;
  /** Of the paper. */
  section: string;
  point: string | null;
  decoder: boolean;
}

/** The stack and the layer in which a step is shown; null means the map's present layer. */
export interface Place {
  stack: Stack;
  layer: number | null;
}

function aStep(id: string, formula: Step["formula"], section: string, point = "", decoder = false): Step {
  return { id, formula, section, point: point || null, decoder };
}

/**
 * The steps: id, formula, section, and the point to show. Without a point, the map is shown. S, L and A
 * stand for a side, a layer and its self-attention. Steps with `decoder` exist in the decoder only.
 */
export const STEPS = [
  aStep("tokens", () => "x₁ x₂ … <eos>", "5.1"),
  aStep("embedding", () => "E[token] · √d_model", "3.4", "S.embedding"),
  aStep("positions", positionFormula, "3.5", "S.positions"),
  aStep("projections", () => "Q = x W_Q, K = x W_K, V = x W_V", "3.2.2", "A.query"),
  aStep("scores", () => "Q Kᵀ / √d_k", "3.2.1", "A.scores"),
  aStep("mask", () => "score := −∞", "3.2.3"),
  aStep("softmax", () => "exp(score) / Σ exp(scores)", "3.2.1", "A.weights"),
  aStep("heads", () => "weights · V", "3.2.1", "A.heads"),
  aStep("joined", () => "Concat(head₁, … head_h) W_O", "3.2.2", "A.joined"),
  aStep("norm", normFormula, "3.1", "A.normed"),
  aStep(
    "cross",
    () => "Q = y W_Q, K = memory W_K, V = memory W_V",
    "3.2.3",
    "L.cross_attention.weights",
    true,
  ),
  aStep("feed_forward", innerFormula, "3.3", "L.feed_forward.activated"),
  aStep("logits", () => "y Wᵀ", "3.4", "logits", true),
  aStep("next", () => "softmax(logits)", "3.4", "log_probs", true),
];
export const ENCODER = STEPS.filter((step) => !step.decoder);
export const LAST_OF_ENCODER = ENCODER[ENCODER.length - 1];

function positionFormula({ positions }: ModelConfig) {
  if (positions === "learned") return "x = embedding + P[pos]";
  return positions === "none" ? "x = embedding" : "x = embedding + (sin, cos)(pos / 10000^(2i/d_model))";
}

function normFormula({ norm }: ModelConfig) {
  return norm === "pre" ? `x + Sublayer(${NORM}(x))` : `${NORM}(x + Sublayer(x))`;
}

function innerFormula({ activation }: ModelConfig) {
  return `${activation === "relu" ? "max(0, x W₁ + b₁)" : `${activation}(x W₁ + b₁)`} W₂ + b₂`;
}

/** Returns the selection that shows a step in a stack's layer. */
export function lookAt(app: App, { point }: Step, place: Place): Partial<Looks> {
  const { stack } = place;
  const layer = layerOf(app, place);
  if (!point && place.layer === null) return { stage: "map" };
  if (!point) {
    const { encoder, cross, decoder } = app.state.heads;
    const moved =
      stack === "encoder"
        ? { encoder: { ...encoder, layer } }
        : { cross: { ...cross, layer }, decoder: { ...decoder, layer } };
    return { stage: "map", heads: { ...app.state.heads, ...moved } };
  }
  const full: Record<string, string> = {
    S: stack === "encoder" ? "source" : "target",
    L: `${stack}.layers.${layer}`,
    A: `${stack}.layers.${layer}.self_attention`,
  };
  const name = point.replace(/^[SLA](?=\.)/, (letter) => full[letter]);
  return { stage: "point", point: { name, head: app.state.point.head } };
}

/** Returns the layer of a place. */
export function layerOf(app: App, place: Place) {
  return Math.min(place.layer ?? 0, layersOf(app.config, place) - 1);
}

/** Returns whether the reader has left the marked step; false while words are played. */
export function strayed(app: App, place: Place) {
  const step = STEPS.find(({ id }) => id === app.state.step);
  if (!step || app.state.shown !== null) return false;
  const here = lookAt(app, step, place);
  return (
    here.stage !== app.state.stage || (here.stage === "point" && here.point?.name !== app.state.point.name)
  );
}
