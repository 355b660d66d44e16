// The types that the modules of web/ share, also with Python. Names with underscores are Python's, as in a page's data.

import type { Activation } from "./activations.ts";
import type { Model } from "./model.ts";
import type { Run } from "./run.ts";
import type { Turning } from "./turning.ts";

// Numbers

/** Numbers in row-major order: the last axis of `shape` is contiguous in `data`. */
export interface Tensor {
  shape: number[];
  data: Float32Array;
}

/** Base64 text, a buffer, or a view of a buffer. */
export type Bytes = string | ArrayBuffer | ArrayBufferView<ArrayBuffer>;

/** The position of a tensor in an array of numbers; `offset` counts numbers. */
export interface Slice {
  name: string;
  shape: number[];
  offset: number;
}

/** Several tensors as one sequence of little-endian numbers. */
export interface Packed {
  dtype: "float16" | "float32";
  tensors: Slice[];
  data: Bytes;
}

// The model

export type Side = "source" | "target";
export type Stack = "encoder" | "decoder";
export type PositionKind = "interleaved" | "halves" | "learned" | "none";

/** A named point of the forward pass. */
export interface Point {
  name: string;
  /**
   * The part of the model to which the point belongs. The point's description has the key `point.${part}.${last word
   * of the name}`.
   */
  part: string;
  /** Whether the point's tensor has one matrix for each head. */
  heads: boolean;
}

/**
 * The fields of Python's `ModelConfig` that a forward pass needs, the model's points, and the classic mistakes that
 * apply to the model.
 */
