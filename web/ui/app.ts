// The state of one view of the explorer: the sentence, the changes, the results, and the reader's selection.
// Panels listen to its events ("result", "ui", "hover", "busy") and change it; the panels draw.
import { checkChanges, isUnchanged, NO_CHANGES } from "../engine/changes.ts";
import { createEngine, firstDifference, parity } from "../engine/engine.ts";
import { STEPS, attentionMask } from "../engine/forward.ts";
import { stepsUnder } from "../engine/mistakes.ts";
import { headStatistics } from "../engine/statistics.ts";
import { UNKNOWN_ID } from "../engine/tokenizers.ts";
import type {
  Changes,
  ChangesWith,
  Engine,
  Explained,
  Host,
  Labels,
  ModelConfig,
  Payload,
  Side,
  Stack,
  TextChanges,
  Tokenizer,
  Trace,
} from "../engine/types.ts";
import type { Compared, Events, Family, Looks, MeasuredHead, PanelName, Result } from "./types.ts";
import type { Search, SomeChanges, Token, Translated } from "./types.ts";

/** The three families of attention, in the order of the map, from left to right. */
export const FAMILIES: Family[] = [
  { id: "encoder", stack: "encoder", sublayer: "self_attention", rows: "source", columns: "source" },
  { id: "cross", stack: "decoder", sublayer: "cross_attention", rows: "target", columns: "source" },
  { id: "decoder", stack: "decoder", sublayer: "self_attention", rows: "target", columns: "target" },
];

const PANELS: PanelName[] = ["numbers", "why", "layers", "changes", "beam", "positions", "training"];

/** Returns the name of a family's attention in a layer, such as "decoder.layers.0.cross_attention". */
export function attentionName(family: Family, layer: number) {
  return `${family.stack}.layers.${layer}.${family.sublayer}`;
}

/** Returns the app of one view; `signal` ends everything that the app starts. */
export async function createApp(payload: Payload, host: Host | null, signal: AbortSignal) {
  const engine = await createEngine(payload, host);
  const app = new App(payload, engine, signal);
  await app.open(payload.sentence);
  await app.pickHeads();
  const { sourceIds, targetIds, trace } = app.result.reference;
  const { source_ids: source, target_ids: target } = payload.trace ?? {};
  const known = String([sourceIds, targetIds]) === String([source, target]);
  app.parity = await parity(engine, payload, known ? trace : null);
  return app;
}

export class App implements Explained {
  #result: Result | null = null;
  #reference: (Translated & { key: string }) | null = null;
  #listeners: Map<keyof Events, Set<(detail: any) => void>> = new Map();
  #run = 0;
  #computable;
  /** The largest difference from PyTorch's numbers; null without numbers to compare with. */
  parity: number | null = null;
  changes: TextChanges = { ...NO_CHANGES };
  #compared: Compared | null = null;

  payload: Payload;
  engine: Engine;
  signal: AbortSignal;
  config: ModelConfig;
  sentence: string;
  search: Search;
  ui: Looks;

  constructor(payload: Payload, engine: Engine, signal: AbortSignal) {
    this.payload = payload;
    this.engine = engine;
    this.signal = signal;
    this.config = engine.config;
    this.sentence = payload.sentence;
    this.search = { beamSize: engine.decoding.beam_size, lengthPenalty: engine.decoding.length_penalty };
    const heads = FAMILIES.map((family) => [family.id, { layer: this.layersOf(family) - 1, head: 0 }]);
    this.ui = {
      language: navigator.language?.startsWith("zh") ? "zh" : "en",
      theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
      stage: "map",
      point: { name: "encoder.layers.0.self_attention.weights", head: 0 },
      heads: Object.fromEntries(heads),
      order: "index",
      contrast: false,
      pinned: [],
      beside: "",
      face: "grid",
      story: 0,
      panel: "numbers",
      word: null,
      selected: null,
      shown: null,
      step: null,
      pace: 150,
    };
    this.#computable = this.#asked();
  }

  /** The names of the panels: a recording can neither be changed nor played back. */
  get panels() {
    const recorded: PanelName[] = ["numbers", "why", "layers", "beam", "positions"];
    return this.engine.live === false ? recorded : PANELS;
  }

