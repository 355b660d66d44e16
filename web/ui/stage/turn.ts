// Turning the look on the figure: the reader drags the lit knot of cross-attention to another word, and the model is
// computed again while the finger moves. At rest, the turned row is one of the page's changes.
import { splitWeights } from "../../engine/turning.ts";
import { messageOf } from "../app.ts";
import { FAMILIES, attentionName } from "../heads.ts";
import { ribbonHeight } from "./geometry.ts";
import { Hand } from "./hand.ts";
import { candidatesIn } from "./numbers.ts";

import type { App } from "../app.ts";
import type { Written } from "./hand.ts";
import type { StageNumbers } from "./numbers.ts";
import type { Pen } from "./pen.ts";

const SNAP = 0.2; // how near to a word a row comes to rest on it
const FINE = 0.1;
const PARTS = ["look", "lit", "softmax", "words"];

/** The stage's part of turning: what is shown now, and the drawing of parts. */
export interface Turnable {
  pen(): Pen | null;
  drawParts(names: string[]): void;
  /** The point of the figure's plane under the pointer. */
  place(event: PointerEvent): { x: number; y: number };
  /** Says what a turned row makes the model write; null = nothing is turned any more. */
  tell(words: string[] | null): void;
}

/** A row in the reader's hand: where it looks, and what the figure showed before. */
interface Held {
  hand: Hand;
  row: number;
  at: number;
  kept: Pick<StageNumbers, "read" | "source" | "candidates" | "translated">;
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

  /** Takes hold of the lit row; returns whether there is one to turn: a recording cannot change. */
  hold() {
    const pen = this.#stage.pen();
    if (!pen || this.#app.engine.live === false) return false;
    const { numbers } = pen;
    const { read, source, candidates, translated } = numbers;
    const attention = attentionName(FAMILIES[1], numbers.open.decoder);
    const place = { attention, head: numbers.heads.cross, query: numbers.row };
    const hand = new Hand(this.#app, translated, [place], read.length);
    this.#held = { hand, row: numbers.row, at: source, kept: { read, source, candidates, translated } };
    return true;
  }

  /** Follows the pointer. */
  drag(event: PointerEvent) {
    const pen = this.#stage.pen();
    if (!pen || !this.#held) return;
    const count = pen.numbers.read.length;
    const [first, last] = [
      ribbonHeight(pen.geometry, 0, count),
      ribbonHeight(pen.geometry, count - 1, count),
    ];
    const share = (this.#stage.place(event).y - first) / (last - first || 1);
    this.#turn(share * (count - 1));
  }

  /** Moves by keys; returns whether the key meant something. */
  key(event: KeyboardEvent) {
    const isEnd = event.key === "Escape" || event.key === "Enter";
    if (isEnd && this.#held) return (this.release(event.key === "Enter"), true);
    const down = event.key === "ArrowDown" || event.key === "ArrowRight";
    const step = Number(down) - Number(event.key === "ArrowUp" || event.key === "ArrowLeft");
    if (!step || !(this.#held || this.hold()) || !this.#held) return false;
    this.#turn(event.shiftKey ? this.#held.at + FINE * step : Math.round(this.#held.at) + step);
    return true;
  }

  /** Lets go of the row: it stays turned, or goes back to where it was. */
  release(keep: boolean) {
    const [held, pen] = [this.#held, this.#stage.pen()];
    if (!held || !pen) return;
    this.#held = null;
    const at = Math.abs(held.at - Math.round(held.at)) < SNAP ? Math.round(held.at) : held.at;
    if (keep && at !== held.kept.source) {
      this.#app.show({ row: held.row, sourceWord: null });
      return void this.#app.attempt(() => held.hand.keep(at));
    }
    Object.assign(pen.numbers, held.kept);
    this.#stage.drawParts(PARTS);
    this.#stage.tell(null);
  }

  #turn(wanted: number) {
    const [held, pen] = [this.#held, this.#stage.pen()];
    if (!held || !pen) return;
    const count = held.kept.read.length;
    held.at = Math.max(0, Math.min(count - 1, wanted));
    const read = Float32Array.from(splitWeights(count, held.at));
    Object.assign(pen.numbers, { read, source: Math.round(held.at) });
    this.#stage.drawParts(["look", "lit"]);
    held.hand
      .hold(held.at, (written) => this.#show(held, pen, written))
      .catch((error) => this.#app.complain(messageOf(error)));
  }

  /** Shows what a turned row makes the model write: the next word at once, and the words after it. */
  #show(held: Held, pen: Pen, { logProbs, ids }: Written) {
    if (this.#held !== held || this.#stage.pen() !== pen) return;
    const { translated } = held.kept;
    pen.numbers.candidates = candidatesIn(this.#app, logProbs, 5);
    const all = ids ?? [...translated.hypothesis.ids.slice(0, held.row), pen.numbers.candidates[0].id];
    const shown = all.slice(0, translated.outputTokens.length); // as far as the figure has columns
    const outputTokens = this.#app.engine.tokens("target", shown);
    pen.numbers.translated = {
      ...translated,
      outputTokens,
      hypothesis: { ...translated.hypothesis, ids: shown },
    };
    this.#stage.drawParts(ids ? ["softmax", "words"] : ["softmax"]);
    if (ids) this.#stage.tell(this.#app.engine.tokens("target", ids));
  }
}
