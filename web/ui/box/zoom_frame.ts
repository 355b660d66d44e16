// The frame of an opened box: the column with the explanation, and the room for the panel. Each kind of box fills the
// column and the room with its own content.
import { button, element, filled, refill, watchSize } from "../app/dom.ts";
import { drawAfterLayout } from "./rows.ts";
import { latestOnly } from "../app/latest.ts";
import { viewOf } from "./zoom_views.ts";

import type { Cell } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { State } from "../app/state.ts";
import type { Child } from "../app/types.ts";
import type { Lit, Opened, Sentence } from "./opened.ts";

const DRAWN: (keyof State)[] = [
  "result",
  "zoom",
  "row",
  "sourceWord",
  "heads",
  "selected",
  "language",
  "panel",
  "view",
];
const ARROWS: Record<string, [right: number, down: number]> = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
};
/** The terms of a receipt: the maximum and the minimum number of listed terms, and the height of a term in px. */
const [MOST_TERMS, LEAST_TERMS, TERM] = [16, 5, 18];

/**
 * Returns the element that shows the box of `state.zoom`; the element is empty if no box is opened. `lit` returns the
 * words that are highlighted on the stage if the reader has chosen no word.
 */
export function createZoomFrame(app: App, lit: () => Lit | null = () => null): HTMLElement {
  const about = element("div", "gfz-about");
  const sentence = element("h2", { "aria-live": "polite" });
  const room = element("div", "gfz-room");
  const zoom = element("section", "gf-zoom");
  let opened: Opened | null = null;
  let [stop, shown, drawn] = ["", "", ""];

  async function read() {
    const { zoom: asked } = app.state;
    return (asked && (await viewOf(asked.box)?.(app, lit()))) ?? null;
  }

  function show(made: Opened | null) {
    opened = made;
    if (!made) return refill(zoom);
    if (!zoom.firstChild) refill(zoom, about, room);
    colour(zoom, made);
    tell(made);
    drawPanel(made);
    if (made.place !== shown) showRow(room);
    shown = made.place;
  }

  const tell = (made: Opened) => explainFitting(app, made, about, sentence);

  function drawPanel(made: Opened) {
    const hadFocus = room.contains(document.activeElement);
    drawn = `${room.clientWidth} ${innerHeight}`;
    const { scrollLeft = 0, scrollTop = 0 } = room.querySelector(".gfz-scroll") ?? {};
    refill(room, made.panel(room));
    drawAfterLayout(room);
    room.querySelector(".gfz-scroll")?.scrollTo(scrollLeft, scrollTop);
    const found = enter(stop);
    if (hadFocus) found?.focus({ preventScroll: true });
  }

  /** Makes one number or button the only one in the panel that Tab reaches, and returns it. */
  function enter(wanted: string) {
    const stops = stopsIn(room);
    const found =
      stops.find((one) => one.dataset.stop === wanted) ??
      stops.find((one) => "first" in one.dataset) ??
      stops[0];
    for (const one of stops) one.tabIndex = one === found ? 0 : -1;
    stop = wanted;
    return found;
  }

  room.addEventListener("focusin", ({ target }) => {
    const one = target instanceof Element ? target.closest<HTMLElement>("[data-stop]") : null;
    if (one?.dataset.stop) enter(one.dataset.stop);
  });
  room.addEventListener("keydown", (event) => moveFocus(room, event));
  app.on(DRAWN, latestOnly(app.signal, read, show));
  // while the reader moves its slider, the panel stays
  app.on(
    ["temperature"],
    latestOnly(app.signal, read, (made) => made && tell(made)),
  );
  watchSize(app.signal, room, () => {
    const size = `${room.clientWidth} ${innerHeight}`; // without the height, which the panel itself changes on a phone
    if (opened && size !== drawn) show(opened);
  });
  read().then(show);
  return zoom;
}

