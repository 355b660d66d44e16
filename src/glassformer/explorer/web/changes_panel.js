// "What if?": everything that can be changed. Each section shows its part of app.changes and sets it; what that does
// to the output stands at the top of the page. Only the section that is open has elements.
import { attentionName, FAMILIES } from "./app.js";
import { MISTAKES, NO_CHANGES } from "./changes.js";
import { button, chooser, element, numberText, refill } from "./dom.js";
import { linkOf } from "./link.js";
import { attentionNames, pointNames } from "./model.js";
import { hasHeads } from "./point_view.js";

const SECTIONS = [
  ["words", wordsSection], ["heads", headsSection], ["masks", masksSection], ["hand", handSection],
  ["patch", patchSection], ["parts", partsSection], ["mistakes", mistakesSection],
];
const RIVALS = 7; // other words that are offered in place of one
const SUGGESTIONS = 40;
const LATER = 50; // an output may be so many tokens longer than its source: a hidden word stays hidden from them
let groups = 0;

/** Returns the panel as an element. */
export function createChangesPanel(app) {
  const { layer, head } = app.ui.heads.cross;
  const panel = {
    app, history: changesHistory(app), redraw,
    at: { attention: attentionName(FAMILIES[1], layer), head, query: 0, key: 0 },
    word: null, rival: null, row: null, patch: {},
  };
  const top = element("div", { className: "gf-changes-top", tabindex: "-1" });
  const group = `gf-changes-${++groups}`;
  const sections = SECTIONS.map(([id, content]) => folded(panel, group, id, content));
  const list = element("fieldset", { disabled: app.engine.live === false }, sections.map((section) => section.element));
  const holder = element("div", { className: "gf-changes" }, top, list);
  let drawn = 0;

  async function redraw() {
    if (app.ui.panel !== "changes") return;
    const draw = ++drawn, active = activeChanges(app);
    const bodies = await Promise.all(sections.map((section) => section.content(panel)));
    if (draw !== drawn || app.signal.aborted) return;
    keepingFocus(holder, top, () => {
      refill(top, topOf(panel, active));
      sections.forEach((section, place) => section.fill(bodies[place], active));
    });
  }
  app.on("busy", (busy) => { if (!busy) redraw(); });
  app.on("ui", (keys) => {
    follow(panel, keys);
    if (["panel", "language", "heads"].some((key) => keys.includes(key))) redraw();
  });
  redraw();
  return holder;
}

/** Changes something, and says what went wrong. */
export async function tryChange(app, changes) {
  app.emit("problem", "");
  try {
    await app.set(changes);
  } catch (error) {
    app.emit("problem", error.message);
  }
}

/** Returns one section that folds; while it is folded its body is empty. */
function folded(panel, group, id, content) {
  const summary = element("summary"), about = element("p", { className: "gf-note" }), body = element("div");
  const details = element("details", { name: group, open: id === "words", ontoggle: panel.redraw }, summary, about, body);
  return {
    element: details,
    content: async (given) => (details.open ? content(given) : []),
    fill(children, active) {
      const { app } = panel, count = active.filter(({ section }) => section === id).length;
      refill(summary, app.t(`changes.${id}`), count > 0 && element("span", { className: "gf-count" }, count));
      about.textContent = app.t(`changes.${id}.about`);
      refill(body, children);
    },
  };
}

/** Refills and puts the focus, and what was being typed, where they were: on the control of the same data-key. */
function keepingFocus(holder, otherwise, action) {
  const before = holder.getRootNode().activeElement;
  if (!before || before === holder || !holder.contains(before)) return action();
  const { key } = before.dataset, typed = before.type === "text" ? before.value : null;
  action();
  if (holder.contains(before)) return;
  const after = key ? holder.querySelector(`[data-key="${CSS.escape(key)}"]`) : null;
  if (after && typed !== null) after.value = typed;
  (after && !after.disabled ? after : otherwise).focus({ preventScroll: true });
}

