// The part of a view that explanations read, without a page.
import { readFile } from "node:fs/promises";
import { checkChanges } from "../engine/changes.ts";

import type { Changes, Engine, Explained, Sentence, Tensor } from "../engine/types.ts";

const strings = JSON.parse(
  await readFile(new URL("../../src/glassformer/watch/explorer/strings.json", import.meta.url), "utf8"),
);
const PLACES = Array.from({ length: 200 }, (_, place) => `t${place}`);

/** Returns the part of a view that explanations read. The view's texts are their own keys, which must exist. */
export async function explainedOf(
  engine: Engine,
  sentence: Sentence,
  changes: Partial<Changes> = {},
): Promise<Explained & { result: NonNullable<Explained["result"]> }> {
  const complete = checkChanges(changes, engine.config);
  const trace = await engine.trace({ ...sentence, changes: complete });
  return {
    config: engine.config,
    engine,
    changes: { patches: complete.patches.map((patch) => ({ ...patch, sentence: "another sentence" })) },
    result: { current: { ...sentence, trace, changes: complete } },
    t(key, ...values) {
      const isPythons = key.startsWith("mistake.") || key.startsWith("point.");
      if (!(key in strings || isPythons)) throw new Error(`no text is called ${key}`);
      return [key, ...values].join(" ");
    },
    labels: () => ({ rows: PLACES, columns: PLACES, rowSide: "source" }),
  };
}

/** Returns the number at an index. */
export function numberAt({ shape, data }: Tensor, index: number[]) {
  return data[index.reduce((place, at, axis) => place * shape[axis] + at, 0)];
}
