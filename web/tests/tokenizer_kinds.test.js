// Tokenizers are made from data; a kind that this page does not know is an error, not another kind.
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTokenizer } from "../engine/tokenizers.js";

test("a kind that the page does not know is an error that lists the known kinds", () => {
  const make = () => makeTokenizer({ kind: "syllables", tokens: [] });
  assert.throws(make, /a tokenizer of the kind "syllables": it knows words, characters, bpe, unigram/);
});

test("a tokenizer says whether its tokens are whole words", () => {
  const tokens = ["<pad>", "<bos>", "<eos>", "<unk>", "▁", "a", "cat"];
  const characters = makeTokenizer({ kind: "characters", tokens });
  assert.deepEqual([characters.wholeWords, characters.spaces], [true, true]);
  const words = makeTokenizer({ kind: "words", tokens });
  assert.deepEqual([words.wholeWords, words.spaces, words.encode("a cat")], [true, false, [5, 6]]);
});
