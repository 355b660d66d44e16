// The types that the modules of web/ exchange with each other and with Python.
// Names with underscores are Python's names in a page's data.

import type { Model } from "./model.ts";
import type { Run } from "./run.ts";
import type { Turning } from "./turning.ts";

// Numbers

/** Numbers in row-major order: the last axis of `shape` is contiguous in `data`. */
export interface Tensor {
  shape: number[];
  data: Float32Array;
}

/** Base64 text, a buffer or a view of one. */
export type Bytes = string | ArrayBuffer | ArrayBufferView<ArrayBuffer>;

/** Where one tensor lies in an array of numbers; `offset` counts numbers. */
export interface Slice {
  name: string;
  shape: number[];
  offset: number;
}

/** Tensors as one sequence of little-endian numbers. */
export interface Packed {
  dtype: "float16" | "float32";
  tensors: Slice[];
  data: Bytes;
}

// The model

export type Side = "source" | "target";
export type Stack = "encoder" | "decoder";
export type Activation = "relu" | "gelu" | "silu";
export type PositionKind = "interleaved" | "halves" | "learned" | "none";

/** A named point of the forward pass. */
export interface Point {
  name: string;
  /** Its part of the model: the key of its sentence is `point.${part}.${last word of the name}`. */
  part: string;
  /** Whether it has one matrix for each head. */
  heads: boolean;
}

/** The fields of Python's `ModelConfig` that a forward pass needs, its points, and the mistakes it can make. */
export interface ModelConfig extends ModelSettings {
  points: Point[];
  mistakes: Mistake[];
  /** The largest number of positions that a sentence can have. */
  longest: number;
}
interface ModelSettings {
  source_vocab_size: number;
  target_vocab_size: number;
  d_model: number;
  heads: number;
  d_k: number;
  d_v: number;
  d_ff: number;
  encoder_layers: number;
  decoder_layers: number;
  activation: Activation;
  norm: "post" | "pre";
  final_norm: boolean;
  positions: PositionKind;
  max_length: number;
  tie_embeddings: boolean;
  tie_output: boolean;
  output_bias: boolean;
  pad_id: number;
  bos_id: number;
  eos_id: number;
}

/** The points of a forward pass, by name. */
export type Points = Map<string, Tensor>;

/** The words of logits and log_probs that a recording contains. */
export interface RecordedWords {
  /** The ids of each position's words, likeliest first. */
  ids: number[][];
  /** The probability of all other words at each position; empty if every word was recorded. */
  rest: number[];
}

/** The forward pass of one sentence; `get` computes or fetches a point, and throws when there is none. */
export interface Trace {
  names: string[];
  /** The recorded words, if logits and log_probs are NaN for all other words; otherwise null. */
  words: RecordedWords | null;
  /** Only if Python has the points: what it computed, and what it answers without sending them. */
  remote: RemoteTrace | null;
  has(name: string): boolean;
  get(name: string): Promise<Tensor>;
}

/** A trace that Python keeps. */
export interface RemoteTrace {
  asked: WireTrace;
  firstDifference(changed: WireTrace): Promise<string | null>;
  logProb(ids: number[]): Promise<number>;
}

/** A mask of rows × columns cells, 1 = may attend; the first row is the query at `start`. */
export interface Mask {
  rows: number;
  columns: number;
  start: number;
  data: Uint8Array;
}

/** The heads' keys [H, S, K] and values [H, S, W]. */
export interface KeyValue {
  key: Tensor;
  value: Tensor;
}

/** A factor √square, and its symbol in a formula: "" if nothing is scaled. */
export interface Scale {
  square(config: ModelConfig): number;
  symbol: string;
}

/** The divisor of a layer norm: `of` a variance, the sum of squares divided by `count`. */
export interface Deviation {
  of(variance: number): number;
  count(width: number): number;
  symbol: string;
  python: string;
}

/**
 * The steps of a forward pass that a classic mistake replaces; forward.ts has the paper's version.
 * If a step is an object, `of` computes it, and its other fields explain it.
 */
