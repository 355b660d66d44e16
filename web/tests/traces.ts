// Python's numbers and texts, written by tests/traces.py, which `make test-web` runs first.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { Changes, WireChanges } from "../engine/types.ts";

const FOLDER = process.env.TRACES ?? fileURLToPath(new URL("data", import.meta.url));

/** Returns the content of one of these files. */
export async function traces(name: string): Promise<Record<string, any>> {
  return JSON.parse(await readFile(join(FOLDER, `${name}.json`), "utf8"));
}

/** Converts changes that Python wrote into the engine's format. */
export function asked({ patches = [], ...changes }: Partial<WireChanges>): Partial<Changes> {
  const renamed = patches.map(({ source_ids: sourceIds, target_ids: targetIds, ...patch }) => {
    return { ...patch, sourceIds, targetIds };
  });
  return { ...changes, patches: renamed };
}
