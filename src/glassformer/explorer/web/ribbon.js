// (to be written)
import { element } from "./dom.js";

/** Returns the ribbon as an element. */
export function createRibbon(app) {
  return element("nav", { className: "gf-ribbon", "aria-label": "steps" }, app.t("page.title"));
}
