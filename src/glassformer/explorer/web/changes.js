// What can be changed in a forward pass: the defaults, a check of what is asked for, the classic mistakes.

import { attentionNames, pointNames } from "./model.js";

/** Nothing is changed. */
export const NO_CHANGES = Object.freeze({
  ablated: {},
  masks: {},
  overrides: {},
  patches: [],
  positions: true,
  scale: true,
  mistakes: [],
  checkpoint: null,
});

const FIRST = "encoder.layers.0.self_attention";
const FIRST_MASKED = "decoder.layers.0.self_attention.weights";
const FIRST_CROSS = "decoder.layers.0.cross_attention";

/** The classic mistakes; `first` returns the first point that each changes, null where it changes nothing. */
export const MISTAKES = [
  { id: "norm_order", first: (config) => `${FIRST}.${config.norm === "pre" ? "normed" : "query"}` },
  { id: "residual_normed", first: () => `${FIRST}.added` },
  { id: "no_scale", first: (config) => (config.d_k === 1 ? null : `${FIRST}.scores`) },
  { id: "scale_d_model", first: (config) => (config.d_k === config.d_model ? null : `${FIRST}.scores`) },
  { id: "no_embedding_scale", first: (config) => (config.d_model === 1 ? null : "source.embedding") },
  {
    id: "doubled_exponent",
    first: ({ positions, d_model }) =>
      (positions === "interleaved" || positions === "halves") && d_model > 1 ? "source.positions" : null,
  },
  { id: "mask_zero", first: () => FIRST_MASKED },
  { id: "mask_after_softmax", first: () => FIRST_MASKED },
  { id: "target_padding_mask", first: () => `${FIRST_CROSS}.weights` },
  { id: "no_causal_mask", first: () => FIRST_MASKED },
  { id: "decoder_keys", first: () => `${FIRST_CROSS}.key` },
  { id: "double_softmax", first: () => "log_probs" },
  { id: "no_transpose", first: (config) => (config.heads === 1 ? null : `${FIRST}.query`) },
  { id: "unbiased_norm", first: () => `${FIRST}.normed` },
];

const isCount = (value) => Number.isInteger(value) && value >= 0;
const isFlag = (value) => typeof value === "boolean";
const isText = (value) => typeof value === "string";
const isPair = (value) => Array.isArray(value) && value.length === 2 && value.every(isCount);
const isIds = (value) => Array.isArray(value) && value.length > 0 && value.every(isCount);

function unexpected(what, value, wanted) {
  throw new Error(`${what} is ${JSON.stringify(value) ?? String(value)}: expected ${wanted}`);
}

/** Throws when an object has a key that is not among the allowed ones. */
function checkKeys(what, value, allowed) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    unexpected(what, value, `an object with the keys ${allowed.join(", ")}`);
  }
  for (const key of Object.keys(value)) {
    if (!allowed.includes(key)) throw new Error(`${what} has no "${key}": there are ${allowed.join(", ")}`);
  }
}

/** Throws when a list holds something that `fits` rejects. */
function checkList(what, value, fits, wanted) {
  if (!Array.isArray(value)) unexpected(what, value, `a list of ${wanted}`);
  for (const entry of value) if (!fits(entry)) unexpected(`an entry of ${what}`, entry, wanted);
}

/** Throws when the lists of an object, by attention, hold something that `fits` rejects. */
function checkAttentions(what, value, config, fits, wanted) {
  checkKeys(what, value, attentionNames(config));
  for (const [name, list] of Object.entries(value)) checkList(`${what}["${name}"]`, list, fits, wanted);
}

function checkPatch(patch, config) {
  checkKeys("a patch", patch, ["point", "sentence", "sourceIds", "targetIds", "positions", "heads"]);
  const isPoint = pointNames(config).includes(patch.point);
  if (!isPoint) unexpected("a patch's point", patch.point, "the name of a point");
  const isTold = isText(patch.sentence) || (isIds(patch.sourceIds) && isIds(patch.targetIds));
  if (!isTold) unexpected("a patch's sentence", patch.sentence, "a text, or sourceIds and targetIds");
  checkList("a patch's positions", patch.positions, isPair, "pairs [here, there]");
  if (patch.heads !== undefined) {
    checkList("a patch's heads", patch.heads, ...headsOf(config));
  }
}

