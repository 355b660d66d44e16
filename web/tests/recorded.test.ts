// Recordings: their numbers are PyTorch's in half precision, and all arithmetic that needs no matrix agrees with them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { arithmetic } from "../engine/arithmetic.ts";
import { createEngine, parity } from "../engine/engine.ts";
import { slices } from "../engine/model.ts";
import { bytesOf, floatsOf } from "../engine/tensor.ts";
import { explainedOf, numberAt } from "./explained.ts";
import { traces } from "./traces.ts";

import type { Explanation, Part, Payload, SearchRequest, Tensor, TraceRequest } from "../engine/types.ts";
interface Recorded {
  payload: Payload;
  text: string;
  trace: Payload["trace"];
}

const RECORDED: Record<string, Recorded> = await traces("recorded");
const VOCABULARY = ["logits", "log_probs"];
const LARGEST_HALF = 65504;
const NEEDS_MODEL = /^Error: this page is a recording of one sentence/;
/** The points whose numbers are products with a weight matrix, or rows of one. */
const OF_MATRICES = /\.(query|key|value|embedding|hidden)$|(attention|feed_forward)\.output$|^logits$/;

/** Returns the largest error of rounding x to half precision: half a unit of the last of its 11 bits. */
const roundingOf = (x: number) => Math.max(Math.abs(x) * 2 ** -11, 2 ** -25);

const sentenceOf = ({ source_ids: sourceIds, target_ids: targetIds }: Payload["trace"]) => ({
  sourceIds,
  targetIds,
});

const exactPoints = ({ points, data }: Payload["trace"]) => slices(points, floatsOf(bytesOf(data)));

/** Checks that a recorded number is PyTorch's number in half precision. */
function assertRounded(got: number, exact: number, where: string) {
  const kept = Math.max(-LARGEST_HALF, Math.min(LARGEST_HALF, exact));
  assert.ok(Math.abs(got - kept) <= roundingOf(kept), `${where} is ${got}, but PyTorch has ${exact}`);
}

for (const [kind, { payload, text, trace }] of Object.entries(RECORDED)) {
  test(`a recording has all of PyTorch's numbers: ${kind}`, async () => {
    const engine = await createEngine(payload);
    assert.deepEqual([engine.live, await parity(engine, payload)], [false, null]);
    const got = await engine.trace(sentenceOf(trace));
    const exact = exactPoints(trace);
    assert.deepEqual(got.names, [...exact.keys()]);
    for (const name of got.names.filter((one) => !VOCABULARY.includes(one))) {
      const [{ shape, data }, expected] = [await got.get(name), exact.get(name) as Tensor];
      assert.deepEqual(shape, expected.shape);
      data.forEach((value, at) => assertRounded(value, expected.data[at], `${name} at ${at}`));
    }
    const { hypotheses } = await engine.search({ sourceIds: trace.source_ids, nBest: 1 });
    assert.equal(hypotheses[0].text, text);
    assert.equal(engine.decode(hypotheses[0].ids), text);
    const { ids } = await engine.encode("source", payload.sentence);
    assert.deepEqual([...ids, engine.config.eos_id], trace.source_ids);
  });

  test(`of logits and log_probs, the best words and the written one are recorded: ${kind}`, async () => {
    const engine = await createEngine(payload);
    const got = await engine.trace(sentenceOf(trace));
    const [written] = (await engine.search({ sourceIds: trace.source_ids })).hypotheses;
    const exact = exactPoints(trace);
    for (const name of VOCABULARY) {
      const { shape, data } = await got.get(name);
      const expected = (exact.get(name) as Tensor).data;
      assert.deepEqual(shape, exact.get(name)?.shape);
      const width = shape[1];
      written.ids.forEach((id, row) => {
        const known = [...Array(width).keys()].filter((word) => !Number.isNaN(data[row * width + word]));
        assert.equal(known.length, Math.min(width, 100));
        assert.ok(known.includes(id));
        known.forEach((word) =>
          assertRounded(data[row * width + word], expected[row * width + word], `${name}[${row}, ${word}]`),
        );
        const least = Math.min(
          ...known.filter((word) => word !== id).map((word) => expected[row * width + word]),
        );
        const larger = expected.slice(row * width, (row + 1) * width).filter((value) => value > least);
        assert.ok(larger.length < known.length, "no likelier word is left out");
        if (name === "log_probs" && got.words) {
          const held = known.reduce((sum, word) => sum + Math.exp(expected[row * width + word]), 0);
          assert.ok(Math.abs(got.words.rest[row] - (1 - held)) < 1e-6);
        }
      });
    }
    assert.equal(got.words === null, kind === "few words");
  });

  test(`all arithmetic without a matrix agrees with the recorded numbers: ${kind}`, async () => {
    const app = await explainedOf(await createEngine(payload), sentenceOf(trace));
    const { trace: recorded } = app.result.current;
    for (const name of recorded.names) {
      const tensor = await recorded.get(name);
      for (const index of cellsOf(tensor.shape)) {
        const where = `${name}[${index}]`;
        if (Number.isNaN(numberAt(tensor, index))) {
          await assert.rejects(arithmetic(app, name, index), /numbers.wordNotRecorded/);
          continue;
        }
        const made = await arithmetic(app, name, index);
        const learned = /positions$/.test(name) && app.config.positions === "learned";
        const needsModel = OF_MATRICES.test(name) || learned;
        assert.deepEqual(made.notes, needsModel ? ["numbers.needsModel"] : [], where);
        assert.ok(needsModel || made.formula, where);
        const sum = made.terms.reduce((a, b) => a + b, 0);
        const bound = await boundOf(app, made);
        assert.ok(
          Math.abs(sum - made.result) <= bound,
          `${where} is ${made.result}, its terms ${sum} ± ${bound}`,
        );
      }
    }
  });
}

