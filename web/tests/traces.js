// What PyTorch computed, as tests/traces.py of the repository wrote it; `make test-web` runs that first.
import { readFile } from "node:fs/promises";

/**
 * Returns the content of one of its files.
 * @param {string} name
 * @returns {Promise<Record<string, any>>}
 */
export async function traces(name) {
  return JSON.parse(await readFile(new URL(`data/${name}.json`, import.meta.url), "utf8"));
}
