// The sum of embedding and position vector, opened in place.
import { decimalsFor, decimalsOf, fixedText, digitsText } from "../../engine/number_text.ts";
import { boxPanel } from "./rows.ts";
import { embeddingBox } from "./embedding_box.ts";
import { readEmbedding } from "../figure/embedding_reading.ts";
import { KEYED, openRow, turner } from "./zoom_parts.ts";

import type { App } from "../app/app.ts";
import type { EmbeddingReading } from "../figure/embedding_reading.ts";
import type { Line, Receipt } from "./receipt.ts";
import type { Lit, Opened, Sentence } from "./opened.ts";

/** Opens the embedding or the positions of a stack; both boxes show the same sum. */
export async function embeddingView(app: App, lit: Lit | null): Promise<Opened | null> {
  const { zoom } = app.state;
  if (!zoom) return null;
  const stack = zoom.box.startsWith("encoder") ? "encoder" : "decoder";
  const { sourceTokens, targetTokens } = app.result.current;
  const count = (stack === "encoder" ? sourceTokens : targetTokens).length;
  const reading = await readEmbedding(app, zoom.box, openRow(app, stack, lit, count));
  const { row, words, side, open } = reading;
  return {
    place: [zoom.box, row].join(),
    name: `${app.t(`stage.${stack}`)} · ${app.t("zoom.embedding.place", row, words.length)}`,
    sentence: sentenceOf(reading),
    remarks: reading.notes,
    cell: { name: `${side}.${open.kind}`, index: [row, open.at] },
    receipt: receipt(app, reading),
    made: open.made[open.kind],
    beside: turner(app, stack, { row, rows: words.length, word: words[row] }),
    panel: () => boxPanel(app, (tell) => embeddingBox(app, reading, tell)),
  };
}

/**
 * Returns the sentence about the open number. The sentence holds for any kind of positions and under the reader's
 * changes.
 */
export function sentenceOf({ open, words, row, side, vectors, positions, id }: EmbeddingReading): Sentence {
  const { kind, at } = open;
  const word = { word: words[row], side };
  const number = digitsText(vectors[kind][at]);
  const say = (key: string, section: string, ...values: Sentence["values"]) => {
    return { key: `zoom.embedding.about.${key}`, values, section };
  };
  if (kind === "embedding") return say("embedding", "3.4", word, vectors.embedding.length, id);
  if (positions === "none") return say("none", "3.5", word, at, number);
  if (kind === "input") return say("sum", "3.5", word, row, at, number);
  return say(positions === "learned" ? "learned" : "waves", "3.5", row, at, number);
}

/** Returns the open number of the sum as a calculation. */
function receipt(app: App, { open, entry, id, scale, vectors }: EmbeddingReading): Receipt {
  const { made, at } = open;
  const terms = [entry?.[at] ?? 0, ...Object.values(vectors).map((vector) => vector[at])];
  const [factor, embedded, position, sum] = terms;
  const least = Math.max(...terms.map((term) => decimalsOf([term])));
  const decimals = decimalsFor([embedded, position], (one, other) => fixedText(one + other, least));
  const number = (value: number) => fixedText(value, decimals);
  const scaled = (rounded: number) => number(rounded * scale.value);
  const wave = (made.positions.numbers ?? made.positions.formula).split(" = ")[0];
  const lines: Line[] = [
    ...(entry
      ? [
          [
            app.t("zoom.embedding.line.entry", id, at),
            fixedText(factor, decimalsFor([factor], scaled)),
          ] as const,
        ]
      : []),
    ...(scale.symbol || !entry
      ? [[entry ? `× ${scale.symbol}` : app.t("zoom.embedding.line.scaled"), number(embedded)] as const]
      : []),
    [`+ ${wave || app.t("zoom.embedding.line.position")}`, number(position)],
    [app.t("zoom.embedding.line.sum"), fixedText(sum, least), KEYED],
  ];
  const formula = `${made.embedding.formula || "E · √d"} + ${made.positions.formula || "P"}`;
  return { formula, parts: [], headings: [], lines };
}
