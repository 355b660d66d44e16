// The sheet: a panel over the free part of the stage, so that the figure stays visible while the reader changes it.
import { button, element, named, refill } from "../app/dom.ts";
import { openTensor } from "../box/numbers/cells.ts";
import { isPanel, panelOf } from "../box/panels.ts";
import { boxOfPanel } from "../app/boxes.ts";

import type { App } from "../app/app.ts";

/**
 * Returns the sheet, which is empty while closed, and a function to be called when the page begins. `said`: the stage's sentence, which the sheet repeats because it
 * covers the stage's own.
 */
export function createSheet(app: App, said: HTMLElement) {
  const title = element("h2", { tabindex: "-1" });
  const names = element("div", { class: "gfs-sheet-names", role: "group" });
  const turned = element("p", { class: "gfs-sheet-turned", "aria-live": "polite" });
  const body = element("div", "gfs-sheet-body");
  const close = button("×", () => app.show({ sheet: false }), { className: "gfs-sheet-close" });
  const made = element(
    "section",
    "gfs-sheet",
    element("header", {}, title, close),
    said,
    turned,
    names,
    body,
  );
  function fill() {
    const { sheet } = app.state;
    const panel = app.state.panel === "calculation" ? "changes" : app.state.panel; // no panel has been chosen yet
    const wasHidden = made.hidden;
    made.hidden = !sheet || !isPanel(panel);
    if (!isPanel(panel) || made.hidden) return;
    named(close, app.t("stage.sheet.close"));
    made.ariaLabel = app.t(`panel.${panel}`);
    title.textContent = app.t(`panel.${panel}`);
    refill(
      names,
      app.panels
        .filter((one) => !boxOfPanel(app.config, one))
        .map((one) =>
          button(app.t(`panel.${one}`), () => app.show({ panel: one }), {
            pressed: one === panel,
            className: "gfs-chip",
          }),
        ),
    );
    const { reference, current, firstDifference: first } = app.result;
    const isOther = current.text !== reference.text;
    refill(turned, [
      element(isOther ? "del" : "span", {}, reference.text),
      isOther && [" → ", element("ins", {}, current.text)],
      first &&
        element(
          "small",
          {},
          `${app.t("output.first")}: `,
          button(first, () => openTensor(app, first), { className: "gf-link" }),
        ),
    ]);
    const content = panelOf(app, panel);
    if (body.firstChild !== content) refill(body, content);
    if (wasHidden) title.focus();
  }
  app.on(["sheet", "panel", "language", "result"], fill);
  made.hidden = true;
  fill();
  const begin = () => void panelOf(app, "changes"); // its undo history starts with the page
  return { element: made, begin };
}