export interface Steps {
  readIds(sourceIds: number[], targetIds: number[], padId: number): Sentence;
  embeddingScale: Scale;
  /** The exponent of a dimension is `count` / d_model. */
  exponent: { count(pair: number, isCosine: number): number; symbol(isCosine: number): string };
  preNorm(config: ModelConfig): boolean;
  /** The residual, to which a sub-layer's output is added: the stream, or its layer norm. */
  shortcut: { of(run: Run, name: string, x: Tensor): Tensor; normed: boolean };
  deviation: Deviation;
  /** The norm that ends a stack; "plain" has no learned weights. */
  finalNorm(config: ModelConfig): "learned" | "plain" | "none";
  /** The index, among length · heads rows of a projection, of a position's row in a head. */
  headRow(position: number, head: number, length: number, heads: number): number;
  scoreScale: Scale;
  targetMask(ids: number[], rows: number, padId: number, start: number): Mask;
  memoryMask(sourceIds: number[], targetIds: number[], rows: number, padId: number, start: number): Mask;
  /** `side`: the side of the keys and values of cross-attention. */
  crossKeyValue: { of(run: Run, name: string, x: Tensor, memory: KeyValue): KeyValue; side: Side };
  /** The replacement of a score that the mask hides; `text` is the key of its explanation. */
  blocked: { of(score: number): number; text: string };
  /** `over`: the axis along which the weights sum to 1. */
  softmax: { of(scores: Tensor): Tensor; over: "key" | "query" };
  lateMask: { of(weights: Tensor, mask: Mask): Tensor; masks: boolean };
  /** The scores of the words, whose log-softmax gives the log probabilities; `python` computes them from `logits`. */
  wordScores: { of(logits: Tensor): Tensor; symbol: string; python: string[] };
}

/** Token ids as the model reads them: the source with eos, the target with bos. */
export interface Sentence {
  sourceIds: number[];
  targetIds: number[];
}

// Changes

/** One cell of a mask: query, key, whether the query may attend to the key. */
export type MaskCell = [query: number, key: number, allowed: boolean];

/** One row of attention weights written by hand; missing weights are 0. */
export type WeightRow = [head: number, query: number, weights: number[]];

/** Rows of a point that come from another sentence. */
export interface PatchedRows {
  point: string;
  positions: [here: number, there: number][];
  heads?: number[];
}

/** A patch as the engine takes it: the other sentence as ids. */
export interface Patch extends PatchedRows, Sentence {}

/** A patch as the reader gives it: the other sentence as text. */
export interface TextPatch extends PatchedRows {
  sentence: string;
}

/** What is changed in a forward pass; the keys of the records are the names of attentions. */
export interface ChangesWith<AnyPatch> {
  ablated: Record<string, number[]>;
  masks: Record<string, MaskCell[]>;
  overrides: Record<string, WeightRow[]>;
  patches: AnyPatch[];
  positions: boolean;
  scale: boolean;
  mistakes: string[];
  checkpoint: number | null;
}
export type Changes = ChangesWith<Patch>;

/** Changes as the reader makes them, including the sentence and the forced beginning of its output. */
export type TextChanges = ChangesWith<TextPatch> & { source?: string; prefix?: string };

/** A classic mistake, as the table of Python's `watch/inspection/mistakes.toml` has it. */
export interface Mistake {
  id: string;
  /** The first point that differs in this model; null if none differs. */
  first: string | null;
  /** Patterns of the points whose formula changes. */
  at: string[];
  /** Whether decoding may use a cache. */
  causal: boolean;
  /** Whether source and target must be padded to one length. */
  one_length: boolean;
}

// Searching

/** A run's settings of a search. */
export interface Decoding {
  beam_size: number;
  length_penalty: number;
  /** The number of tokens by which an output may exceed its source. */
  extra_length: number;
  /** The largest number of tokens of a source, with eos. */
  max_source: number;
}

/** One finished output; `ids` end with eos. Log probabilities are natural logarithms. */
export interface Hypothesis {
  ids: number[];
  tokens: string[];
  text: string;
  logProb: number;
  score: number;
  tokenLogProbs: number[];
}

export type NodeState = "kept" | "finished" | "pruned";

