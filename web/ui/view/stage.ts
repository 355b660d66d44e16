// The stage: Figure 1 with the reader's sentence running through it, and texts around the figure. The view is a
// function of the state; each part of the figure is redrawn when the state that it shows changes.
import { messageOf } from "../app/app.ts";
import { element, refill } from "../app/dom.ts";
import { latestOnly } from "../app/latest.ts";
import { panelOf } from "../box/panels.ts";
import { elementSvg } from "../box/take_away.ts";
import { openableName, openBox } from "./actions.ts";
import { createStrip } from "../chapters/chapter_view.ts";
import { actOf } from "../chapters/chapters.ts";
import { FigureView } from "../figure/figure_view.ts";
import { splitOf } from "../figure/geometry.ts";
import { memoryTop } from "../figure/ribbons.ts";
import { Keys } from "./keys.ts";
import { createLighting, shownNumbers } from "../figure/lighting.ts";
import { outlineAreas } from "../chapters/outline.ts";
import { Player } from "../figure/play.ts";
import { SaidView } from "./said.ts";
import { createSecond } from "../figure/second.ts";
import { createSheet } from "./sheet.ts";
import { Tools } from "./tools.ts";
import { Turner } from "../figure/turn.ts";
import { createZoom } from "../box/zoom.ts";

