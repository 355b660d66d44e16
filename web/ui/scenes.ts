// The five scenes of the story. Each computes what it shows, and its button makes the model do something.
import { alignment } from "../engine/alignment.ts";
import { NO_CHANGES } from "../engine/changes.ts";
import { ablatedHeads, closestCall, contestOf, headEffects, marginsOf, sum } from "../engine/contest.ts";
import { allHeads } from "../engine/model.ts";
import { numberText, percentText } from "../engine/number_text.ts";
import { headStatistics } from "../engine/statistics.ts";
import { largestAt, rowOf } from "../engine/tensor.ts";
import { FAMILIES, attentionName, layersOf } from "./heads.ts";
import { engineChanges, logProbOf } from "./sentences.ts";
import { firstDifference } from "../engine/engine.ts";
import { button, chooser, element, tokenElement } from "./dom.ts";
import { gathered } from "./latest.ts";
import { Lines } from "./lines.ts";

import type { Contest, HeadEffect } from "../engine/contest.ts";
import type { TextChanges } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Child, Looks, Translated } from "./types.ts";

interface Candidate {
  id: number;
  probability: number;
}

/** A contest with its sentences and the margins of the unchanged model. */
interface Question {
  contest: Contest;
  texts: string[];
  made: Translated[];
  margins: number[];
  isPair: boolean;
}

/** The state of a story, which its scenes share. */
export interface Story {
  app: App;
  sentence: string;
  /** The words of scene 1. */
  written: number[];
  /** For the last of these words. */
  candidates: Candidate[];
  /** The head of scene 2, in the order of their peaks. */
  view: number;
  question: Promise<Question> | null;
  /** The heads of scene 3 by their effect; empty until they are computed. */
  deciding: HeadEffect[];
  /** The heads that scene 4 has switched off, in this order. */
  off: HeadEffect[];
  mistake: string;
  /** Whether scene 5 makes the mistake. */
  made: boolean;
  /** Aborted when the reader leaves the scene. */
  signal: AbortSignal;
  progress: (done: number, all: number) => void;
  redraw: () => Promise<void>;
  translated: (text: string, changes?: Partial<TextChanges>) => Promise<Translated>;
  leaveFor: (text: string, changes: Partial<TextChanges>, looks: Partial<Looks>) => void;
}

/**
 * What a scene shows: its sentences, the label of its button, its picture, what happened, and what to try. `drawn` is
 * called when the picture is on the page.
 */
export interface Shown {
  say: string;
  action: string;
  picture: Child[];
  told: string;
  hint: string;
  tries: Child[];
  drawn?: () => void;
}

export interface Scene {
  show: (story: Story) => Promise<Shown>;
  act: (story: Story) => Promise<void>;
}

const CANDIDATES = 5;
const RANKED = 6;
const MOST_OFF = 8;
/** The mistakes that scene 5 prefers: their effect is easy to see. */
const PREFERRED = ["decoder_keys", "no_transpose", "no_scale"];

export const SCENES: Scene[] = [
  { show: translation, act: writeWord },
  { show: attention, act: async (story) => void story.view++ },
  { show: decision, act: decide },
  { show: without, act: switchOff },
  { show: mistake, act: async (story) => void (story.made = !story.made) },
];

// Scene 1: what a translation is

async function translation(story: Story) {
  const { app, sentence, written, candidates } = story;
  const { sourceTokens } = await story.translated(sentence);
  const tokens = app.engine.tokens("target", written);
  const field = element("input", {
    type: "text",
    dir: "auto",
    autocomplete: "off",
    "aria-label": app.t("page.sentence"),
  });
  field.value = sentence;
  const ask = (event: Event) => {
    event.preventDefault();
    app.attempt(async () => {
      if (!field.value.trim()) throw new Error(app.t("page.blank"));
      await story.translated(field.value);
      Object.assign(story, { sentence: field.value, written: [], candidates: [], view: 0 });
      await story.redraw();
    });
  };
  const [best] = candidates;
  const told = !best
    ? ""
    : isComplete(story)
      ? app.t("story.1.done", tokens.length)
      : app.t(
          "story.1.told",
          tokens.length,
          isolated(tokens[tokens.length - 1]),
          percentText(best.probability),
        );
  return {
    say: app.t("story.1.say"),
    action: app.t(isComplete(story) ? "story.1.again" : "story.1.act"),
    picture: [
      line(app.t("output.source"), sourceTokens),
      line(app.t("output.output"), isComplete(story) ? tokens : [...tokens, "…"], tokens.length - 1),
      candidates.length > 0 &&
        bars(
          app.t("story.1.candidates", tokens.length),
          candidates.map(({ id, probability }) => [app.engine.tokens("target", [id])[0], probability]),
        ),
    ],
    told,
    hint: app.t("story.1.try"),
    tries: [
      element(
        "form",
        { className: "gf-form", onsubmit: ask },
        field,
        element("button", { type: "submit" }, app.t("page.translate")),
      ),
    ],
  };
}

