// The explanations of numbers: their terms add up under every change, and each operand equals the cell that it links
// to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { arithmetic } from "../engine/arithmetic.ts";
import { createEngine } from "../engine/engine.ts";
import { stepsUnder } from "../engine/mistakes.ts";
import { explainedOf, numberAt } from "./explained.ts";
import { asked, traces } from "./traces.ts";

import type { Changes, Explanation, Part } from "../engine/types.ts";
type App = Awaited<ReturnType<typeof explainedOf>>;

const [plain, mistaken, changed] = [
  await traces("forward"),
  await traces("mistakes"),
  await traces("changes"),
];
const [ENCODER, MASKED, CROSS] = [
  "encoder.layers.0.self_attention",
  "decoder.layers.0.self_attention",
  "decoder.layers.1.cross_attention",
];

const sentenceOf = ({
  source_ids: sourceIds,
  target_ids: targetIds,
}: {
  source_ids: number[];
  target_ids: number[];
}) => ({ sourceIds, targetIds });
const SENTENCE = sentenceOf(plain.paper.trace);
const paper = await createEngine(plain.paper);

let state = 7;
const drawn = (below: number) => (state = (state * 48271) % 2147483647) % below;

/** Checks the explanations of `count` numbers of every point. */
async function assertExplained(app: App, what: string, count: number) {
  const { trace } = app.result.current;
  for (const name of trace.names) {
    const tensor = await trace.get(name);
    for (let i = 0; i < count; i++) {
      const index = tensor.shape.map(drawn);
      const made = await arithmetic(app, name, index);
      const sum = made.terms.reduce((a, b) => a + b, 0);
      const where = `${what}: ${name}[${index}]`;
      assert.equal(made.result, numberAt(tensor, index), where);
      assert.equal(made.difference, sum - made.result, where);
      const close = Math.abs(made.difference) <= 2e-6 * Math.max(1, Math.abs(made.result));
      assert.ok(close, `${where} is ${made.result}, but the sum of its terms ${sum}`);
      await assertOperands(app, made, where);
    }
  }
}

/** Checks that each operand equals the cell that it links to or, for a hidden score, its replacement. */
async function assertOperands(app: App, { parts, steps }: Explanation, where: string) {
  const { trace, changes } = app.result.current;
  const { blocked } = stepsUnder(changes);
  const rows: Part[] = [...parts, ...steps];
  for (const { left, right, value, from = [] } of rows) {
    const said = left === undefined ? [value] : [left, right];
    for (const [i, cell] of from.entries()) {
      const number = numberAt(await trace.get(cell.name), cell.index);
      const same = said[i] === number || said[i] === blocked.of(number);
      assert.ok(same, `${where}: ${said[i]} leads to ${cell.name}[${cell.index}], which is ${number}`);
    }
  }
}

for (const [kind, payload] of Object.entries(plain)) {
  test(`the terms of every point add up: ${kind}`, async () => {
    await assertExplained(await explainedOf(await createEngine(payload), sentenceOf(payload.trace)), kind, 6);
  });
}

for (const [kind, payload] of Object.entries(mistaken).filter(([, { cases }]) => cases.length > 0)) {
  test(`the terms of every point add up under mistakes: ${kind}`, async () => {
    const engine = await createEngine(payload);
    for (const { mistakes, ...recorded } of payload.cases) {
      await assertExplained(
        await explainedOf(engine, sentenceOf(recorded), { mistakes }),
        mistakes.join(),
        1,
      );
    }
  });
}

for (const [norm, { payload, cases }] of Object.entries(changed)) {
  test(`the terms of every point add up under changes: ${norm}`, async () => {
    const engine = await createEngine(payload);
    for (const [name, { changes }] of Object.entries<any>(cases)) {
      await assertExplained(await explainedOf(engine, SENTENCE, asked(changes)), name, 2);
    }
  });
}

test("a number of a checkpoint is explained by the checkpoint's weights", async () => {
  const { checkpoint } = await traces("sentences");
  await assertExplained(
    await explainedOf(await createEngine(checkpoint), SENTENCE, { checkpoint: 64 }),
    "checkpoint",
    3,
  );
});

test("a softmax over the queries is explained by the weights of one key", async () => {
  const app = await explainedOf(paper, SENTENCE, { mistakes: ["softmax_over_queries"] });
  const { parts, columns, total } = await arithmetic(app, `${MASKED}.weights`, [1, 3, 2]);
  const cells = parts.map(({ from = [] }) => from[0].index);
  assert.deepEqual(
    cells,
    [0, 1, 2, 3, 4].map((query) => [1, query, 2]),
  );
  assert.deepEqual(
    parts.map(({ left, own }) => [left === -Infinity, own]),
    [
      [true, false],
      [true, false],
      [false, false],
      [false, true],
      [false, false],
    ],
  );
  assert.deepEqual([columns[0], total?.label], ["numbers.query", "Σ exp"]);
});

test("an explanation says how a number was computed", async () => {
  const patch = {
    positions: [
      [1, 2],
      [3, 40],
    ] as [number, number][],
    sourceIds: [4, 2],
    targetIds: [1, 4, 5],
  };
  const changes: Partial<Changes> = {
    mistakes: ["no_scale"],
    overrides: { [ENCODER]: [[1, 2, [0.5, 0, -0.25]]] },
    masks: { [CROSS]: [0, 1, 2, 3, 4, 5].map((key) => [1, key, false]) },
    patches: [
      { ...patch, point: `${MASKED}.value`, heads: [1, 2] },
      { ...patch, point: "logits", positions: [[0, 0]] },
    ],
  };
  const app = await explainedOf(paper, SENTENCE, changes);
  const said = async (name: string, index: number[]) => (await arithmetic(app, name, index)).notes.join();
  assert.equal(await said(`${ENCODER}.scores`, [0, 0, 0]), "numbers.changed mistake.no_scale");
  assert.equal(await said(`${ENCODER}.weights`, [1, 2, 0]), "numbers.byHand");
  assert.equal(await said(`${CROSS}.weights`, [0, 1, 0]), "numbers.key.none");
  assert.equal(await said("logits", [0, 5]), "numbers.patched another sentence 0");
  assert.equal(await said("logits", [1, 5]), "");
  assert.equal(await said(`${MASKED}.value`, [1, 1, 0]), "numbers.patched another sentence 2");
  assert.equal(await said(`${MASKED}.value`, [0, 1, 0]), "", "of the other heads");
  assert.equal(await said(`${MASKED}.value`, [1, 3, 0]), "", "the other sentence has no such position");
});

test("a bad name or index says what is expected", async () => {
  const app = await explainedOf(paper, SENTENCE);
  const assertRefused = (name: any, index: any, message: string) =>
    assert.rejects(arithmetic(app, name, index), (error: Error) => error.message.includes(message));
  await assertRefused("encoder.layers.9.output", [0], "no point");
  await assertRefused("x", [0], "source.embedding");
  await assertRefused(null, null, "no point");
  for (const index of [null, 3, [0, 0], [0, 0, 0, 0], [-1, 0, 0], [3, 0, 0], [0, 0.5, 0], ["0", 0, 0]]) {
    await assertRefused(`${CROSS}.scores`, index, "3 whole numbers, from 0 and below 3, 5, 6");
  }
});
