// Making elements. Text is always text: nothing here, or anywhere in the page, parses HTML.

/** Returns a new element; `on…` properties become listeners, `class`, `data-…` and `aria-…` attributes. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && !name.includes("-") && name !== "list" && name !== "role") made[name] = value;
    else made.setAttribute(name === "className" ? "class" : name, value === true ? "" : value);
  }
  made.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return made;
}

/** Puts new children into the place of an element's old ones. */
export function refill(parent, ...children) {
  parent.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
}

/** Returns a button; `pressed` makes it a toggle. */
export function button(
  label,
  onclick,
  { title = "", pressed = null, className = "", disabled = false } = {},
) {
  const made = element("button", { type: "button", className, title, onclick, disabled }, label);
  if (pressed !== null) made.setAttribute("aria-pressed", String(pressed));
  return made;
}

/** Returns a drop-down of [value, label] pairs. */
export function chooser(label, pairs, value, onchange) {
  const options = pairs.map(([key, text]) =>
    element("option", { value: key, selected: key === value }, text),
  );
  const made = element("select", { "aria-label": label, onchange: () => onchange(made.value) }, options);
  return made;
}

/** Returns a token as it is shown: in isolation, so that right-to-left words do not disturb their neighbours. */
export function tokenElement(text, properties = {}) {
  return element("bdi", { className: "gf-token", ...properties }, text);
}

/** Returns a number as text: so many decimals, a real minus sign, and a plus sign when `signed`. */
export function numberText(value, decimals = 3, signed = false) {
  if (value === null || value === undefined) return "";
  if (value === -Infinity) return "–∞";
  if (!Number.isFinite(value)) return String(value);
  const small = value !== 0 && Math.abs(value) < 0.5 * 10 ** -decimals;
  const digits = small ? Math.abs(value).toExponential(1) : Math.abs(value).toFixed(decimals);
  return (value < 0 ? "−" : signed ? "+" : "") + digits;
}
