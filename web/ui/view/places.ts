// The places of what stands around the figure: the field, the examples, the chapters' strip, the notice and the sentence.
import { LOW, splitOf } from "../figure/geometry.ts";
import { memoryTop } from "../figure/ribbons.ts";

import type { FigureView } from "../figure/figure_view.ts";
import type { Geometry } from "../figure/geometry.ts";
import type { Tools } from "./tools.ts";

/** The elements around the figure, and the plane on which they stand. */
interface Around {
  plane: HTMLElement;
  tools: Tools;
  strip: HTMLElement;
  said: HTMLElement;
}

/** Positions the elements that are not part of the drawing. On a narrow figure, CSS positions them. */
export function placeAround(
  { isAlone, isOutline, act }: FigureView,
  geometry: Geometry,
  { plane, tools, strip, said }: Around,
) {
  const { encoder, decoder, narrow, width, height } = geometry;
  const { field, chips, notice } = tools;
  const style = (one: HTMLElement, css: string) => (one.style.cssText = narrow ? "" : css);
  const [x0, x1] = encoder.x;
  const low = Math.max(...encoder.columns.out, ...(isAlone ? [] : decoder.columns.out));
  const line = `left:${x0}px;top:${encoder.words[0]}px;width:${x1 - x0}px;height:${32 + low}px`;
  style(field, `${line};--names:${encoder.room[0] - x0}px`);
  const from = splitOf(width);
  style(chips, `left:${x0}px;top:${encoder.words[1] + 12}px;width:${from - 64 - x0}px`);
  style(strip, act ? "" : `left:${from}px;top:${encoder.words[1] + low + 10}px;width:${width - 38 - from}px`);
  style(notice, act ? "left:136px;top:20px" : `left:${x0}px;width:${width - 38 - x0}px;top:${height - 26}px`);
  if (isOutline) style(said, "top:300px;width:370px");
  else style(said, `width:${isAlone ? x1 - x0 : from - 64 - x0 + (act ? 24 : -20)}px`);
  const isLow = isAlone ? height < LOW : memoryTop(geometry, encoder.columns.at.length) < 330;
  plane.classList.toggle("gfs-compact", !narrow && isLow);
  plane.classList.toggle("gfs-alone", !narrow && isAlone);
}
