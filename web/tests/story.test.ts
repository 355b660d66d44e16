// A contest of two words, its margins, and the heads that decide it, as the engine computes them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ablatedHeads, closestCall, contestOf, headEffects, marginsOf, sum } from "../engine/contest.ts";
import { createEngine } from "../engine/engine.ts";
import { traces } from "./traces.ts";

import type { HeadEffect } from "../engine/contest.ts";
import type { Payload } from "../engine/types.ts";

const payload: Payload = (await traces("forward")).paper;
const engine = await createEngine(payload);
const { source_ids: sourceIds, target_ids: targetIds } = payload.trace;

test("two translations compete with the first words that differ", () => {
  const [one, other] = [[5, 6, 7, 2], [5, 8, 2]].map((ids, at) => ({ sourceIds: [at], ids })); // prettier-ignore
  assert.deepEqual(contestOf(one, other), {
    prefixIds: [5],
    cases: [
      { sourceIds: [0], word: 6, rival: 8 },
      { sourceIds: [1], word: 8, rival: 6 },
    ],
  });
  assert.equal(contestOf(one, { ...one }), null);
});

test("the closest call is the word with the nearest rival, not the end of the sentence", () => {
  const data = Float32Array.from([0, -3, -9, -4, 0, -1, -1, -1.1, 0]);
  const found = closestCall([9], [0, 1, 2], { shape: [3, 3], data });
  assert.deepEqual(found, { prefixIds: [0], cases: [{ sourceIds: [9], word: 1, rival: 2 }] });
  const beaten = closestCall([9], [0, 0, 2], { shape: [3, 3], data });
  assert.deepEqual(beaten.prefixIds, [], "a word that a rival beats does not count as a close call");
});

test("a margin is the difference of two log probabilities after the prefix", async () => {
  const prefixIds = targetIds.slice(1, 3);
  const contest = { prefixIds, cases: [{ sourceIds, word: 4, rival: 5 }] };
  const trace = await engine.trace({ sourceIds, targetIds });
  const {
    shape: [, width],
    data,
  } = await trace.get("log_probs");
  const [margin] = await marginsOf(engine, contest);
  assert.ok(Math.abs(margin - (data[2 * width + 4] - data[2 * width + 5])) < 1e-5);
});

test("the effect of a head counts from the heads that are off already, which are not tried again", async () => {
  const contest = { prefixIds: [], cases: [{ sourceIds, word: 4, rival: 5 }] };
  const attention = "decoder.layers.0.cross_attention";
  const heads = [0, 1].map((head) => ({ attention, head }));
  const first: HeadEffect[] = [];
  for await (const one of headEffects(engine, contest, heads)) first.push(one);
  assert.equal(first.length, 2);
  const [off] = first;
  const { value: second } = await headEffects(engine, contest, heads, [off]).next();
  assert.deepEqual(ablatedHeads([off, second]), { [attention]: [0, 1] });
  assert.deepEqual(second.margins, await marginsOf(engine, contest, { ablated: { [attention]: [0, 1] } }));
  assert.equal(second.effect, sum(second.margins) - sum(off.margins));
});
