// Turning attention on the figure: the reader drags the handle of a highlighted row of attention to another word, and
// the model is recomputed at each move. On release, the row set by hand becomes one of the page's changes.
import { times, clamp } from "../../engine/tensor.ts";
import { splitWeights } from "../../engine/turning.ts";
import { messageOf } from "../app/app.ts";
import { Hand } from "./hand.ts";
import { rowPathOf, positionAt } from "./row_path.ts";
import { candidatesIn } from "./figure_reading.ts";

import type { App } from "../app/app.ts";
import type { FamilyId } from "../app/types.ts";
import type { Written } from "./hand.ts";
import type { RowPath } from "./row_path.ts";
import type { Pen } from "./pen.ts";
import type { StageNumbers } from "./shown.ts";

const SNAP = 0.2; // a row released this close to a word snaps to it
const FINE = 0.1;
const PARTS = ["look", "lit", "softmax", "words"];

/** What dragging a row needs from the stage. */
export interface Turnable {
  pen(): Pen | null;
  drawParts(names: string[]): void;
  /** Returns the pointer's coordinates on the figure's plane. */
  place(event: PointerEvent): { x: number; y: number };
  /** Shows what the model writes with a row set by hand; null restores the usual text. */
  tell(look: RowPath | null, words: string[]): void;
}

/** A row that the reader is dragging, its position, and the numbers that the figure showed before. */
interface Held {
  hand: Hand;
  look: RowPath;
  row: number;
  at: number;
  /** Whether the mask lets the row attend to a word. */
  reads(key: number): boolean;
  kept: StageNumbers;
}

export class Turner {
  #app: App;
  #stage: Turnable;
  #held: Held | null = null;

  constructor(app: App, stage: Turnable) {
    this.#app = app;
    this.#stage = stage;
  }

  get isHeld() {
    return this.#held !== null;
  }

  /**
   * Starts dragging the highlighted row of an attention. Returns whether the row can be set by hand; in a recording, no
   * row can be set by hand.
   */
  hold(family: FamilyId) {
    const pen = this.#stage.pen();
    if (!pen || this.#app.engine.live === false) return false;
    const look = rowPathOf(pen, family);
    const { attention, head, query } = look;
    const mask = this.#app.mask(attention);
    const reads = (key: number) => mask.data[query * mask.columns + key] !== 0;
    const { translated, row, at } = pen.numbers;
    if (!look.tokens.some((_, key) => reads(key))) return false;
    const hand = new Hand(this.#app, translated, [{ attention, head, query }], look.tokens.length, row);
    this.#held = { hand, look, row, at: at[family], reads, kept: { ...pen.numbers } };
    return true;
  }

  /** Moves the row to the pointer. */
  drag(event: PointerEvent) {
    if (this.#held) this.#turn(positionAt(this.#held.look, this.#stage.place(event)));
  }

  /** Moves the handle of an attention with the keyboard; returns whether the key had a meaning. */
  key({ key, shiftKey }: KeyboardEvent, family: FamilyId) {
    const isEnd = key === "Escape" || key === "Enter";
    if (isEnd && this.#held) return (this.release(key === "Enter"), true);
    const onwards = Number(/^Arrow(Right|Down)$/.test(key)) - Number(/^Arrow(Left|Up)$/.test(key));
    if (!onwards || !(this.#held || this.hold(family)) || !this.#held) return false;
    const { at, look, reads } = this.#held;
    // in a right-to-left script, the words are in reverse order
    const step = look.stops[look.stops.length - 1] < look.stops[0] ? -onwards : onwards;
    if (shiftKey) return (this.#turn(at + FINE * step), true);
    let to = Math.round(at) + step;
    while (to in look.tokens && !reads(to)) to += step; // skips words that the mask hides
    if (to in look.tokens) this.#turn(to);
    return true;
  }

  /** Releases the row. If `keep` is true, the row keeps its new weights; otherwise it gets its old weights back. */
  release(keep: boolean) {
    const [held, pen] = [this.#held, this.#stage.pen()];
    if (!held || !pen) return;
    this.#held = null;
    const { look, kept, row } = held;
    const at = Math.abs(held.at - Math.round(held.at)) < SNAP ? Math.round(held.at) : held.at;
    if (keep && at !== kept.at[look.family.id]) {
      this.#app.show({ row, sourceWord: look.family.id === "encoder" ? look.query : null });
      return void this.#app.attempt(() => held.hand.keep(at));
    }
    Object.assign(pen.numbers, kept);
    this.#stage.drawParts(PARTS);
    this.#stage.tell(null, []);
  }

  #turn(wanted: number) {
    const [held, pen] = [this.#held, this.#stage.pen()];
    if (!held || !pen) return;
    const { look, kept } = held;
    const { id } = look.family;
    held.at = readable(wanted, look.tokens.length, held.reads);
    const row = Float32Array.from(splitWeights(look.tokens.length, held.at));
    const { before } = kept;
    Object.assign(pen.numbers, {
      rows: { ...kept.rows, [id]: row },
      at: { ...kept.at, [id]: held.at },
      before: { ...before, rows: { ...before.rows, [id]: before.rows[id] ?? kept.rows[id] } },
      ...(!look.isArc && { read: row, source: Math.round(held.at) }),
    } satisfies Partial<StageNumbers>);
    this.#stage.drawParts(["look", "lit"]);
    held.hand
      .hold(held.at, (written) => this.#show(held, pen, written))
      .catch((error) => this.#app.complain(messageOf(error)));
  }

  /**
   * Shows what the model writes with a row set by hand: the next word at once, and the words after it when the page has
   * computed them.
   */
  #show(held: Held, pen: Pen, { logProbs, ids }: Written) {
    if (this.#held !== held || this.#stage.pen() !== pen) return;
    const { numbers } = pen;
    const { translated, before } = held.kept;
    numbers.candidates = candidatesIn(this.#app, logProbs, 5);
    const all = ids ?? [...translated.hypothesis.ids.slice(0, held.row), numbers.candidates[0].id];
    const shown = all.slice(0, translated.outputTokens.length); // the figure has no columns for more words
    const outputTokens = this.#app.engine.tokens("target", shown);
    const was = before.word ?? translated.outputTokens[held.row];
    numbers.before = { ...numbers.before, word: was === outputTokens[held.row] ? null : was };
    numbers.translated = {
      ...translated,
      outputTokens,
      hypothesis: { ...translated.hypothesis, ids: shown },
    };
    this.#stage.drawParts(ids ? ["softmax", "words"] : ["softmax"]);
    if (ids) this.#stage.tell(held.look, this.#app.engine.tokens("target", ids));
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
