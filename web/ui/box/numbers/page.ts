// The view of all numbers: the list of tensors, one matrix of a tensor as a grid, and the arithmetic of the chosen
// number.
import { arithmetic } from "../../../engine/arithmetic.ts";
import { hasHeads } from "../../../engine/model.ts";
import { numberText, percentText } from "../../../engine/number_text.ts";
import { messageOf } from "../../app/app.ts";
import { button, element, letArrowsMove, refill } from "../../app/dom.ts";
import { headsWith } from "../../app/heads.ts";
import { latestOnly } from "../../app/latest.ts";
import { pictureSvg, savingButtons } from "../take_away.ts";
import { enteredCell, inside, indexIn } from "./cells.ts";
import { createGrid } from "./grid.ts";
import { createHeads } from "./head_row.ts";
import { createList, shapeOf } from "./list.ts";
import { pictureOf } from "./picture.ts";
import { createVocabulary } from "./vocabulary.ts";
import { cellCode, meaningOf, workedNumber } from "./worked.ts";

import type { Cell, Explanation, Tensor } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { State } from "../../app/state.ts";
import type { Child, Selection } from "../../app/types.ts";
import type { Picture } from "./picture.ts";
import type { Walk } from "./worked.ts";

interface Made {
  cell: Cell;
  tensor: Tensor;
  /** The arithmetic, or a text that says why there is no arithmetic. */
  made: Explanation | string;
}

const DRAWN: (keyof State)[] = [
  "result",
  "selected",
  "view",
  "language",
  "theme",
  "layout",
  "order",
  "contrast",
];
const TABLE_CELLS = 1500;
/** The parts of the state that this view changes and that are restored when the reader returns to the figure. */
const KEPT = ["selected", "heads", "panel"] as const;

/** Returns the view; it is hidden while the figure is shown. */
export function createNumbers(app: App) {
  const view = new NumbersView(app);
  return view.element;
}

class NumbersView {
  #app: App;
  #walk: Walk = { trail: [], all: false };
  #asTable = false;
  /** The page's state before this view was opened, and the element that had the focus. */
  #before: Partial<Selection> = {};
  #focus: Element | null = null;
  #drawn: Picture | null = null;
  #back = button("", () => this.#leave(), { className: "gfn-pill" });
  #said = element("div", { class: "gfn-said", role: "group" });
  #title = element("h2", { tabindex: "-1" });
  #about = element("p", "gfn-note");
  #tools = element("p", { class: "gfn-tools", role: "group" });
  #table = element("div");
  #told = element("p", "gfn-told");
  #sum = element("aside", "gfn-sum");
  #list;
  #grid;
  #heads;
  #words;
  #draw: () => Promise<void>;
  element: HTMLElement;

