// Compares the differences between two translations with Python's.
import assert from "node:assert/strict";
import { test } from "node:test";
import { alignment, largestChanges, weightChanges, wordChanges } from "../engine/alignment.ts";
import { NO_CHANGES } from "../engine/changes.ts";
import { createEngine } from "../engine/engine.ts";
import { traces } from "./traces.ts";

test("an alignment is a longest common subsequence", () => {
  assert.deepEqual(alignment([], [1]), []);
  assert.deepEqual(alignment([5, 6, 7, 2], [5, 8, 7, 2]), [[0, 0], [2, 2], [3, 3]]); // prettier-ignore
  assert.deepEqual(alignment([1, 2, 3], [9, 1, 3]), [[0, 1], [2, 2]]); // prettier-ignore
  assert.deepEqual(alignment([4, 4, 4], [4]), [[0, 0]]);
});

test("Δp of each shared word equals Python's", async () => {
  const { payload, cases } = (await traces("search")).sharp;
  const engine = await createEngine(payload, null);
  const found = [];
  for (const { asked } of cases) {
    const { hypotheses } = await engine.search({ ...asked, nBest: 1, changes: NO_CHANGES });
    found.push(hypotheses[0]);
  }
  let compared = 0;
  for (const [one, { hypotheses }] of cases.entries())
    for (const [other, { hypotheses: others }] of cases.entries())
      for (const {
        pair: [here, there],
        change,
      } of wordChanges(found[one], found[other])) {
        // prettier-ignore
        const [before, after] = [hypotheses[0].token_log_probs[here], others[0].token_log_probs[there]];
        assert.ok(Math.abs(change - (Math.exp(after) - Math.exp(before))) <= 1e-4);
        compared++;
      }
  assert.ok(compared > 50);
});

test("weights are compared at shared tokens, and each head's largest change is found", () => {
  const one = { shape: [2, 2, 2], data: Float32Array.of(0.5, 0.5, 0.25, 0.75, 0, 1, 1, 0) };
  const there = Float32Array.of(0.5, 0.5, 0, 0, 0.75, 0.25, 1, 0, 0, 0.5, 0.25, 0.25);
  const other = { shape: [2, 2, 3], data: there };
  const pairs = (([[0, 0], [1, 2]]) as [number, number][]); // prettier-ignore
  const changes = weightChanges(one, other, [[1, 1]], pairs);
  assert.deepEqual(changes, { shape: [2, 2, 2], data: Float32Array.of(0, 0, -0.25, -0.5, 0, 0, -0.5, 0.25) });
  assert.deepEqual(largestChanges(changes), [
    { index: [0, 1, 1], change: -0.5 },
    { index: [1, 1, 0], change: -0.5 },
  ]);
});
