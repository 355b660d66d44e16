// The section for words: replacing source words, and forcing the beginning of the output.
import { dot, largestAt, rowOf, times } from "../../../engine/tensor.ts";
import { numberText } from "../../../engine/number_text.ts";
import { button, element, note, refill } from "../../app/dom.ts";
import { remark } from "../../app/drawing.ts";
import { joinMarks } from "../../app/translator.ts";
import { field, form, tightRow, tryChange, wordPress } from "./controls.ts";
import type { TokenizerData } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { Child, Token } from "../../app/types.ts";
import type { ChangesPanel } from "./panel_state.ts";

const RIVALS = 7; // maximum number of replacements offered for a word
const SUGGESTIONS = 40;
let lists = 0;

export async function wordsSection(panel: ChangesPanel): Promise<Child[]> {
  const { app, word, rival } = panel,
    { target } = app.engine.tokenizers,
    { current } = app.result;
  const tokens = current.sourceTokens.slice(0, current.sourceIds.length - 1);
  const prefix = field(app.t("changes.prefix"), app.changes.prefix ?? "", "prefix");
  return [
    wordButtons(panel, "word", "source", tokens),
    word !== null && word < tokens.length && (await wordEditor(panel, tokens, word)),
    element("h3", {}, app.t("changes.prefix")),
    note(app.t("changes.prefix.about")),
    form(() => tryChange(app, { prefix: joinMarks(target, prefix.value) }), app.t("changes.force"), prefix),
    wordButtons(panel, "rival", "output", current.outputTokens),
    rival !== null && rival < current.outputTokens.length && (await rivalButtons(panel, rival)),
  ];
}

/** Returns the words of a sentence as buttons; `panel[part]` is the index of the pressed button. */
function wordButtons(panel: ChangesPanel, part: "word" | "rival", side: Token["side"], tokens: string[]) {
  const { app } = panel;
  return tightRow(
    app.t(`changes.pick.${side === "output" ? "target" : side}`),
    tokens.map((token, at) => {
      const pick = () => {
        panel[part] = panel[part] === at ? null : at;
        panel.redraw();
      };
      return wordPress(`${part} ${at}`, token, pick, { pressed: panel[part] === at });
    }),
  );
}

async function wordEditor(panel: ChangesPanel, tokens: string[], place: number) {
  const { app } = panel,
    { sourceIds } = app.result.current;
  const replace = (made: string) =>
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
    "gf-box",
    form(apply, app.t("changes.replace"), typed, list),
    near.length > 0 &&
      tightRow(
        title,
        remark(title),
        near.map((word) => wordPress(`near ${word}`, word, () => replace(word))),
      ),
    button(app.t("changes.delete", tokens[place]), remove, { disabled: tokens.length < 2 }),
  );
}

/** Returns the source text with one word replaced or deleted; the other words stay as the reader typed them. */
function withWord(app: App, ids: number[], place: number, word: string) {
  const { source } = app.engine.tokenizers,
    text = app.changes.source ?? app.state.sentence;
  let start = 0,
    end = 0;
  for (const piece of source.split(text).slice(0, place + 1)) {
    const spaced = piece.replaceAll("▁", " ");
    const bare = source.spaceIsToken ? spaced : spaced.trimStart();
    start = text.indexOf(bare, end);
    if (start < 0) return source.decode(ids.toSpliced(place, 1, ...source.encode(word)));
    end = start + bare.length;
  }
  return joinMarks(source, (text.slice(0, start) + word + text.slice(end)).replace(/ +/g, " ").trim());
}

/**
 * Returns words that begin with the typed letters: first words of the examples, then words of the vocabulary. Returns
 * no words if the vocabulary consists of word pieces.
 */
function suggestions(app: App, typed: string) {
  const { source } = app.engine.tokenizers;
  if (!source.suggestsTokens) return [];
  // the payload has a tokenizer, because recordings have no panel of changes
  const { tokens } = app.payload.source as TokenizerData;
  const words = [...app.payload.examples.flatMap(source.split), ...tokens.slice(4)];
  const fits = (word: string) => word.toLowerCase().startsWith(typed.trim().toLowerCase());
  return [...new Set(words)].filter(fits).slice(0, SUGGESTIONS);
}

/** Returns the words with the most similar embeddings (by cosine), if the page has the weights. */
async function nearestWords(app: App, id: number): Promise<string[]> {
  if (app.engine.live !== true || id < 4) return [];
  const table = (await app.engine.model(app.changes.checkpoint)).weight("source.tokens.weight");
  const [count] = table.shape;
  const vector = (word: number) => rowOf(table, word);
  const product = (a: Float32Array, b: Float32Array) => dot(a, 0, b, 0, a.length);
  const here = vector(id);
  const cosine = (word: number) =>
    product(here, vector(word)) / Math.sqrt(product(vector(word), vector(word)));
  const other = (word: number) => word > 3 && word !== id;
  const close = times(count, (word) => (other(word) ? cosine(word) : -Infinity));
  const ids = largestAt(close, Math.min(RIVALS, count - 5));
  return app.engine.tokens("source", ids).map((token) => token.replaceAll("▁", ""));
}

/** Returns buttons that force one of the likeliest words at a position of the output. */
async function rivalButtons({ app }: ChangesPanel, rival: number) {
  const { ids } = app.result.current.hypothesis;
  const logProbs = rowOf(await app.value("log_probs"), rival);
  const { pad_id: pad, bos_id: bos, eos_id: eos } = app.config;
  const best = largestAt(logProbs, RIVALS, (id) => ![pad, bos, eos].includes(id));
  const force = (id: number) => tryChange(app, { prefix: app.engine.decode([...ids.slice(0, rival), id]) });
  const title = app.t("changes.rivals", app.engine.decode(ids.slice(0, rival)));
  return element(
    "div",
    "gf-box",
    note(title),
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
