// What an opened embedding shows: a word's row of the embedding table, scaled, plus the vector of its position.
import { arithmetic } from "../../engine/arithmetic.ts";
import { sinusoids } from "../../engine/forward.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { dot, largestAt, rowOf, times } from "../../engine/tensor.ts";
import { wavesOf } from "./choices.ts";
import { tokenName } from "../app/wording.ts";

import type { Explanation, PositionKind, Side, Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Wave } from "./shown.ts";

/** The points of an embedding, in the order of its steps. */
export const SUMMED = ["embedding", "positions", "input"] as const;
export type Summed = (typeof SUMMED)[number];

/** A word whose row of the embedding table points in a similar direction. */
export interface Neighbour {
  id: number;
  word: string;
  cosine: number;
}

export interface EmbeddingReading {
  box: string;
  side: Side;
  row: number;
  words: string[];
  id: number;
  /** The word's row of the embedding table; null if the page has no matrices. */
  entry: Float32Array | null;
  /** The symbol of the embedding's factor, such as √128, and its value; "" and 1 if nothing is scaled. */
  scale: { symbol: string; value: number };
  vectors: Record<Summed, Float32Array>;
  /** The kind of positions; also "none" if the reader has switched them off. */
  positions: PositionKind;
  waves: Wave[];
  /** The dimension that the reader has opened, and the arithmetic of its numbers. */
  open: { at: number; kind: Summed; made: Record<Summed, Explanation> };
  notes: string[];
  /** The most similar words, nearest first; null if the page lacks the whole table. */
  nearest: Neighbour[] | null;
}

const BETWEEN = 8; // points of a wave between neighbouring positions
const NEIGHBOURS = 12;
const SHOWN_WAVES = 3;

/** Returns the data of the embedding that `state.zoom` names. `row`: the index of the highlighted word. */
export async function readEmbedding(app: App, box: string, row: number): Promise<EmbeddingReading> {
  const side = box.startsWith("encoder") ? "source" : "target";
  const { current } = app.result;
  const { trace, changes } = current;
  const words = side === "source" ? current.sourceTokens : current.targetTokens;
  const at = Math.min(row, words.length - 1);
  const ids = side === "source" ? current.sourceIds : current.targetIds;
  const id = ids[at] ?? app.config.pad_id;
  const points = await Promise.all(SUMMED.map((kind) => trace.get(`${side}.${kind}`)));
  const vectors = Object.fromEntries(SUMMED.map((kind, one) => [kind, rowOf(points[one], at)]));
  const { embeddingScale } = stepsUnder(changes);
  const square = embeddingScale.square(app.config);
  const positions = changes.positions ? app.config.positions : "none";
  const { selected } = app.state;
  const chosen = SUMMED.find((kind) => selected?.name === `${side}.${kind}` && selected.index[0] === at);
  const [largest] = largestAt(vectors.embedding.map(Math.abs), 1);
  const varied = wavesOf(app, points[1]) ?? [];
  const usual = box.endsWith("positions") ? (varied[0] ?? largest) : largest; // a dimension whose wave is visible
  const open = chosen && selected ? selected.index[1] : usual;
  const shown = [...new Set([open, ...varied, 0, points[1].shape[1] >> 2])].slice(0, SHOWN_WAVES);
  shown.sort((a, b) => a - b);
  const made = await Promise.all(SUMMED.map((kind) => arithmetic(app, `${side}.${kind}`, [at, open])));
  const entry = await entryOf(app, `${side}.tokens.weight`, id);
  const missing = ["numbers.noWeights", "numbers.needsModel"].map((key) => app.t(key));
  const notes = new Set(
    made.flatMap((one) => one.notes).filter((note) => !(entry && missing.includes(note))),
  );
  return {
    box,
    side,
    row: at,
    words: words.map((token) => tokenName(token, app.t)),
    id,
    entry,
    scale: embeddingScale.symbol
      ? { symbol: `√${square}`, value: Math.sqrt(square) }
      : { symbol: "", value: 1 },
    vectors: vectors as Record<Summed, Float32Array>,
    positions,
    waves: positions === "none" ? [] : wavesIn(app, points[1], shown),
    open: {
      at: open,
      kind: chosen ?? (box.endsWith("embedding") ? "embedding" : "positions"),
      made: Object.fromEntries(SUMMED.map((kind, one) => [kind, made[one]])) as Record<Summed, Explanation>,
    },
    notes: [...notes],
    nearest: await neighbours(app, `${side}.tokens.weight`, side, id),
  };
}

/** Returns a word's row of the embedding table. */
async function entryOf(app: App, table: string, id: number) {
  const { engine } = app;
  if (engine.live === false) return null;
  return rowOf(await engine.rowsOf(table, [id], app.result.current.changes.checkpoint), 0);
}

/**
 * Returns the words whose rows of the embedding table are most similar to a word's row; null if the page lacks the
 * table.
 */
async function neighbours(app: App, table: string, side: Side, id: number): Promise<Neighbour[] | null> {
  const { engine } = app;
  if (engine.live !== true) return null;
  const model = await engine.model(app.result.current.changes.checkpoint);
  const found = nearestRows(model.weight(table), id, NEIGHBOURS);
  const tokens = engine.tokens(
    side,
    found.map((one) => one.id),
  );
  return found.map((one, at) => ({ ...one, word: tokenName(tokens[at], app.t) }));
}

/** Returns the rows of a table with the largest cosine to the row `id`, without this row itself. */
export function nearestRows(table: Tensor, id: number, count: number) {
  const [rows, width] = table.shape;
  const product = (row: number, other: number) =>
    dot(table.data, row * width, table.data, other * width, width);
  const own = Math.sqrt(product(id, id));
  const cosines = Float32Array.from({ length: rows }, (_, row) => {
    return product(row, id) / (Math.sqrt(product(row, row)) * own);
  });
  return largestAt(cosines, count, (row) => row !== id).map((row) => ({ id: row, cosine: cosines[row] }));
}

/** Returns the waves that the figure draws: of two dimensions, for each stack; null without positions. */
export function wavesOn(app: App, vectors: Map<string, Tensor>) {
  const [encoder, decoder] = ["source", "target"].map((side) => vectors.get(`${side}.positions`));
  const dimensions = wavesOf(app, encoder);
  if (!dimensions || !encoder || !decoder) return null;
  return { encoder: wavesIn(app, encoder, dimensions), decoder: wavesIn(app, decoder, dimensions) };
}

/** Returns the waves of these dimensions of a table of positions; between the words, sinusoids go on as sinusoids. */
export function wavesIn({ config, result }: App, table: Tensor, dimensions: number[]): Wave[] {
  const [length, width] = table.shape;
  const { positions } = config;
  const column = ({ data }: Tensor, dimension: number) =>
    Float32Array.from({ length }, (_, row) => data[row * width + dimension]);
  if (positions === "learned" || positions === "none")
    return dimensions.map((dimension) => ({ dimension, numbers: column(table, dimension), steps: 1 }));
  const { exponent } = stepsUnder(result.current.changes);
  const between = times(BETWEEN, (at) => sinusoids(at / BETWEEN, length, width, positions, exponent));
  return dimensions.map((dimension) => {
    const columns = between.map((one) => column(one, dimension));
    const count = (length - 1) * BETWEEN + 1;
    const numbers = Float32Array.from({ length: count }, (_, at) => {
      return columns[at % BETWEEN][Math.floor(at / BETWEEN)];
    });
    return { dimension, numbers, steps: BETWEEN };
  });
}
