// The state of a view in the address's hash, so that a link reproduces it: the differences from the
// initial state, as key=value. The text and JSON in a hash are checked before use. The hash belongs to the oldest view.
import { checkChanges, isUnchanged, NO_CHANGES } from "../engine/changes.js";
import { pointNames } from "../engine/model.js";
import { messageOf } from "./app.js";

/**
 * @import { MaskCell, TextChanges } from "../engine/types.js"
 * @import { App } from "./app.js"
 * @import { Looks, Search, SomeChanges } from "./types.js"
 */

/**
 * Consecutive cells of a mask with one key.
 * @typedef {[first: number, last: number, key: number, allowed: boolean]} Run
 */

/** @typedef {{sentence: string, changes: SomeChanges, search: Partial<Search>, ui: Partial<Looks>}} State */

const VIEWS = Symbol.for("glassformer.views"); // shared by all copies of this module on one page
const LONGEST_RUN = 5000; // maximum number of cells of a mask
/**
 * The initial selection of each app, before any link.
 * @type {WeakMap<App, Looks>}
 */
const starts = new WeakMap();

/**
 * Returns the signals of the page's views, oldest first.
 * @returns {Set<AbortSignal>}
 */
function livingViews() {
  if (!Reflect.has(globalThis, VIEWS)) Reflect.set(globalThis, VIEWS, new Set());
  return Reflect.get(globalThis, VIEWS);
}

/**
 * Registers a view until its signal ends it; the oldest open view owns the hash.
 * @param {AbortSignal} signal
 */
export function claimLink(signal) {
  const views = livingViews();
  views.add(signal);
  signal.addEventListener("abort", () => views.delete(signal), { once: true });
}

/**
 * Keeps the state of the view in the hash. The promise resolves once the view shows the present hash.
 * @param {App} app
 */
export async function keepLink(app) {
  starts.set(app, { ...app.ui, story: 0 });
  if (!isLinkable(app)) return;
  const owns = () => livingViews().values().next().value === app.signal;
  let reading = false,
    sentence = "";
  const write = () => {
    if (!owns() || reading) return;
    writeHash(stateHash(app), app.sentence !== sentence);
    ({ sentence } = app);
  };
  const read = async () => {
    if (!owns() || location.hash === stateHash(app)) return;
    reading = true;
    try {
      await restore(app, parsedHash(app, location.hash));
    } catch (error) {
      app.emit("problem", app.t("link.bad", messageOf(error)));
    } finally {
      reading = false;
      ({ sentence } = app);
    }
  };
  await read();
  ({ sentence } = app);
  app.on("result", write);
  app.on("ui", write);
  window.addEventListener("hashchange", read, { signal: app.signal });
}

/**
 * Returns the address of this view's state, or null in a notebook or a frame, which have no address.
 * @param {App} app
 */
export function linkOf(app) {
  return isLinkable(app) ? location.href.replace(/#.*$/s, "") + stateHash(app) : null;
}

/** @param {App} app */
function isLinkable(app) {
  const inNotebook = app.engine.host && !app.payload.host;
  return !inNotebook && /^(https?|file):$/.test(location.protocol);
}

/**
 * Writes the hash. A new sentence is an entry of the history, to which the browser's Back returns; not in a frame, whose
 * entries would belong to the page around it.
 * @param {string} hash
 * @param {boolean} isNew
 */
function writeHash(hash, isNew) {
  if (hash === location.hash) return;
  const address = hash || location.pathname + location.search;
  try {
    if (isNew && window === window.top) history.pushState(null, "", address);
    else history.replaceState(history.state, "", address);
  } catch {
    // Sandboxed frames refuse this, and browsers limit it: the page works without the hash.
  }
}

/**
 * @param {unknown} a
 * @param {unknown} b
 */
function isAlike(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

// Writing

/**
 * Returns the state as a hash, or "" for the initial state.
 * @param {App} app
 */
function stateHash(app) {
  /** @type {Record<string, string>} */
  const readable = { "%2C": ",", "%3A": ":", "%20": "+" };
  const written = (/** @type {unknown} */ value) =>
    encodeURIComponent(typeof value === "string" ? value : JSON.stringify(value)).replace(
      /%(2C|3A|20)/g,
      (code) => readable[code],
    );
  const parts = Object.entries(linkState(app)).filter(([, value]) => value !== undefined);
  return parts.length > 0 ? `#${parts.map(([key, value]) => `${key}=${written(value)}`).join("&")}` : "";
}

/**
 * Returns the values that differ from the initial state, by key; undefined for the others.
 * @param {App} app
 */
function linkState(app) {
  const { source, prefix, ...changes } = app.changes;
  const { beam_size: beam, length_penalty: penalty } = app.engine.decoding;
  const unless = (/** @type {unknown} */ value, /** @type {unknown} */ usual) =>
    isAlike(value, usual) ? undefined : value;
  /** @type {Record<string, unknown>} */
  const state = {
    text: unless(app.sentence, app.payload.sentence),
    source: unless(source, app.sentence),
    prefix: prefix || undefined,
    beam: unless(app.search.beamSize, beam),
    penalty: unless(app.search.lengthPenalty, penalty),
  };
  for (const [key, value] of Object.entries(changes)) {
    if (!isUnchanged({ [key]: value })) state[key] = key === "masks" ? packedMasks(changes.masks) : value;
  }
  for (const key of LINKED) state[key] = unless(app.ui[key], starts.get(app)?.[key]);
  return state;
}

/**
 * Returns masks as runs of cells, by attention.
 * @param {Record<string, MaskCell[]>} masks
 */
function packedMasks(masks) {
  return mapped(masks, (cells) => {
    /** @type {Run[]} */
    const runs = [];
    for (const [query, ...cell] of cells) {
      const last = runs.at(-1);
      if (last && last[1] + 1 === query && isAlike(last.slice(2), cell)) last[1] = query;
      else runs.push([query, query, ...cell]);
    }
    return runs;
  });
}

/** @param {Record<string, Run[]>} packed */
function unpackedMasks(packed) {
  return mapped(packed, (runs) =>
    runs.flatMap(([first, last, ...cell]) => {
      if (!(last - first < LONGEST_RUN)) throw new Error("masks");
      return Array.from(
        { length: last - first + 1 },
        (_, at) => /** @type {MaskCell} */ ([first + at, ...cell]),
      );
    }),
  );
}

/**
 * @template From
 * @template To
 * @param {Record<string, From[]>} lists
 * @param {(list: From[]) => To[]} change
 * @returns {Record<string, To[]>}
 */
function mapped(lists, change) {
  return Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, change(list)]));
}

