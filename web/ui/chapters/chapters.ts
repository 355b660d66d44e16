// The chapters: for each act, what the act highlights, up to which box the figure is computed, what the act changes,
// and the numbers in its text. The texts are the strings `chapter.ACT`, with the suffixes ".more", ".try" and ".next".
import { ACTIVATIONS } from "../../engine/activations.ts";
import { isUnchanged } from "../../engine/changes.ts";
import { ablatedHeads } from "../../engine/contest.ts";
import { rowOf } from "../../engine/tensor.ts";
import { headsWith, placeIn } from "../app/heads.ts";
import { languageNames, probabilityWords, temperatureText, timesText, tokenName } from "../app/wording.ts";
import { lightMeasured } from "../figure/lighting.ts";
import { openingOf } from "../figure/opening.ts";
import { areShares, hidesLater } from "../figure/sentences.ts";
import { numberText } from "../../engine/number_text.ts";
import { checkpointSteps, stepName } from "../app/checkpoints.ts";
import { mindAct } from "./mind.ts";

import type { Opening } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Selection, Translated } from "../app/types.ts";
import type { ChapterAct } from "../figure/figure_view.ts";
import type { StageNumbers } from "../figure/shown.ts";
import type { Act, Found } from "./act.ts";

interface Chapter {
  acts(app: App): Act[];
  /** Returns the key of a text that says why this page cannot show the chapter, or "" if the page can show it. */
  missing?(app: App): string;
}

/** The variant of an act's text that is the stage's own sentence about the box. */
export const OWN = "own";
const WHOLE: ChapterAct["risen"] = { encoder: "all", decoder: "all" };
const CROSS = "decoder.cross_attention";
const SELF = "encoder.self_attention";
const SOFTMAX = "decoder.softmax";
/** Mistakes whose effect is easy to see, in order of preference. */
const PREFERRED = ["no_transpose", "no_scale"];
const SNAPSHOTS = 3;
const LONGEST = 90; // maximum number of letters of a translation inside a sentence

const needsModel = ({ engine }: App) => (engine.live === false ? "chapter.recorded" : "");

/** Returns an act about the whole figure. */
const whole = (id: string, more: Partial<Act> = {}): Act => ({
  id,
  box: CROSS,
  lit: [],
  risen: WHOLE,
  ...more,
});

/** Returns an act about one box of a figure that is computed up to the given boxes. */
const about = (
  id: string,
  box: string,
  [encoder, decoder]: [string, string],
  found: Act["found"],
  more: Partial<Act> = {},
): Act => ({ id, box, lit: [box], risen: { encoder, decoder }, found, ...more });

export const CHAPTERS: Chapter[] = [
  {
    acts: () => [whole("turn"), ...["outline", "first"].map((id) => whole(id, { found: outlineOf }))],
    missing: needsModel,
  },
  {
    acts: ({ config, engine }) => [
      about("embedding", "encoder.embedding", ["embedding", ""], ({ config, result }, { source }) => {
        const id = result.current.sourceIds[source] ?? 0;
        return {
          values: { width: String(config.d_model), id: String(id), all: String(config.source_vocab_size) },
        };
      }),
      about("positions", "encoder.positions", ["positions", ""], ({ changes, config }, { source }) => {
        const areWaves = config.positions === "interleaved" || config.positions === "halves";
        return {
          values: { place: String(source) },
          variant: changes.positions ? (areWaves ? "" : config.positions) : OWN,
          more: areWaves && changes.positions,
        };
      }),
      ...(config.positions === "none" || engine.live === false ? [] : [withoutPositions]),
    ],
  },
  {
    acts: () => [
      about("mixing", SELF, ["self_attention", ""], mixingOf, { looks: lightMeasured }),
      about("adding", `${SELF}.add`, ["self_attention.add", ""], (_, { shares, source }) => ({
        values: { share: probabilityWords(shares.get(`${SELF}.add`)?.[source] ?? 0) },
      })),
    ],
  },
  {
    acts: (app) => [
      about("mask", "decoder.self_attention", ["all", "self_attention"], maskOf, {
        looks: lightMeasured,
      }),
      about("reading", CROSS, ["all", "cross_attention"], readingOf, { looks: lightMeasured }),
      about("units", "decoder.feed_forward", ["all", "feed_forward.add"], unitsOf, {
        lit: ["decoder.feed_forward", "decoder.feed_forward.add"],
      }),
      ...(app.engine.live === true ? [mindAct(app)] : []),
    ],
  },
  {
    acts: ({ engine }) => [
      about("chances", SOFTMAX, ["all", "all"], chancesOf, { lit: [SOFTMAX, "decoder.linear"] }),
      ...(engine.live === true
        ? [about("temperature", SOFTMAX, ["all", "all"], temperatureOf, { looks: warmer })]
        : []),
      about("search", SOFTMAX, ["all", "all"], searchOf),
    ],
  },
  {
    acts: (app) => snapshotsOf(app).map((step, at) => snapshot(step, at)),
    missing: (app) => needsModel(app) || (checkpointSteps(app.payload).length < 2 ? "chapter.snapshots" : ""),
  },
  {
    acts: () => [
      whole("deciding", {
        box: "",
        looks: decided,
        changes: async () => ({}),
        made: isUnchanged,
        found: decidingOf,
      }),
      whole("off", {
        box: "",
        looks: decided,
        changes: firstOff,
        made: ({ ablated }) => Object.keys(ablated).length > 0,
        found: offOf,
      }),
      whole("mistake", {
        changes: firstMistake,
        made: ({ mistakes }) => mistakes.length > 0,
        found: mistakeOf,
      }),
      whole("yours"),
    ],
    missing: needsModel,
  },
];

