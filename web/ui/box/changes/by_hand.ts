// The section for rows of attention weights that are set by hand.
import { numberText } from "../../../engine/number_text.ts";
import { withRows } from "../../../engine/turning.ts";
import { element } from "../../app/dom.ts";
import { atChoosers } from "./choosers.ts";
import { keyed, press, row, tryChange } from "./controls.ts";
import type { App } from "../../app/app.ts";
import type { At, Child } from "../../app/types.ts";
import type { ChangesPanel } from "./panel_state.ts";

export async function handSection(panel: ChangesPanel): Promise<Child[]> {
  const { app, at } = panel;
  const choosers = atChoosers(panel, "attention", "head", "query");
  const written = await rowOf(panel),
    { weights } = written,
    total = () => weights.reduce((sum, weight) => sum + weight, 0);
  const summed = () => app.t("changes.sum", numberText(total()));
  const sum = element("span", { class: "gf-note", role: "status" }, summed());
  const sliders = (app.labels(`${at.attention}.weights`).columns ?? []).map((token, key) => {
    const shown = element("output", {}, weights[key].toFixed(2));
    const oninput = () => {
      weights[key] = Number(slider.value);
      shown.textContent = weights[key].toFixed(2);
      sum.textContent = summed();
    };
    const limits = { min: "0", max: "1", step: "0.01", value: String(weights[key]) };
    const slider = keyed(element("input", { type: "range", ...limits, oninput }), `weight ${key}`, token);
    return element("label", "gf-weight", element("bdi", {}, token), slider, shown);
  });
  const fill = (rule: (total: number) => (weight: number) => number) => () => {
    written.weights = weights.map(rule(total() || 1));
    panel.redraw();
  };
  const apply = () => tryChange(app, { overrides: withRow(app, at, weights) });
  return [
    choosers,
    element("div", "gf-weights", sliders),
    sum,
    row(
      press(
        "normalise",
        app.t("changes.normalise"),
        fill((all) => (weight) => weight / all),
      ),
      press(
        "even",
        app.t("changes.even"),
        fill(() => () => 1 / weights.length),
      ),
      press("apply", app.t("changes.apply"), apply, { className: "gf-primary" }),
    ),
  ];
}

/** Returns the weights that the reader edits; at first, they are the weights of the chosen row. */
async function rowOf(panel: ChangesPanel) {
  const { attention, head, query } = panel.at;
  const {
    shape: [, rows, columns],
    data,
  } = await panel.app.value(`${attention}.weights`);
  const from = (head * rows + query) * columns,
    weights = [...data.subarray(from, from + columns)];
  const key = JSON.stringify([attention, head, query, weights]);
  if (panel.row?.key !== key) panel.row = { key, weights };
  return panel.row;
}

function withRow(app: App, { attention, head, query }: At, weights: number[]) {
  const short = weights.map((weight) => Math.round(weight * 1e5) / 1e5);
  return withRows(app.changes.overrides, [{ attention, head, query, weights: short }]);
}
