// Tokenizers are made from data; an unknown kind is an error.
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTokenizer } from "../engine/tokenizers.js";

test("an unknown kind is an error that lists the known kinds", () => {
  const make = () => makeTokenizer({ kind: "syllables", tokens: [] });
  assert.throws(make, /a tokenizer of the kind "syllables": it knows words, characters, bpe, unigram/);
});

test("a tokenizer tells whether its tokens are whole words", () => {
  const tokens = ["<pad>", "<bos>", "<eos>", "<unk>", "▁", "a", "cat"];
  const characters = makeTokenizer({ kind: "characters", tokens });
  assert.deepEqual([characters.wholeWords, characters.spaces], [true, true]);
  const words = makeTokenizer({ kind: "words", tokens });
  assert.deepEqual([words.wholeWords, words.spaces, words.encode("a cat")], [true, false, [5, 6]]);
});
