// Compares a trace of the page with PyTorch's.
import assert from "node:assert/strict";
import { slices } from "../engine/model.ts";
import { bytesOf, floatsOf } from "../engine/tensor.ts";

import type { RecordedTrace, Trace } from "../engine/types.ts";

/** Checks that a trace has the same points as PyTorch's, in any order, and the same numbers up to 1e-4. */
export async function assertSamePoints(
  trace: Trace,
  { points, data }: Pick<RecordedTrace, "points" | "data">,
  what = "",
) {
  const expected = slices(points, floatsOf(bytesOf(data)));
  assert.deepEqual(new Set(trace.names), new Set(expected.keys()), what);
  for (const [name, { shape, data }] of expected) {
    const got = await trace.get(name);
    assert.deepEqual(got.shape, shape, `${what} ${name}`);
    const far = [...data.keys()].find((i) => !(Math.abs(got.data[i] - data[i]) <= 1e-4));
    assert.equal(far, undefined, `${what} ${name} differs at ${far}`);
  }
}
