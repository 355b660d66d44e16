// The first chapter, a scene about what one head looks at. A ray runs from the source word to which the head
// attends, to the word that the model writes. The reader drags the ray to another source word, and the model writes
// something else.
import { isUnchanged } from "../../engine/changes.ts";
import { sublayersOf } from "../app/boxes.ts";
import { activeChanges } from "../box/changes/active.ts";
import { inForce } from "../box/changes/new_sentence.ts";
import { largestAt, rowOf } from "../../engine/tensor.ts";
import { withoutRows } from "../../engine/turning.ts";
import { button, element, pill, refill } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { latestOnly } from "../app/latest.ts";
import { createStrip } from "./chapter_view.ts";
import { differingWord, partnerOf } from "../figure/examples.ts";
import { wantsStillness } from "../figure/glide.ts";
import { Hand } from "../figure/hand.ts";
import { openingOf } from "../figure/opening.ts";
import { languageNames, probabilityWords, timesText, tokenName } from "../app/wording.ts";

import type { Changes, Opening, Trace } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child, Selection, Translated } from "../app/types.ts";
import type { Written } from "../figure/hand.ts";

const MOVE = 320; // milliseconds
const PLAY = 1500;
const MAGNET = 0.12; // fraction of the distance between two words within which the dot snaps to a word
const FAINT = 0.03; // smaller weights get no ray
const BROAD = 16; // px: the width of a ray with weight 1
const HINT = 110; // px needed for the hint beside the dot

/** A head's row of cross-attention, at the position of the scene's word. */
interface Look {
  attention: string;
  head: number;
  weights: Float32Array;
  /** The index of the source word with the largest weight. */
  peak: number;
}

/** Everything that the scene shows about a sentence. */
interface Subject {
  translated: Translated;
  opening: Opening;
  /** The ids of the scene's word and of its rival. */
  word: number;
  rival: number;
  /** The rows of attention that the reader sets together by dragging; the row that decides the word comes first. */
  looks: Look[];
  /**
   * Of the rows that are not turned, the row with the largest effect. `isFirst`: whether this row has the largest
   * effect of all rows, so that the figure opens with it. `was`: the source position to which this row attends most
   * when no row is set by hand.
   */
  pale: (Look & { isFirst: boolean; was: number }) | null;
  hand: Hand;
  /**
   * The output without rows set by hand, and the output with the rows at the position where the reader released them.
   */
  own: Written;
  rested: Written;
  /** The other sentence of the pair, to which a button leads; "" if the page has no pair. */
  other: string;
}

/** A point in the picture. */
interface Spot {
  x: number;
  y: number;
}

/** What the figure highlights after the scene: the row that writes the word, and the heads. */
export type Lit = Pick<Selection, "heads"> & { row: number };

/**
 * Returns the scene as an element, which follows the page's sentence. `onward` opens the figure and highlights the
 * scene's ray in the figure; its argument is null if no ray is known.
 */
export function createLook(app: App, onward: (lit: Lit | null) => void): HTMLElement {
  return new LookView(app, onward).element;
}

class LookView {
  element = element("section", "gf-stage-root gf-ray");
  #app: App;
  #onward: (lit: Lit | null) => void;
  #subject: Subject | null = null;
  /** The position to which the reader is dragging the rows; null if the reader does not hold the dot. */
  #held: number | null = null;
  /** The position at which the rows were released, while the page is searching. */
  #kept: number | null = null;
  /** The position of the dot for which the shown numbers were computed; the numbers may lag behind the dot. */
  #told = 0;
  #written: Written = { logProbs: new Float32Array(), ids: null };
  /** The greedy output for a position of the dot, to be compared with the output of the page's search. */
  #greedy: { position: number; ids: number[] } | null = null;
  #language = "";
  #frame = 0;
  #gradient = `gf-ray-${Math.random().toString(36).slice(2)}`;
  #title = element("h2");
  #lead = element("p", "gf-ray-lead");
  #source = element("p", { class: "gf-ray-words", dir: "auto" });
  #target = element("p", { class: "gf-ray-words gf-ray-written", dir: "auto" });
  #field = element("div", "gf-ray-field");
  #svg = drawing("svg", { "aria-hidden": "true" });
  #chips = element("div", { "aria-hidden": "true" });
  #dot = element("button", { type: "button", class: "gf-ray-dot", role: "slider" });
  #tug = element("div", "gf-ray-tug");
  #map = element("aside", { class: "gf-ray-map", "aria-hidden": "true" });
  #said = element("p", { class: "gf-ray-said", "aria-live": "polite" });
  #buttons = element("div", "gf-ray-buttons");
  #prepare: () => Promise<void>;

