// The state of a view in the address's hash, so that a link reproduces it: only what differs from the beginning, as
// key=value. What a hash holds is text and JSON, checked before it is used. Of several views the oldest has the hash.
import { checkChanges, isUnchanged, NO_CHANGES } from "./changes.js";
import { pointNames } from "./model.js";

const OWNERS = Symbol.for("glassformer.link"); // shared by all copies of this module on one page
const TABS = ["numbers", "changes", "beam", "positions", "training"];
const starts = new WeakMap(); // what each app looked like before any link

/** Keeps the state of the view in the hash; returns a promise: the state that the hash has now is there. */
export async function keepLink(app) {
  starts.set(app, app.ui);
  const owners = (globalThis[OWNERS] ??= new Set());
  if (!isLinkable(app)) return;
  owners.add(app);
  app.signal.addEventListener("abort", () => owners.delete(app), { once: true });
  const owns = () => owners.values().next().value === app;
  let reading = false;
  const write = () => { if (owns() && !reading && app.result) replaceHash(stateHash(app)); };
  const read = async () => {
    if (!owns() || sameHash(location.hash, stateHash(app))) return;
    reading = true;
    try {
      await restore(app, parsedHash(app, location.hash));
    } catch (error) {
      app.emit("problem", app.t("link.bad", error.message));
    } finally {
      reading = false;
    }
  };
  if (location.hash.length > 1) await read();
  app.on("result", write);
  app.on("ui", write);
  window.addEventListener("hashchange", read, { signal: app.signal });
}

