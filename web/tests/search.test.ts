// Compares the page's searches with Python's: the same hypotheses and the same tree, with and without a cache.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCausal, NO_CHANGES } from "../engine/changes.ts";
import { createEngine } from "../engine/engine.ts";
import { traces } from "./traces.ts";

import type { Changes, SearchResult, TreeNode } from "../engine/types.ts";

const found = await traces("search");
const { payload } = found.paper;
const SOURCE = [4, 9, 5, 17, 3, 2];
const [DECODER, CROSS] = ["decoder.layers.0.self_attention", "decoder.layers.1.cross_attention"];
const OTHER = { sourceIds: [6, 2], targetIds: [1, 5] };

function assertClose(got: number, expected: number, absolute = 1e-4, relative = 0) {
  const room = Math.max(absolute, relative * Math.abs(expected));
  assert.ok(Math.abs(got - expected) <= room, `${got} is not ${expected}`);
}

for (const [kind, { payload, cases }] of Object.entries(found)) {
  test(`searches find the same as Python: ${kind}`, async () => {
    const engine = await createEngine(payload);
    for (const { asked, hypotheses, tree } of cases) {
      const got = await engine.search(asked);
      assert.equal(got.hypotheses.length, hypotheses.length);
      for (const [i, { tokens, token_log_probs, log_prob, score }] of hypotheses.entries()) {
        const hypothesis = got.hypotheses[i];
        assert.deepEqual(hypothesis.ids, tokens);
        hypothesis.tokenLogProbs.forEach((one, place) => assertClose(one, token_log_probs[place]));
        assertClose(hypothesis.logProb, log_prob);
        assertClose(hypothesis.score, score, 1e-4, 1e-6); // a length penalty below 1 enlarges the error
      }
      assert.equal(got.tree.length, tree.length);
      for (const [i, { token_log_prob, log_prob, score, ...place }] of tree.entries()) {
        const { id, parent, position, token, state, ...node } = got.tree[i];
        assert.deepEqual({ id, parent, position, token, state }, place);
        assertClose(node.tokenLogProb, token_log_prob);
        assertClose(node.logProb, log_prob);
        assert.equal(node.score === null, score === null);
        assertClose(node.score ?? 0, score ?? 0, 1e-4, 1e-6);
      }
    }
  });
}

test("the log probabilities in the tree add up", async () => {
  const engine = await createEngine(payload);
  const { hypotheses, tree } = await engine.search({ sourceIds: SOURCE, beamSize: 4, lengthPenalty: 0.6 });
  const finished = tree.filter(({ state }) => state === "finished");
  assert.ok(finished.length > 0);
  for (const node of finished) {
    const path: TreeNode[] = [];
    for (let at = node; at.parent !== null; at = tree[at.parent]) path.unshift(at);
    const logProb = path.reduce((sum, { tokenLogProb }) => sum + tokenLogProb, 0);
    assert.deepEqual(
      path.map(({ position }) => position),
      [...path.keys()],
    );
    assertClose(node.logProb, logProb, 1e-12);
    assertClose(Number(node.score), logProb / ((5 + path.length) / 6) ** 0.6, 1e-12);
  }
  assert.equal(hypotheses[0].score, Math.max(...finished.map(({ score }) => Number(score))));
  assert.deepEqual(new Set(tree.map(({ state }) => state)), new Set(["kept", "finished", "pruned"]));
});

const CAUSAL: Record<string, Partial<Changes>> = {
  nothing: {},
  heads: { ablated: { [CROSS]: [0], [DECODER]: [2], "encoder.layers.0.self_attention": [1] } },
  cells: {
    masks: {
      [CROSS]: Array.from({ length: 60 }, (_, query) => [query, 1, false]),
      [DECODER]: [
        [3, 0, false],
        [4, 2, true],
      ],
    },
  },
  rows: { overrides: { [CROSS]: [[1, 2, [0, 0, 1]]], [DECODER]: [[0, 3, [1]]] } },
  "positions and scale": { positions: false, scale: false },
  "a patched encoder": { patches: [{ point: "encoder.output", ...OTHER, positions: [[0, 0]] }] },
  mistakes: {
    mistakes: ["norm_order", "residual_normed", "no_embedding_scale", "doubled_exponent", "unbiased_norm"],
  },
  "softmax twice": { mistakes: ["double_softmax", "scale_d_model"] },
};

