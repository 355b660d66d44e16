// The comparison of an old and a new output in the first chapter.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compared } from "../ui/chapters/look_words.ts";

/** Returns the new words as a line, each followed by the old words that it replaces, in brackets. */
function line(before: string, now: string) {
  const split = (text: string) => text.split(" ").filter(Boolean);
  return compared(split(before), split(now))
    .map(({ text, old }) => `${old.length > 0 ? `[${old.join(" ")}]` : ""}${text ?? ""}`)
    .join(" ");
}

test("of two outputs of one length, each word replaces the one at its place", () => {
  assert.equal(
    line("il était trop fatigué .", "elle était trop fatiguée ."),
    "[il]elle était trop [fatigué]fatiguée .",
  );
  assert.equal(line("a b", "a b"), "a b");
});

test("of two lengths, the words between a common beginning and a common end are replaced", () => {
  assert.equal(line("a b c d", "a x d"), "a [b c]x d");
  assert.equal(line("a b d", "a x y d"), "a [b]x y d");
  assert.equal(line("a d", "a x d"), "a x d");
  assert.equal(line("a b d", "a d"), "a [b] d");
  assert.equal(line("a b", "a"), "a [b]");
  assert.equal(line("a", ""), "[a]");
});
