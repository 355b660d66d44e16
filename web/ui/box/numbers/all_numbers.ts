// A box as a grid of all its numbers: the list of tensors, one matrix of a tensor, and its heads.
import { arithmetic } from "../../../engine/arithmetic.ts";
import { hasHeads } from "../../../engine/model.ts";
import { numberText, percentText } from "../../../engine/number_text.ts";
import { messageOf } from "../../app/app.ts";
import { button, element, letArrowsMove, refill } from "../../app/dom.ts";
import { cellCode, receiptOf } from "../receipt.ts";
import { pictureSvg, savingButtons } from "../take_away.ts";
import { enteredCell, inside, indexIn, openTensor } from "./cells.ts";
import { rowAt } from "../zoom_parts.ts";
import { createGrid } from "./grid.ts";
import { createHeads } from "./head_row.ts";
import { createList, sizeOf } from "./list.ts";
import { pictureOf } from "./picture.ts";
import { createVocabulary } from "./vocabulary.ts";
import { meaningOf, lastOf, placeText, roundingOf, told } from "./worked.ts";

import type { Cell, Tensor } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { Child } from "../../app/types.ts";
import type { Opened } from "../opened.ts";
import type { Picture } from "./picture.ts";

const TABLE_CELLS = 1500;

/** Returns a function that opens a box as a grid at a number; without an index, at the largest number of its row. */
export function createNumbers(app: App) {
  const view = new NumbersView(app);
  return (cell: Cell) => view.open(cell);
}

class NumbersView {
  #app: App;
  #asTable = false;
  #drawn: Picture | null = null;
  #open: Cell = { name: "logits", index: [] };
  #shown: (() => void) | null = null;
  #said = element("div", { class: "gfn-said", role: "group" });
  #title = element("h3", { tabindex: "-1" });
  #about = element("p", "gfz-note");
  #tools = element("p", { class: "gfn-tools", role: "group" });
  #table = element("div");
  #told = element("p", "gfn-told");
  #list;
  #grid;
  #heads;
  #words;
  #element: HTMLElement;

  constructor(app: App) {
    this.#app = app;
    this.#list = createList(app, (name) => void app.attempt(() => this.#openTensor(name)));
    this.#grid = createGrid(
      (words) => (this.#told.textContent = words),
      (row, column) => this.#choose([row, this.#drawn?.ids[column] ?? column]),
    );
    this.#heads = createHeads(app, (head) => this.#choose([head, ...this.#open.index.slice(1)]));
    this.#words = createVocabulary(app, () => this.#shown?.());
    const room = element("div", "gfn-room", this.#grid.element, this.#table);
    const { element: words } = this.#words;
    const parts = [this.#title, this.#about, this.#tools, words, room, this.#told, this.#heads.element];
    this.#element = element("div", "gfn", this.#list.element, element("div", "gfn-tensor", parts));
    letArrowsMove(this.#tools);
  }

  async open(wanted: Cell): Promise<Opened> {
    const app = this.#app;
    const { selected } = app.state;
    const cell = wanted.index.length > 0 ? wanted : await enteredCell(app, wanted.name);
    const tensor = await app.value(cell.name);
    const { name, index } = { ...cell, index: inside(cell.index, tensor.shape) };
    const open = { name, index };
    // the chosen cell may lie outside a new, shorter sentence
    if (selected && cellCode(open) !== cellCode(selected)) app.show({ selected: open });
    const made = await arithmetic(app, name, index).catch(messageOf);
    const isKnown = typeof made !== "string";
    const result = isKnown ? made.result : rowAt(tensor, index.slice(0, -1))[index[index.length - 1]];
    const code = `${lastOf(name)}[${index.join(", ")}] = ${numberText(result, 4)}`;
    return {
      place: cellCode(open),
      name: placeText(app, open),
      sentence: told(app, open, result),
      remarks: [element("p", "gfz-note", element("code", {}, code)), isKnown ? made.notes : [made]].flat(),
      cell: open,
      receipt: isKnown ? receiptOf(made, roundingOf(app, made)) : null,
      made: isKnown ? made : null,
      beside: this.#said,
      panel: () => {
        this.#open = open;
        this.#shown = () => this.#show(open, tensor);
        this.#shown();
        return this.#element;
      },
    };
  }

  #show(cell: Cell, tensor: Tensor) {
    const app = this.#app;
    const { name } = cell;
    this.#said.ariaLabel = app.t("page.sentence");
    refill(
      this.#said,
      saidOf(app, (first) => void openTensor(app, first)),
    );
    const words = name === "logits" || name === "log_probs" ? this.#words.shown(tensor, cell.index[1]) : null;
    this.#words.element.hidden = !words;
    refill(this.#title, element("code", {}, name), " ", element("span", {}, sizeOf(app, name).join(" × ")));
    this.#about.textContent = `${meaningOf(app, name)}${words ? recordedText(app) : ""}`;
    const picture = pictureOf(app, cell, tensor, words);
    this.#drawn = picture;
    const isEmpty = picture.columns.length === 0; // no word matches the search
    this.#grid.element.hidden = this.#asTable || isEmpty;
    this.#told.hidden = this.#grid.element.hidden;
    refill(this.#table, this.#asTable && !isEmpty && tableOf(app, picture));
    this.#fillTools(picture, cell);
    this.#list.draw(name);
    void app.attempt(() => this.#heads.draw(cell, tensor));
    // once the room is on the page, and so has a width
    queueMicrotask(() => {
      // lets Tab reach the text only if it scrolls
      this.#said.tabIndex = this.#said.scrollHeight > this.#said.clientHeight ? 0 : -1;
      if (!this.#grid.element.hidden) this.#grid.draw(picture);
    });
  }

  #fillTools(picture: Picture, { name, index }: Cell) {
    const app = this.#app;
    const hadFocus = [...this.#tools.children].indexOf(document.activeElement as Element);
    const isShare = name.endsWith(".weights");
    const table = () => {
      this.#asTable = !this.#asTable;
      this.#shown?.();
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
      savingButtons(app, file, () => pictureSvg(app, picture, this.#element)).slice(0, 2),
    );
    const stops = [...this.#tools.children] as HTMLElement[];
    for (const one of stops) {
      one.className = "gfs-pill";
      one.tabIndex = one === stops[Math.max(0, hadFocus)] ? 0 : -1;
    }
    if (hadFocus >= 0) stops[hadFocus]?.focus();
  }

  // The reader's actions

  /** Chooses a number of the shown tensor by its last indices. */
  #choose(index: number[]) {
    const { name, index: shown } = this.#open;
    this.#app.select({ name, index: [...shown.slice(0, shown.length - index.length), ...index] });
  }

  /** Opens a tensor at the current word and head. */
  async #openTensor(name: string) {
    this.#app.select({ name, index: indexIn(name, await this.#app.value(name), this.#open) });
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
