// The first chapter, a scene about what one head looks at. A ray runs from the source word to which the head
// attends, to the word that the model writes. The reader drags the ray to another source word, and the model writes
// something else.
import { largestAt } from "../../engine/tensor.ts";
import { button, element, pill, refill, watchSize } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { latestOnly } from "../app/latest.ts";
import { languageNames, probabilityWords, tokenName } from "../app/wording.ts";
import { differingWord } from "../figure/examples.ts";
import { wantsStillness } from "../figure/glide.ts";
import { Turner } from "../figure/turn.ts";
import { chip, dotAt, mapOf, middle, positionAt, raysOf } from "./look_picture.ts";
import { askedOf, toldOf } from "./look_said.ts";
import { differingOf, layerOf, subjectOf } from "./look_subject.ts";
import { capital, comparedWords, gap, lookText, namesOf, say, tokensOf, topOf } from "./look_words.ts";

import type { App } from "../app/app.ts";
import type { Child, Selection } from "../app/types.ts";
import type { Written } from "../figure/hand.ts";
import type { Turnable } from "../figure/turn.ts";
import type { Rays, Spot } from "./look_picture.ts";
import type { Look, Subject } from "./look_subject.ts";

const MOVE = 320; // milliseconds
const PLAY = 1500;
const HINT = 110; // px needed for the hint beside the dot

/** What the figure highlights after the scene: the row that writes the word, and the heads. */
export type Lit = Pick<Selection, "heads"> & { row: number };

/**
 * Returns the scene, which follows the page's sentence: its element, its conclusion and its buttons. `onward` opens the
 * figure and highlights the scene's ray in the figure; its argument is null if no ray is known.
 */
export function createLook(app: App, onward: (lit: Lit | null) => void) {
  const { element, said, buttons } = new LookView(app, onward);
  return { element, said, buttons };
}

class LookView {
  element = element("section", "gf-ray");
  said = element("p", { class: "gfs-said-end gf-ray-said", "aria-live": "polite" });
  buttons = element("div", "gfs-act-buttons gf-ray-buttons");
  #app: App;
  #onward: (lit: Lit | null) => void;
  #subject: Subject | null = null;
  #turner: Turner;
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
  #prepare: () => Promise<void>;

  constructor(app: App, onward: (lit: Lit | null) => void) {
    this.#app = app;
    this.#onward = onward;
    this.#turner = new Turner(app);
    this.#prepare = latestOnly(
      app.signal,
      () => subjectOf(app, (done, all) => this.#measuring(done, all)),
      (subject) => this.#show(subject),
    );
    this.element.append(element("div", {}, this.#title, this.#lead), this.#field, this.#map, this.#tug);
    this.#listen();
    this.#begin();
  }

  #listen() {
    const app = this.#app;
    const redraw = () => this.#draw();
    app.on(["result", "language", "chapter", "act"], () => this.#begin());
    app.on(["layout", "theme"], redraw);
    watchSize(app.signal, this.#field, redraw);
    this.#dot.addEventListener("pointerdown", (event) => {
      this.#dot.setPointerCapture(event.pointerId);
      cancelAnimationFrame(this.#frame);
      this.#turner.hold(this.#rows());
    });
    this.#dot.addEventListener("pointermove", (event) => {
      if (this.#dot.hasPointerCapture(event.pointerId)) this.#turner.drag(event);
    });
    const end = () => this.#turner.release(true);
    this.#dot.addEventListener("pointerup", end);
    this.#dot.addEventListener("pointercancel", end);
    this.#dot.addEventListener("blur", end);
    this.#dot.addEventListener("keydown", (event) => this.#key(event));
  }

  #begin() {
    const { result, chapter } = this.#app.state;
    if (!result || chapter !== 1) return;
    this.element.ariaBusy = "true";
    this.#app.attempt(this.#prepare);
  }

  // The reader's actions

