// The engine of a page with weights: parity with PyTorch, unusual sentences, checkpoints, errors.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine, parity } from "../engine/engine.ts";
import { recordedPoints } from "../engine/model.ts";
import { bytesOf, erf, floatsOf, floatsOfHalves } from "../engine/tensor.ts";
import { assertSamePoints } from "./points.ts";
import { traces } from "./traces.ts";

import type { Changes, Payload, TraceRequest } from "../engine/types.ts";

const sentences = await traces("sentences");
const payload: Payload = (await traces("forward")).paper;
const SENTENCE = { sourceIds: payload.trace.source_ids, targetIds: payload.trace.target_ids };

for (const [name, payload] of Object.entries(sentences)) {
  test(`every point equals PyTorch's: ${name}`, async () => {
    const { source_ids: sourceIds, target_ids: targetIds } = payload.trace;
    const checkpoint = payload.checkpoints[0]?.step ?? null;
    const engine = await createEngine(payload);
    await assertSamePoints(
      await engine.trace({ sourceIds, targetIds, changes: { checkpoint } }),
      payload.trace,
    );
  });
}

test("a source of padding only gets no attention", async () => {
  const engine = await createEngine(payload);
  const trace = await engine.trace({ sourceIds: [0, 0], targetIds: [1, 4] });
  const { data } = await trace.get("decoder.layers.0.cross_attention.weights");
  assert.ok(data.every((weight) => weight === 0));
});

test("the encoder is computed once under changes that cannot touch it, with the same numbers to the bit", async () => {
  const [encoder, cross] = ["encoder.layers.0.self_attention", "decoder.layers.0.cross_attention"];
  const other = { sourceIds: SENTENCE.sourceIds.slice(1), targetIds: SENTENCE.targetIds };
  const patch = { ...other, positions: [[1, 0] as [number, number]] };
  const kept: Partial<Changes>[] = [
    {},
    { ablated: { [cross]: [0] } },
    { overrides: { [cross]: [[1, 0, [0, 1]]] } },
    { masks: { [cross]: [[0, 1, false]] } },
    { patches: [{ ...patch, point: `${cross}.key` }] },
  ];
  const touching: Partial<Changes>[] = [
    { ablated: { [encoder]: [0] } },
    { overrides: { [encoder]: [[1, 0, [0, 1]]] } },
    { masks: { [encoder]: [[0, 1, false]] } },
    { patches: [{ ...patch, point: `${encoder}.added` }] },
    { positions: false },
    { mistakes: ["target_padding_mask"] },
    { mistakes: ["norm_order"] },
  ];
  const engine = await createEngine(payload);
  const memory = await (await engine.trace(SENTENCE)).get("encoder.output");
  for (const changes of [...kept, ...touching, ...kept]) {
    const trace = await engine.trace({ ...SENTENCE, changes });
    const fresh = await (await createEngine(payload)).trace({ ...SENTENCE, changes });
    assert.deepEqual(trace.names, fresh.names);
    for (const name of trace.names) assert.deepEqual(await trace.get(name), await fresh.get(name), name);
    if (touching.includes(changes)) assert.notEqual(await trace.get("encoder.output"), memory);
  }
  const traces = [{ ablated: { [cross]: [0] } }, { ablated: { [cross]: [1] } }];
  const [one, two] = await Promise.all(traces.map((changes) => engine.trace({ ...SENTENCE, changes })));
  assert.equal(await one.get("encoder.output"), await two.get("encoder.output"));
  const shorter = await engine.trace(other);
  assert.deepEqual((await shorter.get("encoder.output")).shape, [
    other.sourceIds.length,
    payload.config.d_model,
  ]);
});

test("a checkpoint has its own weights, and null means the model's", async () => {
  const engine = await createEngine({
    ...sentences.checkpoint,
    trace: payload.trace,
    weights: payload.weights,
  });
  const trace = await engine.trace({ ...SENTENCE, changes: { checkpoint: null } });
  await assertSamePoints(trace, payload.trace);
});

