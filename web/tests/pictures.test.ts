// The picture of the model, and attention as lines: what they draw.
import assert from "node:assert/strict";
import { test } from "node:test";
import { boxesOf, litBoxes } from "../ui/flow.ts";
import { linesOf } from "../ui/lines.ts";

const config = { encoder_layers: 12, decoder_layers: 2 } as any;
const looks = {
  stage: "map",
  point: { name: "encoder.layers.1.self_attention.query", head: 0 },
  step: null,
  shown: null,
} as const;

test("each layer of a stack has its boxes, between the words and the end", () => {
  assert.equal(boxesOf(config, "encoder").length, 1 + 12 * 2 + 1);
  assert.deepEqual(
    boxesOf(config, "decoder").map(({ point }) => point),
    [
      "target.input",
      "decoder.layers.0.self_attention.weights",
      "decoder.layers.0.cross_attention.weights",
      "decoder.layers.0.feed_forward.activated",
      "decoder.layers.1.self_attention.weights",
      "decoder.layers.1.cross_attention.weights",
      "decoder.layers.1.feed_forward.activated",
      "log_probs",
    ],
  );
});

test("a point lights its own box, also where names begin alike", () => {
  assert.deepEqual(litBoxes(config, { ...looks, stage: "point" }), ["encoder.layers.1.self_attention"]);
  const logits = { name: "logits", head: 0 };
  assert.deepEqual(litBoxes(config, { ...looks, stage: "point", point: logits }), ["log"]);
});

test("the map lights no box", () => {
  assert.deepEqual(litBoxes(config, looks), []);
});

test("lines are the weights that are large enough, the largest first", () => {
  const picture = {
    values: Float32Array.of(9, 0.5, 0.01, 0.49, 0.1, 0.2, 0.7, 1, 0, 0),
    offset: 1,
    rows: 2,
    columns: 3,
    blocked: (row: number, column: number) => row === 1 && column === 0,
  };
  const found = linesOf(picture).map(({ row, column, weight }) => [row, column, Number(weight.toFixed(2))]);
  assert.deepEqual(found, [
    [1, 2, 0.7],
    [0, 0, 0.5],
    [0, 2, 0.49],
    [1, 1, 0.2],
  ]);
});
