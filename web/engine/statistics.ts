// The statistics of a head, by which heads can be sorted. Each statistic is a mean over the queries that may attend
// to any key.

const PUNCTUATION = /^[\p{P}\p{S}]+$/u;

/** Returns {entropy (nats), peak, diagonal, special, punctuation} of one head's weights [rows, columns] at `offset`. */
export function headStatistics(
  weights: Float32Array,
  offset: number,
  rows: number,
  columns: number,
  keyTokens: string[],
) {
  const special = keyTokens.map((token) => /^<(bos|eos|pad)>$/.test(token));
  const punctuation = keyTokens.map((token) => PUNCTUATION.test(token.replaceAll("▁", "")));
  const sums = { entropy: 0, peak: 0, diagonal: 0, special: 0, punctuation: 0 };
  let counted = 0;
  for (let row = 0; row < rows; row++) {
    const start = offset + row * columns;
    let total = 0,
      peak = 0,
      entropy = 0;
    for (let column = 0; column < columns; column++) {
      const weight = weights[start + column];
      total += weight;
      if (weight <= 0) continue;
      peak = Math.max(peak, weight);
      entropy -= weight * Math.log(weight);
      if (special[column]) sums.special += weight;
      if (punctuation[column] && !special[column]) sums.punctuation += weight;
    }
    if (total === 0) continue;
    counted++;
    sums.entropy += entropy;
    sums.peak += peak;
    sums.diagonal += weights[start + Math.min(columns - 1, Math.floor(((row + 0.5) * columns) / rows))];
  }
  const mean = (sum: number) => (counted ? sum / counted : 0);
  return {
    entropy: mean(sums.entropy),
    peak: mean(sums.peak),
    diagonal: mean(sums.diagonal),
    special: mean(sums.special),
    punctuation: mean(sums.punctuation),
  };
}

/** Names of the statistics by which heads can be sorted; "ablation" is computed on demand. */
export const HEAD_ORDERS = [
  "index",
  "entropy",
  "peak",
  "diagonal",
  "special",
  "punctuation",
  "ablation",
] as const;
