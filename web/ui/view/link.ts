// Keeps the state of a view in the hash of the page's address; a link with this hash reproduces the state. The hash
// contains each value that differs from the initial state, as key=value. The text and JSON of a hash are checked before
// use. Only the oldest view of a page uses the hash.
import { times } from "../../engine/tensor.ts";
import { checkChanges, isUnchanged, NO_CHANGES } from "../../engine/changes.ts";
import { pointNames } from "../../engine/model.ts";
import { messageOf } from "../app/app.ts";
import { isAlike, starts } from "../app/starts.ts";
import { CHAPTERS } from "../chapters/chapters.ts";
import { TASKS } from "../chapters/tasks.ts";
import { boxOfPanel, isBox } from "../app/boxes.ts";
import { enteredCell } from "../box/numbers/cells.ts";
import { checkpointSteps } from "../app/checkpoints.ts";

import type { Cell, MaskCell, TextChanges } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Selection, Search, SomeChanges } from "../app/types.ts";

/** Consecutive queries whose mask cells for one key have the same value. */
type Run = [first: number, last: number, key: number, allowed: boolean];

interface Linked {
  sentence: string;
  changes: SomeChanges;
  search: Partial<Search>;
  ui: Partial<Selection>;
}

const VIEWS = Symbol.for("glassformer.views"); // shared by all copies of this module on one page
// milliseconds: states that follow each other sooner, as from a slider, share one entry of the history
const PAUSE = 400;
const LONGEST_RUN = 5000; // maximum number of mask cells in one run

/** Returns the signals of the page's views, oldest first. */
function livingViews(): Set<AbortSignal> {
  if (!Reflect.has(globalThis, VIEWS)) Reflect.set(globalThis, VIEWS, new Set());
  return Reflect.get(globalThis, VIEWS);
}

/** Registers a view until its signal is aborted; the oldest open view owns the hash. */
export function claimLink(signal: AbortSignal) {
  const views = livingViews();
  views.add(signal);
  signal.addEventListener("abort", () => views.delete(signal), { once: true });
}

/**
 * Keeps the hash equal to the state of the view. The promise resolves once the view shows what the present hash
 * describes.
 */
