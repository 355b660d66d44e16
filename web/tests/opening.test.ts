// The word and heads that are lit when a sentence opens: the page's measurement equals Python's.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine } from "../engine/engine.ts";
import { App } from "../ui/app/app.ts";
import { largestPlace, rowOfHead } from "../engine/tensor.ts";
import { FAMILIES, attentionName, layersOf } from "../ui/app/heads.ts";
import { openingHeads } from "../ui/figure/lighting.ts";
import { openingOf } from "../ui/figure/opening.ts";
import { traces } from "./traces.ts";

import type { Bytes, Host, Opening, Payload, Question, Slice } from "../engine/types.ts";

const PAGES: Record<string, Payload> = await traces("openings");
Object.assign(globalThis, { matchMedia: () => ({ matches: false }) });

/** Returns an app that has translated a sentence, by default the page's own. */
async function opened(payload: Payload, sentence = payload.sentence, host: Host | null = null) {
  const app = new App(payload, await createEngine(payload, host), new AbortController().signal);
  await app.open(sentence);
  return app;
}

function assertSame(got: Opening | null, expected: Opening) {
  assert.ok(got);
  const isClose = (one: number, other: number) =>
    assert.ok(Math.abs(one - other) <= 1e-4 * Math.max(1, Math.abs(other)), `${one} is not ${other}`);
  assert.deepEqual([got.ids, got.row, got.rival], [expected.ids, expected.row, expected.rival]);
  assert.deepEqual(Object.keys(got.without), Object.keys(expected.without));
  for (const [name, heads] of Object.entries(expected.without)) {
    assert.equal(got.without[name].length, heads.length);
    heads.forEach(({ probability, margin }, head) => {
      isClose(got.without[name][head].probability, probability);
      isClose(got.without[name][head].margin, margin);
    });
  }
  assert.equal(got.turn === null, expected.turn === null);
  if (!got.turn || !expected.turn) return;
  const { word, rival, ...place } = got.turn;
  const { word: itsWord, rival: itsRival, ...itsPlace } = expected.turn;
  assert.deepEqual(place, itsPlace);
  isClose(word, itsWord);
  isClose(rival, itsRival);
}

for (const [kind, payload] of Object.entries(PAGES)) {
  for (const [sentence, expected] of Object.entries(payload.openings)) {
    test(`the page measures what Python has measured: ${kind}, ${sentence}`, async () => {
      const app = await opened({ ...payload, openings: {} }, sentence);
      const told: number[] = [];
      const got = await openingOf(app, app.result.reference, (done, all) => told.push(done / all));
      assertSame(got, expected);
      assert.deepEqual(
        told.toSorted((a, b) => a - b),
        told,
      );
      assert.equal(told.at(-1), 1);
    });
  }
}

test("the pages of this test have rows that can be turned, and rows that cannot", () => {
  const all = Object.values(PAGES).flatMap(({ openings }) => Object.values(openings));
  assert.deepEqual(new Set(all.map(({ turn }) => turn === null)), new Set([true, false]));
});

const { post } = PAGES;
const known = post.openings[post.sentence];
const CROSS = "decoder.layers.1.cross_attention";

test("the unchanged sentence has what Python has measured, for the output in which it was measured", async () => {
  const app = await opened(post);
  assert.equal(await openingOf(app, app.result.reference), known);
  const of = { ...known, ids: [...known.ids.slice(1), 7], row: 0 };
  const other = await opened({ ...post, openings: { [post.sentence]: of } });
  assertSame(await openingOf(other, other.result.reference), known);
});

test("changes count, and a head that is off already costs nothing", async () => {
  const app = await opened(post);
  await app.set({ ablated: { [CROSS]: [1] } });
  const { current } = app.result;
  const got = await openingOf(app, current);
  assert.ok(got);
  const { row, rival, ids } = got;
  assert.deepEqual(ids, current.hypothesis.ids);
  const { shape, data } = await current.trace.get("log_probs");
  const [word, other] = [ids[row], rival].map((id) => data[row * shape[1] + id]);
  assert.ok(Math.abs(got.without[CROSS][1].margin - (word - other)) < 1e-5);
  assert.ok(Math.abs(got.without[CROSS][1].probability - Math.exp(word)) < 1e-5);
  assert.ok(got.without[CROSS].some(({ margin }) => Math.abs(margin - (word - other)) > 1e-3));
});

test("a translation is measured once, and again if the reader has left meanwhile", async () => {
  const app = await opened({ ...post, openings: {} });
  const { reference } = app.result;
  const leaving = new AbortController();
  await assert.rejects(
    openingOf(app, reference, () => leaving.abort(), leaving.signal),
    /abort/i,
  );
  const [one, other] = await Promise.all([openingOf(app, reference), openingOf(app, reference)]);
  assertSame(one, known);
  assert.equal(one, other);
  let steps = 0;
  assert.equal(await openingOf(app, reference, () => steps++), one);
  assert.equal(steps, 0);
});

