// Opens a box in place: the opened box grows from its own rectangle, and the rest of the figure shrinks to a map.
import { element, refill } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { boxOf, middle, rounded, topOf } from "../figure/geometry.ts";
import { wantsStillness } from "../figure/glide.ts";
import { boxName, placeOfBox } from "../app/boxes.ts";
import { createZoomFrame } from "./zoom_frame.ts";
import { viewOf } from "./zoom_views.ts";

import type { App } from "../app/app.ts";
import type { Pen } from "../figure/pen.ts";
import type { Lit } from "./opened.ts";

const MAP = { width: 268, opens: 320 };

/** Returns the layer over the figure in which boxes open, and a function that updates it. */
export function createZoom(app: App, lit: () => Lit | null) {
  const map = element("div", "gfs-map");
  const inside = createZoomFrame(app, lit);
  const made = element("div", "gfs-zoom", map, inside);
  made.hidden = app.state.zoom === null;
  /** Updates the layer. A newly opened box grows from its rectangle, in px of the plane. */
  function open(pen: Pen) {
    const wasHidden = made.hidden;
    made.hidden = app.state.zoom === null;
    if (made.hidden || !app.state.zoom) return;
    refill(map, mapOf(app, pen));
    if (!wasHidden || wantsStillness()) return;
    const { stack, id } = placeOfBox(app.state.zoom.box);
    const place = pen.geometry[stack];
    const y = place.boxes.find((box) => box.id === id)?.y ?? place.card; // a narrow figure lacks some boxes
    const [wide, tall] = [made.clientWidth || 1, made.clientHeight || 1];
    const from = `translate(${place.x[0]}px, ${y[0]}px) scale(${(place.x[1] - place.x[0]) / wide}, ${(y[1] - y[0]) / tall})`;
    made.animate(
      [
        { transform: from, opacity: 0.3 },
        { transform: "none", opacity: 1 },
      ],
      { duration: MAP.opens, easing: "ease-out" },
    );
  }
  return { element: made, open };
}

/**
 * Returns the figure as a map: its boxes, and the path of the highlighted word. A click opens a box, or returns to the
 * figure.
 */
function mapOf(app: App, { geometry, numbers }: Pen) {
  const { width, height, encoder, decoder } = geometry;
  const opened = app.state.zoom ? placeOfBox(app.state.zoom.box) : null;
  const boxes = [encoder, decoder].flatMap((place) =>
    place.boxes.map((box) => {
      const isOpen = opened?.stack === place.stack && opened.id === box.id;
      const name = boxName(place.stack, box.id, numbers.open[place.stack]);
      return drawing("rect", {
        ...(viewOf(name) && { "data-box": name }),
        x: place.x[0],
        y: box.y[0],
        width: place.x[1] - place.x[0],
        height: box.y[1] - box.y[0],
        rx: 10,
        fill: `var(--${isOpen && box.kind === "att" ? "att-on" : box.kind})`,
        stroke: isOpen ? "var(--ink)" : `var(--${box.kind}-l)`,
        "stroke-width": isOpen ? 8 : 4,
      });
    }),
  );
  const line = (d: string, stroke: string) =>
    drawing("path", { d, stroke, fill: "none", "stroke-width": 11, "pointer-events": "none" });
  const [x, source] = [decoder.columns.at[numbers.row], encoder.columns.at[numbers.source]];
  const knot = middle(boxOf(decoder, "cross_attention").y);
  const top = topOf(encoder);
  const svg = drawing(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width: MAP.width,
      height: (MAP.width * height) / width,
      role: "img",
      "aria-label": app.t("stage.map"),
    },
    boxes,
    line(
      `${rounded(16, [source, encoder.words[1]], [source, top - 56], [encoder.x[1] + 8, top - 56])}C${encoder.x[1] + 46} ${top - 56} ${decoder.x[0] - 26} ${knot} ${decoder.x[0]} ${knot}H${x}`,
      "var(--src)",
    ),
    line(`M${x} ${decoder.words[1]}V${knot}M${x} ${knot}V${geometry.written[0]}`, "var(--tgt)"),
    drawing("circle", { cx: x, cy: knot, r: 20, fill: "var(--src)", "pointer-events": "none" }),
  );
  svg.addEventListener("click", (event) => {
    const box = (event.target as SVGElement).dataset.box;
    if (!box) return app.show({ zoom: null });
    const { stack, id } = placeOfBox(box);
    app.show({ zoom: { box, key: null }, box: `${stack}.${id}`, panel: "calculation" });
  });
  return svg;
}
