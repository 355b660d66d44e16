// The map: the encoder's attention left, the decoder's right, cross-attention between them, all with the same rulers.
// Each has its heads as thumbnails (layers from top to bottom, heads from left to right) and one head large.
import { attentionName, FAMILIES } from "./app.js";
import { colourPlace, colourTable } from "./colours.js";
import { button, chooser, element, numberText, refill } from "./dom.js";
import { createGrid, legend } from "./grid.js";
import { keyboardGrid } from "./keyboard.js";
import { HEAD_ORDERS } from "./statistics.js";

/** Returns the map as an element. */
export function createMap(app) {
  const columns = FAMILIES.map((family) => familyColumn(app, family));
  const controls = element("div", { className: "gf-controls" });
  const fill = () =>
    refill(
      controls,
      element(
        "label",
        {},
        app.t("map.order"),
        chooser(
          app.t("map.order"),
          HEAD_ORDERS.map((order) => [order, app.t(`order.${order}`)]),
          app.ui.order,
          (order) => app.show({ order }),
        ),
      ),
      button(app.t("map.contrast"), () => app.show({ contrast: !app.ui.contrast }), {
        pressed: app.ui.contrast,
        title: app.t("map.contrast.title"),
      }),
      app.ui.contrast && element("span", { className: "gf-note", role: "status" }, app.t("map.contrast.on")),
      legend("probability", 1, app.ui.theme),
      element("span", { className: "gf-note" }, app.t("map.masked")),
    );
  fill();
  app.on("ui", (keys) => {
    if (["order", "contrast", "language", "theme"].some((key) => keys.includes(key))) fill();
  });
  return element(
    "section",
    { className: "gf-map", "aria-label": app.t("point.back") },
    controls,
    element("div", { className: "gf-columns" }, columns),
  );
}

function familyColumn(app, family) {
  const title = element("h2");
  const about = element("p", { className: "gf-note" });
  const facts = element("p", { className: "gf-facts" });
  const thumbnails = createThumbnails(app, family);
  const readout = element("p", { className: "gf-readout" });
  let picture = null;
  const grid = createGrid({
    hovered(row, column) {
      readout.textContent = row === null ? app.t("map.hint") : picture.describe(row, column);
      app.light(row === null ? [] : tokensAt(app, family, row, column));
    },
    chosen: (row, column) => {
      const { layer, head } = app.ui.heads[family.id];
      app.select(`${attentionName(family, layer)}.weights`, [head, row, column]);
    },
  });
  const larger = button("", () => {
    const { layer, head } = app.ui.heads[family.id];
    app.show({ stage: "point", point: { name: `${attentionName(family, layer)}.weights`, head } });
  });

  async function draw() {
    if (!app.result) return;
    const { layer, head } = app.ui.heads[family.id];
    const name = `${attentionName(family, layer)}.weights`;
    title.textContent = app.t(`family.${family.id}`);
    about.textContent = app.t(`family.${family.id}.about`);
    larger.textContent = app.t("map.larger");
    const tensor = await app.value(name);
    picture = attentionPicture(app, name, tensor, head);
    grid.draw(picture);
    readout.textContent = app.t("map.hint");
    const ablated = app.changes.ablated[attentionName(family, layer)]?.includes(head);
    const { entropy, peak } = (await app.statistics(family)).find(
      (one) => one.layer === layer && one.head === head,
    );
    facts.textContent =
      app.t("map.facts", layer, head, numberText(entropy, 2), numberText(peak, 2)) +
      (ablated ? ` · ${app.t("map.ablated")}` : "");
    await thumbnails.draw();
  }
  app.on("result", draw);
  app.on("resize", draw);
  app.on("ui", (keys) => {
    if (
      ["heads", "order", "contrast", "language", "theme", "shown", "selected", "stage"].some((key) =>
        keys.includes(key),
      )
    )
      draw();
  });
  app.on("hover", (tokens) => grid.light(litBy(family, tokens)));
  draw();
  return element(
    "article",
    { className: `gf-family gf-${family.id}` },
    title,
    about,
    thumbnails.element,
    facts,
    grid.element,
    readout,
    larger,
  );
}

