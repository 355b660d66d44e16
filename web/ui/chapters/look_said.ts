// What the first scene says: what the head looks at, what happened, and what the reader can do next.
import { allHeads } from "../../engine/model.ts";
import { activeChanges } from "../box/changes/active.ts";
import { inForce } from "../box/changes/new_sentence.ts";
import { element } from "../app/dom.ts";
import { probabilityWords, timesText, tokenName } from "../app/wording.ts";
import { differingOf, hasOtherBeginning, layerOf } from "./look_subject.ts";
import { namesOf, NOUNS, say, sourceWord, targetWord, tokensOf, topOf } from "./look_words.ts";

import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Written } from "../figure/hand.ts";
import type { Subject } from "./look_subject.ts";

/** What the reader sees of a subject. */
export interface Moment {
  subject: Subject;
  written: Written;
  /** The position of the dot for which `written` was computed. */
  at: number;
  /** Whether the rows are turned, and whether the reader holds them. */
  isTurned: boolean;
  isHeld: boolean;
  canTurn: boolean;
  /** The greedy output for a position of the dot, to be compared with the output of the page's search. */
  greedy: { position: number; ids: number[] } | null;
}

/** What the scene says: its conclusion, and what stands under the title. */
interface Told {
  said: Child;
  more: Child[];
}

/**
 * Returns the question that the scene asks, or its answer when the word has turned, and what explains it. If the output
 * now differs before this word, returns which words the bar compares instead.
 */
export function askedOf(app: App, { subject, written, isTurned }: Moment) {
  const { opening, word, rival, other, own } = subject;
  const names = namesOf(app, [word, rival]);
  const isPair = other !== "" && app.payload.story.pair.includes(app.state.sentence);
  const areGenders = isPair && String([...names].sort()) === String(Object.keys(NOUNS));
  const about = isPair ? element("em", "gfs-source", differingOf(app, other)) : targetWord(names[0]);
  const heads = allHeads(app.config).length;
  const lead = (key: string, words: string[]) =>
    say(app, `lead${key}`, ...words.map(targetWord), opening.row + 1, heads);
  if (hasOtherBeginning(own, written, opening))
    return { title: say(app, "other", about), lead: lead(".other", names) };
  const noun = areGenders && isTurned && NOUNS[namesOf(app, [topOf(app, written)])[0]];
  return {
    title: noun ? say(app, "is", sourceWord(noun), about) : say(app, isPair ? "who" : "why", about),
    lead:
      !isTurned && (areGenders ? lead(".genders", Object.keys(NOUNS)) : lead(isPair ? ".pair" : "", names)),
  };
}

/** Returns the conclusion below the picture, and what there is to add to it. */
export function toldOf(app: App, moment: Moment): Told {
  const { subject, isTurned } = moment;
  const { said, more } = isTurned ? turnedText(app, moment) : restingText(app, moment);
  // otherwise, the text already names the changes
  const isNamed = isTurned && activeChanges(app).length <= subject.looks.length;
  return { said, more: isNamed ? more : [inForce(app), spaceOf(app), more] };
}

const spaceOf = ({ state }: App) => (state.language === "zh" ? "" : " ");
const severalOf = ({ looks }: Subject) => (looks.length > 1 ? ".two" : "");

/** Returns the text about the model's own rows. */
function restingText(app: App, { subject, written: { logProbs }, canTurn }: Moment): Told {
  const { looks, pale, word, rival, translated, own } = subject;
  const pair = () => namesOf(app, [word, rival]).map(targetWord);
  const sourceAt = (place: number) => sourceWord(tokenName(translated.sourceTokens[place], app.t));
  const [several, space] = [severalOf(subject), spaceOf(app)];
  const trails = own.logProbs[word] < own.logProbs[rival];
  const margin = logProbs[word] - logProbs[rival];
  const times = timesText(app.t, margin, ...[word, rival].map((id) => Math.exp(logProbs[id])));
  const [{ peak, weights, head }] = looks;
  const looked = [sourceAt(peak), probabilityWords(weights[peak]), layerOf(looks[0]), head];
  const so = margin > 0 && say(app, "so", ...pair(), times);
  return {
    said: [
      say(app, `looks${several && trails ? ".trails" : several}`, ...looked, ...pair()),
      !several && [space, so],
      space,
      element("strong", {}, canTurn ? invitation(app, subject) : say(app, "fixed")),
    ],
    more: [
      several && [so, space],
      // only without changes, because the opening was measured without changes
      !app.changed &&
        pale?.isFirst &&
        say(app, "first", layerOf(pale), pale.head, sourceAt(pale.peak), ...pair()),
    ],
  };
}

