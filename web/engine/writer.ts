// The decoder as it writes: a model that has read a source, and returns the probabilities of each next token.

import { isCausal } from "./changes.ts";
import { decode, encode, memoryKeys, targetCache } from "./forward.ts";
import { Run } from "./run.ts";

import type { LayerCache } from "./forward.ts";
import type { Model } from "./model.ts";
import type { Products } from "./run.ts";
import type { Changes, KeyValue, Points } from "./types.ts";

/** A model that has read a source; `next` returns the probabilities of the token after a target. */
export class Writer {
  model: Model;
  changes: Changes;
  /** For each patch of the changes, the points of the sentence from which the patch takes its rows. */
  donors: Points[];
  sourceIds: number[];
  signal: AbortSignal | null;
  /** Each decoder layer's keys and values of the source, by the source's length. */
  memories: Map<number, KeyValue[]> = new Map();
  /** Products of another writer's rows, which need not be computed again. */
  products: Products | null = null;
  /** Whether decoding may use a cache. */
  cached: boolean;
  run: Run;

  constructor(
    model: Model,
    changes: Changes,
    donors: Points[],
    sourceIds: number[],
    signal: AbortSignal | null = null,
  ) {
    this.model = model;
    this.changes = changes;
    this.donors = donors;
    this.sourceIds = sourceIds;
    this.signal = signal;
    this.cached = isCausal(changes, model.config);
    this.run = this.#newRun();
  }

  /**
   * Returns a new run that counts the time to its first pause from the last run's pause. `products`: the products
   * that the new run reuses.
   */
  #newRun(products: Products | null = null) {
    const run = new Run(this.model, this.changes, this.donors, this.signal);
    run.paused = this.run?.paused ?? run.paused;
    run.products = products;
    return run;
  }

  /** Returns {logProbs [V], cache} after these target ids with bos; `past` is the cache before the last id. */
  async next(targetIds: number[], past: LayerCache[] | null) {
    this.run = this.#newRun();
    const { sourceIds, targetIds: fed } = this.run.steps.readIds(
      this.sourceIds,
      targetIds,
      this.model.config.pad_id,
    );
    const memories = await this.memoriesOf(sourceIds);
    const { logProbs, cache } = await decode(this.run, fed, memories, sourceIds, this.cached ? past : null);
    const [rows, width] = logProbs.shape;
    const last = rows - 1 - (fed.length - targetIds.length); // only padding comes after this row
    return { logProbs: logProbs.data.subarray(last * width, (last + 1) * width), cache };
  }

  /**
   * Returns the cache of these target ids, which begin with bos; only for changes under which decoding may use a cache.
   */
  async cacheOf(targetIds: number[], past: LayerCache[] | null) {
    const run = this.#newRun(this.products);
    const { sourceIds } = run.steps.readIds(this.sourceIds, targetIds, this.model.config.pad_id);
    return targetCache(run, targetIds, await this.memoriesOf(sourceIds), sourceIds, past);
  }

  /** Returns each decoder layer's keys and values of the source, which is encoded once. */
  async memoriesOf(sourceIds: number[]) {
    const known = this.memories.get(sourceIds.length);
    if (known) return known;
    const run = this.#newRun(this.products);
    const memories = memoryKeys(run, await encode(run, sourceIds));
    this.memories.set(sourceIds.length, memories);
    return memories;
  }
}
