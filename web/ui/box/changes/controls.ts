// The controls of the panel of changes. Each control has a key, by which the focus returns to it after a redraw.
import { button, element, named, note } from "../../app/dom.ts";
import { remark } from "../../app/drawing.ts";
import type { App } from "../../app/app.ts";
import type { ActiveChange, Child, SomeChanges } from "../../app/types.ts";

interface Looks {
  label?: string;
  title?: string;
  pressed?: boolean;
  className?: string;
  disabled?: boolean;
}

/** Applies changes; shows an error if the changes are impossible. */
export function tryChange(app: App, changes: SomeChanges) {
  return app.attempt(() => app.set(changes));
}

/** Gives a control its key and its name for screen readers, and returns the control. */
export function keyed<Control extends HTMLElement>(control: Control, key: string, label = "") {
  control.dataset.key = key;
  return label ? named(control, label) : control;
}

/** Returns a button with a key. */
export function press(
  key: string,
  text: Child,
  action: () => unknown,
  { label = "", ...options }: Looks = {},
) {
  return keyed(button(text, action, { title: label, ...options }), key, label);
}

/** Returns a button with a key that shows a word. */
export function wordPress(key: string, word: Child, action: () => unknown, looks?: Looks) {
  return press(key, element("bdi", {}, word), action, looks);
}

export function row(...children: Child[]) {
  return element("div", "gf-row", children);
}

export function tightRow(label: string, ...children: Child[]) {
  return element("div", { class: "gf-row gf-tight", role: "group", "aria-label": label }, children);
}

export function field(label: string, value: string, key: string) {
  const looks = { type: "text", dir: "auto", autocomplete: "off", spellcheck: false };
  return keyed(element("input", { ...looks, value, placeholder: label }), key, label);
}

export function form(action: () => unknown, label: string, ...controls: Child[]) {
  const onsubmit = (event: Event) => {
    event.preventDefault();
    action();
  };
  const submit = element("button", { type: "submit" }, label);
  return element("form", { class: "gf-row", onsubmit }, controls, submit);
}

export function labelled(text: string, control: HTMLElement, key: string) {
  return element("label", {}, remark(text), keyed(control, key, text));
}

export function tokenPairs(tokens: string[]): [string, string][] {
  return tokens.map((token, at) => [String(at), `${at} · ${token}`]);
}

/**
 * Returns the active changes as a list; each change has a button that undoes it. `more` returns a further control for
 * a change.
 */
export function chips(
  app: App,
  active: ActiveChange[],
  more: (app: App, change: ActiveChange) => Child = () => null,
) {
  return element(
    "ul",
    { class: "gf-chips", "aria-label": app.t("changes.active") },
    active.map((one) => chip(app, one.text, () => tryChange(app, one.undo(app.changes)), more(app, one))),
  );
}

export function chip(app: App, text: string, remove: () => unknown, more?: Child) {
  return element(
    "li",
    "gf-chip",
    element("bdi", {}, text),
    more,
    press(`x ${text}`, "×", remove, { label: app.t("changes.remove", text) }),
  );
}

export function switchRow(
  name: string,
  about: string,
  checked: boolean,
  set: (on: boolean) => unknown,
  disabled = false,
) {
  const box = element("input", { type: "checkbox", checked, disabled });
  box.addEventListener("change", () => set(box.checked));
  const label = element("label", {}, keyed(box, `switch ${name}`), element("b", {}, name));
  return element("div", "gf-switch", label, note(about));
}