/**
 * Returns the acts of a chapter; chapters are numbered from 1. If this page cannot show the chapter, the chapter has
 * a single act that says why.
 */
export function actsOf(app: App, chapter: number): Act[] {
  const { acts, missing } = CHAPTERS[chapter - 1];
  const reason = missing?.(app);
  return reason && chapter > 1 ? [whole(reason.replace("chapter.", ""))] : acts(app);
}

/** Returns the act that is shown; null if no chapter is open. */
export function actOf(app: App) {
  const { chapter, act } = app.state;
  if (!chapter) return null;
  const acts = actsOf(app, chapter);
  return acts[Math.min(act, acts.length - 1)];
}

/** Returns the chapter and act that follow or precede the present act; null = the figure, after the last act. */
export function placeAfter(app: App, by: 1 | -1): { chapter: number; act: number } | null {
  const { chapter, act } = app.state;
  const next = Math.min(act, actsOf(app, chapter).length - 1) + by;
  if (next < 0)
    return chapter > 1
      ? { chapter: chapter - 1, act: actsOf(app, chapter - 1).length - 1 }
      : { chapter, act: 0 };
  if (next < actsOf(app, chapter).length) return { chapter, act: next };
  return chapter < CHAPTERS.length ? { chapter: chapter + 1, act: 0 } : null;
}

// Acts that compute

/** Returns what the outline says: the languages and, if the reader has changed something, the output. */
function outlineOf(app: App): Found {
  const { source, target } = languageNames(app);
  return { values: { from: source, to: target, text: written(app) }, variant: app.changed ? "changed" : "" };
}

/** Returns a text, shortened if it is too long for a sentence. */
function cut({ state }: App, text: string) {
  const longest = state.lecture ? LONGEST / 2 : LONGEST;
  return text.length > longest ? `${text.slice(0, longest)} …` : text;
}

/** Returns the model's output, shortened if it is too long for a sentence. */
function written(app: App) {
  return cut(app, app.result.current.text) || app.t("chapter.nothing");
}

function nameOf(app: App, token = "") {
  return tokenName(token, app.t);
}

const withoutPositions = whole("unplaced", {
  box: "encoder.positions",
  changes: async () => ({ positions: false }),
  made: ({ positions }) => !positions,
  found: (app) => ({
    values: { text: written(app) },
    variant: app.result.current.text === app.result.reference.text ? "same" : "",
  }),
});

function mixingOf({ config }: App, numbers: StageNumbers): Found {
  return {
    values: { heads: String(config.heads) },
    variant: areShares(numbers, "encoder") ? "" : OWN,
  };
}

function maskOf(app: App, numbers: StageNumbers): Found {
  const { row, translated } = numbers;
  const count = String(row + 1);
  return {
    values: { count, place: count, all: String(translated.outputTokens.length) },
    variant: !hidesLater(app, numbers) ? OWN : row ? "" : "first",
    more: hidesLater(app, numbers),
  };
}

