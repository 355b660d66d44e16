import assert from "node:assert/strict";
import { test } from "node:test";
import { timesText } from "../ui/app/wording.ts";

const t = (_: string, text: string | number) => `more than ${text}`;

/** Returns the text for how many times as probable one word is as another, whose probabilities the page shows. */
const times = (more: number, less: number) => timesText(t, Math.log(more / less), more, less);

test("a factor has the digits that the shown probabilities give", () => {
  assert.equal(times(0.346, 0.046), "7.5");
  assert.equal(times(0.8897, 0.00222), "400"); // shown as 0.890 and 0.002, which give 445
  assert.equal(times(0.8897, 0.00151), "more than 400"); // 589; shown as 0.890 and 0.002, which give 445
  assert.equal(times(0.884, 0.00056), "more than 1,000"); // 1,579; shown as 0.884 and 0.0006, which give 1,473
  assert.equal(times(0.884, 0.00002), "more than 8,000"); // shown as 0.884 and < 0.0001
  assert.equal(times(0.0021, 0.0019), "1.1"); // both are shown as 0.002
});

test("a factor has two digits where no probabilities are shown, and an end", () => {
  assert.equal(timesText(t, Math.log(359)), "360");
  assert.equal(timesText(t, -Math.log(1.0123)), "1.01");
  assert.equal(timesText(t, 50), "more than 1,000,000,000");
});
