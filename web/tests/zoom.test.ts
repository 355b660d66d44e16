// The parts of opened boxes that need no page: layouts, squares and bars, addresses, and sentences about a row of
// attention.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decimalsOf, fixedText } from "../engine/number_text.ts";
import { frameOf, headBoxes } from "../ui/stage/attention_frame.ts";
import { cosineOf, degrees } from "../ui/stage/add_norm_reading.ts";
import { frameOf as sumFrame } from "../ui/stage/add_norm_zoom.ts";
import { widestHead } from "../ui/stage/attention_reading.ts";
import { frameOf as networkFrame } from "../ui/stage/feed_forward_frame.ts";
import { barPath, largestSize, squarePaths } from "../ui/stage/strips.ts";
import { boxName, isBox, placeOfBox } from "../ui/boxes.ts";
import { rowAt } from "../ui/stage/zoom_parts.ts";

import type { Kind as Row } from "../ui/stage/add_norm_reading.ts";
import type { ModelConfig } from "../engine/types.ts";

const LAPTOP = { width: 924, height: 624 };
const DESK = { width: 1084, height: 804 };
const COUNT = { keys: 14, keyWidth: 16, valueWidth: 16 };

test("fourteen words fit a desk and a laptop without scrolling", () => {
  for (const room of [DESK, LAPTOP]) {
    const frame = frameOf(room, COUNT);
    assert.ok(frame.width <= room.width && frame.height <= room.height);
    assert.ok(frame.row >= 18);
  }
  assert.equal(frameOf(DESK, COUNT).keys.cell, 18);
});

test("the parts of the panel never overlap, whatever the model and the sentence", () => {
  for (const room of [DESK, LAPTOP, { width: 358, height: 400 }])
    for (const keys of [1, 14, 60])
      for (const keyWidth of [1, 5, 16, 64])
        for (const valueWidth of [1, 7, 64]) {
          const frame = frameOf(room, { keys, keyWidth, valueWidth });
          const { output, joined, sum, query, rows, row } = frame;
          const edges = [output, joined, sum].flatMap(({ y, height }) => [y, y + height]);
          const down = [
            ...edges,
            rows,
            rows + (keys + 2) * row,
            query.y,
            query.y + query.height,
            frame.height,
          ];
          assert.deepEqual(
            down,
            [...down].sort((a, b) => a - b),
          );
          const keysEnd = frame.keys.x + frame.keys.cell * keyWidth;
          const right = [frame.keys.x, keysEnd, frame.scores, frame.weights, frame.values.x, frame.width];
          assert.deepEqual(
            right,
            [...right].sort((a, b) => a - b),
          );
          assert.ok(row >= 18 && row <= 30);
        }
});

test("the heads stand side by side from the keys to the values", () => {
  const frame = frameOf(DESK, COUNT);
  for (const heads of [1, 8, 16]) {
    const boxes = headBoxes(frame, heads);
    assert.equal(boxes.at(0), frame.keys.x);
    assert.ok(Math.abs(boxes.at(heads - 1) + boxes.width - (frame.width - 36)) < 1e-6);
  }
});

/** Returns the sides of the squares in a path. */
const sides = (path: string) => [...path.matchAll(/h([\d.]+)v/g)].map(([, side]) => Number(side));

test("the parts of an opened feed-forward network never overlap, and all its units are in the grid", () => {
  for (const room of [DESK, LAPTOP, { width: 358, height: 400 }])
    for (const units of [1, 24, 256, 2048])
      for (const hasMatrices of [true, false])
        for (const listed of [1, 12]) {
          const frame = networkFrame(room, { units, listed, hasMatrices, hasScores: hasMatrices });
          const { output, grid, rows, row, read, widths, width, height } = frame;
          const columns = widths.map((_, at) => widths.slice(0, at + 1).reduce((sum, one) => sum + one));
          assert.ok(grid.rows * grid.columns >= units && (grid.rows - 1) * grid.columns < units);
          assert.ok(grid.columns * grid.cell <= frame.wide.width + 1e-6);
          const end = rows + (listed + (hasMatrices ? 2 : 0)) * row;
          const gridEnd = grid.y + grid.rows * grid.cell;
          const down = [0, output.y, output.y + output.height, grid.y, gridEnd, rows, end, read.y];
          for (const list of [
            [...down, read.y + read.height, height],
            [0, ...columns, width + 1e-6],
          ])
            assert.deepEqual(
              list,
              [...list].sort((a, b) => a - b),
            );
        }
  const { width, height } = networkFrame(LAPTOP, {
    units: 256,
    listed: 12,
    hasMatrices: true,
    hasScores: true,
  });
  assert.ok(width <= LAPTOP.width && height <= LAPTOP.height);
});

test("the rows of Add & norm stand one above the other and fit a laptop", () => {
  const all: Row[] = ["input", "output", "added", "scaled", "gain", "bias", "normed"];
  for (const kinds of [all, all.slice(0, 3), ["input" as const, ...all.slice(3)]])
    for (const room of [DESK, LAPTOP, { width: 358, height: 400 }]) {
      const { rows, height } = sumFrame(room, kinds);
      assert.ok(height <= Math.max(room.height, 620));
      assert.ok(rows[0].y + rows[0].height < height && rows[rows.length - 1].y >= 24);
      for (const [at, { y, height: tall }] of rows.entries()) {
        assert.ok(tall > 16);
        if (at > 0) assert.ok(y + tall <= rows[at - 1].y - 24); // leaves room for the open column's number
      }
    }
});

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
