// The engines: this page computes (LocalEngine), Python behind it (RemoteEngine), or nothing does (RecordedEngine).
// All three have the same asynchronous interface.

import { NO_CHANGES, checkChanges, isUnchanged } from "./changes.js";
import { forward } from "./forward.js";
import { beamSearch } from "./search.js";
import { bytesOf, floatsOf, rowOf, tensor } from "./tensor.js";
import { Model, makeModel, makeShrunkModel, pointNames, recordedPoints, slices } from "./model.js";
import { Run } from "./run.js";
import { makeTokenizer } from "./tokenizers.js";

/** @import { Engine as EngineOfPage } from "./types.js" */
/** @import { Bytes, Changes, Host, Hypothesis, Packed, Patch, Payload, Points, RecordedSearch, RecordedWords, RowWords, SearchRequest, SearchResult, Side, Tensor, Trace, TraceRequest, WireChanges, WireTrace } from "./types.js" */

/**
 * Returns the engine for a page's data; through `host`, if given, it can ask Python behind the page.
 * @param {Payload} payload
 * @param {Host | null} host
 * @returns {Promise<EngineOfPage>}
 */
export async function createEngine(payload, host = null) {
  if (payload.recorded) return new RecordedEngine(payload, null);
  if (payload.weights) return new LocalEngine(payload, host);
  if (host) return new RemoteEngine(payload, host);
  throw new Error("this page has no weights, and Python is not behind it: glassformer explore RUN");
}

/** The part that all engines share: the model's sizes, and its tokenizers. */
class Engine {
  /**
   * @param {Payload} payload
   * @param {Host | null} host
   */
  constructor(payload, host) {
    const { config: sizes, points, mistakes, decoding } = payload;
    const config = { ...sizes, points, mistakes, longest: decoding.max_source + decoding.extra_length + 1 };
    this.payload = payload;
    this.host = host;
    this.config = config;
    this.decoding = payload.decoding;
    const source = makeTokenizer(payload.source);
    this.tokenizers = { source, target: payload.target ? makeTokenizer(payload.target) : source };
  }

  /**
   * Returns {ids, tokens} of a text, without bos and eos.
   * @param {Side} side
   * @param {string} text
   */
  async encode(side, text) {
    const ids = this.tokenizers[side].encode(text);
    return { ids, tokens: this.tokens(side, ids) };
  }

  /**
   * Returns the token of each id.
   * @param {Side} side
   * @param {number[]} ids
   */
  tokens(side, ids) {
    return this.tokenizers[side].tokens(ids);
  }

  /**
   * Returns the text of ids of the target.
   * @param {number[]} ids
   */
  decode(ids) {
    return this.tokenizers.target.decode(ids);
  }

  /**
   * Returns the options of a search with the defaults filled in.
   * @param {SearchRequest} options
   */
  searchOptions({ sourceIds, prefixIds = [], changes = {}, signal = null, ...said }) {
    const beamSize = said.beamSize ?? this.decoding.beam_size;
    const lengthPenalty = said.lengthPenalty ?? this.decoding.length_penalty;
    const decoding = { ...this.decoding, beam_size: beamSize, length_penalty: lengthPenalty };
    return {
      sourceIds,
      prefixIds,
      decoding,
      nBest: said.nBest ?? beamSize,
      changes: this.checked(changes),
      signal,
    };
  }

  /**
   * Returns the search in the page's data if it answers this request, or null.
   * @param {SearchRequest} options
   * @returns {SearchResult | null}
   */
  foundBefore(options) {
    const { changes, sourceIds, prefixIds, decoding, nBest } = this.searchOptions(options);
    const { search, trace } = this.payload;
    const { beam_size: recordedSize, length_penalty: recordedPenalty } = this.decoding;
    const isPlain = isUnchanged(changes) && prefixIds.length === 0;
    const isRecorded = decoding.beam_size === recordedSize && decoding.length_penalty === recordedPenalty;
    if (!(search && isPlain && isRecorded && isSame(sourceIds, trace.source_ids))) return null;
    const { hypotheses, tree } = searchResult(search);
    return { hypotheses: hypotheses.slice(0, nBest), tree };
  }

  /**
   * Returns the changes, checked and complete.
   * @param {Partial<Changes>} changes
   */
  checked(changes) {
    return checkChanges(changes ?? NO_CHANGES, this.config);
  }

  /**
   * Returns gradient × input of each source position: by how much log p(word) − log p(rival) in a row of the target
   * changes with the size of its input. Python computes it; null without Python.
   * @param {TraceRequest} request
   * @param {RowWords} asked
   */
  async gradients({ sourceIds, targetIds, changes = {} }, asked) {
    if (!this.host) return null;
    const sentence = {
      source_ids: sourceIds,
      target_ids: targetIds,
      changes: wireChanges(this.checked(changes)),
    };
    const { message } = await this.host.request({ kind: "gradient", ...sentence, ...asked });
    return message.effects;
  }
}

