// The engines: this page computes (LocalEngine), Python behind the page computes (RemoteEngine), or the page only
// shows a recording (RecordedEngine). All three engines have the same asynchronous interface.

import { NO_CHANGES, checkChanges, encoderKey, isOfEncoder, isUnchanged } from "./changes.ts";
import { forward } from "./forward.ts";
import { beamSearch } from "./search.ts";
import { bytesOf, floatsOf, isSame, rowOf, tensor } from "./tensor.ts";
import { Model, makeModel, makeShrunkModel, pointNames, recordedPoints, slices } from "./model.ts";
import { Run } from "./run.ts";
import { makeTokenizer } from "./tokenizers.ts";
import { Turning } from "./turning.ts";
import { Writer } from "./writer.ts";

import type { Engine as EngineOfPage } from "./types.ts";
import type {
  Bytes,
  Changes,
  Decoding,
  Host,
  Hypothesis,
  ModelConfig,
  Packed,
  Patch,
  Payload,
  Points,
  RecordedSearch,
  RecordedWords,
  RowWords,
  SearchRequest,
  SearchResult,
  Side,
  Tensor,
  Trace,
  Tokenizer,
  TraceRequest,
  TurningRequest,
  WireChanges,
  WireTrace,
} from "./types.ts";

/** Returns the engine for a page's data. With a `host`, the engine can send requests to Python behind the page. */
export async function createEngine(payload: Payload, host: Host | null = null): Promise<EngineOfPage> {
  if (payload.recorded) return new RecordedEngine(payload, null);
  if (payload.weights) return new LocalEngine(payload, host);
  if (host) return new RemoteEngine(payload, host);
  throw new Error("this page has no weights, and Python is not behind it: glassformer explore RUN");
}

/** What all engines share: the model's sizes and its tokenizers. */
class Engine {
  payload: Payload;
  host: Host | null;
  config: ModelConfig;
  decoding: Decoding;
  tokenizers: Record<Side, Tokenizer>;

  constructor(payload: Payload, host: Host | null) {
    const { config: sizes, points, mistakes, decoding } = payload;
    const config = { ...sizes, points, mistakes, longest: decoding.max_source + decoding.extra_length + 1 };
    this.payload = payload;
    this.host = host;
    this.config = config;
    this.decoding = payload.decoding;
    const source = makeTokenizer(payload.source);
    this.tokenizers = { source, target: payload.target ? makeTokenizer(payload.target) : source };
  }

  /** Returns {ids, tokens} of a text, without bos and eos. */
  async encode(side: Side, text: string) {
    const ids = this.tokenizers[side].encode(text);
    return { ids, tokens: this.tokens(side, ids) };
  }

  /** Returns the token of each id. */
  tokens(side: Side, ids: number[]) {
    return this.tokenizers[side].tokens(ids);
  }

  /** Returns the text of ids of the target. */
  decode(ids: number[]) {
    return this.tokenizers.target.decode(ids);
  }

