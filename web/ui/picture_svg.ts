// A matrix as an SVG picture that stands alone, for a paper, a slide or a colleague.
import { numberText, probabilityText } from "../engine/number_text.ts";
import type { Picture, Scale } from "./types.ts";

/** The colours of a picture by their names in styles.css: both scales' stops, text, remarks, paper, lines, and masks. */
export const INK_NAMES = [
  "probability",
  "signed",
  "ink",
  "soft",
  "paper",
  "line",
  "blocked",
  "hatching",
] as const;
export type Inks = Record<(typeof INK_NAMES)[number], string>;

const [LETTER, WIDE_LETTER] = [6.5, 12.5]; // pixels, in a font of 12 pixels
const WIDE_FROM = 0x2e80; // Chinese, Japanese and Korean letters are wider
const [CELL, NUMBERED, MOST_NUMBERED, WIDEST] = [34, 30, 24, 1200];
const CAPTION = 18; // pixels a line
/** The smallest width of a picture: that of its caption, in pixels. */
export const NARROWEST = 420;

/**
 * Returns a picture as a whole SVG file. The first line of the caption is bold; `about` is its description, such as
 * the link to the page's state.
 */
export function matrixSvg(
  picture: Omit<Picture, "label" | "describe" | "chosen">,
  caption: string[],
  about: string,
  inks: Inks,
) {
  const { rows, columns, rowLabels, columnLabels } = picture;
  const numbered = columns <= NUMBERED && rows <= MOST_NUMBERED * 2;
  const side = numbered ? CELL : Math.max(4, Math.min(18, Math.floor(WIDEST / columns)));
  const left = Math.ceil(Math.max(0, ...rowLabels.map(widthOf))) + 12;
  const top = Math.ceil(Math.max(0, ...columnLabels.map(widthOf))) + 12;
  const [across, down] = [side * columns, side * rows];
  const width = Math.max(left + across, NARROWEST) + 12;
  const said = caption.map((line) => wrapped(line, width - 12));
  const height = top + down + said.flat().length * CAPTION + 20;
  const cells = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++)
      cells.push(
        ...cell(picture, row, column, { x: left + side * column, y: top + side * row, side, numbered, inks }),
      );
  }
  const words = [
    ...rowLabels.map((label, row) =>
      text(left - 6, top + side * (row + 0.5) + 4, label, 'text-anchor="end"', inks.ink),
    ),
    ...columnLabels.map((label, column) => {
      const [x, y] = [left + side * (column + 0.5) + 4, top - 6];
      return text(x, y, label, `transform="rotate(-90 ${x} ${y})"`, inks.ink);
    }),
  ];
  const bold = said[0]?.length ?? 0;
  const lines = said
    .flat()
    .map((line, at) =>
      text(
        6,
        top + down + CAPTION * (at + 1) + 4,
        line,
        at < bold ? 'font-weight="bold"' : "",
        at < bold ? inks.ink : inks.soft,
      ),
    );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`,
    `<title>${escaped(caption[0] ?? "")}</title>`,
    `<desc>${escaped(about)}</desc>`,
    `<rect width="${width}" height="${height}" fill="${inks.paper}"/>`,
    ...cells,
    `<rect x="${left}" y="${top}" width="${across}" height="${down}" fill="none" stroke="${inks.line}"/>`,
    ...words,
    ...lines,
    "</svg>\n",
  ].join("\n");
}

/** Returns the elements of one cell. */
function cell(
  picture: Omit<Picture, "label" | "describe" | "chosen">,
  row: number,
  column: number,
  { x, y, side, numbered, inks }: { x: number; y: number; side: number; numbered: boolean; inks: Inks },
) {
  const square = (fill: string) =>
    `<rect x="${x}" y="${y}" width="${side}" height="${side}" fill="${fill}"/>`;
  const number = (words: string, fill: string) =>
    numbered && words
      ? [text(x + side / 2, y + side / 2 + 4, words, 'text-anchor="middle" font-size="10"', fill)]
      : [];
  if (picture.blocked(row, column)) {
    const across = `<path d="M${x} ${y + side}L${x + side} ${y}" stroke="${inks.hatching}"/>`;
    return [square(inks.blocked), across, ...number(blockedText(picture.scale), inks.soft)];
  }
  if (picture.missing?.(row, column)) return [];
  const value = picture.values[picture.offset + row * picture.columns + column];
  const largest = typeof picture.largest === "number" ? picture.largest : picture.largest[row];
  const parts = colourOf(picture.scale, value, largest, inks);
  const outline = picture.differs?.(row, column) ? [outlined(x, y, side, inks)] : [];
  return [square(hex(parts)), ...outline, ...number(cellText(picture, row, column), inkOver(parts))];
}

/** Returns the outline of a cell that differs. */
function outlined(x: number, y: number, side: number, inks: Inks) {
  const inner = (colour: string, edge: number) =>
    `<rect x="${x + edge}" y="${y + edge}" width="${side - 2 * edge}" height="${side - 2 * edge}" fill="none" stroke="${colour}"/>`;
  return inner(inks.ink, 0.5) + inner(inks.paper, 1.5);
}

/** Returns what stands in a blocked cell: a score of −∞, whose weight is 0. */
export function blockedText(scale: Scale) {
  return scale === "probability" ? "0" : "–∞";
}

/** Returns the number of a cell as it is printed into the cell; none for a weight near zero. */
export function cellText(
  {
    values,
    numbers,
    offset,
    columns,
    scale,
  }: Pick<Picture, "values" | "numbers" | "offset" | "columns" | "scale">,
  row: number,
  column: number,
) {
  const value = (numbers ?? values)[offset + row * columns + column];
  if (scale !== "signed" && !numbers) return probabilityText(value);
  return numberText(value, Math.abs(value) < 100 ? 2 : 0, scale === "signed");
}

/** Returns red, green and blue of a value's colour. */
function colourOf(scale: Scale, value: number, largest: number, inks: Inks) {
  const share = scale === "signed" ? (value / (largest || 1) + 1) / 2 : value / (largest || 1);
  const stops = inks[scale]
    .split(/, */)
    .map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));
  const place = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((from, part) => Math.round(from + (stops[low + 1][part] - from) * (place - low)));
}

function hex(parts: number[]) {
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Returns black or white, whichever is easier to read on a colour, judged by its brightness. */
function inkOver([red, green, blue]: number[]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "black" : "white";
}

function text(x: number, y: number, words: string, looks: string, fill: string) {
  return `<text x="${x}" y="${y}"${looks && ` ${looks}`} fill="${fill}">${escaped(words)}</text>`;
}

/** Returns a text in lines of at most this width, where its words allow it. */
export function wrapped(words: string, width: number) {
  const lines = [""];
  for (const word of words.split(/(?<= )|(?=[\u2e80-\u9fff])/)) {
    const line = lines[lines.length - 1];
    if (line && widthOf(line + word.trimEnd()) > width) lines.push(word);
    else lines[lines.length - 1] += word;
  }
  return lines.map((line) => line.trimEnd());
}

/** Returns the width of a text, about. */
export function widthOf(words: string) {
  const width = (one: string) => ((one.codePointAt(0) ?? 0) >= WIDE_FROM ? WIDE_LETTER : LETTER);
  return [...words].reduce((sum, one) => sum + width(one), 0);
}

function escaped(words: string) {
  // eslint-disable-next-line no-control-regex -- XML has no control characters
  const plain = words.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, "\ufffd");
  return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
