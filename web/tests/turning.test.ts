// Compares turned rows with a whole forward pass under the same overrides, and the words after them with the page's
// search.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCausal, NO_CHANGES } from "../engine/changes.ts";
import { createEngine } from "../engine/engine.ts";
import { rowOf } from "../engine/tensor.ts";
import { splitWeights, withoutRows, withRows } from "../engine/turning.ts";
import { traces } from "./traces.ts";

import type { Changes, LiveEngine, Payload, TurnedRow } from "../engine/types.ts";

const found = await traces("search");
const SOURCE = [4, 9, 5, 17, 3, 2];
const IDS = [7, 20, 5, 11, 9, 14, 2];
const [ENCODER, LAST_ENCODER] = ["encoder.layers.0.self_attention", "encoder.layers.1.self_attention"];
const [MASKED, CROSS] = ["decoder.layers.0.self_attention", "decoder.layers.1.cross_attention"];
const FIRST_CROSS = "decoder.layers.0.cross_attention";

/** Returns the engine of a page that has the weights. */
async function opened(payload: Payload): Promise<LiveEngine> {
  const engine = await createEngine(payload);
  assert.ok(engine.live === true);
  return engine;
}

const row = (attention: string, head: number, query: number, weights: number[]) => {
  return { attention, head, query, weights };
};

/** Rows that a reader turns and, if it is not the turned one, the watched row. */
const TURNED: Record<string, [TurnedRow[], number?]> = {
  "cross-attention, first row": [[row(CROSS, 1, 0, [0, 0, 1])]],
  "cross-attention, a row between": [[row(FIRST_CROSS, 0, 3, [0, 0.4, 0.6])]],
  "cross-attention, last row": [[row(CROSS, 2, 6, [0, 0, 0, 0, 0, 1])]],
  "masked self-attention": [[row(MASKED, 0, 4, [0, 0, 1])]],
  "masked self-attention, first row": [[row(MASKED, 1, 0, [1])]],
  "masked self-attention, last row": [[row(MASKED, 1, 6, splitWeights(7, 2.75))]],
  "an earlier row": [[row(MASKED, 0, 1, [1, 0])], 4],
  "a later row": [[row(CROSS, 0, 5, [1])], 2],
  "the encoder's first layer": [[row(ENCODER, 0, 2, splitWeights(6, 4.5))], 3],
  "the encoder's last layer": [[row(LAST_ENCODER, 1, 5, [0, 1])], 6],
  "the encoder and the first word": [[row(ENCODER, 2, 0, [0, 0, 0, 1])]],
  "two rows at once": [[row(FIRST_CROSS, 0, 3, [0, 1]), row(CROSS, 1, 3, [0, 1])]],
  "rows of both stacks": [[row(ENCODER, 0, 1, [1]), row(CROSS, 1, 3, [0, 0, 1])]],
  "a row that sees the future": [[row(MASKED, 0, 2, [0, 0, 0, 0, 1])], 4],
};

/** Other changes that are in force while a row is turned. */
const IN_FORCE: Record<string, Partial<Changes>> = {
  nothing: {},
  "other rows, and the same one": {
    overrides: { [CROSS]: [[1, 0, [1]], [1, 3, [1]], [2, 6, [1]]], [ENCODER]: [[0, 2, [1]], [1, 1, [0, 1]]], [MASKED]: [[0, 4, [1]]] }, // prettier-ignore
  },
  "heads and scale": { ablated: { [CROSS]: [0], [ENCODER]: [1] }, scale: false },
  "a mistake that sees the future": { mistakes: ["no_causal_mask"] },
  "the decoder's keys": { mistakes: ["decoder_keys"] },
};

/** Returns the changes with these rows as overrides, in the console's format. */
function overridden(changes: Partial<Changes>, turned: TurnedRow[]): Changes {
  const all = { ...NO_CHANGES, ...changes };
  return { ...all, overrides: withRows(all.overrides, turned) };
}

const watched = (turned: TurnedRow[]) =>
  Math.max(0, ...turned.filter(({ attention }) => /^dec/.test(attention)).map(({ query }) => query));

for (const kind of ["paper", "pre, learned"]) {
  for (const [force, changes] of Object.entries(IN_FORCE)) {
    test(`turned rows equal the whole forward pass and the search: ${kind}, ${force}`, async () => {
      const engine = await opened(found[kind].payload);
      const turning = await engine.turning({ sourceIds: SOURCE, ids: IDS, changes });
      for (const [name, [turned, place]] of Object.entries(TURNED)) {
        const all = overridden(changes, turned);
        const at = place ?? watched(turned);
        const got = await turning.row(turned, place);
        const targetIds = [1, ...IDS.slice(0, at)];
        const trace = await engine.trace({ sourceIds: SOURCE, targetIds, changes: all });
        const expected = rowOf(await trace.get("log_probs"), at);
        assert.equal(got.length, expected.length);
        got.forEach((logProb, id) =>
          assert.ok(Math.abs(logProb - expected[id]) <= 1e-5, `${name}: word ${id}`),
        );
        const { ids, logProbs } = await turning.after(turned, place);
        const asked = { sourceIds: SOURCE, prefixIds: IDS.slice(0, at), beamSize: 1, changes: all };
        const { hypotheses } = await engine.search(asked);
        const [best] = hypotheses;
        assert.deepEqual(ids, best.ids.slice(at), name);
        logProbs.forEach((logProb, i) =>
          assert.ok(Math.abs(logProb - best.tokenLogProbs[at + i]) <= 1e-5, name),
        );
        assert.equal(logProbs.length, ids.length);
      }
    });
  }
}