/** Makes masks and rows those of the head or the cell that the reader has just chosen elsewhere. */
function follow(panel, keys) {
  const { app, at } = panel;
  if (keys.includes("heads")) {
    const was = panel.heads ?? {};
    const family = FAMILIES.find(({ id }) => app.ui.heads[id] !== was[id]);
    panel.heads = app.ui.heads;
    const { layer, head } = app.ui.heads[family?.id ?? "cross"];
    if (family && was[family.id]) Object.assign(at, { attention: attentionName(family, layer), head });
  }
  const { name, index } = (keys.includes("selected") && app.ui.selected) || {};
  if (!/\.(scores|weights)$/.test(name)) return;
  const [head, query, key] = index;
  Object.assign(at, { attention: name.replace(/\.\w+$/, ""), head, query, key });
}

/** Returns a control with the key by which it is found again, and its name for those who do not see it. */
function keyed(control, key, label = "") {
  control.dataset.key = key;
  if (label) control.setAttribute("aria-label", label);
  return control;
}

/** Returns such a button. */
function press(key, text, action, { label = "", ...options } = {}) {
  return keyed(button(text, action, options), key, label);
}

// What is changed now

/** Returns the changes complete, as text that can be compared and set again. */
function changesText(app) {
  return JSON.stringify({ ...NO_CHANGES, source: app.sentence, prefix: "", ...app.changes });
}

/** Returns what undoes and redoes changes of one sentence. */
function changesHistory(app) {
  const past = [], future = [];
  let { sentence } = app, present = changesText(app);
  app.on("result", () => {
    const now = changesText(app);
    if (app.sentence !== sentence) past.length = future.length = 0;
    else if (now !== present) {
      past.push(present);
      future.length = 0;
    }
    [sentence, present] = [app.sentence, now];
  });
  const move = (from, to) => () => {
    to.push(present);
    present = from.pop();
    return tryChange(app, JSON.parse(present));
  };
  return { past, future, undo: move(past, future), redo: move(future, past) };
}

/** Returns every change that is on: [{section, text, undo: what to set}]. */
export function activeChanges(app) {
  const { source, prefix, checkpoint, positions, scale, mistakes, patches } = app.changes;
  const found = [];
  const add = (section, text, undo) => found.push({ section, text, undo });
  if ((source ?? app.sentence) !== app.sentence) add("words", app.t("changes.is.source", source), { source: app.sentence });
  if (prefix) add("words", app.t("changes.is.prefix", prefix), { prefix: "" });
  for (const [name, heads] of Object.entries(app.changes.ablated)) {
    add("heads", app.t("changes.is.ablated", heads.join(", "), placeName(app, name)), { ablated: withList(app.changes.ablated, name, []) });
  }
  found.push(...activeMasks(app));
  for (const [name, rows] of Object.entries(app.changes.overrides)) {
    for (const row of rows) {
      const word = app.labels(`${name}.weights`).rows[row[1]] ?? row[1];
      add("hand", app.t("changes.is.override", word, row[0], placeName(app, name)),
        { overrides: withList(app.changes.overrides, name, rows.filter((one) => one !== row)) });
    }
  }
  for (const patch of patches) {
    const here = app.labels(patch.point).rows;
    add("patch", app.t("changes.is.patch", patch.positions.map(([to]) => here[to] ?? to).join(" "), patch.sentence, patch.point),
      { patches: patches.filter((one) => one !== patch) });
  }
  if (!positions) add("parts", app.t("changes.positions"), { positions: true });
  if (!scale) add("parts", app.t("changes.scale"), { scale: true });
  for (const id of mistakes) add("mistakes", app.t(`mistake.${id}`), { mistakes: mistakes.filter((one) => one !== id) });
  if (checkpoint !== null) add("training", app.t("changes.is.checkpoint", checkpoint), { checkpoint: null });
  return found;
}

