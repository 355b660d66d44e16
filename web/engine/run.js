// One run of a model under changes, which keeps every number by name.

import { NO_CHANGES } from "./changes.js";
import { stepsUnder } from "./mistakes.js";
import { tensor } from "./tensor.js";

/** @import { Model } from "./model.js" */
/** @import { Changes, Patch, Points, Tensor } from "./types.js" */

const PAUSE_AFTER = 12; // milliseconds

/** One run of a model: its weights, the changes, and the points computed so far. */
export class Run {
  /**
   * @param {Model} model
   * @param {Changes} changes
   * @param {Points[]} donors for each patch of the changes, the points of the other sentence
   * @param {AbortSignal | null} signal
   */
  constructor(model, changes = NO_CHANGES, donors = [], signal = null) {
    this.model = model;
    this.changes = changes;
    this.donors = donors;
    this.signal = signal;
    /** @type {Points} */
    this.points = new Map();
    this.paused = performance.now();
    this.config = model.config;
    this.steps = stepsUnder(changes);
    this.preNorm = this.steps.preNorm(this.config);
  }

  /**
   * Returns a weight of the model.
   * @param {string} name
   */
  weight(name) {
    return this.model.weight(name);
  }

  /**
   * Keeps a value under its name and returns it; a patch puts in rows of another sentence.
   * @param {string} name
   * @param {Tensor} value
   */
  tap(name, value) {
    this.changes.patches.forEach((patch, i) => {
      if (patch.point === name)
        value = patched(value, /** @type {Tensor} */ (this.donors[i].get(name)), patch);
    });
    this.points.set(name, value);
    return value;
  }

  /** Lets the page draw now and then; throws when the run's signal is aborted. */
  async pause() {
    this.signal?.throwIfAborted();
    if (performance.now() - this.paused < PAUSE_AFTER) return;
    await nextTask();
    this.paused = performance.now();
  }
}

/** Resolves after the page has handled its events: sooner than setTimeout, and in hidden tabs too. */
function nextTask() {
  const { port1, port2 } = new MessageChannel();
  const turn = new Promise((resume) => {
    port1.onmessage = resume;
    port2.postMessage(null);
  });
  return turn.finally(() => port1.close());
}

/**
 * Returns x with rows (of its last but one axis) from the same point of another sentence.
 * @param {Tensor} x
 * @param {Tensor} donor
 * @param {Patch} patch
 */
function patched(x, donor, { point, positions, heads }) {
  const [length, width] = x.shape.slice(-2);
  const [there, wide] = donor.shape.slice(-2);
  if (wide !== width) {
    throw new Error(`a row of ${point} has ${wide} numbers in the other sentence, but ${width} here`);
  }
  const data = x.data.slice();
  const all = x.shape.length === 3 ? [...Array(x.shape[0]).keys()] : [0];
  for (const head of all.filter((h) => x.shape.length === 2 || !heads || heads.includes(h))) {
    for (const [to, from] of positions) {
      if (to >= length || from >= there) continue;
      const row = (head * there + from) * width;
      data.set(donor.data.subarray(row, row + width), (head * length + to) * width);
    }
  }
  return tensor(x.shape, data);
}
