// Numbers as text.

/** Returns a number with `decimals` decimals, a real minus sign, and a plus sign when `signed`. */
export function numberText(value: number | null | undefined, decimals = 3, signed = false) {
  if (value === null || value === undefined) return "";
  if (value === -Infinity) return "–∞";
  if (!Number.isFinite(value)) return String(value);
  const small = value !== 0 && Math.abs(value) < 0.5 * 10 ** -decimals;
  const digits = small ? Math.abs(value).toExponential(1) : Math.abs(value).toFixed(decimals);
  return (value < 0 ? "−" : signed ? "+" : "") + digits;
}

/**
 * Returns a number with this many decimals, and a real minus sign before digits that are not all 0, so that columns of
 * numbers stay aligned.
 */
export function fixedText(value: number, decimals = 2) {
  if (!Number.isFinite(value)) return numberText(value);
  const digits = Math.abs(value).toFixed(decimals);
  return value < 0 && /[1-9]/.test(digits) ? `−${digits}` : digits;
}

/** Returns the decimals with which the largest of these numbers has at least three digits, from 2 to 6. */
export function decimalsOf(numbers: Iterable<number>) {
  let largest = 0;
  for (const value of numbers)
    if (Math.abs(value) > largest && Math.abs(value) < Infinity) largest = Math.abs(value);
  return largest === 0 ? 2 : Math.max(2, Math.min(6, 2 - Math.floor(Math.log10(largest))));
}

/**
 * Returns the decimals with which a reader who computes `shown` from the rounded numbers gets the same text as from the
 * exact ones: at least those of `decimalsOf`.
 */
export function decimalsFor(numbers: number[], shown: (...rounded: number[]) => string) {
  let decimals = decimalsOf(numbers);
  const gives = () => shown(...numbers.map((value) => Number(value.toFixed(decimals))));
  while (decimals < 8 && gives() !== shown(...numbers)) decimals++;
  return decimals;
}

/** Returns a number with at least three digits, of which at least two are decimals. */
export function digitsText(value: number) {
  return fixedText(value, decimalsOf([value]));
}

/** Returns a probability as a percentage with two decimals, or with one digit if it is smaller. */
export function percentText(probability: number) {
  return `${numberText(100 * probability, 2)} %`;
}

/** A smaller number is left blank in a table or a grid, where the colour of a cell says enough. */
export const BLANK_BELOW = 0.005;

/** Returns a probability in four characters: .123, 1.00, and nothing near zero. */
export function probabilityText(value: number) {
  if (value >= 0.9995) return "1.00";
  return value < BLANK_BELOW ? "" : value.toFixed(3).slice(1);
}
