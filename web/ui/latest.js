// Work that takes a while: a late answer must not overwrite the answer to a later request, and long work shows its
// progress and can be stopped.

/**
 * Returns a function that prepares and shows a drawing, unless it is called again meanwhile, or `signal` is aborted.
 * @template {unknown[]} Given
 * @template Made
 * @param {AbortSignal} signal
 * @param {(...given: Given) => Promise<Made>} prepare
 * @param {(made: Made) => void} show
 * @returns {(...given: Given) => Promise<void>}
 */
export function latestOnly(signal, prepare, show) {
  let calls = 0;
  return async (...given) => {
    const call = ++calls;
    const made = await prepare(...given);
    if (call === calls && !signal.aborted) show(made);
  };
}

/**
 * Returns what a computation has yielded when it is complete or `signal` is aborted. The page can act and draw between
 * two steps.
 * @template Made
 * @param {AsyncIterable<Made>} steps
 * @param {AbortSignal} signal
 * @param {(count: number) => void} progress
 */
export async function gathered(steps, signal, progress) {
  /** @type {Made[]} */
  const found = [];
  for await (const one of steps) {
    found.push(one);
    progress(found.length);
    await new Promise((go) => setTimeout(go));
    if (signal.aborted) break;
  }
  return found;
}
