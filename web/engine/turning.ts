// Recomputes the output while a reader turns the attention of a head: at each move, rows of attention weights are set
// by hand, and the model runs again.

import { times } from "./tensor.ts";
import { beamSearch } from "./search.ts";
import { Writer } from "./writer.ts";

import type { LayerCache } from "./forward.ts";
import type { Model } from "./model.ts";
import type { Products } from "./run.ts";
import type { Changes, Decoding, Points, TurnedRow, WeightRow } from "./types.ts";

/** The decoder as it writes with the rows set by hand, and its cache of the rows before the watched row. */
interface Begun {
  writer: Writer;
  past: LayerCache[] | null;
}

/**
 * Recomputes a translation under rows of attention weights that are set by hand. Keeps the encoder's output and the
 * decoder's rows before the first row set by hand. If a row of the encoder's self-attention is set by hand, nothing can
 * be kept, and everything is computed again. Each new request aborts the previous request, which rejects with an
 * AbortError.
 */
export class Turning {
  #unturned: Writer;
  #ids: number[];
  #decoding: Decoding;
  /** The products of the encoder and the decoder in the last computation. */
  #products: Products = new Map();
  /** By n: the cache of the first n rows, none of which is set by hand. */
  #before: Map<number, Promise<LayerCache[]>> = new Map();
  #last: { key: string; begun: Promise<Begun>; ending: AbortController } | null = null;

  /**
   * `sourceIds` and `ids`, the output tokens, end with eos. `changes`: the changes in force; a row set by hand replaces
   * an override of the same row. `donors`: for each patch of the changes, the points of the sentence from which the
   * patch takes its rows.
   */
  constructor(
    model: Model,
    sourceIds: number[],
    ids: number[],
    changes: Changes,
    donors: Points[],
    decoding: Decoding,
  ) {
    this.#unturned = new Writer(model, changes, donors, sourceIds);
    this.#ids = ids;
    this.#decoding = { ...decoding, beam_size: 1 };
  }

  /**
   * Returns log p of every word in the watched row of the decoder, [V]. `at`: the watched row, from 0; by default the
   * decoder's last row that is set by hand, or 0 if only rows of the encoder are set by hand.
   */
  async row(turned: TurnedRow[], at = watchedRow(turned)) {
    const { writer, past } = await this.#begun(turned, at);
    const { logProbs } = await writer.next(this.#written(at), past);
    return logProbs;
  }

  /** Continues greedily from the watched row, until eos or the maximum length. Returns the tokens and log p of each. */
  async after(turned: TurnedRow[], at = watchedRow(turned)) {
    const { writer, past } = await this.#begun(turned, at);
    const ids = this.#ids.slice(0, at);
    const { finished } = await beamSearch(
      writer,
      { prefixIds: ids, decoding: this.#decoding },
      { ids, cache: past },
    );
    const [best] = finished;
    return { ids: best.ids.slice(at), logProbs: best.tokenLogProbs };
  }

  /** Returns the tokens that the decoder reads up to row `rows`: bos, and `rows` tokens of the output. */
  #written(rows: number) {
    return [this.#unturned.model.config.bos_id, ...this.#ids.slice(0, rows)];
  }

  /**
   * Returns the part of the computation that `row` and `after` share; it is computed once for the same rows set by
   * hand.
   */
  #begun(turned: TurnedRow[], at: number) {
    const key = JSON.stringify([turned, at]);
    if (this.#last?.key !== key) {
      this.#last?.ending.abort();
      const ending = new AbortController();
      this.#last = { key, begun: this.#begin(turned, at, ending.signal), ending };
    }
    return this.#last.begun;
  }

  async #begin(turned: TurnedRow[], at: number, signal: AbortSignal): Promise<Begun> {
    const { model, changes, donors, sourceIds, memories } = this.#unturned;
    const changed = { ...changes, overrides: withRows(changes.overrides, turned) };
    const writer = new Writer(model, changed, donors, sourceIds, signal);
    const isInEncoder = turned.some(({ attention }) => attention.startsWith("encoder."));
    if (isInEncoder) writer.products = this.#products;
    else writer.memories = memories;
    const first = isInEncoder ? 0 : Math.min(at, ...turned.map(({ query }) => query));
    if (at === 0 || !writer.cached) return { writer, past: null };
    const before = first > 0 ? await this.#unturnedRows(first) : null;
    if (first === at) return { writer, past: before };
    return { writer, past: await writer.cacheOf(this.#written(at - 1), before) };
  }

  /** Returns the cache of the first `count` rows, which come before any row set by hand. */
  #unturnedRows(count: number) {
    const known = this.#before.get(count) ?? this.#unturned.cacheOf(this.#written(count - 1), null);
    this.#before.set(count, known);
    return known;
  }
}

/** Returns the overrides plus these rows; each replaces an override of the same row. */
export function withRows(overrides: Changes["overrides"], turned: TurnedRow[]) {
  const all = withoutRows(overrides, turned);
  for (const { attention, head, query, weights } of turned)
    all[attention] = [...(all[attention] ?? []), [head, query, weights] satisfies WeightRow];
  return all;
}

/** Returns the overrides without these rows. */
export function withoutRows(overrides: Changes["overrides"], places: Omit<TurnedRow, "weights">[]) {
  const isTurned = (name: string, [head, query]: WeightRow) =>
    places.some((one) => one.attention === name && one.head === head && one.query === query);
  return Object.fromEntries(
    Object.entries(overrides)
      .map(([name, rows]) => [name, rows.filter((row) => !isTurned(name, row))] as const)
      .filter(([, rows]) => rows.length > 0),
  );
}

/** Returns the index of the decoder's last row set by hand, or 0. */
function watchedRow(turned: TurnedRow[]) {
  const rows = turned.filter(({ attention }) => attention.startsWith("decoder."));
  return Math.max(0, ...rows.map(({ query }) => query));
}

/**
 * Returns attention weights for a position between two neighbouring words: at i + x, word i gets 1 − x and word i + 1
 * gets x. `position`: from 0 to width − 1.
 */
export function splitWeights(width: number, position: number) {
  return times(width, (word) => Math.max(0, 1 - Math.abs(word - position)));
}
