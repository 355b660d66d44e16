// Compares the reasons for a word with Python's: its rivals, the effects of heads and source positions, and direct
// parts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_CHANGES } from "../engine/changes.ts";
import { directParts, unitParts } from "../engine/direct.ts";
import { createEngine } from "../engine/engine.ts";
import { attentionNames, slices } from "../engine/model.ts";
import { alsoAblated, headReasons, rivalsOf, sourceReasons, withoutSource } from "../engine/reasons.ts";
import { bytesOf, floatsOf, rowOf } from "../engine/tensor.ts";
import { asked, traces } from "./traces.ts";

import type { Changes, Payload } from "../engine/types.ts";

const payload: Payload = (await traces("forward")).paper;
const engine = await createEngine(payload);
assert.ok(engine.live === true);
const { source_ids: sourceIds, target_ids: targetIds } = payload.trace;
const place = { sourceIds, ids: targetIds.slice(1), place: 1 };

async function row(changes: Partial<Changes>) {
  const trace = await engine.trace({ sourceIds, targetIds, changes: { ...NO_CHANGES, ...changes } });
  const { shape, data } = await trace.get("log_probs");
  return data.subarray(shape[1], 2 * shape[1]);
}

async function all<Made>(steps: AsyncGenerator<Made>) {
  const found = [];
  for await (const one of steps) found.push(one);
  return found;
}

const sumOf = (parts: { value: number }[]) => parts.reduce((sum, { value }) => sum + value, 0);

test("the rivals are the likeliest other words, best first, without words that were not recorded", () => {
  const data = Float32Array.from([0, 0, 0, 0, -3, -1, NaN, -2]);
  const { word, rivals } = rivalsOf({ shape: [2, 4], data }, { ids: [0, 3], place: 1 });
  assert.deepEqual(word, { id: 3, logProb: -2 });
  assert.deepEqual(
    rivals.map(({ id }) => id),
    [1, 0],
  );
});

type Head = [attention: string, head: number, effect: number];

for (const [kind, { payload: page, cases }] of Object.entries(await traces("reasons"))) {
  const of = await createEngine(page);
  assert.ok(of.live === true);
  for (const { changes: written, word, rivals, heads, sources, direct } of cases) {
    const changes = { ...NO_CHANGES, ...asked(written) };
    const at = { sourceIds, ids: targetIds.slice(1), place: 2, changes };
    const isClose = (got: number, expected: number, tolerance = 1e-4) =>
      assert.ok(Math.abs(got - expected) <= tolerance, `${got} is not ${expected}`);

    test(`the reasons are Python's: ${kind}, ${Object.keys(written)}`, async () => {
      const trace = await of.trace({ sourceIds, targetIds, changes });
      const found = rivalsOf(await trace.get("log_probs"), at);
      const competing = [found.word, ...found.rivals];
      assert.deepEqual(
        competing.map(({ id }) => id),
        [word, ...rivals].map(([id]) => id),
      );
      competing.forEach(({ logProb }, i) => isClose(logProb, [word, ...rivals][i][1]));

      const effects = await all(headReasons(of, at, rivals[0][0]));
      assert.deepEqual(
        effects.map(({ attention, head }) => [attention, head]),
        heads.map(([attention, head]: Head) => [attention, head]),
      );
      effects.forEach(({ effect }, i) => isClose(effect, heads[i][2]));
      const needed = await all(sourceReasons(of, at, rivals[0][0]));
      needed.forEach(({ effect }, i) => isClose(effect, sources[i]));
      assert.equal(needed.length, sources.length);

      const row = { row: 2, word: word[0], rival: rivals[0][0] };
      const { parts, difference, directions } = await directParts(of, { trace, changes }, row);
      assert.ok(parts);
      for (const { name, head, value } of parts)
        isClose(value, direct[head === null ? name : `${name} ${head}`]);
      assert.equal(parts.length, Object.keys(direct).length);
      isClose(sumOf(parts), difference, 1e-5);
      for (const [name, direction] of directions) {
        const contract = (await of.model()).weight(`${name}.contract.weight`);
        const units = unitParts(direction, contract, rowOf(await trace.get(`${name}.activated`), 2));
        isClose(
          units.reduce((sum, one) => sum + one, 0),
          direct[name],
        );
      }
      assert.equal(directions.size, of.config.decoder_layers);
      const { shape, data } = await trace.get("logits");
      isClose(difference, data[2 * shape[1] + row.word] - data[2 * shape[1] + row.rival], 0);
    });
  }
}

