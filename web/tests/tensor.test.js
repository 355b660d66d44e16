// The operations that a Transformer is made of, on numbers small enough to be done by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dot, floatsOfHalves, layerNorm, linear, softmax, tensor } from "../engine/tensor.js";

/** @param {number[][]} rows */
const matrix = (rows) => tensor([rows.length, rows[0].length], Float32Array.from(rows.flat()));

test("a linear map uses the rows of its weights that it is told, for each number of rows of x", () => {
  const weight = matrix([
    [1, 2],
    [3, 4],
    [5, 6],
  ]);
  const bias = tensor([3], Float32Array.of(10, 20, 30));
  for (let length = 1; length <= 9; length++) {
    const x = matrix(Array.from({ length }, (_, t) => [t, 1]));
    const { shape, data } = linear(x, weight, bias, 1, 3);
    assert.deepEqual(shape, [length, 2]);
    assert.deepEqual([...data], Array.from({ length }, (_, t) => [3 * t + 24, 5 * t + 36]).flat());
  }
});

test("a product of any length has all its terms", () => {
  const ones = new Float32Array(20).fill(1);
  for (let length = 0; length <= 9; length++) {
    assert.equal(
      dot(
        Float32Array.from(ones, (_, i) => i),
        2,
        ones,
        0,
        length,
      ),
      (length * (length + 3)) / 2,
    );
  }
});

test("a row that may look at nothing gets no weight, and a hidden score exactly 0", () => {
  const { data } = softmax(
    matrix([
      [-Infinity, -Infinity],
      [0, -Infinity],
      [1000, 1000],
    ]),
  );
  assert.deepEqual([...data], [0, 0, 1, 0, 0.5, 0.5]);
});

test("the layer norm's variance is the biased one", () => {
  const [ones, zeros] = [tensor([2], Float32Array.of(1, 1)), tensor([2])];
  const { data } = layerNorm(matrix([[3, 7]]), ones, zeros);
  assert.deepEqual(
    [...data],
    [-1, 1].map((sign) => Math.fround((sign * 2) / Math.sqrt(4 + 1e-5))),
  );
});

test("halves are what their bits say", () => {
  const bits = Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x7c00);
  assert.deepEqual([...floatsOfHalves(new Uint8Array(bits.buffer))], [1, -2, 2 ** -24, 65504, -0, Infinity]);
});
