// Playing a translation step by step.
import { ENCODER, STEPS } from "./steps.ts";

import type { Stack, Tensor } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Step } from "./steps.ts";

/** A moment of the animation: a step of the encoder, or of the decoder for a word. */
export interface Frame {
  step: Step;
  stack: Stack;
  word: number | null;
}

/** Plays a translation frame by frame: the encoder's steps once, then the decoder's for each word. */
export class Player {
  frames: Frame[] = [];
  at = -1;
  probabilities: Tensor | null = null;
  tries = 0;
  playing = false;
  every = false;
  finished = false;
  timer: ReturnType<typeof setTimeout> | undefined;

  app: App;
  show: (frame: Frame | null) => void;
  changed: () => void;

  /** Calls `show` with each frame, and with null at the end; calls `changed` when playing starts or stops. */
  constructor(app: App, show: (frame: Frame | null) => void, changed: () => void) {
    this.app = app;
    this.show = show;
    this.changed = changed;
    app.signal.addEventListener("abort", () => clearTimeout(this.timer), { once: true });
  }

  get pace() {
    return this.app.state.pace;
  }

  /** Makes the frames of the present translation. Returns whether they are still current. */
  async ready() {
    if (this.at >= 0) return true;
    const { app } = this;
    const { current } = app.result;
    const attempt = ++this.tries;
    const known = await current.trace.get("log_probs");
    if (attempt !== this.tries || app.signal.aborted || current !== app.result.current) return false;
    const frames = (steps: Step[], stack: Stack, word: number | null): Frame[] =>
      steps.map((step) => ({ step, stack, word }));
    const decoder = current.hypothesis.ids.flatMap((_, word) => frames(STEPS, "decoder", word));
    this.frames = [...frames(ENCODER, "encoder", null), ...decoder];
    this.probabilities = known;
    this.finished = false;
    return true;
  }

  /** Continues playing. With reduced motion, the first press only shows the first frame. */
  async play() {
    const first = this.at < 0;
    if (!(await this.ready())) return;
    this.playing = !(first && wantsStillness());
    if (first) this.go(0);
    this.schedule();
    this.changed();
  }

  schedule() {
    clearTimeout(this.timer);
    if (!this.playing) return;
    this.timer = setTimeout(() => {
      this.go(this.at + 1);
      this.schedule();
    }, this.pace);
  }

  pause() {
    clearTimeout(this.timer);
    this.playing = false;
    this.changed();
  }

  async step(by: number) {
    this.pause();
    if (await this.ready()) this.go(Math.max(0, this.at + by));
  }

  restart() {
    this.go(0);
    this.schedule();
  }

  go(at: number) {
    this.finished = at === this.frames.length;
    if (this.finished) return this.end();
    this.at = at;
    this.show(this.frames[at]);
  }

  /** Ends the animation. */
  end() {
    clearTimeout(this.timer);
    this.tries++;
    if (this.at < 0) return;
    Object.assign(this, { at: -1, playing: false });
    this.show(null);
  }

  /** Returns the ids of the steps already shown for this word, or for the encoder. */
  passed() {
    const word = this.frames[this.at]?.word;
    return this.frames
      .slice(0, Math.max(this.at, 0))
      .filter((frame) => frame.word === word)
      .map(({ step }) => step.id);
  }
}

/** Returns whether the reader wants no motion. */
export function wantsStillness() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
