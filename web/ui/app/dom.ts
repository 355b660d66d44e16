// Functions that create elements. The page never parses HTML, so text is always inserted as text.
import type { Child, Properties } from "./types.ts";

/**
 * Returns a new element. `properties`: the element's classes as a text, or its properties, of which `on…` become
 * listeners, and `class`, `data-…` and `aria-…` become attributes.
 */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Properties | string = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  const all = typeof properties === "string" ? { class: properties } : properties;
  for (const [name, value] of Object.entries(all)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (name in made && !name.includes("-") && name !== "list" && name !== "role")
      Reflect.set(made, name, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...nodesOf(children));
  return made;
}

/** Returns a text in which elements replace {0}, {1} … */
export function filled(text: string, parts: Child[]): Child[] {
  return text.split(/\{(\d)\}/).map((part, at) => (at % 2 ? parts[Number(part)] : part));
}

/** Returns a paragraph in the quiet style of notes. */
export function note(...content: Child[]) {
  return element("p", "gf-note", content);
}

/** Replaces an element's children. */
export function refill(parent: Element, ...children: Child[]) {
  parent.replaceChildren(...nodesOf(children));
}

/** Returns the nodes and texts in nested lists of children as one flat list. */
export function nodesOf(children: readonly Child[]): (Node | string)[] {
  return children.flatMap((child) => {
    if (child === null || child === undefined || child === false) return [];
    if (typeof child === "number") return [String(child)];
    return typeof child === "string" || child instanceof Node ? [child] : nodesOf(child);
  });
}

/** Returns a button; `pressed` makes it a toggle. */
export function button(
  label: Child,
  onclick: () => unknown,
  {
    title = "",
    pressed = null,
    className = "",
    disabled = false,
  }: { title?: string; pressed?: boolean | null; className?: string; disabled?: boolean } = {},
) {
  const made = element("button", { type: "button", className, title, onclick, disabled }, label);
  if (pressed !== null) made.ariaPressed = String(pressed);
  return made;
}

/** Returns a round button of the stage; `main`: whether this is the main button, which is dark. */
export function pill(label: Child, onclick: () => unknown, main = false) {
  return button(label, onclick, { className: main ? "gfs-pill gfs-dark" : "gfs-pill" });
}

/** Names a control that shows no text; the name also appears as its tooltip. */
export function named<One extends HTMLElement>(one: One, name: string) {
  one.title = name;
  one.ariaLabel = name;
  return one;
}

/** Returns a drop-down of [value, label] pairs. */
export function chooser<Value extends string>(
  label: string,
  pairs: readonly (readonly [Value, string])[],
  value: string,
  onchange: (value: Value) => unknown,
) {
  const options = pairs.map(([key, text]) =>
    element("option", { value: key, selected: key === value }, text),
  );
  const made = element("select", { "aria-label": label }, options);
  made.addEventListener("change", () => onchange(pairs[made.selectedIndex][0]));
  return made;
}

/**
 * Returns whether the page may act on a key: the key was not typed into a field, is not a browser shortcut, and was
 * not handled yet.
 */
export function isForPage({ target, ctrlKey, metaKey, altKey, defaultPrevented }: KeyboardEvent) {
  const one = target as HTMLElement;
  const isTyped = one.isContentEditable || one.matches("input, select, textarea");
  return !(isTyped || ctrlKey || metaKey || altKey || defaultPrevented);
}

/**
 * Lets the arrow keys move the focus among elements, by default the children of `holder`. Tab reaches only one of
 * these elements.
 */
export function letArrowsMove(holder: HTMLElement, stops = () => [...holder.children] as HTMLElement[]) {
  holder.addEventListener("keydown", (event) => {
    const step = Number(/^Arrow(Right|Down)$/.test(event.key)) - Number(/^Arrow(Left|Up)$/.test(event.key));
    const all = stops();
    const at = all.indexOf(event.target as HTMLElement);
    if (step && at >= 0) event.stopPropagation();
    const to = at >= 0 && all[at + step];
    if (!step || !to) return;
    for (const one of all) one.tabIndex = one === to ? 0 : -1;
    to.focus();
    to.scrollIntoView({ block: "nearest", inline: "nearest" }); // focusing alone would not scroll a strip
    event.preventDefault();
  });
}

/** Returns an element for a token, isolated so that right-to-left words do not reorder their neighbours. */
export function tokenElement(text: string, properties: Properties = {}) {
  return element("bdi", { class: "gf-token", ...properties }, text);
}

/** Returns a term with an explanation that appears on hover and focus. */
export function hint(text: string, about: string) {
  return element(
    "button",
    { type: "button", class: "gf-hint", "aria-description": about, "data-about": about },
    text,
  );
}

/** Returns a menu that opens under its button; Escape closes it. */
export function menu(className: string) {
  const summary = element("summary");
  const choices = element("div", "gf-choices");
  // menus of the same name close each other
  const details = element("details", { class: `gf-menu ${className}`, name: className }, summary, choices);
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    closeMenu(details);
    event.stopPropagation();
  });
  return { element: details, summary, choices };
}

/** Closes a menu, and moves the focus to its button. */
export function closeMenu(menu: HTMLDetailsElement) {
  menu.open = false;
  menu.querySelector("summary")?.focus();
}

/** Returns the 2D drawing context of a canvas. */
export function brushOf(canvas: HTMLCanvasElement) {
  const brush = canvas.getContext("2d");
  if (!brush) throw new Error("this browser does not support canvas elements");
  return brush;
}

/** Calls `changed` when the size of an element changes, until the signal is aborted. */
export function watchSize(signal: AbortSignal, one: Element, changed: () => unknown) {
  const observer = new ResizeObserver(changed);
  observer.observe(one);
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });
}

/** Copies a field's text, and returns true. If the browser refuses, shows the field in `shown`, with its text selected. */
export async function copyText(field: HTMLInputElement | HTMLTextAreaElement, shown: HTMLElement) {
  shown.hidden = true;
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    shown.hidden = false;
    field.select();
  }
  return shown.hidden;
}
