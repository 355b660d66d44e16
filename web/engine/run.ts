// One forward pass of a model under changes, which keeps every number by name.

import { NO_CHANGES } from "./changes.ts";
import { stepsUnder } from "./mistakes.ts";
import { tensor } from "./tensor.ts";

import type { Model } from "./model.ts";
import type { Changes, ModelConfig, Patch, Points, Steps, Tensor } from "./types.ts";

const PAUSE_AFTER = 12; // milliseconds of computing, after which the page may draw

/** The last input and output of each linear map, by the name of its weights. */
export type Products = Map<string, { x: Tensor; out: Tensor }>;

/** One forward pass of a model: its weights, the changes, and the points computed so far. */
export class Run {
  model: Model;
  changes: Changes;
  donors: Points[];
  signal: AbortSignal | null;
  points: Points;
  /** The products of an earlier run. If given, rows that have not changed are not multiplied again. */
  products: Products | null = null;
  /** When the run last paused to let the page handle its events. */
  paused: number;
  config: ModelConfig;
  steps: Steps;
  preNorm: boolean;

  /** `donors`: for each patch of the changes, the points of the sentence from which the patch takes its rows. */
  constructor(
    model: Model,
    changes: Changes = NO_CHANGES,
    donors: Points[] = [],
    signal: AbortSignal | null = null,
  ) {
    this.model = model;
    this.changes = changes;
    this.donors = donors;
    this.signal = signal;
    this.points = new Map();
    this.paused = performance.now();
    this.config = model.config;
    this.steps = stepsUnder(changes);
    this.preNorm = this.steps.preNorm(this.config);
  }

  /** Returns a weight of the model. */
  weight(name: string) {
    return this.model.weight(name);
  }

  /**
   * Keeps a value under its name and returns the value. A patch of this point first replaces some rows of the value
   * by rows of another sentence.
   */
  tap(name: string, value: Tensor) {
    this.changes.patches.forEach((patch, i) => {
      if (patch.point === name) value = patched(value, this.donors[i].get(name) as Tensor, patch);
    });
    this.points.set(name, value);
    return value;
  }

  /** Lets the page draw if the run has computed for long enough; throws when the run's signal is aborted. */
  async pause() {
    this.signal?.throwIfAborted();
    if (performance.now() - this.paused < PAUSE_AFTER) return;
    await nextTask();
    this.paused = performance.now();
  }
}

/**
 * Resolves after the page has handled pending events. Unlike setTimeout, this function has no minimum delay and is
 * not slower in hidden tabs.
 */
function nextTask() {
  const { port1, port2 } = new MessageChannel();
  const turn = new Promise((resume) => {
    port1.onmessage = resume;
    port2.postMessage(null);
  });
  return turn.finally(() => port1.close());
}

/** Returns x with some rows (its second-to-last axis) replaced by rows of another sentence at the same point. */
function patched(x: Tensor, donor: Tensor, { point, positions, heads }: Patch) {
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