for (const [name, changes] of Object.entries(CAUSAL)) {
  test(`the cache changes nothing: ${name}`, async () => {
    const engine = await createEngine(payload);
    // This cell of the mask is beyond every output. The cell changes no number, but forbids the search to use its cache.
    const cells = [...(changes.masks?.[DECODER] ?? []), [200, 201, true] as const];
    const uncached = { ...changes, masks: { ...changes.masks, [DECODER]: cells } } as Changes;
    assert.equal(isCausal({ ...NO_CHANGES, ...changes }, engine.config), true);
    assert.equal(isCausal({ ...NO_CHANGES, ...uncached }, engine.config), false);
    const asked = { sourceIds: SOURCE, beamSize: 3 };
    const [cached, anew] = [
      await engine.search({ ...asked, changes }),
      await engine.search({ ...asked, changes: uncached }),
    ];
    const idsOf = ({ hypotheses }: SearchResult) => hypotheses.map(({ ids }) => ids);
    assert.deepEqual(idsOf(cached), idsOf(anew));
    assert.equal(cached.tree.length, anew.tree.length);
    cached.tree.forEach(({ logProb }, i) => assertClose(logProb, anew.tree[i].logProb, 1e-5));
  });
}

const FUTURE: Record<string, Partial<Changes>> = {
  zero: { mistakes: ["mask_zero"] },
  late: { mistakes: ["mask_after_softmax"] },
  "target's padding": { mistakes: ["target_padding_mask"] },
  future: { mistakes: ["no_causal_mask"] },
  "decoder's keys": { mistakes: ["decoder_keys"] },
  transpose: { mistakes: ["no_transpose"] },
  cell: { masks: { [DECODER]: [[0, 3, true]] } },
  row: { overrides: { [DECODER]: [[0, 1, [0, 0, 0, 1]]] } },
  patch: { patches: [{ point: `${DECODER}.key`, ...OTHER, positions: [[1, 1]] }] },
};

for (const [name, changes] of Object.entries(FUTURE)) {
  test(`decoding under changes reruns the whole prefix at each step: ${name}`, async () => {
    const engine = await createEngine(payload);
    const sourceIds = name === "target's padding" ? [18, 2] : SOURCE;
    const { hypotheses } = await engine.search({ sourceIds, prefixIds: [5, 8, 13], beamSize: 1, changes });
    const ids = hypotheses[0].ids.slice(0, 9);
    for (let length = 0; length < ids.length; length++) {
      const trace = await engine.trace({ sourceIds, targetIds: [1, ...ids.slice(0, length)], changes });
      const { shape, data } = await trace.get("log_probs");
      const logProbs = data.slice(length * shape[1], (length + 1) * shape[1]);
      assertClose(hypotheses[0].tokenLogProbs[length], logProbs[ids[length]], 1e-6);
      logProbs.fill(-Infinity, 0, 2);
      assert.ok(length < 3 || ids[length] === logProbs.indexOf(Math.max(...logProbs)));
    }
  });
}

for (const [options, message] of [
  [{ beamSize: 0 }, /beamSize is 0: expected at least 1/],
  [{ beamSize: 1.5 }, /beamSize is 1.5/],
  [{ lengthPenalty: 101 }, /lengthPenalty is 101/],
  [{ prefixIds: Array(56).fill(5) }, /the prefix has 56 tokens: at most 55 leave room/],
  [{ prefixIds: [5, 2] }, /the prefix holds the id 2/],
  [{ prefixIds: [23] }, /the prefix holds the id 23/],
] as const) {
  test(`an impossible search says why: ${JSON.stringify(options).slice(0, 40)}`, async () => {
    const engine = await createEngine(payload);
    const asked = { sourceIds: SOURCE, ...(options as object) };
    await assert.rejects(engine.search(asked), { message });
  });
}

test("the run decides how long an output may be", async () => {
  const shorter = { ...payload, decoding: { ...payload.decoding, extra_length: 2 } };
  const { hypotheses } = await (
    await createEngine(shorter)
  ).search({ sourceIds: SOURCE, prefixIds: Array(7).fill(5) });
  assert.deepEqual(hypotheses[0].ids, [...Array(7).fill(5), 2]);
});

test("a model whose probabilities are all 0 or NaN has no output", async () => {
  const engine = await createEngine(payload);
  assert.ok(engine.live === true);
  const { data } = (await engine.model()).weight("output.weight");
  data.fill(NaN);
  const message = "no output: every continuation has probability 0 or NaN";
  await assert.rejects(engine.search({ sourceIds: [4, 2] }), { message });
});

test("a search returns tokens and the requested number of hypotheses", async () => {
  const engine = await createEngine(payload);
  const everything = await engine.search({ sourceIds: SOURCE });
  const { hypotheses, tree } = await engine.search({ sourceIds: SOURCE, nBest: 2 });
  assert.equal(everything.hypotheses.length, 4);
  assert.deepEqual(everything.hypotheses.slice(0, 2), hypotheses);
  const [{ tokens, text }] = hypotheses;
  assert.equal(tokens.at(-1), "<eos>");
  assert.equal(text, tokens.slice(0, -1).join(" "));
  assert.equal(tree[0].text, "<bos>");
  assert.equal(tree[1].text, `w${tree[1].token}`);
});
