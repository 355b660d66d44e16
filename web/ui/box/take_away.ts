// Lets the reader take a picture away: as an SVG or PNG file with a caption and the page's state, as a link, or as
// HTML that embeds the page in another page.
import { activeChanges } from "./changes/active.ts";
import { coloursAt } from "../app/colours.ts";
import { brushOf, button, closeMenu, copyText, element, menu, refill } from "../app/dom.ts";
import { drawing, withAttributes } from "../app/drawing.ts";
import { svgBrush, svgFile } from "./numbers/brush.ts";
import { measured } from "./numbers/grid.ts";
import { paintCells, paintLabels, sheetOf } from "./numbers/picture.ts";

import type { App } from "../app/app.ts";
import type { Picture } from "./numbers/picture.ts";
import type { Colours } from "../app/types.ts";

const SHARPNESS = 2; // PNG pixels for each px of the page
const FRAME_HEIGHT = 760;
// px: least width of a caption, width of a picture of numbers, height of a line of the caption
const [NARROWEST, ROOM, LINE] = [420, 900, 18];
const [LETTER, WIDE_LETTER] = [6.5, 12.5]; // px: average widths, in a font of 12 px
const WIDE_FROM = 0x2e80; // Chinese, Japanese and Korean letters begin at about this code point
/** The colours of a picture of numbers. */
const INKS = ["--paper", "--card", "--ink", "--ink2", "--ink3", "--hair", "--src", "--tgt", "--blocked"];
/** Tells the reader what an action has done. */
type Say = (text: string) => void;
const SAID_FOR = 5000; // milliseconds
const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "opacity",
  "paint-order",
  "stroke-linejoin",
  "stroke-linecap",
  "stop-color",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
];

/**
 * Returns a menu for saving a picture; `svg` returns the picture as the text of an SVG file. `name`: the file name
 * without its suffix.
 */
export function saveMenu(app: App, name: string, svg: () => string) {
  const { element: details, summary, choices } = menu("gf-save");
  summary.textContent = app.t("save.title");
  const say = (text: string) => (closeMenu(details), sayOn(summary, app.t("save.title"), text));
  details.addEventListener(
    "toggle",
    () => details.open && refill(choices, savingButtons(app, name, svg, say)),
  );
  return details;
}

/**
 * Returns the items of a picture's menu. `say` reports what an item has done; without `say`, the item's own button
 * reports this.
 */
export function savingButtons(app: App, name: string, svg: () => string, say?: Say) {
  const file = name.replace(/[^\w.-]+/g, "-");
  const saving = (kind: string, title: string, made: () => Blob | Promise<Blob>) => {
    const save = async () => {
      const whole = `${file}.${kind.toLowerCase()}`;
      download(await made(), whole);
      sayOn(one, name, app.t("save.saved", whole), say);
    };
    const name = app.t("save.as", kind);
    const one = button(name, () => app.attempt(save), { title });
    return one;
  };
  return [
    saving("SVG", app.t("save.svg"), () => new Blob([svg()], { type: "image/svg+xml" })),
    saving("PNG", app.t("save.png"), () => pngOf(svg())),
    linkButton(app, say),
    app.address() && copyButton(app, app.t("save.frame"), () => frameOf(app), say),
  ];
}

/** Returns a button that copies the address of the view's state, if the view has an address. */
export function linkButton(app: App, say?: Say) {
  const copied = location.protocol === "file:" ? "changes.link.file" : "changes.link.copied";
  return app.address() && copyButton(app, app.t("changes.link"), () => app.address() ?? "", say, copied);
}

/** Returns a button that copies a text, or shows the text if the browser refuses to copy. */
export function copyButton(
  app: App,
  title: string,
  text: () => string,
  say?: Say,
  copied = "changes.link.copied",
) {
  const field = element("input", { type: "text", readOnly: true, "aria-label": title });
  const shown = element("p", { class: "gf-copied", hidden: true }, app.t("save.copy"), field);
  const copy = button(title, async () => {
    field.value = text();
    if (await copyText(field, shown)) sayOn(copy, title, app.t(copied), say);
  });
  return [copy, shown];
}

/**
 * Reports through `say`, or else on the button itself, that an action is done. After a while, the button shows its
 * title again.
 */
function sayOn(button: HTMLElement, title: string, text: string, say?: Say) {
  if (say) return say(text);
  button.ariaLive = "polite";
  button.textContent = text;
  setTimeout(() => (button.textContent = title), SAID_FOR);
}

/**
 * Returns a line of HTML that embeds this page in its present state. A page that was opened as a local file is referred
 * to by its bare file name, so both pages must be in the same folder.
 */
function frameOf(app: App) {
  const link = app.address() ?? "";
  const address = link.startsWith("file:") ? link.slice(link.split("#")[0].lastIndexOf("/") + 1) : link;
  const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  return `<iframe src="${escaped(address)}" title="${escaped(`glassformer: ${app.state.sentence}`)}" width="100%" height="${FRAME_HEIGHT}" loading="lazy"></iframe>`;
}