export interface ModelConfig extends ModelSettings {
  points: Point[];
  mistakes: Mistake[];
  /** The largest number of positions in a sentence. */
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

/** The words for which a recording contains logits and log_probs. */
export interface RecordedWords {
  /** The ids of each position's words, likeliest first. */
  ids: number[][];
  /** The total probability of all other words at each position; empty if every word was recorded. */
  rest: number[];
}

/** The forward pass of one sentence. `get` computes or fetches a point, and throws if it does not exist. */
export interface Trace {
  names: string[];
  /** The recorded words, if logits and log_probs are NaN for all other words; otherwise null. */
  words: RecordedWords | null;
  /**
   * Set only if Python keeps the points: the request for this trace, and functions that let Python answer without
   * sending the points.
   */
  remote: RemoteTrace | null;
  has(name: string): boolean;
  get(name: string): Promise<Tensor>;
}

/** A trace whose points Python keeps. */
export interface RemoteTrace {
  asked: WireTrace;
  firstDifference(changed: WireTrace): Promise<string | null>;
  logProb(ids: number[]): Promise<number>;
}

/** A mask of rows × columns cells, 1 = may attend; row 0 belongs to the query at position `start`. */
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

/** A factor √square, and its symbol in a formula, which is "" if nothing is scaled. */
export interface Scale {
  square(config: ModelConfig): number;
  symbol: string;
}

/**
 * The divisor of a layer norm: `of` returns the divisor for a variance; `count` returns the number by which the sum of
 * squares is divided to give the variance.
 */
export interface Deviation {
  of(variance: number): number;
  count(width: number): number;
  symbol: string;
  python: string;
}

/**
 * The steps of a forward pass that a classic mistake can replace; forward.ts has the paper's version. If a step is an
 * object, its function `of` carries out the step, and the other fields are needed to explain the step.
 */
export interface Steps {
  readIds(sourceIds: number[], targetIds: number[], padId: number): Sentence;
  embeddingScale: Scale;
  /**
   * The exponent of a dimension is `count` / d_model; `pair` is the index of the sine and cosine to which the
   * dimension belongs.
   */
  exponent: { count(pair: number, isCosine: number): number; symbol(isCosine: number): string };
  preNorm(config: ModelConfig): boolean;
  /** What a sub-layer's output is added to: the stream, or (if `normed`) its layer norm. */
  shortcut: { of(run: Run, name: string, x: Tensor): Tensor; normed: boolean };
  deviation: Deviation;
  /** The norm at the end of a stack; "plain" has no learned weights. */
  finalNorm(config: ModelConfig): "learned" | "plain" | "none";
  /**
   * Returns where the vector of a position and head begins: the numbers of a projection, one after the other, are cut
   * into length · heads vectors of equal size, and this is the index of the vector.
   */
  headRow(position: number, head: number, length: number, heads: number): number;
  scoreScale: Scale;
  targetMask(ids: number[], rows: number, padId: number, start: number): Mask;
  memoryMask(sourceIds: number[], targetIds: number[], rows: number, padId: number, start: number): Mask;
  /** `side`: the side from which cross-attention takes its keys and values. */
  crossKeyValue: { of(run: Run, name: string, x: Tensor, memory: KeyValue): KeyValue; side: Side };
  /** What replaces a score that the mask hides; `text` is the key of its explanation. */
  blocked: { of(score: number): number; text: string };
  /**
   * `over`: "key" if the weights of one query sum to 1 over the keys, "query" if the weights of one key sum to 1 over
   * the queries.
   */
  softmax: { of(scores: Tensor): Tensor; over: "key" | "query" };
  lateMask: { of(weights: Tensor, mask: Mask): Tensor; masks: boolean };
  /**
   * The scores whose log-softmax gives the words' log probabilities; `python` is code that computes them from `logits`.
   */
  wordScores: { of(logits: Tensor): Tensor; symbol: string; python: string[] };
}

/** Token ids as the model reads them: the source with eos, the target with bos. */
export interface Sentence {
  sourceIds: number[];
  targetIds: number[];
}

// Changes

/** One changed cell of a mask: query, key, and whether the query may attend to the key. */
export type MaskCell = [query: number, key: number, allowed: boolean];

/** One row of attention weights that is set by hand; missing weights are 0. */
export type WeightRow = [head: number, query: number, weights: number[]];

/** Rows of a point that are replaced by rows of another sentence. */
export interface PatchedRows {
  point: string;
  positions: [here: number, there: number][];
  heads?: number[];
}

/** A patch in the engine's format: the sentence from which the rows come, as ids. */
export interface Patch extends PatchedRows, Sentence {}

/** A patch in the reader's format: the sentence from which the rows come, as text. */
export interface TextPatch extends PatchedRows {
  sentence: string;
}

/** What is changed in a forward pass. The keys of the records are names of attentions. */
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

/** The changes that a reader makes, including the sentence and the forced beginning of its output. */
export type TextChanges = ChangesWith<TextPatch> & { source?: string; prefix?: string };

/** A classic mistake, as in Python's `watch/inspection/mistakes.toml`. */
export interface Mistake {
  id: string;
  /** The first point that the mistake changes in this model, or null if it changes none. */
  first: string | null;
  /** Patterns of the points whose formula the mistake changes. */
  at: string[];
  /** Whether decoding with this mistake may use a cache. */
  causal: boolean;
  /** Whether this mistake needs source and target padded to the same length. */
  one_length: boolean;
}

// Searching

/** A run's settings for the search. */
export interface Decoding {
  beam_size: number;
  length_penalty: number;
  /** The number of tokens by which an output may be longer than its source. */
  extra_length: number;
  /** The maximum number of tokens of a source, including eos. */
  max_source: number;
}

/** One finished output; `ids` ends with eos. Log probabilities are natural logarithms. */
export interface Hypothesis {
  ids: number[];
  tokens: string[];
  text: string;
  logProb: number;
  score: number;
  tokenLogProbs: number[];
}

export type NodeState = "kept" | "finished" | "pruned";

/**
 * A candidate token of a search, or the root, which stands for <bos>. The root's parent is null, and its position is
 * −1.
 */
export interface TreeNode extends WeighedNode {
  text: string;
}
export interface WeighedNode {
  /** The node's index in the tree's list of nodes. */
  id: number;
  parent: number | null;
  position: number;
  token: number;
  tokenLogProb: number;
  logProb: number;
  state: NodeState;
  /** Set only for a finished output. */
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

/** A translation with rows of attention set by hand: the source and the output, each with eos. */
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

/** A row of the target, and two words that compete for the position that it predicts. */
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
  /**
   * Returns a model with the weights that this page has: all weights, the weights fetched so far, or only a
   * recording's layer norms.
   */
  model(step?: number | null): Promise<Model>;
}

/** An engine that computes on this page, which has the weights. */
export interface LiveEngine extends AnyEngine {
  live: true;
  modelWith(names: string[], step: number | null): Promise<Model>;
  rowsOf(name: string, rows: number[], step: number | null): Promise<Tensor>;
  turning(request: TurningRequest): Promise<Turning>;
}

/** An engine that lets Python compute. */
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

/** A tokenizer in the format of Python's `to_dict`, with its tokens by id. tokenizers.ts lists the kinds. */
export interface TokenizerData {
  kind: string;
  tokens: string[];
  /** "spaces" if only white space is normalised, as in older versions of glassformer. */
  normalisation?: string;
  /** Whether each text begins with `<bos>`; only for words and characters. */
  with_bos?: boolean;
  /** Whether each source ends with `<eos>`; true by default. */
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
  normalisation?: string;
  with_eos?: boolean;
}

/**
 * An imported tokenizer: one sentencepiece model cuts texts into pieces, and the same or a second model joins pieces.
 */
export interface MarianData extends TokenizerData {
  cutter: CutterData;
  joiner: JoinerData;
}

/** The pieces of a model, in its order, and its normalisation. */
export interface CutterData {
  kind: "unigram" | "bpe";
  pieces: string[];
  scores: number[];
  types: number[];
  /** The replacements of characters, in sentencepiece's format. */
  characters: Bytes;
  /** Whether each text gets a space in front. */
  prefix: boolean;
  /** Whether runs of spaces become one space, and spaces at the ends are removed. */
  trimmed: boolean;
  /** Whether spaces become "▁". */
  escaped: boolean;
}

/** How pieces are joined. Each token has the type of its piece in the joining model. */
export interface JoinerData {
  types: number[];
  prefix?: boolean;
  trimmed?: boolean;
}

/** Converts texts to ids and back. `encode` adds neither bos nor eos, and `decode` leaves special tokens out. */
export interface Tokenizer {
  kind: string;
  /** Whether the page may suggest tokens to a reader who types; pieces of words would not help a reader. */
  suggestsTokens: boolean;
  /** Whether "▁" is a token of its own, so that no token begins with a space. */
  spaceIsToken: boolean;
  /** The id that ends a source: <eos>, or, if sources have no end token, <pad>, which is masked. */
  eosId: number;
  encode(text: string): number[];
  decode(ids: number[]): string;
  tokens(ids: number[]): string[];
  split(text: string): string[];
}

// Data from Python

/** The points of one sentence, as PyTorch computed them. */
export interface RecordedTrace {
  source_ids: number[];
  target_ids: number[];
  dtype: Packed["dtype"];
  points: Slice[];
  data: Bytes;
  /** The words for which logits and log_probs were recorded; null if they were recorded for all words. */
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

/** A snapshot of the training. If `data` is null, its weights are fetched from the host. */
export interface Checkpoint {
  step: number;
  data: Bytes | null;
  /** How much log p of the page's translation changed when the weights were shrunk; absent for fetched weights. */
  loss?: number;
}

/** The texts of the interface, by language and key. */
export type Strings = Record<"en" | "zh", Record<string, string>>;

/**
 * The guided story: when the story opens by itself, and a pair of sentences in which one word decides another. The pair
 * is [] if the chapters use the page's own sentence.
 */
export interface StoryData {
  opens: "never" | "first" | "always";
  pair: string[];
}

/** The word that the stage highlights first in a sentence, its rival, and the effect of each head on the word. */
export interface Opening {
  /** The output, including <eos>, for which the opening was measured. */
  ids: number[];
  /** The position of the word in the output, from 0. */
  row: number;
  /** The id of the word's rival. */
  rival: number;
  /** Whether the rival is the word that the pair's other sentence has at this position. */
  ofPair: boolean;
  /**
   * For each attention (such as "decoder.layers.1.cross_attention") and each of its heads: the word's probability and
   * its margin, log p(word) − log p(rival), when this head is switched off.
   */
  without: Record<string, { probability: number; margin: number }[]>;
  /**
   * A row of cross-attention that makes the model write the rival if the row attends to a different source position:
   * the head, the positions, and the probabilities of the word and the rival afterwards. Null if no single row makes
   * the model write the rival.
   */
  turn: { attention: string; head: number; from: number; to: number; word: number; rival: number } | null;
}

/** The data of a page, written by glassformer/watch/explorer/payload.py. */
export interface Payload {
  format_version: number;
  /** Whether the page only shows PyTorch's numbers of one sentence, and cannot compute other numbers. */
  recorded: boolean;
  name: string;
  config: ModelSettings;
  points: Point[];
  mistakes: Mistake[];
  parameters: number;
  decoding: Decoding;
  /** The sentence that is translated when the page opens. */
  sentence: string;
  examples: string[];
  /** The openings that Python has measured, of the page's sentence and of the examples. */
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
  /** null: source and target share one tokenizer. */
  target: TokenizerData | RecordedTexts | null;
  /** null: the model is too large for a page. A recording has only the layer norms. */
  weights: Packed | null;
  /** The step of the run's best weights. */
  step: number | null;
  /** Pairs of a step and a loss. */
  curve: Record<"loss" | "validation", [step: number, loss: number][]>;
  trace: RecordedTrace;
  search: RecordedSearch | null;
  host: { url: string } | null;
  checkpoints: Checkpoint[];
  /** Steps of checkpoints that were left out because they did not fit into the page. */
  left_out: number[];
  alignment?: { layer: number; heads: number[] } | null;
}

/** Changes in the format that Python reads. */
export type WireChanges = ChangesWith<PatchedRows & { source_ids: number[]; target_ids: number[] }>;

/** A forward pass in the format that Python reads. */
export interface WireTrace {
  source_ids: number[];
  target_ids: number[];
  changes: WireChanges;
}

/** What the page can ask Python behind it, by kind of request. `Answers` has the replies. */
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
  /** `rows`: which rows of each matrix to send; null: all. */
  parameters: { names: string[]; rows: number[] | null; checkpoint: number | null };
}
interface Answers {
  /** {buffer: n} in place of numbers refers to the n-th buffer. */
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

/** A row of an explanation's table. `from` contains the cells of `left` and `right`, or the cell of `value`. */
export interface Part {
  label: string;
  left?: number;
  right?: number;
  value?: number;
  from?: Cell[];
  /** Whether this row belongs to the explained number itself. */
  own?: boolean;
}

/** An intermediate result that is shown with an explanation's table. */
export interface Step {
  label: string;
  text: string;
  value: number;
  from?: Cell[];
}

/** A number's arithmetic as Python code: named inputs, and lines that compute `result`. */
export interface Code {
  inputs: Record<string, number | number[]>;
  lines: string[];
}

/** The explanation of a number. */
export interface Explanation extends Cell {
  /** The number in the trace. */
  result: number;
  /** The formula with symbols. */
  formula: string;
  /** The formula with numbers. */
  numbers?: string;
  /** Numbers that sum to `result`, up to `difference`, the rounding error of float32. */
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
  /** Absent if the numbers are not on this page. */
  code?: Code;
}

/** The tokens of a point's rows and columns; null if an axis counts dimensions. */
export interface Labels {
  rows: string[];
  columns: string[] | null;
  rowSide: Side;
  columnSide?: Side;
}

/** What explanations read from a view. */
export interface Explained {
  config: ModelConfig;
  engine: Engine;
  changes: { patches: TextPatch[] };
  /** Null until a sentence has been computed. */
  result: { current: Sentence & { trace: Trace; changes: Changes } } | null;
  t(key: string, ...values: (string | number)[]): string;
  labels(name: string): Labels;
}
