// The stage: Figure 1 with the reader's sentence running through it, and texts around the figure. The view is a
// function of the state; each part of the figure is redrawn when the state that it shows changes.
import { messageOf } from "../app/app.ts";
import { element, refill } from "../app/dom.ts";
import { latestOnly } from "../app/latest.ts";
import { openableName, openBox } from "./actions.ts";
import { createChapters } from "../chapters/chapter_view.ts";
import { createLook } from "../chapters/look.ts";
import { FigureView } from "../figure/figure_view.ts";
import { Keys } from "./keys.ts";
import { createLighting, shownNumbers } from "../figure/lighting.ts";
import { Player } from "../figure/play.ts";
import { placeAround } from "./places.ts";
import { SaidView } from "./said.ts";
import { createSecond } from "./second_panel.ts";
import { createSheet } from "./sheet.ts";
import { Tools } from "./tools.ts";
import { createZoom } from "../box/zoom.ts";

import type { App } from "../app/app.ts";
import type { State } from "../app/state.ts";
import type { StageNumbers } from "../figure/shown.ts";

const WIDEST = 1440;
/** What the figure and its texts show. */
const SHOWN: (keyof State)[] = [
  "result",
  "row",
  "sourceWord",
  "heads",
  "box",
  "layout",
  "theme",
  "language",
  "chapter",
  "act",
  "temperature",
  "second",
];
/** What the tools around the figure show. */
const AROUND: (keyof State)[] = ["language", "result", "theme", "chapter"];

/**
 * Returns the stage: its element, and a function that starts drawing, to be called once the address has been read into
 * the state.
 */
export function createStage(app: App) {
  const view = new StageView(app);
  return { element: view.element, begin: () => view.begin() };
}

class StageView {
  element = element("section", "gf-stage-root");
  #app: App;
  #plane = element("div", "gfs-plane");
  #player: Player;
  #figure: FigureView;
  #said: SaidView;
  #tools: Tools;
  #look: ReturnType<typeof createLook>;
  #second: ReturnType<typeof createSecond>;
  #zoom: ReturnType<typeof createZoom>;
  #sheet: ReturnType<typeof createSheet>;
  #chapters: ReturnType<typeof createChapters>;
  #draw: () => Promise<void>;
  #hasBegun = false;
  #light: () => void;

  constructor(app: App) {
    this.#app = app;
    this.#player = new Player(app, { show: () => this.#redraw(), changed: () => this.#tools.fillPlay() });
    this.#chapters = createChapters(app);
    this.#figure = new FigureView(app, this.#player, this.#chapters.act);
    const lit = () => this.#figure.pen?.numbers ?? null;
    this.#second = createSecond(app, lit);
    this.#zoom = createZoom(app, lit);
    this.#said = new SaidView(app, this.#figure, this.#player, this.#second.element, {
      edit: () => this.#tools.edit(),
      openBox: (box) => openBox(app, this.#figure, box),
    });
    this.#tools = new Tools(app, this.#player, {
      picture: () => this.#said.picture(this.#plane, this.#tools.field, this.#look),
      openBox: () => openBox(app, this.#figure, app.state.box),
      compare: () => this.#compare(),
      focusFigure: () => this.#figure.svg.focus(),
    });
    this.#look = createLook(app, (lit) => app.show({ chapter: 1, act: 1, ...lit }));
    this.#sheet = createSheet(app, this.#said.short);
    this.#light = createLighting(app);
    this.#draw = latestOnly(
      app.signal,
      () => shownNumbers(app, this.#player.act?.row ?? null, this.#figure.act?.id === "temperature"),
      (numbers) => this.#show(numbers),
    );
    this.#compose();
    this.#listen();
  }

  begin() {
    this.#sheet.begin();
    this.#hasBegun = true;
    this.#fill();
    this.#redraw();
  }

  #compose() {
    const { element: tools, field, notice, chips } = this.#tools;
    const { element: said } = this.#said;
    const { conclusion, actions } = this.#said;
    const { element: look, said: looked, buttons } = this.#look;
    const tour = element("footer", "gfs-tour", this.#chapters.strip, conclusion, looked, actions, buttons);
    this.#plane.append(tools, said, look, this.#figure.svg, field, notice, chips, tour);
    this.#plane.append(this.#sheet.element, this.#zoom.element);
    this.element.append(this.#plane);
  }

  #listen() {
    const app = this.#app;
    app.on(SHOWN, (_, changed) => this.#follow(changed));
    app.on(["busy"], ({ busy }) => (this.element.ariaBusy = String(busy)));
    app.on(["zoom"], () => this.#openZoom());
    const edit = () => this.#tools.edit();
    new Keys(app, { figure: this.#figure, player: this.#player, said: this.#said, root: this.element, edit });
    window.addEventListener("resize", () => this.#redraw(), { signal: app.signal });
  }

  /** Redraws what shows the changed parts of the state. */
  #follow(changed: ReadonlySet<keyof State>) {
    if (AROUND.some((key) => changed.has(key))) this.#fill();
    this.#redraw();
  }

  // Drawing

  #redraw() {
    if (!this.#hasBegun) return;
    this.#draw().then(
      () => this.#figure.isLook || this.#light(),
      (error) => this.#app.complain(messageOf(error)),
    );
  }

  #show(numbers: StageNumbers) {
    const figure = this.#figure;
    const { geometry, plane } = figure.show(numbers, this.element.clientWidth || WIDEST);
    this.#plane.classList.toggle("gfs-narrow", geometry.narrow);
    this.#plane.classList.toggle("gfs-outlined", figure.isOutline);
    this.#plane.classList.toggle("gfs-looking", figure.isLook);
    this.#plane.style.cssText = plane.css;
    this.element.style.height = geometry.narrow ? "" : `${Math.ceil(geometry.height * plane.scale)}px`;
    placeAround(figure, geometry, {
      plane: this.#plane,
      tools: this.#tools,
      strip: this.#chapters.strip,
      said: this.#said.element,
    });
    this.#tools.open.hidden = !openableName(figure.box, numbers);
    this.#tools.open.textContent = this.#app.t("stage.open.box");
    this.element.toggleAttribute("data-second", numbers.second !== null);
    this.#second.tell();
    this.#said.tell();
    this.#openZoom();
  }

  /** Opens the box that `state.zoom` names over the figure, and makes the rest of the figure inert. */
  #openZoom() {
    const { zoom } = this.#app.state;
    const { element: tools, field, chips } = this.#tools;
    this.element.toggleAttribute("data-zoomed", zoom !== null);
    for (const one of [this.#figure.svg, this.#said.element, field, chips, tools, this.#said.actions])
      one.toggleAttribute("inert", zoom !== null);
    if (this.#figure.pen) this.#zoom.open(this.#figure.pen);
  }

  // Around the figure

  #fill() {
    const { chapter } = this.#app.state;
    this.#tools.fill();
    this.#plane.toggleAttribute("data-chapter", chapter > 0);
    refill(this.#said.buttons, !chapter && this.#tools.buttons());
  }

  /** Opens the form in which the reader chooses a second translation. */
  #compare() {
    this.#app.show({ second: { text: "" }, chapter: 0, sheet: false, zoom: null });
    this.#second.focus();
  }
}
