// The map: the encoder's attention on the left, the decoder's on the right, cross-attention between them.
// Each attention shows its heads as thumbnails (layers from top to bottom, heads from left to right), and one head in
// detail.
import { MARKED_FROM } from "../engine/alignment.ts";
import { numberText } from "../engine/number_text.ts";
import { FAMILIES, attentionName, measuredHeads, rowWords } from "./heads.ts";
import { colourPlace, coloursAt, colourTable, pixelled } from "./colours.ts";
import { brushOf, button, element, hint, refill } from "./dom.ts";
import { createGrid, legend } from "./grid.ts";
import { keyboardGrid } from "./keyboard.ts";
import { latestOnly } from "./latest.ts";
import { Lines } from "./lines.ts";
import { elementSvg, gridSvg, saveMenu } from "./take_away.ts";

import type { Labels, Tensor } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { State } from "./state.ts";
import type {
  AttentionPicture,
  Colours,
  Family,
  MeasuredHead,
  Picture,
  Result,
  Square,
  Token,
} from "./types.ts";

/** What a family's pictures are drawn from. */
const DRAWN: (keyof State)[] = [
  "result",
  "compared",
  "layout",
  "language",
  "theme",
  "stage",
  "face",
  "heads",
  "order",
  "contrast",
  "selected",
];

/** Returns the map as an element. */
export function createMap(app: App) {
  const columns = FAMILIES.map((family) => familyColumn(app, family));
  const controls = element("div", { className: "gf-controls" });
  const fill = () =>
    refill(
      controls,
      faceSwitch(app),
      app.state.contrast &&
        element("span", { className: "gf-note", role: "status" }, app.t("map.contrast.on")),
      legend("probability", 1),
      element("span", { className: "gf-note" }, app.t("map.masked")),
      app.compared &&
        element(
          "span",
          { className: "gf-note" },
          app.t("map.differs", MARKED_FROM, app.t(app.compared.label)),
        ),
    );
  fill();
  app.on(["result", "compared", "contrast", "language", "face"], fill);
  return element(
    "section",
    { className: "gf-map", "aria-label": app.t("point.back") },
    controls,
    element("div", { className: "gf-columns" }, columns),
  );
}

function familyColumn(app: App, family: Family) {
  const title = element("h2");
  const about = element("p", { className: "gf-note" });
  const facts = element("p", { className: "gf-facts" });
  const thumbnails = createThumbnails(app, family);
  const readout = element("p", { className: "gf-readout" });
  let picture: AttentionPicture | null = null;
  const atRest = () => (picture?.chosen ? picture.told(...picture.chosen) : app.t("map.hint"));
  const chosen = (row: number, column: number) => {
    const { layer, head } = app.state.heads[family.id];
    app.select(`${attentionName(family, layer)}.weights`, [head, row, column]);
  };
  const grid = createGrid({
    hovered(cell) {
      readout.textContent = cell && picture ? picture.told(...cell) : atRest();
      app.light(cell ? tokensAt(app, family, ...cell) : []);
    },
    chosen,
  });
  const lines = new Lines({
    hovered: (at) => app.light(at ? [{ side: sideOf(app, family, at.axis), position: at.place }] : []),
    chosen,
  });
  const larger = button("", () => {
    const { layer, head } = app.state.heads[family.id];
    app.show({ stage: "point", point: { name: `${attentionName(family, layer)}.weights`, head } });
  });

  const under = element("div", { className: "gf-under" }, larger);
  const save = () => {
    if (!picture) throw new Error("no picture is drawn yet");
    const svg = lines.element.hidden ? null : lines.element;
    return svg ? elementSvg(app, svg, picture.label) : gridSvg(app, picture, grid.element);
  };

  async function prepared() {
    const { layer, head } = app.state.heads[family.id];
    const name = `${attentionName(family, layer)}.weights`;
    const picture = { ...attentionPicture(app, name, await app.value(name), head), frame: frameOf(app) };
    const measured = await measuredHeads(app.config, family, app.result.current);
    const [one] = measured.filter((one) => one.layer === layer && one.head === head);
    return { made: picture, one };
  }

  function show({
    made,
    one: { layer, head, entropy, peak },
  }: {
    made: AttentionPicture;
    one: MeasuredHead;
  }) {
    picture = made;
    title.textContent = app.t(`family.${family.id}`);
    about.textContent = app.t(`family.${family.id}.about`);
    larger.textContent = app.t("map.larger");
    refill(under, larger, saveMenu(app, `${attentionName(family, layer)}.${head}`, save));
    const asLines = app.state.face === "lines";
    grid.element.hidden = readout.hidden = asLines;
    lines.element.hidden = !asLines;
    if (asLines) lines.draw(picture, sayLines(app, picture));
    else grid.draw(picture);
    readout.textContent = atRest();
    const ablated = app.changes.ablated[attentionName(family, layer)]?.includes(head);
    refill(
      facts,
      `${placeOf(app, layer, head)} · `,
      hint(app.t("order.entropy"), app.t("map.entropy.about")),
      ` ${numberText(entropy, 2)} · `,
      hint(app.t("order.peak"), app.t("map.peak.about")),
      ` ${numberText(peak, 2)}`,
      ablated && ` · ${app.t("map.ablated")}`,
    );
    thumbnails.draw();
  }
  const draw = latestOnly(app.signal, prepared, show);
  app.on(DRAWN, () => draw());
  app.on(["lit"], ({ face, lit }) => (face === "lines" ? lines : grid).light(litBy(family, lit)));
  draw();
  return element(
    "article",
    { className: `gf-family gf-${family.id}` },
    title,
    about,
    thumbnails.element,
    facts,
    element("div", { className: "gf-face" }, grid.element, lines.element),
    readout,
    under,
  );
}