  /** The position at which the reader holds or has just released the dot; null otherwise. */
  get #moved() {
    return this.#turner.isHeld ? this.#turner.at : this.#kept;
  }

  /** The position of the dot: where the reader has moved it, or else where the head attends most. */
  get #position() {
    const subject = this.#subject as Subject;
    return this.#moved ?? subject.hand.position ?? subject.looks[0].peak;
  }

  get #isTurned() {
    return this.#moved !== null || (this.#subject as Subject).hand.position !== null;
  }

  get #canTurn() {
    return this.#app.engine.live !== false;
  }

  /** Returns the rows that the dot turns. The ray follows at once; the numbers follow when they are computed. */
  #rows(): Turnable {
    const { hand, translated } = this.#subject as Subject;
    return {
      hand,
      count: translated.sourceTokens.length,
      at: this.#position,
      isReversed: getComputedStyle(this.#source).direction === "rtl",
      reads: () => true,
      positionAt: (event) => this.#positionAt(event),
      draw: () => {
        this.#drawLook();
        if (this.#app.engine.live !== true) this.said.textContent = this.#app.t("look.waits");
      },
      show: (written, at) => this.#tellWritten(written, at),
      end: (at) => {
        this.#kept = at;
        if (at === null) this.#rest();
      },
    };
  }

  #tellWritten(written: Written, at: number) {
    this.#told = at;
    this.#written = { ...written, ids: written.ids ?? this.#written.ids };
    if (written.ids) this.#greedy = { position: at, ids: written.ids };
    this.#draw();
  }

  /** Shows the output that the page has translated. */
  #rest() {
    this.#written = (this.#subject as Subject).rested;
    this.#told = this.#position;
    this.#draw();
  }

  async #letGo() {
    const { hand, looks } = this.#subject as Subject;
    await this.#glide(looks[0].peak, MOVE);
    this.#turner.release(false);
    if (this.#app.changed) await this.#app.attempt(() => hand.letGo());
  }

  async #turnTo(place: number, duration = MOVE) {
    await this.#glide(place, duration);
    this.#turner.release(true);
  }

  /** Animates the dot to a position, and recomputes the output on the way. */
  #glide(to: number, duration: number) {
    const from = this.#position;
    const begun = performance.now();
    const still = wantsStillness();
    cancelAnimationFrame(this.#frame);
    if (!this.#turner.isHeld) this.#turner.hold(this.#rows());
    return new Promise<void>((arrived) => {
      const step = (now: number) => {
        const share = still ? 1 : Math.min(1, Math.max(0, now - begun) / duration);
        this.#turner.turn(from + (to - from) * (1 - (1 - share) ** 3));
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
    const isLetGo = event.key === "Escape" && !this.#turner.isHeld && this.#isTurned;
    if (isLetGo) void this.#letGo();
    else if (!this.#turner.key(event, () => this.#rows())) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Returns an area of the page in px of the field, which is scaled with the plane. */
  #inField({ x, y, width, height }: DOMRect) {
    const field = this.#field.getBoundingClientRect();
    const scale = field.width / this.#field.offsetWidth || 1;
    const [left, top] = [(x - field.x) / scale, (y - field.y) / scale];
    return { centre: left + width / scale / 2, top, bottom: top + height / scale };
  }

  /** Returns the position under the pointer. */
  #positionAt({ clientX, clientY }: PointerEvent) {
    const { centre, top } = this.#inField(new DOMRect(clientX, clientY));
    return positionAt(this.#spots(), { x: centre, y: top });
  }

  // What the scene shows

  /**
   * Shows how far the page has come in finding the head that decides the word; necessary only for a sentence that
   * Python has not measured.
   */
  #measuring(done: number, all: number) {
    if (this.#subject) return;
    this.said.textContent = done < all ? this.#app.t("look.measuring", done, all) : "";
  }

  #show(subject: Subject | null) {
    const [before, language] = [this.#subject, this.#app.state.language];
    const isNew = before?.translated !== subject?.translated || this.#language !== language;
    if (isNew) this.#turner.release(false);
    this.#subject = subject;
    this.#language = language;
    this.element.ariaBusy = "false";
    this.#kept = null;
    this.element.toggleAttribute("data-empty", !subject);
    if (!subject) {
      refill(this.said, say(this.#app, "unknown"));
      return this.#drawButtons();
    }
    if (isNew) this.#fill(subject); // only for a new subject: refilling would take the focus from the dot
    if (this.#turner.isHeld) this.#draw();
    else this.#rest();
  }

  /** Draws the parts that do not change while the ray is moved. */
  #fill({ translated, opening, other, looks, pale }: Subject) {
    const app = this.#app;
    const { outputTokens } = translated;
    const languages = languageNames(app);
    const differing = differingOf(app, other);
    const swapped = differing && differingWord(other, app.state.sentence);
    refill(
      this.#field,
      this.#svg,
      element("p", "gf-ray-label", say(this.#app, "read", capital(languages.source))),
      this.#source,
      element("div", "gf-ray-room"),
      element("p", "gf-ray-label", say(this.#app, "written", capital(languages.target))),
      this.#target,
      this.#chips,
      this.#canTurn && this.#dot,
    );
    const names = translated.sourceTokens.map((token) => tokenName(token, this.#app.t));
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
            ? button([name, element("small", {}, " ⇄ ", swapped)], () => app.attempt(() => app.open(other)), {
                title: app.t("look.swap"),
              })
            : name,
        ),
      ]),
    );
    this.element.ariaLabel = app.t("look.label", outputTokens[opening.row]);
    refill(this.#map, mapOf(app, looks, pale));
  }

  /** Draws everything that changes while the ray is moved. */
  #draw() {
    const subject = this.#subject;
    if (!subject || !this.element.clientWidth) return;
    this.#size(subject);
    refill(this.#target, this.#output(subject));
    this.#drawLook();
    this.#drawTug(subject);
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
      this.#field.clientWidth / (0.47 * (11 + Math.max(letters(sourceTokens), letters(outputTokens))));
    this.element.style.setProperty("--look-size", `${Math.min(27, fitting < 20 ? 20 : fitting)}px`);
  }

  /**
   * Returns the attention weights of the head that decides the word: the weights that the reader has set, or the
   * model's own weights.
   */
  #weights({ looks: [{ weights }], hand }: Subject) {
    return Array.from(this.#isTurned ? hand.rows(this.#position)[0].weights : weights);
  }

  /**
   * Returns the words of the output. Where the output differs from the output without rows set by hand, the old words
   * are struck out.
   */
  #output({ opening: { row }, own }: Subject): Child[] {
    const [before, now] = [own, this.#written].map((one) => tokensOf(this.#app, one));
    return comparedWords(this.#app, before, now, (text, place) =>
      place === row
        ? this.#pill(text)
        : element("span", { class: place > row && "gf-ray-later" }, tokenName(text, this.#app.t)),
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
    return element("span", { class: "gf-ray-pill", ...way }, tokenName(text, this.#app.t));
  }

  /** Returns the points below the source words at which rays begin. */
  #spots(): Spot[] {
    let line = 0;
    return [...this.#source.querySelectorAll("[data-place]")].map((one) => {
      const { centre, bottom } = this.#inField(one.getBoundingClientRect());
      const y = Math.round(bottom) + 16; // keeps the dot clear of the word's button
      if (Math.abs(y - line) > 12) line = y; // words of one line may differ in height
      return { x: centre, y: line };
    });
  }

  #drawRays({ looks, pale }: Subject, weights: number[]) {
    const { offsetWidth: width, offsetHeight: height } = this.#field;
    const pill = this.#target.querySelector(".gf-ray-pill");
    if (!pill) return refill(this.#svg);
    const { centre: x, top: y } = this.#inField(pill.getBoundingClientRect());
    const end = { x, y };
    const [spots, at] = [this.#spots(), this.#position];
    const [isTurned, canTurn] = [this.#isTurned, this.#canTurn];
    const dot = dotAt(spots, at);
    const thin = isTurned ? [] : [...weights.keys()].filter((place) => place !== at);
    // the pale ray moves aside, so that the two rays do not overlap
    const isBeside = pale !== null && Math.abs(spots[pale.peak].x - dot.x) < 14;
    const aside = ({ x, y }: Spot) => ({ x: x + (isBeside ? 14 : 0), y });
    const other: Rays["pale"] = pale && [aside(spots[pale.peak]), aside(end)];
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    refill(
      this.#svg,
      raysOf({ spots, dot, end, weights, thin, pale: other, isTurned, canTurn, id: this.#gradient }),
    );
    this.#dot.style.transform = `translate(${dot.x - 22}px, ${dot.y - 22}px)`;
    const strong = isTurned ? Math.max(...weights) : undefined;
    const isPaleKnown = this.#moved === null || looks.every((look) => pale && layerOf(pale) <= layerOf(look));
    const texts = looks.map((look) => lookText(this.#app, look, strong));
    const hint = `gf-ray-hint${dot.x < width - HINT ? "" : " gf-ray-before"}`;
    const beside = dot.x < width - 2 * HINT ? "gf-ray-beside" : "gf-ray-beside gf-ray-before";
    refill(
      this.#chips,
      chip(texts.join(" · "), middle(dot, end, 0.55), "gf-ray-on"),
      canTurn && !isTurned && chip(say(this.#app, "hint"), { x: dot.x, y: dot.y + 8 }, hint),
      isPaleKnown &&
        other &&
        chip(
          lookText(this.#app, pale as Look, undefined, "pale"),
          middle(...other, 0.3),
          isBeside ? beside : "",
        ),
    );
    this.#nameDot();
  }

  /** Names the dot's position for screen readers. */
  #nameDot() {
    const { translated } = this.#subject as Subject;
    const at = this.#position;
    const words = [...new Set([Math.floor(at), Math.ceil(at)])].map((place) => {
      const share = 1 - Math.abs(at - place);
      const word = tokenName(translated.sourceTokens[place], this.#app.t);
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

  #drawTug({ word, rival }: Subject) {
    const [mine, its] = [word, rival].map((id) => Math.exp(this.#written.logProbs[id]));
    const [first, second] = namesOf(this.#app, [word, rival]);
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
    const top = topOf(this.#app, this.#written);
    bar.toggleAttribute("data-lost", top === rival);
    const others = say(this.#app, "others", probabilityWords(Math.max(0, 1 - mine - its)));
    refill(
      this.#tug,
      side(first, mine, top === word),
      bar,
      side(second, its, top === rival),
      element("small", {}, others),
    );
  }

  /** Writes the question, what happened, and what the reader can do next. */
  #tell(subject: Subject) {
    const moment = {
      subject,
      written: this.#written,
      at: this.#told,
      isTurned: this.#isTurned,
      isHeld: this.#moved !== null,
      canTurn: this.#canTurn,
      greedy: this.#greedy,
    };
    const { said, more } = toldOf(this.#app, moment);
    const { title, lead } = askedOf(this.#app, moment);
    refill(this.#title, title);
    // while the reader holds the dot, the words stay where they are
    if (!moment.isHeld) refill(this.#lead, lead && [lead, " "], more);
    refill(this.said, said);
    this.#drawButtons();
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
    if (this.buttons.dataset.key === key) return; // keeps unchanged buttons, which may have the focus
    this.buttons.dataset.key = key;
    const act = (label: string, action: () => unknown, main = true) =>
      pill(say(this.#app, label), () => app.attempt(action), main);
    refill(
      this.buttons,
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
