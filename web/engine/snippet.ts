// A number's arithmetic as a complete Python script that contains all numbers it needs.

import { times } from "./tensor.ts";
import type { Explanation } from "./types.ts";

const LIBRARIES: Record<
  "numpy" | "torch",
  { imported: string; short: string; array: (numbers: string) => string }
> = {
  numpy: { imported: "import numpy as np", short: "np", array: (numbers) => `np.array([${numbers}])` },
  torch: {
    imported: "import torch",
    short: "torch",
    array: (numbers) => `torch.tensor([${numbers}], dtype=torch.float64)`,
  },
};

/** Returns Python code that recomputes an explained number and compares it with the number on the page. */
export function snippet(
  {
    name,
    index,
    result,
    difference,
    code: { inputs, lines },
  }: Explanation & Required<Pick<Explanation, "code">>,
  library: "numpy" | "torch",
) {
  const { imported, short, array } = LIBRARIES[library];
  const listed = (numbers: number[]) => array(wrapped(numbers.map(pythonNumber)));
  const value = (input: number | number[]) => (Array.isArray(input) ? listed(input) : pythonNumber(input));
  return [
    `# ${name}[${index.join(", ")}]`,
    "import math",
    imported,
    "",
    ...Object.entries(inputs).map(([input, numbers]) => `${input} = ${value(numbers)}`),
    ...lines.map((line) => line.replaceAll("xp.", `${short}.`)),
    "print(float(result))",
    `assert math.isclose(result, ${pythonNumber(result)}, rel_tol=1e-4, abs_tol=${tolerance(difference)})`,
    "",
  ].join("\n");
}

/**
 * Returns by how much the code's result may differ from the page's number. Recorded numbers are rounded to half
 * precision. `difference`: the difference between the result of the page's own arithmetic and the page's number.
 */
function tolerance(difference: number) {
  return Math.max(1e-4, 2 * Math.abs(difference)).toExponential(0);
}

/** Returns a float32 as a Python literal; nine digits distinguish all float32 numbers. */
function pythonNumber(value: number) {
  if (Number.isFinite(value)) return String(Number(value.toPrecision(9)));
  return Number.isNaN(value) ? "math.nan" : value < 0 ? "-math.inf" : "math.inf";
}

function wrapped(numbers: string[]) {
  if (numbers.length <= 8) return numbers.join(", ");
  const rows = times(Math.ceil(numbers.length / 8), (row) => numbers.slice(8 * row, 8 * row + 8).join(", "));
  return `\n    ${rows.join(",\n    ")},\n`;
}