/** Returns the switch between the two faces of an attention. */
export function faceSwitch(app: App) {
  const faces = ["grid", "lines"] as const;
  return element(
    "span",
    { className: "gf-faces", role: "group", "aria-label": app.t("lines.face") },
    faces.map((face) =>
      button(app.t(`lines.face.${face}`), () => app.show({ face }), { pressed: app.state.face === face }),
    ),
  );
}

/** Returns the words around a picture of lines. */
export function sayLines(app: App, { label }: Picture) {
  return {
    label,
    columns: app.t("lines.columns"),
    rows: app.t("lines.rows"),
    word: (word: string, weights: string) => app.t("lines.word", word, weights),
  };
}

/** Returns the room that all three attentions take, so that the same words stand at the same height. */
function frameOf(app: App) {
  const labels = FAMILIES.map((family) => app.labels(`${attentionName(family, 0)}.weights`));
  const columnLabels = labels.flatMap(({ columns }) => columns ?? []);
  return {
    rowLabels: labels.flatMap((one) => rowLabelsOf(app, one)),
    columnLabels,
    columns: Math.max(...labels.map(({ columns }) => columns?.length ?? 1)),
  };
}

/** Returns the labels of an attention's rows; a target row says the word that it reads and the word that it writes. */
function rowLabelsOf(app: App, { rows, rowSide }: Labels) {
  if (rowSide === "source") return rows;
  const { outputTokens } = app.result.current;
  return rows.map((word, row) => (row in outputTokens ? `${word} → ${outputTokens[row]}` : word));
}

/**
 * Returns the side of the words that an axis of a family's grids lights: a target row stands for the word it writes.
 */
function sideOf(app: App, family: Family, axis: "rows" | "columns"): Token["side"] {
  const { rowSide, columnSide = rowSide } = app.labels(`${attentionName(family, 0)}.weights`);
  return axis === "columns" ? columnSide : rowWords(rowSide);
}

/** Returns the tokens at a row and a column of a family's grids. */
function tokensAt(app: App, family: Family, row: number, column: number): Token[] {
  return [
    { side: sideOf(app, family, "rows"), position: row },
    { side: sideOf(app, family, "columns"), position: column },
  ];
}

/** Returns the rows and columns of these tokens in a family's grid. */
function litBy(family: Family, tokens: readonly Token[]) {
  const on = (side: Token["side"]) =>
    tokens.filter((token) => token.side === side).map((token) => token.position);
  return { rows: on(rowWords(family.rows)), columns: on(family.columns) };
}

