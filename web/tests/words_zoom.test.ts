// The parts of an opened Linear, Softmax or embedding that need no page: which words are listed, and the result of
// sampling.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawable } from "../engine/sampling.ts";
import { logSoftmax, tensor } from "../engine/tensor.ts";
import { nearestRows } from "../ui/figure/embedding_reading.ts";
import {
  closestOf,
  largestOfParts,
  listed,
  PLAIN,
  rankOf,
  sampledWords,
} from "../ui/figure/words_reading.ts";

const SCORES = Float32Array.from([3, -1, 2.5, 0, 1]);
const logProbsOf = (scores: Float32Array) => logSoftmax(tensor([1, scores.length], scores)).data;
const ALL = { scores: SCORES, logProbs: logProbsOf(SCORES), rest: 0 };

test("the likeliest words are listed, with the written and the open word", () => {
  assert.deepEqual(listed(ALL.logProbs, 3, [0]), [0, 2, 4]);
  assert.deepEqual(listed(ALL.logProbs, 3, [1, 0]), [0, 2, 1]);
  assert.deepEqual(listed(ALL.logProbs, 1, [1, 3]), [3, 1]);
  assert.deepEqual(listed(Float32Array.from([NaN, -1, NaN, -2]), 3, [3]), [1, 3]); // NaN: words that a recording lacks
});

test("a word's rank counts the words with a larger number", () => {
  assert.deepEqual([0, 1, 2].map((id) => rankOf([5, 7, 5], id)), [2, 1, 2]); // prettier-ignore
  assert.equal(rankOf([NaN, 7, 5], 2), 2);
});

test("each part of a vocabulary is stood for by its largest number", () => {
  assert.deepEqual([...largestOfParts([1, 4, 2, 3], 10)], [0, 1, 2, 3]);
  assert.deepEqual([...largestOfParts([1, 4, -2, -3, NaN, 0], 3)], [1, 2, 5]);
  assert.deepEqual([...largestOfParts([NaN, NaN, 1, -1], 2)], [-1, 2]);
});

test("the shares are the model's probabilities at temperature 1", () => {
  const sampled = sampledWords(ALL, PLAIN);
  for (const id of SCORES.keys()) assert.ok(Math.abs(sampled.share(id) - Math.exp(ALL.logProbs[id])) < 1e-6);
  assert.deepEqual([sampled.shift, sampled.power(0)], [0, Math.exp(3)]);
  assert.equal(sampled.drawn.size, SCORES.length);
});

test("temperature divides the scores, and what is left out shares its probability", () => {
  const sampling = { temperature: 0.5, topK: 2, topP: 1 };
  const sampled = sampledWords(ALL, sampling);
  assert.equal(sampled.scaled(2), 5);
  const sum = SCORES.reduce((total, score) => total + Math.exp(score / 0.5), 0);
  assert.ok(Math.abs(sampled.share(2) - Math.exp(5) / sum) < 1e-6);
  assert.deepEqual(sampled.drawn, drawable(ALL.logProbs, sampling));
  assert.deepEqual([...sampled.drawn.keys()], [0, 2]);
});

test("powers of e that are too large to be read are divided by the largest one", () => {
  for (const sampling of [
    { ...PLAIN, temperature: 0.1 },
    { ...PLAIN, temperature: 0 },
  ]) {
    const sampled = sampledWords(ALL, sampling);
    assert.equal(sampled.power(0), 1);
    assert.ok(sampled.sum >= 1 && sampled.sum < 1.01);
  }
});

test("words that are not known keep their probability", () => {
  const [scores, logProbs] = [SCORES.slice(), ALL.logProbs.slice()];
  const rest = [1, 3].reduce((sum, id) => sum + Math.exp(logProbs[id]), 0);
  for (const id of [1, 3]) scores[id] = logProbs[id] = NaN;
  const sampled = sampledWords({ scores, logProbs, rest }, PLAIN);
  for (const id of [0, 2, 4]) assert.ok(Math.abs(sampled.share(id) - Math.exp(logProbs[id])) < 1e-6);
});

test("the step at which words compete most is the one with the smallest lead", () => {
  const step = (row: number, ...chances: number[]) => {
    return { row, words: chances.map((probability, id) => ({ id, token: "", probability })) };
  };
  assert.equal(closestOf([step(0, 0.9, 0.1), step(1, 0.5, 0.45), step(2, 0.4, 0.1)])?.row, 1);
  assert.equal(closestOf([step(3, 0.5, 0.4), step(4, 0.5, 0.4)])?.row, 3);
  assert.equal(closestOf([step(0, 1)]), null); // a search that considered only one word
});

test("the nearest words have the largest cosine, whatever their length", () => {
  const table = tensor([4, 2], Float32Array.from([1, 0, 0, 3, 5, 1, -1, 0]));
  const found = nearestRows(table, 0, 2);
  assert.deepEqual(
    found.map(({ id }) => id),
    [2, 1],
  );
  assert.ok(Math.abs(found[0].cosine - 5 / Math.sqrt(26)) < 1e-6);
});
