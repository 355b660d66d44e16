// The actions of a reader on a view, and the states that follow, without a page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine } from "../engine/engine.ts";
import { App } from "../ui/app/app.ts";
import { traces } from "./traces.ts";

import type { Payload } from "../engine/types.ts";
import type { State } from "../ui/app/state.ts";

const SENTENCE = "w4 w9 w5";
const CROSS = "decoder.layers.0.cross_attention";
const made = (await traces("forward")).paper;
Object.assign(globalThis, { matchMedia: () => ({ matches: false }) });

/**
 * Returns an app that has translated the sentence, and a list of the values that the given parts of its state were set
 * to since then.
 */
async function opened(...keys: (keyof State)[]) {
  const payload: Payload = { ...made, sentence: SENTENCE, strings: { en: {}, zh: {} } };
  const app = new App(payload, await createEngine(payload), new AbortController().signal);
  await app.open(SENTENCE);
  const told: unknown[] = [];
  for (const key of keys) app.on([key], (state) => told.push([key, state[key]]));
  return { app, told };
}

test("a change is computed, and undone with the sentence", async () => {
  const { app, told } = await opened("busy");
  const { reference } = app.result;
  assert.equal(app.result.current, reference);
  await app.set({ ablated: { [CROSS]: [0] } });
  assert.deepEqual(told, [
    ["busy", true],
    ["busy", false],
  ]);
  assert.equal(app.changed, true);
  assert.equal(app.result.reference, reference);
  assert.equal(app.result.firstDifference, `${CROSS}.heads`);
  await app.open(SENTENCE);
  assert.equal(app.changed, false);
  assert.equal(app.result.firstDifference, null);
});

test("a new sentence leaves no chosen word, and the same sentence keeps it", async () => {
  const { app } = await opened();
  app.show({ word: 1 });
  await app.set({ positions: false });
  assert.equal(app.state.word, 1);
  await app.open("w5 w4");
  assert.equal(app.state.word, null);
});

test("what cannot be computed is undone, and its error is shown until the next action", async () => {
  const { app, told } = await opened("problem", "result");
  await app.attempt(() => app.open(" "));
  assert.deepEqual(told, [
    ["problem", ""],
    ["problem", "page.blank"],
  ]);
  assert.equal(app.state.sentence, SENTENCE);
  assert.equal(app.state.busy, false);
  await app.attempt(() => app.set({ scale: false }));
  assert.equal(app.state.problem, "");
});

test("a later question replaces one that is being computed, and contains its changes", async () => {
  const { app, told } = await opened("result");
  await Promise.all([app.set({ scale: false }), app.set({ positions: false })]);
  assert.equal(told.length, 1);
  assert.deepEqual([app.changes.scale, app.result.current.changes.scale], [false, false]);
  assert.deepEqual([app.changes.positions, app.result.current.changes.positions], [false, false]);
});

test("opening a cell of attention weights opens its box, and lights its head and its word", async () => {
  const { app } = await opened();
  app.select({ name: `${CROSS}.weights`, index: [2, 0, 1] });
  assert.deepEqual(app.state.zoom, { box: CROSS, key: 1 });
  assert.equal(app.state.row, 0);
  assert.deepEqual(app.state.heads.cross, { layer: 0, head: 2 });
  assert.deepEqual(app.state.selected, { name: `${CROSS}.weights`, index: [2, 0, 1] });
  assert.equal(app.state.panel, "numbers");
});