test("the direct parts sum to the difference of logits under every mistake", async () => {
  for (const { cases, ...page } of Object.values(await traces("mistakes"))) {
    const of = await createEngine({ ...page, trace: null });
    assert.ok(of.live === true);
    for (const { mistakes, source_ids: source, target_ids: target, points, data } of cases) {
      const changes = { ...NO_CHANGES, mistakes };
      const trace = await of.trace({ sourceIds: source, targetIds: target, changes });
      const found = await directParts(of, { trace, changes }, { row: 1, word: 7, rival: 4 });
      assert.ok(found.parts, `${mistakes}`);
      assert.ok(Math.abs(sumOf(found.parts) - found.difference) <= 1e-5, `${mistakes}`);
      const logits = slices(points, floatsOf(bytesOf(data))).get("logits");
      assert.ok(logits);
      const [word, rival] = [7, 4].map((id) => logits.data[logits.shape[1] + id]);
      assert.ok(Math.abs(found.difference - (word - rival)) <= 1e-4, `${mistakes}: Python's logits`);
    }
  }
});

test("no direct parts are shown where a patch replaces what they add up to", async () => {
  const donor = { sourceIds: [6, 8, 2], targetIds: [1, 9, 12, 4] };
  const partsWith = async (point: string, positions = [[1, 3]]) => {
    const patches = [{ ...donor, point, positions: positions as [number, number][] }];
    const changes = { ...NO_CHANGES, patches };
    const trace = await engine.trace({ sourceIds, targetIds, changes });
    return (await directParts(engine, { trace, changes }, { row: 1, word: 7, rival: 4 })).parts;
  };
  const replaced = [
    "self_attention.output",
    "cross_attention.input",
    "feed_forward.added",
    "feed_forward.normed",
  ];
  for (const point of [...replaced.map((name) => `decoder.layers.1.${name}`), "decoder.output", "logits"]) {
    assert.equal(await partsWith(point), null, point);
    assert.ok(await partsWith(point, [[2, 3]]), `${point} of another row`);
  }
  for (const point of ["target.input", "decoder.layers.0.self_attention.heads", "encoder.output"]) {
    assert.ok(await partsWith(point), point);
  }
});

test("heads that the reader has ablated stay off, and are not tried again", async () => {
  const attention = attentionNames(engine.config)[0];
  const changes = { ...NO_CHANGES, ...alsoAblated({ ablated: {} }, { attention, head: 0 }), scale: false };
  const { value } = await headReasons(engine, { ...place, changes }, 4).next();
  assert.deepEqual([value.attention, value.head], [attention, 1]);
  const one = await row({ ...changes, ...alsoAblated(changes, { attention, head: 1 }) });
  assert.ok(Math.abs(value.margins[0] - (one[place.ids[1]] - one[4])) < 1e-5);
});

test("a source position that is masked out changes the margin of the word, whatever its token is", async () => {
  const names = attentionNames(engine.config);
  const plain = await row({});
  const found = [];
  for await (const one of sourceReasons(engine, place, 4)) found.push(one);
  assert.deepEqual(
    found.map(({ position }) => position),
    [...sourceIds.keys()],
  );
  for (const { position, effect } of found) {
    const masked = withoutSource(names, { sourceIds, targetIds }, position);
    const [before, after] = [plain, await row(masked)].map((one) => one[place.ids[1]] - one[4]);
    assert.ok(Math.abs(effect - (after - before)) < 1e-5);
  }
  const changes = {
    ...NO_CHANGES,
    ...withoutSource(names, { sourceIds, targetIds }, 0),
  } as Changes;
  const [one, other] = await Promise.all(
    [5, 6].map(async (id) => {
      const trace = await engine.trace({ sourceIds: [id, ...sourceIds.slice(1)], targetIds, changes });
      return (await trace.get("log_probs")).data;
    }),
  );
  assert.deepEqual(one, other, "nothing reads the masked position");
});