function readingOf(_: App, numbers: StageNumbers): Found {
  return { values: {}, variant: OWN, more: areShares(numbers, "cross") };
}

function unitsOf(app: App, { vectors, row, guesses }: StageNumbers): Found {
  const units = vectors.get("decoder.feed_forward");
  const [from, to] = ["cross_attention.add", "feed_forward.add"].map((at) =>
    guesses.find((one) => one.at === at),
  );
  const width = units?.shape[1] ?? app.config.d_ff;
  const active =
    units?.data.subarray(row * width, (row + 1) * width).filter((value) => value > 0).length ?? 0;
  const said = (guess: typeof from) =>
    guess ? `“${nameOf(app, guess.token)}” (${probabilityWords(guess.probability)})` : "";
  return {
    values: { active: String(active), units: String(width), before: said(from), after: said(to) },
    variant: ACTIVATIONS[app.config.activation].cuts ? "" : "smooth",
    more: Boolean(from && to),
  };
}

function chancesOf(app: App, { candidates, translated, row, probability }: StageNumbers): Found {
  const written = translated.hypothesis.ids[row];
  const never = [written, app.config.bos_id, app.config.pad_id]; // searches never write <bos> and <pad>
  const rival = candidates.find(({ id }) => !never.includes(id));
  const smoothing = app.payload.label_smoothing;
  return {
    values: {
      all: app.config.target_vocab_size.toLocaleString("en"),
      probability: probabilityWords(probability),
      rival: nameOf(app, rival?.token),
      rivalProbability: probabilityWords(rival?.probability ?? 0),
      smoothing: String(smoothing),
      aim: String(Number((1 - smoothing).toFixed(4))),
    },
    variant: rival ? "" : "alone",
    more: smoothing > 0,
  };
}

/** Returns a temperature that changes the probabilities, for a reader who has not chosen a temperature. */
async function warmer({ state }: App) {
  return state.temperature === 1 ? { temperature: 2 } : null;
}

function temperatureOf(
  { state: { temperature } }: App,
  { translated, candidates, row, probability }: StageNumbers,
): Found {
  const written = translated.hypothesis.ids[row];
  const shown = candidates.find(({ id }) => id === written);
  return {
    values: {
      temperature: temperatureText(temperature),
      usual: probabilityWords(probability),
      probability: probabilityWords(shown?.probability ?? 0),
    },
  };
}

function searchOf(app: App): Found {
  const { state, result } = app;
  const [best, second] = result.current.search.hypotheses;
  return {
    values: {
      beam: String(state.search.beamSize),
      logp: numberText(best.logProb, 2),
      second: cut(app, second?.text ?? ""),
      secondLogp: second ? numberText(second.logProb, 2) : "",
    },
    variant: state.search.beamSize > 1 ? "" : "one",
    more: Boolean(second),
  };
}

/** Returns the first snapshot of the training, a snapshot from the middle, and the trained model. */
function snapshotsOf(app: App) {
  const steps = checkpointSteps(app.payload);
  if (steps.length <= SNAPSHOTS) return steps;
  return [steps[0], steps[Math.floor((steps.length - 1) / 2)], null];
}

function snapshot(step: number | null, at: number): Act {
  return whole(step === null ? "trained" : at ? "learning" : "beginning", {
    changes: async () => ({ checkpoint: step }),
    made: ({ checkpoint }) => checkpoint === step,
    found: (app) => {
      const { curve, step: final } = app.payload;
      const here = curve.loss.findLast(([one]) => one <= (step ?? final ?? Infinity));
      return {
        values: {
          step: stepName(app, step ?? final),
          text: written(app),
          loss: here ? numberText(here[1], 2) : "",
        },
        more: Boolean(here),
      };
    },
  });
}

async function deciding(app: App) {
  const opening = await openingOf(app, app.result.reference);
  if (!opening) return null;
  const all = Object.entries(opening.without).flatMap(([attention, heads]) =>
    heads.map((left, head) => ({ attention, head, ...left })),
  );
  return { opening, head: all.reduce((best, one) => (one.margin < best.margin ? one : best)) };
}

