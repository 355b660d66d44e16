// Translates and traces sentences that are given as text. The engine itself only knows ids.
import { isUnchanged, NO_CHANGES } from "../../engine/changes.ts";
import { firstDifference } from "../../engine/engine.ts";
import { attentionMask, STEPS } from "../../engine/forward.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { UNKNOWN_ID } from "../../engine/tokenizers.ts";

import type {
  Changes,
  ChangesWith,
  Engine,
  Labels,
  ModelConfig,
  Side,
  TextChanges,
  Tokenizer,
  Trace,
} from "../../engine/types.ts";
import type { Asked, Result, Search, Situation, Translated } from "./types.ts";

/** Returns a text of the interface. */
type Texts = (key: string, ...values: (string | number)[]) => string;

export class Translator {
  #engine: Engine;
  #t: Texts;
  #reference: (Translated & { key: string }) | null = null;

  constructor(engine: Engine, t: Texts) {
    this.#engine = engine;
    this.#t = t;
  }

  /** Returns the results for a sentence, without and with the changes. */
  async result(asked: Asked): Promise<Result> {
    const { sentence, changes, search } = asked;
    const { source = sentence, prefix = "" } = changes;
    if (!(sentence.trim() && source.trim())) throw new Error(this.#t("page.blank"));
    const reference = await this.unchanged(asked);
    const { ids, logProb } = reference.hypothesis;
    if (!isChanged(asked))
      return { reference, current: reference, firstDifference: null, logProbOfReference: logProb };
    const current = await this.translated(source, prefix, await this.#resolved(changes, search), search);
    const sameTarget = String(current.targetIds) === String(reference.targetIds);
    const compared = sameTarget
      ? current.trace
      : await this.traced(current.sourceIds, reference.targetIds, current.changes);
    return {
      reference,
      current,
      firstDifference: await firstDifference(reference.trace, compared),
      logProbOfReference: await logProbOf(compared, ids),
    };
  }

  /**
   * Returns the sentence, translated and traced without the changes. If the changes pad the ids, its ids are padded in
   * the same way. The last result is cached.
   */
  async unchanged({ sentence, changes, search }: Asked) {
    // two forward passes can be compared only if their ids have the same shapes
    const { readIds } = stepsUnder(changes);
    const key = JSON.stringify([sentence, search, readIds === STEPS.readIds]);
    if (this.#reference?.key === key) return this.#reference;
    this.#reference = { key, ...(await this.translated(sentence, "", engineChanges(), search, readIds)) };
    return this.#reference;
  }

  /** Returns a sentence, translated and traced under changes. */
  async translated(
    text: string,
    prefix: string,
    changes: Changes,
    search: Search,
    readIds = stepsUnder(changes).readIds,
  ): Promise<Translated> {
    const { tokenizers, config } = this.#engine;
    const sourceIds = await this.#sourceIds(text);
    const prefixIds = prefix ? await this.#ids("target", prefix) : [];
    const asked = { sourceIds, prefixIds, ...search, nBest: search.beamSize, changes };
    const found = await this.#engine.search(asked);
    const hypothesis = found.hypotheses[0];
    const targetIds = [config.bos_id, ...hypothesis.ids.slice(0, -1)];
    const read = readIds(sourceIds, targetIds, config.pad_id);
    const trace = await this.#engine.trace({ ...read, changes });
    return {
      text: hypothesis.text,
      search: found,
      hypothesis,
      sourceIds,
      targetIds,
      prefixIds,
      trace,
      changes,
      sourceTokens: this.#engine.tokens("source", read.sourceIds),
      targetTokens: this.#engine.tokens("target", read.targetIds),
      outputTokens: hypothesis.tokens,
      unknown: [
        ...unknownWords(tokenizers.source, text, sourceIds.slice(0, -1)),
        ...unknownWords(tokenizers.target, prefix, prefixIds),
      ],
      statistics: {},
    };
  }

  /** Returns the trace for these ids, under changes. */
  traced(sourceIds: number[], targetIds: number[], changes: Changes) {
    const { pad_id: padId } = this.#engine.config;
    return this.#engine.trace({ ...stepsUnder(changes).readIds(sourceIds, targetIds, padId), changes });
  }

  /** Returns by how much log p of a translation changes if one more head is ablated. */
  async ablationEffect(
    { sourceIds, targetIds, changes, hypothesis }: Translated,
    attention: string,
    head: number,
  ) {
    const heads = [...new Set([...(changes.ablated[attention] ?? []), head])];
    const ablated = { ...changes.ablated, [attention]: heads };
    const trace = await this.traced(sourceIds, targetIds, { ...changes, ablated });
    return (await logProbOf(trace, hypothesis.ids)) - hypothesis.logProb;
  }

  /** Returns a translation of a text, by default of the current sentence, under changes. */
  async translate(
    { sentence, changes, search }: Asked,
    text = changes.source ?? sentence,
    { prefix = changes.prefix ?? "", ...options }: Partial<Search> & { prefix?: string } = {},
  ): Promise<{ text: string; score: number; logProb: number; tokens: string[] }> {
    if (!text.trim()) return { text: "", score: 0, logProb: 0, tokens: [] }; // an empty text, as in Python
    const { hypotheses } = await this.#engine.search({
      sourceIds: await this.#sourceIds(text),
      prefixIds: prefix ? (await this.#engine.encode("target", prefix)).ids : [],
      beamSize: options.beamSize ?? search.beamSize,
      lengthPenalty: options.lengthPenalty ?? search.lengthPenalty,
      nBest: 1,
      changes: await this.#resolved(changes, search),
    });
    return hypotheses[0];
  }

  /** Returns changes in the engine's format; the sentences of patches are converted to ids. */
  async #resolved(changes: TextChanges, search: Search) {
    const patches = [];
    const plain = engineChanges({ ...NO_CHANGES, checkpoint: changes.checkpoint });
    for (const { sentence, ...patch } of changes.patches) {
      const { sourceIds, targetIds } = await this.translated(sentence, "", plain, search);
      patches.push({ ...patch, sourceIds, targetIds });
    }
    return engineChanges(changes, patches);
  }

  /** Returns the ids of a source text in the form that the model reads, with eos. */
  async #sourceIds(text: string) {
    const { tokenizers, config, decoding } = this.#engine;
    const ids = [...(await this.#ids("source", text)), tokenizers.source.eosId];
    const longest = config.positions === "learned" ? config.max_length : decoding.max_source;
    if (ids.length > longest) throw new Error(this.#t("page.long", longest - 1, ids.length - 1));
    return ids;
  }

  /** Returns the ids of a text, without bos and eos. */
  async #ids(side: Side, text: string) {
    if (/\p{Surrogate}/u.test(text)) throw new Error(this.#t("page.surrogate"));
    return (await this.#engine.encode(side, text)).ids;
  }
}

/** Returns whether the reader has changed the sentence's input or the model. */
export function isChanged({ sentence, changes }: Situation) {
  const { source = sentence, prefix } = changes;
  return !isUnchanged(changes) || Boolean(prefix) || source !== sentence;
}

/** Returns changes in the engine's format; `patches` have ids already. */
export function engineChanges(
  changes: ChangesWith<unknown> = NO_CHANGES,
  patches: Changes["patches"] = [],
): Changes {
  const { ablated, masks, overrides, positions, scale, mistakes, checkpoint } = changes;
  return { ablated, masks, overrides, patches, positions, scale, mistakes, checkpoint };
}

/** Returns the tokens of a point's rows and columns; null if an axis counts dimensions. */
export function labelsOf({ sourceTokens, targetTokens, changes }: Translated, name: string): Labels {
  const tokens = { source: sourceTokens, target: targetTokens };
  const { crossKeyValue } = stepsUnder(changes);
  const memory = name.includes("cross_attention") && crossKeyValue.side === "source";
  const ofSource = /^(source|encoder)/.test(name) || (memory && /\.(key|value)$/.test(name));
  const rowSide = ofSource ? "source" : "target";
  if (!/\.(scores|weights)$/.test(name)) return { rows: tokens[rowSide], columns: null, rowSide };
  const columnSide = memory ? "source" : rowSide;
  return { rows: tokens[rowSide], columns: tokens[columnSide], rowSide, columnSide };
}

/** Returns the mask of an attention in a translation. */
export function maskOf(config: ModelConfig, translated: Translated, attention: string) {
  const { changes } = translated;
  return attentionMask({ config, changes, steps: stepsUnder(changes) }, attention, translated);
}

/** Returns the sum of the log probabilities of an output's tokens, from a trace. */
export async function logProbOf(trace: Trace, ids: number[]) {
  if (trace.remote) return trace.remote.logProb(ids);
  const {
    shape: [, width],
    data,
  } = await trace.get("log_probs");
  return ids.reduce((sum, id, position) => sum + data[position * width + id], 0);
}

/**
 * Returns a typed text in which punctuation after a space is joined to the word before the space, where the
 * vocabulary knows only the joined form.
 */
export function joinMarks({ encode }: Tokenizer, text: string) {
  if (/\p{Surrogate}/u.test(text)) return text; // an unpaired surrogate, which the tokenizers reject
  return text.replace(/(\S)\s+(?=[\p{P}\p{S}]+(?:\s|$))/gu, (typed, before: string, at: number) => {
    const rest = text.slice(at + typed.length);
    const [kept, joined] = [typed + rest, before + rest].map(encode);
    const unknown = (ids: number[]) => ids.filter((id) => id === UNKNOWN_ID).length;
    return joined.length === kept.length && unknown(joined) < unknown(kept) ? before : typed;
  });
}

/** Returns the parts of a text that the vocabulary lacks. `ids`: the ids of the text, which may begin with <bos>. */
function unknownWords(tokenizer: Tokenizer, text: string, ids: number[]) {
  const parts = ids.includes(UNKNOWN_ID) ? tokenizer.split(text) : [];
  return parts.filter((_, at) => ids[ids.length - parts.length + at] === UNKNOWN_ID);
}
