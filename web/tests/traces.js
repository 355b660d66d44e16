// Python's numbers and texts, written by the repository's tests/traces.py, which `make test-web` runs first.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** @import { Changes, WireChanges } from "../engine/types.js" */

const FOLDER = process.env.TRACES ?? fileURLToPath(new URL("data", import.meta.url));

/**
 * Returns the content of one of its files.
 * @param {string} name
 * @returns {Promise<Record<string, any>>}
 */
export async function traces(name) {
  return JSON.parse(await readFile(join(FOLDER, `${name}.json`), "utf8"));
}

/**
 * Returns changes that Python wrote as the engine takes them.
 * @param {Partial<WireChanges>} changes
 * @returns {Partial<Changes>}
 */
export function asked({ patches = [], ...changes }) {
  const renamed = patches.map(({ source_ids: sourceIds, target_ids: targetIds, ...patch }) => {
    return { ...patch, sourceIds, targetIds };
  });
  return { ...changes, patches: renamed };
}