  constructor(app: App) {
    this.#app = app;
    this.#list = createList(app, (name) => void app.attempt(() => this.#openTensor(name)));
    this.#grid = createGrid(
      (words) => (this.#told.textContent = words),
      (row, column) => this.#choose([row, this.#drawn?.ids[column] ?? column]),
    );
    this.#heads = createHeads(app, (head) =>
      this.#choose([head, ...(app.state.selected?.index.slice(1) ?? [])]),
    );
    this.#words = createVocabulary(app, () => void this.#draw());
    this.#draw = latestOnly(
      app.signal,
      () => this.#read(),
      (made) => made && this.#show(made),
    );
    const room = element("div", "gfn-room", this.#grid.element, this.#table);
    const tensor = element(
      "div",
      "gfn-tensor",
      this.#title,
      this.#about,
      this.#tools,
      this.#words.element,
      room,
      this.#told,
      this.#heads.element,
    );
    this.element = element(
      "section",
      "gf-stage-root gfn",
      element("header", {}, this.#back, this.#said),
      this.#list.element,
      tensor,
      this.#sum,
    );
    letArrowsMove(this.#tools);
    letArrowsMove(this.#sum, () => [...this.#sum.querySelectorAll<HTMLElement>("button")]);
    app.on([...KEPT, "view"], (state) => {
      if (state.view === "stage") this.#before = Object.fromEntries(KEPT.map((key) => [key, state[key]]));
    });
    app.on(["view"], ({ view }) => this.#enter(view === "numbers"));
    app.on(DRAWN, () => void this.#draw());
    const escape = (event: KeyboardEvent) => {
      // in a search field with text, Escape only empties the field
      const isSearch = (event.target as Element).matches("input:not(:placeholder-shown)");
      if (event.key !== "Escape" || event.defaultPrevented || isSearch || app.state.view !== "numbers")
        return;
      event.preventDefault();
      this.#leave();
    };
    window.addEventListener("keydown", escape, { signal: app.signal });
    this.#enter(app.state.view === "numbers");
    void this.#draw();
  }

  #enter(isOpen: boolean) {
    if (this.element.hidden !== isOpen) return;
    this.element.hidden = !isOpen;
    if (!isOpen) return (this.#focus as HTMLElement | null)?.focus?.({ preventScroll: true });
    this.#focus = document.activeElement;
    this.#title.focus({ preventScroll: true });
  }

  /** Returns to the figure as it was before this view. */
  #leave() {
    this.#app.show({ view: "stage", ...this.#before });
  }

  // Showing

  async #read(): Promise<Made | null> {
    const app = this.#app;
    const { view, selected } = app.state;
    if (view !== "numbers") return null;
    const name = selected?.name;
    const tensor = await app.value(name ?? "logits");
    const cell = selected
      ? { name: selected.name, index: inside(selected.index, tensor.shape) }
      : await enteredCell(app);
    if (!selected || cellCode(cell) !== cellCode(selected)) {
      // the chosen cell may lie outside a new, shorter sentence
      if (app.state.selected === selected) app.show({ selected: cell });
      return null;
    }
    const made = await arithmetic(app, cell.name, cell.index).catch(messageOf);
    return { cell, tensor, made };
  }

  #show({ cell, tensor, made }: Made) {
    const app = this.#app;
    const { name } = cell;
    this.#back.textContent = app.t("stage.back");
    this.element.ariaLabel = app.t("stage.numbers");
    this.#said.ariaLabel = app.t("page.sentence");
    refill(
      this.#said,
      saidOf(app, (first) => void app.attempt(() => this.#openTensor(first))),
    );
    // lets Tab reach the text only if it scrolls
    this.#said.tabIndex = this.#said.scrollHeight > this.#said.clientHeight ? 0 : -1;
    const words = name === "logits" || name === "log_probs" ? this.#words.shown(tensor, cell.index[1]) : null;
    this.#words.element.hidden = !words;
    refill(this.#title, element("code", {}, name), " ", element("span", {}, shapeOf(app, name).join(" × ")));
    this.#about.textContent = `${meaningOf(app, name)}${words ? recordedText(app) : ""}`;
    const picture = pictureOf(app, cell, tensor, words);
    this.#drawn = picture;
    const isEmpty = picture.columns.length === 0; // no word matches the search
    this.#grid.element.hidden = this.#asTable || isEmpty;
    this.#told.hidden = this.#grid.element.hidden;
    if (!this.#grid.element.hidden) this.#grid.draw(picture);
    refill(this.#table, this.#asTable && !isEmpty && tableOf(app, picture));
    this.#fillTools(picture, cell);
    this.#list.draw(name);
    void app.attempt(() => this.#heads.draw(cell, tensor));
    this.#showSum(cell, made);
  }

  #showSum(cell: Cell, made: Explanation | string) {
    const app = this.#app;
    const { trail } = this.#walk;
    // a cell that was not reached through an operand begins a new trail
    if (!trail.some((one) => cellCode(one) === cellCode(cell))) this.#walk.trail = [cell];
    const hadFocus = this.#sum.contains(document.activeElement);
    const redraw = () => void this.#draw();
    this.#sum.ariaLabel = app.t("panel.numbers");
    refill(
      this.#sum,
      typeof made === "string"
        ? element("p", "gf-error", made)
        : workedNumber(app, made, this.#walk, (to) => this.#follow(to), redraw),
    );
    const stops = [...this.#sum.querySelectorAll<HTMLElement>("button")];
    stops.forEach((one, at) => (one.tabIndex = at ? -1 : 0));
    if (hadFocus) this.#sum.querySelector<HTMLElement>("h3")?.focus({ preventScroll: true });
  }

  #fillTools(picture: Picture, { name, index }: Cell) {
    const app = this.#app;
    const hadFocus = [...this.#tools.children].indexOf(document.activeElement as Element);
    const isShare = name.endsWith(".weights");
    const table = () => {
      this.#asTable = !this.#asTable;
      void this.#draw();
    };
    const file = hasHeads(app.config, name) ? `${name}.${index[0]}` : name;
    refill(
      this.#tools,
      button(app.t("point.table"), table, { pressed: this.#asTable }),
      isShare &&
        button(app.t("map.contrast"), () => app.show({ contrast: !app.state.contrast }), {
          title: app.t("map.contrast.title"),
          pressed: app.state.contrast,
        }),
      savingButtons(app, file, () => pictureSvg(app, picture, this.element)).slice(0, 2),
    );
    const stops = [...this.#tools.children] as HTMLElement[];
    for (const one of stops) {
      one.className = "gfn-pill";
      one.tabIndex = one === stops[Math.max(0, hadFocus)] ? 0 : -1;
    }
    if (hadFocus >= 0) stops[hadFocus]?.focus();
  }

  // The reader's actions

  /** Opens an operand of the shown number, or an earlier number of the trail. */
  #follow(cell: Cell) {
    const { trail } = this.#walk;
    if (!trail.some((one) => cellCode(one) === cellCode(cell))) this.#walk.trail = [...trail, cell];
    this.#select(cell);
  }

  /** Chooses a number of the shown tensor by its last two indices. */
  #choose(index: number[]) {
    const { selected } = this.#app.state;
    if (selected)
      this.#select({
        name: selected.name,
        index: [...selected.index.slice(0, selected.index.length - index.length), ...index],
      });
  }

  /** Opens a tensor at the current word and head. */
  async #openTensor(name: string) {
    const { selected } = this.#app.state;
    const tensor = await this.#app.value(name);
    this.#select(
      selected ? { name, index: indexIn(name, tensor, selected) } : await enteredCell(this.#app, name),
    );
  }

  #select({ name, index }: Cell) {
    const heads = headsWith(this.#app.state.heads, name, index[0]);
    this.#app.show({ selected: { name, index }, heads });
  }
}

/**
 * Returns lines about the sentence and its translation, before and after the changes, and about the first tensor that
 * differs.
 */
function saidOf(app: App, open: (name: string) => void): Child[] {
  const { reference, current, firstDifference, logProbOfReference } = app.result;
  const isNew = current.text !== reference.text;
  const [before, after] = [reference.hypothesis.logProb, logProbOfReference].map((one) => numberText(one, 2));
  const ids = [reference, current].map(({ hypothesis }) => String(hypothesis.ids));
  // The log probability of the output is computed twice: while the model writes the output word by word, and when the
  // model reads the output as a whole. The two results differ under mistakes that let words see later words.
  const readsAhead = ids[0] === ids[1] && Math.abs(current.hypothesis.logProb - logProbOfReference) > 1e-3;
  return [
    element("bdi", "gfs-source", app.changes.source ?? app.state.sentence),
    " → ",
    app.changed && isNew && [element("del", {}, element("bdi", {}, reference.text)), " "],
    element("bdi", "gfs-target", current.text),
    app.changed &&
      element(
        "span",
        {},
        ` · ${app.t("output.oldUnderNew")}: ${before} → ${after} ${readsAhead ? `(${app.t("output.whole")})` : ""}`,
      ),
    current.unknown.length > 0 &&
      element("span", {}, ` · ${app.t("output.unknown")} `, element("bdi", {}, listed(current.unknown))),
    app.engine.live === false && element("span", {}, ` · ${app.t("page.recorded.about")}`),
    firstDifference &&
      element(
        "span",
        {},
        ` · ${app.t("output.first")}: `,
        button(firstDifference, () => open(firstDifference), { className: "gfz-link" }),
      ),
  ];
}

/** Returns these words as text; if there are many words, only the first few. */
function listed(words: string[]) {
  const shown = [...new Set(words)].slice(0, 8).map((word) => word.slice(0, 40));
  return shown.join(" ") + (words.length > 8 ? " …" : "");
}

/**
 * Returns a sentence about the total probability of the words that a recording leaves out, and about the position
 * where this probability is largest; "" if every word was recorded.
 */
function recordedText(app: App) {
  const { trace, targetTokens } = app.result.current;
  if (!trace.words) return "";
  const { ids, rest } = trace.words;
  const most = rest.reduce((best, share, row) => (share > rest[best] ? row : best), 0);
  return ` ${app.t("point.words", ids[0].length, percentText(rest[most]), targetTokens[most])}`;
}

/** Returns a picture's numbers as an HTML table with a limited number of columns. */
function tableOf(app: App, picture: Picture): Child[] {
  const count = Math.max(1, Math.min(picture.columns.length, Math.floor(TABLE_CELLS / picture.rows.length)));
  const heading = (scope: string, label: string) => element("th", { scope }, element("bdi", {}, label));
  const row = (label: string, at: number) =>
    element(
      "tr",
      {},
      heading("row", label),
      Array.from({ length: count }, (_, column) => element("td", {}, picture.text(at, column))),
    );
  const rest = picture.columns.length - count;
  return [
    element(
      "table",
      "gfn-table",
      element("caption", {}, picture.label),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("td"),
          picture.columns.slice(0, count).map((label) => heading("col", label)),
        ),
      ),
      element("tbody", {}, picture.rows.map(row)),
    ),
    rest > 0 && element("p", "gfn-quiet", app.t("point.cut", rest)),
  ];
}