/** Returns some indices of every row of a tensor. */
function cellsOf(shape: number[]) {
  const [rows, columns] = shape.slice(-2);
  const heads = shape.length === 3 ? shape[0] : 1;
  return Array.from({ length: 40 }, (_, at) =>
    [(at * 5) % heads, (at * 7) % rows, (at * 11) % columns].slice(-shape.length),
  );
}

/**
 * Returns by how much the result of an explanation may differ from its number. Both the operands and the number were
 * rounded. Rounding an operand by r changes the result by at most r times the derivative of the formula.
 */
async function boundOf(
  { result, config }: Awaited<ReturnType<typeof explainedOf>>,
  { name, index, result: number, parts, terms }: Explanation,
) {
  const largest = (values: number[]) => Math.max(...values.filter(isFinite).map(roundingOf));
  const kind = name.replace(/^.*\./, "");
  const own = roundingOf(number) + 1e-6 * Math.abs(number);
  const [row] = index.slice(-2);
  if (kind === "weights") return own + 2 * number * largest(parts.map(({ left = 0 }) => left));
  if (name === "log_probs") return own + 2 * largest(parts.flatMap(({ left }) => left ?? []));
  if (kind === "activated") return own + 1.2 * largest(parts.map(({ value = 0 }) => value)); // slopes are below 1.13
  if (kind === "normed" || /^(en|de)coder\.output$/.test(name)) {
    const [from] =
      name.endsWith("normed") && config.norm === "post" ? [name.replace(/normed$/, "added")] : [];
    const input = from ?? (await streamBefore(result.current.trace, name));
    if (parts.length === 1) return own; // the number is a copy, because the model has no norm there
    const { shape, data } = await result.current.trace.get(input);
    const x = [...data.subarray(row * shape[1], (row + 1) * shape[1])];
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const deviation = Math.sqrt(x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length + 1e-5);
    const { left = 0, right = 0 } = parts[0];
    const [, beta = 0] = terms;
    // the change of x̂ by rounding x: x itself, its mean and its deviation
    const moved = ((2 + Math.abs(left)) * largest(x)) / deviation;
    return own + Math.abs(right) * moved + Math.abs(left) * roundingOf(right) + roundingOf(beta);
  }
  const scale = kind === "scores" ? Math.sqrt(config.d_k) : 1;
  return own + parts.reduce((sum, part) => sum + changeOf(part), 0) / scale;
}

/** Returns by how much a term may change when its operands are rounded. */
function changeOf({ left, right, value = 0 }: Part) {
  if (left === undefined || right === undefined) return roundingOf(value);
  const [a, b] = [roundingOf(left), roundingOf(right)];
  return Math.abs(left) * b + Math.abs(right) * a + a * b;
}

/**
 * Returns the point that is read by the norm of a pre-norm sub-layer or of a stack: the one before it with the same
 * numbers.
 */
async function streamBefore({ names }: { names: string[] }, name: string) {
  if (name.endsWith("normed")) return name.replace(/normed$/, "input");
  const stack = name.replace(/\.output$/, "");
  const last = names.filter((one) => one.startsWith(`${stack}.layers`) && /\.(added|normed)$/.test(one));
  return last.at(-1) as string;
}

const { payload, trace } = RECORDED.post;
const { sourceIds, targetIds } = sentenceOf(trace);
const TRACES: Partial<TraceRequest>[] = [
  { sourceIds: [4, 2] },
  { targetIds: [1] },
  { changes: { scale: false } },
];
const SEARCHES: Partial<SearchRequest>[] = [
  { sourceIds: [4, 2] },
  { changes: { scale: false } },
  { beamSize: 2 },
  { lengthPenalty: 0.5 },
  { prefixIds: [4] },
];

test("anything but the recorded sentence needs the model", async () => {
  const engine = await createEngine(payload);
  for (const asked of TRACES) {
    await assert.rejects(
      engine.trace({ sourceIds, targetIds, ...asked }),
      NEEDS_MODEL,
      JSON.stringify(asked),
    );
  }
  for (const asked of SEARCHES) {
    await assert.rejects(engine.search({ sourceIds, ...asked }), NEEDS_MODEL, JSON.stringify(asked));
  }
  await assert.rejects(engine.encode("source", "another sentence"), NEEDS_MODEL);
});

test("a recording has no vocabulary but the words that occur", () => {
  const { source, target } = payload;
  assert.ok(Object.keys(source.tokens).length <= new Set(sourceIds).size);
  assert.ok(Object.keys(target?.tokens ?? {}).length < 300);
});