/** Returns the address that shows what this view shows, or null where it has none: in a notebook's cell, in a frame. */
export function linkOf(app) {
  return isLinkable(app) ? location.href.replace(/#.*$/s, "") + stateHash(app) : null;
}

function isLinkable(app) {
  const inNotebook = app.engine.host && !app.payload.host;
  return !inNotebook && /^(https?|file):$/.test(location.protocol);
}

function replaceHash(hash) {
  try {
    history.replaceState(history.state, "", hash || location.pathname + location.search);
  } catch {
    // A sandboxed frame, or a browser that counts: the page works without.
  }
}

function sameHash(a, b) {
  return a.replace(/^#/, "") === b.replace(/^#/, "");
}

/** Returns what differs from the beginning: text by key. */
function linkState(app) {
  const { source, prefix, masks, ...changes } = app.changes;
  const start = starts.get(app) ?? app.ui, { beam_size: beam, length_penalty: penalty } = app.engine.decoding;
  const state = {
    text: app.sentence === app.payload.sentence ? null : app.sentence,
    source: source === app.sentence ? null : source,
    prefix: prefix || null,
    masks: packedMasks(masks),
    beam: app.search.beamSize === beam ? null : app.search.beamSize,
    penalty: app.search.lengthPenalty === penalty ? null : app.search.lengthPenalty,
  };
  for (const [key, value] of Object.entries(changes)) state[key] = isUnchanged({ [key]: value }) ? null : value;
  for (const key of Object.keys(LOOKS)) state[key] = same(app.ui[key], start[key]) ? null : app.ui[key];
  return state;
}

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Returns the state as a hash, or "" when nothing differs. */
function stateHash(app) {
  const readable = (text) => encodeURIComponent(text).replace(/%(2C|3A|20)/g, (code) => ({ "%2C": ",", "%3A": ":", "%20": "+" })[code]);
  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const parts = Object.entries(linkState(app)).filter(([, value]) => value !== null && value !== undefined);
  return parts.length > 0 ? `#${parts.map(([key, value]) => `${key}=${readable(written(value))}`).join("&")}` : "";
}

/** Returns masks as runs of cells {attention: [[first query, last query, key, may]]}, or null when there are none. */
function packedMasks(masks) {
  const packed = Object.entries(masks).filter(([, cells]) => cells.length > 0).map(([name, cells]) => [name, cells.reduce((runs, [query, key, may]) => {
    const last = runs.at(-1);
    if (last && last[1] + 1 === query && last[2] === key && last[3] === may) last[1] = query;
    else runs.push([query, query, key, may]);
    return runs;
  }, [])]);
  return packed.length > 0 ? Object.fromEntries(packed) : null;
}

function unpackedMasks(packed) {
  return Object.fromEntries(Object.entries(packed).map(([name, runs]) => [name, runs.flatMap(([first, last, key, may]) => {
    if (!(last - first < 5000)) throw new Error("masks");
    return Array.from({ length: last - first + 1 }, (_, at) => [first + at, key, may]);
  })]));
}

const isPlace = (value, limit = Infinity) => Number.isInteger(value) && value >= 0 && value < limit;

/** What is looked at, and what of it may stand in a link. */
const LOOKS = {
  language: (value) => ["en", "zh"].includes(value),
  theme: (value) => ["light", "dark"].includes(value),
  stage: (value) => ["map", "point"].includes(value),
  panel: (value) => TABS.includes(value),
  point: ({ name, head }, app) => pointNames(app.config).includes(name) && isPlace(head, app.config.heads),
  heads: (value, app) => Object.keys(app.ui.heads).every((id) => {
    const layers = app.config[id === "encoder" ? "encoder_layers" : "decoder_layers"];
    return isPlace(value[id].layer, layers) && isPlace(value[id].head, app.config.heads);
  }),
  selected: (value, app) => value === null || (pointNames(app.config).includes(value.name) && value.index.every((at) => isPlace(at))),
};
const TEXTS = ["text", "source", "prefix", "language", "theme", "stage", "panel"];

/** Returns the state that a hash describes: {sentence, changes, search, ui}; throws the name of what is wrong. */
function parsedHash(app, hash) {
  const state = { sentence: app.payload.sentence, changes: {}, search: {}, ui: {} };
  for (const [key, text] of new URLSearchParams(hash.slice(1))) {
    try {
      place(app, state, key, TEXTS.includes(key) ? text : JSON.parse(text));
    } catch (error) {
      throw new Error(error instanceof SyntaxError || error instanceof TypeError ? key : error.message);
    }
  }
  checkChanges(state.changes, app.config);
  return state;
}

function place(app, state, key, value) {
  if (key === "text") state.sentence = value;
  else if (key === "masks") state.changes.masks = unpackedMasks(value);
  else if (key === "beam" && isPlace(value)) state.search.beamSize = value;
  else if (key === "penalty" && Number.isFinite(value)) state.search.lengthPenalty = value;
  else if (Object.hasOwn(NO_CHANGES, key) || key === "source" || key === "prefix") state.changes[key] = value;
  else if (Object.hasOwn(LOOKS, key) && LOOKS[key](value, app)) state.ui[key] = value;
  else throw new Error(key);
}

/** Makes a view show a state: the sentence, what is changed, and then what is looked at. */
async function restore(app, { sentence, changes, search, ui }) {
  const { beam_size: beamSize, length_penalty: lengthPenalty } = app.engine.decoding;
  const wanted = { beamSize, lengthPenalty, ...search };
  if (sentence !== app.sentence) await app.open(sentence);
  if (!same(wanted, app.search)) await app.searchWith(wanted);
  const complete = { ...NO_CHANGES, source: sentence, prefix: "", ...changes };
  if (!same(complete, { ...NO_CHANGES, source: sentence, prefix: "", ...app.changes })) await app.set(complete);
  const { selected, ...looks } = { ...starts.get(app), ...ui };
  app.show(Object.fromEntries(Object.keys(LOOKS).filter((key) => key !== "selected").map((key) => [key, looks[key]])));
  if (selected && (await isCell(app, selected))) app.show({ selected });
}

/** Returns whether there is such a number. */
async function isCell(app, { name, index }) {
  const { shape } = await app.value(name);
  return index.length === shape.length && index.every((at, axis) => at < shape[axis]);
}
