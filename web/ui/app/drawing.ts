// The elements of which the figures of the panels are made: SVG elements, remarks, and sliders.
import { element, nodesOf } from "./dom.ts";
import type { Child } from "./types.ts";

const SVG = "http://www.w3.org/2000/svg";

/** Returns a new SVG element with these attributes, or with these classes if they are a text. */
export function drawing<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string | number> | string = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  const all = typeof attributes === "string" ? { class: attributes } : attributes;
  const made = withAttributes(document.createElementNS(SVG, tag), all);
  made.append(...nodesOf(children));
  return made;
}

/** Sets attributes of an element, and returns the element. */
export function withAttributes<One extends Element>(one: One, attributes: Record<string, string | number>) {
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, String(value));
  return one;
}

/** Returns the attributes of an element that readers can press; the stage's keys move the focus to it. */
export function pressable(label: string) {
  return { role: "button", tabindex: -1, "aria-label": label };
}

/** Returns a remark in small type. */
export function remark(...content: Child[]) {
  return element("span", "gf-note", ...content);
}

/** Returns a slider with a label and its current number; `written` formats the number. */
export function slider(
  label: string,
  {
    low,
    high,
    step = 1,
    value,
    written = String,
  }: { low: number; high: number; step?: number; value: number; written?: (value: number) => string },
  onchange: (value: number) => void,
) {
  const number = element("output", "gf-mono", written(value));
  const input: HTMLInputElement = element("input", {
    type: "range",
    min: low,
    max: high,
    step,
    value: String(value),
    "aria-label": label,
    "aria-valuetext": number.textContent,
    oninput: () => {
      number.textContent = written(Number(input.value));
      input.setAttribute("aria-valuetext", number.textContent);
      onchange(Number(input.value));
    },
  });
  return element("label", "gf-range", element("span", {}, label), input, number);
}
