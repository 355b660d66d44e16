// The reader's hand on rows of attention: while it holds them, the model is computed again at each move; where it lets
// them rest, they are a change of the page like any other.
import { rowOf } from "../../engine/tensor.ts";
import { splitWeights, withRows } from "../../engine/turning.ts";

import type { Turning } from "../../engine/turning.ts";
import type { Trace, TurnedRow } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { Translated } from "../types.ts";

/** What the model writes while the rows are turned. */
export interface Written {
  /** Log p of every word in the watched row. */
  logProbs: Float32Array;
  /** The whole output with eos; null while the words after the row are not computed yet. */
  ids: number[] | null;
}

/**
 * Turns rows of one position together. `width`: the number of words that they can look at; `at`: the place of the written
 * word that is watched, that of the rows if they are the decoder's.
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
  /** The number of moves when the rows last came to rest. */
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

  /** The position at which the rows rest, as the state has it; null if they are not turned. */
  get position() {
    const [{ attention, head, query }] = this.#places;
    const row = this.#app.changes.overrides[attention]?.find((one) => one[0] === head && one[1] === query);
    return row ? row[2].reduce((sum, weight, place) => sum + weight * place, 0) : null;
  }

  /** Returns the rows that look at a position between two neighbouring words. */
  rows(position: number): TurnedRow[] {
    const place = Math.round(100 * position) / 100;
    const weights = splitWeights(this.#width, place).map((weight) => Math.round(100 * weight) / 100);
    return this.#places.map((place) => ({ ...place, weights }));
  }

  /**
   * Computes what the model writes with the rows at a position, and shows it: the row, then the words after it. Of the
   * moves that come meanwhile only the last one is computed. Does nothing unless the page computes by itself.
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
      if (move === this.#moves) throw error; // an error of an earlier move does not matter
    }
  }

  /** Lets the rows rest at a position: the page searches with them. */
  async keep(position: number) {
    this.#rested = ++this.#moves;
    await this.#app.set({ overrides: withRows(this.#app.changes.overrides, this.rows(position)) });
  }

  /** Gives the rows back to the model, with all other changes. */
  async letGo() {
    this.#rested = ++this.#moves;
    await this.#app.reset();
  }

  /** Returns the model's output before any row is turned, from the page's own search. */
  async rested(): Promise<Written> {
    const trace = await this.trace();
    return {
      logProbs: rowOf(await trace.get("log_probs"), this.#at),
      ids: this.#app.result.current.hypothesis.ids,
    };
  }

  /** Returns the forward pass before any row is turned, of the page's own output if that reaches the rows. */
  async trace(): Promise<Trace> {
    const { current } = this.#app.result;
    const { sourceIds, targetIds } = this.#translated;
    const isOwn = String(current.sourceIds) === String(sourceIds) && this.#at < current.hypothesis.ids.length;
    return isOwn ? current.trace : this.#app.sentences.traced(sourceIds, targetIds, current.changes);
  }
}
