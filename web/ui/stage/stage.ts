// The stage: Figure 1 with the reader's sentence running through it, and texts around the figure. The view is a
// function of the state; each part of the figure is redrawn when the state that it shows changes.
import { messageOf } from "../app.ts";
import { coloursAt } from "../colours.ts";
import { boxName, boxOfPanel, shapeOf } from "../boxes.ts";
import { openNew } from "../changes/new_sentence.ts";
import {
  brushOf,
  button,
  closeMenu,
  element,
  isForPage,
  letArrowsMove,
  menu,
  named,
  pill,
  refill,
} from "../dom.ts";
import { drawing, withAttributes } from "../figure.ts";
import { FAMILIES, attentionName, layersOf } from "../heads.ts";
import { latestOnly } from "../latest.ts";
import { linkOf } from "../link.ts";
import { elementSvg, savingButtons } from "../take_away.ts";
import { panelOf } from "../panels.ts";
import { clamp, familyOf, isLeftwards, parityText, picturedHeads, writtenIn } from "./choices.ts";
import { wavesOn } from "./embedding_reading.ts";
import { lightOpening, litRow } from "./lighting.ts";
import { drawArcs, drawHeads, drawLook, drawRibbons } from "./attention.ts";
import { drawGround, drawLoops, drawNames } from "./ground.ts";
import { drawGuesses, drawLinear, drawSoftmax, drawWhy } from "./next_word.ts";
import { drawLitStrands, drawStrands, drawWords } from "./strands.ts";
import { drawTiles, drawWaves } from "./vectors.ts";
import { chapterKey, createStrip, guided } from "./chapter_view.ts";
import { actOf } from "./chapters.ts";
import { exampleChips } from "./examples.ts";
import { sentenceField } from "./field.ts";
import { fly } from "./flight.ts";
import { MOST_CANDIDATES, geometryOf, memoryTop, planeOf, splitOf } from "./geometry.ts";
import { areasIn, glide } from "./glide.ts";
import { stageNumbers, warmed } from "./numbers.ts";
import { costsMost, needsOf } from "./opening.ts";
import { outlineAreas } from "./outline.ts";
import { SIDES } from "./pen.ts";
import { Player, clipOf } from "./play.ts";
import { createSecond, drawSecond, seated, withSecond } from "./second.ts";
import { veilOf } from "./veil.ts";
import { placeOfWord, saidOf, saidWith, spoken } from "./sentences.ts";
import { createSheet } from "./sheet.ts";
import { Turner } from "./turn.ts";
import { languageNames, headName, probabilityWords, tokenName } from "./words.ts";
import { createZoom } from "./zoom.ts";
import { viewOf } from "./zoom_views.ts";

import type { Stack } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { State } from "../state.ts";
import type { Act } from "./chapters.ts";
import type { Child, FamilyId, Translated } from "../types.ts";
import type { Look } from "./looks.ts";
import type { Pen } from "./pen.ts";
import type { Area, Geometry, Plane } from "./geometry.ts";
import type { Worth } from "./sentences.ts";
import type { Seat, StageNumbers } from "./shown.ts";

const FONT = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif';
/** The groups that appear step by step in Play, because they show what is computed. */
const RISING = [
  "strands",
  "ribbons",
  "arcs",
  "tiles",
  "waves",
  "lit",
  "linear",
  "softmax",
  "guesses",
  "look",
];
const GROWS = 260; // ms for resizing the highlighted box
const WIDENS = 700; // ms for expanding the outline into the stage
const WIDEST = 1440;
const MOST_CHANGED = 5; // maximum number of words that keep their names because the last step changed them
const REST = 800; // ms before the opening of a new sentence is measured
/** The groups of the figure from the lowest to the highest, each with the function that draws it. */
const LAYERS: [name: string, draw: (pen: Pen) => Child][] = [
  ["ground", drawGround],
  ["strands", drawStrands],
  ["ribbons", drawRibbons],
  ["arcs", drawArcs],
  ["tiles", drawTiles],
  ["waves", drawWaves],
  ["lit", drawLitStrands],
  ["linear", drawLinear],
  ["softmax", drawSoftmax],
  ["guesses", drawGuesses],
  ["look", drawLook],
  ["loops", drawLoops],
  ["second", drawSecond],
  ["heads", drawHeads],
  ["names", drawNames],
  ["why", drawWhy],
  ["words", drawWords],
];

/** Returns the full name of a box, with the number of the open layer. */
function fullName(box: string, { open }: StageNumbers) {
  const [stack, id] = box.split(/\.(.*)/) as [Stack, string];
  return boxName(stack, id, open[stack]);
}

/**
 * Returns a function that says which of the given words differ from the words of its last call; it names no words if
 * more than a few differ.
 */
function changedWords() {
  let last: string[] = [];
  let changed: boolean[] = [];
  return (words: string[]) => {
    if (String(words) === String(last)) return changed;
    const shift = last.length - words.length;
    const isNew = words.map((word, at) => word !== last[at] && word !== last[at + shift]);
    changed = isNew.filter(Boolean).length > MOST_CHANGED ? [] : isNew;
    last = words;
    return changed;
  };
}

/** Returns the family of attention whose handle contains an element. */
function handleOf(one: Element | null) {
  return one?.closest<SVGElement>(".gfs-handle")?.dataset.family as FamilyId | undefined;
}

