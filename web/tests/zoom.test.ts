// The parts of opened boxes that need no page: squares and bars, addresses, and sentences about a row of
// attention.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decimalsOf, fixedText } from "../engine/number_text.ts";
import { cosineOf, degrees } from "../ui/box/add_norm_reading.ts";
import { widestHead } from "../ui/box/attention_reading.ts";
import { barPath, largestSize, squarePaths } from "../ui/box/strips.ts";
import { boxName, isBox, placeOfBox } from "../ui/app/boxes.ts";
import { rowAt } from "../ui/box/zoom_parts.ts";

import type { ModelConfig } from "../engine/types.ts";

/** Returns the sides of the squares in a path. */
const sides = (path: string) => [...path.matchAll(/h([\d.]+)v/g)].map(([, side]) => Number(side));

test("a cosine is an angle in whole degrees", () => {
  const cosine = cosineOf(Float32Array.of(1, 0, 2), Float32Array.of(2, 0, -1));
  assert.equal(cosine, 0);
  assert.equal(degrees(cosine), 90);
  assert.equal(degrees(1 + 1e-9), 0);
  assert.equal(cosineOf(Float32Array.of(0, 0), Float32Array.of(1, 1)), 0);
});

test("the area of a square is its number, and numbers below 0 are hollow", () => {
  const { above, below } = squarePaths([4, 1, -4, 0], 4, [18, 30]);
  const [four, one] = sides(above);
  assert.equal(four, 16);
  assert.equal(four ** 2, 4 * one ** 2);
  assert.deepEqual(sides(below), [16 - 1.5]); // the border adds half its width on each side of a hollow square
});

test("bars rise above the middle, or hang below it", () => {
  const ends = [...barPath([1, -0.5, 0], 1, [10, 24]).matchAll(/v(-?[\d.]+)h/g)].map(([, end]) =>
    Number(end),
  );
  assert.deepEqual(ends, [-10, 5, 0.5]);
});

test("numbers have a fixed number of decimals, which small numbers increase", () => {
  assert.equal(fixedText(-0.001), "0.00");
  assert.equal(fixedText(-1.005, 1), "−1.0");
  assert.equal(fixedText(-Infinity), "–∞");
  assert.equal(decimalsOf([0.004, -12]), 2);
  assert.equal(decimalsOf([0.00412]), 5);
  assert.equal(decimalsOf([0, -Infinity]), 2);
  assert.equal(largestSize([1, -3], new Float32Array([2])), 3);
});

test("the widest head is offered only where softmax has little to share", () => {
  const weights = {
    shape: [3, 1, 2],
    data: new Float32Array([0.999, 0.001, 0.5, 0.5, 0.8, 0.2]),
  };
  assert.equal(widestHead(weights, 0, 0), 1);
  assert.equal(widestHead(weights, 0, 1), null);
  assert.equal(widestHead({ shape: [2, 1, 1], data: new Float32Array([1, 1]) }, 0, 0), null);
  assert.deepEqual([...rowAt(weights, [1, 0])], [0.5, 0.5]);
});

test("a box of the figure has an address, and no other name has", () => {
  const config = { norm: "pre", final_norm: true, encoder_layers: 2, decoder_layers: 3 } as ModelConfig;
  for (const name of [
    "encoder.embedding",
    "encoder.norm",
    "encoder.layers.1.feed_forward.norm",
    "decoder.layers.2.cross_attention",
    "decoder.layers.0.self_attention.add",
    "decoder.positions",
    "decoder.linear",
    "decoder.softmax",
  ]) {
    assert.ok(isBox(config, name), name);
    const { stack, layer, id } = placeOfBox(name);
    assert.equal(boxName(stack, id, layer ?? 7), name);
  }
  for (const name of [
    "",
    "source.embedding",
    "encoder.layers.2.feed_forward",
    "encoder.layers.0.cross_attention",
    "encoder.layers.0",
    "encoder.layers.0.softmax",
    "encoder.softmax",
    "decoder.layers.0.feed_forward.output",
    "decoder.layers.0.feed_forward.add.add",
    "decoder.layers.0.feed_forward_residual",
  ])
    assert.ok(!isBox(config, name), name);
  const post = { ...config, norm: "post", final_norm: false } as ModelConfig;
  assert.ok(!isBox(post, "decoder.norm") && !isBox(post, "decoder.layers.0.feed_forward.norm"));
});
