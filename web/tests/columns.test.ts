// The columns of the figure's words: as many words as possible are shown, and words on the same line do not touch.
import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf } from "../ui/figure/geometry.ts";

const WORDS = "L' animal n' a pas traversé la rue parce qu' il était trop fatigué . end".split(" ");
/** The labels of each column: the word that the decoder reads there, and the word that it writes. */
const LABELS = WORDS.map((word, at) => [["start", ...WORDS][at], word]);
const measure = (word: string) => 6.6 * word.length + 2;
const columns = (room: number) => columnsOf(LABELS, [0, room], (at) => at > 12, measure);

test("long words reach over their columns before any word is left out", () => {
  const widest = LABELS.map((words) => Math.max(24, ...words.map(measure)) + 3);
  assert.ok(widest.reduce((sum, width) => sum + width) > 570);
  const { at, shown } = columns(570);
  assert.ok(shown.every(Boolean));
  for (const line of [0, 1]) {
    const ends = LABELS.map((words, place) => {
      const half = measure(words[line]) / 2;
      return [at[place] - half, at[place] + half];
    });
    for (const [place, [left, right]] of ends.entries()) {
      assert.ok(left >= (ends[place - 1]?.[1] ?? 0) - 1, LABELS[place][line]); // positions are rounded to whole px
      assert.ok(right <= 571, LABELS[place][line]);
    }
  }
});

test("on two lines, words alternate in their order, and words on a line do not touch", () => {
  for (const room of [430, 500, 560]) {
    const { at, shown, out } = columnsOf(LABELS, [0, room], () => true, measure, false, 26, 2);
    assert.ok(shown.every(Boolean));
    const isAlone = room === 560;
    assert.deepEqual(
      out.map(Boolean),
      LABELS.map((_, place) => !isAlone && place % 2 > 0),
    );
    for (const height of new Set(out)) {
      const line = LABELS.map((_, place) => place).filter((place) => out[place] === height);
      for (const [i, place] of line.entries()) {
        const before = line[i - 1] ?? place;
        for (const side of [0, 1]) {
          const halves = (measure(LABELS[place][side]) + measure(LABELS[before][side])) / 2;
          assert.ok(before === place || at[place] - at[before] >= halves - 1);
        }
      }
    }
  }
});

test("where the words cannot fit, those that must be kept do", () => {
  const { shown } = columns(330);
  assert.ok(shown.slice(13).every(Boolean));
  assert.ok(shown.some((one) => !one));
});