function isComplete({ app, sentence, written }: Story) {
  const last = written[written.length - 1];
  return last === app.config.eos_id || written.length >= 20 + 3 * sentence.length;
}

async function writeWord(story: Story) {
  const { app, sentence, written } = story;
  if (isComplete(story)) return void Object.assign(story, { written: [], candidates: [] });
  const { sourceIds } = await story.translated(sentence);
  const { bos_id: bos, pad_id: pad } = app.config;
  const trace = await app.sentences.traced(sourceIds, [bos, ...written], engineChanges(NO_CHANGES));
  const row = rowOf(await trace.get("log_probs"), written.length);
  const ids = largestAt(row, CANDIDATES, (id) => id !== bos && id !== pad);
  story.candidates = ids.map((id) => ({ id, probability: Math.exp(row[id]) }));
  story.written = [...written, ids[0]];
}

// Scene 2: who looks at whom

const CROSS = FAMILIES[1];

async function attention(story: Story) {
  const { app, sentence } = story;
  const made = await story.translated(sentence);
  const heads = await crossHeads(app, made);
  const { layer, head, tensor } = heads[story.view % heads.length];
  const [, rows, columns] = tensor.shape;
  const picture = {
    values: tensor.data,
    offset: head * rows * columns,
    rows,
    columns,
    rowLabels: made.outputTokens.slice(0, rows),
    columnLabels: made.sourceTokens,
    blocked: () => false,
    hidden: () => false,
  };
  const name = `${attentionName(CROSS, layer)}.weights`;
  const open = (looks: Partial<Looks>) =>
    story.leaveFor(sentence, {}, { stage: "point", point: { name, head }, face: "lines", ...looks });
  const lines = new Lines({
    chosen: (row, column) => open({ selected: { name, index: [head, row, column] }, panel: "numbers" }),
  });
  const label = app.t("story.head", layer, head, app.t("family.cross").toLowerCase());
  const strongest = largestAt(tensor.data.subarray(picture.offset, picture.offset + rows * columns), 1)[0];
  const [row, column] = [Math.floor(strongest / columns), strongest % columns];
  return {
    say: app.t("story.2.say"),
    action: app.t("story.2.act"),
    picture: [element("h3", {}, label), lines.element],
    told: app.t(
      "story.2.told",
      isolated(picture.rowLabels[row]),
      isolated(picture.columnLabels[column]),
      numberText(tensor.data[picture.offset + strongest], 2),
    ),
    hint: app.t("story.2.try"),
    tries: [button(app.t("story.2.open"), () => open({}))],
    drawn: () =>
      lines.draw(picture, {
        label,
        columns: app.t("story.2.columns"),
        rows: app.t("story.2.rows"),
        word: (word, weights) => app.t("lines.word", word, weights),
      }),
  };
}

/** Returns the heads of cross-attention, the highest mean peak first, each with its layer's weights. */
async function crossHeads(app: App, { trace, sourceTokens }: Translated) {
  const found = [];
  for (let layer = 0; layer < layersOf(app.config, CROSS); layer++) {
    const tensor = await trace.get(`${attentionName(CROSS, layer)}.weights`);
    const [heads, rows, columns] = tensor.shape;
    for (let head = 0; head < heads; head++) {
      const { peak } = headStatistics(tensor.data, head * rows * columns, rows, columns, sourceTokens);
      found.push({ layer, head, tensor, peak });
    }
  }
  return found.sort((a, b) => b.peak - a.peak);
}

// Scene 3: who decides

/** Returns the contest of two translated sentences; null if their translations do not differ. */
export function contestBetween(one: Translated, other: Translated) {
  const [first, second] = [one, other].map(({ sourceIds, hypothesis }) => ({
    sourceIds,
    ids: hypothesis.ids,
  }));
  return contestOf(first, second);
}

