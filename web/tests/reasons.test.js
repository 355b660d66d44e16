// The reasons for a word: its rivals, and the effects of heads and source positions, each as one changed pass gives it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_CHANGES } from "../engine/changes.js";
import { createEngine } from "../engine/engine.js";
import { attentionNames } from "../engine/model.js";
import { alsoAblated, headReasons, rivalsOf, sourceReasons, withoutSource } from "../engine/reasons.js";
import { traces } from "./traces.js";

/** @type {import("../engine/types.js").Payload} */
const payload = (await traces("forward")).paper;
const engine = await createEngine(payload);
const { source_ids: sourceIds, target_ids: targetIds } = payload.trace;
const place = { sourceIds, ids: targetIds.slice(1), place: 1 };

/** @param {Partial<import("../engine/types.js").Changes>} changes */
async function row(changes) {
  const trace = await engine.trace({ sourceIds, targetIds, changes: { ...NO_CHANGES, ...changes } });
  const { shape, data } = await trace.get("log_probs");
  return data.subarray(shape[1], 2 * shape[1]);
}

test("the rivals are the likeliest other words, best first, without words that were not recorded", () => {
  const data = Float32Array.from([0, 0, 0, 0, -3, -1, NaN, -2]);
  const { word, rivals } = rivalsOf({ shape: [2, 4], data }, { ids: [0, 3], place: 1 });
  assert.deepEqual(word, { id: 3, logProb: -2 });
  assert.deepEqual(
    rivals.map(({ id }) => id),
    [1, 0],
  );
});

test("the effect of each head is the change of the difference when it alone is ablated", async () => {
  const word = place.ids[1];
  const rival = word === 4 ? 5 : 4;
  const margin = (/** @type {Float32Array} */ one) => one[word] - one[rival];
  const before = margin(await row({}));
  let count = 0;
  for await (const { attention, head, effect } of headReasons(engine, place, rival)) {
    const after = margin(await row({ ablated: { [attention]: [head] } }));
    assert.ok(Math.abs(effect - (after - before)) < 1e-5);
    count++;
  }
  assert.equal(count, attentionNames(engine.config).length * engine.config.heads);
});

test("heads that the reader has ablated stay off, and are not tried again", async () => {
  const attention = attentionNames(engine.config)[0];
  const changes = { ...NO_CHANGES, ...alsoAblated({ ablated: {} }, { attention, head: 0 }), scale: false };
  const { value } = await headReasons(engine, { ...place, changes }, 4).next();
  assert.deepEqual([value.attention, value.head], [attention, 1]);
  const one = await row({ ...changes, ...alsoAblated(changes, { attention, head: 1 }) });
  assert.ok(Math.abs(value.margins[0] - (one[place.ids[1]] - one[4])) < 1e-5);
});

test("a source position that is masked out changes log p of the word, whatever its token is", async () => {
  const names = attentionNames(engine.config);
  const plain = await row({});
  const found = [];
  for await (const one of sourceReasons(engine, place)) found.push(one);
  assert.deepEqual(
    found.map(({ position }) => position),
    [...sourceIds.keys()],
  );
  for (const { position, effect } of found) {
    const masked = withoutSource(names, { sourceIds, targetIds }, position);
    assert.ok(Math.abs(effect - ((await row(masked))[place.ids[1]] - plain[place.ids[1]])) < 1e-5);
  }
  const changes = /** @type {import("../engine/types.js").Changes} */ ({
    ...NO_CHANGES,
    ...withoutSource(names, { sourceIds, targetIds }, 0),
  });
  const [one, other] = await Promise.all(
    [5, 6].map(async (id) => {
      const trace = await engine.trace({ sourceIds: [id, ...sourceIds.slice(1)], targetIds, changes });
      return (await trace.get("log_probs")).data;
    }),
  );
  assert.deepEqual(one, other, "nothing reads the masked position");
});
