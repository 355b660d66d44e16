// (to be written)
import { element } from "./dom.js";

/** Returns the panel as an element. */
export function createBeamPanel(app) {
  return element("div", {}, app.t("panel.beam"));
}
