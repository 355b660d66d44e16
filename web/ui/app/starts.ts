// What a sentence selects at first: a link leaves out the parts of the selection that the reader has not changed since.
import type { App } from "./app.ts";
import type { Selection } from "./types.ts";

/** The selection that each app started with, before any link was applied. */
export const starts: WeakMap<App, Partial<Selection>> = new WeakMap();

/**
 * Selects what a sentence shows at first (its word and heads); a link leaves out each part of the selection that the
 * reader has not changed since.
 */
export function begin(app: App, looks: Partial<Selection>) {
  if (starts.has(app)) starts.set(app, { ...starts.get(app), ...looks });
  app.show(looks);
}

/** Returns whether a part of the selection still has its first value for this sentence. */
export function isAsOpened(app: App, key: keyof Selection) {
  return isAlike(app.state[key], starts.get(app)?.[key] ?? app.state[key]);
}

/** Returns whether two values are equal as JSON. */
export function isAlike(a: unknown, b: unknown) {
  return JSON.stringify(a) === JSON.stringify(b);
}
