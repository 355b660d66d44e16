// Pages without weights: they show the recording of one sentence, or ask Python for the points that they show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine, parity } from "../engine/engine.js";
import { slices } from "../engine/model.js";
import { bytesOf, floatsOf } from "../engine/tensor.js";
import { assertSamePoints } from "./points.js";
import { traces } from "./traces.js";

/** @import { Bytes, Host, Payload, Question, SearchRequest, Slice, Tensor, TraceRequest } from "../engine/types.js" */

const { text, trace, ...recorded } = await traces("recorded");
/** @type {Payload} */
const payload = recorded.payload;
const { source_ids: sourceIds, target_ids: targetIds } = trace;
const NEEDS_PYTHON = { message: "this needs Python behind the page: glassformer explore RUN" };

test("without Python, a page shows what was recorded", async () => {
  const engine = await createEngine(payload);
  assert.equal(engine.live, false);
  assert.equal(await parity(engine, payload), null);
  await assertSamePoints(await engine.trace({ sourceIds, targetIds }), trace);
  const { hypotheses, tree } = await engine.search({ sourceIds, nBest: 1 });
  assert.deepEqual(
    hypotheses.map((hypothesis) => hypothesis.text),
    [text],
  );
  assert.ok(tree[1].logProb < 0);
});

/** @type {Partial<TraceRequest>[]} */
const TRACES = [{ sourceIds: [4, 2] }, { targetIds: [1] }, { changes: { scale: false } }];
/** @type {Partial<SearchRequest>[]} */
const SEARCHES = [
  { sourceIds: [4, 2] },
  { changes: { scale: false } },
  { beamSize: 2 },
  { lengthPenalty: 0.5 },
  { prefixIds: [4] },
];

test("without Python, a trace or a search that was not recorded is an error", async () => {
  const engine = await createEngine(payload);
  for (const asked of TRACES) {
    await assert.rejects(
      engine.trace({ sourceIds, targetIds, ...asked }),
      NEEDS_PYTHON,
      JSON.stringify(asked),
    );
  }
  for (const asked of SEARCHES) {
    await assert.rejects(engine.search({ sourceIds, ...asked }), NEEDS_PYTHON, JSON.stringify(asked));
  }
});

test("points are fetched together, once, and only when they are needed", async () => {
  const known = slices(trace.points, floatsOf(bytesOf(trace.data)));
  /** @type {(string[] | null)[]} */
  const asked = [];
  /** @param {Question<"trace">} question */
  const request = async ({ names }) => {
    asked.push(names);
    /** @type {[Slice[], Bytes[]]} */
    const [points, buffers] = [[], []];
    let offset = 0;
    for (const name of names ?? ["log_probs"]) {
      const { shape, data } = /** @type {Tensor} */ (known.get(name));
      points.push({ name, shape, offset });
      buffers.push(data.slice());
      offset += data.length;
    }
    return { message: { names: [...known.keys()], points }, buffers };
  };
  const engine = await createEngine(payload, /** @type {Host} */ ({ request }));
  assert.equal(engine.live, "remote");
  const got = await engine.trace({ sourceIds, targetIds });
  await Promise.all(["logits", "target.input", "log_probs"].map((name) => got.get(name)));
  await got.get("logits");
  assert.deepEqual(asked, [null, ["logits", "target.input"]]);
  await assertSamePoints(got, trace);
});
