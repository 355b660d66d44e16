// What is said beside the figure: the sentence about the highlighted box, about an act of Play or of a chapter, or about
// a row that the reader is turning.
import { messageOf } from "../app/app.ts";
import { element, refill } from "../app/dom.ts";
import { elementSvg } from "../box/take_away.ts";
import { guided } from "../chapters/chapter_view.ts";
import { memoryTop } from "../figure/ribbons.ts";
import { SIDES } from "../figure/pen.ts";
import { placeOfWord, saidOf, saidWith, spoken } from "../figure/sentences.ts";
import { headName, probabilityWords, tokenName } from "../app/wording.ts";
import { measureWorth } from "../figure/worth.ts";

import type { App } from "../app/app.ts";
import type { Child, Translated } from "../app/types.ts";
import type { Act } from "../chapters/act.ts";
import type { createLook } from "../chapters/look.ts";
import type { FigureView } from "../figure/figure_view.ts";
import type { RowPath } from "../figure/row_path.ts";
import type { Pen } from "../figure/pen.ts";
import type { Player } from "../figure/play.ts";
import type { Worth } from "../figure/sentences.ts";

/** What the buttons of an act do. */
interface Actions {
  edit(): void;
  openBox(box: string): void;
}

export class SaidView {
  /** The sentence, the written line, and `between` and the buttons below them. */
  element = element("div", "gfs-said-box");
  /** A copy of the sentence for the sheet, which covers the original. */
  short = element("p", "gfs-sheet-said");
  text = element("div", { "aria-live": "polite" });
  line = element("p", { class: "gfs-written-line", dir: "auto" });
  buttons = element("div", "gfs-stage-buttons");
  /** What an act of a chapter concludes, and its buttons. */
  conclusion = element("p", { class: "gfs-said-end gfs-conclusion", "aria-live": "polite" });
  actions = element("div", "gfs-act-buttons");
  #app: App;
  #figure: FigureView;
  #player: Player;
  #actions: Actions;
  #worth: { of: Translated | null; key: string; value: Worth | null } = { of: null, key: "", value: null };
  /** The id and the box of the act whose sentence is shown. */
  #told = "";

  constructor(app: App, figure: FigureView, player: Player, between: Child, actions: Actions) {
    this.#app = app;
    this.#figure = figure;
    this.#player = player;
    this.#actions = actions;
    refill(this.element, this.text, this.line, between, this.buttons);
  }