/** Returns the edits of masks, one entry for each key that is treated alike. */
function activeMasks(app) {
  const { masks } = app.changes;
  return Object.entries(masks).flatMap(([name, cells]) => {
    const { rows, columns } = app.labels(`${name}.weights`);
    const kinds = [...new Set(cells.map(([, key, may]) => `${key} ${may}`))];
    return kinds.map((kind) => {
      const group = cells.filter(([, key, may]) => `${key} ${may}` === kind);
      const [query, key, may] = group[0];
      const who = group.length > 1 ? app.t("changes.many", group.length) : `“${rows[query] ?? query}”`;
      const text = app.t(may ? "changes.is.open" : "changes.is.blocked", who, columns[key] ?? key, placeName(app, name));
      return { section: "masks", text, undo: { masks: withList(masks, name, cells.filter((cell) => !group.includes(cell))) } };
    });
  });
}

/** Returns the lists by name with one of them replaced; an empty one is left out. */
function withList(lists, name, list) {
  const { [name]: _, ...others } = lists;
  return list.length > 0 ? { ...others, [name]: list } : others;
}

/** Returns "Cross-attention, layer 1". */
function placeName(app, attention) {
  const family = FAMILIES.find(({ stack, sublayer }) => attention.startsWith(stack) && attention.endsWith(sublayer));
  return app.t("changes.place", app.t(`family.${family.id}`), attention.match(/\d+/)[0]);
}

function topOf(panel, active) {
  const { app, history } = panel;
  const tool = (id, action, disabled) => press(id, app.t(`changes.${id}`), action, { disabled });
  return [
    app.engine.live === false && element("p", { className: "gf-error" }, app.t("changes.needs")),
    app.changed ? chips(app, active) : element("p", {}, app.t("changes.intro")),
    !app.changed && app.engine.live !== false && firstTries(app),
    element("div", { className: "gf-row" },
      tool("undo", history.undo, history.past.length === 0),
      tool("redo", history.redo, history.future.length === 0),
      tool("reset", () => tryChange(app, { ...NO_CHANGES, source: app.sentence, prefix: "" }), !app.changed),
      linkOf(app) && linkButton(app)),
  ];
}

/** Returns changes that any model understands, for those who do not know where to begin. */
function firstTries(app) {
  const last = attentionName(FAMILIES[1], app.config.decoder_layers - 1);
  const tries = [
    ["positions", { positions: false }],
    ["try.cross", { ablated: { [last]: Array.from({ length: app.config.heads }, (_, head) => head) } }],
    ["try.causal", { mistakes: ["no_causal_mask"] }],
  ];
  return element("div", { className: "gf-row", role: "group", "aria-label": app.t("changes.try") },
    element("span", { className: "gf-note" }, app.t("changes.try")),
    tries.map(([id, changes]) => button(app.t(`changes.${id}`), () => tryChange(app, changes), { className: "gf-chip" })));
}

function chips(app, active) {
  return element("ul", { className: "gf-chips", "aria-label": app.t("changes.active") }, active.map(({ text, undo }) =>
    chip(app, text, () => tryChange(app, undo))));
}

function chip(app, text, remove) {
  return element("li", { className: "gf-chip" }, element("bdi", {}, text),
    press(`x ${text}`, "×", remove, { label: app.t("changes.remove", text) }));
}

function linkButton(app) {
  const shown = element("input", { type: "text", readOnly: true, hidden: true, "aria-label": app.t("changes.link") });
  const copy = button(app.t("changes.link"), async () => {
    shown.value = linkOf(app);
    try {
      await navigator.clipboard.writeText(shown.value);
      copy.textContent = app.t("changes.link.copied");
    } catch {
      shown.hidden = false;
      shown.select();
    }
  });
  return [keyed(copy, "link"), shown];
}

// Words

async function wordsSection(panel) {
  const { app, word, rival } = panel;
  const { current } = app.result;
  const tokens = current.sourceTokens.slice(0, current.sourceIds.length - 1);
  const prefix = field(app.t("changes.prefix"), app.changes.prefix ?? "", "prefix");
  return [
    wordButtons(panel, "word", "source", tokens, 0),
    word !== null && word < tokens.length && (await wordEditor(panel, tokens)),
    element("h3", {}, app.t("changes.prefix")),
    element("p", { className: "gf-note" }, app.t("changes.prefix.about")),
    form(() => tryChange(app, { prefix: prefix.value }), prefix, submit(app.t("changes.force"))),
    wordButtons(panel, "rival", "target", current.outputTokens, 1),
    rival !== null && rival < current.outputTokens.length && (await rivalButtons(panel)),
  ];
}

