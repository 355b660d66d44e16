// Compares the page's tokenizers with Python's: the same ids, tokens, texts and splits for every text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTokenizer } from "../engine/tokenizers.ts";
import { traces } from "./traces.ts";

for (const [kind, { data, eos_id: eosId, cuts, decoded, refused }] of Object.entries(
  await traces("tokenizers"),
)) {
  const tokenizer = makeTokenizer(data);
  const size = data.tokens.length;

  test(`every text is split as in Python: ${kind}`, () => {
    for (const [text, ...expected] of cuts) {
      const ids = tokenizer.encode(text);
      const cut = [ids, tokenizer.tokens(ids), tokenizer.decode(ids), tokenizer.split(text)];
      assert.deepEqual(cut, expected, `${JSON.stringify(text)} is split differently`);
    }
    for (const text of refused) assert.throws(() => tokenizer.encode(text), /half a surrogate pair/);
  });

  test(`any ids decode to Python's text: ${kind}`, () => {
    for (const [ids, text] of decoded) assert.equal(tokenizer.decode(ids), text, `the ids ${ids}`);
    for (const id of [size, -1]) {
      const message = `token id ${id} is not in a vocabulary of ${size} tokens`;
      assert.throws(() => tokenizer.decode([4, id]), new RangeError(message));
    }
  });

  test(`a tokenizer names its kind, and the id that ends a source: ${kind}`, () => {
    assert.deepEqual([tokenizer.kind, tokenizer.eosId], [data.kind, eosId]);
  });
}

test("an unknown kind is an error that lists the known kinds", () => {
  const make = () => makeTokenizer({ kind: "syllables", tokens: [] });
  assert.throws(
    make,
    /a tokenizer of the kind "syllables": it knows words, characters, bpe, unigram, marian/,
  );
});

test("a kind says whether its tokens may be suggested, and whether a space is a token", () => {
  const tokens = ["<pad>", "<bos>", "<eos>", "<unk>", "▁", "a", "cat"];
  const characters = makeTokenizer({ kind: "characters", tokens });
  assert.deepEqual([characters.suggestsTokens, characters.spaceIsToken], [true, true]);
  const words = makeTokenizer({ kind: "words", tokens });
  assert.deepEqual([words.suggestsTokens, words.spaceIsToken, words.encode("a cat")], [true, false, [5, 6]]);
});
