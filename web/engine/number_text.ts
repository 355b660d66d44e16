// Formats numbers as text.

/** Returns a number with `decimals` decimals, a real minus sign (−), and a plus sign if `signed`. */
export function numberText(value: number | null | undefined, decimals = 3, signed = false) {
  if (value === null || value === undefined) return "";
  if (value === -Infinity) return "–∞";
  if (!Number.isFinite(value)) return String(value);
  const small = value !== 0 && Math.abs(value) < 0.5 * 10 ** -decimals;
  const digits = small ? Math.abs(value).toExponential(1) : Math.abs(value).toFixed(decimals);
  return (value < 0 ? "−" : signed ? "+" : "") + digits;
}

/** Returns a number with this many decimals. A minus sign is left out if all digits are 0. */
export function fixedText(value: number, decimals = 2) {
  if (!Number.isFinite(value)) return numberText(value);
  const digits = Math.abs(value).toFixed(decimals);
  return value < 0 && /[1-9]/.test(digits) ? `−${digits}` : digits;
}

/** Returns the number of decimals, from 2 to 6, with which the largest of these numbers shows at least three digits. */
export function decimalsOf(numbers: Iterable<number>) {
  let largest = 0;
  for (const value of numbers)
    if (Math.abs(value) > largest && Math.abs(value) < Infinity) largest = Math.abs(value);
  return largest === 0 ? 2 : Math.max(2, Math.min(6, 2 - Math.floor(Math.log10(largest))));
}

/**
 * Returns a number of decimals, at least `decimalsOf(numbers)`, that suffices for a check by hand: with numbers
 * rounded to these decimals, `shown` returns the same text as with the exact numbers.
 */
export function decimalsFor(numbers: number[], shown: (...rounded: number[]) => string) {
  let decimals = decimalsOf(numbers);
  const gives = () => shown(...numbers.map((value) => Number(value.toFixed(decimals))));
  while (decimals < 8 && gives() !== shown(...numbers)) decimals++;
  return decimals;
}

/** Returns a number with at least two decimals, and at least three digits in all. */
export function digitsText(value: number) {
  return fixedText(value, decimalsOf([value]));
}

/** Returns a probability as a percentage with two decimals; tiny percentages are in exponential notation. */
export function percentText(probability: number) {
  return `${numberText(100 * probability, 2)} %`;
}

/** Tables and grids show no digits for numbers below this limit, because the colour of the cell says enough. */
export const BLANK_BELOW = 0.005;

/** Returns a probability in at most four characters, such as .123 or 1.00, and "" near zero. */
export function probabilityText(value: number) {
  if (value >= 0.9995) return "1.00";
  return value < BLANK_BELOW ? "" : value.toFixed(3).slice(1);
}
