// Who computes: this page (LocalEngine), Python behind it (RemoteEngine), or nobody (RecordedEngine).
// All three answer the same questions, asynchronously.

import { NO_CHANGES, checkChanges, isUnchanged } from "./changes.js";
import { Run, forward } from "./forward.js";
import { beamSearch } from "./search.js";
import { bytesOf, floatsOf } from "./tensor.js";
import { makeModel, pointNames, slices } from "./model.js";
import { makeTokenizer } from "./tokenizers.js";

const ASKED_TOGETHER = 20; // points

/** Returns the engine for what Python handed over; `host` asks Python behind the page, if it is there. */
export async function createEngine(payload, host = null) {
  if (payload.weights) return new LocalEngine(payload, host);
  return host ? new RemoteEngine(payload, host) : new RecordedEngine(payload);
}

/** What all engines know: the model's sizes, and its words. */
class Engine {
  constructor(payload, host) {
    Object.assign(this, { payload, host, config: payload.config, decoding: payload.decoding });
    const source = makeTokenizer(payload.source);
    this.tokenizers = { source, target: payload.target ? makeTokenizer(payload.target) : source };
  }

  /** Returns {ids, tokens} of a text, without bos and eos. */
  async encode(side, text) {
    const ids = this.tokenizers[side].encode(text);
    return { ids, tokens: this.tokens(side, ids) };
  }

  /** Returns the token of each id. */
  tokens(side, ids) {
    return this.tokenizers[side].tokens(ids);
  }

  /** Returns the text of ids of the target. */
  decode(ids) {
    return this.tokenizers.target.decode(ids);
  }

  /** Returns the options of a search, with what was not said filled in. */
  searchOptions({ sourceIds, prefixIds = [], changes = {}, signal = null, ...said }) {
    const beamSize = said.beamSize ?? this.decoding.beam_size;
    const lengthPenalty = said.lengthPenalty ?? this.decoding.length_penalty;
    const nBest = said.nBest ?? beamSize;
    return { sourceIds, prefixIds, beamSize, lengthPenalty, nBest, changes: this.checked(changes), signal };
  }

  /** Returns the changes, checked and complete. */
  checked(changes) {
    return checkChanges(changes ?? NO_CHANGES, this.config);
  }
}

/** Everything is computed on this page, from the weights that travelled in it. */
class LocalEngine extends Engine {
  live = true;
  #models = new Map();
  #donors = new Map();

  /** Returns the Model of a checkpoint, or the run's own for null. */
  model(step = null) {
    if (!this.#models.has(step)) this.#models.set(step, this.#loaded(step));
    return this.#models.get(step);
  }

  async #loaded(step) {
    const { tensors, data } = this.payload.weights;
    if (step === null) return makeModel(this.config, tensors, data);
    const checkpoint = this.payload.checkpoints.find((one) => one.step === step);
    if (!checkpoint) throw new Error(`there is no checkpoint of step ${step} in this page`);
    return makeModel(this.config, tensors, checkpoint.data ?? (await checkpointBytes(this.host, step)));
  }

  /** Returns the trace of the model reading these ids, under changes. */
  async trace({ sourceIds, targetIds, changes = {}, signal = null }) {
    const complete = this.checked(changes);
    const points = await this.#points(complete, sourceIds, targetIds, signal);
    return traceOf(pointNames(this.config), points);
  }