  constructor(app: App, onward: (lit: Lit | null) => void) {
    this.#app = app;
    this.#onward = onward;
    this.#prepare = latestOnly(
      app.signal,
      () => subjectOf(app, (done, all) => this.#measuring(done, all)),
      (subject) => this.#show(subject),
    );
    this.element.append(
      element("header", {}, element("p", "gfs-name", "glassformer"), this.#buttons),
      element("div", {}, this.#title, this.#lead),
      this.#field,
      this.#map,
      this.#tug,
      element("footer", {}, this.#said),
      createStrip(app),
    );
    this.#listen();
    this.#begin();
  }

  #listen() {
    const app = this.#app;
    const redraw = () => this.#draw();
    app.on(["result", "language", "view", "chapter", "act"], () => this.#begin());
    app.on(["layout", "theme"], redraw);
    const size = new ResizeObserver(redraw);
    size.observe(this.element);
    app.signal.addEventListener("abort", () => size.disconnect(), { once: true });
    this.#dot.addEventListener("pointerdown", (event) => {
      this.#dot.setPointerCapture(event.pointerId);
      cancelAnimationFrame(this.#frame);
    });
    this.#dot.addEventListener("pointermove", (event) => {
      if (this.#dot.hasPointerCapture(event.pointerId)) this.#hold(this.#positionAt(event));
    });
    const end = () => this.#keep();
    this.#dot.addEventListener("pointerup", end);
    this.#dot.addEventListener("pointercancel", end);
    this.#dot.addEventListener("blur", end);
    this.#dot.addEventListener("keydown", (event) => this.#key(event));
  }

  #begin() {
    const { result, view, chapter } = this.#app.state;
    if (!result || view !== "stage" || chapter !== 1) return;
    this.element.ariaBusy = "true";
    this.#app.attempt(this.#prepare);
  }

  // The reader's actions

