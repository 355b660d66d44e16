// The forward pass of the paper: ids in, log probabilities out, every intermediate number kept by name.
//
// Axes: S source positions · T target positions · D d_model · H heads · K width of a head's query and key · W width of
// a head's value · V vocabulary. Every value passes through `run.tap(name, value)`, which keeps it. `run.steps` are the
// steps that a classic mistake can replace: STEPS, at the end of this file, contains each step as in the paper, and
// mistakes.ts contains the wrong steps. A step also contains the text with which arithmetic.ts explains the step.

import { add, dot, isSame, linear, logSoftmax, rowOf, softmax, tensor, times } from "./tensor.ts";
import { ACTIVATIONS } from "./activations.ts";
import { SUBLAYERS, layerNames } from "./model.ts";
import { DEVIATION, norm } from "./norms.ts";

import type { Products, Run } from "./run.ts";
import type {
  Changes,
  KeyValue,
  Mask,
  ModelConfig,
  Points,
  Sentence,
  Side,
  Stack,
  Steps,
  Tensor,
} from "./types.ts";

/**
 * Returns all points by name, for a source (with eos) and a target (with bos). `encoded`: the encoder's points, if
 * the encoder has already read this source with the same `encoderKey`.
 */
export async function forward(run: Run, { sourceIds, targetIds }: Sentence, encoded: Points | null = null) {
  for (const [name, value] of encoded ?? []) run.points.set(name, value);
  const memory = encoded?.get("encoder.output") ?? (await encode(run, sourceIds));
  await decode(run, targetIds, memoryKeys(run, memory), sourceIds);
  return run.points;
}

/** Returns the memory [S, D] of a source. Paper: §3.1, Figure 1 left. */
export async function encode(run: Run, sourceIds: number[]) {
  const mask = paddingMask(sourceIds, sourceIds.length, run.config.pad_id);
  let x = embed(run, "source", sourceIds);
  for (const layer of layerNames("encoder", run.config.encoder_layers)) {
    const [self, feed] = ["self_attention", "feed_forward"].map((kind) => `${layer}.${kind}`);
    x = residual(run, self, x, (y) => selfAttention(run, self, y, mask));
    x = residual(run, feed, x, (y) => feedForward(run, feed, y));
    await run.pause();
  }
  return run.tap("encoder.output", finalNorm(run, "encoder", x));
}

/** Returns the keys [H, S, K] and values [H, S, W] of the memory for each decoder layer. */
export function memoryKeys(run: Run, memory: Tensor) {
  return layerNames("decoder", run.config.decoder_layers).map((layer) =>
    keyValue(run, `${layer}.cross_attention`, memory),
  );
}

/** The keys [H, T, K] and values [H, T, W] of the target tokens so far, in one decoder layer. */
export class LayerCache {
  known: KeyValue | null;

  constructor(known: KeyValue | null) {
    this.known = known;
  }

  /** The number of positions in the cache. */
  get length() {
    return this.known ? this.known.key.shape[1] : 0;
  }

  /** Appends the newest positions' keys and values, and returns the keys and values of all positions. */
  extend({ key, value }: KeyValue) {
    const { known } = this;
    this.known = known
      ? { key: appended(known.key, key), value: appended(known.value, value) }
      : { key, value };
    return this.known;
  }
}

/**
 * Returns the log probabilities [T, V] of each next token, and the cache. Paper: §3.1, Figure 1 right. If `past`
 * holds earlier positions, only the newer positions are computed, and T counts only the newer positions.
 */
export async function decode(
  run: Run,
  targetIds: number[],
  memories: KeyValue[],
  sourceIds: number[],
  past: LayerCache[] | null = null,
) {
  const { x, cache } = await readTarget(run, targetIds, memories, sourceIds, past, memories.length);
  const output = run.tap("decoder.output", finalNorm(run, "decoder", x));
  const bias = run.config.output_bias ? run.weight("output.bias") : null;
  const logits = run.tap("logits", linear(output, run.weight("output.weight"), bias));
  const logProbs = run.tap("log_probs", logSoftmax(run.steps.wordScores.of(logits)));
  return { logProbs, cache };
}