/** Returns the text about turned rows. */
function turnedText(app: App, moment: Moment): Told {
  const { subject, written, isHeld } = moment;
  const { word, opening, own } = subject;
  const { logProbs, ids } = written;
  const probability = (id: number) => probabilityWords(Math.exp(logProbs[id]));
  const [top, space] = [topOf(app, written), spaceOf(app)];
  const old = own.ids?.[opening.row] ?? word;
  const now = isHeld ? top : (ids?.[opening.row] ?? top);
  const [oldWord, nowWord, topWord] = namesOf(app, [old, now, top]).map(targetWord);
  const begins = !isHeld && hasOtherBeginning(own, written, opening);
  const key = begins ? "begins" : now === old ? "stays" : "writes";
  const result = begins ? opening.row + 1 : nowWord;
  return {
    said: say(app, `${key}${severalOf(subject)}`, looked(app, moment), result, probability(now), oldWord),
    more: [
      !begins && !isHeld && later(app, subject),
      !begins && now !== old && ids && [space, followed(app, moment)],
      !begins && now !== top
        ? [space, say(app, "search", topWord, probability(top))]
        : !isHeld && differs(app, moment),
    ],
  };
}

/** Returns the word at the dot. If the dot is between two words, returns both words, with each word's share. */
function looked(app: App, { subject, at }: Moment): Child {
  const [low, high] = [Math.floor(at), Math.ceil(at)];
  const word = (place: number) => sourceWord(tokenName(subject.translated.sourceTokens[place], app.t));
  if (low === high) return ["“", word(low), "”"];
  const shares = [1 - at + low, at - low].map(probabilityWords);
  return say(app, "both", word(low), shares[0], word(high), shares[1]);
}

/**
 * Returns a text about the head whose line is dotted: to which word this head attends now. The text is "" if the head
 * does not depend on the head whose row the reader has set by hand.
 */
function later(app: App, { looks, pale, translated }: Subject): Child {
  const onlyTurned = activeChanges(app).length <= looks.length;
  if (!pale || pale.peak === pale.was || layerOf(pale) <= layerOf(looks[0]) || !onlyTurned) return "";
  const [was, now] = [pale.was, pale.peak].map((at) =>
    sourceWord(tokenName(translated.sourceTokens[at], app.t)),
  );
  const weight = probabilityWords(pale.weights[pale.peak]);
  return [spaceOf(app), say(app, "later", layerOf(pale), pale.head, was, now, weight)];
}

/** Returns a text that says which words after the row set by hand change as a consequence. */
function followed(app: App, { subject: { opening, own }, written }: Moment): Child {
  const [before, now] = [own, written].map((one) =>
    tokensOf(app, one)
      .slice(opening.row + 1)
      .map((token) => tokenName(token, app.t)),
  );
  if (before.length !== now.length) return say(app, "change");
  const pairs = now.flatMap((text, at) => (text === before[at] ? [] : [`“${before[at]}” → “${text}”`]));
  if (pairs.length === 0) return say(app, "alone");
  return say(app, "follow", pairs.slice(0, 3).join(", ") + (pairs.length > 3 ? ", …" : ""));
}

function invitation(app: App, { opening, translated }: Subject) {
  const place = opening.turn?.to;
  if (place === undefined) return say(app, "drag.any");
  return say(app, "drag", sourceWord(tokenName(translated.sourceTokens[place], app.t)));
}

/** Returns a remark if the page's search writes something other than the greedy output while dragging. */
function differs(app: App, { greedy, subject: { rested, hand } }: Moment): Child {
  const { ids, position } = greedy ?? {};
  if (!ids || position !== hand.position || String(ids) === String(rested.ids)) return null;
  return [" ", say(app, "differs", app.engine.decode(ids))];
}