  /** Returns the options of a search, with defaults for the missing options. */
  searchOptions({ sourceIds, prefixIds = [], changes = {}, signal = null, ...said }: SearchRequest) {
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

  /** Returns the search result in the page's data if it answers this request, otherwise null. */
  foundBefore(options: SearchRequest): SearchResult | null {
    const { changes, sourceIds, prefixIds, decoding, nBest } = this.searchOptions(options);
    const { search, trace } = this.payload;
    const { beam_size: recordedSize, length_penalty: recordedPenalty } = this.decoding;
    const isPlain = isUnchanged(changes) && prefixIds.length === 0;
    const isRecorded = decoding.beam_size === recordedSize && decoding.length_penalty === recordedPenalty;
    if (!(search && isPlain && isRecorded && isSame(sourceIds, trace.source_ids))) return null;
    const { hypotheses, tree } = searchResult(search);
    return { hypotheses: hypotheses.slice(0, nBest), tree };
  }

  /** Returns the changes, checked and with all defaults filled in. */
  checked(changes: Partial<Changes>) {
    return checkChanges(changes ?? NO_CHANGES, this.config);
  }

  /**
   * Returns gradient × input of each source position: how fast log p(word) − log p(rival), in a row of the target,
   * grows as the position's input is scaled up. Python computes this product; without Python, the result is null.
   */
  async gradients({ sourceIds, targetIds, changes = {} }: TraceRequest, asked: RowWords) {
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

/** Computes everything on this page, which contains the weights. */
class LocalEngine extends Engine {
  live = true as const;
  #models: Map<number | null, Promise<Model>> = new Map();
  #donors: Map<string, Points> = new Map();
  /** The encoder's points of recent traces, by source and `encoderKey`. */
  #encoded: Map<string, Points> = new Map();

  /** Returns the model of the checkpoint at `step`, or the run's own model if `step` is null. */
  model(step: number | null = null) {
    const known = this.#models.get(step) ?? this.#loaded(step);
    this.#models.set(step, known);
    return known;
  }

  /** Returns a model that has at least these weights. */
  modelWith(_names: string[], step: number | null) {
    return this.model(step);
  }

  /** Returns some rows of a matrix. */
  async rowsOf(name: string, rows: number[], step: number | null) {
    const matrix = (await this.model(step)).weight(name);
    const numbers = rows.flatMap((row) => [...rowOf(matrix, row)]);
    return tensor([rows.length, matrix.shape[1]], Float32Array.from(numbers));
  }

  async #loaded(step: number | null) {
    const { tensors, data } = this.payload.weights as Packed;
    if (step === null) return makeModel(this.config, tensors, data);
    const checkpoint = this.payload.checkpoints.find((one) => one.step === step);
    if (!checkpoint) throw new Error(`there is no checkpoint of step ${step} in this page`);
    return checkpoint.data
      ? makeShrunkModel(this.config, tensors, checkpoint.data)
      : makeModel(this.config, tensors, await checkpointBytes(this.host, step));
  }

  /** Returns the trace of a forward pass over these ids, under changes. */
  async trace({ sourceIds, targetIds, changes = {}, signal = null }: TraceRequest) {
    const complete = this.checked(changes);
    const points = await this.#points(complete, sourceIds, targetIds, signal);
    return traceOf(pointNames(this.config), points);
  }

  async #points(changes: Changes, sourceIds: number[], targetIds: number[], signal: AbortSignal | null) {
    const model = await this.model(changes.checkpoint);
    const donors = await this.#donorsOf(changes, signal);
    const run = new Run(model, changes, donors, signal);
    const read = run.steps.readIds(sourceIds, targetIds, this.config.pad_id);
    const key = `${read.sourceIds} ${encoderKey(changes)}`;
    const points = await forward(run, read, this.#encoded.get(key));
    if (this.#encoded.size > 3 && !this.#encoded.has(key)) this.#encoded.clear();
    this.#encoded.set(key, new Map([...points].filter(([name]) => isOfEncoder(name))));
    return points;
  }

  /** Returns the points of the sentences from which rows are patched in. The unchanged model computes these points. */
  async #donorsOf({ patches, checkpoint }: Changes, signal: AbortSignal | null) {
    const donors: Points[] = [];
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

  /** Returns {hypotheses, tree}: the best outputs, best first, and the tree of all candidates. */
  async search(options: SearchRequest): Promise<SearchResult> {
    const { nBest, sourceIds, changes, signal, ...asked } = this.searchOptions(options);
    const donors = await this.#donorsOf(changes, signal);
    const model = await this.model(changes.checkpoint);
    const { finished, tree } = await beamSearch(new Writer(model, changes, donors, sourceIds, signal), asked);
    const texts = this.tokens(
      "target",
      tree.map(({ token }) => token),
    );
    const nodes = tree.map((node, i) => ({ ...node, text: texts[i] }));
    return { hypotheses: finished.slice(0, nBest).map((path) => this.#hypothesis(path)), tree: nodes };
  }

  /** Returns an object that recomputes a translation each time a reader sets rows of attention weights by hand. */
  async turning({ sourceIds, ids, changes = {} }: TurningRequest) {
    const complete = this.checked(changes);
    const donors = await this.#donorsOf(complete, null);
    return new Turning(
      await this.model(complete.checkpoint),
      sourceIds,
      ids,
      complete,
      donors,
      this.decoding,
    );
  }

  #hypothesis({ ids, logProb, score, tokenLogProbs }: Omit<Hypothesis, "tokens" | "text">): Hypothesis {
    const [tokens, text] = [this.tokens("target", ids), this.decode(ids)];
    return { ids, tokens, text, logProb, score, tokenLogProbs };
  }
}

/** Lets Python compute, and fetches only the points that the page shows. */
class RemoteEngine extends Engine {
  live = "remote" as const;
  #python;
  #fetched: Map<number | null, Model> = new Map();

  constructor(payload: Payload, host: Host) {
    super(payload, host);
    this.#python = host;
  }

  /** Returns the trace of these ids, under changes; its points are fetched in groups, on demand. */
  async trace({ sourceIds, targetIds, changes = {} }: TraceRequest) {
    const wire = wireChanges(this.checked(changes));
    const asked = { source_ids: sourceIds, target_ids: targetIds, changes: wire };
    const fetched: Points = new Map();
    const fetchPoints = async (names: string[] | null) => {
      const { message, buffers } = await this.#python.request({ kind: "trace", ...asked, names });
      const points = slices(message.points, floatsOf(joinedBytes(buffers)));
      points.forEach((value, name) => fetched.set(name, value));
      return message.names;
    };
    const firstDifference = async (changed: WireTrace) => {
      const { message } = await this.#python.request({ kind: "difference", unchanged: asked, changed });
      return message.first;
    };
    const logProb = async (ids: number[]) => {
      const { message } = await this.#python.request({ kind: "score", ...asked, output_ids: ids });
      return message.log_prob;
    };
    return {
      ...traceOf(await fetchPoints(null), fetched, together(fetchPoints)),
      remote: { asked, firstDifference, logProb },
    };
  }

  /**
   * Returns the model of the checkpoint at `step` (null: the run's own model), with the weights that were fetched so
   * far.
   */
  async model(step: number | null = null) {
    const model = this.#fetched.get(step) ?? new Model(this.config, new Map());
    this.#fetched.set(step, model);
    return model;
  }

  /** Returns a model that has at least these weights; each weight is fetched only once. */
  async modelWith(names: string[], step: number | null) {
    const model = await this.model(step);
    const missing = names.filter((name) => !model.tensors.has(name));
    if (missing.length > 0) {
      const tensors = await this.#parameters({ names: missing, rows: null, checkpoint: step });
      tensors.forEach((value, name) => model.tensors.set(name, value));
    }
    return model;
  }

  /** Returns some rows of a matrix, without fetching its other rows. */
  async rowsOf(name: string, rows: number[], step: number | null) {
    const tensors = await this.#parameters({ names: [name], rows, checkpoint: step });
    return tensors.get(name) as Tensor;
  }

  async #parameters(asked: { names: string[]; rows: number[] | null; checkpoint: number | null }) {
    const { message, buffers } = await this.#python.request({ kind: "parameters", ...asked });
    return slices(message.parameters, floatsOf(joinedBytes(buffers)));
  }

  /** Returns {hypotheses, tree}, computed by Python. */
  async search(options: SearchRequest): Promise<SearchResult> {
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
  live = false as const;
  #recorded: Points | null = null;

  /** Returns the model without its matrices: the layer norms. */
  async model() {
    const { tensors, data } = this.payload.weights as Packed;
    return makeModel(this.config, tensors, data);
  }

  /** Returns the recorded trace; throws for any other request, because that needs the model. */
  async trace({ sourceIds, targetIds, changes = {} }: TraceRequest) {
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
      const columns = points.get(name) as Tensor;
      const { ids } = trace.words as RecordedWords;
      points.set(name, spread(columns, ids, config.target_vocab_size));
    }
    return points;
  }

  /** Returns the recorded search; throws for any other request, because that needs the model. */
  async search(options: SearchRequest): Promise<SearchResult> {
    const found = this.foundBefore(options);
    this.#expect(found);
    return found;
  }

  #expect(recorded: unknown): asserts recorded {
    if (!recorded)
      throw new Error(
        "this page is a recording of one sentence: anything else needs the model (glassformer explore RUN)",
      );
  }
}

/** Returns a matrix with `width` columns: row by row, the recorded columns `ids`, and NaN in all other columns. */
function spread({ shape: [rows, count], data }: Tensor, ids: number[][], width: number) {
  const all = tensor([rows, width], new Float32Array(rows * width).fill(NaN));
  for (let row = 0; row < rows; row++) {
    for (let at = 0; at < count; at++) all.data[row * width + ids[row][at]] = data[row * count + at];
  }
  return all;
}

/**
 * Returns a function that fetches one point; points that are requested at the same moment share one request to
 * Python.
 */
function together(fetchPoints: (names: string[]) => Promise<unknown>) {
  let waiting: { names: Set<string>; sent: Promise<unknown> } | null = null;
  return (name: string) => {
    if (!waiting) {
      const names = new Set<string>();
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

/** Returns the concatenated bytes of buffers. */
function joinedBytes(buffers: Bytes[]) {
  const parts = buffers.map(bytesOf);
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}

/** Returns a trace: the names of its points, and each point's {shape, data} on demand. */
function traceOf(
  names: string[],
  points: Points,
  fetchPoint: ((name: string) => Promise<unknown>) | null = null,
): Trace {
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
 * Returns the first point whose shape or numbers differ between two traces, in the order of the unchanged trace, or
 * null.
 */
export async function firstDifference(unchanged: Trace, changed: Trace) {
  if (unchanged.remote && changed.remote) return unchanged.remote.firstDifference(changed.remote.asked);
  for (const name of unchanged.names) {
    if (!changed.has(name)) return name;
    const [before, after] = [await unchanged.get(name), await changed.get(name)];
    if (!isSame(before.shape, after.shape) || !isSame(before.data, after.data)) return name;
  }
  return null;
}

/**
 * Returns the largest difference between the PyTorch trace in the page's data and this engine's trace. `own`: the
 * engine's trace; if it is null, the engine computes the trace.
 */
export async function parity(engine: EngineOfPage, payload: Payload, own: Trace | null = null) {
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

/** Returns the bytes of a checkpoint's weights, from the host. */
async function checkpointBytes(host: Host | null, step: number) {
  if (!host) throw new Error(`the weights of step ${step} need Python: glassformer explore RUN`);
  const { buffers } = await host.request({ kind: "checkpoint", step });
  return joinedBytes(buffers);
}

/** Returns the changes in the format that Python reads. */
function wireChanges({
  ablated,
  masks,
  overrides,
  patches,
  positions,
  scale,
  mistakes,
  checkpoint,
}: Changes): WireChanges {
  const renamed = ({ point, sourceIds, targetIds, positions: pairs, heads }: Patch) => {
    return { point, source_ids: sourceIds, target_ids: targetIds, positions: pairs, heads };
  };
  return { ablated, masks, overrides, patches: patches.map(renamed), positions, scale, mistakes, checkpoint };
}

/** Returns a search result, converted from Python's format. */
function searchResult({ hypotheses, tree }: RecordedSearch): SearchResult {
  return {
    hypotheses: hypotheses.map(({ log_prob: logProb, token_log_probs: tokenLogProbs, ...rest }) => {
      return { ...rest, logProb, tokenLogProbs };
    }),
    tree: tree.map(({ log_prob: logProb, token_log_prob: tokenLogProb, ...rest }) => {
      return { ...rest, logProb, tokenLogProb };
    }),
  };
}