import type { App } from "../app/app.ts";
import type { State } from "../app/state.ts";
import type { Area, Geometry } from "../figure/geometry.ts";
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
  "view",
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
  #second: ReturnType<typeof createSecond>;
  #zoom: ReturnType<typeof createZoom>;
  #strip: HTMLElement;
  #draw: () => Promise<void>;
  /** The areas from which the boxes glide; null means that each box glides from where it was last drawn. */
  #from: Map<string, Area> | null = null;
  #wasOutline = false;
  #hasBegun = false;
  #light: () => void;

  constructor(app: App) {
    this.#app = app;
    this.#player = new Player(app, { show: () => this.#redraw(), changed: () => this.#tools.fillPlay() });
    this.#figure = new FigureView(app, this.#player, () => actOf(app));
    const lit = () => this.#figure.pen?.numbers ?? null;
    this.#second = createSecond(app, lit);
    this.#strip = createStrip(app);
    this.#zoom = createZoom(app, lit);
    this.#said = new SaidView(app, this.#figure, this.#player, this.#second.element, {
      edit: () => this.#tools.edit(),
      openBox: (box) => openBox(app, this.#figure, box),
    });
    this.#tools = new Tools(app, this.#player, {
      picture: () => this.#picture(),
      openBox: () => openBox(app, this.#figure, app.state.box),
      compare: () => this.#compare(),
      focusFigure: () => this.#figure.svg.focus(),
    });
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
    panelOf(this.#app, "changes"); // its undo history starts with the page
    this.#hasBegun = true;
    this.#fill();
    this.#redraw();
  }

  #compose() {
    const { element: tools, field, notice, chips, foot } = this.#tools;
    const { element: said, short } = this.#said;
    this.#plane.append(tools, said, this.#figure.svg, field, notice, chips, this.#strip, foot);
    this.#plane.append(createSheet(this.#app, short), this.#zoom.element);
    this.element.append(this.#plane);
  }

  #listen() {
    const app = this.#app;
    const [figure, player] = [this.#figure, this.#player];
    app.on(SHOWN, (_, changed) => this.#follow(changed));
    app.on(["busy"], ({ busy }) => (this.element.ariaBusy = String(busy)));
    app.on(["zoom"], () => this.#openZoom());
    const turner = new Turner(app, {
      pen: () => figure.pen,
      drawParts: (names) => figure.drawParts(names),
      place: (event) => figure.placeOf(event),
      tell: (look, words) => this.#said.tellTurned(look, words),
    });
    new Keys(app, { figure, player, turner, root: this.element, edit: () => this.#tools.edit() });
    window.addEventListener("resize", () => this.#redraw(), { signal: app.signal });
  }

  /** Redraws what shows the changed parts of the state. */
  #follow(changed: ReadonlySet<keyof State>) {
    const { chapter, act } = this.#app.state;
    const isLeft = changed.has("chapter") && chapter !== 1;
    if (isLeft && this.#wasOutline) this.#from = this.#outline();
    this.#wasOutline = chapter === 1 && act > 0;
    if (AROUND.some((key) => changed.has(key))) this.#fill();
    this.#redraw();
  }

  // Drawing

  /** Returns the areas of the outline's boxes on the plane. */
  #outline() {
    return outlineAreas(this.#app, this.element.parentElement?.clientWidth || WIDEST);
  }

  #redraw() {
    const { view, chapter } = this.#app.state;
    if (!this.#hasBegun || view !== "stage" || chapter === 1) return; // a hidden stage has no width to draw in
    this.#draw().then(
      () => this.#light(),
      (error) => this.#app.complain(messageOf(error)),
    );
  }

  #show(numbers: StageNumbers) {
    const figure = this.#figure;
    const { geometry, plane } = figure.show(numbers, this.element.clientWidth || WIDEST, this.#from);
    this.#from = null;
    this.#plane.classList.toggle("gfs-narrow", geometry.narrow);
    this.#plane.style.cssText = plane.css;
    this.element.style.height = geometry.narrow ? "" : `${Math.ceil(geometry.height * plane.scale)}px`;
    this.#place(geometry);
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
    for (const one of [this.#figure.svg, this.#said.element, field, chips, tools])
      one.toggleAttribute("inert", zoom !== null);
    if (this.#figure.pen) this.#zoom.open(this.#figure.pen);
  }

  /** Positions the elements that are not part of the drawing. */
  #place(geometry: Geometry) {
    const { encoder, decoder, narrow, width, height } = geometry;
    const { field, chips, foot, notice } = this.#tools;
    const { isAlone, act } = this.#figure;
    const style = (one: HTMLElement, css: string) => (one.style.cssText = narrow ? "" : css);
    const [x0, x1] = encoder.x;
    const low = Math.max(...encoder.columns.out, ...(isAlone ? [] : decoder.columns.out));
    const line = `left:${x0}px;top:${encoder.words[0]}px;width:${x1 - x0}px;height:${32 + low}px`;
    style(field, `${line};--names:${encoder.room[0] - x0}px`);
    const from = splitOf(width);
    style(chips, `left:${x0}px;top:${encoder.words[1] + 12}px;width:${from - 64 - x0}px`);
    style(this.#strip, `left:${from}px;top:${encoder.words[1] + low + 10}px;width:${width - 38 - from}px`);
    for (const one of [foot, notice])
      style(one, `left:${x0}px;width:${width - 38 - x0}px;top:${height - 26}px`);
    style(this.#said.element, `width:${isAlone ? x1 - x0 : from - 64 - x0 + (act ? 24 : -20)}px`);
    const isLow = isAlone ? height < 800 : memoryTop(geometry, encoder.columns.at.length) < 330;
    this.#plane.classList.toggle("gfs-compact", !narrow && isLow);
    this.#plane.classList.toggle("gfs-alone", !narrow && isAlone);
  }

  // Around the figure

  #fill() {
    const { chapter } = this.#app.state;
    this.#tools.fill();
    this.#plane.toggleAttribute("data-chapter", chapter > 0);
    if (!chapter) refill(this.#said.buttons, this.#tools.buttons());
  }

  /** Opens the form in which the reader chooses a second translation. */
  #compare() {
    this.#app.show({ second: { text: "" }, chapter: 0, sheet: false, zoom: null });
    this.#second.focus();
  }

  /** Returns the figure as the text of an SVG file, with the stage's sentence above it and the words below. */
  #picture() {
    const { text, line } = this.#said;
    const parts = [text, line, this.#figure.svg, this.#tools.field];
    return elementSvg(this.#app, this.#plane, text.querySelector("h2")?.textContent ?? "", parts);
  }
}
