// The drawing of the figure: its groups, its layout on the plane, and how it moves when the layout changes.
import { coloursAt } from "../app/colours.ts";
import { brushOf, element, refill } from "../app/dom.ts";
import { drawing, withAttributes } from "../app/drawing.ts";
import { picturedHeads, writtenIn } from "./choices.ts";
import { wavesOn } from "./embedding_reading.ts";
import { fly } from "./flight.ts";
import { geometryOf } from "./geometry.ts";
import { areasIn, glide } from "./glide.ts";
import { ABOVE, LAYERS, RISING } from "./layers.ts";
import { drawOutline, outlinePlan, writeFirst } from "./outline.ts";
import { changedWords, planeIn, planOf } from "./plan.ts";
import { clipOf } from "./play.ts";
import { veilOf } from "./veil.ts";
import { languageNames } from "../app/wording.ts";

import type { App } from "../app/app.ts";
import type { FamilyId } from "../app/types.ts";
import type { Area, Geometry, Plane } from "./geometry.ts";
import type { Pen } from "./pen.ts";
import type { Act, Player } from "./play.ts";
import type { StageNumbers } from "./shown.ts";

const FONT = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif';
const GROWS = 260; // ms for resizing the highlighted box
const WIDENS = 700; // ms for expanding the outline into the stage

/** Returns the family of attention whose handle contains an element. */
export function handleOf(one: Element | null) {
  return one?.closest<SVGElement>(".gfs-handle")?.dataset.family as FamilyId | undefined;
}

/** What the figure shows of an act of a chapter. */
export interface ChapterAct extends Pick<Act, "box" | "risen"> {
  id: string;
  /** The boxes that the veil leaves clear; [] = all boxes. */
  lit: string[];
}

export class FigureView {
  svg = drawing("svg", { role: "group", tabindex: 0, class: "gfs-figure-svg" });
  /** What the figure shows; null until it is drawn for the first time. */
  pen: Pen | null = null;
  #app: App;
  #player: Player;
  #chapterAct: () => ChapterAct | null;
  #groups = new Map(Object.keys(LAYERS).map((name) => [name, drawing("g", `gfs-g-${name}`)]));
  /** The groups that appear step by step in Play. */
  #risen = drawing("g", "gfs-risen");
  #veil = drawing("g", "gfs-veil");
  /** The whole figure as the paper draws it; empty while the figure itself is shown. */
  #outline = drawing("g", "gfs-outline");
  /** The layer for the animations of Play. */
  #flying = drawing("g", "gfs-flying");
  #brush = brushOf(element("canvas"));
  #changed = { source: changedWords(), output: changedWords() };
  #scale = 1;
  /** The size of the smallest type, in px of the plane. */
  #least = 12;

