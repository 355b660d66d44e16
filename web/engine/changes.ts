// The changes that a reader can make to a forward pass: their defaults, and checks of their values.

import { attentionNames, pointNames } from "./model.ts";

import type { Changes, ChangesWith, ModelConfig } from "./types.ts";
type Fits = (entry: unknown) => boolean;

/** The defaults, with which the model computes as trained. */
export const NO_CHANGES: Readonly<ChangesWith<never>> = Object.freeze({
  ablated: {},
  masks: {},
  overrides: {},
  patches: [],
  positions: true,
  scale: true,
  mistakes: [],
  checkpoint: null,
});

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0;
const isFlag = (value: unknown) => typeof value === "boolean";
const isText = (value: unknown): value is string => typeof value === "string";
const isPair = (value: unknown): value is [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every(isCount);
const isIds = (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isCount);

function unexpected(what: string, value: unknown, wanted: string): never {
  throw new Error(`${what} is ${JSON.stringify(value) ?? String(value)}: expected ${wanted}`);
}

/** Throws when an object has a key that is not among the allowed keys. */
function checkKeys(
  what: string,
  value: unknown,
  allowed: string[],
): asserts value is Record<string, unknown> {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    unexpected(what, value, `an object with the keys ${allowed.join(", ")}`);
  }
  for (const key of Object.keys(value)) {
    if (!allowed.includes(key)) throw new Error(`${what} has no "${key}": there are ${allowed.join(", ")}`);
  }
}

/** Throws when `fits` returns false for an entry of a list. */
function checkList(what: string, value: unknown, fits: Fits, wanted: string) {
  if (!Array.isArray(value)) unexpected(what, value, `a list of ${wanted}`);
  for (const entry of value) if (!fits(entry)) unexpected(`an entry of ${what}`, entry, wanted);
}

/**
 * Throws when `fits` returns false for an entry of the lists in an object; the keys of the object are names of
 * attentions.
 */
function checkAttentions(what: string, value: unknown, config: ModelConfig, fits: Fits, wanted: string) {
  checkKeys(what, value, attentionNames(config));
  for (const [name, list] of Object.entries(value)) checkList(`${what}["${name}"]`, list, fits, wanted);
}

function checkPatch(patch: unknown, config: ModelConfig) {
  checkKeys("a patch", patch, ["point", "sentence", "sourceIds", "targetIds", "positions", "heads"]);
  const isPoint = isText(patch.point) && pointNames(config).includes(patch.point);
  if (!isPoint) unexpected("a patch's point", patch.point, "the name of a point");
  const isTold = isText(patch.sentence) || (isIds(patch.sourceIds) && isIds(patch.targetIds));
  if (!isTold) unexpected("a patch's sentence", patch.sentence, "a text, or sourceIds and targetIds");
  checkList("a patch's positions", patch.positions, isPair, "pairs [here, there]");
  if (patch.heads !== undefined) {
    checkList("a patch's heads", patch.heads, ...headsOf(config));
  }
}

/** Returns a function that checks a head's number, and the expected range in words. */
function headsOf({ heads }: ModelConfig): [fits: Fits, wanted: string] {
  return [(head) => isCount(head) && head < heads, `heads from 0 to ${heads - 1}`];
}

/** A check for each change, by the change's name; each check throws when the value is impossible. */
const CHECKS: Record<string, (value: unknown, config: ModelConfig) => void> = {
  source: (value) => isText(value) || unexpected("source", value, "a text"),
  prefix: (value) => isText(value) || unexpected("prefix", value, "a text"),
  ablated: (value, config) => checkAttentions("ablated", value, config, ...headsOf(config)),
  masks: (value, config) =>
    checkAttentions(
      "masks",
      value,
      config,
      isMaskCell(config),
      `cells [query, key, true when it may look] with positions below ${config.longest}`,
    ),
  overrides: (value, config) =>
    checkAttentions("overrides", value, config, isOverride(config), "rows [head, query, [weights]]"),
  patches: (value, config) => {
    if (!Array.isArray(value)) unexpected("patches", value, "a list");
    value.forEach((patch) => checkPatch(patch, config));
  },
  positions: (value) => isFlag(value) || unexpected("positions", value, "true or false"),
  scale: (value) => isFlag(value) || unexpected("scale", value, "true or false"),
  mistakes: (value, config) => {
    const ids = config.mistakes.map(({ id }) => id);
    checkList("mistakes", value, (id) => isText(id) && ids.includes(id), `the names ${ids.join(", ")}`);
  },
  checkpoint: (value) => value === null || isCount(value) || unexpected("checkpoint", value, "a step"),
};

