// What the reader does on the figure with the mouse and the keyboard.
import { isForPage } from "../app/dom.ts";
import { layersOf } from "../app/heads.ts";
import { chooseHead, chooseWord, moveBox, openBox, openGuess, openLayer } from "./actions.ts";
import { chapterKey } from "../chapters/chapter_view.ts";
import { clamp } from "../../engine/tensor.ts";
import { familyOf } from "../figure/choices.ts";
import { handleOf } from "../figure/figure_view.ts";
import { Turner } from "../figure/turn.ts";
import { turnableRow } from "../figure/turn_row.ts";

import type { Stack } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { FamilyId } from "../app/types.ts";
import type { FigureView } from "../figure/figure_view.ts";
import type { Turnable } from "../figure/turn.ts";
import type { Player } from "../figure/play.ts";
import type { SaidView } from "./said.ts";

/** The parts of the stage that the keys control. */
interface Controlled {
  figure: FigureView;
  player: Player;
  said: SaidView;
  /** The stage's element. */
  root: HTMLElement;
  /** Turns the sentence into a text field. */
  edit(): void;
}

/** A word under the pointer. */
interface Column {
  stack: Stack;
  column: number;
}

export class Keys {
  #app: App;
  #figure: FigureView;
  #player: Player;
  #turner: Turner;
  #rowOf: (family: FamilyId) => Turnable | null;
  #root: HTMLElement;
  #edit: () => void;