/** Computes everything on this page, from the weights in it. */
class LocalEngine extends Engine {
  live = /** @type {const} */ (true);
  /** @type {Map<number | null, Promise<Model>>} */
  #models = new Map();
  /** @type {Map<string, Points>} */
  #donors = new Map();

  /**
   * Returns the model of a checkpoint, or of the run for null.
   * @param {number | null} step
   */
  model(step = null) {
    const known = this.#models.get(step) ?? this.#loaded(step);
    this.#models.set(step, known);
    return known;
  }

  /**
   * Returns a model with these weights at least.
   * @param {string[]} _names
   * @param {number | null} step
   */
  modelWith(_names, step) {
    return this.model(step);
  }

  /**
   * Returns some rows of a matrix.
   * @param {string} name
   * @param {number[]} rows
   * @param {number | null} step
   */
  async rowsOf(name, rows, step) {
    const matrix = (await this.model(step)).weight(name);
    const numbers = rows.flatMap((row) => [...rowOf(matrix, row)]);
    return tensor([rows.length, matrix.shape[1]], Float32Array.from(numbers));
  }

  /** @param {number | null} step */
  async #loaded(step) {
    const { tensors, data } = /** @type {Packed} */ (this.payload.weights);
    if (step === null) return makeModel(this.config, tensors, data);
    const checkpoint = this.payload.checkpoints.find((one) => one.step === step);
    if (!checkpoint) throw new Error(`there is no checkpoint of step ${step} in this page`);
    return checkpoint.data
      ? makeShrunkModel(this.config, tensors, checkpoint.data)
      : makeModel(this.config, tensors, await checkpointBytes(this.host, step));
  }

  /**
   * Returns the trace of the model reading these ids, under changes.
   * @param {TraceRequest} request
   */
  async trace({ sourceIds, targetIds, changes = {}, signal = null }) {
    const complete = this.checked(changes);
    const points = await this.#points(complete, sourceIds, targetIds, signal);
    return traceOf(pointNames(this.config), points);
  }

  /**
   * @param {Changes} changes
   * @param {number[]} sourceIds
   * @param {number[]} targetIds
   * @param {AbortSignal | null} signal
   */
  async #points(changes, sourceIds, targetIds, signal) {
    const model = await this.model(changes.checkpoint);
    const donors = await this.#donorsOf(changes, signal);
    return forward(new Run(model, changes, donors, signal), sourceIds, targetIds);
  }

  /**
   * Returns the points of the sentences from which rows are patched in, computed by the unchanged model.
   * @param {Changes} changes
   * @param {AbortSignal | null} signal
   */
  async #donorsOf({ patches, checkpoint }, signal) {
    /** @type {Points[]} */
    const donors = [];
    for (const { sourceIds, targetIds } of patches) {
      const key = JSON.stringify([checkpoint, sourceIds, targetIds]);
      let points = this.#donors.get(key);
      if (!points) {
        points = await this.#points({ ...NO_CHANGES, checkpoint }, sourceIds, targetIds, signal);
        if (this.#donors.size > 3) this.#donors.clear();
        this.#donors.set(key, points);
      }
      donors.push(points);
    }
    return donors;
  }

  /**
   * Returns {hypotheses, tree}: the best outputs, best first, and the tree of all candidates.
   * @param {SearchRequest} options
   * @returns {Promise<SearchResult>}
   */
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

  /**
   * @param {Omit<Hypothesis, "tokens" | "text">} path
   * @returns {Hypothesis}
   */
  #hypothesis({ ids, logProb, score, tokenLogProbs }) {
    const [tokens, text] = [this.tokens("target", ids), this.decode(ids)];
    return { ids, tokens, text, logProb, score, tokenLogProbs };
  }
}

/** Lets Python compute; fetches the points that the page shows. */
class RemoteEngine extends Engine {
  live = /** @type {const} */ ("remote");
  #python;
  /** @type {Map<number | null, Model>} */
  #fetched = new Map();

  /**
   * @param {Payload} payload
   * @param {Host} host
   */
  constructor(payload, host) {
    super(payload, host);
    this.#python = host;
  }