/** Returns a head's place in words, such as "head 3, layer 1"; without a head or a layer, what there is. */
export function placeOf(app: App, layer: number | null, head: number | null) {
  const parts = [
    head !== null && `${app.t("word.head")} ${head}`,
    layer !== null && `${app.t("word.layer")} ${layer}`,
  ];
  return parts.filter(Boolean).join(app.t("word.comma"));
}

/** Returns the picture of one head's weights (or scores). */
export function attentionPicture(
  app: App,
  name: string,
  { shape: [, rows, columns], data }: Tensor,
  head: number,
) {
  const labels = app.labels(name);
  const rowLabels = rowLabelsOf(app, labels);
  const attention = name.replace(/\.\w+$/, "");
  const signed = name.endsWith("scores");
  const offset = head * rows * columns;
  const { selected } = app.state;
  const columnLabels = labels.columns ?? [];
  const mask = app.mask(attention);
  // Some mistakes give weight to a masked key; the weight is then shown.
  const blocked = (row: number, column: number) =>
    mask.data[row * mask.columns + column] === 0 && (signed || data[offset + row * columns + column] === 0);
  const layer = Number(/\.(\d+)\./.exec(name)?.[1] ?? 0);
  const { compared } = app;
  const changes = compared?.changes.get(name);
  const changeAt = (row: number, column: number) => changes?.data[offset + row * columns + column] ?? 0;
  const differs = (row: number, column: number) => Math.abs(changeAt(row, column)) > MARKED_FROM;
  const elsewhere = (row: number, column: number) => {
    if (!compared || !differs(row, column)) return "";
    const there = numberText(data[offset + row * columns + column] + changeAt(row, column), 2);
    return app.t("map.elsewhere", app.t(compared.label), there);
  };
  const valueText = (row: number, column: number, decimals = 3) =>
    blocked(row, column)
      ? app.t("grid.blocked")
      : numberText(data[offset + row * columns + column], decimals, signed);
  const picture: AttentionPicture = {
    values: data,
    offset,
    rows,
    columns,
    rowLabels,
    columnLabels,
    blocked,
    ...(changes && { differs }),
    scale: signed ? "signed" : "probability",
    largest: 1,
    label: app.t("grid.label", name, head, rows, columns),
    chosen:
      selected?.name === name && selected.index[0] === head ? [selected.index[1], selected.index[2]] : null,
    describe: (row, column) =>
      app.t(
        "grid.cell",
        rowLabels[row],
        columnLabels[column] ?? column,
        app.t(signed ? "word.score" : "word.weight"),
        valueText(row, column),
      ) + elsewhere(row, column),
    told: (row, column) =>
      `${placeOf(app, layer, head)}${app.t("word.colon")}${labels.rows[row]} → ${columnLabels[column]} ${valueText(row, column, 2)}${elsewhere(row, column)}`,
  };
  if (signed) picture.largest = largestSize(data, offset, rows * columns);
  else if (app.state.contrast)
    picture.largest = Array.from({ length: rows }, (_, row) =>
      rowPeak(data, offset + row * columns, columns),
    );
  return picture;
}

/** Returns the largest absolute value among `count` numbers from `offset` on, at least a tiny positive number. */
export function largestSize(data: Float32Array, offset: number, count: number) {
  let largest = 1e-9;
  for (let place = offset; place < offset + count; place++)
    if (Math.abs(data[place]) > largest) largest = Math.abs(data[place]);
  return largest;
}

function rowPeak(data: Float32Array, start: number, columns: number) {
  let peak = 1e-9;
  for (let column = 0; column < columns; column++) peak = Math.max(peak, data[start + column]);
  return peak;
}

