// Positions: the sinusoids as a picture, and what makes them useful: k positions further on, each pair of
// dimensions is turned by the same angle, wherever one starts. Paper: §3.5.
import { colourPlace, colourTable } from "./colours.js";
import { element, numberText, refill } from "./dom.js";
import { drawing, remark, slider } from "./figure.js";
import { sinusoids } from "./forward.js";

const ROWS = 64;
const FURTHER = 16; // so far a shift can go at least
const WIDE = 300;
const HIGH = 92;

/** Returns the panel as an element. */
export function createPositionsPanel(app) {
  const panel = element("div", { className: "gf-positions" });
  const at = { position: 3, shift: 2, pair: 0 };

  async function fill() {
    const { positions } = app.config;
    if (app.ui.panel !== "positions") return; // it is made when it is opened
    if (positions === "none") return refill(panel, remark(app.t("positions.none")));
    if (positions !== "learned") return fillSinusoids();
    const { trace } = app.result.current;
    const picture = createPicture(app, () => {});
    refill(panel, remark(app.t("positions.learned")), trace.has("source.positions") && picture.element);
    if (trace.has("source.positions")) picture.draw(await trace.get("source.positions"));
  }

  function fillSinusoids() {
    const width = app.config.d_model;
    const doubled = app.changes.mistakes.includes("doubled_exponent");
    const between = [0, 0.25, 0.5, 0.75].map(
      (start) => sinusoids(start, ROWS, width, app.config.positions, doubled).data,
    );
    const [data] = between;
    const length = Math.min(ROWS, app.result.current.sourceIds.length);
    const shown = { shape: [length, width], data };
    const last = Math.min(length, ROWS - FURTHER) - 1;
    const most = { position: last, shift: ROWS - 1 - last, pair: Math.floor(width / 2) - 1 };
    for (const key of Object.keys(at)) at[key] = Math.max(0, Math.min(at[key], most[key]));
    const picture = createPicture(app, (position, dimension) => {
      const pair = pairsOf(app.config).findIndex((dimensions) => dimensions.includes(dimension));
      Object.assign(at, { position, pair });
      fill();
    });
    const figures = element("div");
    const sliders = Object.keys(at).map((key) =>
      slider(app.t(`positions.${key}`), { low: 0, high: most[key], value: at[key] }, (value) => {
        at[key] = value;
        update();
      }),
    );
    const update = () => {
      const dimensions = pairsOf(app.config)[at.pair];
      picture.draw(shown, dimensions, [at.position, at.position + at.shift]);
      refill(figures, demonstration(app, between, dimensions, at, doubled));
    };
    refill(
      panel,
      remark(app.t("positions.about")),
      !app.changes.positions && element("p", { className: "gf-change" }, app.t("positions.off")),
      picture.element,
      ...sliders,
      figures,
    );
    update();
  }

  app.on("result", fill);
  app.on("ui", (keys) => {
    if (["panel", "language", "theme"].some((key) => keys.includes(key))) fill();
  });
  fill();
  return panel;
}

/** Returns the two dimensions, sine and cosine, of each pair. */
function pairsOf({ positions, d_model: width }) {
  const half = Math.ceil(width / 2);
  return Array.from({ length: Math.floor(width / 2) }, (_, i) =>
    positions === "interleaved" ? [2 * i, 2 * i + 1] : [i, i + half],
  );
}

/** Returns a picture of a table: {element, draw({shape, data}, columns, rows)}; `picked` hears of clicks. */
function createPicture(app, picked) {
  const canvas = element("canvas", { role: "img", "aria-label": app.t("positions.about") });
  let size = [1, 1];
  canvas.addEventListener("click", (event) => {
    const shares = [event.offsetY / canvas.clientHeight, event.offsetX / canvas.clientWidth];
    picked(
      ...shares.map((share, axis) => Math.max(0, Math.min(size[axis] - 1, Math.floor(share * size[axis])))),
    );
  });
  function draw({ shape: [rows, columns], data }, lit = [], marked = []) {
    const { theme } = app.ui;
    size = [Math.min(rows, ROWS), columns];
    const table = colourTable("signed", theme);
    const bitmap = new ImageData(columns, size[0]);
    const pixels = new Uint32Array(bitmap.data.buffer);
    const largest = data
      .subarray(0, pixels.length)
      .reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
    pixels.forEach((_, place) => {
      pixels[place] = table[colourPlace("signed", data[place], largest)];
    });
    const small = element("canvas", { width: columns, height: size[0] });
    small.getContext("2d").putImageData(bitmap, 0, 0);
    const [x, y] = [
      Math.max(2, Math.ceil((WIDE * 2) / columns)),
      Math.max(4, Math.min(20, Math.round(320 / size[0]))),
    ];
    Object.assign(canvas, { width: columns * x, height: size[0] * y });
    const brush = canvas.getContext("2d");
    brush.imageSmoothingEnabled = false;
    brush.drawImage(small, 0, 0, canvas.width, canvas.height);
    brush.strokeStyle = theme === "dark" ? "#ffffff" : "#000000";
    brush.lineWidth = 2;
    for (const column of lit) brush.strokeRect(column * x, 1, x, canvas.height - 2);
    for (const row of marked) brush.strokeRect(1, row * y, canvas.width - 2, y);
  }
  return { element: canvas, draw };
}

