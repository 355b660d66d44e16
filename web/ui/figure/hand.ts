// Lets the reader turn rows of attention: set a row so that its head attends to the word that the reader chooses. While
// the reader holds the rows, the model is recomputed at each move; when the reader releases the rows, the rows set by
// hand become one of the page's changes.
import { rowOf } from "../../engine/tensor.ts";
import { splitWeights, withRows } from "../../engine/turning.ts";

import type { Turning } from "../../engine/turning.ts";
import type { Trace, TurnedRow } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Translated } from "../app/types.ts";

/** What the model writes while the rows are set by hand. */
export interface Written {
  /** Log p of every word in the watched row. */
  logProbs: Float32Array;
  /** The whole output with eos; null until the words after the row have been computed. */
  ids: number[] | null;
}

/**
 * Sets rows of attention while the reader drags them: the rows of one query, in one or more heads together. `width`:
 * the number of words to which the rows can attend. `at`: the index of the output word that is watched; by default, the
 * word that the rows' own query writes.
 */
export class Hand {
  #app: App;
  #translated: Translated;
  #places: Omit<TurnedRow, "weights">[];
  #width: number;
  #at: number;
  #turning: Promise<Turning> | null = null;
  #row: Promise<Float32Array | null> = Promise.resolve(null);
  #moves = 0;
  /** The value of `#moves` when the rows were last released. */
  #rested = 0;

  constructor(
    app: App,
    translated: Translated,
    places: Omit<TurnedRow, "weights">[],
    width = translated.sourceIds.length,
    at = places[0].query,
  ) {
    this.#app = app;
    this.#translated = translated;
    this.#places = places;
    this.#width = width;
    this.#at = at;
  }

  /** The position to which the released rows attend, from the page's changes; null if the rows are not set by hand. */
  get position() {
    const [{ attention, head, query }] = this.#places;
    const row = this.#app.changes.overrides[attention]?.find((one) => one[0] === head && one[1] === query);
    return row ? row[2].reduce((sum, weight, place) => sum + weight * place, 0) : null;
  }

  /** Returns the rows' weights for a position, which may lie between two neighbouring words. */
  rows(position: number): TurnedRow[] {
    const place = Math.round(100 * position) / 100;
    const weights = splitWeights(this.#width, place).map((weight) => Math.round(100 * weight) / 100);
    return this.#places.map((place) => ({ ...place, weights }));
  }

  /**
   * Computes what the model writes with the rows at a position, and shows the result: first the watched word, then
   * the words after it. If moves arrive faster than the page can compute, only the last move is computed. Does
   * nothing unless the page itself can compute.
   */
  async hold(position: number, show: (written: Written) => void) {
    const { engine } = this.#app;
    if (engine.live !== true) return;
    const move = ++this.#moves;
    const { sourceIds, hypothesis } = this.#translated;
    this.#turning ??= engine.turning({
      sourceIds,
      ids: hypothesis.ids,
      changes: this.#app.result.current.changes,
    });
    const turning = await this.#turning;
    const rows = this.rows(position);
    this.#row = this.#row
      .catch(() => null)
      .then(() => (move === this.#moves ? turning.row(rows, this.#at) : null));
    const logProbs = await this.#row;
    if (!logProbs || move <= this.#rested) return;
    show({ logProbs, ids: null });
    if (move !== this.#moves) return;
    try {
      const { ids } = await turning.after(rows, this.#at);
      if (move === this.#moves) show({ logProbs, ids: [...hypothesis.ids.slice(0, this.#at), ...ids] });
    } catch (error) {
      if (move === this.#moves) throw error; // errors of outdated moves are ignored
    }
  }

  /** Releases the rows at a position; the page then translates with the rows set by hand. */
  async keep(position: number) {
    this.#rested = ++this.#moves;
    await this.#app.set({ overrides: withRows(this.#app.changes.overrides, this.rows(position)) });
  }

  /** Undoes all changes, including the rows set by hand. */
  async letGo() {
    this.#rested = ++this.#moves;
    await this.#app.reset();
  }

  /** Returns the output as it was before the rows were moved, from the page's own translation. */
  async rested(): Promise<Written> {
    const trace = await this.trace();
    return {
      logProbs: rowOf(await trace.get("log_probs"), this.#at),
      ids: this.#app.result.current.hypothesis.ids,
    };
  }

  /**
   * Returns the trace of the forward pass before the rows were moved: the page's own trace, if its output is long
   * enough.
   */
  async trace(): Promise<Trace> {
    const { current } = this.#app.result;
    const { sourceIds, targetIds } = this.#translated;
    const isOwn = String(current.sourceIds) === String(sourceIds) && this.#at < current.hypothesis.ids.length;
    return isOwn ? current.trace : this.#app.translator.traced(sourceIds, targetIds, current.changes);
  }
}
