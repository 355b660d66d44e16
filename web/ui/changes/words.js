// Words: a different source, a forced beginning of the output.
import { dot, largestAt, rowOf } from "../../engine/tensor.js";
import { numberText } from "../../engine/number_text.js";
import { button, element, refill } from "../dom.js";
import { field, form, tightRow, tryChange, wordPress } from "./controls.js";
/**
 * @import { TokenizerData } from "../../engine/types.js"
 * @import { App } from "../app.js"
 * @import { ChangesPanel, Child, Token } from "../types.js"
 */

const RIVALS = 7; // number of replacements offered for a word
const SUGGESTIONS = 40;
let lists = 0;

/**
 * @param {ChangesPanel} panel
 * @returns {Promise<Child[]>}
 */
export async function wordsSection(panel) {
  const { app, word, rival } = panel,
    { current } = app.result;
  const tokens = current.sourceTokens.slice(0, current.sourceIds.length - 1);
  const prefix = field(app.t("changes.prefix"), app.changes.prefix ?? "", "prefix");
  return [
    wordButtons(panel, "word", "source", tokens),
    word !== null && word < tokens.length && (await wordEditor(panel, tokens, word)),
    element("h3", {}, app.t("changes.prefix")),
    element("p", { className: "gf-note" }, app.t("changes.prefix.about")),
    form(() => tryChange(app, { prefix: prefix.value }), app.t("changes.force"), prefix),
    wordButtons(panel, "rival", "output", current.outputTokens),
    rival !== null && rival < current.outputTokens.length && (await rivalButtons(panel, rival)),
  ];
}

/**
 * Returns a sentence as buttons; `panel[part]` is the index of the pressed button.
 * @param {ChangesPanel} panel
 * @param {"word" | "rival"} part
 * @param {Token["side"]} side
 * @param {string[]} tokens
 */
function wordButtons(panel, part, side, tokens) {
  const { app } = panel;
  return tightRow(
    app.t(`changes.pick.${side === "output" ? "target" : side}`),
    tokens.map((token, at) => {
      const pick = () => {
        panel[part] = panel[part] === at ? null : at;
        panel.redraw();
      };
      const made = wordPress(`${part} ${at}`, token, pick, { pressed: panel[part] === at });
      made.addEventListener("pointerenter", () => app.light([{ side, position: at }]));
      made.addEventListener("pointerleave", () => app.light([]));
      return made;
    }),
  );
}

/**
 * @param {ChangesPanel} panel
 * @param {string[]} tokens
 * @param {number} place
 */
async function wordEditor(panel, tokens, place) {
  const { app } = panel,
    { sourceIds } = app.result.current;
  const replace = (/** @type {string} */ made) =>
    tryChange(app, { source: withWord(app, sourceIds.slice(0, -1), place, made) });
  const typed = field(app.t("changes.replace.by", tokens[place]), "", "replacement");
  const list = element("datalist", { id: `gf-words-${++lists}` });
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

/**
 * Returns the source with one word replaced or deleted; the text around it stays as typed.
 * @param {App} app
 * @param {number[]} ids
 * @param {number} place
 * @param {string} word
 */
function withWord(app, ids, place, word) {
  const { source } = app.engine.tokenizers,
    text = app.changes.source ?? app.sentence;
  let start = 0,
    end = 0;
  for (const piece of source.split(text).slice(0, place + 1)) {
    const spaced = piece.replaceAll("▁", " ");
    const bare = source.spaceIsToken ? spaced : spaced.trimStart();
    start = text.indexOf(bare, end);
    if (start < 0) return source.decode(ids.toSpliced(place, 1, ...source.encode(word)));
    end = start + bare.length;
  }
  return (text.slice(0, start) + word + text.slice(end)).replace(/ +/g, " ").trim();
}

/**
 * Returns words that begin with the typed text: the examples' words, then the vocabulary's; no pieces of words.
 * @param {App} app
 * @param {string} typed
 */
function suggestions(app, typed) {
  const { source } = app.engine.tokenizers;
  if (!source.suggestsTokens) return [];
  const { tokens } = /** @type {TokenizerData} */ (app.payload.source); // a recording has no panel of changes
  const words = [...app.payload.examples.flatMap(source.split), ...tokens.slice(4)];
  const fits = (/** @type {string} */ word) => word.toLowerCase().startsWith(typed.trim().toLowerCase());
  return [...new Set(words)].filter(fits).slice(0, SUGGESTIONS);
}

/**
 * Returns the words with the most similar embeddings (cosine), if the page has the weights.
 * @param {App} app
 * @param {number} id
 * @returns {Promise<string[]>}
 */
async function nearestWords(app, id) {
  if (app.engine.live !== true || id < 4) return [];
  const table = (await app.engine.model(app.changes.checkpoint)).weight("source.tokens.weight");
  const [count] = table.shape;
  const vector = (/** @type {number} */ word) => rowOf(table, word);
  const product = (/** @type {Float32Array} */ a, /** @type {Float32Array} */ b) => dot(a, 0, b, 0, a.length);
  const here = vector(id);
  const cosine = (/** @type {number} */ word) =>
    product(here, vector(word)) / Math.sqrt(product(vector(word), vector(word)));
  const other = (/** @type {number} */ word) => word > 3 && word !== id;
  const close = Array.from({ length: count }, (_, word) => (other(word) ? cosine(word) : -Infinity));
  const ids = largestAt(close, Math.min(RIVALS, count - 5));
  return app.engine.tokens("source", ids).map((token) => token.replaceAll("▁", ""));
}

/**
 * Returns buttons that force one of the likeliest words at a position of the output.
 * @param {ChangesPanel} panel
 * @param {number} rival
 */
async function rivalButtons({ app }, rival) {
  const { ids } = app.result.current.hypothesis;
  const logProbs = rowOf(await app.value("log_probs"), rival);
  const { pad_id: pad, bos_id: bos, eos_id: eos } = app.config;
  const best = largestAt(logProbs, RIVALS, (id) => ![pad, bos, eos].includes(id));
  const force = (/** @type {number} */ id) =>
    tryChange(app, { prefix: app.engine.decode([...ids.slice(0, rival), id]) });
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
