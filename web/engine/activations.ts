// The activations of the feed-forward network. Everything that the page computes and says of an activation is in its row.
import { erf } from "./tensor.ts";

interface ActivationRow {
  /** The name on the page. */
  name: string;
  of(x: number): number;
  /** The formula in x. */
  formula: string;
  /** The formula in x as Python code, with the module `math`. */
  python: string;
  /** Whether it cuts every number below 0 to 0, so that the page calls a unit active or not. */
  cuts: boolean;
}

/** The activations by their names in the configuration. */
export const ACTIVATIONS = {
  relu: {
    name: "ReLU",
    of: (x) => Math.max(x, 0),
    formula: "max(0, x)",
    python: "max(0.0, x)",
    cuts: true,
  },
  gelu: {
    name: "GELU",
    of: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
    formula: "x / 2 · (1 + erf(x / √2))",
    python: "x / 2 * (1 + math.erf(x / 2 ** 0.5))",
    cuts: false,
  },
  silu: {
    name: "SiLU",
    of: (x) => x / (1 + Math.exp(-x)),
    formula: "x / (1 + exp(−x))",
    python: "x / (1 + math.exp(-x))",
    cuts: false,
  },
} satisfies Record<string, ActivationRow>;

export type Activation = keyof typeof ACTIVATIONS;