  /** Says what the figure shows. */
  tell() {
    const { pen, act } = this.#figure;
    if (!pen || this.#figure.isLook) return;
    this.text.ariaBusy = "false";
    if (this.#player.act) return this.#tellPlay(pen, this.#player);
    if (act) return this.#tellAct(pen, act);
    const { numbers, box } = pen;
    const key = JSON.stringify([numbers.row, box, numbers.heads, numbers.open]);
    const { of, key: measured, value: known } = this.#worth;
    const isKnown = of === numbers.translated && measured === key;
    this.#write(pen, isKnown ? known : null);
    if (isKnown || !box.endsWith("attention")) return;
    this.text.ariaBusy = "true";
    const told = (value: Worth | null) => {
      if (this.#figure.pen !== pen) return;
      this.#worth = { of: numbers.translated, key, value };
      this.#write(pen, value);
      this.text.ariaBusy = "false";
    };
    measureWorth(this.#app, numbers, box).then(told, () => told(null));
  }

  /**
   * Returns the figure as the text of an SVG file, with the sentence above it and the words below. `look`: what is shown
   * instead while an act shows only what a head looks at.
   */
  picture(plane: HTMLElement, words: HTMLElement, look: ReturnType<typeof createLook>) {
    const { isLook, svg } = this.#figure;
    const parts = isLook
      ? [...look.element.children, look.said]
      : [this.text, this.line, svg, words, this.conclusion];
    return elementSvg(this.#app, plane, parts[0].querySelector("h2")?.textContent ?? "", parts);
  }

  /** Shows what the model writes with a row set by hand; null restores the usual text. */
  tellTurned(look: RowPath | null, words: string[]) {
    const numbers = this.#figure.pen?.numbers;
    if (!look || !numbers) return this.tell();
    const { t } = this.#app;
    const { rows, row } = numbers;
    const weights = rows[look.family.id];
    const read = [...weights.keys()].filter((at) => weights[at] > 0);
    const said = saidWith(
      this.#app,
      `stage.turned${look.isArc ? ".self" : ""}${read.length > 1 ? ".two" : ""}`,
      `${look.family.stack}.${look.family.sublayer}`,
      numbers,
      {
        looked: tokenName(look.tokens[read[0]], t),
        weight: probabilityWords(weights[read[0]]),
        second: tokenName(look.tokens[read[1]] ?? "", t),
        rest: probabilityWords(weights[read[1]] ?? 0),
        target: tokenName(words[row] ?? "", t),
      },
      look.isArc ? SIDES[look.place.stack] : "source",
    );
    const more = words.slice(row).map((token) => tokenName(token, t));
    this.#fill(t("stage.turned.kicker", headName(this.#app, look)), spoken(said), more.join(" "), "");
  }

  /** Shows the text about an act of Play. */
  #tellPlay(pen: Pen, { act, isFirst }: Player) {
    const { numbers, box } = pen;
    const key = isFirst ? act?.box : "next";
    const noPlace = key === "encoder.embedding" && !pen.waves ? ".none" : "";
    const words = (one: string, of: string) => spoken(saidWith(this.#app, one, of, numbers));
    const looks = isFirst ? (box.endsWith("attention") ? box : "") : "decoder.cross_attention";
    this.#fill(
      placeOfWord(this.#app, numbers),
      words(`stage.play.${key}${noPlace}`, box),
      looks && words("", looks),
      "",
    );
    this.#tellLine(pen);
  }

  /** Shows the text of a chapter's act. */
  #tellAct(pen: Pen, act: Act) {
    const { edit, openBox } = this.#actions;
    const said = guided(this.#app, act, pen.numbers, edit, () => openBox(act.box));
    said.then(
      ({ kicker, title, sentence, more, picture, changes, buttons }) => {
        if (this.#figure.pen !== pen || this.#figure.act?.id !== act.id) return;
        const isHeld = this.text.contains(document.activeElement);
        this.#fill(kicker, title, more, changes, picture);
        if (isHeld) this.text.querySelector<HTMLElement>("[aria-current=step]")?.focus();
        refill(this.conclusion, sentence);
        this.#shorten(this.conclusion);
        const hadFocus = this.actions.contains(document.activeElement);
        refill(this.actions, buttons);
        if (hadFocus) this.actions.querySelector("button")?.focus();
        this.#tellLine(pen);
        this.#fit(pen);
        const told = act.id + act.box;
        if (this.#told !== told && pen.geometry.narrow && !this.#figure.isOutline)
          this.#figure.comeInto(pen.box);
        this.#told = told;
      },
      (error) => this.#app.complain(messageOf(error)),
    );
  }

  #write(pen: Pen, worth: Worth | null) {
    const said = saidOf(this.#app, pen.box, pen.numbers, worth);
    this.#fill(said.kicker, spoken(said.sentence), said.more, said.paper);
    this.#tellLine(pen);
  }

  #fill(kicker: Child, sentence: Child, more: Child, paper: Child, picture?: Child) {
    const heading = element("h2", {}, sentence);
    this.#shorten(heading);
    refill(
      this.text,
      element("p", "gfs-kicker", kicker),
      heading,
      // Chinese has no space after a full stop.
      element("p", "gfs-more-text", typeof more === "string" ? more.replaceAll("。 ", "。") : more),
      element("p", "gfs-paper", paper),
      picture,
    );
    if (this.#figure.pen) this.#fit(this.#figure.pen);
  }

  #shorten(said: HTMLElement) {
    refill(
      this.short,
      [...said.childNodes].map((one) => one.cloneNode(true)),
    );
  }

  /**
   * Writes the whole translation as a line where the figure has no room for all words: on a phone, and in lecture mode.
   */
  #tellLine(pen: Pen) {
    const { geometry, numbers } = pen;
    const { lecture } = this.#app.state;
    if ((!geometry.narrow && !lecture) || this.#figure.isAlone || this.#figure.isOutline)
      return refill(this.line);
    const kind = (at: number) => (at === numbers.row ? "gfs-pilled" : at > numbers.row ? "gfs-later" : "");
    refill(
      this.line,
      numbers.translated.outputTokens.map((token, at) => [
        element("span", { class: kind(at) }, tokenName(token, this.#app.t)),
        " ",
      ]),
    );
    this.#fit(pen);
  }

  /** Hides parts of the text that do not fit above the figure. */
  #fit({ geometry, isEarly }: Pen) {
    const { encoder, narrow } = geometry;
    const top = memoryTop(geometry, encoder.columns.at.length);
    const room = (isEarly ? Math.min(encoder.card[0], top + 60) - 40 : top - 24) - this.element.offsetTop;
    for (const level of ["", "snug", "tight", "tighter", "tightest"]) {
      this.element.dataset.fit = level;
      if (narrow || this.#figure.isOutline || this.element.offsetHeight <= room) return;
    }
  }
}