  async #points(changes, sourceIds, targetIds, signal) {
    const model = await this.model(changes.checkpoint);
    const donors = await this.#donorsOf(changes, signal);
    return forward(new Run(model, changes, donors, signal), sourceIds, targetIds);
  }

  /** Returns the points of the sentences from which rows are patched in: run through the model as it is. */
  async #donorsOf({ patches, checkpoint }, signal) {
    const donors = [];
    for (const { sourceIds, targetIds } of patches) {
      const key = JSON.stringify([checkpoint, sourceIds, targetIds]);
      if (!this.#donors.has(key)) {
        const points = await this.#points({ ...NO_CHANGES, checkpoint }, sourceIds, targetIds, signal);
        if (this.#donors.size > 3) this.#donors.clear();
        this.#donors.set(key, points);
      }
      donors.push(this.#donors.get(key));
    }
    return donors;
  }

  /** Returns {hypotheses, tree}: the best outputs, best first, and all that the search weighed. */
  async search(options) {
    const { nBest, ...asked } = this.searchOptions(options);
    const donors = await this.#donorsOf(asked.changes, asked.signal);
    const model = await this.model(asked.changes.checkpoint);
    const { finished, tree } = await beamSearch(model, { ...asked, donors });
    const texts = this.tokens(
      "target",
      tree.map(({ token }) => token),
    );
    const nodes = tree.map((node, i) => ({ ...node, text: texts[i] }));
    return { hypotheses: finished.slice(0, nBest).map((path) => this.#hypothesis(path)), tree: nodes };
  }

  #hypothesis({ ids, logProb, score, tokenLogProbs }) {
    const [tokens, text] = [this.tokens("target", ids), this.decode(ids)];
    return { ids, tokens, text, logProb, score, tokenLogProbs };
  }
}

/** Python computes; the page asks for what it shows. */
class RemoteEngine extends Engine {
  live = "remote";

  /** Returns the trace of these ids, under changes; its points are fetched when asked for, many at once. */
  async trace({ sourceIds, targetIds, changes = {} }) {
    const wire = wireChanges(this.checked(changes));
    const asked = { source_ids: sourceIds, target_ids: targetIds, changes: wire };
    const fetched = new Map();
    const fetchPoints = async (names) => {
      const { message, buffers } = await this.host.request({ kind: "trace", ...asked, names });
      const points = slices(message.points, floatsOf(joinedBytes(buffers)));
      points.forEach((value, name) => fetched.set(name, value));
      return message.names;
    };
    return traceOf(await fetchPoints(null), fetched, together(fetchPoints));
  }

  /** Returns {hypotheses, tree}, as Python finds them. */
  async search(options) {
    const { sourceIds, prefixIds, beamSize, lengthPenalty, nBest, changes } = this.searchOptions(options);
    const { message } = await this.host.request({
      kind: "search",
      source_ids: sourceIds,
      prefix_ids: prefixIds,
      beam_size: beamSize,
      length_penalty: lengthPenalty,
      n_best: nBest,
      changes: wireChanges(changes),
    });
    return { hypotheses: camelCased(message.hypotheses), tree: camelCased(message.tree) };
  }
}

/** Nobody computes: what Python recorded for one sentence can be looked at. */
class RecordedEngine extends Engine {
  live = false;

  /** Returns the recorded trace; any other needs Python. */
  async trace({ sourceIds, targetIds, changes = {} }) {
    const { source_ids: source, target_ids: target, points, data } = this.payload.trace;
    this.#expect(isUnchanged(changes) && isSame(sourceIds, source) && isSame(targetIds, target));
    this.recorded ??= slices(points, floatsOf(bytesOf(data)));
    return traceOf([...this.recorded.keys()], this.recorded);
  }

  /** Returns the recorded search; any other needs Python. */
  async search(options) {
    const { changes, sourceIds, prefixIds, beamSize, lengthPenalty, nBest } = this.searchOptions(options);
    const { search, trace } = this.payload;
    const { beam_size: recordedSize, length_penalty: recordedPenalty } = this.decoding;
    const isPlain = isUnchanged(changes) && prefixIds.length === 0;
    const isRecorded = beamSize === recordedSize && lengthPenalty === recordedPenalty;
    this.#expect(search && isPlain && isRecorded && isSame(sourceIds, trace.source_ids));
    return { hypotheses: camelCased(search.hypotheses).slice(0, nBest), tree: camelCased(search.tree) };
  }

  #expect(recorded) {
    if (!recorded) throw new Error("this needs Python behind the page: glassformer explore RUN");
  }
}

