// The panel "Why?": the rivals of one word of the translation, and the heads and source words that it depends on.
import { numberText } from "../engine/number_text.js";
import { alsoAblated, headReasons, rivalsOf, sourceReasons } from "../engine/reasons.js";
import { messageOf } from "./app.js";
import { button, comeIntoView, element, hint, refill, tokenElement } from "./dom.js";
import { headName } from "./scenes.js";

/**
 * @import { HeadEffect } from "../engine/contest.js"
 * @import { App } from "./app.js"
 * @import { Child } from "./types.js"
 */

/**
 * Returns the panel as an element.
 * @param {App} app
 */
export function createWhyPanel(app) {
  const holder = element("div", { className: "gf-why" });
  let left = new AbortController();

  async function draw() {
    left.abort();
    left = new AbortController();
    const { word } = app.ui;
    if (app.ui.panel !== "why") return;
    if (word === null || word >= app.result.current.outputTokens.length) {
      refill(holder, element("p", { className: "gf-note" }, app.t("why.pick")));
      return;
    }
    await explain(app, holder, word, left.signal);
  }
  const redraw = () => draw().catch((error) => app.emit("problem", messageOf(error)));
  app.on("result", redraw);
  app.on("ui", (keys) => {
    if (!keys.some((key) => key === "panel" || key === "word" || key === "language")) return;
    redraw();
    if (!keys.includes("word") || app.ui.word === null) return;
    Promise.resolve().then(() => comeIntoView(holder, ".gf-said", app.t("page.up.words"))); // its tab opens first
  });
  app.signal.addEventListener("abort", () => left.abort(), { once: true });
  redraw();
  return holder;
}

/**
 * Fills the panel: at once what the trace contains, then the heads and the source words as they are measured.
 * @param {App} app
 * @param {HTMLElement} holder
 * @param {number} word
 * @param {AbortSignal} signal
 */
async function explain(app, holder, word, signal) {
  const { current } = app.result;
  const { sourceIds, sourceTokens, targetTokens, outputTokens, changes, hypothesis } = current;
  const place = { sourceIds, ids: hypothesis.ids, place: word, changes };
  const logProbs = await current.trace.get("log_probs");
  if (signal.aborted) return;
  const found = rivalsOf(logProbs, place);
  const candidates = [found.word, ...found.rivals].map((one) => ({ ...one, p: Math.exp(one.logProb) }));
  const [text, rival] = app.engine.tokens("target", [found.word.id, found.rivals[0].id]);
  const [heads, sources] = [element("div"), element("div")];
  refill(
    holder,
    element("h3", {}, app.t("why.title", text)),
    element("p", {}, app.t("why.row", word, targetTokens[word], outputTokens[word])),
    !current.trace.words && entropyLine(app, logProbs.data, word, logProbs.shape[1]),
    barTable(
      app.t("why.rivals"),
      app.t("why.logp.about"),
      candidates.map(({ id, p, logProb }) => [
        tokenElement(app.engine.tokens("target", [id])[0]),
        p,
        `${numberText(p, 3)} · log p ${numberText(logProb, 2)}`,
        logProb,
      ]),
    ),
    heads,
    sources,
  );
  if (app.engine.live === false) {
    refill(heads, element("p", { className: "gf-note" }, app.t("why.recorded")));
    return;
  }
  const rivalId = found.rivals[0].id;
  const count = (app.config.encoder_layers + 2 * app.config.decoder_layers) * app.config.heads;
  const measured = await collected(app, heads, headReasons(app.engine, place, rivalId), count, signal);
  if (signal.aborted) return;
  measured.sort((a, b) => a.effect - b.effect);
  refill(
    heads,
    barTable(
      app.t("why.heads", text, rival),
      app.t("why.heads.about"),
      measured.map((one) => [headButtons(app, one), one.effect, numberText(one.effect, 3, true), one.effect]),
    ),
  );
  const effects = sourceReasons(app.engine, place);
  const needed = await collected(app, sources, effects, sourceIds.length, signal);
  if (signal.aborted) return;
  needed.sort((a, b) => a.effect - b.effect);
  refill(
    sources,
    barTable(
      app.t("why.sources", text),
      app.t("why.sources.about"),
      needed.map(({ position, effect }) => [
        tokenElement(sourceTokens[position]),
        effect,
        numberText(effect, 3, true),
        effect,
      ]),
    ),
  );
}

/**
 * Returns the entropy of a row, in nats.
 * @param {App} app
 * @param {Float32Array} data
 * @param {number} row
 * @param {number} width
 */
function entropyLine(app, data, row, width) {
  const logs = data.subarray(row * width, (row + 1) * width);
  const entropy = logs.reduce((sum, one) => (one === -Infinity ? sum : sum - one * Math.exp(one)), 0);
  return element(
    "p",
    { className: "gf-facts" },
    hint(app.t("why.entropy", numberText(entropy, 3)), app.t("why.entropy.about")),
  );
}

/**
 * Returns what a computation yields, and shows its progress; the page can act between two steps.
 * @template Made
 * @param {App} app
 * @param {HTMLElement} holder
 * @param {AsyncGenerator<Made>} steps
 * @param {number} all
 * @param {AbortSignal} signal
 */
export async function collected(app, holder, steps, all, signal) {
  const bar = element("progress", { max: all, value: 0 });
  refill(holder, bar);
  /** @type {Made[]} */
  const found = [];
  for await (const one of steps) {
    if (signal.aborted) return found;
    found.push(one);
    bar.value = found.length;
    bar.setAttribute("aria-label", app.t("why.progress", found.length, all));
    await new Promise((go) => setTimeout(go));
  }
  return found;
}

/**
 * Returns a head's name, which opens the head, and the button that switches it off.
 * @param {App} app
 * @param {HeadEffect} one
 */
function headButtons(app, one) {
  const { attention, head } = one;
  const open = () => app.show({ stage: "point", point: { name: `${attention}.weights`, head } });
  const off = () => app.attempt(() => app.set(alsoAblated(app.changes, one)));
  const name = headName(app, one);
  const switchOff = button("✕", off, { title: app.t("why.off") });
  switchOff.setAttribute("aria-label", `${app.t("why.off")}: ${name}`);
  return [button(name, open, { className: "gf-link" }), " ", switchOff];
}

/**
 * Returns a table with a bar in each row: [label, size of the bar, text, exact number].
 * @param {string} caption
 * @param {string} about
 * @param {[label: Child, size: number, text: string, exact: number][]} rows
 */
export function barTable(caption, about, rows) {
  const largest = Math.max(...rows.map(([, size]) => Math.abs(size))) || 1;
  const isPositive = rows.every(([, size]) => size >= 0);
  const bar = (/** @type {number} */ size) => {
    const width = (50 * Math.abs(size)) / largest;
    const made = element("i", { className: size < 0 ? "gf-minus" : "" });
    Object.assign(made.style, { width: `${width}%`, left: `${size < 0 ? 50 - width : 50}%` });
    return element("td", { className: "gf-bar" }, made);
  };
  return element(
    "table",
    { className: `gf-table gf-terms${isPositive ? " gf-positive" : ""}` },
    element("caption", { title: about }, caption),
    element(
      "tbody",
      {},
      rows.map(([label, size, text, exact]) =>
        element(
          "tr",
          {},
          element("th", { scope: "row" }, label),
          bar(size),
          element("td", {}, element("data", { value: String(exact) }, text)),
        ),
      ),
    ),
  );
}
