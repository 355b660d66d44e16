// An attention opened where it stands: one head's row as a worked calculation, beside what it says in words.
import { decimalsOf, fixedText, numberText } from "../../engine/number_text.ts";
import { button, element, refill } from "../dom.ts";
import { latestOnly } from "../latest.ts";
import { attentionPanel, chooseHead } from "./attention_panel.ts";
import { leadOf, readAttention, restingPlaces, sentenceOf } from "./attention_reading.ts";
import { receiptTable } from "./receipt.ts";
import { probabilityWords } from "./words.ts";

import type { App } from "../app.ts";
import type { State } from "../state.ts";
import type { Child } from "../types.ts";
import type { Lit, Reading, Sentence } from "./attention_reading.ts";
import type { Heading, Line } from "./receipt.ts";

const DRAWN: (keyof State)[] = ["result", "zoom", "row", "sourceWord", "heads", "selected", "language"];
const ARROWS: Record<string, [right: number, down: number]> = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
};
/** The terms of a receipt: the largest and the smallest number of those that are listed, and their height in px. */
const [MOST_TERMS, LEAST_TERMS, TERM] = [16, 5, 18];
const KEYED = "gfz-keyed";
const ASKED = "gfz-asked";

/**
 * Returns the element that shows the attention of `state.zoom`; it is empty when nothing is opened. `lit`: returns the
 * words that the stage lights where the reader has chosen none.
 */
export function createAttentionZoom(app: App, lit: () => Lit | null = () => null): HTMLElement {
  const about = element("div", { className: "gfz-about" });
  const sentence = element("h2", { "aria-live": "polite" });
  const room = element("div", { className: "gfz-room" });
  const zoom = element("section", { className: "gf-zoom" });
  let reading: Reading | null = null;
  let stop = "weights";
  let shown = "";

  function show(made: Reading | null) {
    reading = made;
    if (!made) return refill(zoom);
    if (!zoom.firstChild) refill(zoom, about, room);
    zoom.dataset.keys = made.keySide;
    zoom.dataset.query = made.querySide;
    zoom.setAttribute("aria-label", placeText(app, made));
    explain(app, made, about, sentence, MOST_TERMS);
    const over = Math.ceil((about.scrollHeight - about.clientHeight) / TERM);
    if (over > 0) explain(app, made, about, sentence, Math.max(LEAST_TERMS, MOST_TERMS - over - 1)); // 1 = the others
    drawPanel(made);
    const place = [made.box, made.head, made.row, made.key].join();
    if (place !== shown) showRow(room);
    shown = place;
  }

  function drawPanel(made: Reading) {
    const hadFocus = room.contains(document.activeElement);
    const { scrollLeft = 0, scrollTop = 0 } = room.querySelector(".gfz-scroll") ?? {};
    refill(room, attentionPanel(app, made, room));
    room.querySelector(".gfz-scroll")?.scrollTo(scrollLeft, scrollTop);
    const found = enter(stop);
    if (hadFocus) found?.focus({ preventScroll: true });
  }

  /** Makes one number or button the panel's only stop of the Tab key, and returns it. */
  function enter(wanted: string) {
    const stops = stopsIn(room);
    const found = stops.find((one) => one.dataset.stop === wanted) ?? stops[0];
    for (const one of stops) one.tabIndex = one === found ? 0 : -1;
    stop = wanted;
    return found;
  }

  room.addEventListener("focusin", ({ target }) => {
    const one = target instanceof Element ? target.closest<HTMLElement>("[data-stop]") : null;
    if (one?.dataset.stop) enter(one.dataset.stop);
  });
  room.addEventListener("keydown", (event) => moveFocus(room, event));
  app.on(
    DRAWN,
    latestOnly(app.signal, () => readAttention(app, lit()), show),
  );
  const observer = new ResizeObserver(() => reading && show(reading));
  observer.observe(room);
  app.signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  readAttention(app, lit()).then(show);
  return zoom;
}

function stopsIn(room: HTMLElement) {
  return [...room.querySelectorAll<HTMLElement | SVGElement>("[data-stop]")];
}

/** Scrolls the panel, never the page, to the open row. */
function showRow(room: HTMLElement) {
  const scroll = room.querySelector(".gfz-scroll");
  const row = room.querySelector("tr[aria-current]")?.getBoundingClientRect();
  const frame = scroll?.getBoundingClientRect();
  if (!scroll || !row || !frame || (row.top >= frame.top && row.bottom <= frame.bottom)) return;
  scroll.scrollTop += row.top - frame.top - frame.height / 2;
}

