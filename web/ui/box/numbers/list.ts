// A list of the open box's tensors, or of all tensors of the model, grouped by part. Typing keeps the tensors whose name
// or meaning contains every typed word.
import { hasHeads } from "../../../engine/model.ts";
import { button, element, letArrowsMove, refill } from "../../app/dom.ts";
import { groupName, lastOf, meaningOf } from "./worked.ts";

import type { App } from "../../app/app.ts";

/** Returns the list, and a function that fills the list; `open` receives the name of the picked tensor. */
export function createList(app: App, open: (name: string) => void) {
  const field = element("input", { type: "search", spellcheck: false, autocomplete: "off" });
  const rows = element("div", "gfn-names");
  const none = element("p", { class: "gfn-quiet", role: "status" });
  const whole = button("", () => ((isWhole = !isWhole), draw(shown)), { className: "gfz-link" });
  const made = element("nav", "gfn-list", field, none, rows, whole);
  let isWhole = false;
  const stops = () => [...rows.querySelectorAll<HTMLElement>("button")];
  letArrowsMove(rows, stops);
  field.addEventListener("input", () => draw(shown));
  field.addEventListener("keydown", (event) => {
    const [first] = stops();
    if (!first || !["ArrowDown", "Enter"].includes(event.key)) return;
    if (event.key === "Enter") first.click();
    else first.focus();
    event.preventDefault();
  });
  let shown = "";

  /** Fills the list; `name`: the tensor that is open. */
  function draw(name: string) {
    const hadFocus = rows.contains(document.activeElement);
    const isNew = name !== shown;
    shown = name;
    made.ariaLabel = app.t("numbers.tensors");
    field.ariaLabel = app.t("numbers.find");
    field.placeholder = app.t("numbers.find");
    const typed = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    whole.hidden = typed.length > 0;
    whole.textContent = app.t(isWhole ? "numbers.ofBox" : "numbers.tensors");
    const box = isWhole || typed.length > 0 ? null : app.boxOf(name);
    const names = app.result.current.trace.names.filter((one) => !box || app.boxOf(one) === box);
    const groups = groupsOf(app, names, typed, name, open);
    none.textContent = groups.size ? "" : app.t("numbers.none");
    refill(
      rows,
      [...groups]
        .reverse()
        .map(([group, all]) =>
          element("section", { role: "group", "aria-label": group }, element("h3", {}, group), all),
        ),
    );
    const current = rows.querySelector<HTMLElement>("[aria-current]");
    for (const one of stops()) one.tabIndex = one === (current ?? stops()[0]) ? 0 : -1;
    if (hadFocus) (current ?? stops()[0])?.focus({ preventScroll: true });
    if (isNew && current) rows.scrollTop = current.offsetTop - rows.offsetTop - rows.clientHeight / 3;
  }
  return { element: made, draw };
}

/**
 * Returns those of the tensors that have all typed words, as buttons, by part of the model. `name`: the tensor that is
 * open.
 */
function groupsOf(app: App, names: string[], typed: string[], name: string, open: (name: string) => void) {
  const groups = new Map<string, HTMLElement[]>();
  const all = names.toReversed().map((one) => {
    const [group, about] = [groupName(app, one), meaningOf(app, one)];
    return { one, group, about, called: `${one} ${group}` };
  });
  const having = (textOf: (one: (typeof all)[number]) => string) =>
    all.filter((one) => typed.every((word) => textOf(one).toLowerCase().includes(word)));
  const called = having((one) => one.called);
  const found = called.length ? called : having((one) => `${one.called} ${one.about}`);
  for (const { one, group, about } of found) {
    const size = element("span", {}, sizeOf(app, one).join(" × "));
    const row = button(
      [element("code", {}, lastOf(one)), size, element("small", {}, about)],
      () => open(one),
      { title: one },
    );
    if (one === name) row.ariaCurrent = "true";
    groups.set(group, [row, ...(groups.get(group) ?? [])]);
  }
  return groups;
}

/** Returns a tensor's shape without computing it. */
export function sizeOf(app: App, name: string) {
  const { config } = app;
  const { rows, columns } = app.labels(name);
  const last = lastOf(name);
  const { d_k, d_v, d_ff, d_model, target_vocab_size } = config;
  const widths: Record<string, number> = {
    query: d_k,
    key: d_k,
    value: d_v,
    heads: d_v,
    hidden: d_ff,
    activated: d_ff,
    joined: config.heads * d_v,
    logits: target_vocab_size,
    log_probs: target_vocab_size,
  };
  return [
    ...(hasHeads(config, name) ? [config.heads] : []),
    rows.length,
    columns?.length ?? widths[last] ?? d_model,
  ];
}
