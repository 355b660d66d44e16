// Computes the model's output while a reader turns the attention of a head: rows of attention weights are set by hand, and the model
// is computed again at each move.

import { beamSearch } from "./search.ts";
import { Writer } from "./writer.ts";

import type { LayerCache } from "./forward.ts";
import type { Model } from "./model.ts";
import type { Products } from "./run.ts";
import type { Changes, Decoding, Points, TurnedRow, WeightRow } from "./types.ts";

/** The writer under turned rows, and the rows before the watched one as its cache. */
interface Begun {
  writer: Writer;
  past: LayerCache[] | null;
}

/**
 * Computes a translation again and again under rows of attention weights that are set by hand. It keeps the encoder's
 * output and the decoder's rows before the first turned one; a turned row of the encoder's self-attention leaves neither
 * as it was, so then the encoder and all rows are computed. Each new question ends the computation of the one before,
 * which rejects with an AbortError.
 */
export class Turning {
  #unturned: Writer;
  #ids: number[];
  #decoding: Decoding;
  /** What the encoder and the decoder's rows multiplied under the rows that were turned last. */
  #products: Products = new Map();
  /** The caches of the unturned rows, by their number. */
  #before: Map<number, Promise<LayerCache[]>> = new Map();
  #last: { key: string; begun: Promise<Begun>; ending: AbortController } | null = null;

  /**
   * `sourceIds` and `ids`, the written words, end with eos. `changes`: those in force; a turned row replaces an override
   * of the same row. `donors`: for each patch of the changes, the points of the other sentence.
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
   * turned one, and 0 if only the encoder is turned.
   */
  async row(turned: TurnedRow[], at = watchedRow(turned)) {
    const { writer, past } = await this.#begun(turned, at);
    const { logProbs } = await writer.next(this.#written(at), past);
    return logProbs;
  }

  /** Returns the words from the watched row on, the likeliest each time, to eos or the longest length; and log p of each. */
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

  /** Returns the first `rows` tokens that the decoder reads, and the next one. */
  #written(rows: number) {
    return [this.#unturned.model.config.bos_id, ...this.#ids.slice(0, rows)];
  }

  /** Returns what both questions about the same turned rows begin with. */
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

  /** Returns the cache of the first rows, on which no turned row has an effect. */
  #unturnedRows(count: number) {
    const known = this.#before.get(count) ?? this.#unturned.cacheOf(this.#written(count - 1), null);
    this.#before.set(count, known);
    return known;
  }
}

/** Returns overrides with these rows; each replaces an override of the same row. */
export function withRows(overrides: Changes["overrides"], turned: TurnedRow[]) {
  const all = withoutRows(overrides, turned);
  for (const { attention, head, query, weights } of turned)
    all[attention] = [...(all[attention] ?? []), [head, query, weights] satisfies WeightRow];
  return all;
}

/** Returns overrides without these rows. */
export function withoutRows(overrides: Changes["overrides"], places: Omit<TurnedRow, "weights">[]) {
  const isTurned = (name: string, [head, query]: WeightRow) =>
    places.some((one) => one.attention === name && one.head === head && one.query === query);
  return Object.fromEntries(
    Object.entries(overrides)
      .map(([name, rows]) => [name, rows.filter((row) => !isTurned(name, row))] as const)
      .filter(([, rows]) => rows.length > 0),
  );
}

/** Returns the last turned row of the decoder, or 0. */
function watchedRow(turned: TurnedRow[]) {
  const rows = turned.filter(({ attention }) => attention.startsWith("decoder."));
  return Math.max(0, ...rows.map(({ query }) => query));
}

/**
 * Returns weights that look at a position between two neighbouring words: at x between word i and word i + 1, 1 − x on
 * the one and x on the other. `position`: from 0 to width − 1.
 */
export function splitWeights(width: number, position: number) {
  return Array.from({ length: width }, (_, word) => Math.max(0, 1 - Math.abs(word - position)));
}