/**
 * Returns the stage: its element, and a function that starts drawing, to be called once the address has been read into
 * the state.
 */
export function createStage(app: App) {
  const view = new StageView(app);
  return { element: view.element, begin: () => view.begin() };
}

class StageView {
  element = element("section", { class: "gf-stage-root" });
  #app: App;
  #plane = element("div", { class: "gfs-plane" });
  #said = element("div", { "aria-live": "polite" });
  /** A copy of the sentence for the sheet, which covers the original. */
  #short = element("p", { class: "gfs-sheet-said" });
  #hero = element("div", { class: "gfs-said-box" });
  #svg = drawing("svg", { role: "group", tabindex: 0, class: "gfs-figure-svg" });
  #groups = new Map(LAYERS.map(([name]) => [name, drawing("g", { class: `gfs-g-${name}` })]));
  #field = element("div", { class: "gfs-field" });
  #chips = element("div", { class: "gfs-chips" });
  #tools = element("div", { class: "gfs-stage-tools" });
  #buttons = element("div", { class: "gfs-stage-buttons" });
  #foot = element("p", { class: "gfs-foot" });
  /**
   * The result of the reader's last action, if it is not visible elsewhere. The notice covers the foot until the next
   * action.
   */
  #notice = element("p", { class: "gfs-notice", role: "status" });
  #line = element("p", { class: "gfs-written-line", dir: "auto" });
  #pen: Pen | null = null;
  #worth: { of: Translated | null; key: string; value: Worth | null } = { of: null, key: "", value: null };
  #brush = brushOf(element("canvas"));
  #draw: () => Promise<void>;
  #turner: Turner;
  #zoom: ReturnType<typeof createZoom>;
  #player: Player;
  #second: ReturnType<typeof createSecond>;
  #play = pill("", () => this.#player.play(), true);
  #open = pill("", () => this.#openBox(this.#app.state.box));
  /** The groups that appear step by step in Play. */
  #risen = drawing("g", { class: "gfs-risen" });
  #veil = drawing("g", { class: "gfs-veil" });
  /** The areas from which the boxes glide; null means that each box glides from where it was last drawn. */
  #from: Map<string, Area> | null = null;
  #strip: HTMLElement;
  #wasOutline = false;
  /** The id of the act whose sentence is shown. */
  #told = "";
  /** The layer for the animations of Play. */
  #flying = drawing("g", { class: "gfs-flying" });
  #hasBegun = false;
  #lighting = new AbortController();
  /** The translation whose first word and heads have been highlighted. */
  #opened: Translated | null = null;
  /** Functions that say which words of the source, and of the translation, have changed since the last drawing. */
  #changed = [changedWords(), changedWords()];
  #scale = 1;
  /** The size of the smallest type, in px of the plane. */
  #least = 12;