/** A candidate token of a search, or the root. The root stands for <bos>: its parent is null, its position −1. */
export interface TreeNode extends WeighedNode {
  text: string;
}
export interface WeighedNode {
  /** Its index in the tree. */
  id: number;
  parent: number | null;
  position: number;
  token: number;
  tokenLogProb: number;
  logProb: number;
  state: NodeState;
  /** Only for a finished output. */
  score: number | null;
}

/** The best outputs, best first, and the tree of all candidates. */
export interface SearchResult {
  hypotheses: Hypothesis[];
  tree: TreeNode[];
}

// Engines

export interface TraceRequest extends Sentence {
  changes?: Partial<Changes>;
  signal?: AbortSignal | null;
}

export interface SearchRequest {
  sourceIds: number[];
  prefixIds?: number[];
  beamSize?: number;
  lengthPenalty?: number;
  nBest?: number;
  changes?: Partial<Changes>;
  signal?: AbortSignal | null;
}

/** A translation whose attention is turned: the source and the output, each with eos. */
export interface TurningRequest {
  sourceIds: number[];
  ids: number[];
  changes?: Partial<Changes>;
}

/** A row of attention weights that is set by hand; missing weights are 0. */
export interface TurnedRow {
  attention: string;
  head: number;
  query: number;
  weights: number[];
}

/** A row of the target, and two words that compete for what it writes. */
export interface RowWords {
  row: number;
  word: number;
  rival: number;
}

/** The interface of all engines. */
interface AnyEngine {
  payload: Payload;
  host: Host | null;
  config: ModelConfig;
  decoding: Decoding;
  tokenizers: Record<Side, Tokenizer>;
  encode(side: Side, text: string): Promise<{ ids: number[]; tokens: string[] }>;
  tokens(side: Side, ids: number[]): string[];
  decode(ids: number[]): string;
  trace(request: TraceRequest): Promise<Trace>;
  search(request: SearchRequest): Promise<SearchResult>;
  gradients(request: TraceRequest, asked: RowWords): Promise<number[] | null>;
  /** Returns the weights that the page has: all, those that it has fetched, or a recording's layer norms. */
  model(step?: number | null): Promise<Model>;
}

/** An engine that computes on this page, which has the weights. */
export interface LiveEngine extends AnyEngine {
  live: true;
  modelWith(names: string[], step: number | null): Promise<Model>;
  rowsOf(name: string, rows: number[], step: number | null): Promise<Tensor>;
  turning(request: TurningRequest): Promise<Turning>;
}

/** An engine that asks Python. */
export interface DistantEngine extends AnyEngine {
  live: "remote";
  modelWith(names: string[], step: number | null): Promise<Model>;
  rowsOf(name: string, rows: number[], step: number | null): Promise<Tensor>;
}

/** An engine that shows a recording. */
interface RecordedEngine extends AnyEngine {
  live: false;
}
export type Engine = LiveEngine | DistantEngine | RecordedEngine;

// Tokenizers

/** A tokenizer as Python's `to_dict` gives it; its tokens by id. The kinds are in tokenizers.ts. */
export interface TokenizerData {
  kind: string;
  tokens: string[];
  /** Whether each text begins with `<bos>`; words and characters only. */
  with_bos?: boolean;
  /** Whether each source ends with `<eos>`; by default, it does. */
  with_eos?: boolean;
}

/** A sentencepiece tokenizer: scores and types by id, as in its ModelProto. */
export interface PieceData extends TokenizerData {
  scores: number[];
  types: number[];
}

/** The tokens and texts that occur in a recording, by id, in place of a tokenizer. */
export interface RecordedTexts {
  kind: "recorded";
  tokens: Record<number, string>;
  texts: [text: string, ids: number[]][];
  with_eos?: boolean;
}

/** An imported tokenizer: a sentencepiece model cuts texts, and another or the same joins them. */
export interface MarianData extends TokenizerData {
  cutter: CutterData;
  joiner: JoinerData;
}

/** The pieces of a model in its order, and its normalisation. */
export interface CutterData {
  kind: "unigram" | "bpe";
  pieces: string[];
  scores: number[];
  types: number[];
  /** The replacements of characters, in sentencepiece's format. */
  characters: Bytes;
  /** Whether a text begins with a space. */
  prefix: boolean;
  /** Whether runs of spaces become one, and spaces at the ends are removed. */
  trimmed: boolean;
  /** Whether spaces become "▁". */
  escaped: boolean;
}

