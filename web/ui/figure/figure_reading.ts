// The numbers that the figure shows for one written word, gathered from the trace of a translation.
import { logitLens, readOutRun } from "../../engine/lens.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { largestAt, largestPlace, logSoftmax, rowOf, rowOfHead, tensor, times } from "../../engine/tensor.ts";
import { sublayersOf } from "../app/boxes.ts";
import { FAMILIES, attentionName } from "../app/heads.ts";
import { beforeChanges } from "./before.ts";

import type { Side, Stack, Steps, Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Family, FamilyId, Translated } from "../app/types.ts";
import type { Candidate, Guess, StageNumbers } from "./shown.ts";

/** Returns what the figure shows; `count`: the number of candidates for the next word. */
export async function stageNumbers(app: App, row: number, count: number): Promise<StageNumbers> {
  const { current: translated } = app.result;
  const { heads: places } = app.state;
  const open = { encoder: places.encoder.layer, decoder: places.cross.layer };
  const layerOf = (id: FamilyId) => (id === "encoder" ? open.encoder : open.decoder);
  const value = (name: string) => translated.trace.get(name);
  const weights = {} as Record<FamilyId, Tensor>;
  const heads = { encoder: places.encoder.head, cross: places.cross.head, decoder: places.decoder.head };
  const steps = stepsUnder(translated.changes);
  const [next, { vectors, shares }] = await Promise.all([
    nextWords(app, row, count),
    vectorsOf(app, translated, steps, open),
    ...FAMILIES.map(async (family) => {
      weights[family.id] = await value(`${attentionName(family, layerOf(family.id))}.weights`);
    }),
  ]);
  const at = Math.min(row, weights.cross.shape[1] - 1);
  const { length } = translated.sourceTokens;
  const cross = rowOfHead(weights.cross, heads.cross, at);
  const isOwn = steps.crossKeyValue.side === "target";
  const read = isOwn ? new Float32Array(length) : cross.subarray(0, length);
  const source = Math.min(app.state.sourceWord ?? largestPlace(read), length - 1);
  const rows = {
    encoder: rowOfHead(weights.encoder, heads.encoder, source),
    cross,
    decoder: rowOfHead(weights.decoder, heads.decoder, at),
  };
  return {
    translated,
    row: at,
    open,
    heads,
    weights,
    rows,
    at: {
      encoder: largestPlace(rows.encoder),
      cross: largestPlace(cross),
      decoder: largestPlace(rows.decoder),
    },
    before: await beforeChanges(app, at, (id) => ({
      attention: attentionName(FAMILIES.find((one) => one.id === id) as Family, layerOf(id)),
      head: heads[id],
      query: id === "encoder" ? source : at,
    })),
    steps,
    read,
    source,
    vectors,
    shares,
    ...next,
    guesses: await guesses(app, translated, open.decoder, at),
    second: null,
  };
}

/**
 * Returns the logits of all words in a row, and the likeliest words plus the written word. A large model's logits
 * stay with Python; then only the words that the search considered at this position are known.
 */
export async function nextWords(
  app: App,
  row: number,
  count: number,
): Promise<Pick<StageNumbers, "logits" | "probability" | "candidates">> {
  const { trace, hypothesis } = app.result.current;
  if (app.engine.live !== "remote") {
    const [logits, logProbs] = await Promise.all([trace.get("logits"), trace.get("log_probs")]);
    const at = Math.min(row, logits.shape[0] - 1);
    const next = rowOf(logProbs, at);
    const probability = Math.exp(next[hypothesis.ids[at]]);
    const candidates = candidatesIn(app, next, count, "target", hypothesis.ids[at]);
    return { logits: rowOf(logits, at), probability, candidates };
  }
  const candidates = weighedWords(app, row)
    .filter(({ token }, at) => at < count || token === hypothesis.ids[row])
    .map(({ token, text, tokenLogProb }) => ({
      id: token,
      token: text,
      probability: Math.exp(tokenLogProb),
    }));
  return {
    logits: new Float32Array(),
    probability: Math.exp(hypothesis.tokenLogProbs[row] ?? NaN),
    candidates,
  };
}

/** Returns the words that the search considered at a position of the translation, likeliest first. */
export function weighedWords(app: App, row: number) {
  const { search, hypothesis } = app.result.current;
  const next = (parent: number) => search.tree.filter((node) => node.parent === parent);
  let parent = search.tree[0].id;
  for (const id of hypothesis.ids.slice(0, row))
    parent = next(parent).find(({ token }) => token === id)?.id ?? -1;
  return next(parent).sort((a, b) => b.tokenLogProb - a.tokenLogProb);
}