/** Names an opened box, and gives it the colours of its kind and of its sides. */
function colour(zoom: HTMLElement, { kind, name, sides }: Opened) {
  Object.assign(zoom.dataset, sides);
  zoom.style.cssText = `--ground: var(--${kind}); --edge: var(--${kind}-l)`;
  if (kind !== "att") zoom.style.setProperty("--lift", "var(--card)");
  zoom.ariaLabel = name;
}

function stopsIn(room: HTMLElement) {
  return [...room.querySelectorAll<HTMLElement | SVGElement>("[data-stop]")];
}

/** Scrolls the panel, never the page, to the open row and column. */
function showRow(room: HTMLElement) {
  const scroll = room.querySelector(".gfz-scroll");
  const rectangleOf = (selector: string) => room.querySelector(selector)?.getBoundingClientRect();
  const [row, column] = ["tr[aria-current]", ".gfz-lit"].map(rectangleOf);
  const frame = scroll?.getBoundingClientRect();
  if (!scroll || !frame) return;
  if (row && (row.top < frame.top || row.bottom > frame.bottom))
    scroll.scrollTop += row.top - frame.top - frame.height / 2;
  if (column && (column.left < frame.left || column.right > frame.right))
    scroll.scrollLeft += column.left - frame.left - frame.width / 2;
}

/** Moves the focus to the nearest focusable element in the direction of an arrow key. */
function moveFocus(room: HTMLElement, event: KeyboardEvent) {
  const way = ARROWS[event.key];
  const from = event.target instanceof Element && event.target.closest("[data-stop]");
  if (!way || !from || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const centre = (one: Element) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  };
  const [x, y] = centre(from);
  const distance = (one: Element) => {
    const [right, down] = [centre(one)[0] - x, centre(one)[1] - y];
    const [along, aside] = way[0] ? [right * way[0], Math.abs(down)] : [down * way[1], Math.abs(right)];
    if (along < 4 || (way[0] && aside > 12)) return Infinity;
    return along + 2 * aside;
  };
  const near = stopsIn(room).map((one) => ({ one, far: distance(one) }));
  const nearest = near.reduce((best, next) => (next.far < best.far ? next : best));
  if (nearest.far < Infinity) nearest.one.focus();
}

/** Fills the column with the explanation, with as many terms as it has room for. */
function explainFitting(app: App, made: Opened, about: HTMLElement, sentence: HTMLElement) {
  explain(app, made, about, sentence, MOST_TERMS);
  const over = Math.ceil((about.scrollHeight - about.clientHeight) / TERM);
  const terms = about.querySelectorAll(".gfz-receipt tbody tr").length;
  // − 1 for the line "the others"
  if (over > 0) explain(app, made, about, sentence, Math.max(LEAST_TERMS, terms - over - 1));
}

/**
 * Fills the column with the explanation. The sentence remains the same element, so that screen readers announce
 * changes.
 */
function explain(app: App, made: Opened, about: HTMLElement, sentence: HTMLElement, most: number) {
  const words = element("span", {}, fillIn(app, made.sentence));
  // screen readers would announce the same text again if it were set again
  if (sentence.textContent !== words.textContent) refill(sentence, words);
  refill(
    about,
    button(app.t("stage.back"), () => app.show({ zoom: null }), { className: "gfz-back" }),
    element("p", "gfz-place", made.name),
    sentence,
    made.sentence.section && element("p", "gfz-place", app.t("stage.paper", `§${made.sentence.section}`)),
    made.remarks.map((one) => (typeof one === "string" ? element("p", "gfz-note", one) : one)),
    made.receipt(most),
    button(app.t("zoom.numbers"), () => showAll(app, made.cell), { className: "gfz-link" }),
  );
}

/** Returns a sentence with its words in the colours of their sides. */
function fillIn(app: App, { key, values }: Sentence): Child[] {
  const parts = values.map((one) =>
    typeof one === "object" ? element("bdi", `gfz-${one.side}`, one.word) : one,
  );
  return filled(app.t(key), parts);
}

/** Opens the view of all numbers at the open number, with its arithmetic. */
function showAll(app: App, selected: Cell) {
  app.show({ view: "numbers", selected });
}
