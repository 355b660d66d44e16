// What one view of the explorer knows: the sentence, the changes, what was computed, and what the reader looks at.
// Panels listen to its events ("result", "ui", "hover", "busy") and change it; it draws nothing itself.
import { checkChanges, isUnchanged, NO_CHANGES } from "./changes.js";
import { createEngine, firstDifference, parity } from "./engine.js";
import { toOneLength } from "./forward.js";
import { headStatistics } from "./statistics.js";

/** The three families of attention, as they stand on the map from left to right. */
export const FAMILIES = [
  { id: "encoder", stack: "encoder", sublayer: "self_attention", rows: "source", columns: "source" },
  { id: "cross", stack: "decoder", sublayer: "cross_attention", rows: "target", columns: "source" },
  { id: "decoder", stack: "decoder", sublayer: "self_attention", rows: "target", columns: "target" },
];
const PADDING = "target_padding_mask";

/** Returns the name of a family's attention in a layer, such as "decoder.layers.0.cross_attention". */
export function attentionName(family, layer) {
  return `${family.stack}.layers.${layer}.${family.sublayer}`;
}

/** Returns the app of one view; `signal` ends all that it started. */
export async function createApp(payload, host, signal) {
  const engine = await createEngine(payload, host);
  const app = new App(payload, engine, signal);
  await app.open(payload.sentence);
  await app.pickHeads();
  const { sourceIds, targetIds, trace } = app.result.reference;
  const known =
    String([sourceIds, targetIds]) === String([payload.trace.source_ids, payload.trace.target_ids]);
  app.parity = await parity(engine, payload, known ? trace : null);
  return app;
}

class App {
  constructor(payload, engine, signal) {
    Object.assign(this, { payload, engine, signal, config: engine.config });
    this.listeners = new Map();
    this.changes = { ...NO_CHANGES };
    this.sentence = payload.sentence;
    this.search = { beamSize: engine.decoding.beam_size, lengthPenalty: engine.decoding.length_penalty };
    this.result = null;
    this.parity = null;
    this.run = 0;
    this.ui = {
      language: navigator.language?.startsWith("zh") ? "zh" : "en",
      theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
      stage: "map", // or "point": one tensor, large, with its numbers
      point: { name: "encoder.layers.0.self_attention.weights", head: 0 },
      heads: Object.fromEntries(
        FAMILIES.map((family) => [family.id, { layer: this.layersOf(family) - 1, head: 0 }]),
      ),
      order: "index",
      contrast: false,
      panel: "numbers",
      selected: null, // {name, index}: the cell whose arithmetic is shown
      shown: null, // how many target positions the animation has reached; null = all
      step: null,
    };
  }

  /** Calls `listener` at each event of a type, until the view is closed. Returns what stops it earlier. */
  on(type, listener) {
    if (!this.listeners.has(type)) this.listeners.set(type, new Set());
    this.listeners.get(type).add(listener);
    return () => this.listeners.get(type)?.delete(listener);
  }

  emit(type, detail) {
    for (const listener of [...(this.listeners.get(type) ?? [])]) listener(detail);
  }

  /** Returns a string of the interface in the reader's language; {0}, {1} … are filled in. */
  t(key, ...values) {
    const { strings } = this.payload;
    const text = strings[this.ui.language][key] ?? strings.en[key] ?? key;
    return text.replace(/\{(\d)\}/g, (whole, place) => String(values[place] ?? whole));
  }

  /** Changes what the reader looks at. */
  show(patch) {
    this.ui = { ...this.ui, ...patch };
    this.emit("ui", Object.keys(patch));
  }

  /** Lights tokens in all grids: a list of {side, position}. */
  light(tokens) {
    this.emit("hover", tokens);
  }

  /** Opens the arithmetic of one number. */
  select(name, index) {
    this.show({ selected: { name, index: [...index] }, panel: "numbers" });
  }

  /** Shows the head of each family's last layer that looks most decidedly at something. */
  async pickHeads() {
    const heads = {};
    for (const family of FAMILIES) {
      const last = (await this.statistics(family)).filter(({ layer }) => layer === this.layersOf(family) - 1);
      const { layer, head } = last.reduce((best, one) => (one.peak > best.peak ? one : best));
      heads[family.id] = { layer, head };
    }
    this.show({ heads });
  }

  layersOf(family) {
    return this.config[`${family.stack}_layers`];
  }

  /** Does what the reader asked for, and says what went wrong. */
  async attempt(action) {
    this.emit("problem", "");
    try {
      await action();
    } catch (error) {
      this.emit("problem", error.message);
    }
  }

  /** Starts anew with another sentence: it becomes what changes are compared with. */
  async open(sentence) {
    this.sentence = sentence;
    this.changes = { ...NO_CHANGES };
    await this.compute();
  }

  /** Changes the model or its input; what is not named stays as it is. */
  async set(changes) {
    checkChanges(changes, this.config);
    this.changes = { ...this.changes, ...changes };
    await this.compute();
  }

  /** Undoes all changes. */
  async reset() {
    this.changes = { ...NO_CHANGES };
    await this.compute();
  }

  /** Changes beam size or length penalty. */
  async searchWith(search) {
    this.search = { ...this.search, ...search };
    await this.compute();
  }

  /** Whether anything differs from the sentence as it was opened. */
  get changed() {
    const { source, prefix } = this.changes;
    return !isUnchanged(this.changes) || Boolean(prefix) || (source ?? this.sentence) !== this.sentence;
  }

  /** Returns the value of a point for the current sentence under the current changes. */
  async value(name) {
    return this.result.current.trace.get(name);
  }

