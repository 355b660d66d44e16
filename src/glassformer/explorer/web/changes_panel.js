// "What if?": everything that can be changed. Each section shows its part of app.changes and sets it; what
// that does to the output stands at the top of the page. Only the section that is open has elements.
import { attentionName, FAMILIES } from "./app.js";
import { MISTAKES, NO_CHANGES } from "./changes.js";
import { button, chooser, element, numberText, refill } from "./dom.js";
import { linkOf } from "./link.js";
import { attentionNames, pointNames } from "./model.js";
import { hasHeads } from "./point_view.js";

const SECTIONS = {
  words: wordsSection,
  heads: headsSection,
  masks: masksSection,
  hand: handSection,
  patch: patchSection,
  parts: partsSection,
  mistakes: mistakesSection,
};
const RIVALS = 7; // other words that are offered in place of one
const SUGGESTIONS = 40;
const LATER = 50; // an output may be so many tokens longer than its source: these do not see what is hidden
let groups = 0;

/** Returns the panel as an element. */
export function createChangesPanel(app) {
  const { layer, head } = app.ui.heads.cross;
  const at = { attention: attentionName(FAMILIES[1], layer), head, query: 0, key: 0 };
  const panel = { app, at, redraw, word: null, rival: null, row: null, patch: {} };
  panel.history = changesHistory(app);
  const top = element("div", { tabindex: "-1" });
  const group = `gf-changes-${++groups}`;
  const sections = Object.entries(SECTIONS).map(([id, content]) => folded(panel, group, id, content));
  const disabled = app.engine.live === false;
  const holder = element(
    "div",
    { className: "gf-changes" },
    top,
    element(
      "fieldset",
      { disabled },
      sections.map((section) => section.element),
    ),
  );
  let drawn = 0;

  async function redraw() {
    if (app.ui.panel !== "changes") return;
    const draw = ++drawn,
      active = activeChanges(app);
    const bodies = await Promise.all(sections.map((section) => section.content(panel)));
    if (draw !== drawn || app.signal.aborted) return;
    keepingFocus(holder, top, () => {
      refill(top, topOf(panel, active));
      sections.forEach((section, place) => section.fill(bodies[place], active));
    });
  }
  app.on("busy", (busy) => {
    if (!busy) redraw();
  });
  app.on("ui", (keys) => {
    if (keys.includes("selected")) follow(at, app.ui.selected);
    if (keys.includes("panel") || keys.includes("language")) redraw();
  });
  redraw();
  return holder;
}

/** Changes something, and says what went wrong. */
export function tryChange(app, changes) {
  return app.attempt(() => app.set(changes));
}

/** Returns one section that folds; while it is folded its body is empty. */
function folded(panel, group, id, content) {
  const summary = element("summary"),
    about = element("p", { className: "gf-note" }),
    body = element("div");
  const parts = [summary, about, body];
  const details = element("details", { name: group, open: id === "words", ontoggle: panel.redraw }, parts);
  return {
    element: details,
    content: async (given) => (details.open ? content(given) : []),
    fill(children, active) {
      const { app } = panel,
        count = active.filter(({ section }) => section === id).length;
      refill(summary, app.t(`changes.${id}`), count > 0 && element("span", { className: "gf-count" }, count));
      about.textContent = app.t(`changes.${id}.about`);
      refill(body, children);
    },
  };
}

/** Refills and puts the focus, and what was being typed, where they were: on the control of this data-key. */
function keepingFocus(holder, otherwise, action) {
  const before = holder.getRootNode().activeElement;
  const { key } = before?.dataset ?? {},
    kept = holder.contains(before);
  action();
  if (!kept || holder.contains(before)) return;
  const after = key ? holder.querySelector(`[data-key="${CSS.escape(key)}"]:enabled`) : null;
  if (after?.type === "text") after.value = before.value;
  (after ?? otherwise).focus({ preventScroll: true });
}

