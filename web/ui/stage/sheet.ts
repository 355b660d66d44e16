// The sheet: a panel over the free space of the stage, so that the figure shows what it changes.
import { button, element, refill } from "../dom.ts";
import { panelOf } from "../panels.ts";
import { boxOfPanel } from "./zoom_segments.ts";

import type { App } from "../app.ts";

/** Returns the sheet, which is empty while it is closed. */
export function createSheet(app: App) {
  const title = element("h2", { tabindex: "-1" });
  const names = element("div", { className: "gfs-sheet-names", role: "group" });
  const turned = element("p", { className: "gfs-sheet-turned", "aria-live": "polite" });
  const body = element("div", { className: "gfs-sheet-body" });
  const close = button("×", () => app.show({ sheet: false }), { className: "gfs-sheet-close" });
  const made = element(
    "section",
    { className: "gfs-sheet" },
    element("header", {}, title, close),
    names,
    turned,
    body,
  );
  function fill() {
    const { sheet, panel, view } = app.state;
    const wasHidden = made.hidden;
    made.hidden = !sheet || view !== "stage";
    if (made.hidden) return;
    close.setAttribute("aria-label", app.t("stage.sheet.close"));
    made.setAttribute("aria-label", app.t(`panel.${panel}`));
    title.textContent = app.t(`panel.${panel}`);
    refill(
      names,
      app.panels
        .filter((one) => one !== "numbers" && !boxOfPanel(one))
        .map((one) =>
          button(app.t(`panel.${one}`), () => app.show({ panel: one }), { pressed: one === panel }),
        ),
    );
    const { reference, current } = app.result;
    refill(
      turned,
      app.changed &&
        current.text !== reference.text && [
          element("del", {}, reference.text),
          " ",
          element("ins", {}, current.text),
        ],
    );
    const content = panelOf(app, panel);
    if (body.firstChild !== content) refill(body, content);
    if (wasHidden) title.focus();
  }
  app.on(["sheet", "panel", "view", "language", "result"], fill);
  made.hidden = true;
  fill();
  return made;
}
