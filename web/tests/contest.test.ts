// Contests between two words, their margins, and the heads that decide them, as the engine computes them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ablatedHeads, closestCall, contestOf, headEffects, marginsOf, sum } from "../engine/contest.ts";
import { createEngine } from "../engine/engine.ts";
import { tensor } from "../engine/tensor.ts";
import { makeTokenizer } from "../engine/tokenizers.ts";
import { traces } from "./traces.ts";

import type { HeadEffect } from "../engine/contest.ts";
import type { Payload, PieceData } from "../engine/types.ts";

const payload: Payload = (await traces("forward")).paper;
const engine = await createEngine(payload);
const { source_ids: sourceIds, target_ids: targetIds } = payload.trace;

test("two translations compete with the first words that differ", () => {
  const [one, other] = [[5, 6, 7, 2], [5, 8, 2]].map((ids, at) => ({ sourceIds: [at], ids })); // prettier-ignore
  assert.deepEqual(contestOf(one, other), {
    prefixIds: [5],
    cases: [
      { sourceIds: [0], word: 6, rival: 8 },
      { sourceIds: [1], word: 8, rival: 6 },
    ],
  });
  assert.equal(contestOf(one, { ...one }), null);
});

/**
 * Returns the closest call among rows of log p in a vocabulary of pieces: the special tokens, two words, a suffix, ".",
 * and the first word with a capital letter.
 */
function callIn(ids: number[], rows: number[][]) {
  const tokens = ["<pad>", "<bos>", "<eos>", "<unk>", "▁le", "▁chat", "s", ".", "▁Le"];
  const target = makeTokenizer({ kind: "unigram", tokens, scores: [], types: [] } as PieceData);
  const logProbs = tensor([rows.length, tokens.length], Float32Array.from(rows.flat()));
  const tokenizers = { source: target, target };
  return closestCall({ config: engine.config, tokenizers }, [9], ids, logProbs);
}

const [LE, CHAT, S, DOT, LE_CAPITAL, EOS] = [4, 5, 6, 7, 8, 2];
/** Returns a row with these log probabilities, and −20 for all other tokens. */
const rowWith = (some: Record<number, number>) => Array.from({ length: 9 }, (_, id) => some[id] ?? -20);

test("the closest call is the word with the nearest rival, not the end of the sentence", () => {
  const close = rowWith({ [CHAT]: -1, [LE]: -1.2 });
  const rows = [rowWith({ [LE]: -1, [CHAT]: -2 }), close, rowWith({ [EOS]: -1, [LE]: -1.1 })];
  const found = callIn([LE, CHAT, EOS], rows);
  assert.deepEqual(found, { prefixIds: [LE], cases: [{ sourceIds: [9], word: CHAT, rival: LE }] });
  const beaten = callIn([LE, LE, EOS], rows);
  assert.deepEqual(beaten.prefixIds, [], "a word that a rival beats does not count as a close call");
});

test("words are closer calls than pieces inside a word, and these than punctuation and special tokens", () => {
  const near = (word: number, rival: number, by: number) => rowWith({ [word]: -1, [rival]: -1 - by });
  const rows = [
    near(DOT, LE, 0.1),
    near(S, LE, 0.2),
    near(CHAT, DOT, 0.3),
    near(CHAT, LE, 3),
    near(EOS, LE, 0),
  ];
  const places = [0, 1, 2, 3].map((count) => {
    const kept = [...rows.slice(0, 4 - count), rows[4]];
    return callIn([DOT, S, CHAT, CHAT].slice(0, 4 - count).concat(EOS), kept).prefixIds.length;
  });
  assert.deepEqual(places, [3, 1, 1, 0]);
  assert.equal(callIn([EOS], [near(EOS, DOT, 4)]).cases[0].rival, DOT, "a whole output");
});

test("a word and the same word in capitals are no close call", () => {
  const rows = [rowWith({ [LE_CAPITAL]: -1, [LE]: -1.1 }), rowWith({ [CHAT]: -1, [LE]: -3 }), rowWith({})];
  const found = callIn([LE_CAPITAL, CHAT, EOS], rows);
  assert.deepEqual(found, { prefixIds: [LE_CAPITAL], cases: [{ sourceIds: [9], word: CHAT, rival: LE }] });
});

test("a token that no search writes is not a rival", () => {
  const row = rowWith({ [LE]: -1, 0: -1.1, 1: -1.1, [CHAT]: -3 });
  assert.equal(callIn([LE, EOS], [row, rowWith({})]).cases[0].rival, CHAT);
});

test("a margin is the difference of two log probabilities after the prefix", async () => {
  const prefixIds = targetIds.slice(1, 3);
  const contest = { prefixIds, cases: [{ sourceIds, word: 4, rival: 5 }] };
  const trace = await engine.trace({ sourceIds, targetIds });
  const {
    shape: [, width],
    data,
  } = await trace.get("log_probs");
  const [margin] = await marginsOf(engine, contest);
  assert.ok(Math.abs(margin - (data[2 * width + 4] - data[2 * width + 5])) < 1e-5);
});

test("the effect of a head counts from the heads that are off already, which are not tried again", async () => {
  const contest = { prefixIds: [], cases: [{ sourceIds, word: 4, rival: 5 }] };
  const attention = "decoder.layers.0.cross_attention";
  const heads = [0, 1].map((head) => ({ attention, head }));
  const first: HeadEffect[] = [];
  for await (const one of headEffects(engine, contest, heads)) first.push(one);
  assert.equal(first.length, 2);
  const [off] = first;
  const { value: second } = await headEffects(engine, contest, heads, [off]).next();
  assert.deepEqual(ablatedHeads([off, second]), { [attention]: [0, 1] });
  assert.deepEqual(second.margins, await marginsOf(engine, contest, { ablated: { [attention]: [0, 1] } }));
  assert.equal(second.effect, sum(second.margins) - sum(off.margins));
});
