// Aligns two sequences of tokens, and compares two traces at the tokens that both sequences share.

import { tensor, times } from "./tensor.ts";

import type { Hypothesis, Tensor } from "./types.ts";

type Pair = [one: number, other: number];

/** The views mark an attention weight that changes by more than this number. */
export const MARKED_FROM = 0.1;

/** Returns the positions of a longest common subsequence of two lists of ids, in order. */
export function alignment(one: readonly number[], other: readonly number[]): Pair[] {
  // lengths[i][j]: length of the longest common subsequence of one[i…] and other[j…]
  const lengths = times(one.length + 1, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i--)
    for (let j = other.length - 1; j >= 0; j--)
      lengths[i][j] =
        one[i] === other[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  const pairs: Pair[] = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) pairs.push([i++, j++]);
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}

/** Returns the words that two outputs share, each with Δp = p(word in `other`) − p(word in `one`). */
export function wordChanges(
  one: Pick<Hypothesis, "ids" | "tokenLogProbs">,
  other: Pick<Hypothesis, "ids" | "tokenLogProbs">,
): { pair: Pair; change: number }[] {
  return alignment(one.ids, other.ids).map((pair) => {
    const [before, after] = [one.tokenLogProbs[pair[0]], other.tokenLogProbs[pair[1]]];
    return { pair, change: Math.exp(after) - Math.exp(before) };
  });
}

/**
 * Returns the difference `other` − `one` of two tensors of weights (heads, rows, columns) at the tokens that both
 * sequences share, and 0 elsewhere.
 */
export function weightChanges(one: Tensor, other: Tensor, rows: Pair[], columns: Pair[]): Tensor {
  const [heads, high, wide] = one.shape;
  const [, otherHigh, otherWide] = other.shape;
  const changes = tensor(one.shape);
  for (let head = 0; head < heads; head++)
    for (const [row, otherRow] of rows)
      for (const [column, otherColumn] of columns) {
        const at = (head * high + row) * wide + column;
        const there = other.data[(head * otherHigh + otherRow) * otherWide + otherColumn];
        changes.data[at] = there - one.data[at];
      }
  return changes;
}

/**
 * Returns the cell with the largest change in each head; the tensor of changes has the axes heads, rows and columns.
 */
export function largestChanges({
  shape: [heads, rows, columns],
  data,
}: Tensor): { index: [head: number, row: number, column: number]; change: number }[] {
  return times(heads, (head) => {
    const own = data.subarray(head * rows * columns, (head + 1) * rows * columns);
    const at = own.reduce((best, change, at) => (Math.abs(change) > Math.abs(own[best]) ? at : best), 0);
    return { index: [head, Math.floor(at / columns), at % columns], change: own[at] };
  });
}