/** Returns a picture of numbers as an SVG file, with its caption. `place`: an element of the view. */
export function pictureSvg(app: App, picture: Picture, place: Element) {
  const sheet = sheetOf(picture, ROOM, measured);
  const colours = lightColours(place);
  const { brush, parts } = svgBrush();
  paintCells(brush, picture, sheet, colours);
  paintLabels(brush, picture, sheet, colours, measured, null);
  const { width, height } = sheet.whole;
  const wide = Math.ceil(Math.max(width, NARROWEST)) + 12;
  const [name, sentence, ...others] = captionOf(app, picture.label);
  // the sentence comes first because the name of a tensor makes a poor title
  const said = [sentence, name, ...others].map((line) => wrapped(line, wide - 12));
  said.flat().forEach((line, at) => {
    const bold = at < said[0].length;
    brush.words(6, height + LINE * (at + 1), line, colours(bold ? "--ink" : "--ink3"), { bold });
  });
  const whole = { width: wide, height: Math.ceil(height + LINE * (said.flat().length + 1)) };
  const state = app.address()?.replace(/^[^#]*/, "") ?? "";
  return svgFile(whole, parts, sentence, state, colours("--paper"));
}

/** Returns the colours of the light theme, for pictures on paper. `place`: an element of the view. */
function lightColours(place: Element): Colours {
  const inner = element("div", "gf-stage-root");
  const probe = element("div", { class: "glassformer", hidden: true }, inner);
  place.closest("[data-theme]")?.parentElement?.append(probe); // outside the view, whose theme may be dark
  const colours = coloursAt(inner);
  const inks = new Map(INKS.map((name) => [name, colours(name)]));
  probe.remove();
  return (name) => inks.get(name) ?? "";
}

/** Returns a text broken into lines of at most this width; a longer word stays whole. */
function wrapped(words: string, width: number) {
  const lines = [""];
  for (const word of words.split(/(?<= )|(?=[\u2e80-\u9fff])/)) {
    const line = lines[lines.length - 1];
    if (line && widthOf(line + word.trimEnd()) > width) lines.push(word);
    else lines[lines.length - 1] += word;
  }
  return lines.map((line) => line.trimEnd());
}

/** Returns the approximate width of a text. */
function widthOf(words: string) {
  const width = (one: string) => ((one.codePointAt(0) ?? 0) >= WIDE_FROM ? WIDE_LETTER : LETTER);
  return [...words].reduce((sum, one) => sum + width(one), 0);
}

/** Returns the lines of a caption: the picture, the sentence, the changes, the model. */
function captionOf(app: App, label: string) {
  const { text } = app.result.current;
  const changes = activeChanges(app).map((change) => change.text);
  return [
    label,
    `${app.changes.source ?? app.state.sentence} → ${text}`,
    ...(changes.length > 0 ? [app.t("save.changes", changes.join("; "))] : []),
    `glassformer · ${app.payload.name}`,
  ];
}

/**
 * Returns an element of the page as an SVG file, with its boxes, texts, drawings and canvases at their positions.
 * `parts`: the children to include.
 */
export function elementSvg(
  app: App,
  root: HTMLElement,
  label: string,
  parts: Iterable<Element> = root.children,
) {
  const { left, top } = root.getBoundingClientRect();
  const svg = drawing("svg");
  const whole = { width: 0, height: 0 };
  for (const child of parts) place(child, svg, { left, top }, whole);
  const style = getComputedStyle(root);
  const width = Math.max(whole.width, NARROWEST) + 8;
  const caption = captionOf(app, label).map((line) => wrapped(line, width - 8));
  const bold = caption[0].length;
  const size = { width: Math.ceil(width), height: Math.ceil(whole.height) + 12 + 18 * caption.flat().length };
  caption.flat().forEach((line, at) => {
    const looks = { x: 4, y: whole.height + 18 * (at + 1), "font-size": 12, fill: style.color };
    svg.append(
      drawing(
        "text",
        { ...looks, "font-family": style.fontFamily, "font-weight": at < bold ? 700 : 400 },
        line,
      ),
    );
  });
  const paper = style.getPropertyValue("--paper").trim();
  svg.prepend(drawing("title", {}, label), drawing("rect", { ...size, fill: paper }));
  withAttributes(svg, { ...size, viewBox: `0 0 ${size.width} ${size.height}` });
  return new XMLSerializer().serializeToString(svg);
}

/**
 * Adds a visible element and its content to a drawing. `whole`: the size of the drawing, which is enlarged to include
 * the element.
 */
function place(
  one: Element,
  svg: SVGElement,
  origin: { left: number; top: number },
  whole: { width: number; height: number },
) {
  const style = getComputedStyle(one);
  if (style.display === "none" || style.visibility === "hidden") return;
  const box = one.getBoundingClientRect();
  const [x, y] = [box.left - origin.left, box.top - origin.top];
  const { width, height } = box;
  whole.width = Math.max(whole.width, x + width);
  whole.height = Math.max(whole.height, y + height);
  if (one instanceof SVGSVGElement) return svg.append(inlined(one, { x, y, width, height }));
  if (one instanceof HTMLCanvasElement) {
    const looks = { href: one.toDataURL(), style: `image-rendering: ${style.imageRendering}` };
    return svg.append(drawing("image", { x, y, width, height, preserveAspectRatio: "none", ...looks }));
  }
  svg.append(...frameOfBox(style, { x, y, width, height }));
  const isCut = style.overflowX === "hidden"; // an element that scrolls is drawn in full
  const inside = isCut ? drawing("svg", { x, y, width, height }) : svg;
  if (isCut) svg.append(inside);
  const [from, extent] = isCut ? [box, { width: 0, height: 0 }] : [origin, whole];
  for (const child of one.childNodes) {
    if (child instanceof Element) place(child, inside, from, extent);
    else if (child instanceof Text && child.data.trim()) inside.append(...wordsOf(child, style, from));
  }
}

/**
 * The sides of a box by name; each runs from one point to another, given as fractions of the box's width and height.
 */
const SIDES = Object.entries({
  top: [0, 0, 1, 0],
  right: [1, 0, 1, 1],
  bottom: [0, 1, 1, 1],
  left: [0, 0, 0, 1],
});

/** Returns the fill and the borders of a box. */
function frameOfBox(
  style: CSSStyleDeclaration,
  box: { x: number; y: number; width: number; height: number },
) {
  const fill = style.backgroundColor;
  const isFilled = !/^(transparent|rgba\(.*, 0\))$/.test(fill);
  // a scrolling element's own frame is left out, because its content is drawn in full
  const isScrolled = /auto|scroll/.test(style.overflowX);
  const borders = SIDES.map(([side, [x1, y1, x2, y2]]) => {
    const of = (part: string) => style.getPropertyValue(`border-${side}-${part}`);
    const width = isScrolled || of("style") === "none" ? 0 : parseFloat(of("width"));
    const gaps = { dotted: `${width} ${width}`, dashed: "3 3" }[of("style")] ?? "none";
    const looks = { stroke: of("color"), "stroke-width": width, "stroke-dasharray": gaps };
    const [left, top] = [x1, y1].map(
      (share, axis) => box[axis ? "y" : "x"] + share * box[axis ? "height" : "width"],
    );
    const line = { x1: left, y1: top, x2: left + (x2 - x1) * box.width, y2: top + (y2 - y1) * box.height };
    return { looks, line };
  });
  const widths = borders.map(({ looks }) => looks["stroke-width"]);
  const isEven = new Set(widths).size === 1;
  if (isEven && (widths[0] > 0 || isFilled)) {
    const { looks } = borders[0];
    const rx = parseFloat(style.borderRadius) || 0;
    return [drawing("rect", { ...box, rx, fill: isFilled ? fill : "none", ...(widths[0] > 0 ? looks : {}) })];
  }
  return [
    ...(isFilled ? [drawing("rect", { ...box, fill })] : []),
    ...borders.flatMap(({ looks, line }, at) =>
      widths[at] > 0 ? [drawing("line", { ...line, ...looks })] : [],
    ),
  ];
}

/** Returns the lines of a text, each with its position. */
function wordsOf(node: Text, style: CSSStyleDeclaration, origin: { left: number; top: number }) {
  const range = document.createRange();
  const lines: { x: number; y: number; text: string }[] = [];
  let lowest = -Infinity;
  for (let at = 0; at < node.length; at++) {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    const box = range.getBoundingClientRect();
    const letter = node.data[at];
    if (box.width === 0 && letter.trim() === "") continue;
    const middle = box.top + box.height / 2;
    if (middle > lowest + box.height / 2)
      lines.push({ x: box.left - origin.left, y: middle - origin.top, text: "" });
    lowest = Math.max(lowest, middle);
    lines[lines.length - 1].text += letter;
  }
  const holder = node.parentElement;
  const scale = holder?.offsetWidth ? holder.getBoundingClientRect().width / holder.offsetWidth : 1;
  const looks = {
    "dominant-baseline": "central",
    "xml:space": "preserve", // a text may begin with a space that separates it from a word in a different colour
    fill: style.color,
    "font-family": style.fontFamily,
    "font-size": scale * parseFloat(style.fontSize),
    "font-weight": style.fontWeight,
  };
  return lines.map(({ x, y, text }) => drawing("text", { x, y, ...looks }, text.trimEnd()));
}

/** Returns a copy of a drawing that does not need the page's styles. */
function inlined(drawn: SVGSVGElement, box: Record<string, number>) {
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const originals = [drawn, ...drawn.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((one, at) => {
    const style = getComputedStyle(originals[at]);
    for (const name of STYLES) one.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex"]) one.removeAttribute(name);
    if (style.display === "none" || style.visibility === "hidden") one.setAttribute("display", "none");
  });
  return withAttributes(copy, box);
}

/** Returns an SVG file as a PNG file. */
async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = element("canvas", { width: SHARPNESS * image.width, height: SHARPNESS * image.height });
  brushOf(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large for a PNG")))),
  );
}

function download(blob: Blob, name: string) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