/** Returns a sentence as buttons; the one that is pressed is `panel[part]`. */
function wordButtons(panel, part, side, tokens, first) {
  const { app } = panel;
  const pick = (at) => {
    panel[part] = panel[part] === at ? null : at;
    panel.redraw();
  };
  const one = (token, at) => {
    const made = press(`${part} ${at}`, element("bdi", {}, token), () => pick(at), { pressed: panel[part] === at });
    for (const [event, lit] of [["pointerenter", [{ side, position: at + first }]], ["pointerleave", []]]) {
      made.addEventListener(event, () => app.light(lit));
    }
    return made;
  };
  return element("div", { className: "gf-row gf-tight", role: "group", "aria-label": app.t(`changes.pick.${side}`) }, tokens.map(one));
}

async function wordEditor(panel, tokens) {
  const { app, word: place } = panel;
  const { sourceIds } = app.result.current;
  const replace = (made) => tryChange(app, { source: withWord(app, sourceIds.slice(0, -1), place, made) });
  const typed = field(app.t("changes.replace.by", tokens[place]), "", "replacement");
  const list = element("datalist", { id: `gf-words-${++groups}` });
  const suggest = () => refill(list, suggestions(app, typed.value).map((value) => element("option", { value })));
  typed.setAttribute("list", list.id);
  typed.addEventListener("input", suggest);
  suggest();
  const near = await nearestWords(app, sourceIds[place]);
  return element("div", { className: "gf-box" },
    form(() => { if (typed.value.trim()) replace(typed.value.trim()); typed.value = ""; }, typed, list, submit(app.t("changes.replace"))),
    near.length > 0 && element("div", { className: "gf-row gf-tight" }, element("span", { className: "gf-note" }, app.t("changes.near")),
      near.map((word) => press(`near ${word}`, element("bdi", {}, word), () => replace(word)))),
    button(app.t("changes.delete", tokens[place]), () => { panel.word = null; replace(""); }, { disabled: tokens.length < 2 }));
}

/** Returns the source with another word (or none) in one place; all around it stays as it was typed. */
function withWord(app, ids, place, word) {
  const { source } = app.engine.tokenizers;
  const text = app.changes.source ?? app.sentence;
  let start = 0, end = 0;
  for (const piece of source.split(text).slice(0, place + 1)) {
    const spaced = piece.replaceAll("▁", " ");
    const bare = source.kind === "characters" ? spaced : spaced.trimStart();
    start = text.indexOf(bare, end);
    if (start < 0) return source.decode([...ids.slice(0, place), ...source.encode(word), ...ids.slice(place + 1)]);
    end = start + bare.length;
  }
  return (text.slice(0, start) + word + text.slice(end)).replace(/ +/g, " ").trim();
}

/** Returns words that begin as typed: those of the examples, then the vocabulary. Pieces of words are of no use here. */
function suggestions(app, typed) {
  const { source } = app.engine.tokenizers;
  if (!["words", "characters"].includes(source.kind)) return [];
  const words = [...app.payload.examples.flatMap(source.split), ...app.payload.source.tokens.slice(4)];
  const fits = (word) => word.toLowerCase().startsWith(typed.trim().toLowerCase());
  return [...new Set(words)].filter(fits).slice(0, SUGGESTIONS);
}

