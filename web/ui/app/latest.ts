// Slow work. A late answer must not overwrite the answer to a later request, and long work must show its progress and
// must be stoppable.
import { element, refill } from "./dom.ts";

import type { App } from "./app.ts";

/**
 * Returns a function that prepares a drawing and then shows it, unless the function was called again in the meantime
 * or `signal` was aborted.
 */
export function latestOnly<Given extends unknown[], Made>(
  signal: AbortSignal,
  prepare: (...given: Given) => Promise<Made>,
  show: (made: Made) => void,
): (...given: Given) => Promise<void> {
  let calls = 0;
  return async (...given) => {
    const call = ++calls;
    const made = await prepare(...given);
    if (call === calls && !signal.aborted) show(made);
  };
}

/**
 * Returns everything that a computation yields until the computation is complete or `signal` is aborted. The page can
 * handle events and draw between two steps.
 */
export async function gathered<Made>(
  steps: AsyncIterable<Made>,
  signal: AbortSignal,
  progress: (count: number) => void,
) {
  const found: Made[] = [];
  for await (const one of steps) {
    found.push(one);
    progress(found.length);
    await new Promise((go) => setTimeout(go));
    if (signal.aborted) break;
  }
  return found;
}

/** Returns everything that a computation yields, and shows the progress of the computation as a bar. */
export function collected<Made>(
  app: App,
  holder: HTMLElement,
  steps: AsyncGenerator<Made>,
  all: number,
  signal: AbortSignal,
) {
  const bar = element("progress", { max: all, value: 0 });
  refill(holder, bar);
  return gathered(steps, signal, (count) => {
    bar.value = count;
    bar.ariaLabel = app.t("why.progress", count, all);
  });
}