/** Returns the tokens that stand at a row and a column of a family's grids. */
function tokensAt(app, family, row, column) {
  const place = app.labels(`${attentionName(family, 0)}.weights`);
  return [
    { side: place.rowSide, position: row },
    { side: place.columnSide, position: column },
  ];
}

/** Returns which rows and columns of a family's grid show these tokens. */
function litBy(family, tokens) {
  const on = (side) => tokens.filter((token) => token.side === side).map((token) => token.position);
  return { rows: on(family.rows), columns: on(family.columns) };
}

/** Returns what a grid needs to picture one head's weights (or scores). */
export function attentionPicture(app, name, { shape: [, rows, columns], data }, head) {
  const labels = app.labels(name);
  const attention = name.replace(/\.\w+$/, "");
  const signed = name.endsWith("scores");
  const offset = head * rows * columns;
  const { selected, shown } = app.ui;
  const blocked = (row, column) => !app.allowed(attention, row, column);
  const picture = {
    values: data,
    offset,
    rows,
    columns,
    rowLabels: labels.rows,
    columnLabels: labels.columns,
    blocked,
    scale: signed ? "signed" : "probability",
    largest: 1,
    hidden: (row) => shown !== null && labels.rowSide === "target" && row >= shown,
    label: app.t("grid.label", name, head, rows, columns),
    theme: app.ui.theme,
    chosen: selected?.name === name && selected.index[0] === head ? selected.index.slice(1) : null,
    describe(row, column) {
      const value = blocked(row, column)
        ? app.t("grid.blocked")
        : numberText(data[offset + row * columns + column], 3, signed);
      return app.t(
        "grid.cell",
        labels.rows[row],
        labels.columns[column],
        app.t(signed ? "word.score" : "word.weight"),
        value,
      );
    },
  };
  if (signed) picture.largest = largestSize(data, offset, rows * columns);
  else if (app.ui.contrast)
    picture.largest = Array.from({ length: rows }, (_, row) =>
      rowPeak(data, offset + row * columns, columns),
    );
  return picture;
}

/** Returns the largest size among so many numbers from `offset` on, and not less than a trifle. */
export function largestSize(data, offset, count) {
  let largest = 1e-9;
  for (let place = offset; place < offset + count; place++)
    largest = Math.max(largest, Math.abs(data[place]));
  return largest;
}

function rowPeak(data, start, columns) {
  let peak = 1e-9;
  for (let column = 0; column < columns; column++) peak = Math.max(peak, data[start + column]);
  return peak;
}

/** Returns a family's heads as small pictures on one canvas: {element, draw()}. */
function createThumbnails(app, family) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  let places = [],
    across = 1,
    size = 30;
  const keys = keyboardGrid({
    label: "",
    describe: (row, column) => describeHead(app, places[row * across + column]),
    moved: () => {},
    chosen: (row, column) => choose(places[row * across + column]),
  });
  const holder = element("div", { className: "gf-thumbnails" }, canvas, keys.element);
  function choose(place) {
    if (place)
      app.show({ heads: { ...app.ui.heads, [family.id]: { layer: place.layer, head: place.head } } });
  }
  const at = (event) => {
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
    canvas.title = place ? describeHead(app, place) : "";
  });

  async function draw() {
    const heads = await app.statistics(family);
    places = await ordered(app, family, heads);
    across = app.config.heads;
    const rows = Math.ceil(places.length / across);
    keys.resize(rows, across);
    keys.name(app.t("map.heads", app.t(`family.${family.id}`)));
    size = Math.floor(Math.min(46, (holder.clientWidth || 300) / across, Math.max(22, 100 / rows)));
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(size * across * ratio);
    canvas.height = Math.round(size * rows * ratio);
    canvas.style.width = `${size * across}px`;
    canvas.style.height = `${size * rows}px`;
    const brush = canvas.getContext("2d");
    for (const [place, one] of places.entries()) {
      const tensor = await app.value(`${attentionName(family, one.layer)}.weights`);
      const box = {
        x: (place % across) * size * ratio,
        y: Math.floor(place / across) * size * ratio,
        side: (size - 3) * ratio,
      };
      paintThumbnail(brush, tensor, one.head, box, app.ui.theme);
      paintMarks(brush, app, family, one, box, ratio);
    }
  }
  return { element: holder, draw };
}