/** Returns the check of a head's number, and what is expected. */
function headsOf({ heads }) {
  return [(head) => isCount(head) && head < heads, `heads from 0 to ${heads - 1}`];
}

const CHECKS = {
  source: (value) => isText(value) || unexpected("source", value, "a text"),
  prefix: (value) => isText(value) || unexpected("prefix", value, "a text"),
  ablated: (value, config) => checkAttentions("ablated", value, config, ...headsOf(config)),
  masks: (value, config) =>
    checkAttentions("masks", value, config, isMaskCell, "cells [query, key, true when it may look]"),
  overrides: (value, config) =>
    checkAttentions("overrides", value, config, isOverride(config), "rows [head, query, [weights]]"),
  patches: (value, config) => {
    if (!Array.isArray(value)) unexpected("patches", value, "a list");
    value.forEach((patch) => checkPatch(patch, config));
  },
  positions: (value) => isFlag(value) || unexpected("positions", value, "true or false"),
  scale: (value) => isFlag(value) || unexpected("scale", value, "true or false"),
  mistakes: (value) => {
    const ids = MISTAKES.map(({ id }) => id);
    checkList("mistakes", value, (id) => ids.includes(id), `the names ${ids.join(", ")}`);
  },
  checkpoint: (value) => value === null || isCount(value) || unexpected("checkpoint", value, "a step"),
};

function isMaskCell(cell) {
  return Array.isArray(cell) && cell.length === 3 && isPair(cell.slice(0, 2)) && isFlag(cell[2]);
}

function isOverride({ heads }) {
  const isRow = (row) => isPair(row.slice(0, 2)) && row[0] < heads && Array.isArray(row[2]);
  return (row) => Array.isArray(row) && row.length === 3 && isRow(row) && row[2].every(Number.isFinite);
}

/** Returns the changes with the defaults filled in; throws when one of them is unknown or impossible. */
export function checkChanges(changes, config) {
  checkKeys("changes", changes, Object.keys(CHECKS));
  for (const [key, value] of Object.entries(changes)) CHECKS[key](value, config);
  return { ...NO_CHANGES, ...changes };
}

/** Returns whether these changes leave the model as it is; the sentence is no part of the model. */
export function isUnchanged(changes) {
  const { positions, scale, checkpoint, mistakes, patches, ...rest } = { ...NO_CHANGES, ...changes };
  const byAttention = [rest.ablated, rest.masks, rest.overrides].flatMap((value) => Object.values(value));
  const isEmpty = [mistakes, patches, ...byAttention].every((list) => list.length === 0);
  return positions && scale && checkpoint === null && isEmpty;
}

const MIXING = [
  "mask_zero",
  "mask_after_softmax",
  "target_padding_mask",
  "no_causal_mask",
  "decoder_keys",
  "no_transpose",
];

/**
 * Returns whether decoding may keep the keys and values of earlier positions: under these changes, none
 * of them depends on what comes later.
 */
export function isCausal(changes) {
  const target = ([name]) => name.startsWith("decoder.") && name.endsWith(".self_attention");
  const cells = Object.entries(changes.masks)
    .filter(target)
    .flatMap(([, list]) => list);
  const rows = Object.entries(changes.overrides)
    .filter(target)
    .flatMap(([, list]) => list);
  return (
    !changes.mistakes.some((id) => MIXING.includes(id)) &&
    cells.every(([query, key, allowed]) => !allowed || key <= query) &&
    rows.every(([, query, weights]) => weights.length <= query + 1) &&
    changes.patches.every(({ point }) => point.startsWith("source.") || point.startsWith("encoder."))
  );
}