/** Returns the words whose embeddings point most nearly the same way (cosine), where the weights are in the page. */
async function nearestWords(app, id) {
  if (app.engine.live !== true || id < 4) return [];
  const { shape: [count, width], data } = (await app.engine.model(app.changes.checkpoint)).weight("source.tokens.weight");
  const product = (a, b) => {
    let sum = 0;
    for (let d = 0; d < width; d++) sum += data[a * width + d] * data[b * width + d];
    return sum;
  };
  const close = Array.from({ length: count }, (_, other) => product(id, other) / Math.sqrt(product(other, other)));
  const ids = [...close.keys()].filter((other) => other > 3 && other !== id).sort((a, b) => close[b] - close[a]);
  return app.engine.tokens("source", ids.slice(0, RIVALS)).map((token) => token.replaceAll("▁", ""));
}

/** Returns the words that were likeliest at a place of the output, each to be forced there. */
async function rivalButtons({ app, rival }) {
  const { ids } = app.result.current.hypothesis;
  const { shape: [, width], data } = await app.value("log_probs");
  const row = data.subarray(rival * width, (rival + 1) * width);
  const { pad_id: pad, bos_id: bos, eos_id: eos } = app.config;
  const best = [...row.keys()].filter((id) => ![pad, bos, eos].includes(id)).sort((a, b) => row[b] - row[a]).slice(0, RIVALS);
  const texts = app.engine.tokens("target", best);
  const force = (id) => tryChange(app, { prefix: app.engine.decode([...ids.slice(0, rival), id]) });
  return element("div", { className: "gf-box" },
    element("p", { className: "gf-note" }, app.t("changes.rivals", app.engine.decode(ids.slice(0, rival)))),
    element("div", { className: "gf-row gf-tight" }, best.map((id, at) =>
      press(`force ${texts[at]}`, element("bdi", {}, `${texts[at]} `, element("small", {}, numberText(Math.exp(row[id])))), () => force(id)))));
}

function field(label, value, key) {
  return keyed(element("input", { type: "text", value, dir: "auto", autocomplete: "off", spellcheck: false, placeholder: label }), key, label);
}

function form(action, ...controls) {
  return element("form", { className: "gf-row", onsubmit: (event) => { event.preventDefault(); action(); } }, controls);
}

function submit(label) {
  return element("button", { type: "submit" }, label);
}

// Heads

function headsSection({ app }) {
  const { ablated } = app.changes, { heads } = app.config;
  const all = Array.from({ length: heads }, (_, head) => head);
  const set = (names, list) => tryChange(app, { ablated: names.reduce((lists, name) => withList(lists, name, list), ablated) });
  const everyOff = (names) => names.every((name) => ablated[name]?.length === heads);
  const allOff = (names, what) => press(`all ${what}`, app.t("changes.all"), () => set(names, everyOff(names) ? [] : all),
    { pressed: everyOff(names), label: app.t("changes.all.of", what) });
  const toggle = (name, head) => {
    const off = ablated[name] ?? [], pressed = off.includes(head);
    const next = pressed ? off.filter((one) => one !== head) : [...off, head].sort((a, b) => a - b);
    return press(`${name} ${head}`, head, () => set([name], next), { pressed, label: app.t("changes.off", head, placeName(app, name)) });
  };
  return FAMILIES.map((family) => {
    const names = Array.from({ length: app.layersOf(family) }, (_, layer) => attentionName(family, layer));
    const title = app.t(`family.${family.id}`);
    return element("div", { role: "group", "aria-label": title, className: "gf-heads" },
      element("h3", {}, title, " ", allOff(names, title)),
      names.map((name, layer) => element("div", { className: "gf-row gf-tight" },
        element("span", { className: "gf-note" }, `${app.t("word.layer")} ${layer}`),
        all.map((head) => toggle(name, head)), allOff([name], placeName(app, name)))));
  });
}

// Masks, and rows by hand

