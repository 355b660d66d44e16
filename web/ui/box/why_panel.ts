// The panel "Why?": the rivals of one word of the translation, and the heads and source words on which it depends.
import { directParts } from "../../engine/direct.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { allHeads } from "../../engine/model.ts";
import { numberText } from "../../engine/number_text.ts";
import { alsoAblated, headReasons, neededOf, sourceReasons } from "../../engine/reasons.ts";
import { largestAt, rowOf } from "../../engine/tensor.ts";
import { messageOf } from "../app/app.ts";
import { button, element, hint, named, note, refill, tokenElement } from "../app/dom.ts";
import { headName, headsWith, shortHeadName } from "../app/heads.ts";
import { collected } from "../app/latest.ts";
import { rivalsAt } from "../figure/opening.ts";
import { probabilityWords, timesText } from "../app/wording.ts";

import type { HeadEffect } from "../../engine/contest.ts";
import type { DirectPart } from "../../engine/direct.ts";
import type { Place } from "../../engine/reasons.ts";
import type { RowWords } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child, Translated } from "../app/types.ts";

/** A bar: its size, the number as shown, and the exact number. */
interface Bar {
  size: number;
  text: string;
  exact: number;
}

/**
 * A head or another part of the decoder: its direct contribution, and the exact effect of removing it, once measured.
 */
interface PartRow {
  name: string;
  head: number | null;
  label: Child;
  direct: number | null;
  effect: number | null;
}

/** Returns the panel as an element. */
export function createWhyPanel(app: App) {
  const holder = element("div", "gf-why");
  let left = new AbortController();

  async function draw() {
    left.abort();
    left = new AbortController();
    const { word } = app.state;
    if (app.state.panel !== "why") return;
    if (word === null || word >= app.result.current.outputTokens.length) {
      refill(holder, note(app.t("why.pick")));
      return;
    }
    await explain(app, holder, word, left.signal);
  }
  const redraw = () => draw().catch((error) => app.complain(messageOf(error)));
  app.on(["result", "panel", "word", "language"], redraw);
  app.signal.addEventListener("abort", () => left.abort(), { once: true });
  redraw();
  return holder;
}

/** The word that the panel explains, and its strongest rival. */
interface Case {
  translated: Translated;
  row: number;
  place: Place;
  asked: RowWords;
  /** The word and its likeliest rivals. */
  all: Awaited<ReturnType<typeof rivalsAt>>;
  /** The names of the word and of the rival. */
  words: string[];
  /** By how much the word's log probability is larger than the rival's. */
  margin: number;
  /** The log probabilities of all words; null if the trace only has the asked words. */
  logProbs: Float32Array | null;
}

/** Where the panel writes what has been measured. */
interface Shown {
  say: HTMLElement;
  progress: HTMLElement;
  parts: HTMLElement;
  sources: HTMLElement;
}

/**
 * Fills the panel. The numbers that the trace contains are shown at once; the effects of source words and heads
 * follow as they are measured. A few sentences at the top summarise the findings.
 */
async function explain(app: App, holder: HTMLElement, word: number, signal: AbortSignal) {
  const known = await caseOf(app, word);
  const direct =
    app.engine.live === false ? null : await directParts(app.engine, known.translated, known.asked);
  if (signal.aborted) return;
  const [progress, parts, sources] = [element("div", "gf-measured"), element("div"), element("div")];
  const say = verdict(app, known);
  refill(holder, heading(app, known, say), progress, parts, sources);
  if (!direct) return refill(parts, note(app.t("why.recorded")));
  const shown = { say, progress, parts, sources };
  const rows = partRows(app, direct.parts);
  drawParts(app, parts, rows, known.words, direct);
  await showSources(app, known, shown, signal);
  if (signal.aborted) return;
  const strongest = await showHeads(app, known, shown, { rows, direct }, signal);
  if (strongest && !signal.aborted) await sayHead(app, known, shown, strongest, signal);
}

async function caseOf(app: App, row: number): Promise<Case> {
  const translated = app.result.current;
  const { sourceIds, changes, hypothesis, trace } = translated;
  const logProbs = await trace.get("log_probs");
  const all = await rivalsAt(app, translated, row);
  const ids = [all.word.id, all.rivals[0].id];
  return {
    translated,
    row,
    place: { sourceIds, ids: hypothesis.ids, place: row, changes },
    asked: { row, word: ids[0], rival: ids[1] },
    all,
    words: app.engine.tokens("target", ids),
    margin: all.word.logProb - all.rivals[0].logProb,
    logProbs: trace.words ? null : rowOf(logProbs, row),
  };
}