  /**
   * Returns the trace of these ids, under changes; its points are fetched in groups, on demand.
   * @param {TraceRequest} request
   */
  async trace({ sourceIds, targetIds, changes = {} }) {
    const wire = wireChanges(this.checked(changes));
    const asked = { source_ids: sourceIds, target_ids: targetIds, changes: wire };
    /** @type {Points} */
    const fetched = new Map();
    /** @param {string[] | null} names */
    const fetchPoints = async (names) => {
      const { message, buffers } = await this.#python.request({ kind: "trace", ...asked, names });
      const points = slices(message.points, floatsOf(joinedBytes(buffers)));
      points.forEach((value, name) => fetched.set(name, value));
      return message.names;
    };
    /** @param {WireTrace} changed */
    const firstDifference = async (changed) => {
      const { message } = await this.#python.request({ kind: "difference", unchanged: asked, changed });
      return message.first;
    };
    /** @param {number[]} ids */
    const logProb = async (ids) => {
      const { message } = await this.#python.request({ kind: "score", ...asked, output_ids: ids });
      return message.log_prob;
    };
    return {
      ...traceOf(await fetchPoints(null), fetched, together(fetchPoints)),
      remote: { asked, firstDifference, logProb },
    };
  }

  /**
   * Returns a model with these weights at least; each is fetched once.
   * @param {string[]} names
   * @param {number | null} step
   */
  async modelWith(names, step) {
    const model = this.#fetched.get(step) ?? new Model(this.config, new Map());
    this.#fetched.set(step, model);
    const missing = names.filter((name) => !model.tensors.has(name));
    if (missing.length > 0) {
      const tensors = await this.#parameters({ names: missing, rows: null, checkpoint: step });
      tensors.forEach((value, name) => model.tensors.set(name, value));
    }
    return model;
  }

  /**
   * Returns some rows of a matrix, which is not fetched as a whole.
   * @param {string} name
   * @param {number[]} rows
   * @param {number | null} step
   */
  async rowsOf(name, rows, step) {
    const tensors = await this.#parameters({ names: [name], rows, checkpoint: step });
    return /** @type {Tensor} */ (tensors.get(name));
  }

  /** @param {{names: string[], rows: number[] | null, checkpoint: number | null}} asked */
  async #parameters(asked) {
    const { message, buffers } = await this.#python.request({ kind: "parameters", ...asked });
    return slices(message.parameters, floatsOf(joinedBytes(buffers)));
  }

  /**
   * Returns {hypotheses, tree}, computed by Python.
   * @param {SearchRequest} options
   * @returns {Promise<SearchResult>}
   */
  async search(options) {
    const { sourceIds, prefixIds, decoding, nBest, changes } = this.searchOptions(options);
    const known = this.foundBefore(options);
    if (known) return known;
    const { message } = await this.#python.request({
      kind: "search",
      source_ids: sourceIds,
      prefix_ids: prefixIds,
      beam_size: decoding.beam_size,
      length_penalty: decoding.length_penalty,
      n_best: nBest,
      changes: wireChanges(changes),
    });
    return searchResult(message);
  }
}

/** Computes nothing: shows what Python recorded for one sentence. */
class RecordedEngine extends Engine {
  live = /** @type {const} */ (false);
  /** @type {Points | null} */
  #recorded = null;

  /** Returns the model without its matrices: the layer norms. */
  async model() {
    const { tensors, data } = /** @type {Packed} */ (this.payload.weights);
    return makeModel(this.config, tensors, data);
  }

  /**
   * Returns the recorded trace; throws for any other, which needs the model.
   * @param {TraceRequest} request
   */
  async trace({ sourceIds, targetIds, changes = {} }) {
    const { source_ids: source, target_ids: target, words } = this.payload.trace;
    this.#expect(isUnchanged(changes) && isSame(sourceIds, source) && isSame(targetIds, target));
    this.#recorded ??= this.#points();
    return {
      ...traceOf([...this.#recorded.keys()], this.#recorded),
      words: words?.rest.length ? words : null,
    };
  }

  #points() {
    const { trace, config } = this.payload;
    const points = recordedPoints(trace);
    for (const name of ["logits", "log_probs"]) {
      const columns = /** @type {Tensor} */ (points.get(name));
      const { ids } = /** @type {RecordedWords} */ (trace.words);
      points.set(name, spread(columns, ids, config.target_vocab_size));
    }
    return points;
  }

  /**
   * Returns the recorded search; throws for any other, which needs the model.
   * @param {SearchRequest} options
   * @returns {Promise<SearchResult>}
   */
  async search(options) {
    const found = this.foundBefore(options);
    this.#expect(found);
    return found;
  }

  /**
   * @param {unknown} recorded
   * @returns {asserts recorded}
   */
  #expect(recorded) {
    if (!recorded)
      throw new Error(
        "this page is a recording of one sentence: anything else needs the model (glassformer explore RUN)",
      );
  }
}

/**
 * Returns a matrix of `width` columns with these columns of each row, and NaN in all others.
 * @param {Tensor} columns
 * @param {number[][]} ids
 * @param {number} width
 */