/** How pieces are joined; the type of each token is that of the joining model's piece. */
export interface JoinerData {
  types: number[];
  prefix?: boolean;
  trimmed?: boolean;
}

/** Texts ↔ ids; `encode` adds neither bos nor eos, and `decode` leaves special tokens out. */
export interface Tokenizer {
  kind: string;
  /** Whether the page may suggest tokens to a reader who types; pieces of words would not help. */
  suggestsTokens: boolean;
  /** Whether "▁" is a token of its own, so that no token begins with a space. */
  spaceIsToken: boolean;
  /** The id that ends a source: that of <eos>, or of <pad>, which is masked, if sources have no end. */
  eosId: number;
  encode(text: string): number[];
  decode(ids: number[]): string;
  tokens(ids: number[]): string[];
  split(text: string): string[];
}

// Data from Python

/** The points of one sentence as PyTorch computed them. */
export interface RecordedTrace {
  source_ids: number[];
  target_ids: number[];
  dtype: Packed["dtype"];
  points: Slice[];
  data: Bytes;
  /** The columns of logits and log_probs; null if they have a column for each word. */
  words: RecordedWords | null;
}

export interface RecordedHypothesis {
  ids: number[];
  tokens: string[];
  text: string;
  log_prob: number;
  score: number;
  token_log_probs: number[];
}

export interface RecordedNode {
  id: number;
  parent: number | null;
  position: number;
  token: number;
  text: string;
  token_log_prob: number;
  log_prob: number;
  state: NodeState;
  score: number | null;
}

export interface RecordedSearch {
  hypotheses: RecordedHypothesis[];
  tree: RecordedNode[];
}

/** A snapshot of the training; without data, its weights are fetched from the host. */
export interface Checkpoint {
  step: number;
  data: Bytes | null;
  /** By how much shrinking the weights has changed log p of the page's translation; fetched weights are not shrunk. */
  loss?: number;
}

/** The texts of the interface, by language and key. */
export type Strings = Record<"en" | "zh", Record<string, string>>;

/** The story: when it opens by itself, and two sentences in which one word decides another; [] = the own sentence. */
export interface StoryData {
  opens: "never" | "first" | "always";
  pair: string[];
}

/** The word that the stage lights first in a sentence, its rival, and the effect of each head on the word. */
export interface Opening {
  /** The output, with <eos>, in which this was measured. */
  ids: number[];
  /** The place of the word in the output, from 0. */
  row: number;
  /** The id of its rival. */
  rival: number;
  /**
   * For each attention (name such as "decoder.layers.1.cross_attention"), by head: the probability of the word when
   * this head is switched off, and the margin log p(word) − log p(rival) then.
   */
  without: Record<string, { probability: number; margin: number }[]>;
  /**
   * A row of cross-attention that, turned to another source word, makes the model write the rival: head, the source
   * positions from → to, and both words' probabilities afterwards; null if no single row does.
   */
  turn: { attention: string; head: number; from: number; to: number; word: number; rival: number } | null;
}

/** The data of a page, written by glassformer/watch/explorer/payload.py. */
export interface Payload {
  format_version: number;
  /** Whether the page shows PyTorch's numbers of one sentence, and cannot compute others. */
  recorded: boolean;
  name: string;
  config: ModelSettings;
  points: Point[];
  mistakes: Mistake[];
  parameters: number;
  decoding: Decoding;
  /** The sentence that is translated first. */
  sentence: string;
  examples: string[];
  /** The openings of the page's sentence and of the examples, as far as Python has measured them. */
  openings: Record<string, Opening>;
  /** The languages of source and target as BCP 47 tags; "" if unknown. */
  languages: Record<Side, string>;
  /** The label smoothing of the run's training; 0 if unknown. */
  label_smoothing: number;
  story: StoryData;
  strings: Strings;
  /** The style sheet. */
  styles: string;
  source: TokenizerData | RecordedTexts;
  /** null: the source's tokenizer is used. */
  target: TokenizerData | RecordedTexts | null;
  /** null: the model is too large for a page; of a recording, only the layer norms. */
  weights: Packed | null;
  /** The step of the run's best weights. */
  step: number | null;
  /** Pairs of a step and a loss. */
  curve: Record<"loss" | "validation", [step: number, loss: number][]>;
  trace: RecordedTrace;
  search: RecordedSearch | null;
  host: { url: string } | null;
  checkpoints: Checkpoint[];
  /** Steps of checkpoints that did not fit into the page. */
  left_out: number[];
  alignment?: { layer: number; heads: number[] } | null;
}

