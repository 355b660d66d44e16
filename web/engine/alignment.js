// What differs between two sequences of tokens, and between two traces at the tokens that they share.

/** @import { Hypothesis, Tensor } from "./types.js" */

/** @typedef {[one: number, other: number]} Pair */

/**
 * Returns the positions of a longest common subsequence of two lists of ids, in order.
 * @param {readonly number[]} one
 * @param {readonly number[]} other
 * @returns {Pair[]}
 */
export function alignment(one, other) {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1)); // of the suffixes
  for (let i = one.length - 1; i >= 0; i--)
    for (let j = other.length - 1; j >= 0; j--)
      lengths[i][j] =
        one[i] === other[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  /** @type {Pair[]} */
  const pairs = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) pairs.push([i++, j++]);
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}

/**
 * Returns the words that two outputs share, each with Δp: its probability in the other output minus that in the one.
 * @param {Pick<Hypothesis, "ids" | "tokenLogProbs">} one
 * @param {Pick<Hypothesis, "ids" | "tokenLogProbs">} other
 * @returns {{pair: Pair, change: number}[]}
 */
export function wordChanges(one, other) {
  return alignment(one.ids, other.ids).map((pair) => {
    const [before, after] = [one.tokenLogProbs[pair[0]], other.tokenLogProbs[pair[1]]];
    return { pair, change: Math.exp(after) - Math.exp(before) };
  });
}

/**
 * Returns, for each head of two tensors of weights (heads, rows, columns), the cell of shared tokens that differs most.
 * @param {Tensor} one
 * @param {Tensor} other
 * @param {Pair[]} rows
 * @param {Pair[]} columns
 * @returns {{index: [head: number, row: number, column: number], change: number}[]}
 */
export function cellChanges(one, other, rows, columns) {
  const at = (
    /** @type {Tensor} */ { shape: [, high, wide], data },
    /** @type {number[]} */ [head, row, column],
  ) => data[(head * high + row) * wide + column];
  return Array.from({ length: one.shape[0] }, (_, head) => {
    /** @type {{index: [number, number, number], change: number}} */
    let most = { index: [head, 0, 0], change: 0 };
    for (const [row, otherRow] of rows)
      for (const [column, otherColumn] of columns) {
        const change = at(other, [head, otherRow, otherColumn]) - at(one, [head, row, column]);
        if (Math.abs(change) > Math.abs(most.change)) most = { index: [head, row, column], change };
      }
    return most;
  });
}
