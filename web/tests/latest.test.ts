// Late answers: a page served by Python gets its numbers late, and not always in the order of its requests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { latestOnly } from "../ui/app/latest.ts";

/** Returns a drawing whose numbers arrive when the test releases them, and a list of what was shown. */
function slowDrawing() {
  const closing = new AbortController();
  const arrive: Map<string, (text: string) => void> = new Map();
  const shown: string[] = [];
  const ask = (name: string) => new Promise<string>((resolve) => arrive.set(name, () => resolve(name)));
  const draw = latestOnly(closing.signal, ask, (name) => shown.push(name));
  return { closing, arrive: (name: string) => arrive.get(name)?.(name), shown, draw };
}

test("an older answer that arrives last is not shown", async () => {
  const { arrive, shown, draw } = slowDrawing();
  const drawings = [draw("layer 0"), draw("layer 1")];
  arrive("layer 1");
  arrive("layer 0");
  await Promise.all(drawings);
  assert.deepEqual(shown, ["layer 1"]);
});

test("an older answer that arrives first is not shown either", async () => {
  const { arrive, shown, draw } = slowDrawing();
  const drawings = [draw("layer 0"), draw("layer 1")];
  arrive("layer 0");
  arrive("layer 1");
  await Promise.all(drawings);
  assert.deepEqual(shown, ["layer 1"]);
});

test("each answer is shown unless a later question was asked", async () => {
  const { arrive, shown, draw } = slowDrawing();
  for (const name of ["layer 0", "layer 1"]) {
    const drawing = draw(name);
    arrive(name);
    await drawing;
  }
  assert.deepEqual(shown, ["layer 0", "layer 1"]);
});

test("a closed view shows nothing", async () => {
  const { closing, arrive, shown, draw } = slowDrawing();
  const drawing = draw("layer 0");
  closing.abort();
  arrive("layer 0");
  await drawing;
  assert.deepEqual(shown, []);
});