test("a turned row changes what is written, and does so only while it is turned", async () => {
  const engine = await opened(found.paper.payload);
  const turning = await engine.turning({ sourceIds: SOURCE, ids: IDS });
  const [one, other] = [[row(CROSS, 1, 3, [1])], [row(CROSS, 1, 3, [0, 0, 0, 1])]];
  const first = await turning.row(one);
  assert.notDeepEqual(await turning.row(other), first);
  assert.deepEqual(await turning.row(one), first);
});

test("the rows before the turned one are computed once", async () => {
  const engine = await opened(found.paper.payload);
  const model = await engine.model();
  let read = 0;
  const weight = model.weight.bind(model);
  model.weight = (name) => {
    read += Number(name === "source.tokens.weight");
    return weight(name);
  };
  const turning = await engine.turning({ sourceIds: SOURCE, ids: IDS });
  for (const position of [0, 0.5, 1]) await turning.row([row(CROSS, 0, 3, splitWeights(6, position))]);
  assert.equal(read, 1);
  for (const position of [0, 1]) await turning.row([row(ENCODER, 0, 3, splitWeights(6, position))]);
  assert.equal(read, 3); // the encoder's output has changed
});

test("what a turned row of the encoder leaves as it was is not computed again", async () => {
  const engine = await opened(found.paper.payload);
  const model = await engine.model();
  const read = new Map<string, number>();
  const weight = model.weight.bind(model);
  model.weight = (name) => {
    read.set(name, (read.get(name) ?? 0) + 1);
    return weight(name);
  };
  const turning = await engine.turning({ sourceIds: SOURCE, ids: IDS });
  const turn = (position: number) => turning.row([row(LAST_ENCODER, 0, 3, splitWeights(6, position))], 4);
  const times = (name: string) => read.get(`${name}.weight`) ?? 0;
  await turn(0);
  const whole = ["encoder.layers.0.feed_forward.expand", "encoder.layers.1.self_attention.input_projection"];
  const before = whole.map(times);
  const rows = "encoder.layers.1.feed_forward.expand";
  const [output, one] = [times("output"), times(rows)];
  assert.equal(output, 1); // the rows before the watched one come from the cache
  await turn(1);
  assert.deepEqual(whole.map(times), before);
  // only one row of the encoder and the watched row are computed again
  assert.deepEqual([times("output"), times(rows)], [output + 1, one + 1]);
});

test("a turned row replaces an override of the same row, and is let go alone", () => {
  const before: Changes["overrides"] = { [CROSS]: [[0, 3, [1]], [1, 3, [1]]], [MASKED]: [[0, 4, [1]]] }; // prettier-ignore
  const turned = [row(CROSS, 1, 3, [0, 1]), row(FIRST_CROSS, 0, 2, [1])];
  const after = withRows(before, turned);
  assert.deepEqual(after[CROSS], [[0, 3, [1]], [1, 3, [0, 1]]]); // prettier-ignore
  assert.deepEqual(withoutRows(after, turned), { ...before, [CROSS]: [[0, 3, [1]]] });
});

test("a new position ends the words of the one before", async () => {
  const engine = await opened(found.paper.payload);
  const turning = await engine.turning({ sourceIds: SOURCE, ids: IDS });
  const late = turning.after([row(CROSS, 0, 3, [1])]);
  const row2 = turning.row([row(CROSS, 0, 3, [0, 1])]);
  await assert.rejects(late, { name: "AbortError" });
  assert.equal((await row2).length, engine.config.target_vocab_size);
});

test("a position between two words is split between them", () => {
  assert.deepEqual(splitWeights(4, 2), [0, 0, 1, 0]);
  assert.deepEqual(splitWeights(4, 1.25), [0, 0.75, 0.25, 0]);
  assert.deepEqual(splitWeights(1, 0), [1]);
  for (const position of [0, 0.1, 0.7, 1.3, 2.9, 4]) {
    const weights = splitWeights(5, position);
    assert.ok(Math.abs(weights.reduce((all, weight) => all + weight, 0) - 1) < 1e-12);
  }
});

test("weights of 0 on later words do not forbid the cache", async () => {
  const { config } = await createEngine(found.paper.payload);
  const causal = (weights: number[]) =>
    isCausal({ ...NO_CHANGES, overrides: { [MASKED]: [[0, 1, weights]] } }, config);
  assert.deepEqual([causal([0.5, 0.5, 0, 0]), causal([0.5, 0, 0.5])], [true, false]);
});
