// The tools around the figure: the menu, the buttons, the examples, and the sentence to edit.
import { openNew } from "../box/changes/new_sentence.ts";
import { button, closeMenu, element, letArrowsMove, menu, named, pill, refill } from "../app/dom.ts";
import { savingButtons } from "../box/take_away.ts";
import { enteredCell } from "../box/numbers/cells.ts";
import { parityText } from "../figure/choices.ts";
import { exampleChips } from "../figure/examples.ts";
import { sentenceField } from "./field.ts";

import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Player } from "../figure/play.ts";

/** What the tools ask of the stage. */
interface Around {
  /** Returns the figure as the text of an SVG file. */
  picture(): string;
  openBox(): void;
  compare(): void;
  focusFigure(): void;
}

export class Tools {
  /** The page's name and the menu. */
  element = element("div", "gfs-stage-tools");
  field = element("div", "gfs-field");
  chips = element("div", "gfs-chips");
  /** The result of the reader's last action, if it is not visible elsewhere, until the next action. */
  notice = element("p", { class: "gfs-notice", role: "status" });
  /** Opens the highlighted box. */
  open = pill("", () => this.#around.openBox());
  #app: App;
  #player: Player;
  #around: Around;
  #play = pill("", () => this.#player.play(), true);

  constructor(app: App, player: Player, around: Around) {
    this.#app = app;
    this.#player = player;
    this.#around = around;
    letArrowsMove(this.chips);
    const act = ({ target, key = "" }: Event & { key?: string }) => {
      // the focus may be moving to the notice's button
      const leads = key === "Tab" || key === "Shift" || this.notice.contains(target as Node);
      if (!leads) refill(this.notice);
    };
    for (const type of ["click", "keydown"])
      window.addEventListener(type, act, { capture: true, signal: app.signal });
  }

  /** Fills all tools but the buttons. */
  fill() {
    refill(this.notice);
    this.fillPlay();
    const { parameters } = this.#app.payload;
    const claim = element("span", "gfs-claim", this.#app.t("page.claim", parameters.toLocaleString("en")));
    refill(this.element, element("h1", "gfs-name", "glassformer"), this.#menu(), claim);
    this.#fillChips();
    this.fillField();
  }

  fillPlay() {
    const { t } = this.#app;
    this.#play.textContent = this.#player.playing ? `❚❚ ${t("stage.stop")}` : `▶ ${t("stage.play")}`;
  }

  /** Returns the buttons below the sentence, outside the chapters. */
  buttons(): Child {
    const app = this.#app;
    return [
      this.#play,
      app.engine.live !== false &&
        pill(app.t("stage.whatif"), () => app.show({ sheet: true, panel: "changes" })),
      this.open,
      app.changed && pill(app.t("stage.let.go"), () => app.attempt(() => app.reset())),
    ];
  }

  fillField() {
    const app = this.#app;
    if (app.engine.live === false) return refill(this.field);
    const onclick = () => this.edit();
    refill(
      this.field,
      named(button("✎", onclick, { className: "gfs-edit" }), app.t("stage.edit")),
      app.state.result &&
        element(
          "span",
          { class: "gfs-field-text", dir: "auto", onclick },
          app.changes.source ?? app.state.sentence,
        ),
    );
  }

  /** Turns the sentence into a text field. */
  edit() {
    const app = this.#app;
    if (app.engine.live === false) return;
    const around = sentenceField(app, app.changes.source ?? app.state.sentence, {
      enter: (text) => app.attempt(async () => (await this.#openSentence(text), this.fillField())),
      leave: (byKey) => {
        this.fillField();
        if (byKey) this.#around.focusFigure();
      },
    });
    refill(this.field, around);
    const field = this.field.querySelector("input") as HTMLInputElement;
    field.focus();
    field.select();
  }

  async #openSentence(sentence: string) {
    refill(this.notice, await openNew(this.#app, sentence));
    this.#app.show({ row: null, sourceWord: null, zoom: null });
    this.notice.scrollIntoView({ block: "nearest" });
  }

  #menu() {
    const app = this.#app;
    const { element: details, summary, choices } = menu("gfs-more");
    summary.textContent = "⋯";
    named(summary, app.t("stage.more"));
    const compare = () => {
      details.open = false;
      this.#around.compare();
    };
    const saved = (text: Child) => (closeMenu(details), refill(this.notice, text));
    refill(
      choices,
      app.engine.live !== false && button(app.t("second.title"), compare),
      button(app.t("vocabulary.title"), () => app.show({ sheet: true, panel: "vocabulary" })),
      button(app.t("lecture.title"), () => app.show({ lecture: true })),
      button(app.t("stage.numbers"), async () => app.select(await enteredCell(app))),
      button(app.t("page.language"), () => app.show({ language: app.state.language === "en" ? "zh" : "en" })),
      button(app.t("page.theme"), () => app.show({ theme: app.state.theme === "dark" ? "light" : "dark" })),
      savingButtons(app, "figure-1", () => this.#around.picture(), saved),
      element("p", "gfs-about", this.#about()),
    );
    return details;
  }

  #fillChips() {
    const app = this.#app;
    const { examples } = app.payload;
    const known = () => app.show({ sheet: true, panel: "vocabulary" });
    const vocabulary = named(
      button("A–Z", known, { className: "gfs-chip" }),
      `A–Z: ${app.t("vocabulary.title")}`,
    );
    vocabulary.tabIndex = examples.length > 0 ? -1 : 0;
    const chosen = [...this.chips.children].indexOf(document.activeElement as Element);
    const open = (sentence: string) => app.attempt(() => this.#openSentence(sentence));
    refill(this.chips, vocabulary, exampleChips(examples, app.changes.source ?? app.state.sentence, open));
    // keeps the focus on the chip, so that Enter swaps again
    if (chosen >= 0) (this.chips.children[chosen] as HTMLElement).focus();
  }

  /** Returns the sizes of the model, and how closely the page computes it. */
  #about(): Child {
    const app = this.#app;
    const { encoder_layers: encoder, decoder_layers: decoder, heads, d_model: width } = app.config;
    const { name, parameters } = app.payload;
    const about = app.t("page.about", name, parameters.toLocaleString("en"), encoder, decoder, heads, width);
    return [about, " · ", parityText(app)];
  }
}