/** Moves the focus to the nearest stop in the direction of an arrow. */
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

function placeText(app: App, { family, layer, head }: Reading) {
  return app.t("zoom.place", app.t(`family.${family.id}`), layer, head);
}

// The explanation

/** Fills the column of the explanation; its sentence stays one element, so that its changes are announced. */
function explain(app: App, reading: Reading, about: HTMLElement, sentence: HTMLElement, most: number) {
  const { box, notes, open, widest, keys } = reading;
  const said = sentenceOf(reading);
  const words = element("span", {}, fillIn(app, said));
  if (sentence.textContent !== words.textContent) refill(sentence, words); // or else it would be announced again
  const resting = restingPlaces(keys, app.labels(`${box}.weights`).columns ?? []);
  const remarks = [
    ...new Set([...notes, ...open.made.notes]),
    resting && app.t("zoom.resting", resting.share.toFixed(2), resting.words.join(app.t("word.comma"))),
  ];
  refill(
    about,
    button(app.t("stage.back"), () => app.show({ zoom: null }), { className: "gfz-back" }),
    element("p", { className: "gfz-place" }, placeText(app, reading)),
    sentence,
    element("p", { className: "gfz-place" }, app.t("stage.paper", `§${said.section}`)),
    remarks.map((note) => note && element("p", { className: "gfz-note" }, note)),
    widest !== null &&
      open.kind === "weights" &&
      button(app.t("zoom.widest", widest), () => chooseHead(app, reading, widest), {
        className: "gfz-link",
      }),
    receipt(app, reading, most),
    button(app.t("zoom.numbers"), () => showAll(app, reading), { className: "gfz-link" }),
  );
}

/** Returns a sentence with its words in the colours of their sides. */
function fillIn(app: App, { key, values }: Sentence): Child[] {
  const parts = app.t(key).split(/\{(\d)\}/);
  return parts.map((text, at) => {
    const value = at % 2 ? values[Number(text)] : text;
    if (typeof value !== "object") return value;
    return element("bdi", { className: `gfz-${value.side}` }, value.word);
  });
}

/** Shows the whole tensor of the open number, with the number's arithmetic. */
function showAll(app: App, reading: Reading) {
  const { box, head, open } = reading;
  const name = `${box}.${open.kind}`;
  const lead = leadOf(reading, open.kind);
  app.select(name, [...lead, open.at]);
  app.show({ view: "numbers", stage: "point", point: { name, head: lead.length > 1 ? head : 0 } });
}

/**
 * Returns the open number's arithmetic; without a chosen number, the way from the products to the weight. `most`: the
 * number of terms that are listed.
 */
function receipt(app: App, reading: Reading, most: number): Child {
  const { open, score } = reading;
  const { made, kind } = open;
  if (kind === "scores" || !open.isChosen) {
    const names = ["numbers.query", "numbers.key", "zoom.product"].map((key) => app.t(key));
    const headings = names.map((name, at): Heading => [name, [ASKED, KEYED, ""][at]]);
    return receiptTable(app, score.parts, headings, scoreLines(app, reading), most);
  }
  const headings = made.columns.filter((text) => text !== "").map((text): Heading => [text]);
  const decimals = decimalsOf([made.result]);
  const written = (value: number) => (kind === "weights" ? numberText(value) : fixedText(value, decimals));
  const stages = [...(made.total ? [made.total] : []), ...made.steps];
  if (stages.length === 0) stages.push({ label: app.t("zoom.result"), value: made.result });
  const lines = stages.map(({ label, value }, at): Line => {
    return [label, written(value), at === stages.length - 1 ? KEYED : ""];
  });
  return [
    element("p", { className: "gfz-formula" }, made.formula),
    receiptTable(app, headings.length > 0 ? made.parts : [], headings, lines, most),
  ];
}

/** Returns the lines from the sum of the products to the weight. */
function scoreLines(app: App, { score, weight, divisor, steps, keys, key }: Reading): Line[] {
  const { isAllowed, weight: share } = keys[key];
  const decimals = decimalsOf(keys.map((one) => one.score));
  const name = weight.steps.length === 0 ? "word.weight" : `zoom.softmax.${steps.softmax.over}`;
  return [
    ...(score.total ? [[app.t("zoom.sum"), fixedText(score.total.value, decimals)] as const] : []),
    [app.t(divisor ? "zoom.scaled" : "zoom.unscaled", divisor), fixedText(score.result, decimals)],
    ...(isAllowed ? [] : [[app.t("numbers.mask"), app.t(steps.blocked.text)] as const]),
    [app.t(name), probabilityWords(share), KEYED],
  ];
}
