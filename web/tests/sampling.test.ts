// Compares the page's sampling with Python's: the same words may be drawn with the same probabilities.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawable } from "../engine/sampling.ts";
import { traces } from "./traces.ts";

const { logProbs, cases } = await traces("sampling");
const ROW = Float32Array.from(logProbs);

test("temperature, top-k and top-p leave the words and probabilities that Python draws", () => {
  for (const { settings, shares } of cases) {
    const kept = drawable(ROW, settings);
    for (const [id, share] of shares.entries()) {
      const off = Math.abs((kept.get(id) ?? 0) - share);
      assert.ok(off <= 1e-4, `word ${id} is off by ${off} at ${JSON.stringify(settings)}`);
    }
  }
});

test("without settings, the probabilities are the model's own", () => {
  const kept = drawable(ROW, { temperature: 1, topK: 0, topP: 1 });
  for (const [id, logProb] of ROW.entries())
    assert.ok(Math.abs((kept.get(id) ?? 0) - Math.exp(logProb)) < 1e-6);
});
