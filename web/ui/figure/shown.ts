// What the figure shows for one written word, and what it showed before the reader's changes.
import { FAMILIES, attentionName } from "../app/heads.ts";

import type { Stack, Steps, Tensor } from "../../engine/types.ts";
import type { Family, FamilyId, Translated } from "../app/types.ts";

/** A word with its probability. */
export interface Candidate {
  id: number;
  token: string;
  probability: number;
}

/** The word that the model would write if a point of the decoder were the decoder's last point. */
export interface Guess extends Candidate {
  /** The box beside which the guess is drawn, such as "cross_attention.add", or "layer.0" for a closed layer. */
  at: string;
}

export interface StageNumbers {
  translated: Translated;
  /** The index of the highlighted output word, which is also the decoder's row that writes it. */
  row: number;
  /** The open layer of each stack. */
  open: Record<Stack, number>;
  /** The index of the head that is shown, for each family of attention. */
  heads: Record<FamilyId, number>;
  /** The weights of each family's attention in the open layer, [H, T, S]. */
  weights: Record<FamilyId, Tensor>;
  /** The highlighted row of the head that is shown, for each family. */
  rows: Record<FamilyId, Float32Array>;
  /**
   * The position of each highlighted row's handle: at the word that is attended to most, or between two words while the
   * reader drags the handle.
   */
  at: Record<FamilyId, number>;
  /** What the figure showed before the reader's changes. */
  before: Before;
  /** The steps of the forward pass; a planted mistake replaces some of them. */
  steps: Steps;
  /**
   * The weights of the source words in the highlighted row of cross-attention; all 0 if a mistake makes cross-attention
   * attend to the decoder's own words.
   */
  read: Float32Array;
  /** The index of the highlighted source word. */
  source: number;
  /** The vectors that boxes show, [T, D], by name, such as "decoder.feed_forward". */
  vectors: Map<string, Tensor>;
  /** For each box that adds something, and each column: ‖new‖ / (‖old‖ + ‖new‖). */
  shares: Map<string, Float32Array>;
  logits: Float32Array;
  /** The model's probability of the written word. */
  probability: number;
  candidates: Candidate[];
  guesses: Guess[];
  /** A second translation on the same figure. */
  second: Second | null;
}

/** A row of an attention: one head, and the position of the word that attends (the query). */
export interface RowPlace {
  attention: string;
  head: number;
  query: number;
}

/**
 * A row that the reader has set by hand: the word to which the row attended most before (null if unknown), and the word
 * to which the row attends now.
 */
export interface TurnedRow extends RowPlace {
  from: string | null;
  to: string;
}

export interface Before {
  /** The highlighted rows before the changes; missing where the changes altered the words up to that row. */
  rows: Partial<Record<FamilyId, Float32Array>>;
  /**
   * The word that stood at the highlighted position before the changes; null if the changes left this word as it was.
   */
  word: string | null;
  turned: TurnedRow[];
}

export type Pair = [one: number, other: number];

/** A word of the second translation, and the column of the first translation in which the word is shown. */
export interface Seat {
  column: number;
  token: string;
  /** Whether only the second translation has this word. */
  isOwn: boolean;
  /**
   * The word's probability minus its probability in the first translation; 0 for words of only one translation, and
   * for source words.
   */
  change: number;
}

export interface Second {
  translated: Translated;
  /** Whether the second translation is the translation before the changes. */
  isBefore: boolean;
  source: Seat[];
  written: Seat[];
  /** The words that both decoders read, as pairs of positions. */
  rows: Pair[];
  /**
   * The second translation's highlighted rows; each weight stands in the column of the first translation in which its
   * word is shown.
   */
  lit: Partial<Record<FamilyId, Float32Array>>;
  /**
   * For each point with weights: the weights of the second translation minus the weights of the first, at the words
   * that both translations have.
   */
  changes: Map<string, Tensor>;
}

/**
 * One dimension of the position vectors: its numbers at the sentence's positions and, if a formula gives them, at
 * points in between.
 */
export interface Wave {
  dimension: number;
  /** The numbers at positions 0, 1/`steps`, 2/`steps` … */
  numbers: Float32Array;
  steps: number;
}

/**
 * The source words on which the choice between a word and its rival depends, and the word's probability without each
 * source word.
 */
export interface Needs {
  rival: number;
  words: { position: number; probability: number }[];
}

/**
 * Returns whether the reader has switched off a head of the open layer. The weights of such a head are still shown, but
 * the head adds nothing.
 */
export function isHeadOff({ translated, open }: StageNumbers, id: FamilyId, head: number) {
  const family = FAMILIES.find((one) => one.id === id) as Family;
  return translated.changes.ablated[attentionName(family, open[family.stack])]?.includes(head) ?? false;
}