/**
 * Returns the contest of the two sentences about the animal and the street, if the model reads them; otherwise, the
 * closest call in the page's own sentence.
 */
function questionOf(story: Story) {
  story.question ??= asked(story);
  story.question.catch(() => (story.question = null));
  return story.question;
}

async function asked(story: Story): Promise<Question> {
  const { app } = story;
  const { pair } = app.payload.story;
  const both = await Promise.all(pair.map((text) => story.translated(text)));
  const ofPair = both.length === 2 ? contestBetween(both[0], both[1]) : null;
  const texts = ofPair ? pair : [app.payload.sentence];
  const made = ofPair ? both : [await story.translated(texts[0])];
  const [{ sourceIds, hypothesis, trace }] = made;
  const contest = ofPair ?? closestCall(app.engine, sourceIds, hypothesis.ids, await trace.get("log_probs"));
  return { contest, texts, made, margins: await marginsOf(app.engine, contest), isPair: Boolean(ofPair) };
}

async function decision(story: Story) {
  const { app, deciding } = story;
  const question = await questionOf(story);
  const { contest, texts, margins, isPair } = question;
  const words = wordsOf(app, contest).map(isolated);
  const [best] = deciding;
  const [first] = texts;
  return {
    say: isPair
      ? app.t("story.3.pair", ...differing(texts).map(isolated), ...words)
      : `${app.t("story.3.own", ...words)} ${app.t("story.3.generic")}`,
    action: app.t(best ? "story.3.again" : "story.3.act"),
    picture: [
      ...question.made.map((made, at) => card(app, question, made, at, margins[at])),
      best && ranking(app, deciding),
    ],
    told: best
      ? app.t("story.3.told", headName(app, best), numberText(sum(margins)), numberText(sum(best.margins)))
      : "",
    hint: app.t(best ? "story.3.try" : "story.3.first"),
    tries: best
      ? [
          button(app.t("story.3.open"), () =>
            story.leaveFor(
              first,
              {},
              {
                stage: "point",
                point: { name: `${best.attention}.weights`, head: best.head },
                face: "lines",
              },
            ),
          ),
        ]
      : [],
  };
}

async function decide(story: Story) {
  story.deciding = (await measured(story, [])) ?? story.deciding;
}

/**
 * Returns each head's effect on the margins while the heads `off` are off, the most harmful loss first; null if the
 * reader has left the scene.
 */
async function measured(story: Story, off: HeadEffect[]) {
  const { app, signal } = story;
  const { contest } = await questionOf(story);
  const heads = allHeads(app.config);
  const found = await gathered(headEffects(app.engine, contest, heads, off), signal, (count) =>
    story.progress(count, heads.length - off.length),
  );
  return signal.aborted ? null : found.sort((a, b) => a.effect - b.effect);
}

/** Returns the word of a contest's sentence, and its rival. */
function wordsOf(app: App, { cases }: Contest, at = 0) {
  return app.engine.tokens("target", [cases[at].word, cases[at].rival]);
}

/** Returns the words in which two sentences differ. */
function differing([one, other]: string[]) {
  const [words, others] = [one, other].map((text) => text.split(/[\s.]+/));
  return [
    words.find((word, at) => word !== others[at]) ?? one,
    others.find((word, at) => word !== words[at]) ?? other,
  ];
}

/** Returns the family and the layer of an attention, such as "decoder.layers.0.cross_attention". */
function placeIn(attention: string) {
  const [stack, , layer, sublayer] = attention.split(".");
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === sublayer);
  if (!family) throw new Error(`no attention is called ${attention}`);
  return { family, layer: Number(layer) };
}

/** Returns the name of a head in the reader's language. */
export function headName(app: App, { attention, head }: Pick<HeadEffect, "attention" | "head">) {
  const { family, layer } = placeIn(attention);
  return app.t("story.head", layer, head, app.t(`family.${family.id}`).toLowerCase());
}

/** Returns a head's name for tables and labels, such as "cross-attention 2, head 3". */
export function shortHeadName(app: App, { attention, head }: Pick<HeadEffect, "attention" | "head">) {
  const { family, layer } = placeIn(attention);
  return app.t("head.short", app.t(`head.${family.id}`), layer, head);
}

