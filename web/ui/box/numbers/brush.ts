// Brushes draw pictures of numbers, either on a canvas of the page or into the text of an SVG file.
import type { Colours } from "../../app/types.ts";

export interface Words {
  size?: number;
  align?: "left" | "center" | "right";
  bold?: boolean;
  /** Whether the text runs upwards. */
  isTurned?: boolean;
}

/** Draws shapes and text. Lengths are in px, colours in CSS notation. */
export interface Brush {
  box(x: number, y: number, width: number, height: number, fill: string): void;
  frame(x: number, y: number, width: number, height: number, stroke: string, line?: number): void;
  line(x1: number, y1: number, x2: number, y2: number, stroke: string): void;
  words(x: number, y: number, words: string, fill: string, how?: Words): void;
}

export const FONT =
  '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif';
/** The size of labels and numbers, in px. */
export const LABEL = 12;

/** Returns a brush for a canvas. */
export function canvasBrush(brush: CanvasRenderingContext2D): Brush {
  return {
    box(x, y, width, height, fill) {
      brush.fillStyle = fill;
      brush.fillRect(x, y, width, height);
    },
    frame(x, y, width, height, stroke, line = 1) {
      brush.strokeStyle = stroke;
      brush.lineWidth = line;
      brush.strokeRect(x, y, width, height);
    },
    line(x1, y1, x2, y2, stroke) {
      brush.strokeStyle = stroke;
      brush.lineWidth = 1;
      brush.beginPath();
      brush.moveTo(x1, y1);
      brush.lineTo(x2, y2);
      brush.stroke();
    },
    words(x, y, words, fill, { size = LABEL, align = "left", bold = false, isTurned = false } = {}) {
      brush.save();
      brush.translate(x, y);
      if (isTurned) brush.rotate(-Math.PI / 2);
      brush.font = `${bold ? 650 : 400} ${size}px ${FONT}`;
      brush.fillStyle = fill;
      brush.textAlign = align;
      brush.textBaseline = "middle";
      brush.fillText(words, 0, 0);
      brush.restore();
    },
  };
}

/** Returns a brush that collects the elements of an SVG file. */
export function svgBrush() {
  const parts: string[] = [];
  const anchors = { left: "start", center: "middle", right: "end" };
  const brush: Brush = {
    box: (x, y, width, height, fill) =>
      void parts.push(`<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${fill}"/>`),
    frame: (x, y, width, height, stroke, line = 1) =>
      void parts.push(
        `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="none" stroke="${stroke}" stroke-width="${line}"/>`,
      ),
    line: (x1, y1, x2, y2, stroke) =>
      void parts.push(`<path d="M${x1} ${y1}L${x2} ${y2}" stroke="${stroke}"/>`),
    words: (x, y, words, fill, { size = LABEL, align = "left", bold = false, isTurned = false } = {}) =>
      void parts.push(
        `<text transform="translate(${x} ${y + (isTurned ? 0 : 0.35 * size)})${isTurned ? ` rotate(-90) translate(0 ${0.35 * size})` : ""}" font-size="${size}" text-anchor="${anchors[align]}"${bold ? ' font-weight="bold"' : ""} fill="${fill}">${escaped(words)}</text>`,
      ),
  };
  return { brush, parts };
}

/**
 * Returns an SVG file made of these parts. The first line of the caption is the file's title, `about` is its
 * description.
 */
export function svgFile(
  { width, height }: { width: number; height: number },
  parts: string[],
  caption: string,
  about: string,
  paper: string,
) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT.replaceAll('"', "'")}" role="img">`,
    `<title>${escaped(caption)}</title>`,
    `<desc>${escaped(about)}</desc>`,
    `<rect width="${width}" height="${height}" fill="${paper}"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

function escaped(words: string) {
  // eslint-disable-next-line no-control-regex -- XML has no control characters
  const plain = words.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, "\ufffd");
  return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * Returns a mix of two colours of the style sheet, as "#rrggbb". `share`: the share of the second colour, in [0, 1].
 */
export function mixed(colours: Colours, from: string, to: string, share: number) {
  const [one, other] = [from, to].map((name) => partsOf(colours(name)));
  return `#${one.map((part, at) => byte(part + (other[at] - part) * share)).join("")}`;
}

const byte = (value: number) => Math.round(value).toString(16).padStart(2, "0");

/** Returns the red, green and blue components of a hexadecimal colour. */
function partsOf(colour: string) {
  const digits = colour.length < 7 ? colour.replace(/\w/g, "$&$&") : colour;
  return [1, 3, 5].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

/** Returns black or white, whichever is easier to read on this colour. */
export function inkOn(colour: string) {
  const [red, green, blue] = partsOf(colour).map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "black" : "white";
}