  /** The last results; panels are made after the first. */
  get result() {
    if (!this.#result) throw new Error("nothing is computed yet");
    return this.#result;
  }

  /** Calls `listener` at each event of a type, until the view is closed. Returns a function that stops it earlier. */
  on<Type extends keyof Events>(type: Type, listener: (detail: Events[Type]) => void) {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  emit<Type extends keyof Events>(type: Type, detail: Events[Type]) {
    for (const listener of [...(this.#listeners.get(type) ?? [])]) listener(detail);
  }

  /** Returns a string of the interface in the reader's language; {0}, {1} … are filled in. */
  t(key: string, ...values: (string | number)[]) {
    const { strings } = this.payload;
    const text = strings[this.ui.language][key] ?? strings.en[key] ?? key;
    return text.replace(/\{(\d)\}/g, (whole, place) => String(values[Number(place)] ?? whole));
  }

  /** Changes the reader's selection. */
  show(looks: Partial<Looks>) {
    this.ui = { ...this.ui, ...looks };
    this.emit("ui", Object.keys(looks) as (keyof Looks)[]);
  }

  /** Highlights tokens in all grids. */
  light(tokens: Token[]) {
    this.emit("hover", tokens);
  }

  /** Opens the arithmetic of one number. */
  select(name: string, index: number[]) {
    this.show({
      selected: { name, index: [...index] },
      panel: "numbers",
      heads: this.#headsWith(name, index[0]),
    });
  }

  /** Returns the map's heads, with the head that a cell of attention weights belongs to. */
  #headsWith(name: string, head: number) {
    const layer = Number(name.match(/\.layers\.(\d+)\./)?.[1]);
    const family = FAMILIES.find((one) => name === `${attentionName(one, layer)}.weights`);
    return family ? { ...this.ui.heads, [family.id]: { layer, head } } : this.ui.heads;
  }

  /**
   * Shows the head with the highest mean peak in each family's last layer; of cross-attention, among the heads that
   * align words.
   */
  async pickHeads() {
    const heads = { ...this.ui.heads };
    for (const family of FAMILIES) {
      const aligning = family.id === "cross" ? this.payload.alignment : null;
      const shown = aligning?.layer ?? this.layersOf(family) - 1;
      const among = (await this.statistics(family)).filter(
        ({ layer, head }) => layer === shown && (aligning?.heads.includes(head) ?? true),
      );
      const { layer, head } = among.reduce((best, one) => (one.peak > best.peak ? one : best));
      heads[family.id] = { layer, head };
    }
    this.show({ heads });
  }

  layersOf(family: { stack: Stack }) {
    return this.config[`${family.stack}_layers`];
  }

  /** Runs an action of the reader, and shows its error. */
  async attempt(action: () => unknown) {
    this.emit("problem", "");
    try {
      await action();
    } catch (error) {
      this.emit("problem", messageOf(error));
    }
  }

  /** Starts anew with a different sentence, with which changes are then compared. */
  async open(sentence: string) {
    this.sentence = sentence;
    this.changes = { ...NO_CHANGES };
    await this.compute();
  }

  /** Changes the model or its input; omitted changes stay as they are. */
  async set(changes: SomeChanges) {
    checkChanges(changes, this.config);
    this.changes = { ...this.changes, ...changes };
    await this.compute();
  }

  /** Undoes all changes. */
  async reset() {
    this.changes = { ...NO_CHANGES };
    await this.compute();
  }

  /** Shows a sentence under these changes, in one computation. */
  async turnTo({ sentence, changes }: { sentence: string; changes: TextChanges }) {
    checkChanges(changes, this.config);
    Object.assign(this, { sentence, changes: { ...NO_CHANGES, ...changes } });
    await this.compute();
  }

  /** Changes beam size or length penalty. */
  async searchWith(search: Partial<Search>) {
    this.search = { ...this.search, ...search };
    await this.compute();
  }

  /** Whether anything differs from the unchanged sentence. */
  get changed() {
    const { source, prefix } = this.changes;
    return !isUnchanged(this.changes) || Boolean(prefix) || (source ?? this.sentence) !== this.sentence;
  }

  /** Returns the value of a point for the current sentence under the current changes. */
  async value(name: string) {
    return this.result.current.trace.get(name);
  }

  #asked() {
    return { sentence: this.sentence, changes: this.changes, search: this.search };
  }

  async compute() {
    const run = ++this.#run;
    this.emit("busy", true);
    try {
      const result = await this.#computed();
      if (run !== this.#run || this.signal.aborted) return;
      this.#result = result;
      if (this.sentence !== this.#computable.sentence) this.ui = { ...this.ui, word: null }; // a place in the old one
      this.#computable = this.#asked();
      this.emit("result", result);
    } catch (error) {
      if (run === this.#run) Object.assign(this, this.#computable); // a change that cannot be computed is undone
      throw error;
    } finally {
      if (run === this.#run) this.emit("busy", false);
    }
  }

  async #computed(): Promise<Result> {
    const {
      sentence,
      changed,
      changes: { source = sentence, prefix = "" },
    } = this;
    if (!(sentence.trim() && source.trim())) throw new Error(this.t("page.blank"));
    const reference = await this.unchanged(sentence, this.changes);
    if (!changed) {
      return {
        reference,
        current: reference,
        firstDifference: null,
        logProbOfReference: reference.hypothesis.logProb,
      };
    }
    const changes = await this.resolved();
    const current = await this.translated(source, prefix, changes);
    const sameTarget = String(current.targetIds) === String(reference.targetIds);
    const compared = sameTarget
      ? current.trace
      : await this.traced(current.sourceIds, reference.targetIds, changes);
    return {
      reference,
      current,
      firstDifference: await firstDifference(reference.trace, compared),
      logProbOfReference: await logProbOf(compared, reference.hypothesis.ids),
    };
  }

  /** Returns a sentence without changes, with the shapes that it has under `changes`; the last one is kept. */
  async unchanged(sentence: string, changes: TextChanges) {
    const { readIds } = stepsUnder(changes); // compared runs have the same shapes
    const key = JSON.stringify([sentence, this.search, readIds === STEPS.readIds]);
    if (this.#reference?.key === key) return this.#reference;
    const plain = this.engineChanges(NO_CHANGES);
    this.#reference = { key, ...(await this.translated(sentence, "", plain, readIds)) };
    return this.#reference;
  }

  /** Returns one sentence translated and traced under changes. */
  async translated(
    text: string,
    prefix: string,
    changes: Changes,
    readIds = stepsUnder(changes).readIds,
  ): Promise<Translated> {
    const { engine } = this;
    const sourceIds = await this.#sourceIds(text);
    const prefixIds = prefix ? await this.#ids("target", prefix) : [];
    const search = await engine.search({
      sourceIds,
      prefixIds,
      ...this.search,
      nBest: this.search.beamSize,
      changes,
    });
    const hypothesis = search.hypotheses[0];
    const targetIds = [this.config.bos_id, ...hypothesis.ids.slice(0, -1)];
    const read = readIds(sourceIds, targetIds, this.config.pad_id);
    const trace = await engine.trace({ ...read, changes });
    return {
      text: hypothesis.text,
      search,
      hypothesis,
      sourceIds,
      targetIds,
      prefixIds,
      trace,
      changes,
      sourceTokens: engine.tokens("source", read.sourceIds),
      targetTokens: engine.tokens("target", read.targetIds),
      outputTokens: hypothesis.tokens,
      unknown: [
        ...unknownWords(engine.tokenizers.source, text, sourceIds.slice(0, -1)),
        ...unknownWords(engine.tokenizers.target, prefix, prefixIds),
      ],
      statistics: {},
    };
  }

  /** Returns the ids of a text as the model reads them. */
  async #sourceIds(text: string) {
    const { engine, config } = this;
    const ids = [...(await this.#ids("source", text)), engine.tokenizers.source.eosId];
    const longest = config.positions === "learned" ? config.max_length : engine.decoding.max_source;
    if (ids.length > longest) throw new Error(this.t("page.long", longest - 1, ids.length - 1));
    return ids;
  }

  /** Returns the ids of a text, without bos and eos. */
  async #ids(side: Side, text: string) {
    if (/\p{Surrogate}/u.test(text)) throw new Error(this.t("page.surrogate"));
    return (await this.engine.encode(side, text)).ids;
  }

  traced(sourceIds: number[], targetIds: number[], changes: Changes) {
    return this.engine.trace({
      ...stepsUnder(changes).readIds(sourceIds, targetIds, this.config.pad_id),
      changes,
    });
  }

  /** Returns the changes in the engine's format. `patches`: with their sentences as ids. */
  engineChanges(
    { ablated, masks, overrides, positions, scale, mistakes, checkpoint }: ChangesWith<unknown>,
    patches: Changes["patches"] = [],
  ): Changes {
    return { ablated, masks, overrides, patches, positions, scale, mistakes, checkpoint };
  }

  /** Returns the current changes in the engine's format, with the patches' sentences as ids. */
  async resolved() {
    const plain = this.engineChanges(NO_CHANGES);
    const patches = [];
    for (const { sentence, ...patch } of this.changes.patches) {
      const donor = await this.translated(sentence, "", { ...plain, checkpoint: this.changes.checkpoint });
      patches.push({ ...patch, sourceIds: donor.sourceIds, targetIds: donor.targetIds });
    }
    return this.engineChanges(this.changes, patches);
  }

  /** Returns the tokens along a point's rows and columns, null for dimensions. */
  labels(name: string): Labels {
    const { sourceTokens, targetTokens, changes } = this.result.current;
    const tokens = { source: sourceTokens, target: targetTokens };
    const { crossKeyValue } = stepsUnder(changes);
    const memory = name.includes("cross_attention") && crossKeyValue.side === "source";
    const ofSource = /^(source|encoder)/.test(name) || (memory && /\.(key|value)$/.test(name));
    const rowSide = ofSource ? "source" : "target";
    if (!/\.(scores|weights)$/.test(name)) return { rows: tokens[rowSide], columns: null, rowSide };
    const columnSide = memory ? "source" : rowSide;
    return { rows: tokens[rowSide], columns: tokens[columnSide], rowSide, columnSide };
  }

  /** Returns the mask of an attention under the current changes. */
  mask(attention: string) {
    const { current } = this.result;
    const { changes } = current;
    return attentionMask({ config: this.config, changes, steps: stepsUnder(changes) }, attention, current);
  }

  /** What the map's attentions are compared with; null while nothing is compared with the present result. */
  get compared(): Compared | null {
    return this.#compared?.of === this.#result?.current ? this.#compared : null;
  }

  compareWith(compared: Compared | null) {
    if (this.#compared === compared) return;
    this.#compared = compared;
    this.emit("compared", null);
  }

  /** Returns the statistics of every head of a family. */
  statistics(family: Family): Promise<MeasuredHead[]> {
    const { current } = this.result;
    return (current.statistics[family.id] ??= this.#measured(family, current));
  }

  async #measured(family: Family, current: Translated) {
    const found = [];
    for (let layer = 0; layer < this.layersOf(family); layer++) {
      const name = `${attentionName(family, layer)}.weights`;
      const {
        shape: [heads, rows, columns],
        data,
      } = await current.trace.get(name);
      const keys = this.labels(name).columns ?? [];
      for (let head = 0; head < heads; head++) {
        found.push({ layer, head, ...headStatistics(data, head * rows * columns, rows, columns, keys) });
      }
    }
    return found;
  }

  /** Returns how log p of the current output changes when one head is ablated. */
  async ablationEffect(attention: string, head: number) {
    const { current } = this.result;
    const changes = await this.resolved();
    const heads = [...new Set([...(changes.ablated[attention] ?? []), head])];
    const trace = await this.traced(current.sourceIds, current.targetIds, {
      ...changes,
      ablated: { ...changes.ablated, [attention]: heads },
    });
    return (await logProbOf(trace, current.hypothesis.ids)) - current.hypothesis.logProb;
  }

  /** Returns a translation under the current changes. */
  async translate(
    text?: string,
    { beamSize, lengthPenalty, prefix }: Partial<Search> & { prefix?: string } = {},
  ): Promise<{ text: string; score: number; logProb: number; tokens: string[] }> {
    const { engine } = this;
    const source = text ?? this.changes.source ?? this.sentence;
    if (!source.trim()) return { text: "", score: 0, logProb: 0, tokens: [] }; // as in Python
    const sourceIds = await this.#sourceIds(source);
    const forced = prefix ?? this.changes.prefix ?? "";
    const { hypotheses } = await engine.search({
      sourceIds,
      prefixIds: forced ? (await engine.encode("target", forced)).ids : [],
      beamSize: beamSize ?? this.search.beamSize,
      lengthPenalty: lengthPenalty ?? this.search.lengthPenalty,
      nBest: 1,
      changes: await this.resolved(),
    });
    return hypotheses[0];
  }
}

/** Returns the sum of the log probabilities that a trace gives to the tokens of an output. */
export async function logProbOf(trace: Trace, ids: number[]) {
  if (trace.remote) return trace.remote.logProb(ids);
  const {
    shape: [, width],
    data,
  } = await trace.get("log_probs");
  return ids.reduce((sum, id, position) => sum + data[position * width + id], 0);
}

/** Returns the side of the words that the rows of a grid light: a row of the target stands for the word it writes. */
export function rowWords(side: Side): Token["side"] {
  return side === "target" ? "output" : side;
}

/** Returns whether any of the keys `some` has changed. */
export function hasAny(keys: (keyof Looks)[], ...some: (keyof Looks)[]) {
  return some.some((key) => keys.includes(key));
}

/** Returns an error as text. */
export function messageOf(error: unknown) {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the parts of a text that the vocabulary lacks. `ids`: of the text, perhaps after <bos>. */
function unknownWords(tokenizer: Tokenizer, text: string, ids: number[]) {
  const parts = ids.includes(UNKNOWN_ID) ? tokenizer.split(text) : [];
  return parts.filter((_, at) => ids[ids.length - parts.length + at] === UNKNOWN_ID);
}