/** Returns drop-downs that say which attention, and which of its rows or keys, is meant. */
function atChoosers(panel, ...parts) {
  const { app, at } = panel;
  const { rows, columns } = app.labels(`${at.attention}.weights`);
  at.query = Math.min(at.query, rows.length - 1);
  at.key = Math.min(at.key, columns.length - 1);
  const pairs = {
    attention: () => attentionNames(app.config).map((name) => [name, placeName(app, name)]),
    head: () => Array.from({ length: app.config.heads }, (_, head) => [String(head), String(head)]),
    query: () => tokenPairs(rows),
    key: () => tokenPairs(columns),
  };
  return element("div", { className: "gf-fields" }, parts.map((part) => {
    const pick = (value) => {
      at[part] = part === "attention" ? value : Number(value);
      panel.redraw();
    };
    return labelled(app.t(`changes.at.${part}`), keyed(chooser("", pairs[part](), String(at[part]), pick), part));
  }));
}

function labelled(text, control) {
  control.setAttribute("aria-label", text);
  return element("label", {}, element("span", { className: "gf-note" }, text), control);
}

function tokenPairs(tokens) {
  return tokens.map((token, at) => [String(at), `${at} · ${token}`]);
}

function masksSection(panel) {
  const { app, at } = panel;
  const choosers = atChoosers(panel, "attention", "query", "key");
  const { rows, columns, columnSide } = app.labels(`${at.attention}.weights`);
  const may = app.allowed(at.attention, at.query, at.key);
  const left = columns.some((_, key) => app.allowed(at.attention, at.query, key));
  const [query, key] = [rows[at.query], columns[at.key]];
  const edits = activeMasks(app);
  const set = (masks) => tryChange(app, { masks });
  return [
    choosers,
    element("p", { role: "status", className: may ? "" : "gf-blocked" }, app.t(may ? "changes.may" : "changes.may.not", query, key)),
    !left && element("p", { role: "status", className: "gf-blocked" }, app.t("changes.no.key", query)),
    element("div", { className: "gf-row" },
      press("toggle", app.t(may ? "changes.block" : "changes.open"), () => set(toggledCell(app, at, !may))),
      press("hide", app.t("changes.hide", key), () => set(hiding(app, [at.attention], at.key))),
      press("hide all", app.t("changes.hide.all", key), () => set(hiding(app, lookingAt(app, columnSide), at.key)))),
    edits.length > 0 && element("h3", {}, app.t("changes.edits")),
    edits.length > 0 && chips(app, edits),
  ];
}

/** Returns the masks with one cell the other way round: an edit goes away again, or comes in. */
function toggledCell(app, { attention, query, key }, may) {
  const cells = app.changes.masks[attention] ?? [];
  const others = cells.filter((cell) => cell[0] !== query || cell[1] !== key);
  return withList(app.changes.masks, attention, others.length < cells.length ? others : [...cells, [query, key, may]]);
}

/** Returns the masks with a key that nobody may look at, in some attentions; also not what is written later. */
function hiding(app, names, key) {
  const { sourceIds } = app.result.current;
  return names.reduce((masks, name) => {
    const ofTarget = name.startsWith("decoder");
    const first = ofTarget && name.endsWith("self_attention") ? key : 0;
    const last = sourceIds.length + (ofTarget ? LATER : 0);
    const cells = Array.from({ length: Math.max(0, last - first) }, (_, row) => [first + row, key, false]);
    return withList(masks, name, [...(masks[name] ?? []).filter((cell) => cell[1] !== key), ...cells]);
  }, app.changes.masks);
}

/** Returns the attentions whose keys are the source's, or the target's, words. */
function lookingAt(app, side) {
  return attentionNames(app.config).filter((name) => app.labels(`${name}.weights`).columnSide === side);
}