/** Returns a table of the heads whose ablation lowers the margins most. */
function ranking(app: App, heads: HeadEffect[]) {
  const cell = (one: HeadEffect) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", title: headName(app, one) }, shortHeadName(app, one)),
      element("td", {}, element("data", { value: String(one.effect) }, numberText(one.effect, 2, true))),
    );
  return element(
    "table",
    { className: "gf-table" },
    element("caption", {}, app.t("story.3.effects")),
    element("tbody", {}, heads.slice(0, RANKED).map(cell)),
  );
}

/** Returns the map's heads, with the head that decides if scene 3 has found it, so that the page goes on with it. */
export function headsAfter({ app, deciding: [best] }: Story): Pick<Looks, "heads"> {
  const { heads } = app.state;
  if (!best) return { heads };
  const { family, layer } = placeIn(best.attention);
  return { heads: { ...heads, [family.id]: { layer, head: best.head } } };
}

// Scene 4: switch the deciding head off

async function without(story: Story) {
  const { app, off } = story;
  const question = await questionOf(story);
  const { contest, texts, margins } = question;
  const changes = { ablated: ablatedHeads(off) };
  const after = await Promise.all(off.length > 0 ? texts.map((text) => story.translated(text, changes)) : []);
  const now = marginsNow(off, margins);
  const lost = lostAt(now, margins);
  const [right, wrong] = wordsOf(app, contest, Math.max(lost, 0)).map(isolated);
  const isSame = after.every((one, at) => one.text === question.made[at].text);
  const [before, sumNow] = [margins, now].map((one) => numberText(sum(one)));
  return {
    say: app.t("story.4.say"),
    action: app.t(
      off.length === 0 ? "story.4.act" : isOver(story, margins) ? "story.4.undo" : "story.4.more",
    ),
    picture: [
      off.length > 0 &&
        element(
          "p",
          {},
          app.t("story.4.off"),
          " ",
          off.map((one) =>
            element("span", { className: "gf-chip", title: headName(app, one) }, shortHeadName(app, one)),
          ),
        ),
      ...question.made.map((made, at) => card(app, question, made, at, margins[at], after[at], now[at])),
    ],
    told:
      off.length === 0
        ? ""
        : lost < 0
          ? app.t(isSame ? "story.4.stays" : "story.4.partly", off.length, before, sumNow, right)
          : app.t("story.4.told", off.length, right, wrong),
    hint: app.t("story.4.try"),
    tries: [
      button(app.t("story.4.open"), () =>
        story.leaveFor(texts[Math.max(lost, 0)], changes, { stage: "map", panel: "changes" }),
      ),
    ],
  };
}

/** Returns the margins without these heads, which were measured when the last of them was chosen. */
function marginsNow(off: HeadEffect[], unchanged: number[]) {
  return off.length > 0 ? off[off.length - 1].margins : unchanged;
}

/** Returns the first sentence whose word won and does not win now, or -1. */
function lostAt(now: number[], unchanged: number[]) {
  return now.findIndex((margin, at) => margin < 0 && unchanged[at] >= 0);
}

/** Returns whether scene 4 is at its end: a word has changed, or enough heads are off. */
function isOver({ app, off }: Story, unchanged: number[]) {
  const all = FAMILIES.reduce((count, family) => count + layersOf(app.config, family) * app.config.heads, 0);
  return off.length >= Math.min(MOST_OFF, all) || lostAt(marginsNow(off, unchanged), unchanged) >= 0;
}

/** Switches off the head that decides most among the heads that are still on; at the end, switches all on again. */
async function switchOff(story: Story) {
  const { off } = story;
  const { margins } = await questionOf(story);
  if (off.length > 0 && isOver(story, margins)) return void (story.off = []);
  if (off.length === 0 && story.deciding.length === 0) await decide(story);
  const [next] = off.length === 0 ? story.deciding : ((await measured(story, off)) ?? []);
  if (next) story.off = [...off, next];
}

// Scene 5: a classic mistake