function describeHead(app, place) {
  if (!place) return "";
  const { layer, head, entropy, peak, special } = place;
  return app.t("map.head", layer, head, numberText(entropy, 2), numberText(peak, 2), numberText(special, 2));
}

/** Returns the heads in the order that the reader chose; the effects of ablation are computed when first asked for. */
async function ordered(app, family, heads) {
  const { order } = app.ui;
  if (order === "index") return heads;
  if (order === "ablation") await addEffects(app, family, heads);
  const key = order === "ablation" ? "effect" : order;
  return [...heads].sort((a, b) => (order === "ablation" ? a[key] - b[key] : b[key] - a[key]));
}

const effects = new WeakMap();

async function addEffects(app, family, heads) {
  const { result } = app;
  if (!effects.has(result)) effects.set(result, new Map());
  const known = effects.get(result);
  for (const one of heads) {
    const key = `${family.id} ${one.layer} ${one.head}`;
    if (!known.has(key)) known.set(key, app.ablationEffect(attentionName(family, one.layer), one.head));
    one.effect = await known.get(key);
  }
}

/** Paints one head's weights small: each dot is the largest weight of the cells that fall on it. */
function paintThumbnail(brush, { shape: [, rows, columns], data }, head, { x, y, side }, theme) {
  const table = colourTable("probability", theme);
  const high = Math.min(rows, Math.floor(side)),
    wide = Math.min(columns, Math.floor(side));
  const bitmap = new ImageData(wide, high);
  const pixels = new Uint32Array(bitmap.data.buffer);
  const peaks = new Float32Array(wide * high);
  for (let row = 0; row < rows; row++) {
    const to = Math.floor((row * high) / rows) * wide;
    const from = (head * rows + row) * columns;
    for (let column = 0; column < columns; column++) {
      const place = to + Math.floor((column * wide) / columns);
      if (data[from + column] > peaks[place]) peaks[place] = data[from + column];
    }
  }
  for (let place = 0; place < pixels.length; place++)
    pixels[place] = table[colourPlace("probability", peaks[place])];
  const small = document.createElement("canvas");
  small.width = wide;
  small.height = high;
  small.getContext("2d").putImageData(bitmap, 0, 0);
  brush.imageSmoothingEnabled = false;
  brush.drawImage(small, x, y, side, side);
}

function paintMarks(brush, app, family, { layer, head }, { x, y, side }, ratio) {
  const dark = app.ui.theme === "dark";
  const here = app.ui.heads[family.id];
  const current = here.layer === layer && here.head === head;
  brush.lineWidth = (current ? 3 : 1) * ratio;
  brush.strokeStyle = current ? (dark ? "#ffd166" : "#c2410c") : dark ? "#33425c" : "#c9d1db";
  brush.strokeRect(
    x + brush.lineWidth / 2,
    y + brush.lineWidth / 2,
    side - brush.lineWidth,
    side - brush.lineWidth,
  );
  const text = `${layer}·${head}`;
  brush.font = `${10 * ratio}px system-ui, sans-serif`;
  const width = brush.measureText(text).width + 4 * ratio;
  brush.fillStyle = dark ? "#0f172ae6" : "#ffffffe6";
  brush.fillRect(x + side - width, y, width, 12 * ratio);
  brush.fillStyle = dark ? "#e6edf6" : "#1d2733";
  brush.textAlign = "left";
  brush.textBaseline = "top";
  brush.fillText(text, x + side - width + 2 * ratio, y + ratio);
  if (!app.changes.ablated[attentionName(family, layer)]?.includes(head)) return;
  brush.strokeStyle = dark ? "#ff8fa3" : "#be123c";
  brush.lineWidth = 2 * ratio;
  brush.beginPath();
  brush.moveTo(x + 3, y + 3);
  brush.lineTo(x + side - 3, y + side - 3);
  brush.moveTo(x + side - 3, y + 3);
  brush.lineTo(x + 3, y + side - 3);
  brush.stroke();
}