/** Makes masks and rows by hand those of the cell that the reader has chosen in a grid. */
function follow(at, selected) {
  if (!/\.(scores|weights)$/.test(selected?.name)) return;
  const [head, query, key] = selected.index;
  Object.assign(at, { attention: selected.name.replace(/\.\w+$/, ""), head, query, key });
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

/** Returns such a button around a word. */
function wordPress(key, word, action, options) {
  return press(key, element("bdi", {}, word), action, options);
}

function row(...children) {
  return element("div", { className: "gf-row" }, children);
}

function tightRow(label, ...children) {
  return element("div", { className: "gf-row gf-tight", role: "group", "aria-label": label }, children);
}

// What is changed now

/** Returns the changes complete, as text that can be compared and set again. */
function changesText(app) {
  return JSON.stringify({ ...NO_CHANGES, source: app.sentence, prefix: "", ...app.changes });
}

/** Returns what undoes and redoes the changes of one sentence. */
function changesHistory(app) {
  const past = [],
    future = [];
  let { sentence } = app,
    present = changesText(app);
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

/** Returns every change that is on: [{section, text, undo() → what to set, as things are then}]. */
function activeChanges(app) {
  const { source, prefix, checkpoint, positions, scale, mistakes, patches, ablated } = app.changes;
  const one = (on, section, text, undo) => (on ? [{ section, text, undo: () => undo }] : []);
  const each = (list, section, text, undo) =>
    list.map((entry) => ({ section, text: text(entry), undo: () => undo(entry) }));
  return [
    ...one((source ?? app.sentence) !== app.sentence, "words", app.t("changes.is.source", source), {
      source: app.sentence,
    }),
    ...one(prefix, "words", app.t("changes.is.prefix", prefix), { prefix: "" }),
    ...each(
      Object.entries(ablated),
      "heads",
      ([name, heads]) => app.t("changes.is.ablated", heads.join(", "), placeName(app, name)),
      ([name]) => ({ ablated: withList(app.changes.ablated, name, []) }),
    ),
    ...activeMasks(app),
    ...activeRows(app),
    ...each(
      patches,
      "patch",
      ({ point, sentence, positions: pairs }) => {
        const words = pairs.map(([to]) => app.labels(point).rows[to] ?? to).join(" ");
        return app.t("changes.is.patch", words, sentence, point);
      },
      (patch) => ({ patches: without(app.changes.patches, patch) }),
    ),
    ...one(!positions, "parts", app.t("changes.positions"), { positions: true }),
    ...one(!scale, "parts", app.t("changes.scale"), { scale: true }),
    ...each(
      mistakes,
      "mistakes",
      (id) => app.t(`mistake.${id}`),
      (id) => ({ mistakes: without(app.changes.mistakes, id) }),
    ),
    ...one(checkpoint !== null, "training", app.t("changes.is.checkpoint", checkpoint), { checkpoint: null }),
  ];
}

/** Returns the edits of masks, one entry for each key that is treated alike. */
function activeMasks(app) {
  const { masks } = app.changes,
    kind = ([, key, may]) => `${key} ${may}`;
  return Object.entries(masks).flatMap(([name, cells]) => {
    const { rows, columns } = app.labels(`${name}.weights`);
    return [...new Set(cells.map(kind))].map((alike) => {
      const [[query, key, may], ...more] = cells.filter((cell) => kind(cell) === alike);
      const others = () => (app.changes.masks[name] ?? []).filter((cell) => kind(cell) !== alike);
      const who = more.length > 0 ? app.t("changes.many", more.length + 1) : `“${rows[query] ?? query}”`;
      return {
        section: "masks",
        text: app.t(`changes.is.${may ? "open" : "blocked"}`, who, columns[key] ?? key, placeName(app, name)),
        undo: () => ({ masks: withList(app.changes.masks, name, others()) }),
      };
    });
  });
}

function activeRows(app) {
  const { overrides } = app.changes;
  return Object.entries(overrides).flatMap(([name, rows]) =>
    rows.map((one) => {
      const others = () => without(app.changes.overrides[name] ?? [], one);
      const word = app.labels(`${name}.weights`).rows[one[1]] ?? one[1];
      return {
        section: "hand",
        text: app.t("changes.is.override", word, one[0], placeName(app, name)),
        undo: () => ({ overrides: withList(app.changes.overrides, name, others()) }),
      };
    }),
  );
}

function without(list, entry) {
  return list.filter((one) => one !== entry);
}

/** Returns the lists by name with one of them replaced; an empty one is left out. */
function withList(lists, name, list) {
  const all = { ...lists, [name]: list };
  if (list.length === 0) delete all[name];
  return all;
}

/** Returns "Cross-attention, layer 1". */
function placeName(app, attention) {
  const [stack, , layer, sublayer] = attention.split(".");
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === sublayer);
  return app.t("changes.place", app.t(`family.${family.id}`), layer);
}

function topOf({ app, history }, active) {
  const tool = (id, action, disabled) => press(id, app.t(`changes.${id}`), action, { disabled });
  const reset = () => tryChange(app, { ...NO_CHANGES, source: app.sentence, prefix: "" });
  return [
    app.engine.live === false && element("p", { className: "gf-error" }, app.t("changes.needs")),
    app.changed ? chips(app, active) : element("p", {}, app.t("changes.intro")),
    !app.changed && app.engine.live !== false && firstTries(app),
    row(
      tool("undo", history.undo, !history.past.length),
      tool("redo", history.redo, !history.future.length),
      tool("reset", reset, !app.changed),
      linkOf(app) && linkButton(app),
    ),
  ];
}

/** Returns changes that any model understands, for those who do not know where to begin. */
function firstTries(app) {
  const last = attentionName(FAMILIES[1], app.config.decoder_layers - 1);
  const tries = Object.entries({
    positions: { positions: false },
    "try.cross": { ablated: { [last]: Array.from({ length: app.config.heads }, (_, head) => head) } },
    "try.causal": { mistakes: ["no_causal_mask"] },
  });
  const title = app.t("changes.try"),
    className = "gf-chip";
  return tightRow(
    title,
    element("span", { className: "gf-note" }, title),
    tries.map(([id, changes]) =>
      button(app.t(`changes.${id}`), () => tryChange(app, changes), { className }),
    ),
  );
}

function chips(app, active) {
  return element(
    "ul",
    { className: "gf-chips", "aria-label": app.t("changes.active") },
    active.map(({ text, undo }) => chip(app, text, () => tryChange(app, undo()))),
  );
}

function chip(app, text, remove) {
  return element(
    "li",
    { className: "gf-chip" },
    element("bdi", {}, text),
    press(`x ${text}`, "×", remove, { label: app.t("changes.remove", text) }),
  );
}

/** Returns a button that copies the link; where that is not allowed, the link to be copied. */
function linkButton(app) {
  const title = app.t("changes.link");
  const shown = element("input", { type: "text", readOnly: true, hidden: true, "aria-label": title });
  const copy = press("link", title, async () => {
    shown.value = linkOf(app);
    try {
      await navigator.clipboard.writeText(shown.value);
      copy.textContent = app.t("changes.link.copied");
    } catch {
      shown.hidden = false;
      shown.select();
    }
  });
  return [copy, shown];
}

// Words

async function wordsSection(panel) {
  const { app, word, rival } = panel,
    { current } = app.result;
  const tokens = current.sourceTokens.slice(0, current.sourceIds.length - 1);
  const prefix = field(app.t("changes.prefix"), app.changes.prefix ?? "", "prefix");
  return [
    wordButtons(panel, "word", "source", tokens, 0),
    word !== null && word < tokens.length && (await wordEditor(panel, tokens)),
    element("h3", {}, app.t("changes.prefix")),
    element("p", { className: "gf-note" }, app.t("changes.prefix.about")),
    form(() => tryChange(app, { prefix: prefix.value }), app.t("changes.force"), prefix),
    wordButtons(panel, "rival", "target", current.outputTokens, 1),
    rival !== null && rival < current.outputTokens.length && (await rivalButtons(panel)),
  ];
}

/** Returns a sentence as buttons; the place of the one that is pressed is `panel[part]`. */
function wordButtons(panel, part, side, tokens, first) {
  const { app } = panel;
  return tightRow(
    app.t(`changes.pick.${side}`),
    tokens.map((token, at) => {
      const pick = () => {
        panel[part] = panel[part] === at ? null : at;
        panel.redraw();
      };
      const made = wordPress(`${part} ${at}`, token, pick, { pressed: panel[part] === at });
      made.addEventListener("pointerenter", () => app.light([{ side, position: at + first }]));
      made.addEventListener("pointerleave", () => app.light([]));
      return made;
    }),
  );
}

async function wordEditor(panel, tokens) {
  const { app, word: place } = panel,
    { sourceIds } = app.result.current;
  const replace = (made) => tryChange(app, { source: withWord(app, sourceIds.slice(0, -1), place, made) });
  const typed = field(app.t("changes.replace.by", tokens[place]), "", "replacement");
  const list = element("datalist", { id: `gf-words-${++groups}` });
  const suggest = () =>
    refill(
      list,
      suggestions(app, typed.value).map((value) => element("option", { value })),
    );
  const apply = () => {
    if (typed.value.trim()) replace(typed.value.trim());
    typed.value = "";
  };
  const remove = () => {
    panel.word = null;
    replace("");
  };
  typed.setAttribute("list", list.id);
  typed.addEventListener("input", suggest);
  suggest();
  const near = await nearestWords(app, sourceIds[place]),
    title = app.t("changes.near");
  return element(
    "div",
    { className: "gf-box" },
    form(apply, app.t("changes.replace"), typed, list),
    near.length > 0 &&
      tightRow(
        title,
        element("span", { className: "gf-note" }, title),
        near.map((word) => wordPress(`near ${word}`, word, () => replace(word))),
      ),
    button(app.t("changes.delete", tokens[place]), remove, { disabled: tokens.length < 2 }),
  );
}

/** Returns the source with another word (or none) in one place; all around it stays as it was typed. */
function withWord(app, ids, place, word) {
  const { source } = app.engine.tokenizers,
    text = app.changes.source ?? app.sentence;
  let start = 0,
    end = 0;
  for (const piece of source.split(text).slice(0, place + 1)) {
    const spaced = piece.replaceAll("▁", " ");
    const bare = source.kind === "characters" ? spaced : spaced.trimStart();
    start = text.indexOf(bare, end);
    if (start < 0) return source.decode(ids.toSpliced(place, 1, ...source.encode(word)));
    end = start + bare.length;
  }
  return (text.slice(0, start) + word + text.slice(end)).replace(/ +/g, " ").trim();
}

/** Returns words that begin as typed: those of the examples, then the vocabulary; no pieces of words. */
function suggestions(app, typed) {
  const { source } = app.engine.tokenizers;
  if (!["words", "characters"].includes(source.kind)) return [];
  const words = [...app.payload.examples.flatMap(source.split), ...app.payload.source.tokens.slice(4)];
  const fits = (word) => word.toLowerCase().startsWith(typed.trim().toLowerCase());
  return [...new Set(words)].filter(fits).slice(0, SUGGESTIONS);
}

/** Returns the words whose embeddings point most nearly the same way (cosine), if the weights are here. */
async function nearestWords(app, id) {
  if (app.engine.live !== true || id < 4) return [];
  const { shape, data } = (await app.engine.model(app.changes.checkpoint)).weight("source.tokens.weight");
  const vector = (word) => data.subarray(word * shape[1], (word + 1) * shape[1]);
  const product = (a, b) => a.reduce((sum, value, d) => sum + value * b[d], 0);
  const here = vector(id);
  const cosine = (word) => product(here, vector(word)) / Math.sqrt(product(vector(word), vector(word)));
  const other = (word) => word > 3 && word !== id;
  const close = Array.from({ length: shape[0] }, (_, word) => (other(word) ? cosine(word) : -Infinity));
  const ids = [...close.keys()].sort((a, b) => close[b] - close[a]).slice(0, Math.min(RIVALS, shape[0] - 5));
  return app.engine.tokens("source", ids).map((token) => token.replaceAll("▁", ""));
}

/** Returns the words that were likeliest at a place of the output, each to be forced there. */
async function rivalButtons({ app, rival }) {
  const { ids } = app.result.current.hypothesis;
  const {
    shape: [, width],
    data,
  } = await app.value("log_probs");
  const logProbs = data.subarray(rival * width, (rival + 1) * width);
  const { pad_id: pad, bos_id: bos, eos_id: eos } = app.config;
  const others = [...logProbs.keys()].filter((id) => ![pad, bos, eos].includes(id));
  const best = others.sort((a, b) => logProbs[b] - logProbs[a]).slice(0, RIVALS);
  const force = (id) => tryChange(app, { prefix: app.engine.decode([...ids.slice(0, rival), id]) });
  const title = app.t("changes.rivals", app.engine.decode(ids.slice(0, rival)));
  return element(
    "div",
    { className: "gf-box" },
    element("p", { className: "gf-note" }, title),
    tightRow(
      title,
      app.engine
        .tokens("target", best)
        .map((text, at) =>
          wordPress(
            `force ${text}`,
            [`${text} `, element("small", {}, numberText(Math.exp(logProbs[best[at]])))],
            () => force(best[at]),
          ),
        ),
    ),
  );
}

function field(label, value, key) {
  const looks = { type: "text", dir: "auto", autocomplete: "off", spellcheck: false };
  return keyed(element("input", { ...looks, value, placeholder: label }), key, label);
}

function form(action, label, ...controls) {
  const onsubmit = (event) => {
    event.preventDefault();
    action();
  };
  const submit = element("button", { type: "submit" }, label);
  return element("form", { className: "gf-row", onsubmit }, controls, submit);
}

// Heads

function headsSection({ app }) {
  const { ablated } = app.changes,
    { heads } = app.config;
  const all = Array.from({ length: heads }, (_, head) => head);
  const set = (names, list) => {
    const lists = names.reduce((others, name) => withList(others, name, list), app.changes.ablated);
    tryChange(app, { ablated: lists });
  };
  const allOff = (names, what) => {
    const pressed = names.every((name) => ablated[name]?.length === heads);
    return press(`all ${what}`, app.t("changes.all"), () => set(names, pressed ? [] : all), {
      pressed,
      label: app.t("changes.all.of", what),
    });
  };
  const toggle = (name, head) => {
    const pressed = Boolean(ablated[name]?.includes(head));
    const others = () => without(app.changes.ablated[name] ?? [], head);
    const turn = () => set([name], pressed ? others() : [...others(), head].sort((a, b) => a - b));
    const label = app.t("changes.off", head, placeName(app, name));
    return press(`${name} ${head}`, head, turn, { pressed, label });
  };
  return FAMILIES.map((family) => {
    const names = Array.from({ length: app.layersOf(family) }, (_, layer) => attentionName(family, layer));
    const title = app.t(`family.${family.id}`);
    return element(
      "div",
      { className: "gf-heads" },
      element("h3", {}, title, " ", allOff(names, title)),
      names.map((name, layer) =>
        tightRow(
          placeName(app, name),
          element("span", { className: "gf-note" }, `${app.t("word.layer")} ${layer}`),
          all.map((head) => toggle(name, head)),
          allOff([name], placeName(app, name)),
        ),
      ),
    );
  });
}

// Masks, and rows by hand

/** Returns drop-downs that say which attention, and which of its heads, rows and keys, is meant. */
function atChoosers(panel, ...parts) {
  const { app, at } = panel,
    { rows, columns } = app.labels(`${at.attention}.weights`);
  at.query = Math.min(at.query, rows.length - 1);
  at.key = Math.min(at.key, columns.length - 1);
  const pairs = {
    attention: () => attentionNames(app.config).map((name) => [name, placeName(app, name)]),
    head: () => Array.from({ length: app.config.heads }, (_, head) => [String(head), String(head)]),
    query: () => tokenPairs(rows),
    key: () => tokenPairs(columns),
  };
  return element(
    "div",
    { className: "gf-fields" },
    parts.map((part) => {
      const pick = (value) => {
        at[part] = part === "attention" ? value : Number(value);
        panel.redraw();
      };
      return labelled(app.t(`changes.at.${part}`), chooser("", pairs[part](), String(at[part]), pick), part);
    }),
  );
}

function labelled(text, control, key) {
  return element("label", {}, element("span", { className: "gf-note" }, text), keyed(control, key, text));
}

function tokenPairs(tokens) {
  return tokens.map((token, at) => [String(at), `${at} · ${token}`]);
}

function masksSection(panel) {
  const { app, at } = panel;
  const choosers = atChoosers(panel, "attention", "query", "key");
  const labels = (name) => app.labels(`${name}.weights`);
  const { rows, columns, columnSide } = labels(at.attention);
  const query = rows[at.query],
    key = columns[at.key],
    may = app.allowed(at.attention, at.query, at.key);
  const left = columns.some((_, place) => app.allowed(at.attention, at.query, place));
  const everywhere = attentionNames(app.config).filter((name) => labels(name).columnSide === columnSide);
  const set = (masks) => tryChange(app, { masks });
  const said = (text, good) => element("p", { role: "status", className: good ? "" : "gf-blocked" }, text);
  const edits = activeMasks(app);
  return [
    choosers,
    said(app.t(may ? "changes.may" : "changes.may.not", query, key), may),
    !left && said(app.t("changes.no.key", query), false),
    row(
      press("toggle", app.t(may ? "changes.block" : "changes.open"), () => set(toggledCell(app, at, !may))),
      press("hide", app.t("changes.hide", key), () => set(hiding(app, [at.attention], at.key))),
      press("hide all", app.t("changes.hide.all", key), () => set(hiding(app, everywhere, at.key))),
    ),
    edits.length > 0 && element("h3", {}, app.t("changes.edits")),
    edits.length > 0 && chips(app, edits),
  ];
}

/** Returns the masks with one cell the other way round: an edit goes away again, or comes in. */
function toggledCell(app, { attention, query, key }, may) {
  const cells = app.changes.masks[attention] ?? [];
  const others = cells.filter((cell) => cell[0] !== query || cell[1] !== key);
  const edited = others.length < cells.length ? others : [...cells, [query, key, may]];
  return withList(app.changes.masks, attention, edited);
}

/** Returns the masks with a key that nobody may look at in some attentions, not even words written later. */
function hiding(app, names, key) {
  const { length } = app.result.current.sourceIds;
  return names.reduce((masks, name) => {
    const ofTarget = name.startsWith("decoder");
    const first = ofTarget && name.endsWith("self_attention") ? key : 0;
    const count = Math.max(0, length + (ofTarget ? LATER : 0) - first);
    const cells = Array.from({ length: count }, (_, place) => [first + place, key, false]);
    return withList(masks, name, [...(masks[name] ?? []).filter((cell) => cell[1] !== key), ...cells]);
  }, app.changes.masks);
}

async function handSection(panel) {
  const { app, at } = panel;
  const choosers = atChoosers(panel, "attention", "head", "query");
  const weights = await rowOf(panel),
    total = () => weights.reduce((sum, weight) => sum + weight, 0);
  const summed = () => app.t("changes.sum", numberText(total()));
  const sum = element("span", { className: "gf-note", role: "status" }, summed());
  const sliders = app.labels(`${at.attention}.weights`).columns.map((token, key) => {
    const shown = element("output", {}, weights[key].toFixed(2));
    const oninput = () => {
      weights[key] = Number(slider.value);
      shown.textContent = weights[key].toFixed(2);
      sum.textContent = summed();
    };
    const limits = { min: "0", max: "1", step: "0.01", value: String(weights[key]) };
    const slider = keyed(element("input", { type: "range", ...limits, oninput }), `weight ${key}`, token);
    return element("label", { className: "gf-weight" }, element("bdi", {}, token), slider, shown);
  });
  const fill = (rule) => () => {
    panel.row.weights = weights.map(rule(total() || 1));
    panel.redraw();
  };
  const apply = () => tryChange(app, { overrides: withRow(app, at, weights) });
  return [
    choosers,
    element("div", { className: "gf-weights" }, sliders),
    sum,
    row(
      press(
        "normalise",
        app.t("changes.normalise"),
        fill((all) => (weight) => weight / all),
      ),
      press(
        "even",
        app.t("changes.even"),
        fill(() => () => 1 / weights.length),
      ),
      press("apply", app.t("changes.apply"), apply, { className: "gf-primary" }),
    ),
  ];
}

/** Returns the weights that the reader is writing: at first those that the chosen row has. */
async function rowOf(panel) {
  const { attention, head, query } = panel.at;
  const {
    shape: [, rows, columns],
    data,
  } = await panel.app.value(`${attention}.weights`);
  const from = (head * rows + query) * columns,
    weights = [...data.subarray(from, from + columns)];
  const key = JSON.stringify([attention, head, query, weights]);
  if (panel.row?.key !== key) panel.row = { key, weights };
  return panel.row.weights;
}

function withRow(app, { attention, head, query }, weights) {
  const { overrides } = app.changes;
  const others = (overrides[attention] ?? []).filter((one) => one[0] !== head || one[1] !== query);
  const short = weights.map((weight) => Math.round(weight * 1e5) / 1e5);
  return withList(overrides, attention, [...others, [head, query, short]]);
}

// Patches

async function patchSection(panel) {
  const { app, patch } = panel,
    points = pointNames(app.config);
  if (app.engine.live === false) return [];
  const stream = points.filter((name) => name.endsWith(app.config.norm === "pre" ? ".added" : ".normed"));
  patch.sentence ??= likestExample(app);
  patch.point ??= stream[0];
  patch.head ??= "";
  const pick = (part) => (value) => {
    patch[part] = value;
    panel.redraw();
  };
  const sentence = field(app.t("changes.patch.sentence"), patch.sentence, "patch sentence");
  const options = (label, names) =>
    element(
      "optgroup",
      { label: app.t(label) },
      names.map((name) => element("option", { value: name, selected: name === patch.point }, name)),
    );
  const point = element(
    "select",
    { onchange: () => pick("point")(point.value) },
    options("changes.patch.stream", stream),
    options(
      "changes.patch.more",
      points.filter((name) => !stream.includes(name)),
    ),
  );
  const heads = Array.from({ length: app.config.heads }, (_, head) => [String(head), String(head)]);
  const head = () => chooser("", [["", app.t("changes.patch.heads")], ...heads], patch.head, pick("head"));
  return [
    form(() => pick("sentence")(sentence.value), app.t("changes.patch.use"), sentence),
    element(
      "div",
      { className: "gf-fields" },
      labelled(app.t("changes.patch.point"), point, "point"),
      hasHeads(patch.point) && labelled(app.t("word.head"), head(), "patch head"),
    ),
    ...(patch.sentence ? await patchPositions(panel) : []),
  ];
}

async function patchPositions(panel) {
  const { app, patch } = panel,
    here = app.labels(patch.point).rows,
    there = await patchTokens(panel);
  if (!there) return [];
  const key = JSON.stringify([here, there]);
  if (patch.key !== key) {
    Object.assign(patch, { key, pairs: differingPlaces(here, there), here: 0, there: 0 });
  }
  const pairs = (made) => () => {
    patch.pairs = made();
    panel.redraw();
  };
  const place = (part, tokens) => {
    const pick = (value) => {
      patch[part] = Number(value);
    };
    const choose = chooser("", tokenPairs(tokens), String(patch[part]), pick);
    return labelled(app.t(`changes.patch.${part}`), choose, `patch ${part}`);
  };
  const add = pairs(() => [...patch.pairs.filter(([to]) => to !== patch.here), [patch.here, patch.there]]);
  const heads = hasHeads(patch.point) && patch.head ? { heads: [Number(patch.head)] } : {};
  const made = { point: patch.point, sentence: patch.sentence, positions: patch.pairs, ...heads };
  const apply = () => tryChange(app, { patches: [...app.changes.patches, made] });
  const disabled = patch.pairs.length === 0;
  return [
    element(
      "ul",
      { className: "gf-chips", "aria-label": app.t("changes.patch.pairs") },
      patch.pairs.map((pair) =>
        chip(
          app,
          `${here[pair[0]]} ← ${there[pair[1]]}`,
          pairs(() => without(patch.pairs, pair)),
        ),
      ),
    ),
    element(
      "div",
      { className: "gf-fields" },
      place("here", here),
      place("there", there),
      press("patch add", app.t("changes.patch.add"), add),
    ),
    press("patch apply", app.t("changes.apply"), apply, { className: "gf-primary", disabled }),
  ];
}

/** Returns the other sentence's tokens at the point's rows, or null; it is translated for that. */
async function patchTokens({ app, patch }) {
  const { checkpoint } = app.changes,
    key = JSON.stringify([patch.sentence, checkpoint]);
  try {
    if (patch.donor?.key !== key) {
      const changes = app.engineChanges({ ...NO_CHANGES, checkpoint });
      patch.donor = { key, made: app.translated(patch.sentence, "", changes) };
    }
    const { sourceTokens, targetTokens } = await patch.donor.made;
    return app.labels(patch.point).rowSide === "source" ? sourceTokens : targetTokens;
  } catch (error) {
    app.emit("problem", error.message);
    return null;
  }
}

/** Returns pairs of equal places whose words differ, between the beginning and the end that are the same. */
function differingPlaces(here, there) {
  const least = Math.min(here.length, there.length);
  let start = 0,
    end = 0;
  while (start < least && here[start] === there[start]) start++;
  while (end < least - start && here.at(-1 - end) === there.at(-1 - end)) end++;
  const places = Array.from({ length: least - start - end }, (_, place) => start + place);
  return places.filter((place) => here[place] !== there[place]).map((place) => [place, place]);
}

/** Returns the example that is nearest to the sentence: as long, with the fewest other words. */
function likestExample(app) {
  const words = app.sentence.split(" ");
  const distance = (text) => {
    const others = text.split(" ");
    const differing = others.filter((word, place) => word !== words[place]).length;
    return Math.abs(others.length - words.length) * 100 + differing;
  };
  const others = app.payload.examples.filter((text) => text !== app.sentence);
  return others.sort((a, b) => distance(a) - distance(b))[0] ?? "";
}

// Switches

function switchRow(name, about, checked, set, disabled = false) {
  const box = element("input", { type: "checkbox", checked, disabled, onchange: () => set(box.checked) });
  const label = element("label", {}, keyed(box, `switch ${name}`), element("b", {}, name));
  return element("div", { className: "gf-switch" }, label, element("p", { className: "gf-note" }, about));
}

function partsSection({ app }) {
  return ["positions", "scale"].map((part) => {
    const set = (off) => tryChange(app, { [part]: !off });
    return switchRow(app.t(`changes.${part}`), app.t(`changes.${part}.about`), !app.changes[part], set);
  });
}

function mistakesSection({ app }) {
  const { mistakes } = app.changes,
    { sourceIds, targetIds } = app.result.current;
  return MISTAKES.map(({ id, first }) => {
    const point = first(app.config),
      on = mistakes.includes(id);
    const show = () => app.show({ stage: "point", point: { name: point, head: 0 } });
    const others = () => without(app.changes.mistakes, id);
    const set = (wanted) => tryChange(app, { mistakes: wanted ? [...others(), id] : others() });
    const made = switchRow(app.t(`mistake.${id}`), app.t(`mistake.${id}.about`), on, set, !point);
    const equal = id === "target_padding_mask" && sourceIds.length === targetIds.length;
    const told = app.t(point ? "changes.first" : `mistake.${id}.none`);
    made.append(
      element(
        "p",
        { className: "gf-note" },
        `${told} `,
        point && button(point, show, { className: "gf-link" }),
        equal && ` ${app.t("changes.equal")}`,
      ),
    );
    return made;
  });
}