function isMaskCell({ longest }: ModelConfig): Fits {
  const isThere = (pair: number[]) => isPair(pair) && Math.max(...pair) < longest;
  return (cell) => Array.isArray(cell) && cell.length === 3 && isThere(cell.slice(0, 2)) && isFlag(cell[2]);
}

function isOverride({ heads }: ModelConfig): Fits {
  const isRow = ([head, query, weights]: unknown[]) =>
    isPair([head, query]) && Number(head) < heads && Array.isArray(weights) && weights.every(Number.isFinite);
  return (row) => Array.isArray(row) && row.length === 3 && isRow(row);
}

/** Returns the changes with the defaults filled in; throws when a change is unknown or impossible. */
export function checkChanges<AnyPatch>(
  changes: Partial<ChangesWith<AnyPatch>>,
  config: ModelConfig,
): ChangesWith<AnyPatch> {
  checkKeys("changes", changes, Object.keys(CHECKS));
  for (const [key, value] of Object.entries(changes)) CHECKS[key](value, config);
  return { ...NO_CHANGES, ...changes };
}

/** Returns whether a point or an attention belongs to the encoder. */
export const isOfEncoder = (name: string) => /^(source|encoder)\./.test(name);

/** Returns a cache key of the encoder's output for one source: the changes that can affect the encoder, as JSON. */
export function encoderKey({ ablated, masks, overrides, patches, ...rest }: Changes) {
  const lists = [ablated, masks, overrides].map((one) =>
    Object.entries(one).filter(([name]) => isOfEncoder(name)),
  );
  return JSON.stringify([lists, patches.filter(({ point }) => isOfEncoder(point)), rest]);
}

/** Returns whether these changes leave the model as it is. An edited sentence is not a change of the model. */
export function isUnchanged(changes: Partial<ChangesWith<unknown>>) {
  const { positions, scale, checkpoint, mistakes, patches, ...rest } = { ...NO_CHANGES, ...changes };
  const byAttention = [rest.ablated, rest.masks, rest.overrides].flatMap((value) => Object.values(value));
  const isEmpty = [mistakes, patches, ...byAttention].every((list) => list.length === 0);
  return positions && scale && checkpoint === null && isEmpty;
}

/**
 * Returns the changes that still apply after the sentence was replaced by a sentence with these lengths. A replaced
 * source and forced words belong to the old sentence and are dropped, as are changes at positions that the new sentence
 * lacks.
 */
export function keptChanges<AnyPatch extends { point: string; positions: [number, number][] }>(
  { masks, overrides, patches, ...rest }: ChangesWith<AnyPatch>,
  { source, target }: { source: number; target: number },
): ChangesWith<AnyPatch> {
  const { ablated, positions, scale, mistakes, checkpoint } = rest;
  const rowsOf = (name: string) => (/^(source|encoder)/.test(name) ? source : target);
  const columnsOf = (name: string) => (name.endsWith("cross_attention") ? source : rowsOf(name));
  const fitting = <Entry>(lists: Record<string, Entry[]>, fits: (entry: Entry, name: string) => boolean) =>
    Object.fromEntries(
      Object.entries(lists)
        .map(([name, list]) => [name, list.filter((entry) => fits(entry, name))] as const)
        .filter(([, list]) => list.length > 0),
    );
  return {
    ...{ ablated, positions, scale, mistakes, checkpoint },
    masks: fitting(masks, ([query, key], name) => query < rowsOf(name) && key < columnsOf(name)),
    overrides: fitting(
      overrides,
      ([, query, weights], name) => query < rowsOf(name) && weights.length <= columnsOf(name),
    ),
    patches: patches.filter(({ point, positions: pairs }) => pairs.every(([here]) => here < rowsOf(point))),
  };
}

/**
 * Returns whether decoding may cache the keys and values of earlier positions: under these changes, no key or value
 * may depend on later positions.
 */
export function isCausal(changes: Changes, { mistakes }: ModelConfig) {
  const target = ([name]: [name: string, ...unknown[]]) =>
    name.startsWith("decoder.") && name.endsWith(".self_attention");
  const cells = Object.entries(changes.masks)
    .filter(target)
    .flatMap(([, list]) => list);
  const rows = Object.entries(changes.overrides)
    .filter(target)
    .flatMap(([, list]) => list);
  return (
    mistakes.every(({ id, causal }) => causal || !changes.mistakes.includes(id)) &&
    cells.every(([query, key, allowed]) => !allowed || key <= query) &&
    rows.every(([, query, weights]) => weights.slice(query + 1).every((weight) => weight === 0)) &&
    changes.patches.every(({ point }) => isOfEncoder(point))
  );
}