export async function keepLink(app: App) {
  starts.set(app, linkedSelection(app.state));
  if (!isLinkable(app)) return;
  app.address = () => location.href.replace(/#.*$/s, "") + stateHash(app);
  const owns = () => livingViews().values().next().value === app.signal;
  let reading = false,
    written = 0,
    sentence = "";
  const write = (_: unknown, changed: ReadonlySet<string>) => {
    if (!owns() || reading) return;
    const isLook = [...changed].every((key) => key === "theme" || key === "language");
    const now = performance.now();
    const isNew = app.state.sentence !== sentence;
    writeHash(stateHash(app), isNew || (!isLook && now - written > PAUSE));
    written = now;
    ({ sentence } = app.state);
  };
  const read = async () => {
    if (!owns() || location.hash === stateHash(app)) return;
    reading = true;
    try {
      await restore(app, parsedHash(app, location.hash));
    } catch (error) {
      app.complain(app.t("link.bad", messageOf(error)));
    } finally {
      reading = false;
      ({ sentence } = app.state);
    }
  };
  await read();
  ({ sentence } = app.state);
  app.on(["result", ...LINKED], write);
  window.addEventListener("hashchange", read, { signal: app.signal });
}

/** Returns whether a view has an address of its own: in notebooks and frames, the address is not the view's. */
function isLinkable(app: App) {
  const inNotebook = app.engine.host && !app.payload.host;
  return !inNotebook && /^(https?|file):$/.test(location.protocol);
}

/**
 * Writes the hash. A state that lasts becomes an entry of the history, to which the browser's Back returns. In a
 * frame, no state becomes an entry, because the history belongs to the page around the frame.
 */
function writeHash(hash: string, isNew: boolean) {
  if (hash === location.hash) return;
  const address = hash || location.pathname + location.search;
  try {
    if (isNew && window === window.top) history.pushState(null, "", address);
    else history.replaceState(history.state, "", address);
  } catch {
    // Sandboxed frames refuse to set the hash, and browsers limit how often it is set. The page works without it.
  }
}

// Writing the hash

/** Returns the part of the selection that a link may contain. */
function linkedSelection(selection: Selection): Partial<Selection> {
  return Object.fromEntries(LINKED.map((key) => [key, selection[key]]));
}

/** Returns the state as a hash, or "" for the initial state. */
function stateHash(app: App) {
  const readable: Record<string, string> = { "%2C": ",", "%3A": ":", "%20": "+" };
  const written = (value: unknown) =>
    encodeURIComponent(typeof value === "string" ? value : JSON.stringify(value)).replace(
      /%(2C|3A|20)/g,
      (code) => readable[code],
    );
  const parts = Object.entries(linkState(app)).filter(([, value]) => value !== undefined);
  return parts.length > 0 ? `#${parts.map(([key, value]) => `${key}=${written(value)}`).join("&")}` : "";
}

/** Returns the values of the state by key; a value that equals the initial value is undefined. */
function linkState(app: App) {
  const { source, prefix, ...changes } = app.changes;
  const { beam_size: beam, length_penalty: penalty } = app.engine.decoding;
  const unless = (value: unknown, usual: unknown) => (isAlike(value, usual) ? undefined : value);
  const state: Record<string, unknown> = {
    text: unless(app.state.sentence, app.payload.sentence),
    source: unless(source, app.state.sentence),
    prefix: prefix || undefined,
    beam: unless(app.state.search.beamSize, beam),
    penalty: unless(app.state.search.lengthPenalty, penalty),
  };
  for (const [key, value] of Object.entries(changes)) {
    if (!isUnchanged({ [key]: value })) state[key] = key === "masks" ? packedMasks(changes.masks) : value;
  }
  const { zoom, sheet } = app.state;
  const isOpen: Partial<Record<keyof Selection, boolean>> = {
    panel: sheet || zoom !== null,
    selected: zoom !== null,
  };
  for (const key of LINKED)
    if (isOpen[key] !== false) state[key] = unless(app.state[key], starts.get(app)?.[key]);
  return state;
}

/** Returns the changed cells of masks as runs, by attention. */
function packedMasks(masks: Record<string, MaskCell[]>) {
  return mapped(masks, (cells) => {
    const runs: Run[] = [];
    for (const [query, ...cell] of cells) {
      const last = runs.at(-1);
      if (last && last[1] + 1 === query && isAlike(last.slice(2), cell)) last[1] = query;
      else runs.push([query, query, ...cell]);
    }
    return runs;
  });
}

function unpackedMasks(packed: Record<string, Run[]>) {
  return mapped(packed, (runs) =>
    runs.flatMap(([first, last, ...cell]) => {
      if (!(last - first < LONGEST_RUN)) throw new Error("masks");
      return times(last - first + 1, (at) => [first + at, ...cell] as MaskCell);
    }),
  );
}

function mapped<From, To>(
  lists: Record<string, From[]>,
  change: (list: From[]) => To[],
): Record<string, To[]> {
  return Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, change(list)]));
}

// Reading the hash

const isPlace = (value: unknown, limit = Infinity) =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value < limit;

const isFlag = (value: unknown) => typeof value === "boolean";

/** The parts of the selection that a link may contain, each with a function that validates its value. */
const CHECKS = {
  language: (value) => ["en", "zh"].includes(value),
  theme: (value) => ["light", "dark"].includes(value),
  row: (value) => isPlace(value),
  sourceWord: (value) => isPlace(value),
  box: (value) => /^(en|de)coder\.[a-z_.]{1,40}$/.test(value),
  zoom: ({ box, key }, { config }) => isBox(config, box) && (key === null || isPlace(key)),
  chapter: (value) => isPlace(value, CHAPTERS.length + 1),
  act: (value) => isPlace(value, 9),
  lecture: isFlag,
  task: (value) => !value || Object.hasOwn(TASKS, value),
  sheet: isFlag,
  second: (value, { engine, payload }) =>
    typeof value.text === "string" &&
    engine.live !== false &&
    (value.step === undefined || checkpointSteps(payload).includes(value.step)),
  panel: (value, app) => [...app.panels, "numbers"].includes(value) || boxOfPanel(app.config, value) !== null,
  heads: (value, { config, state }) =>
    Object.keys(state.heads).every((id: string) => {
      const layers = id === "encoder" ? config.encoder_layers : config.decoder_layers;
      return isPlace(value[id].layer, layers) && isPlace(value[id].head, config.heads);
    }),
  selected: ({ name, index }, { config }) =>
    pointNames(config).includes(name) && index.every((at: unknown) => isPlace(at)),
} satisfies Partial<Record<keyof Selection, (value: any, app: App) => boolean>>;
const LINKED = Object.keys(CHECKS) as (keyof typeof CHECKS)[];
/** The fields whose values are texts; the values of all other fields are JSON. */
const TEXTS = ["text", "source", "prefix", "language", "theme", "box", "panel", "task"];