  /**
   * The position of the dot: where the reader holds the dot, or where the reader released it, or else at the word to
   * which the head attends most.
   */
  get #position() {
    const subject = this.#subject as Subject;
    return this.#held ?? subject.hand.position ?? subject.looks[0].peak;
  }

  get #isTurned() {
    return this.#held !== null || (this.#subject as Subject).hand.position !== null;
  }

  get #canTurn() {
    return this.#app.engine.live !== false;
  }

  /** Moves the dot to a position. The ray follows at once; the numbers follow when the page has computed them. */
  #hold(position: number) {
    const { hand } = this.#subject as Subject;
    if (!this.#canTurn || position === this.#held) return;
    this.#held = position;
    this.#drawLook();
    if (this.#app.engine.live !== true) this.#said.textContent = this.#app.t("look.waits");
    this.#app.attempt(() =>
      hand.hold(position, (written) => {
        this.#told = position;
        this.#written = { ...written, ids: written.ids ?? this.#written.ids };
        if (written.ids) this.#greedy = { position, ids: written.ids };
        this.#draw();
      }),
    );
  }

  #keep() {
    const held = this.#held;
    if (held === null || held === this.#kept) return;
    this.#kept = held;
    this.#app.attempt(() => (this.#subject as Subject).hand.keep(held));
  }

  async #letGo() {
    const { hand, looks, rested } = this.#subject as Subject;
    await this.#glide(looks[0].peak, MOVE);
    this.#held = null;
    if (this.#app.changed) return this.#app.attempt(() => hand.letGo());
    this.#written = rested;
    this.#told = looks[0].peak;
    this.#draw();
  }

  async #turnTo(place: number, duration = MOVE) {
    await this.#glide(place, duration);
    this.#keep();
  }

  /** Animates the dot to a position, and recomputes the output on the way. */
  #glide(to: number, duration: number) {
    const from = this.#position;
    const begun = performance.now();
    const still = wantsStillness();
    cancelAnimationFrame(this.#frame);
    return new Promise<void>((arrived) => {
      const step = (now: number) => {
        const share = still ? 1 : Math.min(1, Math.max(0, now - begun) / duration);
        this.#hold(from + (to - from) * (1 - (1 - share) ** 3));
        if (share === 1 || this.#app.signal.aborted) arrived();
        else this.#frame = requestAnimationFrame(step);
      };
      this.#frame = requestAnimationFrame(step);
    });
  }

  /** Returns the best position to which to drag the dot: where the rival gains most. */
  async #aim() {
    const { opening, looks, translated, hand, word, rival } = this.#subject as Subject;
    if (opening.turn || this.#app.engine.live !== true)
      return opening.turn?.to ?? Number(looks[0].peak === 0);
    const margins: number[] = [];
    for (const place of translated.sourceTokens.keys())
      await hand.hold(place, ({ logProbs }) => (margins[place] = logProbs[rival] - logProbs[word]));
    return largestAt(margins, 1, (place) => place !== looks[0].peak)[0];
  }

  async #demonstrate() {
    await this.#turnTo(await this.#aim(), PLAY);
  }

  #key(event: KeyboardEvent) {
    const { translated } = this.#subject as Subject;
    const last = translated.sourceTokens.length - 1;
    const ways: Record<string, number> = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
    const isLeftwards = getComputedStyle(this.#source).direction === "rtl";
    if (event.key in ways) {
      const way = ways[event.key] * (isLeftwards ? -1 : 1);
      const at = this.#position;
      const next = event.shiftKey ? at + way / 10 : way > 0 ? Math.floor(at) + 1 : Math.ceil(at) - 1;
      this.#hold(Math.round(10 * Math.max(0, Math.min(last, next))) / 10);
    } else if (event.key === "Enter") this.#keep();
    else if (event.key === "Escape" && this.#isTurned) this.#letGo();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Returns the position under the pointer, snapped to a word if a word is near. */
  #positionAt({ clientX, clientY }: PointerEvent) {
    const words = this.#spots();
    const { left, top } = this.#field.getBoundingClientRect();
    const [x, y] = [clientX - left, clientY - top];
    const line = words.reduce(
      (best, { y: at }) => (Math.abs(at - y) < Math.abs(best - y) ? at : best),
      Infinity,
    );
    const places = [...words.keys()]
      .filter((at) => words[at].y === line)
      .sort((a, b) => words[a].x - words[b].x);
    const right = places.findIndex((at) => words[at].x >= x);
    if (right <= 0) return places[right < 0 ? places.length - 1 : 0];
    const [a, b] = [places[right - 1], places[right]];
    const share = (x - words[a].x) / (words[b].x - words[a].x);
    const drawn = share < MAGNET ? 0 : share > 1 - MAGNET ? 1 : Math.round(100 * share) / 100;
    return a + (b - a) * drawn;
  }

  // What the scene shows

  /**
   * Shows how far the page has come in finding the head that decides the word; necessary only for a sentence that
   * Python has not measured.
   */
  #measuring(done: number, all: number) {
    if (this.#subject) return;
    this.#said.textContent = done < all ? this.#app.t("look.measuring", done, all) : "";
  }

  #show(subject: Subject | null) {
    const [before, language] = [this.#subject, this.#app.state.language];
    const isNew = before?.translated !== subject?.translated || this.#language !== language;
    this.#subject = subject;
    this.#language = language;
    this.element.ariaBusy = "false";
    if (isNew || this.#held === this.#kept) this.#held = null; // otherwise, the reader has moved the dot again
    this.#kept = null;
    this.element.toggleAttribute("data-empty", !subject);
    if (!subject) {
      refill(this.#said, this.#say("unknown"));
      return this.#drawButtons();
    }
    if (this.#held === null) {
      this.#written = subject.rested;
      this.#told = this.#position;
    }
    if (isNew) this.#fill(subject); // only for a new subject: refilling would take the focus from the dot
    this.#draw();
  }

  /** Draws the parts that do not change while the ray is moved. */
  #fill({ translated, opening, other, looks, pale }: Subject) {
    const app = this.#app;
    const { outputTokens } = translated;
    const languages = languageNames(app);
    const differing = differingOf(app, other);
    refill(
      this.#field,
      this.#svg,
      element("p", "gf-ray-label", this.#say("read", capital(languages.source))),
      this.#source,
      element("div", "gf-ray-room"),
      element("p", "gf-ray-label", this.#say("written", capital(languages.target))),
      this.#target,
      this.#chips,
      this.#canTurn && this.#dot,
    );
    const names = translated.sourceTokens.map((token) => this.#name(token));
    refill(
      this.#source,
      names.map((name, place) => [
        gap(translated.sourceTokens, place),
        element(
          "span",
          {
            "data-place": place,
            onclick: () => this.#canTurn && name !== differing && app.attempt(() => this.#turnTo(place)),
            class: translated.sourceTokens[place] === "<eos>" ? "gf-ray-later" : "",
          },
          name === differing
            ? button([name, " ⇄"], () => app.attempt(() => app.open(other)), {
                title: app.t("look.swap"),
              })
            : name,
        ),
      ]),
    );
    this.element.ariaLabel = app.t("look.label", outputTokens[opening.row]);
    refill(this.#map, mapOf(app, looks, pale));
  }

  /**
   * Writes the question that the scene asks. If the output now differs before this word, writes instead which words the
   * bar compares.
   */
  #ask({ opening, word, rival, other, own }: Subject) {
    const app = this.#app;
    const names = this.#words([word, rival]);
    const [mine, its] = names.map(targetWord);
    const isPair = other !== "" && app.payload.story.pair.includes(app.state.sentence);
    const [title, lead] = hasOtherBeginning(own, this.#written, opening)
      ? ["other", ".other"]
      : isPair
        ? ["who", String([...names].sort()) === "elle,il" ? ".genders" : ".pair"]
        : ["why", ""];
    const about = isPair ? element("em", "gfs-source", differingOf(app, other)) : mine.cloneNode(true);
    refill(this.#title, this.#say(title, about));
    const genders = ["il", "elle"].map(targetWord);
    const said = lead === ".genders" ? genders : [mine, its, opening.row + 1];
    refill(this.#lead, this.#say(`lead${lead}`, ...said));
  }

  /** Draws everything that changes while the ray is moved. */
  #draw() {
    const subject = this.#subject;
    if (!subject || !this.element.clientWidth) return;
    this.#size(subject);
    refill(this.#target, this.#output(subject));
    this.#drawLook();
    this.#drawTug(subject);
    this.#ask(subject);
    this.#tell(subject);
  }

  /** Draws the ray at its position, before the output for this position is known. */
  #drawLook() {
    const subject = this.#subject as Subject;
    const weights = this.#weights(subject);
    for (const one of this.#source.querySelectorAll<HTMLElement>("[data-place]"))
      one.style.setProperty("--share", String(weights[Number(one.dataset.place)]));
    this.#drawRays(subject, weights);
  }

  /** Sets the font size of the words so that they fit in one line, unless that size would be too small. */
  #size({ translated: { sourceTokens, outputTokens } }: Subject) {
    const letters = (tokens: string[]) => tokens.join("").length + 1.3 * tokens.length;
    const fitting =
      this.#field.clientWidth / (0.47 * Math.max(letters(sourceTokens), letters(outputTokens) + 6));
    this.element.style.setProperty("--look-size", `${Math.min(27, fitting < 20 ? 20 : fitting)}px`);
  }

  /**
   * Returns the attention weights of the head that decides the word: the weights that the reader has set, or the
   * model's own weights.
   */
  #weights({ looks: [{ weights }], hand }: Subject) {
    return this.#isTurned ? hand.rows(this.#position)[0].weights : weights;
  }

  #words(ids: number[]) {
    return this.#app.engine.tokens("target", ids).map((token) => this.#name(token));
  }

  /** Returns a text of the scene in which elements replace {0}, {1} … */
  #say(key: string, ...parts: Child[]): Child[] {
    const text = this.#app.t(`look.${key}`);
    return text.split(/\{(\d)\}/).map((part, at) => (at % 2 ? parts[Number(part)] : part));
  }

  #name(token: string) {
    return tokenName(token, this.#app.t);
  }

  /**
   * Returns the words of the output. Where the output differs from the output without rows set by hand, the old words
   * are struck out.
   */
  #output({ opening: { row }, own }: Subject): Child[] {
    const [before, now] = this.#texts(own);
    return comparedWords(this.#app, before, now, (text, place) =>
      place === row
        ? this.#pill(text)
        : element("span", { class: place > row && "gf-ray-later" }, this.#name(text)),
    );
  }

  /**
   * Returns the scene's word as a button. The first click moves the ray to where the rival gains most; the next one
   * opens the figure.
   */
  #pill(text: string) {
    const { t } = this.#app;
    const [key, onclick] = this.#isTurned
      ? ["onward", () => this.#app.attempt(() => this.#leave())]
      : ["act", () => this.#app.attempt(() => this.#demonstrate())];
    const way = this.#canTurn && { onclick, title: t(`look.${key}`) };
    return element("span", { class: "gf-ray-pill", ...way }, this.#name(text));
  }

  /** Returns the words of the output without rows set by hand, and of the present output, without <eos>. */
  #texts(own: Written): [before: string[], now: string[]] {
    const { engine, config } = this.#app;
    const texts = ({ ids }: Written) =>
      engine.tokens(
        "target",
        (ids ?? []).filter((id) => id !== config.eos_id),
      );
    return [texts(own), texts(this.#written)];
  }

  /** Returns the points below the source words at which rays begin. */
  #spots(): Spot[] {
    const { left, top } = this.#field.getBoundingClientRect();
    let line = 0;
    return [...this.#source.querySelectorAll("[data-place]")].map((one) => {
      const box = one.getBoundingClientRect();
      const y = Math.round(box.bottom - top) + 16; // keeps the dot clear of the word's button
      if (Math.abs(y - line) > 12) line = y; // words of one line may differ in height
      return { x: (box.left + box.right) / 2 - left, y: line };
    });
  }

  #drawRays({ looks, pale }: Subject, weights: ArrayLike<number>) {
    const { left, top, width, height } = this.#field.getBoundingClientRect();
    const pill = this.#target.querySelector(".gf-ray-pill")?.getBoundingClientRect();
    if (!pill) return refill(this.#svg);
    const end = { x: (pill.left + pill.right) / 2 - left, y: pill.top - top };
    const spots = this.#spots();
    const at = this.#position;
    const [low, high] = [spots[Math.floor(at)], spots[Math.ceil(at)]];
    const share = at % 1;
    const dot =
      low.y === high.y ? { x: low.x + share * (high.x - low.x), y: low.y } : share < 0.5 ? low : high;
    const strong = Math.max(...Array.from(weights));
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const id = this.#gradient;
    const others = this.#isTurned ? [] : [...Array.from(weights).keys()].filter((place) => place !== at);
    // the pale ray moves aside, so that the two rays do not overlap
    const isBeside = pale !== null && Math.abs(spots[pale.peak].x - dot.x) < 14;
    const aside = ({ x, y }: Spot) => ({ x: x + (isBeside ? 14 : 0), y });
    const [paleFrom, paleTo] = [pale && aside(spots[pale.peak]), aside(end)];
    refill(
      this.#svg,
      drawing(
        "linearGradient",
        { id, gradientUnits: "userSpaceOnUse", x1: 0, y1: dot.y, x2: 0, y2: end.y },
        drawing("stop", { offset: 0, class: "gf-ray-begin" }),
        drawing("stop", { offset: 1, class: "gf-ray-to" }),
      ),
      paleFrom && drawing("path", { d: curve(paleFrom, paleTo), class: "gf-ray-pale" }),
      others
        .filter((place) => weights[place] >= FAINT)
        .map((place) =>
          drawing("path", {
            d: curve(spots[place], end),
            class: "gf-ray-thin",
            "stroke-width": BROAD * weights[place],
          }),
        ),
      drawing("path", {
        d: curve(dot, end),
        class: "gf-ray-path",
        stroke: `url(#${id})`,
        "stroke-width": this.#isTurned ? BROAD : Math.max(3, BROAD * strong),
      }),
      !this.#canTurn && drawing("circle", { cx: dot.x, cy: dot.y, r: 10, class: "gf-ray-end" }),
    );
    this.#dot.style.transform = `translate(${dot.x - 22}px, ${dot.y - 22}px)`;
    const isPaleKnown = this.#held === null || looks.every((look) => pale && layerOf(pale) <= layerOf(look));
    const texts = looks.map((look) => lookText(this.#app, look, this.#isTurned ? strong : undefined));
    const hasRoom = dot.x < width - HINT;
    const beside = dot.x < width - 2 * HINT ? "gf-ray-beside" : "gf-ray-beside gf-ray-before";
    refill(
      this.#chips,
      chip(texts.join(" · "), middle(dot, end, 0.55), "gf-ray-on"),
      this.#canTurn &&
        !this.#isTurned &&
        chip(this.#say("hint"), { x: dot.x, y: dot.y + 8 }, `gf-ray-hint${hasRoom ? "" : " gf-ray-before"}`),
      isPaleKnown &&
        paleFrom &&
        pale &&
        chip(lookText(this.#app, pale), middle(paleFrom, paleTo, 0.3), isBeside ? beside : ""),
    );
    this.#nameDot();
  }

  /** Names the dot's position for screen readers. */
  #nameDot() {
    const { translated } = this.#subject as Subject;
    const at = this.#position;
    const words = [...new Set([Math.floor(at), Math.ceil(at)])].map((place) => {
      const share = 1 - Math.abs(at - place);
      const word = this.#name(translated.sourceTokens[place]);
      return share === 1 ? word : `${word} ${probabilityWords(share)}`;
    });
    Object.assign(this.#dot, {
      ariaLabel: this.#app.t("look.dot"),
      ariaValueMin: "0",
      ariaValueMax: String(translated.sourceTokens.length - 1),
      ariaValueNow: String(at),
      ariaValueText: words.join(", "),
    });
  }

  /** Returns the likeliest word at the position of the scene's word. */
  #top() {
    const { bos_id: bos, pad_id: pad } = this.#app.config;
    return largestAt(this.#written.logProbs, 1, (id) => id !== bos && id !== pad)[0];
  }

  #drawTug({ word, rival }: Subject) {
    const [mine, its] = [word, rival].map((id) => Math.exp(this.#written.logProbs[id]));
    const [first, second] = this.#words([word, rival]);
    const side = (name: string, value: number, won: boolean) =>
      element(
        "span",
        { class: won ? "gf-ray-won" : "" },
        name,
        " ",
        element("data", { value }, probabilityWords(value)),
      );
    const bar = element("span", "gf-ray-bar", element("i"), element("i"));
    bar.style.setProperty("--mine", String(mine));
    bar.style.setProperty("--its", String(its));
    const top = this.#top();
    bar.toggleAttribute("data-lost", top === rival);
    const others = this.#say("others", probabilityWords(Math.max(0, 1 - mine - its)));
    refill(
      this.#tug,
      side(first, mine, top === word),
      bar,
      side(second, its, top === rival),
      element("small", {}, others),
    );
  }

  /** Writes what happened, and what the reader can do next. */
  #tell(subject: Subject) {
    const app = this.#app;
    const { looks, pale, word, rival, opening, translated, own } = subject;
    const { logProbs, ids } = this.#written;
    const [mine, its] = this.#words([word, rival]);
    const top = this.#top();
    const probability = (id: number) => probabilityWords(Math.exp(logProbs[id]));
    const place = looks[0].peak;
    const isTurned = this.#isTurned;
    const space = app.state.language === "zh" ? "" : " ";
    const several = looks.length > 1 ? ".two" : "";
    const trails = own.logProbs[word] < own.logProbs[rival];
    const said: Child[] = [];
    if (!isTurned) {
      const margin = logProbs[word] - logProbs[rival];
      const times = timesText(app.t, margin, ...[word, rival].map((id) => Math.exp(logProbs[id])));
      said.push(
        this.#say(
          `looks${several && trails ? ".trails" : several}`,
          sourceWord(this.#name(translated.sourceTokens[place])),
          probabilityWords(looks[0].weights[place]),
          layerOf(looks[0]),
          looks[0].head,
          targetWord(mine),
          targetWord(its),
        ),
        space,
        margin > 0 && this.#say("so", targetWord(mine), targetWord(its), times),
        space,
        !app.changed &&
          pale?.isFirst && [
            // only without changes, because the opening was measured without changes
            this.#say(
              "first",
              layerOf(pale),
              pale.head,
              sourceWord(this.#name(translated.sourceTokens[pale.peak])),
              targetWord(mine),
              targetWord(its),
            ),
            space,
          ],
        element("strong", {}, this.#canTurn ? this.#invitation(subject) : this.#say("fixed")),
      );
    } else {
      const old = own.ids?.[opening.row] ?? word;
      const now = this.#held === null ? (ids?.[opening.row] ?? top) : top;
      const [oldWord, nowWord, topWord] = this.#words([old, now, top]).map(targetWord);
      const begins = this.#held === null && hasOtherBeginning(own, this.#written, opening);
      const key = begins ? "begins" : now === old ? "stays" : "writes";
      said.push(
        this.#say(
          `${key}${several}`,
          this.#looked(translated),
          begins ? opening.row + 1 : nowWord,
          probability(now),
          oldWord,
        ),
        !begins && this.#held === null && this.#later(subject),
        !begins && now !== old && ids && [space, this.#followed(subject)],
        !begins && now !== top
          ? [space, this.#say("search", topWord, probability(top))]
          : this.#held === null && this.#differs(subject),
      );
    }
    // otherwise, the text already names the changes
    if (!isTurned || activeChanges(app).length > looks.length) said.unshift(inForce(app), space);
    refill(this.#said, said);
    this.#drawButtons();
  }

  /** Returns the word at the dot. If the dot is between two words, returns both words, with each word's share. */
  #looked({ sourceTokens }: Translated): Child {
    const at = this.#told;
    const [low, high] = [Math.floor(at), Math.ceil(at)];
    const word = (place: number) => sourceWord(this.#name(sourceTokens[place]));
    if (low === high) return ["“", word(low), "”"];
    const shares = [1 - at + low, at - low].map(probabilityWords);
    return this.#say("both", word(low), shares[0], word(high), shares[1]);
  }

  /**
   * Returns a text about the head whose line is dotted: to which word this head attends now. The text is "" if the head
   * does not depend on the head whose row the reader has set by hand.
   */
  #later({ looks, pale, translated }: Subject): Child {
    const onlyTurned = activeChanges(this.#app).length <= looks.length;
    if (!pale || pale.peak === pale.was || layerOf(pale) <= layerOf(looks[0]) || !onlyTurned) return "";
    const [was, now] = [pale.was, pale.peak].map((at) => sourceWord(this.#name(translated.sourceTokens[at])));
    const weight = probabilityWords(pale.weights[pale.peak]);
    const space = this.#app.state.language === "zh" ? "" : " ";
    return [space, this.#say("later", layerOf(pale), pale.head, was, now, weight)];
  }

  /** Returns a text that says which words after the row set by hand change as a consequence. */
  #followed({ opening: { row }, own }: Subject): Child {
    const tails = this.#texts(own).map((texts) => texts.slice(row + 1).map((token) => this.#name(token)));
    const [before, now] = tails;
    if (before.length !== now.length) return this.#say("change");
    const pairs = now.flatMap((text, at) => (text === before[at] ? [] : [`“${before[at]}” → “${text}”`]));
    if (pairs.length === 0) return this.#say("alone");
    return this.#say("follow", pairs.slice(0, 3).join(", ") + (pairs.length > 3 ? ", …" : ""));
  }

  #invitation({ opening, translated }: Subject) {
    const place = opening.turn?.to;
    return place === undefined
      ? this.#say("drag.any")
      : this.#say("drag", sourceWord(this.#name(translated.sourceTokens[place])));
  }

  /** Returns a remark if the page's search writes something other than the greedy output while dragging. */
  #differs({ rested, hand }: Subject): Child {
    const { ids, position } = this.#greedy ?? {};
    if (!ids || position !== hand.position || String(ids) === String(rested.ids)) return null;
    return [" ", this.#say("differs", this.#app.engine.decode(ids))];
  }

  /**
   * Shows a button that demonstrates dragging until the reader has dragged the dot; then shows a button that opens
   * the figure.
   */
  #drawButtons() {
    const [app, subject] = [this.#app, this.#subject];
    const isTurned = subject !== null && this.#isTurned;
    const isDone = !subject || isTurned || !this.#canTurn;
    const isFree = !isTurned && !app.changed;
    const key = `${isFree} ${isDone} ${app.state.language}`;
    if (this.#buttons.dataset.key === key) return; // keeps unchanged buttons, which may have the focus
    this.#buttons.dataset.key = key;
    const act = (label: string, action: () => unknown, main = true) =>
      pill(this.#say(label), () => app.attempt(action), main);
    refill(
      this.#buttons,
      !isFree && act("letgo", () => this.#letGo(), false),
      isDone ? act("onward", () => this.#leave()) : act("act", () => this.#demonstrate()),
    );
  }

  #leave() {
    if (!this.#subject) return this.#onward(null);
    const { looks, opening } = this.#subject;
    const cross = { layer: layerOf(looks[0]), head: looks[0].head };
    this.#onward({ row: opening.row, heads: { ...this.#app.state.heads, cross } });
  }
}

// The subject of the scene

async function subjectOf(app: App, progress: (done: number, all: number) => void): Promise<Subject | null> {
  const translated = app.result.reference;
  const opening = await openingOf(app, translated, progress);
  if (!opening) return null;
  const { row, rival, turn } = opening;
  const word = translated.hypothesis.ids[row];
  const cost = (attention: string, head: number) => opening.without[attention][head].margin;
  const heads = Object.keys(opening.without)
    .filter((name) => name.endsWith("cross_attention"))
    .flatMap((attention) => opening.without[attention].map((_, head) => ({ attention, head })))
    .sort((a, b) => cost(a.attention, a.head) - cost(b.attention, b.head));
  const turned = turn ? [turn] : heads.slice(0, 2);
  const left = heads.find(
    (one) => !turned.some(({ attention, head }) => one.attention === attention && one.head === head),
  );
  const places = turned.map(({ attention, head }) => ({ attention, head, query: row }));
  const { changes } = app.result.current;
  const unturned = { ...changes, overrides: withoutRows(changes.overrides, places) };
  const before = await traceUnder(app, translated, unturned);
  const looks = await Promise.all(turned.map((one) => lookOf(before, one, row)));
  const hand = new Hand(app, translated, places);
  const logProbs = rowOf(await translated.trace.get("log_probs"), row);
  return {
    translated,
    opening,
    word,
    rival,
    looks,
    pale: left
      ? {
          ...(await lookOf(await hand.trace(), left, row)),
          isFirst: left === heads[0],
          was: (await lookOf(before, left, row)).peak,
        }
      : null,
    hand,
    own: { logProbs, ids: translated.hypothesis.ids },
    rested: await hand.rested(),
    other: opening.ofPair && app.engine.live !== false ? partnerOf(app.payload, app.state.sentence) : "",
  };
}

/** Returns the trace of a translation under changes, without searching for a new output. */
function traceUnder(app: App, { sourceIds, targetIds, trace }: Translated, changes: Changes) {
  return isUnchanged(changes) ? trace : app.translator.traced(sourceIds, targetIds, changes);
}

async function lookOf(
  trace: Trace,
  { attention, head }: { attention: string; head: number },
  row: number,
): Promise<Look> {
  const { shape: [, rows, columns], data } = await trace.get(`${attention}.weights`); // prettier-ignore
  const start = (head * rows + row) * columns;
  const weights = data.subarray(start, start + columns);
  return { attention, head, weights, peak: largestAt(weights, 1)[0] };
}

// Texts

/** Returns whether two outputs differ before the scene's word. */
function hasOtherBeginning(one: Written, other: Written, { row }: Opening) {
  return String(one.ids?.slice(0, row)) !== String(other.ids?.slice(0, row));
}

/** Returns the word that the pair's other sentence replaces; "" if the sentence belongs to no pair. */
const differingOf = ({ state }: App, other: string) => other && differingWord(state.sentence, other);

/** Returns a name with a capital letter, for the beginning of a sentence. */
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

const sourceWord = (text: string) => element("strong", "gfs-source", element("bdi", {}, text));
const targetWord = (text: string) => element("strong", "gfs-target", element("bdi", {}, text));

/** Returns the space before a token; "" for the first token and for a piece that continues a word. */
function gap(tokens: string[], place: number) {
  const arePieces = tokens.some((token) => token.startsWith("▁"));
  return place && !(arePieces && !/^[▁<]/.test(tokens[place])) ? " " : "";
}

function lookText(app: App, look: Look, weight = look.weights[look.peak]) {
  return app.t("look.look", layerOf(look), look.head, probabilityWords(weight));
}

/** Returns the layer of a head's attention. */
function layerOf({ attention }: { attention: string }) {
  return Number(attention.split(".")[2]);
}

/**
 * Returns the words of an output, each with the words of the old output that it replaces. Where old words were removed
 * without a replacement, `text` is null.
 */
export function compared(
  before: string[],
  now: string[],
): { text: string | null; old: string[]; place: number }[] {
  if (before.length === now.length)
    return now.map((text, place) => ({ text, old: before[place] === text ? [] : [before[place]], place }));
  const shorter = Math.min(before.length, now.length);
  let [start, end] = [0, 0];
  while (start < shorter && before[start] === now[start]) start++;
  while (end < shorter - start && before[before.length - 1 - end] === now[now.length - 1 - end]) end++;
  const gone = before.slice(start, before.length - end);
  const words = now.map((text, place) => ({ text, old: place === start ? gone : [], place }));
  if (start < now.length - end) return words;
  const kept = words.map((one) => ({ ...one, old: [] }));
  return [...kept.slice(0, start), { text: null, old: gone, place: start }, ...kept.slice(start)];
}

/** Returns the words of an output, drawn by `draw`, with the old words that they replace struck out. */
export function comparedWords(
  { t }: App,
  before: string[],
  now: string[],
  draw: (text: string, place: number) => Child,
): Child[] {
  return compared(before, now).map(({ text, old, place }) => {
    const struck = old.map((one) => [element("s", {}, tokenName(one, t)), " "]);
    return text === null ? [" ", struck] : [gap(now, place), struck, draw(text, place)];
  });
}

// The picture

/**
 * Returns the SVG path of a ray, which leaves the point `from` vertically and arrives at the point `to` vertically.
 */
function curve(from: Spot, to: Spot) {
  const fall = to.y - from.y;
  return `M${from.x} ${from.y}C${from.x} ${from.y + 0.55 * fall} ${to.x} ${to.y - 0.5 * fall} ${to.x} ${to.y}`;
}

/** Returns the point at parameter t of a ray's curve. */
function middle(from: Spot, to: Spot, t: number): Spot {
  const fall = to.y - from.y;
  const bend = (a: number, b: number, c: number, d: number) =>
    (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t * t * c + t ** 3 * d;
  return {
    x: bend(from.x, from.x, to.x, to.x),
    y: bend(from.y, from.y + 0.55 * fall, to.y - 0.5 * fall, to.y),
  };
}

function chip(text: Child, { x, y }: Spot, className: string) {
  const made = element("span", `gf-ray-chip ${className}`, text);
  made.style.cssText = `left:${x}px;top:${y}px`;
  return made;
}

/** Returns Figure 1 as a small map, in which the boxes of the shown heads are highlighted. */
function mapOf(app: App, looks: Look[], pale: Look | null): Child[] {
  const { encoder_layers: encoder, decoder_layers: decoder } = app.config;
  const stack = (name: "encoder" | "decoder", layers: number) => {
    const isNamed = layers <= 2;
    const boxes = Array.from({ length: layers }, (_, layer) => [
      ...sublayersOf(name).map((kind, at) => {
        const attention = `${name}.layers.${layer}.${kind}`;
        const lit = looks.some((look) => look.attention === attention);
        const made = element(
          "span",
          { "data-kind": kind },
          isNamed ? app.t(`look.${kind}`) : !at && app.t("stage.layer", layer),
        );
        if (lit || pale?.attention === attention) made.dataset.lit = lit ? "on" : "pale";
        return made;
      }),
      isNamed && element("p", {}, app.t("stage.layer", layer)),
    ]);
    return element("div", {}, element("strong", {}, app.t(`look.${name}`)), boxes.flat().reverse());
  };
  return [element("p", {}, app.t("look.where")), stack("encoder", encoder), stack("decoder", decoder)];
}