  constructor(app: App) {
    this.#app = app;
    this.#turner = new Turner(app, {
      pen: () => this.#pen,
      drawParts: (names) => this.#drawParts(names),
      place: (event) => this.#placeOf(event),
      tell: (look, words) => this.#tellTurned(look, words),
    });
    this.#draw = latestOnly(
      app.signal,
      async () => {
        const numbers = await stageNumbers(
          app,
          this.#player.act?.row ?? (await litRow(app)),
          MOST_CANDIDATES,
        );
        return this.#player.act ? numbers : withSecond(app, warmed(app, numbers));
      },
      (numbers) => this.#show(numbers),
    );
    this.#player = new Player(app, { show: () => this.#redraw(), changed: () => this.#fillPlay() });
    for (const [name, group] of this.#groups) (RISING.includes(name) ? this.#risen : this.#svg).append(group);
    this.#svg.insertBefore(this.#risen, this.#groups.get("loops") as SVGGElement);
    this.#svg.insertBefore(this.#veil, this.#groups.get("loops") as SVGGElement);
    this.#svg.append(this.#flying);
    this.#strip = createStrip(app);
    this.#second = createSecond(app, () => this.#pen?.numbers ?? null);
    this.#hero.append(this.#said, this.#line, this.#second.element, this.#buttons);
    this.#plane.append(this.#tools, this.#hero, this.#svg, this.#field, this.#notice);
    this.#plane.append(this.#chips, this.#strip, this.#foot);
    this.#zoom = createZoom(app, () => this.#pen?.numbers ?? null);
    this.#plane.append(createSheet(app, this.#short), this.#zoom.element);
    this.element.append(this.#plane);
    letArrowsMove(this.#chips);
    this.#listen();
  }

  begin() {
    panelOf(this.#app, "changes"); // its undo history starts with the page
    this.#hasBegun = true;
    this.#fill();
    this.#redraw();
  }

  #listen() {
    const app = this.#app;
    app.on(
      [
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
      ],
      (_, changed) => {
        const isLeft = changed.has("chapter") && app.state.chapter !== 1;
        if (isLeft && this.#wasOutline) this.#from = this.#outline();
        this.#wasOutline = app.state.chapter === 1 && app.state.act > 0;
        if (["language", "result", "theme", "chapter"].some((key) => changed.has(key as keyof State)))
          this.#fill();
        this.#redraw();
      },
    );
    app.signal.addEventListener("abort", () => this.#lighting.abort(), { once: true });
    app.on(["busy"], ({ busy }) => (this.element.ariaBusy = String(busy)));
    app.on(["zoom"], () => this.#openZoom());
    const escape = (event: KeyboardEvent) => {
      const { zoom, sheet, second } = app.state;
      const isInDialog = (event.target as Element).closest("dialog"); // Escape closes the dialog only
      const isOpen = (zoom || sheet || second) && !isInDialog;
      if (event.key !== "Escape" || event.defaultPrevented || !isOpen || this.element.hidden) return;
      event.preventDefault(); // Escape must not end lecture mode or Play as well
      app.show(zoom ? { zoom: null } : sheet ? { sheet: false } : { second: null });
      this.#svg.focus();
    };
    window.addEventListener("keydown", escape, { signal: app.signal });
    const go = (event: KeyboardEvent) => {
      const isField = (event.target as Element).matches("input, select, textarea");
      if (this.#typesOn(event))
        this.edit(); // the field gets the focus, and then the typed letter
      else if (isField || !this.#playsOn(event)) chapterKey(app, event);
      else if (this.#playKey(event)) event.preventDefault();
    };
    window.addEventListener("keydown", go, { signal: app.signal });
    const act = ({ target, key = "" }: Event & { key?: string }) => {
      // the focus may be moving to the notice's button
      const leads = key === "Tab" || key === "Shift" || this.#notice.contains(target as Node);
      if (!leads) refill(this.#notice);
    };
    for (const type of ["click", "keydown"])
      window.addEventListener(type, act, { capture: true, signal: app.signal });
    this.#svg.addEventListener("click", (event) => this.#click(event));
    this.#svg.addEventListener("keydown", (event) => this.#key(event));
    this.#svg.addEventListener("pointerdown", (event) => this.#take(event));
    this.#svg.addEventListener(
      "pointermove",
      (event) =>
        this.#turner.isHeld && this.#svg.hasPointerCapture(event.pointerId) && this.#turner.drag(event),
    );
    for (const type of ["pointerup", "pointercancel"] as const)
      this.#svg.addEventListener(
        type,
        (event) => this.#svg.hasPointerCapture(event.pointerId) && this.#turner.release(type === "pointerup"),
      );
    this.#svg.addEventListener("pointerover", (event) => this.#point(event));
    this.#svg.addEventListener("pointerleave", () => this.#lightColumn(null));
    window.addEventListener("resize", () => this.#redraw(), { signal: app.signal });
  }

  /** Highlights the word and heads with which a sentence opens, once for each translation. */
  #light() {
    const { current } = this.#app.result;
    if (this.#app.changed || this.#opened === current) return;
    this.#opened = current;
    this.#lighting.abort(); // the sentence that is being measured has been replaced
    this.#lighting = new AbortController();
    const { signal } = this.#lighting;
    const light = () => void (signal.aborted || lightOpening(this.#app, current, signal).catch(() => {}));
    if (this.#app.state.sentence in this.#app.payload.openings) return light();
    const timer = setTimeout(light, REST); // measuring takes seconds
    signal.addEventListener("abort", () => clearTimeout(timer)); // a waiting timer would keep the trace in memory
  }

  /** Returns the areas of the outline's boxes on the plane. */
  #outline() {
    const { width, height } = planeOf(
      this.element.parentElement?.clientWidth || WIDEST,
      this.#app.state.lecture,
    );
    return outlineAreas(this.#app, width, height);
  }

  #redraw() {
    const { view, chapter } = this.#app.state;
    if (!this.#hasBegun || view !== "stage" || chapter === 1) return; // a hidden stage has no width to draw in
    this.#draw().then(
      () => this.#light(),
      (error) => this.#app.complain(messageOf(error)),
    );
  }

  // Drawing

  #measure = (content: string, size = 13, weight = 400) => {
    this.#brush.font = `${weight} ${Math.max(size, this.#least)}px ${FONT}`;
    return this.#brush.measureText(content).width;
  };

  #show(numbers: StageNumbers) {
    const plane = planeOf(this.element.clientWidth || WIDEST, this.#app.state.lecture);
    const { width, scale, css } = plane;
    this.#least = plane.least;
    const { geometry, size } = this.#roomiest(numbers, plane);
    const isNarrow = geometry.narrow;
    this.#plane.classList.toggle("gfs-narrow", isNarrow);
    this.#plane.style.cssText = css;
    this.element.style.height = isNarrow ? "" : `${Math.ceil(geometry.height * scale)}px`;
    const before = this.#from ?? areasIn(this.#svg);
    const { height: tall } = geometry;
    withAttributes(this.#svg, { width, height: tall, viewBox: `0 0 ${width} ${tall}` });
    this.#pen = this.#penFor(numbers, geometry, size);
    this.#scale = scale;
    this.#drawParts();
    if (!isNarrow && before.size > 0) glide(this.#svg, before, [this.#risen], this.#from ? WIDENS : GROWS);
    this.#from = null;
    this.#move(geometry);
    this.#place(geometry);
    this.#open.hidden = !viewOf(fullName(this.#box, numbers));
    this.#open.textContent = this.#app.t("stage.open.box");
    this.element.toggleAttribute("data-second", numbers.second !== null);
    this.#second.tell();
    this.#tell();
    this.#openZoom();
  }

  /** Opens the box that `state.zoom` names over the figure, and makes the rest of the figure inert. */
  #openZoom() {
    const { zoom } = this.#app.state;
    this.element.toggleAttribute("data-zoomed", zoom !== null);
    for (const one of [this.#svg, this.#hero, this.#field, this.#chips, this.#tools])
      one.toggleAttribute("inert", zoom !== null);
    if (this.#pen) this.#zoom.open(this.#pen);
  }

  // Play

  #fillPlay() {
    const app = this.#app;
    this.#play.textContent = this.#player.playing ? `❚❚ ${app.t("stage.stop")}` : `▶ ${app.t("stage.play")}`;
  }

  /** Clips the figure to what has been computed so far, and runs the animation of an act of Play. */
  #move(geometry: Geometry) {
    const { act } = this.#player;
    const chapter = this.#act;
    const risen = act?.risen ?? chapter?.risen;
    this.#risen.style.clipPath = risen ? `${clipOf(geometry, risen)} view-box` : "";
    refill(this.#veil, !act && chapter && veilOf(geometry, chapter.lit));
    if (!act) return refill(this.#flying);
    fly(this.#flying, this.#pen as Pen, act, this.#player.isFirst);
  }

  /** The highlighted box: the box of the act of Play or of the chapter, or else the box that the reader has chosen. */
  get #box() {
    return this.#player.act?.box ?? (this.#act?.box || this.#app.state.box);
  }

  /** Whether the chapter's act shows the encoder alone. */
  get #isAlone() {
    return this.#act?.risen.decoder === "";
  }

  get #wordSize() {
    return this.#app.state.lecture ? 20 : this.#isAlone ? 16 : 13;
  }

  /** The open act of a chapter; null if no chapter is open. */
  get #act() {
    return actOf(this.#app);
  }

  /** Returns the pointer's coordinates on the figure's plane. */
  #placeOf({ clientX, clientY }: MouseEvent) {
    const { left, top } = this.#svg.getBoundingClientRect();
    return { x: (clientX - left) / this.#scale, y: (clientY - top) / this.#scale };
  }

  /** Redraws the parts of the figure with these names, by default all parts. */
  #drawParts(names: string[] | null = null) {
    const pen = this.#pen;
    if (!pen) return;
    for (const [name, draw] of LAYERS) {
      if (names && !names.includes(name)) continue;
      const group = this.#groups.get(name) as SVGGElement;
      const family =
        name === "look" && group.contains(document.activeElement) && handleOf(document.activeElement);
      refill(group, draw(pen));
      if (family) group.querySelector<SVGElement>(`[data-family=${family}]`)?.focus();
    }
  }

  /** Returns the layout with the usual size of words, or with a smaller size if that shows more words. */
  #roomiest(numbers: StageNumbers, plane: Plane) {
    const laid = (size: number) => ({ size, geometry: this.#geometry(numbers, plane, size) });
    const hidden = ({ geometry: { encoder, decoder } }: ReturnType<typeof laid>) =>
      [...encoder.columns.shown, ...decoder.columns.shown].filter((one) => !one).length;
    const usual = laid(this.#wordSize);
    if (usual.size !== 13 || hidden(usual) === 0) return usual;
    const small = laid(12);
    return hidden(small) < hidden(usual) ? small : usual;
  }

  #geometry(numbers: StageNumbers, { width, height, least, near }: Plane, size: number) {
    const { config } = this.#app;
    const { translated, row, source, read, at: largest } = numbers;
    const isOwn = numbers.steps.crossKeyValue.side === "target";
    const { t } = this.#app;
    const name = (token: string | undefined) => (token === undefined ? "" : tokenName(token, t));
    const { second } = numbers;
    const [newSource, newOutput] = [translated.sourceTokens, translated.outputTokens].map((tokens, side) =>
      this.#changed[side](tokens),
    );
    const under = (words: Seat[] | undefined, column: number) => (words ? seated(words, column, t) : "");
    return geometryOf({
      width,
      height,
      least,
      near,
      shape: shapeOf(config, numbers.steps),
      layers: { encoder: config.encoder_layers, decoder: config.decoder_layers },
      open: numbers.open,
      second: numbers.second !== null,
      lines: this.#app.state.lecture && !second ? 2 : 1,
      lit: this.#box,
      alone: this.#isAlone,
      columns: {
        encoder: {
          labels: translated.sourceTokens.map((token, at) => [name(token), under(second?.source, at)]),
          keep: (at) =>
            Math.abs(at - source) < 3 || read[at] > 0.1 || largest.encoder === at || newSource[at],
          lit: source,
          leftwards: isLeftwards(translated.sourceTokens),
        },
        decoder: {
          labels: translated.targetTokens.map((token, at) => [
            name(token),
            name(translated.outputTokens[at]),
            under(second?.written, at),
          ]),
          keep: (at) =>
            Math.abs(at - row) < 3 ||
            largest.decoder === at ||
            newOutput[at] ||
            (isOwn && largest.cross === at),
          lit: row,
          leftwards: isLeftwards(translated.outputTokens),
        },
      },
      names: { encoder: this.#widestName("encoder"), decoder: this.#widestName("decoder") },
      measure: (content, isLit) => this.#measure(content, size, isLit ? 650 : 400) + (isLit ? 8 : 2),
    });
  }

  /** Returns the width of the widest name of a stack's boxes, measured as if each box were highlighted. */
  #widestName(stack: Stack) {
    const { payload, t } = this.#app;
    const keys = Object.keys(payload.strings.en).filter((key) => key.startsWith(`stage.box.${stack}.`));
    const names = [...keys, "stage.box.add", ...(stack === "decoder" ? ["stage.written"] : [])];
    return Math.max(...names.flatMap((key) => t(key).split("|")).map((line) => this.#measure(line, 12, 650)));
  }

  #penFor(numbers: StageNumbers, geometry: Geometry, wordSize: number): Pen {
    const app = this.#app;
    return {
      geometry,
      numbers,
      box: this.#box,
      colours: coloursAt(this.element),
      measure: this.#measure,
      t: app.t,
      languages: languageNames(app),
      pictured: picturedHeads(app, numbers),
      waves: wavesOn(app, numbers.vectors),
      written: writtenIn(
        this.#player.act ?? (this.#act?.lit.length ? { row: numbers.row, risen: this.#act.risen } : null),
      ),
      wordSize,
      isEarly: (this.#player.act ?? this.#act)?.risen.encoder.startsWith("all") === false,
    };
  }

  /** Positions the elements that are not part of the drawing. */
  #place(geometry: Geometry) {
    const { encoder, narrow, width, height } = geometry;
    const style = (one: HTMLElement, css: string) => (one.style.cssText = narrow ? "" : css);
    const [x0, x1] = encoder.x;
    const low = Math.max(...encoder.columns.out, ...(this.#isAlone ? [] : geometry.decoder.columns.out));
    const field = `left:${x0}px;top:${encoder.words[0]}px;width:${x1 - x0}px;height:${32 + low}px`;
    style(this.#field, `${field};--names:${encoder.room[0] - x0}px`);
    const from = splitOf(width);
    style(this.#chips, `left:${x0}px;top:${encoder.words[1] + 12}px;width:${from - 64 - x0}px`);
    style(this.#strip, `left:${from}px;top:${encoder.words[1] + low + 10}px;width:${width - 38 - from}px`);
    for (const one of [this.#foot, this.#notice])
      style(one, `left:${x0}px;width:${width - 38 - x0}px;top:${height - 26}px`);
    style(this.#hero, `width:${this.#isAlone ? x1 - x0 : from - 64 - x0 + (this.#act ? 24 : -20)}px`);
    const isLow = this.#isAlone ? height < 800 : memoryTop(geometry, encoder.columns.at.length) < 330;
    this.#plane.classList.toggle("gfs-compact", !narrow && isLow);
    this.#plane.classList.toggle("gfs-alone", !narrow && this.#isAlone);
  }

  // Around the figure

  #fill() {
    const app = this.#app;
    const { engine, payload } = app;
    refill(this.#notice);
    this.#fillPlay();
    const { element: details, summary, choices } = menu("gfs-more");
    summary.textContent = "⋯";
    named(summary, app.t("stage.more"));
    refill(
      choices,
      engine.live !== false &&
        button(app.t("second.title"), () => {
          details.open = false;
          app.show({ second: { text: "" }, chapter: 0, sheet: false, zoom: null });
          this.#second.focus();
        }),
      button(app.t("vocabulary.title"), () => app.show({ sheet: true, panel: "vocabulary" })),
      button(app.t("lecture.title"), () => app.show({ lecture: true })),
      button(app.t("stage.numbers"), () => app.show({ view: "numbers" })),
      button(app.t("page.language"), () => app.show({ language: app.state.language === "en" ? "zh" : "en" })),
      button(app.t("page.theme"), () => app.show({ theme: app.state.theme === "dark" ? "light" : "dark" })),
      savingButtons(
        app,
        "figure-1",
        () => this.#picture(),
        (text) => (closeMenu(details), refill(this.#notice, text)),
      ),
    );
    refill(this.#tools, element("h1", { class: "gfs-name" }, "glassformer"), details);
    this.#plane.toggleAttribute("data-chapter", app.state.chapter > 0);
    if (!app.state.chapter)
      refill(
        this.#buttons,
        this.#play,
        engine.live !== false &&
          pill(app.t("stage.whatif"), () => app.show({ sheet: true, panel: "changes" })),
        this.#open,
        app.changed && pill(app.t("stage.let.go"), () => app.attempt(() => app.reset())),
      );
    const known = () => app.show({ sheet: true, panel: "vocabulary" });
    const vocabulary = named(
      button("A–Z", known, { className: "gfs-chip" }),
      `A–Z: ${app.t("vocabulary.title")}`,
    );
    vocabulary.tabIndex = payload.examples.length > 0 ? -1 : 0;
    const chosen = [...this.#chips.children].indexOf(document.activeElement as Element);
    refill(
      this.#chips,
      vocabulary,
      exampleChips(payload.examples, app.changes.source ?? app.state.sentence, (sentence) =>
        app.attempt(() => this.#openSentence(sentence)),
      ),
    );
    // keeps the focus on the chip, so that Enter swaps again
    if (chosen >= 0) (this.#chips.children[chosen] as HTMLElement).focus();
    this.#fillField();
    const { encoder_layers: encoder, decoder_layers: decoder, heads, d_model: width } = app.config;
    const about = app.t(
      "page.about",
      payload.name,
      payload.parameters.toLocaleString("en"),
      encoder,
      decoder,
      heads,
      width,
    );
    refill(this.#foot, about, " · ", parityText(app));
  }

  /** Returns the figure as the text of an SVG file, with the stage's sentence above it and the words below. */
  #picture() {
    const parts = [this.#said, this.#line, this.#svg, this.#field];
    return elementSvg(this.#app, this.#plane, this.#said.querySelector("h2")?.textContent ?? "", parts);
  }

  #fillField() {
    const app = this.#app;
    if (app.engine.live === false) return refill(this.#field);
    const onclick = () => this.edit();
    refill(
      this.#field,
      named(button("✎", onclick, { className: "gfs-edit" }), app.t("stage.edit")),
      this.#app.state.result &&
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
      enter: (text) => app.attempt(async () => (await this.#openSentence(text), this.#fillField())),
      leave: (byKey) => {
        this.#fillField();
        if (byKey) this.#svg.focus();
      },
    });
    refill(this.#field, around);
    const field = this.#field.querySelector("input") as HTMLInputElement;
    field.focus();
    field.select();
  }

  async #openSentence(sentence: string) {
    refill(this.#notice, await openNew(this.#app, sentence));
    this.#app.show({ row: null, sourceWord: null, zoom: null });
  }

  #tell() {
    const pen = this.#pen;
    if (!pen) return;
    const { numbers, box } = pen;
    const act = this.#act;
    this.#said.ariaBusy = "false";
    if (this.#player.act) return this.#tellPlay(pen, this.#player);
    if (act) return this.#tellAct(pen, act);
    const key = JSON.stringify([numbers.row, box, numbers.heads, numbers.open]);
    const { of, key: measured, value: known } = this.#worth;
    const isKnown = of === numbers.translated && measured === key;
    this.#write(isKnown ? known : null);
    if (isKnown || !box.endsWith("attention")) return;
    this.#said.ariaBusy = "true";
    const told = (value: Worth | null) => {
      if (this.#pen !== pen) return;
      this.#worth = { of: numbers.translated, key, value };
      this.#write(value);
      this.#said.ariaBusy = "false";
    };
    this.#measureWorth(numbers, box).then(told, () => told(null));
  }

  /** Shows the text about an act of Play. */
  #tellPlay(pen: Pen, { act, isFirst }: Player) {
    const { numbers, box } = pen;
    const key = isFirst ? act?.box : "next";
    const noPlace = key === "encoder.embedding" && !pen.waves ? ".none" : "";
    const words = (one: string, of: string) => spoken(saidWith(this.#app, one, of, numbers));
    const looks = isFirst ? (box.endsWith("attention") ? box : "") : "decoder.cross_attention";
    this.#fillSaid(
      placeOfWord(this.#app, numbers),
      words(`stage.play.${key}${noPlace}`, box),
      looks && words("", looks),
      "",
    );
    this.#tellLine(pen);
  }

  /** Shows the text of a chapter's act. */
  #tellAct(pen: Pen, act: Act) {
    const open = () => this.#openBox(act.box);
    const said = guided(this.#app, act, pen.numbers, () => this.edit(), open);
    said.then(
      ({ kicker, sentence, more, changes, buttons }) => {
        if (this.#pen !== pen || this.#act?.id !== act.id) return;
        this.#fillSaid(kicker, sentence, more, changes);
        const hadFocus = this.#buttons.contains(document.activeElement);
        refill(this.#buttons, buttons);
        if (hadFocus) this.#buttons.querySelector("button")?.focus();
        this.#tellLine(pen);
        this.#fit(pen);
        if (this.#told !== act.id && pen.geometry.narrow) this.#comeInto(pen.box);
        this.#told = act.id;
      },
      (error) => this.#app.complain(messageOf(error)),
    );
  }

  /** Scrolls a narrow figure to the box that an act is about. */
  #comeInto(name: string) {
    const box = this.#svg.querySelector(`.gfs-box[data-box="${name.replace("positions", "embedding")}"]`);
    box?.scrollIntoView({ block: "center" });
  }

  /** Hides parts of the text that do not fit above the figure. */
  #fit({ geometry, isEarly }: Pen) {
    const { encoder, narrow } = geometry;
    const top = memoryTop(geometry, encoder.columns.at.length);
    const room = (isEarly ? Math.min(encoder.card[0], top + 60) - 40 : top - 24) - this.#hero.offsetTop;
    for (const level of ["", "snug", "tight", "tighter", "tightest"]) {
      this.#hero.dataset.fit = level;
      if (narrow || this.#hero.offsetHeight <= room) return;
    }
  }

  /** Shows what the model writes with a row set by hand; null restores the usual text. */
  #tellTurned(look: Look | null, words: string[]) {
    const numbers = this.#pen?.numbers;
    if (!look || !numbers) return this.#tell();
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
    this.#fillSaid(t("stage.turned.kicker", headName(this.#app, look)), spoken(said), more.join(" "), "");
  }

  #fillSaid(kicker: Child, sentence: Child, more: Child, paper: Child) {
    const heading = element("h2", {}, sentence);
    refill(
      this.#short,
      [...heading.childNodes].map((one) => one.cloneNode(true)),
    );
    refill(
      this.#said,
      element("p", { class: "gfs-kicker" }, kicker),
      heading,
      // Chinese has no space after a full stop.
      element(
        "p",
        { class: "gfs-more-text" },
        typeof more === "string" ? more.replaceAll("。 ", "。") : more,
      ),
      element("p", { class: "gfs-paper" }, paper),
    );
    if (this.#pen) this.#fit(this.#pen);
  }

  #write(worth: Worth | null) {
    const { numbers, box } = this.#pen as Pen;
    const said = saidOf(this.#app, box, numbers, worth);
    this.#fillSaid(said.kicker, spoken(said.sentence), said.more, said.paper);
    this.#tellLine(this.#pen as Pen);
  }

  /**
   * Writes the whole translation as a line where the figure has no room for all words: on a phone, and in lecture mode.
   */
  #tellLine(pen: Pen) {
    const { geometry, numbers } = pen;
    const { lecture } = this.#app.state;
    if ((!geometry.narrow && !lecture) || this.#isAlone) return refill(this.#line);
    const { t } = this.#app;
    refill(
      this.#line,
      numbers.translated.outputTokens.map((token, at) => [
        element(
          "span",
          { class: at === numbers.row ? "gfs-pilled" : at > numbers.row ? "gfs-later" : "" },
          tokenName(token, t),
        ),
        " ",
      ]),
    );
    this.#fit(pen);
  }

  /**
   * Returns the probability of the highlighted word with and without the highlighted head; null if the page cannot
   * compute.
   */
  async #measureWorth({ translated, row, heads, open }: StageNumbers, box: string): Promise<Worth | null> {
    const app = this.#app;
    if (app.engine.live !== true) return null;
    const [stack, id] = box.split(".") as [Stack, string];
    const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === id);
    if (!family) return null;
    const attention = attentionName(family, open[stack]);
    const { changes, sourceIds, targetIds, hypothesis } = translated;
    const off = [...new Set([...(changes.ablated[attention] ?? []), heads[family.id]])];
    const trace = await app.sentences.traced(sourceIds, targetIds, {
      ...changes,
      ablated: { ...changes.ablated, [attention]: off },
    });
    const probability = async (one: typeof trace) => {
      const { shape, data } = await one.get("log_probs");
      return Math.exp(data[row * shape[1] + hypothesis.ids[row]]);
    };
    const [before, after] = await Promise.all([translated.trace, trace].map(probability));
    const place = { attention, head: heads[family.id] };
    const needs = family.id === "cross" ? await needsOf(app, translated, row) : null;
    return { before, after, isMost: await costsMost(translated, row, place, after), needs };
  }

  // The reader's actions

  #click(event: MouseEvent) {
    this.#svg.focus({ preventScroll: true }); // the clicked element may be redrawn and lose the focus
    const target = event.target as Element;
    const at = (selector: string) => (target.closest(selector) as SVGElement | null)?.dataset;
    const [word, head, edge, box] = [at(".gfs-word"), at(".gfs-head"), at(".gfs-edge"), at(".gfs-box")];
    const guess = at("[data-guess]")?.guess;
    const isAgain = word?.word === "encoder" && Number(word.column) === this.#app.state.sourceWord;
    if (guess) this.#openGuess(guess);
    else if (isAgain) this.edit();
    else if (word) this.#choose(word.word as string, Number(word.column));
    else if (head) this.#chooseHead(head.family as FamilyId, Number(head.head));
    else if (edge) this.#openLayer(edge.stack as Stack, Number(edge.layer));
    else if (box) this.#openBox(box.box as string);
    else if (this.#isOnSentence(event)) this.edit();
  }

  /** Returns whether the pointer is on the line of the source words. */
  #isOnSentence(event: MouseEvent) {
    const { x, y } = this.#placeOf(event);
    const { words, x: across } = (this.#pen as Pen).geometry.encoder;
    return y > words[0] && y < words[1] && x > across[0] && x < across[1];
  }

  /** Highlights a word: a source word, or an output word that was clicked where it is written or read. Ends Play. */
  #choose(kind: string, column: number) {
    this.#player.leave();
    if (kind === "encoder") return this.#app.show({ sourceWord: column }); // keeps the highlighted output word
    this.#app.show({
      row: column,
      sourceWord: null,
      ...(this.#box.startsWith("encoder") && { box: "decoder.cross_attention" }),
    });
  }

  #chooseHead(family: FamilyId, head: number) {
    if (head >= this.#app.config.heads) return;
    const { heads } = this.#app.state;
    this.#app.show({
      heads: { ...heads, [family]: { ...heads[family], head } },
      ...(family !== "encoder" && { sourceWord: null }), // a head of the encoder keeps the highlighted source word
    });
  }

  #openLayer(stack: Stack, layer: number) {
    const { heads } = this.#app.state;
    const moved = { ...heads };
    for (const { id, stack: own } of FAMILIES) if (own === stack) moved[id] = { ...heads[id], layer };
    this.#app.show({ heads: moved, sourceWord: null });
  }

  /**
   * Opens the panel of guesses at the clicked guess's box, or at a closed layer's last box. If "why" was clicked,
   * opens the panel "Why?".
   */
  #openGuess(at: string) {
    const numbers = this.#pen?.numbers;
    if (!numbers) return;
    if (at === "why")
      return this.#app.show({ zoom: boxOfPanel(this.#app.config, at), panel: at, row: numbers.row });
    const [, layer = numbers.open.decoder] = /^layer\.(\d+)$/.exec(at) ?? [];
    const box = boxName("decoder", /^layer/.test(at) ? "feed_forward.add" : at, Number(layer));
    this.#app.show({ zoom: { box, key: null }, panel: "guesses", row: numbers.row });
  }

  /** Highlights a box; if the box is already highlighted, opens it. */
  #openBox(box: string) {
    if (box !== this.#app.state.box && !this.#act) return this.#app.show({ box });
    const numbers = this.#pen?.numbers;
    const name = numbers && fullName(box, numbers);
    if (!name || !viewOf(name)) return; // addresses may name boxes that cannot be opened
    this.#app.show({
      zoom: { box: name, key: null },
      panel: "numbers",
      row: numbers.row,
      sourceWord: numbers.source,
    });
  }

  /** Starts dragging the handle of a highlighted row. */
  #take(event: PointerEvent) {
    this.#svg.blur(); // avoids a focus outline when the mouse is used
    const family = handleOf(event.target as Element);
    if (!family || event.button !== 0 || !this.#turner.hold(family)) return;
    this.#svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  #key(event: KeyboardEvent) {
    const family = handleOf(event.target as Element);
    if (family && this.#turner.key(event, family)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const { state } = this.#app;
    const numbers = this.#pen?.numbers;
    const isKept = !this.#act || /^(\d|Enter|F2)$/.test(event.key); // other keys move through the chapters
    if (!isKept) return;
    if (!this.#act && this.#playKey(event)) return event.preventDefault();
    if (!numbers || event.ctrlKey || event.metaKey || event.altKey) return;
    const [stack, id] = state.box.split(/\.(.*)/) as [Stack, string];
    const step = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft");
    const up = Number(event.key === "ArrowUp") - Number(event.key === "ArrowDown");
    const layer = Number(event.key === "PageUp") - Number(event.key === "PageDown");
    if (step && stack === "encoder")
      this.#choose("encoder", clamp(numbers.source + step, numbers.translated.sourceTokens.length));
    else if (step)
      this.#app.show({
        row: clamp(numbers.row + step, numbers.translated.outputTokens.length),
        sourceWord: null,
      });
    else if (up) this.#moveBox(stack, id, up);
    else if (layer)
      this.#openLayer(stack, clamp(numbers.open[stack] + layer, layersOf(this.#app.config, { stack })));
    else if (/^\d$/.test(event.key)) this.#chooseHead(familyOf(this.#box), Number(event.key));
    else if (event.key === "Enter") this.#openBox(this.#box);
    else if (event.key === "F2") this.edit();
    else return;
    event.preventDefault();
  }

  /**
   * Returns whether a letter starts a new sentence, as in a spreadsheet's cell: only if no field has the focus and
   * nothing is open.
   */
  #typesOn(event: KeyboardEvent) {
    const { chapter, lecture, view, zoom, sheet } = this.#app.state;
    const { key, target } = event;
    const isHere = this.element.contains(target as Node) || (target === document.body && linkOf(this.#app));
    const isFree = view === "stage" && !(chapter || lecture || zoom || sheet);
    return isFree && isHere && isForPage(event) && key !== "f" && /^\p{L}$/u.test(key);
  }

  /** Returns whether keys outside the figure control Play: while it plays, and in lecture mode. */
  #playsOn({ key, target, defaultPrevented }: KeyboardEvent) {
    const { chapter, lecture, view, zoom, sheet } = this.#app.state;
    if (chapter || view !== "stage" || zoom || sheet || defaultPrevented) return false;
    const isButton = key === " " && (target as Element).matches("button, summary, [role=button]");
    return !isButton && (lecture || (this.#player.act !== null && key !== " "));
  }

  /** Handles the keys of Play; returns whether the key had a meaning. */
  #playKey({ key }: KeyboardEvent) {
    const player = this.#player;
    const { lecture } = this.#app.state;
    if (key === " " && !lecture) return (player.play(), true);
    if (!player.act && !lecture) return false;
    const isOn = ["ArrowRight", ...(lecture ? [" ", "PageDown"] : [])].includes(key);
    const step = Number(isOn) - Number(["ArrowLeft", ...(lecture ? ["PageUp"] : [])].includes(key));
    if (step) return (player.step(step), true);
    return key === "Escape" && player.act !== null && (player.leave(), true);
  }

  #moveBox(stack: Stack, id: string, up: number) {
    const order = (this.#pen?.geometry[stack].boxes ?? []).map((box) => box.id);
    const at = order.indexOf(id) + up;
    if (at >= order.length && stack === "encoder") return this.#app.show({ box: "decoder.cross_attention" });
    const next = order[clamp(at, order.length)];
    this.#app.show({ box: `${stack}.${next}` });
  }

  // Pointing

  #point(event: PointerEvent) {
    const found = (event.target as Element).closest("[data-column]") as SVGElement | null;
    if (!found) return this.#lightColumn(null);
    const { word, stack, column } = found.dataset;
    this.#lightColumn({
      stack: word ? (word === "encoder" ? "encoder" : "decoder") : (stack as Stack),
      column: Number(column),
    });
  }

  /**
   * Highlights the vertical line (the strand) and the arcs of the word under the pointer, and dims those of all other
   * words.
   */
  #lightColumn(place: { stack: Stack; column: number } | null) {
    for (const one of this.#svg.querySelectorAll<SVGElement>(".gfs-hovered"))
      one.classList.remove("gfs-hovered");
    this.#svg.toggleAttribute("data-pointed", place !== null);
    if (!place) return;
    for (const one of this.#svg.querySelectorAll<SVGElement>(
      `[data-stack="${place.stack}"][data-column="${place.column}"]`,
    ))
      one.classList.add("gfs-hovered");
  }
}
