// The classic mistakes: each changes the same numbers as in PyTorch, and the first changed point is the one in the
// table.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_CHANGES } from "../engine/changes.ts";
import { createEngine, firstDifference } from "../engine/engine.ts";
import { attentionMask, attentionStages, STEPS } from "../engine/forward.ts";
import { MISTAKES, stepsUnder } from "../engine/mistakes.ts";
import { assertSamePoints } from "./points.ts";
import { traces } from "./traces.ts";

import type { Tensor } from "../engine/types.ts";

const [SOURCE, TARGET] = [
  [4, 9, 5, 17, 3, 2],
  [1, 7, 20, 5, 11],
];
const PADDED = [...TARGET, 0]; // padded to the length of the source
const recorded = await traces("mistakes");

test("the page has each mistake of the table, with steps that exist", () => {
  const table = recorded.post.mistakes.map(({ id }: { id: string }) => id);
  assert.deepEqual(Object.keys(MISTAKES), table);
  const steps = Object.values(MISTAKES).flatMap((replaced) => Object.keys(replaced));
  assert.deepEqual(
    steps.filter((step) => !(step in STEPS)),
    [],
  );
});

for (const [kind, payload] of Object.entries(recorded)) {
  test(`every point equals PyTorch's under mistakes: ${kind}`, async () => {
    const engine = await createEngine(payload);
    for (const { mistakes, source_ids: sourceIds, target_ids: targetIds, ...trace } of payload.cases) {
      await assertSamePoints(await engine.trace({ sourceIds, targetIds, changes: { mistakes } }), trace);
    }
  });

  test(`each mistake shows first where the table says: ${kind}`, async () => {
    const engine = await createEngine(payload);
    const asked = { sourceIds: SOURCE, targetIds: PADDED };
    const unchanged = await engine.trace(asked);
    for (const { id, first } of payload.mistakes) {
      const changed = await engine.trace({ ...asked, changes: { mistakes: [id] } });
      assert.equal(await firstDifference(unchanged, changed), first, id);
    }
  });
}

test("a mistake that shows only with padding pads the sentences, and needs different lengths", async () => {
  const engine = await createEngine(recorded.post);
  const changes = { mistakes: ["target_padding_mask"] };
  const trace = await engine.trace({ sourceIds: [4, 2], targetIds: TARGET, changes });
  const { shape } = await trace.get("decoder.layers.0.cross_attention.weights");
  assert.deepEqual(shape.slice(1), [TARGET.length, TARGET.length]);
  const equal = { sourceIds: SOURCE.slice(1), targetIds: TARGET };
  const [before, after] = [await engine.trace(equal), await engine.trace({ ...equal, changes })];
  assert.equal(await firstDifference(before, after), null);
});

test("the stages from scores to weights, drawn from a trace, end in the trace's weights", async () => {
  const engine = await createEngine(recorded.post);
  const name = "decoder.layers.0.self_attention";
  const late = ["mask_zero", "mask_after_softmax"]; // also both together
  for (const mistakes of [[], ...Object.keys(MISTAKES).map((id) => [id]), late]) {
    const changes = { ...NO_CHANGES, mistakes };
    const sentence = { sourceIds: SOURCE, targetIds: TARGET };
    const steps = stepsUnder(changes);
    const read = { ...sentence, ...steps.readIds(SOURCE, TARGET, 0) };
    const trace = await engine.trace({ ...read, changes });
    const [scores, weights] = await Promise.all(
      ["scores", "weights"].map((end) => trace.get(`${name}.${end}`)),
    );
    const mask = attentionMask({ config: engine.config, changes, steps }, name, read);
    const stages = attentionStages({ steps }, scores, mask);
    assert.deepEqual(stages.weights, weights, String(mistakes));
    const future = ({ data }: Tensor) => data[1]; // the weight of the second token in the row of <bos>, head 0
    if (mistakes.includes("mask_zero")) assert.equal(future(stages.filled), 0);
    if (mistakes.includes("mask_zero")) assert.ok(future(stages.shares) > 0);
    if (String(mistakes) === "mask_after_softmax") assert.equal(future(stages.filled), future(scores));
    if (mistakes.length === 0) assert.equal(future(stages.filled), -Infinity);
  }
});
