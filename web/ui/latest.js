// Drawings that wait for numbers: an answer that comes late must not overwrite what was asked for after it.

/**
 * Returns a function that prepares something and shows it, unless it was called again meanwhile, or `signal` aborted.
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