/** Returns what fetches one point; points asked for at the same moment are fetched by one request. */
function together(fetchPoints) {
  let waiting = null;
  return (name) => {
    if (!waiting) {
      const names = new Set();
      const send = () => {
        waiting = null;
        return fetchPoints([...names]);
      };
      waiting = { names, sent: Promise.resolve().then(send) };
    }
    waiting.names.add(name);
    return waiting.sent;
  };
}

/** Returns the bytes of buffers, one behind the other. */
function joinedBytes(buffers) {
  const parts = buffers.map(bytesOf);
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}

/** Returns a trace: the names of its points, and each point's {shape, data} when asked for. */
function traceOf(names, points, fetchPoint = null) {
  const known = new Set(names);
  return {
    names,
    has: (name) => known.has(name),
    async get(name) {
      if (!points.has(name) && known.has(name) && fetchPoint) await fetchPoint(name);
      if (!points.has(name)) throw new Error(`there is no point "${name}" in this trace`);
      return points.get(name);
    },
  };
}

/** Returns the first point whose shape or numbers differ, in the unchanged trace's order, or null. */
export async function firstDifference(unchanged, changed) {
  for (let i = 0; i < unchanged.names.length; i += ASKED_TOGETHER) {
    const differs = async (name) => {
      if (!changed.has(name)) return true;
      const [before, after] = await Promise.all([unchanged.get(name), changed.get(name)]);
      return !isSame(before.shape, after.shape) || !isSame(before.data, after.data);
    };
    const names = unchanged.names.slice(i, i + ASKED_TOGETHER);
    const different = (await Promise.all(names.map(differs))).indexOf(true);
    if (different >= 0) return names[different];
  }
  return null;
}

/** Returns the largest difference of the PyTorch trace that travelled along to this engine or to its `own`. */
export async function parity(engine, payload, own = null) {
  if (!payload.trace || engine.live === false) return null;
  const { source_ids: sourceIds, target_ids: targetIds, points, data } = payload.trace;
  const trace = own ?? (await engine.trace({ sourceIds, targetIds }));
  let largest = 0;
  for (const [name, expected] of slices(points, floatsOf(bytesOf(data)))) {
    const { data: got } = await trace.get(name);
    if (got.length !== expected.data.length) return Infinity;
    for (let i = 0; i < got.length; i++) {
      const difference = Math.abs(got[i] - expected.data[i]);
      if (!(difference <= largest)) largest = Number.isNaN(difference) ? Infinity : difference;
    }
  }
  return largest;
}

/** Returns whether two rows of numbers are the same. */
function isSame(a, b) {
  return a.length === b.length && a.every((value, i) => Object.is(value, b[i]) || value === b[i]);
}

/** Returns the bytes of a checkpoint's weights, which the host keeps. */
async function checkpointBytes(host, step) {
  if (!host) throw new Error(`the weights of step ${step} need Python: glassformer explore RUN`);
  const { buffers } = await host.request({ kind: "checkpoint", step });
  return joinedBytes(buffers);
}

/** Returns changes as Python reads them. */
function wireChanges({ ablated, masks, overrides, patches, positions, scale, mistakes, checkpoint }) {
  const renamed = ({ point, sourceIds, targetIds, positions: pairs, heads }) => {
    return { point, source_ids: sourceIds, target_ids: targetIds, positions: pairs, heads };
  };
  return { ablated, masks, overrides, patches: patches.map(renamed), positions, scale, mistakes, checkpoint };
}

/** Returns the same objects with Python's names (log_prob) as JavaScript's (logProb). */
function camelCased(value) {
  if (Array.isArray(value)) return value.map(camelCased);
  if (value === null || typeof value !== "object") return value;
  const renamed = (key) => key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [renamed(key), camelCased(one)]));
}