/** Returns the figures and the numbers of a pair of dimensions at pos and at pos + k. */
function demonstration(app, between, [sine, cosine], { position, shift, pair }, doubled) {
  const width = app.config.d_model;
  const of = (pos) => [sine, cosine].map((at) => between[(pos % 1) * 4][Math.floor(pos) * width + at]);
  const frequency = 10000 ** ((-2 * pair) / width);
  const angle = shift * frequency;
  const turn = [
    [Math.cos(angle), Math.sin(angle)],
    [-Math.sin(angle), Math.cos(angle)],
  ];
  const turned = (pos) => turn.map(([a, b]) => a * of(pos)[0] + b * of(pos)[1]);
  const missed = (pos) =>
    Math.max(...turned(pos).map((value, place) => Math.abs(value - of(pos + shift)[place])));
  const everywhere = Math.max(...Array.from({ length: ROWS - shift }, (_, pos) => missed(pos)));
  const cells = (values) => values.map((value) => element("span", {}, numberText(value)));
  const column = (values) => element("span", { className: "gf-column" }, cells(values));
  const term = (name, ...content) =>
    element("div", { className: "gf-term" }, element("div", {}, ...content), element("small", {}, name));
  const [now, then] = [`PE[${position}]`, `PE[${position + shift}]`];
  return [
    element(
      "p",
      {},
      element("b", {}, app.t("positions.chosen", pair, sine, cosine)),
      ` · ${app.t("positions.period", numberText((2 * Math.PI) / frequency, 1))}`,
    ),
    element(
      "div",
      { className: "gf-waves" },
      waves(of, position, shift),
      clock(of(position), of(position + shift)),
    ),
    element(
      "p",
      { className: "gf-note" },
      element("span", { className: "gf-now" }, "●"),
      ` ${now} · `,
      element("span", { className: "gf-then" }, "●"),
      ` ${then} · ${app.t("positions.key")}`,
    ),
    element(
      "p",
      { className: "gf-mono" },
      `${app.t("positions.angle")} = ${shift} / 10000^(${2 * pair}/${width}) = `,
      `${numberText(angle, 4)} rad = ${numberText((angle * 180) / Math.PI, 2)}°`,
    ),
    element(
      "div",
      { className: "gf-equation gf-mono" },
      term(`M_${shift}`, element("span", { className: "gf-column gf-two" }, cells(turn.flat()))),
      "·",
      term(now, column(of(position))),
      "=",
      term(`M·${now}`, column(turned(position))),
      "≈",
      term(then, column(of(position + shift))),
    ),
    element("p", {}, app.t("positions.difference", missed(position).toExponential(1))),
    element(
      "p",
      { className: doubled ? "gf-change" : "" },
      app.t(
        doubled ? "positions.doubled" : "positions.same",
        shift,
        ROWS - 1 - shift,
        everywhere.toExponential(1),
      ),
    ),
  ];
}

/** Returns the pair's sine and cosine along the positions, with points at pos and pos + k. */
function waves(of, position, shift) {
  const x = (pos) => 6 + (pos * 200) / (ROWS - 1);
  const y = (value) => HIGH / 2 - value * 38;
  const wave = (which) =>
    Array.from({ length: 4 * ROWS - 3 }, (_, at) => `${x(at / 4)},${y(of(at / 4)[which])}`).join(" ");
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

/** Returns the pair as hands of a clock: (cosine, sine) at pos and at pos + k. */
function clock(now, then) {
  const middle = HIGH / 2;
  const hand = ([sine, cosine], name) => [
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