test("shrunk weights are read exactly as Python reads them", async () => {
  const { read, ...page } = sentences.checkpoint;
  const engine = await createEngine(page);
  assert.ok(engine.live === true);
  const { tensors } = await engine.model(64);
  const expected = recordedPoints({ ...read, points: read.tensors });
  assert.deepEqual([...tensors.keys()], [...expected.keys()]);
  for (const [name, { shape, data }] of expected) assert.deepEqual(tensors.get(name), { shape, data }, name);
});

test("an engine measures its difference from PyTorch", async () => {
  const engine = await createEngine(payload);
  assert.ok(engine.live === true);
  assert.ok(Number(await parity(engine, payload)) <= 1e-5);
  const model = await engine.model();
  model.weight("decoder.layers.1.feed_forward.contract.bias").data[3]++;
  assert.ok(Number(await parity(engine, payload)) > 0.01);
  model.weight("output.weight").data[3] = NaN;
  assert.equal(await parity(engine, payload), Infinity);
});

test("weights may be unaligned bytes", async () => {
  const weights = payload.weights as NonNullable<Payload["weights"]>;
  const bytes = bytesOf(weights.data);
  const shifted = new Uint8Array(bytes.length + 1);
  shifted.set(bytes, 1);
  const moved = { ...payload, weights: { ...weights, data: new DataView(shifted.buffer, 1) } };
  await assertSamePoints(await (await createEngine(moved)).trace(SENTENCE), payload.trace);
});

const WRONG: [wrong: Partial<TraceRequest>, message: RegExp][] = [
  [{ changes: { checkpoint: 65 } }, /there is no checkpoint of step 65/],
  [{ sourceIds: [19] }, /the source vocabulary has no id 19/],
  [{ targetIds: [23] }, /the target vocabulary has no id 23/],
];

test("an id or a name that the model lacks is an error", async () => {
  const engine = await createEngine(payload);
  for (const [wrong, message] of WRONG) {
    await assert.rejects(engine.trace({ ...SENTENCE, ...wrong }), { message });
  }
});

test("more positions than were learned are an error", async () => {
  const learned = (await traces("forward"))["pre, learned, gelu"];
  const engine = await createEngine(learned);
  const message = "the source has 8 positions, the model has learned 7";
  await assert.rejects(engine.trace({ sourceIds: Array(8).fill(4), targetIds: [1] }), { message });
});

test("a missing point is an error", async () => {
  const trace = await (await createEngine(payload)).trace({ sourceIds: [4, 2], targetIds: [1] });
  assert.deepEqual([trace.has("logits"), trace.has("logit")], [true, false]);
  await assert.rejects(trace.get("logit"), { message: 'there is no point "logit" in this trace' });
});

test("halves are decoded exactly, and the error function to fifteen digits", async () => {
  const { halves, x, erf: expected } = await traces("numbers");
  const patterns = Uint16Array.from({ length: 65536 }, (_, i) => i);
  const expectedHalves = floatsOf(bytesOf(halves));
  floatsOfHalves(new Uint8Array(patterns.buffer)).forEach((half, i) =>
    assert.ok(Object.is(half, expectedHalves[i])),
  );
  for (const [i, at] of x.entries()) assert.ok(Math.abs(erf(at) - expected[i]) < 2e-15, `erf(${at})`);
});

test("words are split and joined", async () => {
  const engine = await createEngine(payload);
  assert.deepEqual(await engine.encode("source", "w5 w18 cat"), {
    ids: [5, 18, 3],
    tokens: ["w5", "w18", "<unk>"],
  });
  assert.deepEqual(engine.tokens("target", [22, 2]), ["w22", "<eos>"]);
  assert.equal(engine.decode([22, 4, 2]), "w22 w4");
});

test("an aborted run stops", async () => {
  const signal = AbortSignal.abort("no longer");
  const asked = (await createEngine(payload)).trace({ ...SENTENCE, signal });
  await assert.rejects(asked, (reason) => reason === "no longer");
});
