// The controls of the panel of changes. Each has a key, by which the focus finds it after redrawing.
import { button, element } from "../dom.js";
/**
 * @import { App } from "../app.js"
 * @import { ActiveChange, Child, SomeChanges } from "../types.js"
 */

/** @typedef {{label?: string, title?: string, pressed?: boolean, className?: string, disabled?: boolean}} Looks */

/**
 * Makes changes, and shows an error.
 * @param {App} app
 * @param {SomeChanges} changes
 */
export function tryChange(app, changes) {
  return app.attempt(() => app.set(changes));
}

/**
 * Returns a control with its key, and its name for screen readers.
 * @template {HTMLElement} Control
 * @param {Control} control
 * @param {string} key
 */
export function keyed(control, key, label = "") {
  control.dataset.key = key;
  if (label) control.setAttribute("aria-label", label);
  return control;
}

/**
 * Returns a button with a key.
 * @param {string} key
 * @param {Child} text
 * @param {() => unknown} action
 * @param {Looks} [looks]
 */
export function press(key, text, action, { label = "", ...options } = {}) {
  return keyed(button(text, action, options), key, label);
}

/**
 * Returns a button with a key around a word.
 * @param {string} key
 * @param {Child} word
 * @param {() => unknown} action
 * @param {Looks} [looks]
 */
export function wordPress(key, word, action, looks) {
  return press(key, element("bdi", {}, word), action, looks);
}

/** @param {Child[]} children */
export function row(...children) {
  return element("div", { className: "gf-row" }, children);
}

/**
 * @param {string} label
 * @param {Child[]} children
 */
export function tightRow(label, ...children) {
  return element("div", { className: "gf-row gf-tight", role: "group", "aria-label": label }, children);
}

/**
 * @param {string} label
 * @param {string} value
 * @param {string} key
 */
export function field(label, value, key) {
  const looks = { type: "text", dir: "auto", autocomplete: "off", spellcheck: false };
  return keyed(element("input", { ...looks, value, placeholder: label }), key, label);
}

/**
 * @param {() => unknown} action
 * @param {string} label
 * @param {Child[]} controls
 */
export function form(action, label, ...controls) {
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    action();
  };
  const submit = element("button", { type: "submit" }, label);
  return element("form", { className: "gf-row", onsubmit }, controls, submit);
}

/**
 * @param {string} text
 * @param {HTMLElement} control
 * @param {string} key
 */
export function labelled(text, control, key) {
  return element("label", {}, element("span", { className: "gf-note" }, text), keyed(control, key, text));
}

/**
 * @param {string[]} tokens
 * @returns {[string, string][]}
 */
export function tokenPairs(tokens) {
  return tokens.map((token, at) => [String(at), `${at} · ${token}`]);
}

/**
 * @param {App} app
 * @param {ActiveChange[]} active
 * @param {(app: App, change: ActiveChange) => Child} more - Returns a further control of a change.
 */
export function chips(app, active, more = () => null) {
  return element(
    "ul",
    { className: "gf-chips", "aria-label": app.t("changes.active") },
    active.map((one) => chip(app, one.text, () => tryChange(app, one.undo(app.changes)), more(app, one))),
  );
}

/**
 * @param {App} app
 * @param {string} text
 * @param {() => unknown} remove
 * @param {Child} [more]
 */
export function chip(app, text, remove, more) {
  return element(
    "li",
    { className: "gf-chip" },
    element("bdi", {}, text),
    more,
    press(`x ${text}`, "×", remove, { label: app.t("changes.remove", text) }),
  );
}

/**
 * @param {string} name
 * @param {string} about
 * @param {boolean} checked
 * @param {(on: boolean) => unknown} set
 */
export function switchRow(name, about, checked, set, disabled = false) {
  const box = element("input", { type: "checkbox", checked, disabled });
  box.addEventListener("change", () => set(box.checked));
  const label = element("label", {}, keyed(box, `switch ${name}`), element("b", {}, name));
  return element("div", { className: "gf-switch" }, label, element("p", { className: "gf-note" }, about));
}