/** Returns a family's heads as small pictures on one canvas. */
function createThumbnails(app: App, family: Family) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  let places: MeasuredHead[] = [];
  let across = 1,
    size = 30;
  const keys = keyboardGrid({
    label: "",
    describe: (row, column) => describeHead(app, family, places[row * across + column]),
    moved: () => {},
    chosen: (row, column) => choose(places[row * across + column]),
  });
  const measuring = element("span", { className: "gf-note", role: "status" });
  const stop = button("", () => {
    app.show({ order: "index" });
    keys.element.focus();
  });
  const progress = element("div", { className: "gf-progress", hidden: true }, measuring, stop);
  const holder = element("div", { className: "gf-thumbnails" }, canvas, keys.element, progress);
  function choose(place: MeasuredHead | undefined) {
    if (place)
      app.show({ heads: { ...app.state.heads, [family.id]: { layer: place.layer, head: place.head } } });
  }
  const at = (event: MouseEvent) => {
    const box = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size)];
  };
  canvas.addEventListener("click", (event) => {
    const [row, column] = at(event);
    choose(places[row * across + column]);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [row, column] = at(event);
    const place = places[row * across + column];
    canvas.title = place ? describeHead(app, family, place) : "";
  });

  async function prepared() {
    const measured = await measuredHeads(app.config, family, app.result.current);
    const heads = await ordered(app, family, measured, (count) => {
      progress.hidden = false;
      measuring.textContent = app.t("map.measuring", count, measured.length);
      stop.textContent = app.t("map.stop");
    });
    const names = heads.map(({ layer }) => `${attentionName(family, layer)}.weights`);
    return { heads, tensors: await Promise.all(names.map((name) => app.value(name))) };
  }

  function show({ heads, tensors }: { heads: MeasuredHead[]; tensors: Tensor[] }) {
    progress.hidden = true;
    places = heads;
    across = app.config.heads;
    const rows = Math.ceil(places.length / across);
    keys.resize(rows, across);
    keys.name(app.t("map.heads", app.t(`family.${family.id}`)));
    const least = isTouched(holder) ? 44 : 36;
    size = Math.floor(Math.min(46, (holder.clientWidth || 300) / across, Math.max(least, 100 / rows)));
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(size * across * ratio);
    canvas.height = Math.round(size * rows * ratio);
    canvas.style.width = `${size * across}px`;
    canvas.style.height = `${size * rows}px`;
    const brush = brushOf(canvas);
    const colours = coloursAt(canvas);
    for (const [place, one] of places.entries()) {
      const box = {
        x: (place % across) * size * ratio,
        y: Math.floor(place / across) * size * ratio,
        side: (size - 3) * ratio,
      };
      paintThumbnail(brush, tensors[place], one.head, box, colours);
      paintMarks(brush, marksOf(app, family, one), box, ratio, colours);
    }
  }
  const draw = latestOnly(app.signal, prepared, show);
  return { element: holder, draw };
}

/** Returns whether the page is narrow or read with the fingers, so that targets must be large. */
function isTouched(holder: HTMLElement) {
  const page = holder.closest(".glassformer")?.clientWidth ?? 0;
  return page <= 720 || matchMedia("(pointer: coarse)").matches;
}

function describeHead(app: App, family: Family, place: MeasuredHead | undefined) {
  if (!place) return "";
  const differing = differingOf(app, family, place);
  const { layer, head, entropy, peak, special, effect } = place;
  const numbers = [entropy, peak, special].map((one) => numberText(one, 2));
  return [
    app.t("map.head", layer, head, ...numbers),
    effect !== undefined && app.t("map.effect", numberText(effect, 2, true)),
    differing > 0 && app.t("map.differing", differing),
  ]
    .filter(Boolean)
    .join(app.t("word.comma"));
}

/** Returns the number of a head's cells that differ much from what the map is compared with. */
function differingOf(app: App, family: Family, { layer, head }: MeasuredHead) {
  const changes = app.compared?.changes.get(`${attentionName(family, layer)}.weights`);
  if (!changes) return 0;
  const size = changes.shape[1] * changes.shape[2];
  const own = changes.data.subarray(head * size, (head + 1) * size);
  return own.filter((change) => Math.abs(change) > MARKED_FROM).length;
}

/**
 * Returns the heads in the reader's order; the effects of ablation are computed when first needed. `computed`: gets the
 * number of effects that are known.
 */
async function ordered(app: App, family: Family, heads: MeasuredHead[], computed: (count: number) => void) {
  const { order } = app.state;
  if (order === "index") return heads;
  if (order !== "ablation") return heads.toSorted((a, b) => b[order] - a[order]);
  await addEffects(app, family, heads, computed);
  return heads.toSorted((a, b) => (a.effect ?? 0) - (b.effect ?? 0));
}

const effects: WeakMap<Result, Map<string, Promise<number>>> = new WeakMap();

