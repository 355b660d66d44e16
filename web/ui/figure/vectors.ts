// Vectors inside the boxes: a tile for each word, and the waves of the positions.
import { widthOf } from "../../engine/tensor.ts";
import { drawing } from "../app/drawing.ts";
import { middle } from "./geometry.ts";
import { HUES, SIDES, light, path, reached, rectangle } from "./pen.ts";
import { cellsOf, strip } from "./tiles.ts";

import type { Tensor } from "../../engine/types.ts";
import type { Colours } from "../app/types.ts";
import type { Box, StackPlace } from "./geometry.ts";
import type { Pen } from "./pen.ts";
import type { Cells } from "./tiles.ts";

/** Draws the vectors in their boxes: grey tiles, and coloured tiles for the highlighted words. */
export function drawTiles(pen: Pen) {
  const { geometry, numbers, colours } = pen;
  return [geometry.encoder, geometry.decoder].flatMap((place) =>
    place.boxes.flatMap((box) => {
      const side = SIDES[place.stack];
      const vector = numbers.vectors.get(
        box.id === "embedding" ? `${side}.embedding` : `${place.stack}.${box.id}`,
      );
      if (!vector || box.id === "positions" || box.kind === "att") return [];
      return tilesOf(pen, place, box, vector, colours);
    }),
  );
}

function tilesOf(pen: Pen, place: StackPlace, box: Box, vector: Tensor, colours: Colours) {
  const { numbers } = pen;
  const count = Math.min(place.columns.at.length, reached(place, numbers), vector.shape[0]);
  const all = [...Array(count).keys()];
  const lit = all.filter((column) => light(place.stack, numbers, column) > 0.05);
  const height = box.y[1] - box.y[0] - 4;
  const positive = box.id === "feed_forward";
  const usual = height < 100 ? 2 : 4;
  const most = height < 36 ? 2 : 2 * usual;
  const cells = (column: number, largest: number) =>
    cellsOf(widthOf(vector), place.columns.width[column], height, largest);
  const picture = (places: number[], colour: string, opacity: number, largest = usual) => {
    const made = strip(vector, place.columns, height, colour, places, positive, largest);
    if (!made) return [];
    const y = Math.round(middle(box.y) - made.height / 2);
    return [
      ...places.map((column) => ground(pen, place, box, column, cells(column, largest), made.height)),
      drawing("image", {
        href: made.href,
        x: made.x,
        y,
        width: made.width,
        height: made.height,
        opacity,
        style: "image-rendering:pixelated",
      }),
    ];
  };
  const hue = HUES[place.stack];
  const shares = numbers.shares.get(`${place.stack}.${box.id}`);
  return [
    ...picture(
      all.filter((column) => !lit.includes(column)),
      colours("--ink"),
      0.22,
    ),
    ...lit.flatMap((column) =>
      picture([column], colours(hue), Math.min(1, 0.25 + 0.9 * light(place.stack, numbers, column)), most),
    ),
    shares &&
      !pen.geometry.narrow &&
      lit
        .filter((column) => light(place.stack, numbers, column) > 0.25)
        .map((column) => shareBar(place, box, column, shares[column], cells(column, most))),
  ];
}

/** Returns the background of a tile, which hides the word's vertical line behind it; a highlighted tile has a frame. */
function ground(
  { numbers }: Pen,
  { stack, columns }: StackPlace,
  box: Box,
  column: number,
  { across, size }: Cells,
  height: number,
) {
  const lit = light(stack, numbers, column) > 0.25;
  const width = across * size + (lit ? 4 : 2);
  const tall = height + (lit ? 4 : 2);
  return drawing("rect", {
    x: Math.round(columns.at[column] - width / 2),
    y: Math.round(middle(box.y) - tall / 2),
    width,
    height: tall,
    rx: 2,
    fill: lit ? "var(--card)" : `var(--${box.kind})`,
    ...(lit && { stroke: `var(${HUES[stack]})` }),
  });
}

/**
 * Returns a bar beside a tile that shows the shares of the sum: the solid part is what the sub-layer added, and the
 * rest came along the residual connection.
 */
function shareBar(
  { stack, columns }: StackPlace,
  { id, y: [top, bottom] }: Box,
  column: number,
  share: number,
  { across, size }: Cells,
) {
  const [x, height] = [columns.at[column] + (across * size) / 2 + 4, bottom - top];
  const hue = `var(${HUES[stack]})`;
  const isRead = id === "cross_attention.add";
  return [
    drawing("rect", { x, y: top, width: 4, height, fill: hue, opacity: isRead ? 1 : 0.3 }),
    drawing("rect", { x, y: top, width: 4, height: height * share, fill: isRead ? "var(--src)" : hue }),
  ];
}

/** Draws the waves of the positions with a dot for each word. */
export function drawWaves(pen: Pen) {
  const { geometry, numbers, waves } = pen;
  return [geometry.encoder, geometry.decoder].flatMap((place) => {
    const box = place.boxes.find(({ id }) => id === "positions");
    const vector = numbers.vectors.get(`${SIDES[place.stack]}.positions`);
    if (!box || !vector) return [];
    if (!waves)
      return [
        rectangle([place.x[0] + 1, place.x[1] - 1], [box.y[0] + 1, box.y[1] - 1], {
          fill: "url(#gfs-hatch)",
          opacity: 0.7,
        }),
      ];
    const { at } = place.columns;
    const count = Math.min(at.length, reached(place, numbers), vector.shape[0]);
    const shown = waves[place.stack].map(({ numbers: all, steps }) => ({
      steps,
      heights: [...all.slice(0, (count - 1) * steps + 1)],
    }));
    const largest = Math.max(...shown.flatMap(({ heights }) => heights.map(Math.abs)), 1e-6);
    const tall = Math.max(8, (box.y[1] - box.y[0]) / 2 - 8);
    const height = (value: number) => middle(box.y) - (tall * value) / largest;
    const across = (place: number) => {
      const column = Math.floor(place);
      return at[column] + (place - column) * ((at[column + 1] ?? 0) - at[column]);
    };
    return shown.flatMap(({ heights, steps }) => [
      path(
        `M${heights.map((value, step) => `${across(step / steps).toFixed(1)} ${height(value).toFixed(1)}`).join("L")}`,
        "var(--ink3)",
        1,
        { opacity: 0.5 },
      ),
      ...at.slice(0, count).map((cx, column) => {
        const lit = light(place.stack, numbers, column) > 0.05;
        return drawing("circle", {
          cx,
          cy: height(heights[column * steps]),
          r: lit ? 3 : 1.6,
          fill: lit ? `var(${HUES[place.stack]})` : "var(--ink3)",
          opacity: lit ? 1 : 0.6,
        });
      }),
    ]);
  });
}
