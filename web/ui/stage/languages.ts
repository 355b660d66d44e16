// The names of a model's two languages.
import type { Side } from "../../engine/types.ts";
import type { App } from "../app.ts";

/** Returns the names of both languages in the reader's language, or else "source" and "target". */
export function languageNames(app: App) {
  const { languages } = app.payload;
  const names = new Intl.DisplayNames([app.state.language === "zh" ? "zh-CN" : "en"], { type: "language" });
  const named = (side: Side) => {
    try {
      return (languages[side] && names.of(languages[side])) || app.t(`stage.${side}`);
    } catch {
      return app.t(`stage.${side}`); // the configuration may contain any text, not only language codes
    }
  };
  return { source: named("source"), target: named("target") };
}
