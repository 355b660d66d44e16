// Takes a picture away: as an SVG or PNG file with its caption and the page's state, as a link, or as a frame for
// another page.
import { MARKED_FROM } from "../engine/alignment.js";
import { activeChanges } from "./changes/active.js";
import { coloursAt } from "./colours.js";
import { brushOf, button, element, menu, refill } from "./dom.js";
import { linkOf } from "./link.js";
import { INK_NAMES, matrixSvg, widthOf } from "./picture_svg.js";

/**
 * @import { App } from "./app.js"
 * @import { Picture } from "./types.js"
 */

const SVG = "http://www.w3.org/2000/svg";
const SHARPNESS = 2; // pixels of a PNG per pixel of the page
const FRAME_HEIGHT = 760;
const SAID_FOR = 5000; // milliseconds
const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
];

/**
 * Returns the menu of a picture; `svg` returns the picture as the text of an SVG file.
 * @param {App} app
 * @param {string} name - The name of the file, without its ending.
 * @param {() => string} svg
 */
export function saveMenu(app, name, svg) {
  const file = name.replace(/[^\w.-]+/g, "-");
  const { element: details, summary, choices } = menu("gf-save");
  summary.textContent = app.t("save.title");
  const saving = (
    /** @type {string} */ kind,
    /** @type {string} */ title,
    /** @type {() => Blob | Promise<Blob>} */ made,
  ) => {
    const save = async () => {
      const whole = `${file}.${kind.toLowerCase()}`;
      download(await made(), whole);
      sayOn(one, app.t("save.saved", whole), kind);
    };
    const one = button(kind, () => app.attempt(save), { title });
    return one;
  };
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    refill(
      choices,
      saving("SVG", app.t("save.svg"), () => new Blob([svg()], { type: "image/svg+xml" })),
      saving("PNG", app.t("save.png"), () => pngOf(svg())),
      linkOf(app) && copyButton(app, app.t("changes.link"), () => linkOf(app) ?? ""),
      linkOf(app) && copyButton(app, app.t("save.frame"), () => frameOf(app)),
    );
  });
  return details;
}

/**
 * Returns a button that copies a text, or shows the text where copying is not allowed.
 * @param {App} app
 * @param {string} title
 * @param {() => string} text
 */
export function copyButton(app, title, text) {
  const shown = element("input", { type: "text", readOnly: true, hidden: true, "aria-label": title });
  const copy = button(title, async () => {
    shown.value = text();
    try {
      await navigator.clipboard.writeText(shown.value);
      sayOn(copy, app.t("changes.link.copied"), title);
    } catch {
      shown.hidden = false;
      shown.select();
    }
  });
  return [copy, shown];
}

/**
 * Shows on a button that its action is done; after a while, its title again.
 * @param {HTMLElement} button
 * @param {string} text
 * @param {string} title
 */
function sayOn(button, text, title) {
  button.textContent = text;
  setTimeout(() => (button.textContent = title), SAID_FOR);
}

/**
 * Returns a line of HTML that shows this page in its present state. A page that was opened as a file is named without
 * its folder: both pages must be in one folder.
 * @param {App} app
 */
