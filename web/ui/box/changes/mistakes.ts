// The section for the classic mistakes, each with a switch.
import { button, note } from "../../app/dom.ts";
import { openTensor } from "../numbers/cells.ts";
import { switchRow, tryChange } from "./controls.ts";
import { without } from "./lists.ts";
import type { ChangesPanel } from "./panel_state.ts";

export function mistakesSection({ app }: ChangesPanel) {
  const { mistakes } = app.changes,
    { sourceIds, targetIds } = app.result.current;
  return app.config.mistakes.map(({ id, first: point, one_length: oneLength }) => {
    const on = mistakes.includes(id);
    const show = () => point && openTensor(app, point);
    const others = () => without(app.changes.mistakes, id);
    const set = (wanted: boolean) => tryChange(app, { mistakes: wanted ? [...others(), id] : others() });
    const made = switchRow(app.t(`mistake.${id}`), app.t(`mistake.${id}.about`), on, set, !point);
    const equal = oneLength && sourceIds.length === targetIds.length;
    const told = point ? app.t("changes.first") : app.t("changes.unseen", app.t(`mistake.${id}.unseen`));
    made.append(
      note(
        `${told} `,
        point && button(point, show, { className: "gf-link" }),
        equal && ` ${app.t("changes.equal")}`,
      ),
    );
    return made;
  });
}
