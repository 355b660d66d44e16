// Play: the figure computes act by act. The encoder is computed once, for all words together; then the decoder writes
// word by word: the first word in several acts, every later word in one.
import { times } from "../../engine/tensor.ts";
import { boxOf, middle } from "./geometry.ts";
import { wantsStillness } from "./glide.ts";

import type { App } from "../app/app.ts";
import type { Geometry, StackPlace } from "./geometry.ts";

/**
 * One act: the index of the written word, the highlighted box, and the box up to which each stack is shown ("" = the
 * stack has not begun).
 */
export interface Act {
  row: number;
  box: string;
  risen: { encoder: string; decoder: string };
}

const LONG = 2500; // ms for each act
const FIRST: [box: string, encoder: string, decoder: string][] = [
  ["encoder.embedding", "positions", ""],
  ["encoder.self_attention", "self_attention.add", ""],
  ["encoder.feed_forward", "all", "positions"],
  ["decoder.self_attention", "all", "self_attention.add"],
  ["decoder.cross_attention", "all", "cross_attention.add"],
  ["decoder.softmax", "all", "all"],
];

/** Returns the acts that write a translation of `words` words. */
function actsOf(words: number): Act[] {
  const first = FIRST.map(([box, encoder, decoder]): Act => ({ row: 0, box, risen: { encoder, decoder } }));
  const later = times(Math.max(0, words - 1), (at): Act => ({
    row: at + 1,
    box: "decoder.softmax",
    risen: { encoder: "all", decoder: "all" },
  }));
  return [...first, ...later];
}

/** Returns a clip path, a polygon of the plane, that shows each stack up to the last box that has been computed. */
export function clipOf(geometry: Geometry, { encoder, decoder }: Act["risen"]) {
  const { width, height, narrow } = geometry;
  const [left, right] = [
    heightOf(geometry.encoder, encoder, narrow),
    heightOf(geometry.decoder, decoder, narrow),
  ];
  const split = geometry.decoder.x[0] - 26;
  if (narrow) {
    const between = geometry.decoder.words[1] + 4; // the decoder is above the encoder
    const top = encoder === "all" ? between : Math.max(between, left);
    return `polygon(0 ${right}px, ${width}px ${right}px, ${width}px ${between}px, 0 ${between}px, 0 ${top}px, ${width}px ${top}px, ${width}px ${height}px, 0 ${height}px)`;
  }
  return `polygon(0 ${left}px, ${split}px ${left}px, ${split}px ${right}px, ${width}px ${right}px, ${width}px ${height}px, 0 ${height}px)`;
}

function heightOf(place: StackPlace, id: string, narrow: boolean) {
  if (id === "all") return 0;
  const wanted = narrow && id === "positions" ? "embedding" : id;
  return wanted ? boxOf(place, wanted).y[0] - 4 : middle(place.words) - 14;
}

/** What a player controls. */
interface Played {
  /** Shows an act; null = the whole figure. */
  show(act: Act | null): void;
  changed(): void;
}

export class Player {
  acts: Act[] = [];
  /** The index of the act that is shown; −1 = none, the whole figure is shown. */
  at = -1;
  playing = false;
  #app: App;
  #played: Played;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(app: App, played: Played) {
    this.#app = app;
    this.#played = played;
    app.signal.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  get act() {
    return this.acts[this.at] ?? null;
  }

  /** Whether the first word is being written, which takes several acts. */
  get isFirst() {
    return this.at < FIRST.length;
  }

  /** Starts playing from the act that is shown, or stops. With reduced motion, moves on by one act only. */
  play() {
    if (this.playing) return this.stop();
    this.#prepare();
    this.playing = !wantsStillness();
    this.go(1);
  }

  /** Moves by this number of acts, and pauses there. */
  step(by: number) {
    this.stop();
    this.#prepare();
    this.go(by);
  }

  stop() {
    clearTimeout(this.#timer);
    this.playing = false;
    this.#played.changed();
  }

  #prepare() {
    if (this.at >= 0) return;
    this.acts = actsOf(this.#app.result.current.outputTokens.length);
    // during Play, each word shows its own source word
    if (this.#app.state.sourceWord !== null) this.#app.show({ sourceWord: null });
  }

  /** Moves by this many acts; after the last act, the whole figure is shown. */
  go(by: number) {
    clearTimeout(this.#timer);
    this.at = Math.max(0, this.at + by);
    if (this.at >= this.acts.length) return this.leave();
    this.#played.show(this.act);
    this.#played.changed();
    if (this.playing) this.#timer = setTimeout(() => this.go(1), LONG);
  }

  /** Ends Play, and shows the whole figure. */
  leave() {
    clearTimeout(this.#timer);
    const wasShown = this.at >= 0;
    Object.assign(this, { at: -1, playing: false });
    if (wasShown) this.#played.show(null);
    this.#played.changed();
  }
}
