// Drawings that wait for numbers: a late answer must not overwrite the answer to a later request.

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
