// The operations of a Transformer, on numbers small enough to be computed by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { layerNorm } from "../engine/norms.ts";
import { dot, floatsOfHalves, largestAt, linear, softmax, tensor } from "../engine/tensor.ts";

const matrix = (rows: number[][]) => tensor([rows.length, rows[0].length], Float32Array.from(rows.flat()));

test("a linear map uses the given rows of its weights, for every number of rows of x", () => {
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

test("a dot product of any length sums all its terms", () => {
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

test("a row of only −∞ becomes zeros, and a hidden score gets exactly 0", () => {
  const { data } = softmax(
    matrix([
      [-Infinity, -Infinity],
      [0, -Infinity],
      [1000, 1000],
    ]),
  );
  assert.deepEqual([...data], [0, 0, 1, 0, 0.5, 0.5]);
});

test("the layer norm uses the biased variance", () => {
  const [ones, zeros] = [tensor([2], Float32Array.of(1, 1)), tensor([2])];
  const { data } = layerNorm(matrix([[3, 7]]), ones, zeros);
  assert.deepEqual(
    [...data],
    [-1, 1].map((sign) => Math.fround((sign * 2) / Math.sqrt(4 + 1e-5))),
  );
});

test("half-precision numbers are decoded from their bits", () => {
  const bits = Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x7c00);
  assert.deepEqual([...floatsOfHalves(new Uint8Array(bits.buffer))], [1, -2, 2 ** -24, 65504, -0, Infinity]);
});

test("the largest values are found in order, without NaN and without excluded places", () => {
  const values = Float32Array.of(3, NaN, 5, -1, 5, 4, -Infinity);
  assert.deepEqual(largestAt(values, 3), [2, 4, 5]);
  assert.deepEqual(
    largestAt(values, 2, (place) => place !== 2),
    [4, 5],
  );
  assert.deepEqual(largestAt(values, 9), [2, 4, 5, 0, 3, 6]);
  assert.deepEqual(largestAt([], 2), []);
});