async function handSection(panel) {
  const { app, at } = panel;
  const choosers = atChoosers(panel, "attention", "head", "query");
  const row = await rowOf(panel);
  const { columns } = app.labels(`${at.attention}.weights`);
  const sum = element("span", { className: "gf-note", role: "status" });
  const total = () => row.reduce((all, weight) => all + weight, 0);
  const add = () => { sum.textContent = app.t("changes.sum", numberText(total())); };
  add();
  const sliders = columns.map((token, key) => {
    const shown = element("output", {}, numberText(row[key], 2));
    const slider = element("input", { type: "range", min: "0", max: "1", step: "0.01", value: String(row[key]),
      oninput: () => { row[key] = Number(slider.value); shown.textContent = numberText(row[key], 2); add(); } });
    return element("label", { className: "gf-weight" }, element("bdi", {}, token), keyed(slider, `weight ${key}`, token), shown);
  });
  const fill = (weights) => {
    panel.row.weights = weights;
    panel.redraw();
  };
  return [
    choosers, element("div", { className: "gf-weights" }, sliders), sum,
    element("div", { className: "gf-row" },
      press("normalise", app.t("changes.normalise"), () => fill(row.map((weight) => weight / (total() || 1)))),
      press("even", app.t("changes.even"), () => fill(row.map(() => 1 / row.length))),
      press("apply", app.t("changes.apply"), () => tryChange(app, { overrides: withRow(app, at, row) }), { className: "gf-primary" })),
  ];
}

/** Returns the weights that the reader is writing: at first those that the chosen row has. */
async function rowOf(panel) {
  const { app, at } = panel;
  const { shape: [, rows, columns], data } = await app.value(`${at.attention}.weights`);
  const from = (at.head * rows + at.query) * columns;
  const key = JSON.stringify([at.attention, at.head, at.query, columns, [...data.subarray(from, from + columns)]]);
  if (panel.row?.key !== key) panel.row = { key, weights: [...data.subarray(from, from + columns)] };
  return panel.row.weights;
}

function withRow(app, { attention, head, query }, weights) {
  const rows = (app.changes.overrides[attention] ?? []).filter((row) => row[0] !== head || row[1] !== query);
  const short = weights.map((weight) => Math.round(weight * 1e5) / 1e5);
  return withList(app.changes.overrides, attention, [...rows, [head, query, short]]);
}

// Patches

async function patchSection(panel) {
  const { app, patch } = panel;
  if (app.engine.live === false) return [];
  const points = pointNames(app.config), stream = points.filter((name) => name.endsWith(app.config.norm === "pre" ? ".added" : ".normed"));
  patch.sentence ??= likestExample(app);
  patch.point ??= stream[0] ?? points[0];
  patch.head ??= "";
  const sentence = field(app.t("changes.patch.sentence"), patch.sentence, "patch sentence");
  const pick = (part) => (value) => { patch[part] = value; panel.redraw(); };
  const option = (name) => element("option", { value: name, selected: name === patch.point }, name);
  const point = element("select", { onchange: () => pick("point")(point.value) },
    element("optgroup", { label: app.t("changes.patch.stream") }, stream.map(option)),
    element("optgroup", { label: app.t("changes.patch.more") }, points.filter((name) => !stream.includes(name)).map(option)));
  const heads = [["", app.t("changes.patch.heads")], ...Array.from({ length: app.config.heads }, (_, at) => [String(at), String(at)])];
  return [
    form(() => pick("sentence")(sentence.value), sentence, submit(app.t("changes.patch.use"))),
    element("div", { className: "gf-fields" },
      labelled(app.t("changes.patch.point"), keyed(point, "point")),
      hasHeads(patch.point) && labelled(app.t("word.head"), keyed(chooser("", heads, patch.head, pick("head")), "patch head"))),
    ...(patch.sentence ? await patchPositions(panel) : []),
  ];
}

async function patchPositions(panel) {
  const { app, patch } = panel;
  const [here, there] = await patchTokens(panel);
  if (!there) return [];
  const key = JSON.stringify([here, there]);
  if (patch.key !== key) Object.assign(patch, { key, pairs: differingPlaces(here, there), here: 0, there: 0 });
  const change = (action) => () => { action(); panel.redraw(); };
  const place = (part, tokens) => labelled(app.t(`changes.patch.${part}`),
    keyed(chooser("", tokenPairs(tokens), String(patch[part]), (value) => { patch[part] = Number(value); }), `patch ${part}`));
  const add = () => { patch.pairs = [...patch.pairs.filter(([to]) => to !== patch.here), [patch.here, patch.there]]; };
  const apply = () => tryChange(app, { patches: [...app.changes.patches, {
    point: patch.point, sentence: patch.sentence, positions: patch.pairs,
    ...(hasHeads(patch.point) && patch.head !== "" ? { heads: [Number(patch.head)] } : {}),
  }] });
  return [
    element("ul", { className: "gf-chips", "aria-label": app.t("changes.patch.pairs") }, patch.pairs.map((pair) =>
      chip(app, `${here[pair[0]]} ← ${there[pair[1]]}`, change(() => { patch.pairs = patch.pairs.filter((one) => one !== pair); })))),
    element("div", { className: "gf-fields" }, place("here", here), place("there", there), press("patch add", app.t("changes.patch.add"), change(add))),
    press("patch apply", app.t("changes.apply"), apply, { className: "gf-primary", disabled: patch.pairs.length === 0 }),
  ];
}