  /** `chapterAct` returns the open act of a chapter. */
  constructor(app: App, player: Player, chapterAct: () => ChapterAct | null) {
    this.#app = app;
    this.#player = player;
    this.#chapterAct = chapterAct;
    for (const [name, group] of this.#groups) {
      if (name === Object.keys(ABOVE)[0]) this.svg.append(this.#risen, this.#veil);
      (name in RISING ? this.#risen : this.svg).append(group);
    }
    this.svg.append(this.#outline, this.#flying);
  }

  /** Whether the chapter's act shows only what a head looks at. */
  get isLook() {
    return this.act?.id === "turn";
  }

  /** Whether the chapter's act shows the figure as an outline. */
  get isOutline() {
    return this.act?.id === "outline" || this.act?.id === "first";
  }

  /** The open act of a chapter; null if no chapter is open. */
  get act() {
    return this.#chapterAct();
  }

  /** The highlighted box: the box of the act of Play or of the chapter, or else the box that the reader has chosen. */
  get box() {
    return this.#player.act?.box ?? (this.act?.box || this.#app.state.box);
  }

  /** Whether the chapter's act shows the encoder alone. */
  get isAlone() {
    return this.act?.risen.decoder === "";
  }

  /** Returns the pointer's coordinates on the figure's plane. */
  placeOf({ clientX, clientY }: MouseEvent) {
    const { left, top } = this.svg.getBoundingClientRect();
    return { x: (clientX - left) / this.#scale, y: (clientY - top) / this.#scale };
  }

  /**
   * Lays out the figure in a room of this width and draws it; returns the layout and the plane. The boxes glide from
   * where they were last drawn.
   */
  show(numbers: StageNumbers, room: number) {
    const plane = planeIn(this.#app, numbers, room);
    this.#least = plane.least;
    this.#scale = plane.scale;
    const { geometry, size } = this.#roomiest(numbers, plane);
    const before = areasIn(this.svg);
    const { width } = plane;
    this.pen = this.#penFor(numbers, geometry, size);
    const { height, narrow } = this.isOutline ? this.#drawOutline(plane) : geometry;
    withAttributes(this.svg, { width, height, viewBox: `0 0 ${width} ${height}` });
    if (this.isOutline || this.isLook) return { geometry: { ...geometry, height }, plane };
    const wasOutline = this.#outline.hasChildNodes();
    refill(this.#outline);
    this.drawParts();
    if (wasOutline)
      for (const stack of ["encoder", "decoder"])
        before.set(`${stack}.positions`, before.get(`${stack}.embedding`) as Area);
    if (!narrow && before.size > 0) glide(this.svg, before, [this.#risen], wasOutline ? WIDENS : GROWS);
    this.#move(this.pen);
    return { geometry, plane };
  }

  /** Draws the outline instead of the figure; returns its layout. */
  #drawOutline(plane: Plane) {
    const [app, isFirst] = [this.#app, this.act?.id === "first"];
    const plan = outlinePlan(app.config, plane);
    const draw = (isWritten: boolean) => refill(this.#outline, drawOutline(app, plan, isWritten));
    const isNew = isFirst && this.#outline.dataset.act === "outline";
    for (const one of [...this.#groups.values(), this.#veil, this.#flying]) refill(one);
    Object.assign(this.#outline.dataset, { act: this.act?.id });
    draw(isFirst && !isNew);
    if (isNew) void writeFirst(this.#flying, plan).then(() => this.act?.id === "first" && draw(true));
    return plan;
  }

  /** Redraws the parts of the figure with these names, by default all parts. */
  drawParts(names: string[] | null = null) {
    const { pen } = this;
    if (!pen || this.isOutline || this.isLook) return;
    for (const [name, group] of this.#groups) {
      if (names && !names.includes(name)) continue;
      const family =
        name === "look" && group.contains(document.activeElement) && handleOf(document.activeElement);
      refill(group, LAYERS[name](pen));
      if (family) group.querySelector<SVGElement>(`[data-family=${family}]`)?.focus();
    }
  }

  /** Scrolls a narrow figure to a box. */
  comeInto(name: string) {
    const box = this.svg.querySelector(`.gfs-box[data-box="${name.replace("positions", "embedding")}"]`);
    box?.scrollIntoView({ block: "center" });
  }

  #measure = (content: string, size = 13, weight = 400) => {
    this.#brush.font = `${weight} ${Math.max(size, this.#least)}px ${FONT}`;
    return this.#brush.measureText(content).width;
  };

  get #wordSize() {
    return this.#app.state.lecture ? 20 : this.isAlone ? 16 : 13;
  }

  /** Returns the layout with the usual size of words, or with a smaller size if that shows more words. */
  #roomiest(numbers: StageNumbers, plane: Plane) {
    const { box, isAlone } = this;
    const known = { box, isAlone, changed: this.#changed, measure: this.#measure };
    const laid = (size: number) => {
      return { size, geometry: geometryOf(planOf(this.#app, numbers, plane, { ...known, size })) };
    };
    const hidden = ({ geometry: { encoder, decoder } }: ReturnType<typeof laid>) =>
      [...encoder.columns.shown, ...decoder.columns.shown].filter((one) => !one).length;
    const usual = laid(this.#wordSize);
    if (usual.size !== 13 || hidden(usual) === 0) return usual;
    const small = laid(12);
    return hidden(small) < hidden(usual) ? small : usual;
  }

  #penFor(numbers: StageNumbers, geometry: Geometry, wordSize: number): Pen {
    const app = this.#app;
    const { act } = this;
    const chapter = act?.lit.length ? { row: numbers.row, risen: act.risen } : null;
    return {
      geometry,
      numbers,
      box: this.box,
      colours: coloursAt(this.svg),
      measure: this.#measure,
      t: app.t,
      languages: languageNames(app),
      pictured: picturedHeads(app, numbers),
      waves: wavesOn(app, numbers.vectors),
      written: writtenIn(this.#player.act ?? chapter),
      wordSize,
      isEarly: (this.#player.act ?? act)?.risen.encoder.startsWith("all") === false,
    };
  }

  /** Clips the figure to what has been computed so far, and runs the animation of an act of Play. */
  #move(pen: Pen) {
    const { act } = this.#player;
    const chapter = this.act;
    const risen = act?.risen ?? chapter?.risen;
    this.#risen.style.clipPath = risen ? `${clipOf(pen.geometry, risen)} view-box` : "";
    refill(this.#veil, !act && chapter && veilOf(pen.geometry, chapter.lit));
    if (!act) return refill(this.#flying);
    fly(this.#flying, pen, act, this.#player.isFirst);
  }
}