/**
 * Returns the likeliest words of a row of log probabilities, and after them the word `also` if it is not among them.
 */
export function candidatesIn(
  app: App,
  logProbs: Float32Array,
  count: number,
  side: Side = "target",
  also?: number,
): Candidate[] {
  const ids = largestAt(logProbs, count);
  if (also !== undefined && !ids.includes(also)) ids.push(also);
  const tokens = app.engine.tokens(side, ids);
  return ids.map((id, at) => ({ id, token: tokens[at], probability: Math.exp(logProbs[id]) }));
}

/** Returns the vectors that the boxes show, and the shares of what the sub-layers of the open layers add. */
async function vectorsOf(app: App, { trace }: Translated, steps: Steps, open: Record<Stack, number>) {
  const vectors = new Map<string, Tensor>();
  const shares = new Map<string, Float32Array>();
  const preNorm = steps.preNorm(app.config);
  const put = async (key: string, name: string) => vectors.set(key, await trace.get(name));
  const sublayer = async (stack: Stack, id: string) => {
    const name = `${stack}.layers.${open[stack]}.${id}`;
    const [input, output, normed] = await Promise.all(
      ["input", "output", "normed"].map((one) => trace.get(`${name}.${one}`)),
    );
    vectors.set(`${stack}.${id}.${preNorm ? "norm" : "add"}`, normed);
    if (preNorm) await put(`${stack}.${id}.add`, `${name}.added`);
    shares.set(`${stack}.${id}.add`, shareOf(output, input));
    vectors.set(`${stack}.${id}.output`, output);
    if (id === "feed_forward") await put(`${stack}.${id}`, `${name}.activated`);
  };
  await Promise.all([
    ...(["source", "target"] as const).flatMap((side) =>
      ["embedding", "positions"].map((one) => put(`${side}.${one}`, `${side}.${one}`)),
    ),
    ...(["encoder", "decoder"] as const).flatMap((stack) => [
      steps.finalNorm(app.config) !== "none" && put(`${stack}.norm`, `${stack}.output`),
      ...sublayersOf(stack).map((id) => sublayer(stack, id)),
    ]),
  ]);
  return { vectors, shares };
}

/** Returns ‖added‖ / (‖kept‖ + ‖added‖) for each row. */
function shareOf(added: Tensor, kept: Tensor) {
  const norm = (x: Tensor, row: number) => Math.hypot(...rowOf(x, row));
  return Float32Array.from({ length: added.shape[0] }, (_, row) => {
    const [fresh, old] = [norm(added, row), norm(kept, row)];
    return fresh + old ? fresh / (fresh + old) : 0;
  });
}

/** Returns the word that the model would write at each decoder box that adds something, from the bottom up. */
async function guesses(
  app: App,
  { trace, changes }: Translated,
  open: number,
  row: number,
): Promise<Guess[]> {
  const { engine, config } = app;
  if (engine.live !== true) return []; // recordings lack the output matrix, and a large model's is too large to fetch
  const run = await readOutRun(engine, "decoder", changes);
  const point = run.preNorm ? "added" : "normed";
  const places = times(config.decoder_layers, (layer) =>
    layer === open
      ? sublayersOf("decoder").map((id) => [`${id}.add`, `decoder.layers.${layer}.${id}.${point}`])
      : [[`layer.${layer}`, `decoder.layers.${layer}.feed_forward.${point}`]],
  ).flat();
  return Promise.all(
    places.map(async ([at, name]) => {
      const stream = await trace.get(name);
      const one = tensor([1, stream.shape[1]], rowOf(stream, row));
      const [best] = candidatesIn(app, logitLens(run, "decoder", one).data, 1);
      return { at, ...best };
    }),
  );
}

const LOWEST = 0.01; // at a lower temperature, too, the likeliest word gets all of the probability

/**
 * Returns the numbers with the candidates' probabilities at the temperature that the reader tries in the chapter about
 * choosing words.
 */
export function warmed(app: App, numbers: StageNumbers): StageNumbers {
  const { temperature } = app.state;
  if (numbers.logits.length === 0) return numbers;
  const warm = tensor(
    [1, numbers.logits.length],
    numbers.logits.map((one) => one / Math.max(temperature, LOWEST)),
  );
  return {
    ...numbers,
    candidates: candidatesIn(
      app,
      logSoftmax(warm).data,
      5,
      "target",
      numbers.translated.hypothesis.ids[numbers.row],
    ),
  };
}