/** Returns the state that a hash describes; throws if the hash is invalid. */
function parsedHash(app: App, hash: string) {
  const state: Linked = { sentence: app.payload.sentence, changes: {}, search: {}, ui: {} };
  for (const [key, text] of new URLSearchParams(hash.slice(1))) {
    try {
      put(app, state, key, TEXTS.includes(key) ? text : JSON.parse(text));
    } catch {
      throw new Error(key);
    }
  }
  checkChanges(state.changes, app.config);
  open(app, state);
  return state;
}

/** Opens the box or the sheet that shows the linked panel, for addresses that do not say where it is. */
function open({ config }: App, { ui }: Linked) {
  const { panel } = ui;
  const box = panel && !ui.zoom && boxOfPanel(config, panel);
  if (box) Object.assign(ui, { zoom: box, sheet: false });
  else if (panel && panel !== "numbers" && !ui.zoom && !ui.chapter) ui.sheet = true;
}

/** Copies a field of the hash, which may contain anything, into the state. Changes are checked together at the end. */
function put(app: App, state: Linked, key: string, value: any) {
  if (key === "text") state.sentence = value;
  else if (key === "masks") state.changes.masks = unpackedMasks(value);
  else if (key === "beam" && isPlace(value)) state.search.beamSize = value;
  else if (key === "penalty" && Number.isFinite(value)) state.search.lengthPenalty = value;
  else if (Object.hasOwn({ ...NO_CHANGES, source: "", prefix: "" }, key))
    Object.assign(state.changes, { [key]: value });
  else if (LINKED.some((one) => one === key && CHECKS[one](value, app)))
    Object.assign(state.ui, { [key]: value });
  else throw new Error(key);
}

/** Makes a view show a state: first the sentence and the changes, and then the selection. */
async function restore(app: App, { sentence, changes, search, ui }: Linked) {
  const { beam_size: beamSize, length_penalty: lengthPenalty } = app.engine.decoding;
  const wanted = { beamSize, lengthPenalty, ...search };
  const complete = (given: SomeChanges): TextChanges => ({
    ...NO_CHANGES,
    source: sentence,
    prefix: "",
    ...given,
  });
  const situation = { sentence, changes: complete(changes) };
  if (!isAlike(wanted, app.state.search)) await app.searchWith(wanted);
  if (!isAlike(situation, { sentence: app.state.sentence, changes: complete(app.changes) }))
    await app.turnTo(situation);
  const { outputTokens, sourceTokens } = app.result.current;
  if ((ui.row ?? 0) >= outputTokens.length) throw new Error("row");
  if ((ui.sourceWord ?? 0) >= sourceTokens.length) throw new Error("sourceWord");
  const looks = { ...app.state, ...starts.get(app), ...ui };
  if (ui.selected) looks.selected = await cellOf(app, ui.selected);
  const isGrid = ui.panel === "numbers";
  const cell = looks.selected ?? (isGrid && !ui.zoom ? await enteredCell(app) : null);
  if (cell && (isGrid || !ui.zoom)) Object.assign(looks, app.selectionAt(cell, looks));
  app.show(linkedSelection(looks));
}

/** Returns a cell, or null if the model lacks it. The index [] stands for the largest number of the highlighted row. */
async function cellOf(app: App, cell: Cell) {
  const { name, index } = cell;
  if (index.length === 0) return enteredCell(app, name);
  const { shape } = await app.value(name);
  return index.length === shape.length && index.every((at, axis) => at < shape[axis]) ? cell : null;
}