/** Changes as Python reads them. */
export type WireChanges = ChangesWith<PatchedRows & { source_ids: number[]; target_ids: number[] }>;

/** A forward pass as Python reads it. */
export interface WireTrace {
  source_ids: number[];
  target_ids: number[];
  changes: WireChanges;
}

/** The requests to Python behind the page and its answers, by kind. */
interface Questions {
  payload: Record<never, never>;
  trace: WireTrace & { names: string[] | null };
  difference: { unchanged: WireTrace; changed: WireTrace };
  score: WireTrace & { output_ids: number[] };
  search: {
    source_ids: number[];
    prefix_ids: number[];
    beam_size: number;
    length_penalty: number;
    n_best: number;
    changes: WireChanges;
  };
  checkpoint: { step: number };
  gradient: WireTrace & RowWords;
  /** `rows`: only these rows of each matrix. */
  parameters: { names: string[]; rows: number[] | null; checkpoint: number | null };
}
interface Answers {
  /** {buffer: n} in place of numbers means the n-th buffer. */
  payload: { payload: unknown };
  trace: { names: string[]; points: Slice[] };
  difference: { first: string | null };
  score: { log_prob: number };
  search: RecordedSearch;
  checkpoint: Record<never, never>;
  gradient: { effects: number[] };
  parameters: { parameters: Slice[] };
}
export type Question<Kind extends keyof Questions = keyof Questions> = { kind: Kind } & Questions[Kind];
export type Answer<Kind extends keyof Answers = keyof Answers> = { message: Answers[Kind]; buffers: Bytes[] };

/** The connection to Python behind the page: a server, or a notebook's kernel. */
export interface Host {
  request<Kind extends keyof Questions>(question: Question<Kind>): Promise<Answer<Kind>>;
}

// How a number was made

/** One number of a trace. */
export interface Cell {
  name: string;
  index: number[];
}

/** A row of an explanation's table; `from` gives the cells of `left` and `right`, or of `value`. */
export interface Part {
  label: string;
  left?: number;
  right?: number;
  value?: number;
  from?: Cell[];
  /** Whether this is the explained number's own row. */
  own?: boolean;
}

/** An intermediate result beside an explanation's table. */
export interface Step {
  label: string;
  text: string;
  value: number;
  from?: Cell[];
}

/** A number's arithmetic as Python: named inputs, and lines that compute `result`. */
export interface Code {
  inputs: Record<string, number | number[]>;
  lines: string[];
}

/** The explanation of a number. */
export interface Explanation extends Cell {
  /** The traced number. */
  result: number;
  /** The formula with symbols. */
  formula: string;
  /** The formula with numbers. */
  numbers?: string;
  /** Numbers whose sum is `result`, up to `difference`, the rounding of float32. */
  terms: number[];
  difference: number;
  parts: Part[];
  /** Headings of the table. */
  columns: string[];
  total?: { label: string; value: number };
  steps: Step[];
  /** Whether the steps come before the table. */
  stepsFirst?: boolean;
  /** The changes that affect this number. */
  notes: string[];
  /** Absent where the numbers are not on this page. */
  code?: Code;
}

/** The tokens along a point's rows and columns; null for dimensions. */
export interface Labels {
  rows: string[];
  columns: string[] | null;
  rowSide: Side;
  columnSide?: Side;
}

/** The part of a view that explanations read. */
export interface Explained {
  config: ModelConfig;
  engine: Engine;
  changes: { patches: TextPatch[] };
  /** Present before a number can be chosen. */
  result: { current: Sentence & { trace: Trace; changes: Changes } } | null;
  t(key: string, ...values: (string | number)[]): string;
  labels(name: string): Labels;
}