function spread({ shape: [rows, count], data }, ids, width) {
  const all = tensor([rows, width], new Float32Array(rows * width).fill(NaN));
  for (let row = 0; row < rows; row++) {
    for (let at = 0; at < count; at++) all.data[row * width + ids[row][at]] = data[row * count + at];
  }
  return all;
}

/**
 * Returns a function that fetches one point; points asked for at the same moment share one request.
 * @param {(names: string[]) => Promise<unknown>} fetchPoints
 */
function together(fetchPoints) {
  /** @type {{ names: Set<string>, sent: Promise<unknown> } | null} */
  let waiting = null;
  return (/** @type {string} */ name) => {
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

/**
 * Returns the concatenated bytes of buffers.
 * @param {Bytes[]} buffers
 */
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

/**
 * Returns a trace: the names of its points, and each point's {shape, data} on demand.
 * @param {string[]} names
 * @param {Points} points
 * @param {((name: string) => Promise<unknown>) | null} fetchPoint
 * @returns {Trace}
 */
function traceOf(names, points, fetchPoint = null) {
  const known = new Set(names);
  return {
    names,
    words: null,
    remote: null,
    has: (name) => known.has(name),
    async get(name) {
      if (!points.has(name) && known.has(name) && fetchPoint) await fetchPoint(name);
      const point = points.get(name);
      if (!point) throw new Error(`there is no point "${name}" in this trace`);
      return point;
    },
  };
}

/**
 * Returns the first point whose shape or numbers differ, in the unchanged trace's order, or null.
 * @param {Trace} unchanged
 * @param {Trace} changed
 */
export async function firstDifference(unchanged, changed) {
  if (unchanged.remote && changed.remote) return unchanged.remote.firstDifference(changed.remote.asked);
  for (const name of unchanged.names) {
    if (!changed.has(name)) return name;
    const [before, after] = [await unchanged.get(name), await changed.get(name)];
    if (!isSame(before.shape, after.shape) || !isSame(before.data, after.data)) return name;
  }
  return null;
}

/**
 * Returns the largest difference between the page's PyTorch trace and this engine's: `own`, or a new one.
 * @param {EngineOfPage} engine
 * @param {Payload} payload
 * @param {Trace | null} own
 */
export async function parity(engine, payload, own = null) {
  if (engine.live === false) return null;
  const { source_ids: sourceIds, target_ids: targetIds } = payload.trace;
  const trace = own ?? (await engine.trace({ sourceIds, targetIds }));
  let largest = 0;
  const recorded = recordedPoints(payload.trace);
  const points = await Promise.all([...recorded.keys()].map((name) => trace.get(name)));
  for (const [at, expected] of [...recorded.values()].entries()) {
    const { data: got } = points[at];
    if (got.length !== expected.data.length) return Infinity;
    for (let i = 0; i < got.length; i++) {
      const difference = Math.abs(got[i] - expected.data[i]);
      if (!(difference <= largest)) largest = Number.isNaN(difference) ? Infinity : difference;
    }
  }
  return largest;
}

/**
 * Returns whether two rows of numbers are equal.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
function isSame(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i] && !Object.is(a[i], b[i])) return false;
  return true;
}

/**
 * Returns the bytes of a checkpoint's weights, from the host.
 * @param {Host | null} host
 * @param {number} step
 */
async function checkpointBytes(host, step) {
  if (!host) throw new Error(`the weights of step ${step} need Python: glassformer explore RUN`);
  const { buffers } = await host.request({ kind: "checkpoint", step });
  return joinedBytes(buffers);
}

/**
 * Returns changes in Python's format.
 * @param {Changes} changes
 * @returns {WireChanges}
 */
function wireChanges({ ablated, masks, overrides, patches, positions, scale, mistakes, checkpoint }) {
  /** @param {Patch} patch */
  const renamed = ({ point, sourceIds, targetIds, positions: pairs, heads }) => {
    return { point, source_ids: sourceIds, target_ids: targetIds, positions: pairs, heads };
  };
  return { ablated, masks, overrides, patches: patches.map(renamed), positions, scale, mistakes, checkpoint };
}

/**
 * Returns a search from Python's format.
 * @param {RecordedSearch} search
 * @returns {SearchResult}
 */
function searchResult({ hypotheses, tree }) {
  return {
    hypotheses: hypotheses.map(({ log_prob: logProb, token_log_probs: tokenLogProbs, ...rest }) => {
      return { ...rest, logProb, tokenLogProbs };
    }),
    tree: tree.map(({ log_prob: logProb, token_log_prob: tokenLogProb, ...rest }) => {
      return { ...rest, logProb, tokenLogProb };
    }),
  };
}
