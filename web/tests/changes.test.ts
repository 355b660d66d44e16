// Compares the page's changes with the same changes in PyTorch at every point.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkChanges, isUnchanged, keptChanges, NO_CHANGES } from "../engine/changes.ts";
import { createEngine, firstDifference } from "../engine/engine.ts";
import { slices } from "../engine/model.ts";
import { bytesOf, floatsOf } from "../engine/tensor.ts";
import { assertSamePoints } from "./points.ts";
import { asked, traces } from "./traces.ts";

import type { Changes, ChangesWith, MaskCell, Patch, Tensor } from "../engine/types.ts";

const made = await traces("changes");
const { payload } = made.post;
const SENTENCE = { sourceIds: payload.trace.source_ids, targetIds: payload.trace.target_ids };
const [DECODER, CROSS] = ["decoder.layers.0.self_attention", "decoder.layers.1.cross_attention"];

/** Returns the trace of the post-norm model under changes. */
async function traceUnder(changes: Partial<Changes>) {
  return (await createEngine(payload)).trace({ ...SENTENCE, changes });
}

for (const [norm, { payload, cases }] of Object.entries(made)) {
  test(`changes equal Python's at every point: ${norm}`, async () => {
    const engine = await createEngine(payload);
    const { points, data } = payload.trace;
    const unchanged = slices(points, floatsOf(bytesOf(data)));
    for (const [name, { changes, points, data }] of Object.entries<any>(cases)) {
      const trace = await engine.trace({ ...SENTENCE, changes: asked(changes) });
      await assertSamePoints(trace, { points, data }, name);
      const before = (unchanged.get("logits") as Tensor).data;
      const after = (await trace.get("logits")).data;
      assert.ok(
        after.some((value, i) => Math.abs(value - before[i]) > 1e-3),
        `${name} changes nothing`,
      );
    }
  });
}

test("ablating a cross-attention head leaves the encoder bit-identical", async () => {
  const [before, after] = [await traceUnder({}), await traceUnder({ ablated: { [CROSS]: [0] } })];
  const encoder = before.names.filter((name) => /^(source|encoder)\./.test(name));
  assert.ok(encoder.length > 30);
  for (const name of encoder) assert.deepEqual(await before.get(name), await after.get(name), name);
  assert.notDeepEqual(await before.get("logits"), await after.get("logits"));
  assert.equal(await firstDifference(before, after), `${CROSS}.heads`);
});

test("a row without visible keys is all zeros", async () => {
  const cells: MaskCell[] = [0, 1, 2, 3, 4, 5].map((key) => [2, key, false]);
  const { shape, data } = await (await traceUnder({ masks: { [CROSS]: cells } })).get(`${CROSS}.weights`);
  const [, rows, columns] = shape;
  assert.ok(data.every((weight, i) => (Math.floor(i / columns) % rows === 2 ? weight === 0 : true)));
  assert.ok(data.some((weight) => weight > 0));
});

test("a row by hand overrides masks and mistakes", async () => {
  const trace = await traceUnder({
    overrides: { [DECODER]: [[0, 0, [0, 0, 1]]] },
    masks: { [DECODER]: [[0, 2, false]] },
    mistakes: ["mask_after_softmax"],
  });
  assert.deepEqual([...(await trace.get(`${DECODER}.weights`)).data.slice(0, 5)], [0, 0, 1, 0, 0]);
});

test("rows of a different width cannot be patched in", async () => {
  const patch: Patch = {
    point: `${CROSS}.weights`,
    sourceIds: [6, 2],
    targetIds: [1, 5],
    positions: [[0, 0]],
  };
  const message = `a row of ${CROSS}.weights has 2 numbers in the other sentence, but 6 here`;
  await assert.rejects(traceUnder({ patches: [patch] }), { message });
});