/** Returns the sentence that compares the word with its strongest rival. */
function verdict(app: App, { translated, row, all, words, margin }: Case) {
  const times = timesText(
    app.t,
    margin,
    ...[all.word, all.rivals[0]].map(({ logProb }) => Math.exp(logProb)),
  );
  const isGiven = row < translated.prefixIds.length;
  const key = margin >= 0 ? "why.leads" : isGiven ? "why.given" : "why.trails";
  return element(
    "p",
    { class: "gf-why-say", role: "status" },
    hint(app.t(key, ...words, times), app.t("why.margin", ...words, numberText(margin, 3, true))),
  );
}

function heading(app: App, { translated, row, place, all, words, logProbs }: Case, say: Child): Child[] {
  const { targetTokens, outputTokens } = translated;
  const rivals = [all.word, ...all.rivals].map(({ id, logProb }): [Child, Bar] => {
    const p = Math.exp(logProb);
    const text = `${numberText(p, 3)} · log p ${numberText(logProb, 2)}`;
    return [candidate(app, place, id), { size: p, text, exact: logProb }];
  });
  return [
    element("h3", {}, app.t("why.title", words[0])),
    say,
    note(app.t("why.row", row, targetTokens[row], outputTokens[row])),
    logProbs && entropyLine(app, logProbs),
    barTable(app.t("why.rivals"), app.t("why.logp.about"), rivals),
  ];
}

/** Measures the source words, shows their effects, and says which of them the word needs. */
async function showSources(app: App, known: Case, { say, sources }: Shown, signal: AbortSignal) {
  const { translated, place, asked, words, margin, all } = known;
  const { sourceIds, sourceTokens } = translated;
  const { values, problem } = await gradientsOf(app, translated, asked);
  const reasons = sourceReasons(app.engine, place, asked.rival);
  const needed = await collected(app, sources, reasons, sourceIds.length, signal);
  if (signal.aborted) return;
  needed.sort((a, b) => a.effect - b.effect);
  for (const [at, { position, effect }] of neededOf(needed, all.word.logProb).entries()) {
    const key = at ? "why.needs.next" : "why.needs";
    say.append(" ", app.t(key, sourceTokens[position], then(app, words, margin + effect)));
  }
  refill(
    sources,
    barTable(
      [app.t("why.sources", ...words), values && note(app.t("why.gradient.about", ...words))],
      app.t("why.sources.about", words[0]),
      needed.map(({ position, effect }) => [
        tokenElement(sourceTokens[position]),
        signedBar(effect),
        ...(values ? [signedBar(values[position])] : []),
      ]),
      values ? [app.t("why.occlusion"), app.t("why.gradient")] : [],
    ),
    problem && note(app.t("why.gradient.problem", problem)),
  );
}

/** Measures the heads and shows their effects; returns the head with the largest effect. */
async function showHeads(
  app: App,
  { place, asked, words }: Case,
  { progress, parts }: Shown,
  { rows, direct }: { rows: PartRow[]; direct: Awaited<ReturnType<typeof directParts>> },
  signal: AbortSignal,
) {
  const effects = shownEffects(headReasons(app.engine, place, asked.rival), rows, parts);
  const count = rows.filter(({ head }) => head !== null).length;
  const heads = await collected(app, progress, effects, count, signal);
  if (signal.aborted) return;
  refill(progress);
  rows.sort(inOrder);
  drawParts(app, parts, rows, words, direct);
  return largestEffect(heads);
}

/** Says what the head with the largest effect does. */
async function sayHead(
  app: App,
  { translated, row, words, margin }: Case,
  { say }: Shown,
  strongest: HeadEffect,
  signal: AbortSignal,
) {
  say.append(" ", app.t("why.head", headName(app, strongest), then(app, words, margin + strongest.effect)));
  const read = await readBy(translated, strongest, row);
  if (!read || signal.aborted) return;
  const isByHand = translated.changes.overrides[strongest.attention]?.some(
    ([head, query]) => head === strongest.head && query === row,
  );
  const kind = isByHand ? ".hand" : read.weight < 0.5 ? ".shared" : "";
  say.append(" ", app.t(`why.reads${kind}`, read.token, probabilityWords(read.weight)));
}

