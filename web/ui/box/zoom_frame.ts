// The frame of an opened box: the column with the explanation, and the room for the panel. Each kind of box fills the
// column and the room with its own content.
import { element, nodesOf, refill, watchSize } from "../app/dom.ts";
import { kindOf } from "../app/boxes.ts";
import { drawAfterLayout } from "./rows.ts";
import { latestOnly } from "../app/latest.ts";
import { createNumbers } from "./numbers/all_numbers.ts";
import { createAbout } from "./about.ts";
import { segmentBar, segmentRoom } from "./zoom_segments.ts";
import { viewOf } from "./zoom_views.ts";

import type { App } from "../app/app.ts";
import type { State } from "../app/state.ts";
import type { Lit, Opened } from "./opened.ts";

const DRAWN: (keyof State)[] = [
  "result",
  "zoom",
  "row",
  "sourceWord",
  "heads",
  "selected",
  "language",
  "panel",
  "theme",
  "layout",
  "order",
  "contrast",
];
const ARROWS: Record<string, [right: number, down: number]> = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
};

/**
 * Returns the element that shows the box of `state.zoom`; the element is empty if no box is opened. `lit` returns the
 * words that are highlighted on the stage if the reader has chosen no word.
 */
export function createZoomFrame(app: App, lit: () => Lit | null = () => null): HTMLElement {
  const room = element("div", "gfz-room");
  const zoom = element("section", "gf-zoom");
  const numbers = createNumbers(app);
  const about = createAbout(app);
  let opened: Opened | null = null;
  let [stop, shown, drawn] = ["", "", ""];

  const read = () => readBox(app, numbers, lit);

  function show(made: Opened | null) {
    opened = made;
    const { zoom: asked } = app.state;
    if (!made || !asked) return refill(zoom);
    if (!zoom.firstChild) refill(zoom, about.element, room);
    colour(zoom, app, asked.box);
    zoom.ariaLabel = made.name;
    about.tell(made);
    drawPanel(made);
    if (made.place !== shown) showRow(room);
    shown = made.place;
  }

  function drawPanel(made: Opened) {
    const hadFocus = room.contains(document.activeElement);
    drawn = `${room.clientWidth} ${innerHeight}`;
    const { scrollLeft = 0, scrollTop = 0 } = room.querySelector(".gfz-scroll") ?? {};
    fillRoom(app, room, made);
    drawAfterLayout(room);
    room.querySelector(".gfz-scroll")?.scrollTo(scrollLeft, scrollTop);
    const found = enter(stop);
    if (hadFocus && !room.contains(document.activeElement)) found?.focus({ preventScroll: true });
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
    latestOnly(app.signal, read, (made) => made && about.tell(made)),
  );
  watchSize(app.signal, room, () => {
    const size = `${room.clientWidth} ${innerHeight}`; // without the height, which the panel itself changes on a phone
    if (opened && size !== drawn) show(opened);
  });
  read().then(show);
  return zoom;
}

/** Reads what the opened box shows, as a calculation or as a grid of numbers; null = no box is opened. */
async function readBox(app: App, numbers: ReturnType<typeof createNumbers>, lit: () => Lit | null) {
  const { zoom, panel, selected } = app.state;
  const view = zoom && viewOf(zoom.box);
  if (!view) return null;
  const isGrid = panel === "numbers";
  if (isGrid && selected) return numbers(selected);
  const made = await view(app, lit());
  return made && isGrid ? numbers(made.cell) : made;
}

/** Fills the room with the bar and the open segment. */
function fillRoom(app: App, room: HTMLElement, made: Opened) {
  const { zoom, panel } = app.state;
  if (!zoom) return;
  const own = () => made.panel(room);
  const bar = segmentBar(app, zoom.box, made);
  const inner = nodesOf([panel === "numbers" ? own() : segmentRoom(app, zoom.box, own)]);
  // the grid stays in its place, so that it keeps its focus and its scrolling
  if (panel === "numbers" && room.lastChild === inner[0]) room.firstChild?.replaceWith(bar);
  else refill(room, bar, inner);
}

/** Gives an opened box the colours of its kind, and of the sides of its keys (what is attended to) and queries. */
function colour(zoom: HTMLElement, app: App, box: string) {
  const { rowSide: query, columnSide: keys = query } = app.labels(`${box}.weights`);
  Object.assign(zoom.dataset, { keys, query });
  const kind = kindOf(box);
  zoom.style.cssText = `--ground: var(--${kind}); --edge: var(--${kind}-l)`;
  if (kind !== "att") zoom.style.setProperty("--lift", "var(--card)");
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
