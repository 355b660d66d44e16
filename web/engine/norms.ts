// The norm of the residual stream: its computation, its weights, and its name in formulas. Only one other file
// depends on the kind of norm: arithmetic.ts, which explains norms step by step.
import { tensor } from "./tensor.ts";

import type { Run } from "./run.ts";
import type { Deviation, Tensor } from "./types.ts";

/** The name of the norm in formulas, as in LayerNorm(x). */
export const NORM = "LayerNorm";

/** The divisor of a layer norm: √(variance + 1e-5), with the biased variance. */
export const DEVIATION: Deviation = {
  of: (variance) => Math.sqrt(variance + 1e-5),
  count: (width) => width,
  symbol: "√(variance + ε)",
  python: "(variance + 1e-5) ** 0.5",
};

/** Returns the names of a norm's weights. */
export const normWeights = (name: string) => [`${name}.weight`, `${name}.bias`];

/** Returns the norm of x, [T, D], with the weights of this name; if `name` is null, the gain is 1 and the bias 0. */
export function norm(run: Run, name: string | null, x: Tensor) {
  const width = run.config.d_model;
  const gain = name ? run.weight(`${name}.weight`) : tensor([width], new Float32Array(width).fill(1));
  const bias = name ? run.weight(`${name}.bias`) : tensor([width]);
  return layerNorm(x, gain, bias, run.steps.deviation);
}

/** Returns (x − mean) / deviation · γ + β for each row of x. */
export function layerNorm(x: Tensor, gamma: Tensor, beta: Tensor, deviation: Deviation = DEVIATION) {
  const width = x.shape[1];
  const out = tensor(x.shape);
  for (let start = 0; start < x.data.length; start += width) {
    const { mean, divisor } = momentsOf(x.data.subarray(start, start + width), deviation);
    for (let d = 0; d < width; d++) {
      out.data[start + d] = ((x.data[start + d] - mean) / divisor) * gamma.data[d] + beta.data[d];
    }
  }
  return out;
}

/**
 * Carries a direction back through a norm: returns the direction in the norm's input that has the same effect as
 * `direction` in the norm's output. The mean and the deviation of the row are held fixed. `gain` is null if the norm
 * has no learned weights. `stream`: the row that the norm reads.
 */
export function throughNorm(
  direction: Float64Array,
  stream: Float32Array,
  gain: Float32Array | null,
  deviation: Deviation,
) {
  const width = stream.length;
  const { divisor } = momentsOf(stream, deviation);
  const scaled = direction.map((value, d) => (value * (gain ? gain[d] : 1)) / divisor);
  const mean = scaled.reduce((sum, value) => sum + value, 0) / width;
  return scaled.map((value) => value - mean);
}

/** Returns the mean and the variance of a row, and the divisor of its norm. */
export function momentsOf(row: Float32Array, deviation: Deviation) {
  let mean = 0;
  for (const value of row) mean += value / row.length;
  let squares = 0;
  for (const value of row) squares += (value - mean) ** 2;
  const variance = squares / deviation.count(row.length);
  return { mean, variance, divisor: deviation.of(variance) };
}