/** Returns the tokens at the point's rows, here and in the other sentence, whose own translation is found for that. */
async function patchTokens(panel) {
  const { app, patch } = panel;
  const { rows, rowSide } = app.labels(patch.point);
  const key = JSON.stringify([patch.sentence, app.changes.checkpoint]);
  const changes = app.engineChanges({ ...NO_CHANGES, checkpoint: app.changes.checkpoint });
  if (patch.donor?.key !== key) patch.donor = { key, made: app.translated(patch.sentence, "", changes) };
  try {
    const { sourceTokens, targetTokens } = await patch.donor.made;
    return [rows, rowSide === "source" ? sourceTokens : targetTokens];
  } catch (error) {
    patch.donor = null;
    app.emit("problem", error.message);
    return [rows, null];
  }
}

/** Returns pairs of equal places whose words differ, after the beginning and before the end that are the same. */
function differingPlaces(here, there) {
  const least = Math.min(here.length, there.length);
  let start = 0, end = 0;
  while (start < least && here[start] === there[start]) start++;
  while (end < least - start && here.at(-1 - end) === there.at(-1 - end)) end++;
  const places = Array.from({ length: least - start - end }, (_, at) => start + at);
  return places.filter((at) => here[at] !== there[at]).map((at) => [at, at]);
}

/** Returns the example that is nearest to the sentence: as long, with the fewest other words. */
function likestExample(app) {
  const words = app.sentence.split(" ");
  const distance = (text) => {
    const others = text.split(" ");
    return Math.abs(others.length - words.length) * 100 + others.filter((word, at) => word !== words[at]).length;
  };
  return app.payload.examples.filter((text) => text !== app.sentence).sort((a, b) => distance(a) - distance(b))[0] ?? "";
}

// Switches

function switchRow(name, about, checked, set, disabled = false) {
  const box = element("input", { type: "checkbox", checked, disabled, onchange: () => set(box.checked) });
  return element("div", { className: "gf-switch" }, element("label", {}, keyed(box, `switch ${name}`), element("b", {}, name)),
    element("p", { className: "gf-note" }, about));
}

function partsSection({ app }) {
  return ["positions", "scale"].map((part) => switchRow(app.t(`changes.${part}`), app.t(`changes.${part}.about`), !app.changes[part],
    (off) => tryChange(app, { [part]: !off })));
}

function mistakesSection({ app }) {
  const { mistakes } = app.changes;
  const { sourceIds, targetIds } = app.result.current;
  return MISTAKES.map(({ id, first }) => {
    const point = first(app.config);
    const set = (on) => tryChange(app, { mistakes: [...mistakes.filter((one) => one !== id), ...(on ? [id] : [])] });
    const row = switchRow(app.t(`mistake.${id}`), app.t(`mistake.${id}.about`), mistakes.includes(id), set, point === null);
    const equal = id === "target_padding_mask" && sourceIds.length === targetIds.length;
    row.append(element("p", { className: "gf-note" }, point === null ? app.t(`mistake.${id}.none`) : app.t("changes.first"), " ",
      point && button(point, () => app.show({ stage: "point", point: { name: point, head: 0 } }), { className: "gf-link" }),
      equal ? ` ${app.t("changes.equal")}` : ""));
    return row;
  });
}