function frameOf(app) {
  const link = linkOf(app) ?? "";
  const address = link.startsWith("file:") ? link.slice(link.split("#")[0].lastIndexOf("/") + 1) : link;
  const escaped = (/** @type {string} */ text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  return `<iframe src="${escaped(address)}" title="${escaped(`glassformer: ${app.sentence}`)}" width="100%" height="${FRAME_HEIGHT}" loading="lazy"></iframe>`;
}

/**
 * Returns a grid as an SVG file, with its caption.
 * @param {App} app
 * @param {Picture} picture
 * @param {Element} place - An element of the view.
 */
export function gridSvg(app, picture, place) {
  const state = linkOf(app)?.replace(/^[^#]*/, "") ?? "";
  const caption = captionOf(app, picture.label);
  if (picture.differs) caption.splice(1, 0, marksText(app));
  return matrixSvg(picture, caption, state, lightInks(place));
}

/**
 * Returns the colours of the light theme, for pictures on paper.
 * @param {Element} place - An element of the view, where its styles apply.
 */
function lightInks(place) {
  const probe = element("div", { className: "glassformer", hidden: true });
  place.append(probe);
  const colours = coloursAt(probe);
  const inks = Object.fromEntries(INK_NAMES.map((name) => [name, colours(`--${name}`)]));
  probe.remove();
  return /** @type {import("./picture_svg.js").Inks} */ (inks);
}

/**
 * Returns what the outlines of a picture's cells mean.
 * @param {App} app
 */
function marksText(app) {
  const { label = "", text = "" } = app.compared ?? {};
  return app.t("map.differs", MARKED_FROM, `${app.t(label)} (${text})`);
}

/**
 * Returns what a picture shows, in lines: the picture, the sentence, the changes, the model.
 * @param {App} app
 * @param {string} label
 */
function captionOf(app, label) {
  const { text } = app.result.current;
  const changes = activeChanges(app).map((change) => change.text);
  return [
    label,
    `${app.changes.source ?? app.sentence} → ${text}`,
    ...(changes.length > 0 ? [app.t("save.changes", changes.join("; "))] : []),
    `glassformer · ${app.payload.name}`,
  ];
}

/**
 * Returns an element of the page as an SVG file: its boxes, texts, drawings and canvases where they stand.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {string} label
 */
export function elementSvg(app, root, label) {
  const { left, top } = root.getBoundingClientRect();
  const svg = document.createElementNS(SVG, "svg");
  const whole = { width: 0, height: 0 };
  for (const child of root.children) place(child, svg, { left, top }, whole);
  const caption = captionOf(app, label);
  const style = getComputedStyle(root);
  const width = Math.max(whole.width, ...caption.map(widthOf)) + 8;
  const size = { width: Math.ceil(width), height: Math.ceil(whole.height) + 12 + 18 * caption.length };
  caption.forEach((line, at) => {
    const looks = { x: 4, y: whole.height + 18 * (at + 1), "font-size": 12, fill: style.color };
    svg.append(
      made("text", { ...looks, "font-family": style.fontFamily, "font-weight": at ? 400 : 700 }, line),
    );
  });
  const paper = style.getPropertyValue("--paper").trim();
  svg.prepend(made("title", {}, label), made("rect", { ...size, fill: paper }));
  for (const [key, value] of Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}` }))
    svg.setAttribute(key, String(value));
  return new XMLSerializer().serializeToString(svg);
}

/**
 * Adds a visible element and its content to a drawing.
 * @param {Element} one
 * @param {SVGElement} svg
 * @param {{left: number, top: number}} origin
 * @param {{width: number, height: number}} whole - The extent so far; it grows.
 */
function place(one, svg, origin, whole) {
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
    return svg.append(made("image", { x, y, width, height, preserveAspectRatio: "none", ...looks }));
  }
  svg.append(...frameOfBox(style, { x, y, width, height }));
  const isCut = style.overflowX === "hidden"; // what scrolls is drawn whole
  const inside = isCut ? made("svg", { x, y, width, height }) : svg;
  if (isCut) svg.append(inside);
  const [from, extent] = isCut ? [box, { width: 0, height: 0 }] : [origin, whole];
  for (const child of one.childNodes) {
    if (child instanceof Element) place(child, inside, from, extent);
    else if (child instanceof Text && child.data.trim()) inside.append(...wordsOf(child, style, from));
  }
}

/** The sides of a box by their names, from and to which share of its width and height each runs. */
const SIDES = Object.entries({
  top: [0, 0, 1, 0],
  right: [1, 0, 1, 1],
  bottom: [0, 1, 1, 1],
  left: [0, 0, 0, 1],
});

/**
 * Returns the fill and the borders of a box.
 * @param {CSSStyleDeclaration} style
 * @param {{x: number, y: number, width: number, height: number}} box
 */
function frameOfBox(style, box) {
  const fill = style.backgroundColor;
  const isFilled = !/^(transparent|rgba\(.*, 0\))$/.test(fill);
  const isScrolled = /auto|scroll/.test(style.overflowX); // the frame of what scrolls does not belong to the picture
  const borders = SIDES.map(([side, [x1, y1, x2, y2]]) => {
    const of = (/** @type {string} */ part) => style.getPropertyValue(`border-${side}-${part}`);
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
    return [made("rect", { ...box, rx, fill: isFilled ? fill : "none", ...(widths[0] > 0 ? looks : {}) })];
  }
  return [
    ...(isFilled ? [made("rect", { ...box, fill })] : []),
    ...borders.flatMap(({ looks, line }, at) =>
      widths[at] > 0 ? [made("line", { ...line, ...looks })] : [],
    ),
  ];
}

/**
 * Returns the lines of a text, where they stand.
 * @param {Text} node
 * @param {CSSStyleDeclaration} style
 * @param {{left: number, top: number}} origin
 */
function wordsOf(node, style, origin) {
  const range = document.createRange();
  /** @type {{x: number, y: number, text: string}[]} */
  const lines = [];
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
  const looks = {
    "dominant-baseline": "central",
    fill: style.color,
    "font-family": style.fontFamily,
    "font-size": style.fontSize,
    "font-weight": style.fontWeight,
  };
  return lines.map(({ x, y, text }) => made("text", { x, y, ...looks }, text.trimEnd()));
}

/**
 * Returns a copy of a drawing that does not need the page's styles.
 * @param {SVGSVGElement} drawn
 * @param {Record<string, number>} box
 */
function inlined(drawn, box) {
  const copy = /** @type {SVGSVGElement} */ (drawn.cloneNode(true));
  const originals = [drawn, ...drawn.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((one, at) => {
    const style = getComputedStyle(originals[at]);
    for (const name of STYLES) one.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex"]) one.removeAttribute(name);
    if (style.display === "none" || style.visibility === "hidden") one.setAttribute("display", "none");
  });
  for (const [name, value] of Object.entries(box)) copy.setAttribute(name, String(value));
  return copy;
}

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {string} text
 */
function made(tag, attributes, text = "") {
  const one = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, String(value));
  one.textContent = text;
  return one;
}

/**
 * Returns an SVG file as a PNG file.
 * @param {string} svg
 * @returns {Promise<Blob>}
 */
async function pngOf(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = element("canvas", { width: SHARPNESS * image.width, height: SHARPNESS * image.height });
  brushOf(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large for a PNG")))),
  );
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
function download(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
