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

/** Returns a probability as a percentage with two decimals, or with one digit if it is smaller. */
export function percentText(probability: number) {
  return `${numberText(100 * probability, 2)} %`;
}

/**
 * Returns how many times as probable a word is as its rival, with two digits: e^|margin|. `margin`: the difference of
 * their log p.
 */
export function timesText(margin: number) {
  const most = 1e9;
  const times = Math.exp(Math.abs(margin));
  const rounded = times < 1.05 ? times.toPrecision(3) : times.toPrecision(2);
  return times > most ? `> ${most.toLocaleString("en")}` : Number(rounded).toLocaleString("en");
}

/** A smaller number is left blank in a table or a grid, where the colour of a cell says enough. */
export const BLANK_BELOW = 0.005;

/** Returns a probability in four characters: .123, 1.00, and nothing near zero. */
export function probabilityText(value: number) {
  if (value >= 0.9995) return "1.00";
  return value < BLANK_BELOW ? "" : value.toFixed(3).slice(1);
}