// Reading

const isPlace = (/** @type {unknown} */ value, limit = Infinity) =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value < limit;

/**
 * The parts of the selection that a link may contain, each with a function that checks its value.
 * @satisfies {Partial<Record<keyof Looks, (value: any, app: App) => boolean>>}
 */
const LOOKS = {
  language: (value) => ["en", "zh"].includes(value),
  theme: (value) => ["light", "dark"].includes(value),
  stage: (value) => ["map", "point"].includes(value),
  face: (value) => ["grid", "lines"].includes(value),
  story: (value, { engine }) => isPlace(value, 6) && (engine.live !== false || value === 0),
  beside: (value, { engine }) => typeof value === "string" && engine.live !== false,
  panel: (value, app) => app.panels.includes(value),
  word: (value) => isPlace(value),
  point: ({ name, head }, { config }) => pointNames(config).includes(name) && isPlace(head, config.heads),
  heads: (value, { config, ui }) =>
    Object.keys(ui.heads).every((/** @type {string} */ id) => {
      const layers = id === "encoder" ? config.encoder_layers : config.decoder_layers;
      return isPlace(value[id].layer, layers) && isPlace(value[id].head, config.heads);
    }),
  selected: ({ name, index }, { config }) =>
    pointNames(config).includes(name) && index.every((/** @type {unknown} */ at) => isPlace(at)),
};
const LINKED = /** @type {(keyof typeof LOOKS)[]} */ (Object.keys(LOOKS));
const TEXTS = ["text", "source", "prefix", "language", "theme", "stage", "face", "panel", "beside"]; // all other values are JSON

/**
 * Returns the state that a hash describes; throws for an invalid hash.
 * @param {App} app
 * @param {string} hash
 */
function parsedHash(app, hash) {
  /** @type {State} */
  const state = { sentence: app.payload.sentence, changes: {}, search: {}, ui: {} };
  for (const [key, text] of new URLSearchParams(hash.slice(1))) {
    try {
      put(app, state, key, TEXTS.includes(key) ? text : JSON.parse(text));
    } catch {
      throw new Error(key);
    }
  }
  checkChanges(state.changes, app.config);
  return state;
}

/**
 * Puts a value of a hash, which may be anything, into the state; changes are checked together at the end.
 * @param {App} app
 * @param {State} state
 * @param {string} key
 * @param {any} value
 */
function put(app, state, key, value) {
  if (key === "text") state.sentence = value;
  else if (key === "masks") state.changes.masks = unpackedMasks(value);
  else if (key === "beam" && isPlace(value)) state.search.beamSize = value;
  else if (key === "penalty" && Number.isFinite(value)) state.search.lengthPenalty = value;
  else if (Object.hasOwn({ ...NO_CHANGES, source: "", prefix: "" }, key))
    Object.assign(state.changes, { [key]: value });
  else if (LINKED.some((one) => one === key && LOOKS[one](value, app)))
    Object.assign(state.ui, { [key]: value });
  else throw new Error(key);
}

/**
 * Makes a view show a state: the sentence, the changes, and then the selection.
 * @param {App} app
 * @param {State} state
 */
async function restore(app, { sentence, changes, search, ui }) {
  const { beam_size: beamSize, length_penalty: lengthPenalty } = app.engine.decoding;
  const wanted = { beamSize, lengthPenalty, ...search };
  /** @type {(given: SomeChanges) => TextChanges} */
  const complete = (given) => ({ ...NO_CHANGES, source: sentence, prefix: "", ...given });
  const situation = { sentence, changes: complete(changes) };
  if (!isAlike(wanted, app.search)) await app.searchWith(wanted);
  if (!isAlike(situation, { sentence: app.sentence, changes: complete(app.changes) }))
    await app.turnTo(situation);
  /** @type {Partial<Looks>} */
  const looks = { ...starts.get(app), ...ui };
  if (ui.selected && !(await isCell(app, ui.selected))) looks.selected = null;
  app.show(Object.fromEntries(LINKED.map((key) => [key, looks[key]])));
}

/**
 * Returns whether the model has this cell.
 * @param {App} app
 * @param {NonNullable<Looks["selected"]>} cell
 */
async function isCell(app, { name, index }) {
  const { shape } = await app.value(name);
  return index.length === shape.length && index.every((at, axis) => at < shape[axis]);
}
