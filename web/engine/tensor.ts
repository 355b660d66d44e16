// Tensors: conversion from bytes, and the few operations that a Transformer needs.
//
// Sums are accumulated in double precision and stored in single precision, so that results agree with PyTorch's float32
// to the last digits.

import type { Bytes, Tensor } from "./types.ts";

/** Returns a tensor of this shape, of zeros unless data is given. */
export function tensor(shape: number[], data: Float32Array | null = null): Tensor {
  return { shape, data: data ?? new Float32Array(shape.reduce((product, length) => product * length, 1)) };
}

/** Returns a text as UTF-8. */
export function utf8Of(text: string) {
  return new TextEncoder().encode(text);
}

/** Returns the bytes of base64 text, of a buffer or of a view. */
export function bytesOf(data: Bytes) {
  if (typeof data !== "string") {
    return ArrayBuffer.isView(data)
      ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
      : new Uint8Array(data);
  }
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/**
 * Returns the floats in little-endian bytes. The floats are a copy, because a view is possible only if the bytes are
 * aligned.
 */
export function floatsOf(bytes: Uint8Array<ArrayBuffer>) {
  return new Float32Array(bytes.slice().buffer);
}

let halfValues: Float32Array | null = null;

/** Returns the numbers that the 65 536 half-precision bit patterns encode. */
function halfTable() {
  if (halfValues) return halfValues;
  halfValues = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) halfValues[bits] = fraction ? NaN : sign * Infinity;
    else if (exponent === 0) halfValues[bits] = (sign * fraction) / 2 ** 24;
    else halfValues[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return halfValues;
}

/** Returns the floats that are encoded in little-endian half-precision bytes. */
export function floatsOfHalves(bytes: Uint8Array) {
  const table = halfTable();
  const floats = new Float32Array(bytes.length >> 1);
  for (let i = 0; i < floats.length; i++) floats[i] = table[bytes[2 * i] | (bytes[2 * i + 1] << 8)];
  return floats;
}

/** Returns a row of a matrix, without copying its numbers. */
export function rowOf({ shape: [, width], data }: Tensor, row: number) {
  return data.subarray(row * width, (row + 1) * width);
}

/** Returns whether two rows of numbers are equal. */
export function isSame(a: ArrayLike<number>, b: ArrayLike<number>) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i] && !Object.is(a[i], b[i])) return false;
  return true;
}

/** Returns Σ a[i + n] · b[j + n] over n < length. Adding in four partial sums is faster than in a single sum. */
export function dot(a: Float32Array | Float64Array, i: number, b: Float32Array, j: number, length: number) {
  let s0 = 0,
    s1 = 0,
    s2 = 0,
    s3 = 0,
    n = 0;
  for (; n + 3 < length; n += 4) {
    s0 += a[i + n] * b[j + n];
    s1 += a[i + n + 1] * b[j + n + 1];
    s2 += a[i + n + 2] * b[j + n + 2];
    s3 += a[i + n + 3] * b[j + n + 3];
  }
  for (; n < length; n++) s0 += a[i + n] * b[j + n];
  return s0 + s1 + (s2 + s3);
}

/** Returns x Wᵀ + b: x [T, in], W [out, in] → [T, out]. With `from` and `to`, only these rows of W and b are used. */
export function linear(
  x: Tensor,
  weight: Tensor,
  bias: Tensor | null = null,
  from = 0,
  to = weight.shape[0],
) {
  const [length, width] = x.shape;
  const columns = to - from;
  const out = tensor([length, columns]);
  for (let row = from; row < to; row++) {
    const shift = bias ? bias.data[row] : 0;
    let t = 0;
    for (; t + 3 < length; t += 4) {
      fourDots(x.data, t * width, weight.data, row * width, width);
      for (let i = 0; i < 4; i++) out.data[(t + i) * columns + row - from] = fourProducts[i] + shift;
    }
    for (; t < length; t++) {
      out.data[t * columns + row - from] = dot(x.data, t * width, weight.data, row * width, width) + shift;
    }
  }
  return out;
}

const fourProducts = new Float64Array(4);