/** Returns the decoder's cache of a target. In the last layer, nothing beyond the keys and values is computed. */
export async function targetCache(
  run: Run,
  targetIds: number[],
  memories: KeyValue[],
  sourceIds: number[],
  past: LayerCache[] | null,
) {
  const last = memories.length - 1;
  const { x, cache } = await readTarget(run, targetIds, memories, sourceIds, past, last);
  const name = `decoder.layers.${last}.self_attention`;
  cache[last].extend(keyValue(run, name, run.preNorm ? norm(run, `${name}_residual.norm`, x) : x));
  return cache;
}

/** Returns the stream [T, D] of a target after the first `layers` layers of the decoder, and the cache. */
async function readTarget(
  run: Run,
  targetIds: number[],
  memories: KeyValue[],
  sourceIds: number[],
  past: LayerCache[] | null,
  layers: number,
) {
  const start = past ? past[0].length : 0;
  const padId = run.config.pad_id;
  const rows = targetIds.length - start;
  const mask = run.steps.targetMask(targetIds, rows, padId, start);
  const memoryMask = run.steps.memoryMask(sourceIds, targetIds, rows, padId, start);
  const cache = memories.map((_, i) => new LayerCache(past?.[i].known ?? null));
  let x = embed(run, "target", targetIds.slice(start), start);
  for (const [i, layer] of layerNames("decoder", layers).entries()) {
    const [self, cross, feed] = SUBLAYERS.map((kind) => `${layer}.${kind}`);
    x = residual(run, self, x, (y) => selfAttention(run, self, y, mask, cache[i]));
    x = residual(run, cross, x, (y) => crossAttention(run, cross, y, memoryMask, memories[i]));
    x = residual(run, feed, x, (y) => feedForward(run, feed, y));
    await run.pause();
  }
  return { x, cache };
}

// Embedding and positions

/** Returns E[token] · √d_model + position, [T, D]. Paper: §3.4, §3.5. */
function embed(run: Run, side: Side, ids: number[], start = 0) {
  const width = run.config.d_model;
  const table = run.weight(`${side}.tokens.weight`);
  const scale = Math.sqrt(run.steps.embeddingScale.square(run.config));
  const embedding = tensor([ids.length, width]);
  ids.forEach((id, t) => {
    if (!(id >= 0 && id < table.shape[0])) throw new Error(`the ${side} vocabulary has no id ${id}`);
    for (let d = 0; d < width; d++) embedding.data[t * width + d] = table.data[id * width + d] * scale;
  });
  const embedded = run.tap(`${side}.embedding`, embedding);
  const positions = run.tap(`${side}.positions`, positionsOf(run, side, start, ids.length));
  return run.tap(`${side}.input`, add(embedded, positions));
}

/** Returns the position vectors, [T, D]: sinusoids, a learned table, or zeros. */
function positionsOf(run: Run, side: Side, start: number, length: number): Tensor {
  const { positions, d_model: width } = run.config;
  if (!run.changes.positions || positions === "none") return tensor([length, width]);
  switch (positions) {
    case "learned":
      return learnedPositions(run, side, start, length);
    case "interleaved":
    case "halves":
      return sinusoids(start, length, width, positions, run.steps.exponent);
  }
}

function learnedPositions(run: Run, side: Side, start: number, length: number) {
  const { d_model: width } = run.config;
  const table = run.weight(`${side}.positions.table`);
  if (start + length > table.shape[0]) {
    throw new Error(`the ${side} has ${start + length} positions, the model has learned ${table.shape[0]}`);
  }
  return tensor([length, width], table.data.slice(start * width, (start + length) * width));
}

/**
 * Returns the sinusoids of `length` positions, beginning with `start`, [T, D]; the angle of pair i is position ·
 * 10000^(−2i/D). Paper: §3.5.
 */
