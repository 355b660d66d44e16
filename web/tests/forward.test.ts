// Compares the page's forward pass with PyTorch's at every point, so that the numbers on screen are the model's.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine } from "../engine/engine.ts";
import { assertSamePoints } from "./points.ts";
import { traces } from "./traces.ts";

for (const [kind, payload] of Object.entries(await traces("forward"))) {
  test(`every point equals PyTorch's: ${kind}`, async () => {
    const { source_ids: sourceIds, target_ids: targetIds, points } = payload.trace;
    const engine = await createEngine(payload);
    const trace = await engine.trace({ sourceIds, targetIds });
    assert.ok(trace.names.length >= 30);
    assert.deepEqual(
      trace.names,
      points.map(({ name }: { name: string }) => name),
    );
    await assertSamePoints(trace, payload.trace);
  });
}