/** Puts the products of four rows of x with one row of w into `fourProducts`, so that w is read only once. */
function fourDots(x: Float32Array, i: number, w: Float32Array, j: number, width: number) {
  let s0 = 0,
    s1 = 0,
    s2 = 0,
    s3 = 0;
  for (let n = 0; n < width; n++) {
    const factor = w[j + n];
    s0 += x[i + n] * factor;
    s1 += x[i + width + n] * factor;
    s2 += x[i + 2 * width + n] * factor;
    s3 += x[i + 3 * width + n] * factor;
  }
  fourProducts[0] = s0;
  fourProducts[1] = s1;
  fourProducts[2] = s2;
  fourProducts[3] = s3;
}

/** Returns a + b, element by element. */
export function add(a: Tensor, b: Tensor): Tensor {
  return { shape: a.shape, data: a.data.map((value, i) => value + b.data[i]) };
}

/** Writes the softmax of one row into `out`. −∞ becomes exactly 0, and a row of only −∞ becomes zeros. */
function softmaxRow(scores: Float32Array, out: Float32Array, start: number, width: number) {
  let peak = -Infinity;
  for (let s = 0; s < width; s++) peak = Math.max(peak, scores[start + s]);
  if (peak === -Infinity) return;
  let sum = 0;
  for (let s = 0; s < width; s++) sum += Math.exp(scores[start + s] - peak);
  for (let s = 0; s < width; s++) out[start + s] = Math.exp(scores[start + s] - peak) / sum;
}

/** Returns the length of a tensor's rows, its last axis. */
export function widthOf({ shape }: Tensor) {
  return shape[shape.length - 1];
}

/** Returns the softmax of each row (last axis). */
export function softmax(x: Tensor) {
  const width = widthOf(x);
  const out = tensor(x.shape);
  for (let start = 0; start < x.data.length; start += width) softmaxRow(x.data, out.data, start, width);
  return out;
}

/** Returns the logarithm of the softmax of each row. */
export function logSoftmax(x: Tensor) {
  const width = widthOf(x);
  const out = tensor(x.shape);
  for (let start = 0; start < x.data.length; start += width) {
    const row = x.data.subarray(start, start + width);
    const peak = row.reduce((most, value) => Math.max(most, value), -Infinity);
    const logSum = peak + Math.log(row.reduce((sum, value) => sum + Math.exp(value - peak), 0));
    for (let v = 0; v < width; v++) out.data[start + v] = row[v] - logSum;
  }
  return out;
}

/** Returns the indices, among `places`, of the largest values, largest first; NaN is left out. */
export function largestAt(
  values: ArrayLike<number>,
  count: number,
  among: (place: number) => boolean = () => true,
) {
  const best: number[] = [];
  for (let place = 0; place < values.length; place++) {
    const isFull = best.length === count;
    if (Number.isNaN(values[place]) || (isFull && !(values[place] > values[best[count - 1]]))) continue;
    if (!among(place)) continue;
    if (isFull) best.pop();
    let at = best.length;
    while (at > 0 && values[place] > values[best[at - 1]]) at--;
    best.splice(at, 0, place);
  }
  return best;
}

/** Returns the error function: 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (1·3·5 … (2n+1)), to double precision. */
export function erf(x: number) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let [term, sum] = [x, 0];
  for (let n = 1; sum + term !== sum; n++) {
    sum += term;
    term *= (2 * x * x) / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** Returns the index of the largest number; in a tie, the first one. */
export function largestPlace(numbers: ArrayLike<number>) {
  let best = 0;
  for (let at = 1; at < numbers.length; at++) if (numbers[at] > numbers[best]) best = at;
  return best;
}

/** Returns the weights of one row of a head. */
export function rowOfHead({ shape: [, rows, columns], data }: Tensor, head: number, row: number) {
  const start = (head * rows + row) * columns;
  return data.subarray(start, start + columns);
}

/** Returns the values of a function of 0, 1, 2 and so on. */
export function times<Value>(count: number, valueOf: (at: number) => Value): Value[] {
  return Array.from({ length: count }, (_, at) => valueOf(at));
}

/** Returns the nearest of `count` places. */
export function clamp(at: number, count: number) {
  return Math.max(0, Math.min(count - 1, at));
}
