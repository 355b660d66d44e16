// The settings that a reader rarely changes, behind one button: language, colours, and how the map shows the heads.
import { HEAD_ORDERS } from "../engine/statistics.ts";
import { button, chooser, element, menu, refill } from "./dom.ts";
import type { App } from "./app.ts";

/** Returns the menu as an element. */
export function createSettings(app: App) {
  const { element: details, summary, choices } = menu("gf-settings");
  const contrast = button("", () => app.show({ contrast: !app.state.contrast }));
  let order: HTMLSelectElement;
  const dress = () => {
    contrast.setAttribute("aria-pressed", String(app.state.contrast));
    order.value = app.state.order; // "Stop" on the map changes it
  };
  const orders = HEAD_ORDERS.filter((order) => app.engine.live !== false || order !== "ablation");
  function fill() {
    summary.textContent = `⚙ ${app.t("page.settings")}`;
    contrast.textContent = app.t("map.contrast");
    contrast.title = app.t("map.contrast.title");
    order = chooser(
      app.t("map.order"),
      orders.map((order) => [order, app.t(`order.${order}`)]),
      app.state.order,
      (order) => app.show({ order }),
    );
    refill(
      choices,
      button(app.t("page.language"), () => app.show({ language: app.state.language === "en" ? "zh" : "en" })),
      button(`◐ ${app.t("page.theme")}`, () =>
        app.show({ theme: app.state.theme === "dark" ? "light" : "dark" }),
      ),
      element("label", {}, app.t("map.order"), order),
      contrast,
    );
    dress();
  }
  fill();
  app.on(["language"], fill);
  app.on(["contrast", "order"], dress);
  const leave = (event: Event) => {
    if (!event.composedPath().includes(details)) details.open = false;
  };
  for (const type of ["pointerdown", "focusin"]) window.addEventListener(type, leave, { signal: app.signal });
  return details;
}