/** Highlights the word with which the sentence opened, and the head that matters most for this word. */
async function decided(app: App): Promise<Partial<Selection> | null> {
  const found = await deciding(app);
  if (!found) return null;
  const { attention, head } = found.head;
  const { family } = placeIn(attention);
  const heads = headsWith(app.config, app.state.heads, `${attention}.weights`, head);
  return { row: found.opening.row, sourceWord: null, heads, box: `${family.stack}.${family.sublayer}` };
}

/**
 * Returns the word with which the sentence opened, the rival of this word, and how many times as probable as the rival
 * the word is.
 */
async function choiceOf(app: App, { row, rival }: Opening, { trace, outputTokens, hypothesis }: Translated) {
  const logProbs = rowOf(await trace.get("log_probs"), row);
  const word = hypothesis.ids[row];
  return {
    target: nameOf(app, outputTokens[row]),
    rival: nameOf(app, app.engine.tokens("target", [rival])[0]),
    usual: timesOf(app, logProbs[word] - logProbs[rival], Math.exp(logProbs[word])),
  };
}

/** Returns how many times as probable a word is as its rival. */
function timesOf({ t }: App, margin: number, probability: number) {
  if (margin < 0) return probabilityWords(Math.exp(margin));
  return timesText(t, margin, probability, probability * Math.exp(-margin));
}

async function decidingOf(app: App): Promise<Found> {
  const found = await deciding(app);
  if (!found) return { values: {}, variant: "unknown" };
  const { opening, head } = found;
  return {
    values: {
      ...headNames(app, head),
      ...(await choiceOf(app, opening, app.result.reference)),
      count: String(Object.values(opening.without).flat().length),
    },
    more: true,
  };
}

function headNames(app: App, { attention, head }: { attention: string; head: number }) {
  const [stack, , layer, kind] = attention.split(".");
  return { head: String(head), layer, where: app.t(`chapter.where.${stack}.${kind}`) };
}

async function firstOff(app: App) {
  const { ablated } = app.changes;
  if (Object.keys(ablated).length > 0) return { ablated };
  const found = await deciding(app);
  return found && { ablated: ablatedHeads([found.head]) };
}

async function offOf(app: App): Promise<Found> {
  const found = await deciding(app);
  const { reference, current } = app.result;
  const row = found?.opening.row ?? 0;
  const now = current.outputTokens[row];
  const count = Object.values(app.changes.ablated).flat().length;
  const stays = reference.hypothesis.ids[row] === current.hypothesis.ids[row];
  const [before, after] = await Promise.all(
    found && stays ? [reference, current].map((one) => choiceOf(app, found.opening, one)) : [],
  );
  return {
    values: {
      ...before,
      odds: after?.usual ?? "",
      count: String(count),
      target: nameOf(app, reference.outputTokens[row]),
      now: now === undefined ? app.t("chapter.nothing") : `“${nameOf(app, now)}”`,
      probability: probabilityWords(Math.exp(current.hypothesis.tokenLogProbs[row] ?? NaN)),
    },
    variant: `${stays ? "stays" : "turns"}${count > 1 ? "" : ".one"}`,
    more: after !== undefined,
  };
}

/**
 * Returns the mistakes whose effect is visible in one sentence and that the figure can draw. The mistake `decoder_keys`
 * is left out, because the figure always draws the memory as coming from the source.
 */
export function mistakesOf({ config }: App) {
  return config.mistakes
    .filter(({ id, first, one_length: oneLength }) => first && !oneLength && id !== "decoder_keys")
    .map(({ id }) => id);
}

async function firstMistake(app: App) {
  const { mistakes } = app.changes;
  if (mistakes.length > 0) return { mistakes };
  const ids = mistakesOf(app);
  return { mistakes: [PREFERRED.find((id) => ids.includes(id)) ?? ids[0]] };
}

async function mistakeOf(app: App): Promise<Found> {
  const { reference, current, firstDifference, logProbOfReference } = app.result;
  return {
    values: {
      text: written(app),
      about: app.t(`mistake.${app.changes.mistakes[0]}.about`),
      first: firstDifference ?? "",
      from: numberText(reference.hypothesis.logProb, 2),
      to: numberText(logProbOfReference, 2),
    },
    variant: current.text === reference.text ? "same" : "",
    more: firstDifference !== null,
  };
}
