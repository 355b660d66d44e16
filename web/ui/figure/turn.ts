// Turning attention: the reader drags the handle of a row of attention to another word, and the model is recomputed at
// each move. On release, the row set by hand becomes one of the page's changes.
import { times, clamp } from "../../engine/tensor.ts";
import { messageOf } from "../app/app.ts";

import type { App } from "../app/app.ts";
import type { Hand, Written } from "./hand.ts";

const FINE = 0.1;

/** Rows of attention that the reader turns together, and what shows them. */
export interface Turnable {
  hand: Hand;
  /** The number of words to which the rows can attend, and the position to which they attend before the turn. */
  count: number;
  at: number;
  /** Whether the words run against the arrow keys, as in a right-to-left script. */
  isReversed: boolean;
  /** Whether the mask lets the rows attend to a word. */
  reads(key: number): boolean;
  positionAt(event: PointerEvent): number;
  /** Draws the rows at a position, before the model has answered. */
  draw(at: number): void;
  /** Shows what the model writes with the rows at a position. */
  show(written: Written, at: number): void;
  /** Ends the turn: the rows stay at a position, or, if `at` is null, are again as before. */
  end(at: number | null): void;
}

export class Turner {
  /** The position of the held rows. */
  at = 0;
  #app: App;
  #held: Turnable | null = null;

  constructor(app: App) {
    this.#app = app;
  }

  get isHeld() {
    return this.#held !== null;
  }

  /** Begins to turn rows. Returns whether they can be turned; in a recording, no row can be. */
  hold(rows: Turnable | null) {
    if (!rows || this.#app.engine.live === false || !times(rows.count, rows.reads).includes(true))
      return false;
    this.#held = rows;
    this.at = rows.at;
    return true;
  }

  /** Moves the rows to the pointer. */
  drag(event: PointerEvent) {
    if (this.#held) this.turn(this.#held.positionAt(event));
  }

  /** Moves rows with the keyboard; returns whether the key had a meaning. `rows` returns the rows to hold. */
  key({ key, shiftKey }: KeyboardEvent, rows: () => Turnable | null) {
    const isEnd = key === "Escape" || key === "Enter";
    if (isEnd && this.#held) return (this.release(key === "Enter"), true);
    const onwards = Number(/^Arrow(Right|Down)$/.test(key)) - Number(/^Arrow(Left|Up)$/.test(key));
    if (!onwards || !(this.#held || this.hold(rows())) || !this.#held) return false;
    const { count, isReversed, reads } = this.#held;
    const step = isReversed ? -onwards : onwards;
    if (shiftKey) return (this.turn(Math.round(10 * (this.at + FINE * step)) / 10), true);
    let to = step > 0 ? Math.floor(this.at) + 1 : Math.ceil(this.at) - 1;
    while (to >= 0 && to < count && !reads(to)) to += step; // skips words that the mask hides
    if (to >= 0 && to < count) this.turn(to);
    return true;
  }

  /** Moves the held rows to a position. */
  turn(wanted: number) {
    const held = this.#held;
    if (!held) return;
    this.at = readable(wanted, held.count, held.reads);
    const { at } = this;
    held.draw(at);
    held.hand
      .hold(at, (written) => this.#held === held && held.show(written, at))
      .catch((error) => this.#app.complain(messageOf(error)));
  }

  /** Releases the rows. If `keep` is true, the rows keep their new weights; otherwise they get their old ones back. */
  release(keep: boolean) {
    const [held, at] = [this.#held, this.at];
    if (!held) return;
    this.#held = null;
    const isKept = keep && at !== held.at;
    held.end(isKept ? at : null);
    if (isKept) void this.#app.attempt(() => held.hand.keep(at));
  }
}

/**
 * Returns a position between words; if the mask hides one of its two neighbours, the nearest word that the row may
 * attend to.
 */
function readable(wanted: number, count: number, reads: (key: number) => boolean) {
  const at = clamp(wanted, count);
  if (reads(Math.floor(at)) && reads(Math.ceil(at))) return at;
  const away = (key: number) => Math.abs(key - at);
  const keys = times(count, (key) => key).filter(reads);
  return keys.reduce((best, key) => (away(key) < away(best) ? key : best));
}