/** Returns the item that changes the margin most, in either direction; undefined if no item changes the margin. */
function largestEffect<Measured extends { effect: number }>(all: Measured[]): Measured | undefined {
  const size = ({ effect }: Measured) => Math.abs(effect);
  return all
    .filter((one) => size(one) > 0)
    .reduce<Measured | undefined>((most, one) => (most && size(most) >= size(one) ? most : one), undefined);
}

/** Returns a text that says which of two words would be more probable. `words`: the word and its rival. */
function then(app: App, words: string[], margin: number) {
  return app.t("why.then", ...(margin >= 0 ? words : [...words].reverse()), timesText(app.t, margin));
}

/**
 * Returns the token with the largest weight in a row of a decoder head, and this weight. Returns null for a head of the
 * encoder, or if all weights are 0.
 */
async function readBy(
  { trace, sourceTokens, targetTokens }: Translated,
  { attention, head }: HeadEffect,
  row: number,
) {
  if (attention.startsWith("encoder")) return null;
  const { shape, data } = await trace.get(`${attention}.weights`);
  const [, rows, columns] = shape;
  const weights = data.subarray((head * rows + row) * columns, (head * rows + row + 1) * columns);
  const [at] = largestAt(weights, 1);
  const tokens = attention.endsWith("cross_attention") ? sourceTokens : targetTokens;
  return weights[at] > 0 ? { token: tokens[at], weight: weights[at] } : null;
}

/**
 * Returns a word that competes at the position. The element of a rival is a button that forces the rival at this
 * position and lets the model continue.
 */
function candidate(app: App, { ids, place }: Place, id: number) {
  const [token] = app.engine.tokens("target", [id]);
  if (id === ids[place] || id === app.config.eos_id || app.engine.live === false) return tokenElement(token);
  const force = async () => {
    const forced = [...ids.slice(0, place), id];
    const prefix = app.engine.decode(forced);
    const read = await app.engine.encode("target", prefix);
    if (String(read.ids) !== String(forced)) throw new Error(app.t("why.force.not", token));
    await app.set({ prefix });
  };
  return button(tokenElement(token), () => app.attempt(force), {
    className: "gf-link",
    title: app.t("why.force", token),
  });
}

/**
 * Returns gradient × input of each source position if Python is behind the page, or the error if Python does not
 * answer.
 */