const WRONG: [wrong: unknown, message: string][] = [
  [{ ablate: {} }, 'changes has no "ablate": there are source, prefix, ablated, masks'],
  [{ ablated: { "encoder.layers.2.self_attention": [0] } }, "ablated has no"],
  [{ ablated: { [CROSS]: [3] } }, "is 3: expected heads from 0 to 2"],
  [{ ablated: { [CROSS]: 1 } }, "is 1: expected a list of heads from 0 to 2"],
  [{ masks: { [CROSS]: [[0, 1]] } }, "is [0,1]: expected cells [query, key, true when it may look]"],
  [{ masks: { [CROSS]: [[0, -1, true]] } }, "expected cells"],
  [{ masks: { [CROSS]: [[0, 2000, true]] } }, "with positions below"],
  [{ overrides: { [CROSS]: [[0, 1, "half"]] } }, "expected rows [head, query, [weights]]"],
  [{ overrides: { [CROSS]: [[3, 1, [1]]] } }, "expected rows"],
  [{ patches: {} }, "patches is {}: expected a list"],
  [{ patches: [{ point: "logit" }] }, 'point is "logit": expected the name of a point'],
  [{ patches: [{ point: "logits", positions: [] }] }, "expected a text, or sourceIds and targetIds"],
  [{ patches: [{ point: "logits", sentence: "w4", positions: [[1]] }] }, "expected pairs [here, there]"],
  [{ patches: [{ point: "logits", sentence: "w4", positions: [], heads: [7] }] }, "expected heads"],
  [{ positions: 0 }, "positions is 0: expected true or false"],
  [{ scale: null }, "scale is null: expected true or false"],
  [{ mistakes: ["none"] }, 'is "none": expected the names norm_order, residual_normed'],
  [{ checkpoint: "last" }, 'checkpoint is "last": expected a step'],
  [{ source: 5 }, "source is 5: expected a text"],
  [[], "changes is []: expected an object"],
];

test("an invalid change is an error that says what is valid", async () => {
  const { config } = await createEngine(payload);
  for (const [wrong, message] of WRONG) {
    assert.throws(
      () => checkChanges(wrong as Partial<Changes>, config),
      (error: Error) => error.message.includes(message),
      message,
    );
  }
});

test("changes that change nothing are recognised", () => {
  const unchanged = [
    {},
    { ablated: { [CROSS]: [] } },
    { source: "w5", prefix: "w4" },
    { positions: true, mistakes: [] },
  ];
  const changed: Partial<ChangesWith<unknown>>[] = [
    { ablated: { [CROSS]: [0] } },
    { masks: { [CROSS]: [[0, 0, true]] } },
    { overrides: { [CROSS]: [[0, 0, []]] } },
    { patches: [{}] },
    { positions: false },
    { scale: false },
    { mistakes: ["no_scale"] },
    { checkpoint: 0 },
  ];
  assert.deepEqual([...unchanged, ...changed].map(isUnchanged), [
    ...unchanged.map(() => true),
    ...changed.map(() => false),
  ]);
});

test("a new sentence keeps the changes whose positions it has", () => {
  const self = "encoder.layers.0.self_attention",
    cross = "decoder.layers.1.cross_attention";
  const patch = { point: "encoder.output", sentence: "w4" };
  const kept = keptChanges(
    {
      ...NO_CHANGES,
      ...{ source: "w4 w5", prefix: "w6", ablated: { [cross]: [0] }, scale: false, mistakes: ["no_scale"] },
      masks: { [self]: [[2, 0, false], [3, 0, false]], [cross]: [[4, 3, false]] }, // prettier-ignore
      overrides: { [cross]: [[0, 4, [1, 0, 0]], [0, 4, [1, 0, 0, 0]], [0, 5, [1]]] }, // prettier-ignore
      patches: [{ ...patch, positions: [[2, 9]] }, { ...patch, positions: [[2, 0], [3, 0]] }], // prettier-ignore
    },
    { source: 3, target: 5 },
  );
  assert.deepEqual(kept, {
    ...{ ablated: { [cross]: [0] }, positions: true, scale: false, mistakes: ["no_scale"], checkpoint: null },
    masks: { [self]: [[2, 0, false]] },
    overrides: { [cross]: [[0, 4, [1, 0, 0]]] },
    patches: [{ ...patch, positions: [[2, 9]] }],
  });
});
