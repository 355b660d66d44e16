// The forward pass, as the paper has it: ids in, log probabilities out, every number on the way kept by name.
//
// Axes: S source positions · T target positions · D d_model · H heads · K width of a head's query and key ·
// W width of a head's value · V vocabulary. Every value passes through `run.tap(name, value)`, which keeps
// it; what is changed is changed there or at the line that it concerns.

import { ACTIVATIONS, add, dot, layerNorm, linear, logSoftmax, softmax, tensor } from "./tensor.js";
import { layerNames } from "./model.js";
import { NO_CHANGES } from "./changes.js";

const PAUSE_AFTER = 12; // milliseconds

/** One run of a model: its weights, what is changed, and every point that it came past. */
export class Run {
  /** `donors` holds, for each patch of the changes, the points of the other sentence. */
  constructor(model, changes = NO_CHANGES, donors = [], signal = null) {
    Object.assign(this, { model, changes, donors, signal, points: new Map(), paused: performance.now() });
    this.config = model.config;
    this.preNorm = (this.config.norm === "pre") !== this.makes("norm_order");
  }

  /** Returns whether this run makes a classic mistake. */
  makes(mistake) {
    return this.changes.mistakes.includes(mistake);
  }

  /** Returns a weight of the model. */
  weight(name) {
    return this.model.weight(name);
  }

  /** Keeps a value under its name and returns it, with the rows of another sentence where it is patched. */
  tap(name, value) {
    this.changes.patches.forEach((patch, i) => {
      if (patch.point === name) value = patched(value, this.donors[i].get(name), patch);
    });
    this.points.set(name, value);
    return value;
  }

  /** Lets the page draw now and then, and stops the run when its signal says so. */
  async pause() {
    this.signal?.throwIfAborted();
    if (performance.now() - this.paused < PAUSE_AFTER) return;
    await nextTask();
    this.paused = performance.now();
  }
}

/** Returns when the page had its turn; sooner than by setTimeout, and in hidden tabs too. */
function nextTask() {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resume) => {
    port1.onmessage = resume;
    port2.postMessage(null);
  }).finally(() => port1.close());
}

/** Returns all points, by name, of the model reading a source (with eos) and a target (with bos). */
export async function forward(run, sourceIds, targetIds) {
  const padded = paddedIds(run, sourceIds, targetIds);
  const memory = await encode(run, padded.sourceIds);
  await decode(run, padded.targetIds, memoryKeys(run, memory), padded.sourceIds);
  return run.points;
}

/** Returns the ids, padded to one length where a mistake needs that to be seen. */
export function paddedIds(run, sourceIds, targetIds) {
  const needed = run.makes("target_padding_mask");
  return needed ? toOneLength(sourceIds, targetIds, run.config.pad_id) : { sourceIds, targetIds };
}

/** Returns the ids, the shorter ones padded to the length of the longer ones. */
export function toOneLength(sourceIds, targetIds, padId) {
  const length = Math.max(sourceIds.length, targetIds.length);
  const pad = (ids) => [...ids, ...Array(length - ids.length).fill(padId)];
  return { sourceIds: pad(sourceIds), targetIds: pad(targetIds) };
}