  async compute() {
    const run = ++this.run;
    this.emit("busy", true);
    try {
      const result = await this.computed();
      if (run !== this.run || this.signal.aborted) return;
      this.result = result;
      this.computable = { sentence: this.sentence, changes: this.changes, search: this.search };
      this.emit("result", result);
    } catch (error) {
      if (run === this.run) Object.assign(this, this.computable); // what cannot be computed leaves nothing behind
      throw error;
    } finally {
      if (run === this.run) this.emit("busy", false);
    }
  }

  async computed() {
    const {
      sentence,
      changed,
      changes: { source = sentence, prefix = "", mistakes },
    } = this;
    if (!(sentence.trim() && source.trim())) throw new Error(this.t("page.blank"));
    const padding = mistakes.includes(PADDING); // compared runs are of one shape
    const key = JSON.stringify([sentence, this.search, padding]);
    const unchanged = this.engineChanges(NO_CHANGES);
    const known = this.reference?.key === key;
    const reference = known
      ? this.reference
      : { key, ...(await this.translated(sentence, "", unchanged, padding)) };
    this.reference = reference;
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

  /** Returns one sentence translated and traced under changes. */
  async translated(text, prefix, changes, padding = changes.mistakes.includes(PADDING)) {
    const { engine } = this;
    const { eos_id: eos, bos_id: bos } = this.config;
    const sourceIds = [...(await engine.encode("source", text)).ids, eos];
    const prefixIds = prefix ? (await engine.encode("target", prefix)).ids : [];
    const search = await engine.search({
      sourceIds,
      prefixIds,
      ...this.search,
      nBest: this.search.beamSize,
      changes,
    });
    const hypothesis = search.hypotheses[0];
    const targetIds = [bos, ...hypothesis.ids.slice(0, -1)];
    const read = this.padded(sourceIds, targetIds, padding);
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
    };
  }

  traced(sourceIds, targetIds, changes) {
    return this.engine.trace({
      ...this.padded(sourceIds, targetIds, changes.mistakes.includes(PADDING)),
      changes,
    });
  }

  /** Returns ids of equal length while a mistake about padding is looked at: without padding it could not be seen. */
  padded(sourceIds, targetIds, padding) {
    return padding ? toOneLength(sourceIds, targetIds, this.config.pad_id) : { sourceIds, targetIds };
  }

  /** Returns the changes as the engine takes them. */
  engineChanges({ ablated, masks, overrides, positions, scale, mistakes, checkpoint }, patches = []) {
    return { ablated, masks, overrides, patches, positions, scale, mistakes, checkpoint };
  }

  /** Returns the current changes for the engine: the sentences that patches come from as ids. */
  async resolved() {
    const plain = this.engineChanges(NO_CHANGES);
    const patches = [];
    for (const { sentence, ...patch } of this.changes.patches) {
      const donor = await this.translated(sentence, "", { ...plain, checkpoint: this.changes.checkpoint });
      patches.push({ ...patch, sourceIds: donor.sourceIds, targetIds: donor.targetIds });
    }
    return this.engineChanges(this.changes, patches);
  }

  /** Returns the tokens along a point's rows or columns, or null where these are dimensions. */
  labels(name) {
    const { sourceTokens, targetTokens, changes } = this.result.current;
    const tokens = { source: sourceTokens, target: targetTokens };
    const memory = name.includes("cross_attention") && !changes.mistakes.includes("decoder_keys");
    const ofSource = /^(source|encoder)/.test(name) || (memory && /\.(key|value)$/.test(name));
    const rowSide = ofSource ? "source" : "target";
    if (!/\.(scores|weights)$/.test(name)) return { rows: tokens[rowSide], columns: null, rowSide };
    const columnSide = memory ? "source" : rowSide;
    return { rows: tokens[rowSide], columns: tokens[columnSide], rowSide, columnSide };
  }

  /** Returns whether the query at `row` may look at the key at `column` in an attention, under the current changes. */
  allowed(attention, row, column) {
    const {
      targetTokens,
      changes: { masks, mistakes },
    } = this.result.current;
    const edit = (masks[attention] ?? []).findLast((cell) => cell[0] === row && cell[1] === column);
    if (edit) return edit[2];
    const cross = attention.includes("cross");
    const keys =
      cross && mistakes.includes(PADDING) ? targetTokens : this.labels(`${attention}.weights`).columns;
    if (keys[column] === "<pad>") return false;
    return cross || attention.startsWith("encoder") || mistakes.includes("no_causal_mask") || column <= row;
  }

  /** Returns the statistics of every head of a family: [{layer, head, entropy, peak, …}]. */
  statistics(family) {
    const { current } = this.result;
    current.statistics ??= {};
    return (current.statistics[family.id] ??= this.measured(family, current));
  }

  async measured(family, current) {
    const found = [];
    for (let layer = 0; layer < this.layersOf(family); layer++) {
      const name = `${attentionName(family, layer)}.weights`;
      const {
        shape: [heads, rows, columns],
        data,
      } = await current.trace.get(name);
      const keys = this.labels(name).columns;
      for (let head = 0; head < heads; head++) {
        found.push({ layer, head, ...headStatistics(data, head * rows * columns, rows, columns, keys) });
      }
    }
    return found;
  }

  /** Returns how log p of the current output changes when one head is ablated. */
  async ablationEffect(attention, head) {
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
  async translate(text, { beamSize, lengthPenalty, prefix } = {}) {
    const { engine } = this;
    const source = text ?? this.changes.source ?? this.sentence;
    if (!source.trim()) return { text: "", score: 0, logProb: 0, tokens: [] }; // as in Python
    const sourceIds = [...(await engine.encode("source", source)).ids, this.config.eos_id];
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
async function logProbOf(trace, ids) {
  const {
    shape: [, width],
    data,
  } = await trace.get("log_probs");
  return ids.reduce((sum, id, position) => sum + data[position * width + id], 0);
}