async function mistake(story: Story) {
  const { app, sentence, made } = story;
  const visible = app.config.mistakes.filter(({ first, one_length: oneLength }) => first && !oneLength);
  const ids = visible.map(({ id }) => id);
  story.mistake ||= PREFERRED.find((id) => ids.includes(id)) ?? ids[0];
  const id = story.mistake;
  const changes = { mistakes: [id] };
  const before = await story.translated(sentence);
  const after = made ? await story.translated(sentence, changes) : null;
  const choose = chooser(
    app.t("story.5.mistake"),
    ids.map((one) => [one, app.t(`mistake.${one}`)]),
    id,
    (next) => {
      Object.assign(story, { mistake: next, made: false });
      app.attempt(() => story.redraw());
    },
  );
  return {
    say: app.t("story.5.say"),
    action: app.t(made ? "story.5.undo" : "story.5.act"),
    picture: [
      element("p", {}, choose),
      element("p", { className: "gf-note" }, app.t(`mistake.${id}.about`)),
      line(app.t("output.source"), before.sourceTokens),
      line(app.t(after ? "output.before" : "output.output"), before.outputTokens),
      after && changedLine(app, before, after),
    ],
    told: after ? await effectOf(app, before, after) : "",
    hint: app.t("story.5.try"),
    tries: [
      button(app.t("story.5.open"), () =>
        story.leaveFor(sentence, changes, { stage: "map", panel: "changes" }),
      ),
    ],
  };
}

/** Returns a sentence about the first tensor that differs, and log p of the unchanged translation. */
async function effectOf(app: App, before: Translated, after: Translated) {
  const compared = await app.sentences.traced(before.sourceIds, before.targetIds, after.changes);
  const first = (await firstDifference(before.trace, compared)) ?? "";
  const now = await logProbOf(compared, before.hypothesis.ids);
  const same = before.text === after.text ? `${app.t("story.5.same")} ` : "";
  return same + app.t("story.5.told", first, numberText(before.hypothesis.logProb), numberText(now));
}

// Parts

/** Returns a word for a sentence, isolated, so that its direction does not disturb the sentence. */
function isolated(word: string) {
  return `\u2068${word}\u2069`;
}

/** Returns a line of words with its name; the word at `chosen` is marked. */
function line(label: string, tokens: string[], chosen: number = -1) {
  return element(
    "p",
    { className: "gf-line" },
    element("span", { className: "gf-label" }, label),
    element(
      "span",
      { className: "gf-story-words" },
      tokens.map((token, at) =>
        tokenElement(token, { className: at === chosen ? "gf-token gf-lit" : "gf-token" }),
      ),
    ),
  );
}

/** Returns the line of a changed translation, whose words that the translation before does not have are marked. */
function changedLine(app: App, before: Translated, after: Translated) {
  const kept = alignment(before.hypothesis.ids, after.hypothesis.ids).map(([, other]) => other);
  const made = line(app.t("output.after"), after.outputTokens);
  made.querySelectorAll(".gf-token").forEach((one, at) => one.classList.toggle("gf-lit", !kept.includes(at)));
  return made;
}

/** Returns bars of probabilities. */
function bars(label: string, words: [word: string, probability: number][]) {
  return element(
    "div",
    { className: "gf-story-bars" },
    element("p", { className: "gf-note" }, label),
    element(
      "ul",
      { "aria-label": label },
      words.map(([word, probability]) => {
        const bar = element("i", { "aria-hidden": "true" });
        bar.style.width = `${100 * probability}%`;
        return element(
          "li",
          {},
          tokenElement(word),
          element("span", {}, bar),
          element("data", { value: String(probability) }, percentText(probability)),
        );
      }),
    ),
  );
}

/**
 * Returns one sentence of a contest: its translation, before and after a change, and the share of its word among the
 * two words.
 */
function card(
  app: App,
  { contest }: Question,
  made: Translated,
  at: number,
  margin: number,
  after?: Translated,
  now: number = margin,
) {
  const { word, rival } = contest.cases[at];
  const [name, other] = app.engine.tokens("target", [word, rival]);
  const share = (value: number) => 1 / (1 + Math.exp(-value));
  const place = contest.prefixIds.length;
  return element(
    "article",
    { className: "gf-story-card" },
    line(app.t("output.source"), made.sourceTokens),
    line(app.t(after ? "output.before" : "output.output"), made.outputTokens, place),
    after && changedLine(app, made, after),
    bars(
      app.t(
        "story.3.choice",
        isolated(name),
        isolated(other),
        numberText(now),
        after ? app.t("story.3.was", numberText(margin)) : "",
      ),
      [
        [name, share(now)],
        [other, 1 - share(now)],
      ],
    ),
  );
}