/** Returns what a head looks at in a row of its attention. */
async function lookOf({ result }: App, attention: string, head: number, row: number) {
  const weights = await result.reference.trace.get(`${attention}.weights`);
  return largestPlace(rowOfHead(weights, head, row));
}

test("the lit heads cost the word most, among those that look at another word", async () => {
  for (const payload of Object.values(PAGES)) {
    const app = await opened(payload);
    const { reference } = app.result;
    const opening = await openingOf(app, reference);
    if (!opening) continue;
    const heads = await openingHeads(app, opening, reference);
    const source = await lookOf(
      app,
      attentionName(FAMILIES[1], heads.cross.layer),
      heads.cross.head,
      opening.row,
    );
    for (const family of FAMILIES) {
      const { layer, head } = heads[family.id];
      const row = family.id === "encoder" ? source : opening.row;
      const tokens = family.id === "decoder" ? reference.targetTokens : reference.sourceTokens;
      const isIdle = async (attention: string, one: number) => {
        const peak = await lookOf(app, attention, one, row);
        const isWord = /[\p{L}\p{N}]/u.test(tokens[peak].replace(/<.*>/, ""));
        return !isWord || (family.id !== "cross" && peak === row);
      };
      const chosen = attentionName(family, layer);
      const { margin } = opening.without[chosen][head];
      const isChosenIdle = await isIdle(chosen, head);
      const layers = family.id === "decoder" ? [layer] : [...Array(layersOf(app.config, family)).keys()];
      for (const attention of layers.map((at) => attentionName(family, at)))
        for (const [at, one] of opening.without[attention].entries())
          if (isChosenIdle || !(await isIdle(attention, at))) {
            if (isChosenIdle) assert.ok(await isIdle(attention, at));
            assert.ok(margin <= one.margin, `${attention} ${at} costs more than ${chosen} ${head}`);
          }
    }
  }
});

test("a recording has what Python has measured, or nothing", async () => {
  const { payload } = (await traces("recorded")).post;
  const app = await opened(payload);
  const got = await openingOf(app, app.result.reference);
  assert.equal(got, payload.openings[payload.sentence]);
  assert.ok(got);
  const bare = await opened({ ...payload, openings: {} });
  assert.equal(await openingOf(bare, bare.result.reference), null);
});

/** Milliseconds of the tests' own clock, so that a busy machine changes nothing. */
let clock = 0;

/**
 * Returns a host that answers with the numbers of a page's model, as Python does, each time after some milliseconds.
 */
async function slowHost(payload: Payload, milliseconds: number) {
  const engine = await createEngine(payload);
  const request = async (asked: Question<"search"> | Question<"trace"> | Question<"score">) => {
    clock += milliseconds;
    if (asked.kind === "search") {
      const { hypotheses } = await engine.search({ sourceIds: asked.source_ids });
      const named = hypotheses.map(({ logProb, tokenLogProbs, ...rest }) => {
        return { ...rest, log_prob: logProb, token_log_probs: tokenLogProbs };
      });
      return { message: { hypotheses: named, tree: [] }, buffers: [] };
    }
    const { source_ids: sourceIds, target_ids: targetIds, changes } = asked;
    const trace = await engine.trace({ sourceIds, targetIds, changes: { ...changes, patches: [] } });
    if (asked.kind === "score") {
      const { shape, data } = await trace.get("log_probs");
      const logProb = asked.output_ids.reduce((sum, id, row) => sum + data[row * shape[1] + id], 0);
      return { message: { log_prob: logProb }, buffers: [] };
    }
    const [points, buffers]: [Slice[], Bytes[]] = [[], []];
    let offset = 0;
    for (const name of asked.names ?? []) {
      const { shape, data } = await trace.get(name);
      points.push({ name, shape, offset });
      buffers.push(data.slice());
      offset += data.length;
    }
    return { message: { names: trace.names, points }, buffers };
  };
  return { request } as Host;
}

test("Python behind the page measures the same, or nothing if it would take long", async (context) => {
  context.mock.method(performance, "now", () => clock);
  const large = { ...post, weights: null, openings: {} };
  const app = await opened(large, post.sentence, await slowHost(post, 0));
  assert.equal(app.engine.live, "remote");
  assertSame(await openingOf(app, app.result.reference), known);
  const slow = await opened(large, post.sentence, await slowHost(post, 70));
  const began = clock;
  assert.equal(await openingOf(slow, slow.result.reference), null);
  assert.ok(clock - began < 4000);
});
