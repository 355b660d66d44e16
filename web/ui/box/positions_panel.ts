// Positions: a picture of the sinusoids, and the reason for using sinusoids: a shift by k positions rotates each pair
// of dimensions by the same angle, from any position. Paper: §3.5.
import { times, clamp } from "../../engine/tensor.ts";
import { numberText } from "../../engine/number_text.ts";
import { colourPlace, coloursAt, colourTable, pixelled } from "../app/colours.ts";
import { brushOf, element, note, refill } from "../app/dom.ts";
import { drawing, remark, slider } from "../app/drawing.ts";
import { STEPS, sinusoids } from "../../engine/forward.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { latestOnly } from "../app/latest.ts";
import { elementSvg, saveMenu } from "./take_away.ts";

import type { ModelConfig, Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";

const ROWS = 64;
const FURTHER = 16; // the slider of the shift reaches at least this far
const WIDE = 300;
const HIGH = 92;

/** The reader's selection: a position, the shift to a second position, and a pair of dimensions. */
interface Place {
  position: number;
  shift: number;
  pair: number;
}

const KEYS = ["position", "shift", "pair"] as const;

type Pair = [sine: number, cosine: number];

/** Returns the panel as an element. */
export function createPositionsPanel(app: App) {
  const panel = element("div", "gf-positions");
  const at: Place = { position: 3, shift: 2, pair: 0 };
  async function prepared(): Promise<() => void> {
    const { positions } = app.config;
    if (app.state.panel !== "positions") return () => {}; // the panel is only filled while it is open
    switch (positions) {
      case "none":
        return () => refill(panel, remark(app.t("positions.none")));
      case "learned":
        return learned();
      case "interleaved":
      case "halves":
        return () => fillSinusoids(app, panel, at, positions, fill);
    }
  }

  /** Shows the learned position vectors of a model as a picture. */
  async function learned() {
    const vectors = await app.value("source.positions");
    return () => {
      const picture = createPicture(app, () => {});
      refill(panel, remark(app.t("positions.learned")), picture.element, picture.save);
      picture.draw(vectors);
    };
  }
  const fill = latestOnly(app.signal, prepared, (show) => show());

  app.on(["result", "panel", "language", "theme"], fill);
  fill();
  return panel;
}

/** Shows the sinusoids, and what a shift does to a pair of dimensions. `fill` fills the panel anew. */
function fillSinusoids(
  app: App,
  panel: HTMLElement,
  at: Place,
  layout: "interleaved" | "halves",
  fill: () => void,
) {
  const width = app.config.d_model;
  const { exponent } = stepsUnder(app.changes);
  const between = [0, 0.25, 0.5, 0.75].map((start) => sinusoids(start, ROWS, width, layout, exponent).data);
  const [data] = between;
  const length = Math.min(ROWS, app.result.current.sourceIds.length);
  const shown = { shape: [length, width], data };
  const last = Math.min(length, ROWS - FURTHER) - 1;
  const most = { position: last, shift: ROWS - 1 - last, pair: Math.floor(width / 2) - 1 };
  for (const key of KEYS) at[key] = clamp(at[key], most[key] + 1);
  const picture = createPicture(app, (position, dimension) => {
    const pair = pairsOf(app.config).findIndex((dimensions) => dimensions.includes(dimension));
    Object.assign(at, { position, pair });
    fill();
  });
  const figures = element("div");
  const sliders = KEYS.map((key) =>
    slider(app.t(`positions.${key}`), { low: 0, high: most[key], value: at[key] }, (value) => {
      at[key] = value;
      update();
    }),
  );
  const update = () => {
    const dimensions = pairsOf(app.config)[at.pair];
    picture.draw(shown, dimensions, [at.position, at.position + at.shift]);
    refill(figures, demonstration(app, between, dimensions, at, exponent !== STEPS.exponent));
  };
  refill(
    panel,
    remark(app.t("positions.about")),
    !app.changes.positions && element("p", "gf-change", app.t("positions.off")),
    picture.element,
    picture.save,
    ...sliders,
    figures,
    saveMenu(app, "positions-pair", () => elementSvg(app, figures, app.t("positions.pair.label", at.pair))),
  );
  update();
}

/** Returns the indices of the sine and the cosine of each pair. */
function pairsOf({ positions, d_model: width }: ModelConfig) {
  const half = Math.ceil(width / 2);
  return times(
    Math.floor(width / 2),
    (i) => (positions === "interleaved" ? [2 * i, 2 * i + 1] : [i, i + half]) as Pair,
  );
}

/** Returns a picture of a table; `picked` is called with the cell that was clicked. */
function createPicture(app: App, picked: (row: number, column: number) => void) {
  const canvas = element("canvas", { role: "img", "aria-label": app.t("positions.about") });
  let [rows, columns] = [1, 1];
  canvas.addEventListener("click", (event) => {
    const place = (share: number, count: number) => clamp(Math.floor(share * count), count);
    picked(
      place(event.offsetY / canvas.clientHeight, rows),
      place(event.offsetX / canvas.clientWidth, columns),
    );
  });
  /** `table`: [positions, dimensions]. `lit`: the highlighted columns. `marked`: the marked rows. */
  function draw({ shape, data }: Tensor, lit: number[] = [], marked: number[] = []) {
    [rows, columns] = [Math.min(shape[0], ROWS), shape[1]];
    const colours = coloursAt(canvas);
    const shades = colourTable(colours("--signed"));
    const shown = data.subarray(0, rows * columns);
    const largest = shown.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
    const small = pixelled(columns, rows, (pixels) => {
      for (const [place, value] of shown.entries()) pixels[place] = shades[colourPlace(value, largest)];
    });
    const x = Math.max(2, Math.ceil((WIDE * 2) / columns));
    const y = Math.max(4, Math.min(20, Math.round(320 / rows)));
    Object.assign(canvas, { width: columns * x, height: rows * y });
    const brush = brushOf(canvas);
    brush.imageSmoothingEnabled = false;
    brush.drawImage(small, 0, 0, canvas.width, canvas.height);
    brush.strokeStyle = colours("--ink");
    brush.lineWidth = 2;
    for (const column of lit) brush.strokeRect(column * x, 1, x, canvas.height - 2);
    for (const row of marked) brush.strokeRect(1, row * y, canvas.width - 2, y);
  }
  const holder = element("div", {}, canvas);
  const save = saveMenu(app, "positions", () => elementSvg(app, holder, app.t("positions.label")));
  return { element: holder, save, draw };
}

/**
 * Returns the figures and the numbers for a pair of dimensions at pos and at pos + k. `between`: rows of the table for
 * the positions 0, ¼, ½, ¾ and so on.
 */
function demonstration(
  app: App,
  between: Float32Array[],
  [sine, cosine]: Pair,
  { position, shift, pair }: Place,
  doubled: boolean,
): Child[] {
  const width = app.config.d_model;
  const of = (pos: number): Pair => {
    const [table, row] = [between[(pos % 1) * 4], Math.floor(pos) * width];
    return [table[row + sine], table[row + cosine]];
  };
  const frequency = 10000 ** ((-2 * pair) / width);
  const angle = shift * frequency;
  const turn = [
    [Math.cos(angle), Math.sin(angle)],
    [-Math.sin(angle), Math.cos(angle)],
  ];
  const turned = (pos: number) => turn.map(([a, b]) => a * of(pos)[0] + b * of(pos)[1]);
  const missed = (pos: number) =>
    Math.max(...turned(pos).map((value, place) => Math.abs(value - of(pos + shift)[place])));
  const everywhere = Math.max(...times(ROWS - shift, (pos) => missed(pos)));
  const [now, then] = [`PE[${position}]`, `PE[${position + shift}]`];
  const point = (className: string) => element("span", className, "●");
  const period = numberText((2 * Math.PI) / frequency, 1);
  return [
    element(
      "p",
      {},
      element("b", {}, app.t("positions.chosen", pair, sine, cosine)),
      ` · ${app.t("positions.period", period)}`,
    ),
    element("div", "gf-waves", waves(of, position, shift), clock(of(position), of(position + shift))),
    note(point("gf-now"), ` ${now} · `, point("gf-then"), ` ${then} · ${app.t("positions.key")}`),
    element(
      "p",
      "gf-mono",
      `${app.t("positions.angle")} = ${shift} / 10000^(${2 * pair}/${width}) = `,
      `${numberText(angle, 4)} rad = ${numberText((angle * 180) / Math.PI, 2)}°`,
    ),
    equation(
      [`M_${shift}`, turn.flat()],
      [now, of(position)],
      [`M·${now}`, turned(position)],
      [then, of(position + shift)],
    ),
    element("p", {}, app.t("positions.difference", missed(position).toExponential(1))),
    element(
      "p",
      { class: doubled ? "gf-change" : "" },
      app.t(
        doubled ? "positions.doubled" : "positions.same",
        shift,
        ROWS - 1 - shift,
        everywhere.toExponential(1),
      ),
    ),
  ];
}

/** Returns matrix · vector = product ≈ vector, each with its name. */
function equation(...terms: [name: string, numbers: number[]][]) {
  return element(
    "div",
    "gf-equation gf-mono",
    terms.map(([name, numbers], at) => {
      const cells = numbers.map((value) => element("span", {}, numberText(value)));
      const column = element("span", { class: at ? "gf-column" : "gf-column gf-two" }, cells);
      const term = element("div", "gf-term", element("div", {}, column), element("small", {}, name));
      return [["", "·", "=", "≈"][at], term];
    }),
  );
}

/** Returns a plot of the pair's sine and cosine over the positions, with points at pos and pos + k. */
function waves(of: (pos: number) => Pair, position: number, shift: number) {
  const x = (pos: number) => 6 + (pos * 200) / (ROWS - 1);
  const y = (value: number) => HIGH / 2 - value * 38;
  const wave = (which: 0 | 1) =>
    times(4 * ROWS - 3, (at) => `${x(at / 4)},${y(of(at / 4)[which])}`).join(" ");
  const points = [position, position + shift].flatMap((pos, order) =>
    [0, 1].map((which) =>
      drawing("circle", { cx: x(pos), cy: y(of(pos)[which]), r: 4, class: order ? "gf-then" : "gf-now" }),
    ),
  );
  const rulers = [position, position + shift].map((pos) =>
    drawing("path", { d: `M${x(pos)} 4V${HIGH - 4}`, class: "gf-ruler" }),
  );
  return drawing(
    "svg",
    { viewBox: `0 0 212 ${HIGH}`, "aria-hidden": "true" },
    drawing("path", { d: `M6 ${HIGH / 2}H206`, class: "gf-ruler" }),
    drawing("polyline", { points: wave(0), class: "gf-sine" }),
    drawing("polyline", { points: wave(1), class: "gf-cosine" }),
    ...rulers,
    ...points,
  );
}

/** Returns a clock whose hands are the pair, as (cosine, sine), at pos and at pos + k. */
function clock(now: Pair, then: Pair) {
  const middle = HIGH / 2;
  const hand = ([sine, cosine]: Pair, name: string) => [
    drawing("path", { d: `M${middle} ${middle}L${middle + cosine * 38} ${middle - sine * 38}`, class: name }),
    drawing("circle", { cx: middle + cosine * 38, cy: middle - sine * 38, r: 4, class: name }),
  ];
  return drawing(
    "svg",
    { viewBox: `0 0 ${HIGH} ${HIGH}`, "aria-hidden": "true" },
    drawing("circle", { cx: middle, cy: middle, r: 38, class: "gf-ruler" }),
    ...hand(now, "gf-now"),
    ...hand(then, "gf-then"),
  );
}