  constructor(app: App, { figure, player, said, root, edit }: Controlled) {
    this.#app = app;
    this.#figure = figure;
    this.#player = player;
    this.#turner = new Turner(app);
    const stage = {
      pen: () => figure.pen,
      drawParts: (names: string[]) => figure.drawParts(names),
      place: (event: PointerEvent) => figure.placeOf(event),
      tell: (...told: Parameters<SaidView["tellTurned"]>) => said.tellTurned(...told),
    };
    this.#rowOf = (family) => turnableRow(app, stage, family);
    this.#root = root;
    this.#edit = edit;
    const { signal } = app;
    window.addEventListener("keydown", (event) => this.#escape(event), { signal });
    window.addEventListener("keydown", (event) => this.#go(event), { signal });
    const { svg } = figure;
    svg.addEventListener("click", (event) => this.#click(event));
    svg.addEventListener("keydown", (event) => this.#key(event));
    svg.addEventListener("pointerover", (event) => this.#point(event));
    svg.addEventListener("pointerleave", () => this.#lightColumn(null));
    this.#turns(svg);
  }

  // Dragging the handle of a highlighted row

  #turns(svg: SVGElement) {
    const holds = ({ pointerId }: PointerEvent) => svg.hasPointerCapture(pointerId);
    svg.addEventListener("pointerdown", (event) => this.#take(event));
    svg.addEventListener(
      "pointermove",
      (event) => this.#turner.isHeld && holds(event) && this.#turner.drag(event),
    );
    for (const type of ["pointerup", "pointercancel"] as const)
      svg.addEventListener(type, (event) => holds(event) && this.#turner.release(type === "pointerup"));
  }

  #take(event: PointerEvent) {
    this.#figure.svg.blur(); // avoids a focus outline when the mouse is used
    const family = handleOf(event.target as Element);
    if (!family || event.button !== 0 || !this.#turner.hold(this.#rowOf(family))) return;
    this.#figure.svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  // Clicking

  #click(event: MouseEvent) {
    this.#figure.svg.focus({ preventScroll: true }); // the clicked element may be redrawn and lose the focus
    const target = event.target as Element;
    const at = (selector: string) => (target.closest(selector) as SVGElement | null)?.dataset;
    const [word, head, edge, box] = [at(".gfs-word"), at(".gfs-head"), at(".gfs-edge"), at(".gfs-box")];
    const guess = at("[data-guess]")?.guess;
    const isAgain = word?.word === "encoder" && Number(word.column) === this.#app.state.sourceWord;
    if (guess && this.#figure.pen) openGuess(this.#app, guess, this.#figure.pen.numbers);
    else if (isAgain) this.#edit();
    else if (word) this.#choose(word.word as string, Number(word.column));
    else if (head) chooseHead(this.#app, head.family as FamilyId, Number(head.head));
    else if (edge) openLayer(this.#app, edge.stack as Stack, Number(edge.layer));
    else if (box) openBox(this.#app, this.#figure, box.box as string);
    else if (this.#isOnSentence(event)) this.#edit();
  }

  /** Returns whether the pointer is on the line of the source words. */
  #isOnSentence(event: MouseEvent) {
    const { pen } = this.#figure;
    if (!pen) return false;
    const { x, y } = this.#figure.placeOf(event);
    const { words, x: across } = pen.geometry.encoder;
    return y > words[0] && y < words[1] && x > across[0] && x < across[1];
  }

  /** Highlights a word, and ends Play. */
  #choose(kind: string, column: number) {
    this.#player.leave();
    chooseWord(this.#app, kind, column, this.#figure.box);
  }

  // Keys on the figure

  #key(event: KeyboardEvent) {
    const family = handleOf(event.target as Element);
    if (family && this.#turner.key(event, () => this.#rowOf(family))) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const isKept = !this.#figure.act || /^(\d|Enter|F2)$/.test(event.key); // other keys move through the chapters
    if (!isKept) return;
    if (!this.#figure.act && this.#playKey(event)) return event.preventDefault();
    if (!this.#figure.pen || event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.#move(event.key) || this.#act(event.key)) event.preventDefault();
  }

  /** Moves the highlight to another word, box or layer; returns whether the key does. */
  #move(key: string) {
    const app = this.#app;
    if (!this.#figure.pen) return false;
    const { source, row, open, translated } = this.#figure.pen.numbers;
    const [stack] = app.state.box.split(".") as [Stack];
    const step = Number(key === "ArrowRight") - Number(key === "ArrowLeft");
    const up = Number(key === "ArrowUp") - Number(key === "ArrowDown");
    const layer = Number(key === "PageUp") - Number(key === "PageDown");
    if (step && stack === "encoder")
      this.#choose("encoder", clamp(source + step, translated.sourceTokens.length));
    else if (step) app.show({ row: clamp(row + step, translated.outputTokens.length), sourceWord: null });
    else if (up) moveBox(app, this.#figure, up);
    else if (layer) openLayer(app, stack, clamp(open[stack] + layer, layersOf(app.config, { stack })));
    return Boolean(step || up || layer);
  }

  /** Chooses a head, opens the highlighted box or edits the sentence; returns whether the key does. */
  #act(key: string) {
    if (/^\d$/.test(key)) chooseHead(this.#app, familyOf(this.#figure.box), Number(key));
    else if (key === "Enter") openBox(this.#app, this.#figure, this.#figure.box);
    else if (key === "F2") this.#edit();
    else return false;
    return true;
  }

  // Keys anywhere on the page

  #escape(event: KeyboardEvent) {
    const app = this.#app;
    const { zoom, sheet, second, panel } = app.state;
    // Escape closes only the dialog, and only empties a search
    const isInDialog = (event.target as Element).closest(
      "dialog, .gfn [type=search]:not(:placeholder-shown)",
    );
    const isOpen = (zoom || sheet || second) && !isInDialog;
    if (event.key !== "Escape" || event.defaultPrevented || !isOpen || this.#root.hidden) return;
    event.preventDefault(); // Escape must not end lecture mode or Play as well
    if (zoom && panel === "numbers") return app.show({ panel: "calculation" });
    app.show(zoom ? { zoom: null } : sheet ? { sheet: false } : { second: null });
    this.#figure.svg.focus();
  }

  #go(event: KeyboardEvent) {
    const isField = (event.target as Element).matches("input, select, textarea");
    if (this.#typesOn(event))
      this.#edit(); // the field gets the focus, and then the typed letter
    else if (isField || !this.#playsOn(event)) chapterKey(this.#app, event);
    else if (this.#playKey(event)) event.preventDefault();
  }

  /**
   * Returns whether a letter starts a new sentence, as in a spreadsheet's cell: only if no field has the focus and
   * nothing is open.
   */
  #typesOn(event: KeyboardEvent) {
    const { chapter, lecture, zoom, sheet } = this.#app.state;
    const { key, target } = event;
    const isHere = this.#root.contains(target as Node) || (target === document.body && this.#app.address());
    const isFree = !(chapter || lecture || zoom || sheet);
    return isFree && isHere && isForPage(event) && key !== "f" && /^\p{L}$/u.test(key);
  }

  /** Returns whether keys outside the figure control Play: while it plays, and in lecture mode. */
  #playsOn({ key, target, defaultPrevented }: KeyboardEvent) {
    const { chapter, lecture, zoom, sheet } = this.#app.state;
    if (chapter || zoom || sheet || defaultPrevented) return false;
    const isButton = key === " " && (target as Element).matches("button, summary, [role=button]");
    return !isButton && (lecture || (this.#player.act !== null && key !== " "));
  }

  /** Handles the keys of Play; returns whether the key had a meaning. */
  #playKey({ key }: KeyboardEvent) {
    const { lecture } = this.#app.state;
    if (key === " " && !lecture) return (this.#player.play(), true);
    if (!this.#player.act && !lecture) return false;
    const isOn = ["ArrowRight", ...(lecture ? [" ", "PageDown"] : [])].includes(key);
    const step = Number(isOn) - Number(["ArrowLeft", ...(lecture ? ["PageUp"] : [])].includes(key));
    if (step) return (this.#player.step(step), true);
    return key === "Escape" && this.#player.act !== null && (this.#player.leave(), true);
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
  #lightColumn(place: Column | null) {
    const { svg } = this.#figure;
    for (const one of svg.querySelectorAll<SVGElement>(".gfs-hovered")) one.classList.remove("gfs-hovered");
    svg.toggleAttribute("data-pointed", place !== null);
    if (!place) return;
    const { stack, column } = place;
    const lit = svg.querySelectorAll<SVGElement>(`[data-stack="${stack}"][data-column="${column}"]`);
    for (const one of lit) one.classList.add("gfs-hovered");
  }
}