/** Returns the memory [S, D] of a source. Paper: §3.1, Figure 1 left. */
export async function encode(run, sourceIds) {
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

/** Returns each decoder layer's keys [H, S, K] and values [H, S, W] of the memory. */
export function memoryKeys(run, memory) {
  return layerNames("decoder", run.config.decoder_layers).map((layer) =>
    keyValue(run, `${layer}.cross_attention`, memory),
  );
}

/** The keys [H, T, K] and values [H, T, W] of the target so far, in one decoder layer. */
class LayerCache {
  constructor(past = null) {
    Object.assign(this, { key: past?.key, value: past?.value, length: past?.length ?? 0 });
  }

  /** Appends the newest positions' keys and values, and returns all. */
  extend(key, value) {
    this.key = this.key ? appended(this.key, key) : key;
    this.value = this.value ? appended(this.value, value) : value;
    this.length = this.key.shape[1];
    return this;
  }
}

/**
 * Returns the log probabilities [T, V] of each next token, and the cache. Paper: §3.1, Figure 1 right.
 * With a cache of earlier positions, only the newer ones are computed: T is their number.
 */
export async function decode(run, targetIds, memories, sourceIds, past = null) {
  const start = past ? past[0].length : 0;
  const padId = run.config.pad_id;
  const rows = targetIds.length - start;
  const mask = run.makes("no_causal_mask")
    ? paddingMask(targetIds, rows, padId, start)
    : targetMask(targetIds, rows, padId, start);
  const ofTarget = run.makes("target_padding_mask") || run.makes("decoder_keys");
  const memoryMask = paddingMask(ofTarget ? targetIds : sourceIds, rows, padId, start);
  const cache = memories.map((_, i) => new LayerCache(past?.[i]));
  let x = embed(run, "target", targetIds.slice(start), start);
  for (const [i, layer] of layerNames("decoder", run.config.decoder_layers).entries()) {
    const kinds = ["self_attention", "cross_attention", "feed_forward"];
    const [self, cross, feed] = kinds.map((kind) => `${layer}.${kind}`);
    x = residual(run, self, x, (y) => selfAttention(run, self, y, mask, cache[i]));
    x = residual(run, cross, x, (y) => crossAttention(run, cross, y, memoryMask, memories[i]));
    x = residual(run, feed, x, (y) => feedForward(run, feed, y));
    await run.pause();
  }
  const output = run.tap("decoder.output", finalNorm(run, "decoder", x));
  const logits = run.tap("logits", linear(output, run.weight("output.weight")));
  const logProbs = run.tap("log_probs", logSoftmax(run.makes("double_softmax") ? softmax(logits) : logits));
  return { logProbs, cache };
}

// Embedding and positions

/** Returns E[token] · √d_model + position, [T, D]. Paper: §3.4, §3.5. */
function embed(run, side, ids, start = 0) {
  const width = run.config.d_model;
  const table = run.weight(`${side}.tokens.weight`);
  const scale = run.makes("no_embedding_scale") ? 1 : Math.sqrt(width);
  const embedding = tensor([ids.length, width]);
  ids.forEach((id, t) => {
    if (!(id >= 0 && id < table.shape[0])) throw new Error(`the ${side} vocabulary has no id ${id}`);
    for (let d = 0; d < width; d++) embedding.data[t * width + d] = table.data[id * width + d] * scale;
  });
  const embedded = run.tap(`${side}.embedding`, embedding);
  const positions = run.tap(`${side}.positions`, positionsOf(run, side, start, ids.length));
  return run.tap(`${side}.input`, add(embedded, positions));
}

/** Returns what tells positions apart, [T, D]: sinusoids, a learned table, or zeros. */
function positionsOf(run, side, start, length) {
  const { positions, d_model: width } = run.config;
  if (positions === "none" || !run.changes.positions) return tensor([length, width]);
  const doubled = run.makes("doubled_exponent");
  if (positions !== "learned") return sinusoids(start, length, width, positions, doubled);
  const table = run.weight(`${side}.positions.table`);
  if (start + length > table.shape[0]) {
    throw new Error(`the ${side} has ${start + length} positions, the model has learned ${table.shape[0]}`);
  }
  return tensor([length, width], table.data.slice(start * width, (start + length) * width));
}

/**
 * Returns the sinusoids of `length` positions from `start` on, [T, D]: pair i turns by 10000^(−2i/D) a step.
 * Paper: §3.5. `doubled` is a classic mistake: the exponent counts dimensions as if they were pairs.
 */
export function sinusoids(start, length, width, layout, doubled = false) {
  const out = tensor([length, width]);
  for (let t = 0; t < length; t++) {
    for (let d = 0; d < width; d++) {
      const half = Math.ceil(width / 2);
      const [pair, isCosine] = layout === "interleaved" ? [d >> 1, d & 1] : [d % half, Number(d >= half)];
      const exponent = (doubled ? 2 * (2 * pair + isCosine) : 2 * pair) / width;
      const angle = (start + t) * Math.pow(10000, -exponent);
      out.data[t * width + d] = isCosine ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return out;
}

// Masks: 1 = may look. They are {rows, columns, data}, a row for each query.

/** Returns the mask that hides padding from each of `rows` queries. */
function paddingMask(ids, rows, padId, start = 0) {
  const data = new Uint8Array(rows * ids.length);
  for (let i = 0; i < data.length; i++) data[i] = Number(ids[i % ids.length] !== padId);
  return { rows, columns: ids.length, start, data };
}

/** Returns the decoder's mask: neither padding nor the future may be looked at. Paper: §3.2.3. */
function targetMask(ids, rows, padId, start) {
  const mask = paddingMask(ids, rows, padId, start);
  mask.data.forEach((_, i) => {
    const [query, key] = [start + Math.floor(i / ids.length), i % ids.length];
    if (key > query) mask.data[i] = 0;
  });
  return mask;
}

/** Returns the mask with the cells that are changed by hand. */
function editedMask(run, name, mask) {
  const cells = run.changes.masks[name] ?? [];
  if (cells.length === 0) return mask;
  const data = mask.data.slice();
  for (const [query, key, allowed] of cells) {
    const row = query - mask.start;
    if (row >= 0 && row < mask.rows && key < mask.columns) data[row * mask.columns + key] = Number(allowed);
  }
  return { ...mask, data };
}

// Sub-layers, and what stands around them

/**
 * Returns the stream x after a sub-layer has added its share, [T, D]. Paper: §3.1.
 * The layer norm stands behind the sum (post-norm, the paper) or before the sub-layer (pre-norm).
 */
function residual(run, name, input, sublayer) {
  const x = run.tap(`${name}.input`, input);
  if (run.preNorm) {
    const normed = run.tap(`${name}.normed`, norm(run, `${name}_residual.norm`, x));
    return run.tap(`${name}.added`, add(run.makes("residual_normed") ? normed : x, sublayer(normed)));
  }
  const kept = run.makes("residual_normed") ? norm(run, `${name}_residual.norm`, x) : x;
  const added = run.tap(`${name}.added`, add(kept, sublayer(x)));
  return run.tap(`${name}.normed`, norm(run, `${name}_residual.norm`, added));
}

function norm(run, name, x) {
  return layerNorm(x, run.weight(`${name}.weight`), run.weight(`${name}.bias`), run.makes("unbiased_norm"));
}

/** Returns what leaves a stack: in pre-norm, normalised once more. */
function finalNorm(run, stack, x) {
  if (!run.preNorm) return x;
  if (run.model.has(`${stack}.norm.weight`)) return norm(run, `${stack}.norm`, x);
  const width = run.config.d_model; // a post-norm model has no weights for this
  const ones = tensor([width], new Float32Array(width).fill(1));
  return layerNorm(x, ones, tensor([width]), run.makes("unbiased_norm"));
}

/** Returns max(0, x W₁ + b₁) W₂ + b₂ at each position, [T, D]. Paper: §3.3. */
function feedForward(run, name, x) {
  const activation = ACTIVATIONS[run.config.activation];
  const hidden = run.tap(`${name}.hidden`, affine(run, `${name}.expand`, x));
  const activated = run.tap(`${name}.activated`, tensor(hidden.shape, hidden.data.map(activation)));
  return run.tap(`${name}.output`, affine(run, `${name}.contract`, activated));
}

/** Returns x Wᵀ + b, with the weights of this name. */
function affine(run, name, x, from, to) {
  return linear(x, run.weight(`${name}.weight`), run.weight(`${name}.bias`), from, to);
}

// Attention. Paper: §3.2

/** Returns what each position gathers from the others, [T, D]; the decoder's cache holds earlier ones. */
function selfAttention(run, name, x, mask, cache = null) {
  const query = project(run, name, "query", x);
  const newest = keyValue(run, name, x);
  const { key, value } = cache ? cache.extend(newest.key, newest.value) : newest;
  return attend(run, name, query, key, value, mask);
}

/** Returns what each position of x gathers from the memory, [T, D]. */
function crossAttention(run, name, x, mask, memory) {
  const query = project(run, name, "query", x);
  const { key, value } = run.makes("decoder_keys") ? keyValue(run, name, x) : memory;
  return attend(run, name, query, key, value, mask);
}

function keyValue(run, name, x) {
  return { key: project(run, name, "key", x), value: project(run, name, "value", x) };
}

/** Returns the heads' queries, keys or values of x: rows of one matrix project to all of them. */
function project(run, name, part, x) {
  const { heads, d_k: keyWidth, d_v: valueWidth } = run.config;
  const begin = { query: 0, key: heads * keyWidth, value: 2 * heads * keyWidth }[part];
  const end = begin + heads * (part === "value" ? valueWidth : keyWidth);
  const projected = affine(run, `${name}.input_projection`, x, begin, end);
  return run.tap(`${name}.${part}`, splitHeads(run, projected));
}

/** Returns softmax(Q Kᵀ / √d_k) V of all heads, joined and mixed by W_O, [T, D]. Paper: equation 1. */
function attend(run, name, query, key, value, plainMask) {
  const mask = editedMask(run, name, plainMask);
  const scores = run.tap(`${name}.scores`, attentionScores(query, key, divisorOf(run)));
  const computed = attentionWeights(run, scores, mask);
  const weights = run.tap(`${name}.weights`, overridden(run, name, computed, mask.start));
  const heads = run.tap(`${name}.heads`, ablated(run, name, weightedValues(weights, value)));
  const joined = run.tap(`${name}.joined`, joinHeads(heads));
  return run.tap(`${name}.output`, affine(run, `${name}.output_projection`, joined));
}

/** Returns √d_k, by which scores are divided, unless that is changed. */
function divisorOf(run) {
  if (run.makes("no_scale") || !run.changes.scale) return 1;
  return Math.sqrt(run.makes("scale_d_model") ? run.config.d_model : run.config.d_k);
}

/** Returns how well each query fits each key, [H, T, S]. */
function attentionScores(query, key, divisor) {
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

/** Returns the softmax of each row over the keys that it may look at, [H, T, S]; without any, zeros. */
function attentionWeights(run, scores, mask) {
  const [zero, late] = [run.makes("mask_zero"), run.makes("mask_after_softmax")];
  const size = mask.data.length;
  const hidden = (score) => (zero ? 0 : late ? score : -Infinity);
  const filled = scores.data.map((score, i) => (mask.data[i % size] ? score : hidden(score)));
  const weights = softmax(tensor(scores.shape, filled));
  if (late) weights.data.forEach((weight, i) => (weights.data[i] = weight * mask.data[i % size]));
  return weights;
}

/** Returns each head's average of the values, weighted, [H, T, W]. */
function weightedValues(weights, value) {
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

/** Returns the heads' shares of a projection, [T, H·K] → [H, T, K]. */
function splitHeads(run, x) {
  const { heads } = run.config;
  const [length, joined] = x.shape;
  const width = joined / heads;
  if (run.makes("no_transpose")) return tensor([heads, length, width], x.data);
  const out = tensor([heads, length, width]);
  for (let t = 0; t < length; t++) {
    for (let h = 0; h < heads; h++) {
      const from = t * joined + h * width;
      out.data.set(x.data.subarray(from, from + width), (h * length + t) * width);
    }
  }
  return out;
}

/** Returns the heads' outputs side by side, [H, T, W] → [T, H·W]. */
function joinHeads(x) {
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
function appended(past, newest) {
  const [heads, before, width] = past.shape;
  const [more, less] = [newest.shape[1] * width, before * width];
  const out = tensor([heads, before + newest.shape[1], width]);
  for (let h = 0; h < heads; h++) {
    out.data.set(past.data.subarray(h * less, (h + 1) * less), h * (less + more));
    out.data.set(newest.data.subarray(h * more, (h + 1) * more), h * (less + more) + less);
  }
  return out;
}

// Changes by hand

/** Returns the weights with the rows that are written by hand; missing entries are 0. */
function overridden(run, name, weights, start) {
  const [, rows, columns] = weights.shape;
  for (const [head, query, row] of run.changes.overrides[name] ?? []) {
    const t = query - start;
    if (t < 0 || t >= rows) continue;
    const from = (head * rows + t) * columns;
    weights.data.fill(0, from, from + columns).set(row.slice(0, columns), from);
  }
  return weights;
}

/** Returns the heads' weighted values, those of ablated heads 0. */
function ablated(run, name, values) {
  const size = values.shape[1] * values.shape[2];
  for (const head of run.changes.ablated[name] ?? []) values.data.fill(0, head * size, (head + 1) * size);
  return values;
}

/** Returns x with rows (of its last but one axis) from the same point of another sentence. */
function patched(x, donor, { point, positions, heads }) {
  const [width, length, there] = [x.shape.at(-1), x.shape.at(-2), donor.shape.at(-2)];
  if (donor.shape.at(-1) !== width) {
    const wide = donor.shape.at(-1);
    throw new Error(`a row of ${point} has ${wide} numbers in the other sentence, but ${width} here`);
  }
  const data = x.data.slice();
  const all = x.shape.length === 3 ? [...Array(x.shape[0]).keys()] : [0];
  for (const head of all.filter((h) => x.shape.length === 2 || !heads || heads.includes(h))) {
    for (const [to, from] of positions) {
      if (to >= length || from >= there) continue;
      const row = (head * there + from) * width;
      data.set(donor.data.subarray(row, row + width), (head * length + to) * width);
    }
  }
  return tensor(x.shape, data);
}
