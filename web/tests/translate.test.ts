// The translation page: its words, the words aligned to them, and its requests while the reader types.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { asksLatest } from "../translate/asking.ts";
import { isUnsure, sourcesOf, targetsOf, wordsOf } from "../translate/marks.ts";

import type { Link } from "../translate/types.ts";

const half = Math.log(0.5);

/** Returns the words of a text with their probabilities, if each token has probability one half. */
function probabilities(text: string, tokens: string[]) {
  return wordsOf(
    text,
    tokens,
    tokens.map(() => half),
  ).map(({ text, probability }) => [text, probability && Number(probability.toFixed(6))]);
}

test("a word's probability is the product of its tokens', whatever the tokens are", () => {
  const found = [
    ["le", 0.5],
    ["chat", 0.25],
  ];
  assert.deepEqual(probabilities("le  chat", ["▁le", "▁ch", "at", "<eos>"]), found);
  assert.deepEqual(probabilities("le chat", ["le", " ", "cha", "t", "<eos>"]), found);
  assert.deepEqual(probabilities("le chat", ["▁", "le", "▁ch", "at", "<eos>"]), found);
});

test("the least probable token of a word stands for it", () => {
  const tokens = ["▁qu'", "il", "▁ch", "at", "<eos>"];
  const least = (logProbs: (number | null)[]) =>
    wordsOf("qu'il chat", tokens, logProbs).map(({ token }) => token);
  assert.deepEqual(least([-0.1, -0.4, -2, -0.3, 0]), [1, 2]);
  assert.deepEqual(least([-0.1, -0.4, null, -0.3, 0]), [null, null]);
});

test("a token may be a byte of a character", () => {
  assert.deepEqual(probabilities("😀 é", ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "▁é"]), [
    ["😀", 0.0625],
    ["é", 0.5],
  ]);
});

test("tokens that are not those of the text say nothing about it", () => {
  for (const tokens of [[], ["▁le"], ["▁la", "▁chat"], ["▁le", "▁chat", "▁noir"]])
    assert.deepEqual(
      probabilities("le chat", tokens).map(([, one]) => one),
      [null, null],
    );
  assert.equal(wordsOf("le", ["▁le"], [null])[0].probability, null);
});

test("offsets count characters, not code units", () => {
  const words = wordsOf("😀 a\n😀b", [], []).map(({ begin, end }) => [begin, end]);
  assert.deepEqual(words, [
    [0, 1],
    [2, 3],
    [4, 6],
  ]);
});

test("a word is unsure below one half", () => {
  const sure = (probability: number | null) =>
    !isUnsure({ begin: 0, end: 1, text: "a", probability, token: null });
  assert.deepEqual([0.49, 0.5, null].map(sure), [false, true, true]);
});

test("aligned words are found from both sides", () => {
  const links: Link[] = [
    [0, 3, 0, 2],
    [4, 7, 3, 7],
    [4, 7, 8, 9],
  ];
  assert.deepEqual(sourcesOf(links, 3), [[4, 7]]);
  assert.deepEqual(sourcesOf(links, 2), []);
  assert.deepEqual(targetsOf(links, 7), [
    [3, 7],
    [8, 9],
  ]);
});

/** Returns a function that asks, and lists of the questions, of their signals, and of the answers that were shown. */
function asking() {
  const asked: Map<string, { signal: AbortSignal; answer(text: string): void; refuse(error: Error): void }> =
    new Map();
  const shown: unknown[] = [];
  const ask = (question: string, signal: AbortSignal) =>
    new Promise((answer, refuse) => asked.set(question, { signal, answer, refuse }));
  const question = asksLatest(
    ask,
    (answer) => shown.push(answer),
    (error) => shown.push(error),
    1,
  );
  return { asked, shown, question };
}
const pause = () => new Promise((go) => setTimeout(go, 5));

test("questions that follow at once are not asked", async () => {
  const { asked, question } = asking();
  for (const text of ["a", "ab", "abc"]) question(text);
  await pause();
  assert.deepEqual([...asked.keys()], ["abc"]);
});

test("a newer question aborts the older one, whose late answer or error is not shown", async () => {
  for (const end of ["answer" as const, "refuse" as const]) {
    const { asked, shown, question } = asking();
    question("old");
    await pause();
    question("new");
    assert.ok(asked.get("old")?.signal.aborted);
    await pause();
    asked.get("new")?.answer("new answer");
    await pause();
    if (end === "answer") asked.get("old")?.answer("old answer");
    else asked.get("old")?.refuse(new Error("old error"));
    await pause();
    assert.deepEqual(shown, ["new answer"]);
  }
});

test("an empty text asks nothing and forgets the question before", async () => {
  const { asked, shown, question } = asking();
  question("a");
  await pause();
  question(null);
  asked.get("a")?.answer("answer");
  await pause();
  assert.deepEqual(shown, []);
});

test("every text of the page exists in two languages, and every text is used", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const strings: Record<string, string[]> = JSON.parse(read("../../src/glassformer/serving/strings.json"));
  const modules = globSync("*.ts", { cwd: new URL("../translate/", import.meta.url).pathname });
  const source = modules.map((name) => read(`../translate/${name}`)).join("\n");
  const used = [...source.matchAll(/\bt\("([\w.]+)"/g)].map(([, key]) => key);
  const named = [...source.matchAll(/"((?:reason|why)\.\w+)"\)/g)].map(([, key]) => key);
  const own = Object.keys(strings).filter((key) => !/^(reason|refused|why)\./.test(key));
  assert.deepEqual([...new Set(used)].filter((key) => !key.startsWith("why.")).sort(), own.sort());
  for (const key of named) assert.ok(key in strings, key);
  const placeholders = (text: string) => (text.match(/\{\d\}/g) ?? []).sort();
  for (const [key, texts] of Object.entries(strings)) {
    assert.equal(texts.length, 2, key);
    assert.deepEqual(placeholders(texts[0]), placeholders(texts[1]), key);
  }
});