async function addEffects(
  app: App,
  family: Family,
  heads: MeasuredHead[],
  computed: (count: number) => void,
) {
  const { result } = app;
  const known = effects.get(result) ?? new Map();
  effects.set(result, known);
  for (const [count, one] of heads.entries()) {
    if (app.state.order !== "ablation" || app.result !== result || app.signal.aborted) return;
    computed(count);
    const key = `${family.id} ${one.layer} ${one.head}`;
    if (!known.has(key))
      known.set(
        key,
        app.sentences.ablationEffect(result.current, attentionName(family, one.layer), one.head),
      );
    one.effect = await known.get(key);
  }
}

/** Paints a thumbnail of one head's weights: each dot is the largest weight of the cells in it. */
function paintThumbnail(
  brush: CanvasRenderingContext2D,
  { shape: [, rows, columns], data }: Tensor,
  head: number,
  { x, y, side }: Square,
  colours: Colours,
) {
  const table = colourTable("probability", colours);
  const high = Math.min(rows, Math.floor(side)),
    wide = Math.min(columns, Math.floor(side));
  const peaks = new Float32Array(wide * high);
  for (let row = 0; row < rows; row++) {
    const to = Math.floor((row * high) / rows) * wide;
    const from = (head * rows + row) * columns;
    for (let column = 0; column < columns; column++) {
      const place = to + Math.floor((column * wide) / columns);
      if (data[from + column] > peaks[place]) peaks[place] = data[from + column];
    }
  }
  const small = pixelled(wide, high, (pixels) => {
    for (const [place, peak] of peaks.entries()) pixels[place] = table[colourPlace("probability", peak)];
  });
  brush.imageSmoothingEnabled = false;
  brush.drawImage(small, x, y, side, side);
}

/**
 * Returns the marks of a thumbnail: its name, the number by which the heads are sorted, whether the head is shown in
 * detail, whether it is ablated, and the number of its differing cells.
 */
function marksOf(app: App, family: Family, one: MeasuredHead) {
  const { layer, head } = one;
  const { order } = app.state;
  const value = order === "index" ? null : order === "ablation" ? (one.effect ?? 0) : one[order];
  const number = value === null ? "" : numberText(value, 2, order === "ablation");
  const here = app.state.heads[family.id];
  const ablated = app.changes.ablated[attentionName(family, layer)]?.includes(head) ?? false;
  const current = here.layer === layer && here.head === head;
  return { text: `${layer}·${head}`, number, current, ablated, differing: differingOf(app, family, one) };
}

function paintMarks(
  brush: CanvasRenderingContext2D,
  {
    text,
    number,
    current,
    ablated,
    differing,
  }: { text: string; number: string; current: boolean; ablated: boolean; differing: number },
  { x, y, side }: Square,
  ratio: number,
  colours: Colours,
) {
  brush.lineWidth = (current ? 3 : 1) * ratio;
  brush.strokeStyle = colours(current ? "--lit" : "--line");
  brush.strokeRect(
    x + brush.lineWidth / 2,
    y + brush.lineWidth / 2,
    side - brush.lineWidth,
    side - brush.lineWidth,
  );
  brush.font = `${10 * ratio}px system-ui, sans-serif`;
  brush.textAlign = "left";
  brush.textBaseline = "top";
  for (const [mark, top, isLeft] of [
    [text, y, false],
    [number, y + side - 12 * ratio, false],
    [differing > 0 ? "≠" : "", y, true],
  ] as [string, number, boolean][]) {
    if (!mark) continue;
    const width = brush.measureText(mark).width + 4 * ratio;
    const left = isLeft ? x : x + side - width;
    brush.globalAlpha = 0.9;
    brush.fillStyle = colours("--paper");
    brush.fillRect(left, top, width, 12 * ratio);
    brush.globalAlpha = 1;
    brush.fillStyle = colours("--ink");
    brush.fillText(mark, left + 2 * ratio, top + ratio);
  }
  if (!ablated) return;
  brush.strokeStyle = colours("--bad");
  brush.lineWidth = 2 * ratio;
  brush.beginPath();
  brush.moveTo(x + 3, y + 3);
  brush.lineTo(x + side - 3, y + side - 3);
  brush.moveTo(x + side - 3, y + 3);
  brush.lineTo(x + 3, y + side - 3);
  brush.stroke();
}
