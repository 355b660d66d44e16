// Pages without weights, which ask Python for the points that they show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine } from "../engine/engine.ts";
import { slices } from "../engine/model.ts";
import { bytesOf, floatsOf } from "../engine/tensor.ts";
import { assertSamePoints } from "./points.ts";
import { traces } from "./traces.ts";

import type { Bytes, Host, Payload, Question, Slice, Tensor } from "../engine/types.ts";

const { trace, ...paper } = (await traces("forward")).paper;
const payload: Payload = { ...paper, weights: null, trace };
const { source_ids: sourceIds, target_ids: targetIds } = trace;

test("a page without weights needs Python behind it", async () => {
  await assert.rejects(createEngine(payload), /^Error: this page has no weights.*glassformer explore RUN/);
});

test("points are fetched together, once, and only when they are needed", async () => {
  const known = slices(trace.points, floatsOf(bytesOf(trace.data)));
  const asked: (string[] | null)[] = [];
  const request = async ({ names }: Question<"trace">) => {
    asked.push(names);
    const [points, buffers]: [Slice[], Bytes[]] = [[], []];
    let offset = 0;
    for (const name of names ?? ["log_probs"]) {
      const { shape, data } = known.get(name) as Tensor;
      points.push({ name, shape, offset });
      buffers.push(data.slice());
      offset += data.length;
    }
    return { message: { names: [...known.keys()], points }, buffers };
  };
  const engine = await createEngine(payload, { request } as Host);
  assert.equal(engine.live, "remote");
  const got = await engine.trace({ sourceIds, targetIds });
  await Promise.all(["logits", "target.input", "log_probs"].map((name) => got.get(name)));
  await got.get("logits");
  assert.deepEqual(asked, [null, ["logits", "target.input"]]);
  await assertSamePoints(got, trace);
});

test("weights are fetched by name, once for each step", async () => {
  const asked: [names: string[], rows: number[] | null, step: number | null][] = [];
  const request = async ({ names, rows, checkpoint }: Question<"parameters">) => {
    asked.push([names, rows, checkpoint]);
    const parameters = names.map((name, offset) => ({ name, shape: [1], offset }));
    return { message: { parameters }, buffers: [Float32Array.from(names, (_, at) => at + asked.length)] };
  };
  const engine = await createEngine(payload, { request } as Host);
  assert.ok(engine.live === "remote");
  await engine.modelWith(["output.weight"], null);
  const model = await engine.modelWith(["output.weight", "output.bias"], null);
  assert.deepEqual([...model.weight("output.weight").data, ...model.weight("output.bias").data], [1, 2]);
  const early = await engine.modelWith(["output.weight"], 64);
  assert.deepEqual([...early.weight("output.weight").data], [3]);
  assert.deepEqual([...(await engine.rowsOf("source.tokens.weight", [7, 4], null)).data], [4]);
  assert.throws(() => model.weight("source.tokens.weight"), /no weight/, "two rows are not the matrix");
  assert.deepEqual(asked, [
    [["output.weight"], null, null],
    [["output.bias"], null, null],
    [["output.weight"], null, 64],
    [["source.tokens.weight"], [7, 4], null],
  ]);
});