async function gradientsOf(
  app: App,
  { sourceIds, targetIds, changes }: Translated,
  asked: RowWords,
): Promise<{ values?: number[] | null; problem?: string }> {
  const read = stepsUnder(changes).readIds(sourceIds, targetIds, app.config.pad_id);
  try {
    return { values: await app.engine.gradients({ ...read, changes }, asked) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** Returns the table's rows: the other parts of the decoder, and then the heads. */
function partRows(app: App, parts: DirectPart[] | null): PartRow[] {
  const heads = allHeads(app.config).map(({ attention, head }) => ({ name: attention, head }));
  const others = (parts ?? []).filter(({ head }) => head === null);
  const rows = [...others, ...heads].map(({ name, head }) => ({
    name,
    head,
    label: head === null ? partLabel(app, name) : headButtons(app, { attention: name, head }),
    direct: parts?.find((one) => one.name === name && one.head === head)?.value ?? null,
    effect: null,
  }));
  return rows.sort(inOrder);
}

/**
 * Compares two rows. Heads come after the other parts. Measured effects decide first; rows without a measured effect
 * are ordered by their direct contribution, largest first.
 */
function inOrder(a: PartRow, b: PartRow) {
  const [isHead, isOtherHead] = [a, b].map(({ head }) => Number(head !== null));
  const byEffect = (a.effect ?? Infinity) - (b.effect ?? Infinity); // NaN if both are missing
  const byDirect = (b.direct ?? -Infinity) - (a.direct ?? -Infinity);
  return isHead - isOtherHead || byEffect || byDirect || 0;
}

/** Yields the effects of heads, and writes each effect into its row as it arrives. */
async function* shownEffects(effects: AsyncGenerator<HeadEffect>, rows: PartRow[], holder: HTMLElement) {
  for await (const one of effects) {
    const at = rows.findIndex(({ name, head }) => name === one.attention && head === one.head);
    rows[at].effect = one.effect;
    const cell = holder.querySelectorAll("tbody tr")[at].lastElementChild;
    if (cell) cell.textContent = numberText(one.effect, 3, true);
    yield one;
  }
}

/** Draws the table of heads and other parts; a focused button keeps the focus. `words`: the word and its rival. */
function drawParts(
  app: App,
  holder: HTMLElement,
  rows: PartRow[],
  words: string[],
  { parts, difference }: { parts: DirectPart[] | null; difference: number },
) {
  const focused = document.activeElement;
  refill(
    holder,
    barTable(
      [
        app.t("why.parts", ...words),
        note(
          app.t(parts ? "why.direct.about" : "why.direct.none", ...words, numberText(difference, 3, true)),
        ),
        note(app.t("why.exact.about", ...words)),
      ],
      "",
      rows.map(({ label, direct, effect }) => [
        label,
        ...(parts ? [direct === null ? null : signedBar(direct)] : []),
        effect === null ? null : signedBar(effect),
      ]),
      [...(parts ? [app.t("why.direct")] : []), app.t("why.exact")],
    ),
  );
  if (focused instanceof HTMLElement && holder.contains(focused)) focused.focus();
}

/** Opens the box of a sub-layer, at a head. */
function openPoint(app: App, box: string, name: string, head: number) {
  app.show({ zoom: { box, key: null }, heads: headsWith(app.config, app.state.heads, name, head) });
}

/**
 * Returns the name of a part that is not a head. The name of a feed-forward network is a button that opens its output.
 */
function partLabel(app: App, name: string) {
  const layer = name.match(/^decoder\.layers\.(\d+)\.feed_forward$/)?.[1];
  if (layer === undefined) return hint(app.t(`why.part.${name}`), app.t(`why.part.${name}.about`));
  const open = () => openPoint(app, name, `${name}.output`, 0);
  const opener = button(app.t("why.part.network", layer), open, { className: "gf-link" });
  return element("span", "gf-head", opener);
}

function signedBar(value: number): Bar {
  return { size: value, text: numberText(value, 3, true), exact: value };
}

/** Returns a line with the entropy, in nats, of a row of log probabilities. */
function entropyLine(app: App, logs: Float32Array) {
  const entropy = logs.reduce((sum, one) => (one === -Infinity ? sum : sum - one * Math.exp(one)), 0);
  return element(
    "p",
    "gf-facts",
    hint(app.t("why.entropy", numberText(entropy, 3)), app.t("why.entropy.about")),
  );
}

/** Returns a head's name as a button that opens the head, and a button that switches the head off. */
function headButtons(app: App, one: Pick<HeadEffect, "attention" | "head">) {
  const { attention, head } = one;
  const open = () => openPoint(app, attention, `${attention}.weights`, head);
  const off = () => app.attempt(() => app.set(alsoAblated(app.changes, one)));
  const switchOff = named(button("✕", off), `${app.t("why.off")}: ${headName(app, one)}`);
  const name = button(shortHeadName(app, one), open, { className: "gf-link", title: headName(app, one) });
  return element("span", "gf-head", name, switchOff);
}

/**
 * Returns a table whose rows have a label and bars; null leaves a bar's cell empty. `columns`: a heading for each
 * column of bars.
 */
function barTable(
  caption: Child,
  about: string,
  rows: [label: Child, ...bars: (Bar | null)[]][],
  columns: string[] = [],
) {
  const bars = rows.map(([, ...some]) => some);
  const sizes = bars[0].map((_, at) => bars.map((some) => some[at]?.size ?? 0));
  const largest = sizes.map((column) => Math.max(...column.map(Math.abs)) || 1);
  const isPositive = sizes.flat().every((size) => size >= 0);
  const cells = (one: Bar | null, at: number) => {
    if (!one) return [element("td"), element("td", {}, "–")];
    const width = (50 * Math.abs(one.size)) / largest[at];
    const made = element("i", { class: one.size < 0 ? "gf-minus" : "" });
    Object.assign(made.style, { width: `${width}%`, left: `${one.size < 0 ? 50 - width : 50}%` });
    const number = element("data", { value: String(one.exact) }, one.text);
    return [element("td", "gf-bar", made), element("td", {}, number)];
  };
  const heading = (text: string) => element("th", { scope: "col", colSpan: 2 }, text);
  return element(
    "table",
    `gf-table gf-terms${isPositive ? " gf-positive" : ""}`,
    element("caption", { title: about }, caption),
    columns.length > 0 && element("thead", {}, element("tr", {}, element("td"), columns.map(heading))),
    element(
      "tbody",
      {},
      rows.map(([label, ...some]) =>
        element("tr", {}, element("th", { scope: "row" }, label), some.map(cells)),
      ),
    ),
  );
}
