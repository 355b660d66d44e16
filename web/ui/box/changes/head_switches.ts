// The section for switching heads off.
import { times } from "../../../engine/tensor.ts";
import { FAMILIES, attentionName, layersOf } from "../../app/heads.ts";
import { element } from "../../app/dom.ts";
import { remark } from "../../app/drawing.ts";
import { placeName } from "./choosers.ts";
import { press, tightRow, tryChange } from "./controls.ts";
import { withList, without } from "./lists.ts";
import type { ChangesPanel } from "./panel_state.ts";

export function headsSection({ app }: ChangesPanel) {
  const { ablated } = app.changes,
    { heads } = app.config;
  const all = times(heads, (head) => head);
  const set = (names: string[], list: number[]) => {
    const lists = names.reduce((others, name) => withList(others, name, list), app.changes.ablated);
    tryChange(app, { ablated: lists });
  };
  const allOff = (names: string[], what: string) => {
    const pressed = names.every((name) => ablated[name]?.length === heads);
    return press(`all ${what}`, app.t("changes.all"), () => set(names, pressed ? [] : all), {
      pressed,
      label: app.t("changes.all.of", what),
    });
  };
  const toggle = (name: string, head: number) => {
    const pressed = Boolean(ablated[name]?.includes(head));
    const others = () => without(app.changes.ablated[name] ?? [], head);
    const turn = () => set([name], pressed ? others() : [...others(), head].sort((a, b) => a - b));
    const label = app.t("changes.off", head, placeName(app, name));
    return press(`${name} ${head}`, head, turn, { pressed, label });
  };
  return FAMILIES.map((family) => {
    const names = times(layersOf(app.config, family), (layer) => attentionName(family, layer));
    const title = app.t(`family.${family.id}`);
    return element(
      "div",
      "gf-heads",
      element("h3", {}, title, " ", allOff(names, title)),
      names.map((name, layer) =>
        tightRow(
          placeName(app, name),
          remark(`${app.t("word.layer")} ${layer}`),
          all.map((head) => toggle(name, head)),
          allOff([name], placeName(app, name)),
        ),
      ),
    );
  });
}