export function sinusoids(
  start: number,
  length: number,
  width: number,
  layout: "interleaved" | "halves",
  exponent: Steps["exponent"] = STEPS.exponent,
) {
  const out = tensor([length, width]);
  for (let t = 0; t < length; t++) {
    for (let d = 0; d < width; d++) {
      const half = Math.ceil(width / 2);
      const [pair, isCosine] = layout === "interleaved" ? [d >> 1, d & 1] : [d % half, Number(d >= half)];
      const angle = (start + t) * Math.pow(10000, -exponent.count(pair, isCosine) / width);
      out.data[t * width + d] = isCosine ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return out;
}

// Masks are {rows, columns, data}, with one row for each query; 1 = may attend.

/** Returns the mask that hides padding from each of `rows` queries. */
export function paddingMask(ids: number[], rows: number, padId: number, start = 0): Mask {
  const data = new Uint8Array(rows * ids.length);
  for (let i = 0; i < data.length; i++) data[i] = Number(ids[i % ids.length] !== padId);
  return { rows, columns: ids.length, start, data };
}

/** Returns the decoder's mask, which hides padding and the future. Paper: §3.2.3. */
function targetMask(ids: number[], rows: number, padId: number, start: number) {
  const mask = paddingMask(ids, rows, padId, start);
  mask.data.forEach((_, i) => {
    const [query, key] = [start + Math.floor(i / ids.length), i % ids.length];
    if (key > query) mask.data[i] = 0;
  });
  return mask;
}

/** Returns the mask of an attention for all queries, with the cells that the reader has changed. */
export function attentionMask(
  { config: { pad_id: padId }, changes, steps }: Pick<Run, "config" | "changes" | "steps">,
  name: string,
  sentence: Sentence,
) {
  const { sourceIds, targetIds } = steps.readIds(sentence.sourceIds, sentence.targetIds, padId);
  const plain = () => {
    if (name.startsWith("encoder")) return paddingMask(sourceIds, sourceIds.length, padId);
    if (name.endsWith("self_attention")) return steps.targetMask(targetIds, targetIds.length, padId, 0);
    return steps.memoryMask(sourceIds, targetIds, targetIds.length, padId, 0);
  };
  return editedMask(changes, name, plain());
}

/** Returns the mask with the cells that the reader has changed. */
function editedMask(changes: Changes, name: string, mask: Mask) {
  const cells = changes.masks[name] ?? [];
  if (cells.length === 0) return mask;
  const data = mask.data.slice();
  for (const [query, key, allowed] of cells) {
    const row = query - mask.start;
    if (row >= 0 && row < mask.rows && key < mask.columns) data[row * mask.columns + key] = Number(allowed);
  }
  return { ...mask, data };
}

// Sub-layers, with residual connections and norms

/**
 * Returns the stream x after a sub-layer has added its output, [T, D]. Paper: §3.1.
 * The norm comes after the sum (post-norm, the paper) or before the sub-layer (pre-norm).
 */
function residual(run: Run, name: string, input: Tensor, sublayer: (x: Tensor) => Tensor) {
  const x = run.tap(`${name}.input`, input);
  if (run.preNorm) {
    const normed = run.tap(`${name}.normed`, norm(run, `${name}_residual.norm`, x));
    return run.tap(`${name}.added`, add(run.steps.shortcut.of(run, name, x), sublayer(normed)));
  }
  const added = run.tap(`${name}.added`, add(run.steps.shortcut.of(run, name, x), sublayer(x)));
  return run.tap(`${name}.normed`, norm(run, `${name}_residual.norm`, added));
}

/** Returns a stack's output, after its final norm if it has one. */
export function finalNorm(run: Run, stack: Stack, x: Tensor): Tensor {
  switch (run.steps.finalNorm(run.config)) {
    case "learned":
      return norm(run, `${stack}.norm`, x);
    case "plain":
      return norm(run, null, x);
    case "none":
      return x;
  }
}

/** Returns max(0, x W₁ + b₁) W₂ + b₂ at each position, [T, D]. Paper: §3.3. */
function feedForward(run: Run, name: string, x: Tensor) {
  const { of } = ACTIVATIONS[run.config.activation];
  const hidden = run.tap(`${name}.hidden`, affine(run, `${name}.expand`, x));
  const activated = run.tap(`${name}.activated`, tensor(hidden.shape, hidden.data.map(of)));
  return run.tap(`${name}.output`, affine(run, `${name}.contract`, activated));
}

/** Returns x Wᵀ + b, with the weights `${name}.weight` and `${name}.bias`. */
function affine(run: Run, name: string, x: Tensor, from?: number, to?: number) {
  const multiply = (rows: Tensor) =>
    linear(rows, run.weight(`${name}.weight`), run.weight(`${name}.bias`), from, to);
  return run.products ? multiplied(run.products, `${name} ${from}`, x, multiply) : multiply(x);
}

/** Returns multiply(x). Rows of x that equal rows of the last call with this key are not multiplied again. */
function multiplied(products: Products, key: string, x: Tensor, multiply: (rows: Tensor) => Tensor) {
  const last = products.get(key);
  const [length, width] = x.shape;
  const rows = times(length, (t) => rowOf(x, t));
  const known = rows.map((row, t) => last && isSame(row, rowOf(last.x, t)) && rowOf(last.out, t));
  const isReused = last && known.some(Boolean);
  const out = isReused ? tensor([length, last.out.shape[1]]) : multiply(x);
  if (isReused)
    rows.forEach((row, t) => rowOf(out, t).set(known[t] || multiply(tensor([1, width], row)).data));
  products.set(key, { x, out });
  return out;
}

// Attention. Paper: §3.2

/**
 * Returns the output of self-attention, [T, D]. The cache, if any, supplies the keys and values of earlier positions.
 */
function selfAttention(run: Run, name: string, x: Tensor, mask: Mask, cache: LayerCache | null = null) {
  const query = project(run, name, "query", x);
  const newest = keyValue(run, name, x);
  const { key, value } = cache ? cache.extend(newest) : newest;
  return attend(run, name, query, key, value, mask);
}

/** Returns the output of cross-attention from x to the memory, [T, D]. */
function crossAttention(run: Run, name: string, x: Tensor, mask: Mask, memory: KeyValue) {
  const query = project(run, name, "query", x);
  const { key, value } = run.steps.crossKeyValue.of(run, name, x, memory);
  return attend(run, name, query, key, value, mask);
}

/** Returns the heads' keys [H, S, K] and values [H, S, W] of x. */
export function keyValue(run: Run, name: string, x: Tensor): KeyValue {
  return { key: project(run, name, "key", x), value: project(run, name, "value", x) };
}

/** Returns the heads' queries, keys or values of x. One weight matrix contains all three projections. */
function project(run: Run, name: string, part: "query" | "key" | "value", x: Tensor) {
  const { heads, d_k: keyWidth, d_v: valueWidth } = run.config;
  const begin = { query: 0, key: heads * keyWidth, value: 2 * heads * keyWidth }[part];
  const end = begin + heads * (part === "value" ? valueWidth : keyWidth);
  const projected = affine(run, `${name}.input_projection`, x, begin, end);
  return run.tap(`${name}.${part}`, splitHeads(projected, heads, run.steps.headRow));
}

/** Returns softmax(Q Kᵀ / √d_k) V of all heads, joined and mixed by W_O, [T, D]. Paper: equation 1. */
function attend(run: Run, name: string, query: Tensor, key: Tensor, value: Tensor, plainMask: Mask) {
  const mask = editedMask(run.changes, name, plainMask);
  const divisor = Math.sqrt(run.steps.scoreScale.square(run.config));
  const scores = run.tap(`${name}.scores`, attentionScores(query, key, divisor));
  const { weights: computed } = attentionStages(run, scores, mask);
  const weights = run.tap(`${name}.weights`, overridden(run, name, computed, mask.start));
  const heads = run.tap(`${name}.heads`, ablated(run, name, weightedValues(weights, value)));
  const joined = run.tap(`${name}.joined`, joinHeads(heads));
  return run.tap(`${name}.output`, affine(run, `${name}.output_projection`, joined));
}

/** Returns the scores q · k / divisor of each query and key, [H, T, S]. */
function attentionScores(query: Tensor, key: Tensor, divisor: number) {
  const [heads, rows, width] = query.shape;
  const columns = key.shape[1];
  const scores = tensor([heads, rows, columns]);
  for (let h = 0, i = 0; h < heads; h++) {
    for (let t = 0; t < rows; t++) {
      for (let s = 0; s < columns; s++, i++) {
        const [from, to] = [(h * rows + t) * width, (h * columns + s) * width];
        scores.data[i] = dot(query.data, from, key.data, to, width) / divisor;
      }
    }
  }
  return scores;
}

/**
 * Returns three stages from scores to weights, each [H, T, S]: the scores with masked cells replaced; their softmax;
 * and the final weights, which differ from the softmax only if a mistake applies the mask late. A row without visible
 * keys has zeros.
 */
export function attentionStages({ steps }: Pick<Run, "steps">, scores: Tensor, mask: Mask) {
  const size = mask.data.length;
  const filled = tensor(
    scores.shape,
    scores.data.map((score, i) => (mask.data[i % size] ? score : steps.blocked.of(score))),
  );
  const shares = steps.softmax.of(filled);
  return { filled, shares, weights: steps.lateMask.of(shares, mask) };
}

/** Returns each head's weighted average of the values, [H, T, W]. */
function weightedValues(weights: Tensor, value: Tensor) {
  const [heads, rows, columns] = weights.shape;
  const width = value.shape[2];
  const out = tensor([heads, rows, width]);
  const sums = new Float64Array(width);
  for (let h = 0; h < heads; h++) {
    for (let t = 0; t < rows; t++) {
      sums.fill(0);
      for (let s = 0; s < columns; s++) {
        const weight = weights.data[(h * rows + t) * columns + s];
        const from = (h * columns + s) * width;
        if (weight !== 0) for (let w = 0; w < width; w++) sums[w] += weight * value.data[from + w];
      }
      out.data.set(sums, (h * rows + t) * width);
    }
  }
  return out;
}

/** Returns a projection split into heads, [T, H·K] → [H, T, K]. */
function splitHeads(x: Tensor, heads: number, headRow: Steps["headRow"]) {
  const [length, joined] = x.shape;
  const width = joined / heads;
  const out = tensor([heads, length, width]);
  for (let t = 0; t < length; t++) {
    for (let h = 0; h < heads; h++) {
      const from = headRow(t, h, length, heads) * width;
      out.data.set(x.data.subarray(from, from + width), (h * length + t) * width);
    }
  }
  return out;
}

/** Returns the heads' weighted values side by side, [H, T, W] → [T, H·W]. */
function joinHeads(x: Tensor) {
  const [heads, length, width] = x.shape;
  const out = tensor([length, heads * width]);
  for (let h = 0; h < heads; h++) {
    for (let t = 0; t < length; t++) {
      const from = (h * length + t) * width;
      out.data.set(x.data.subarray(from, from + width), (t * heads + h) * width);
    }
  }
  return out;
}

/** Returns the keys or values of earlier and newer positions, [H, T₁, K] and [H, T₂, K] → [H, T₁ + T₂, K]. */
function appended(past: Tensor, newest: Tensor) {
  const [heads, before, width] = past.shape;
  const [more, less] = [newest.shape[1] * width, before * width];
  const out = tensor([heads, before + newest.shape[1], width]);
  for (let h = 0; h < heads; h++) {
    out.data.set(past.data.subarray(h * less, (h + 1) * less), h * (less + more));
    out.data.set(newest.data.subarray(h * more, (h + 1) * more), h * (less + more) + less);
  }
  return out;
}

// Changes that the reader made

/**
 * Returns the attention weights, with some rows replaced by rows that the reader has set; missing entries of a set
 * row are 0.
 */
function overridden(run: Run, name: string, weights: Tensor, start: number) {
  const [, rows, columns] = weights.shape;
  for (const [head, query, row] of run.changes.overrides[name] ?? []) {
    const t = query - start;
    if (t < 0 || t >= rows) continue;
    const from = (head * rows + t) * columns;
    weights.data.fill(0, from, from + columns).set(row.slice(0, columns), from);
  }
  return weights;
}

/** Returns the heads' weighted values, with 0 for ablated heads. */
function ablated(run: Run, name: string, values: Tensor) {
  const size = values.shape[1] * values.shape[2];
  for (const head of run.changes.ablated[name] ?? []) values.data.fill(0, head * size, (head + 1) * size);
  return values;
}

const PRE_NORM: Record<ModelConfig["norm"], boolean> = { post: false, pre: true };

/**
 * The paper's version of each step that a classic mistake can replace. A step that the paper does not have returns its
 * input.
 */
export const STEPS: Readonly<Steps> = {
  readIds: (sourceIds, targetIds) => ({ sourceIds, targetIds }),
  embeddingScale: { square: (config) => config.d_model, symbol: "√d_model" },
  exponent: { count: (pair) => 2 * pair, symbol: () => "2i" }, // §3.5
  preNorm: (config) => PRE_NORM[config.norm],
  shortcut: { of: (run, name, x) => x, normed: false },
  deviation: DEVIATION,
  finalNorm: (config) => (config.final_norm ? "learned" : "none"),
  headRow: (position, head, length, heads) => position * heads + head,
  scoreScale: { square: (config) => config.d_k, symbol: "√d_k" },
  targetMask,
  memoryMask: (sourceIds, targetIds, ...rest) => paddingMask(sourceIds, ...rest),
  crossKeyValue: { of: (run, name, x, memory) => memory, side: "source" },
  blocked: { of: () => -Infinity, text: "numbers.blocked" },
  softmax: { of: softmax, over: "key" },
  lateMask: { of: (weights) => weights, masks: false },
  wordScores: { of: (logits) => logits, symbol: "logit", python: [] },
};
