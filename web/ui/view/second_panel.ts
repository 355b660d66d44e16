// The panel in which the reader chooses a second translation, and which lists the differences.
import { largestPlace } from "../../engine/tensor.ts";
import { largestChanges } from "../../engine/alignment.ts";
import { numberText } from "../../engine/number_text.ts";
import { button, chooser, element, named, refill } from "../app/dom.ts";
import { FAMILIES, placeIn } from "../app/heads.ts";
import { joinMarks, labelsOf } from "../app/translator.ts";
import { familyOf } from "../figure/choices.ts";
import { seated } from "../figure/second.ts";
import { unknownWords } from "../figure/sentences.ts";
import { headName, probabilityWords, tokenName } from "../app/wording.ts";
import { checkpointSteps, stepName } from "../app/checkpoints.ts";

import type { App } from "../app/app.ts";
import type { Child, Selection } from "../app/types.ts";
import type { Second, StageNumbers } from "../figure/shown.ts";

const MOST_WEIGHTS = 3;

/** Returns the panel in which the reader chooses the second translation, and which lists the differences. */
export function createSecond(app: App, numbers: () => StageNumbers | null) {
  const { source } = app.engine.tokenizers;
  const field = element("input", { type: "text", dir: "auto", autocomplete: "off", spellcheck: false });
  const steps = element("span");
  const submit = element("button", { type: "submit", class: "gfs-pill" });
  const close = button("×", () => app.show({ second: null }), { className: "gfs-sheet-close" });
  const onsubmit = (event: Event) => {
    event.preventDefault();
    app.show({ second: { ...app.state.second, text: joinMarks(source, field.value) } });
  };
  const form = element("form", { onsubmit }, field, steps, submit, close);
  const said = element("div", { role: "status" });
  const made = element("section", "gfs-second", form, said);
  made.hidden = true;

  function fill() {
    const { second } = app.state;
    made.hidden = !second || app.state.chapter > 0 || app.engine.live === false;
    if (!second || made.hidden) return;
    made.ariaLabel = app.t("second.title");
    field.ariaLabel = app.t("second.sentence");
    field.placeholder = app.t(app.changed ? "second.before" : "second.sentence");
    field.value = second.text;
    submit.textContent = app.t("second.compare");
    named(close, app.t("stage.sheet.close"));
    if (app.payload.checkpoints?.length > 0) refill(steps, stepChooser(app, second));
  }

  /** Updates the note that names the second translation. */
  function tell() {
    const second = numbers()?.second;
    made.toggleAttribute("data-told", Boolean(second));
    refill(said, second && told(app, numbers() as StageNumbers, second));
  }
  app.on(["second", "chapter", "language", "result"], fill);
  fill();
  return { element: made, tell, focus: () => field.focus() };
}

/** Returns the drop-down for the training step of the second translation. */
function stepChooser(app: App, second: NonNullable<Selection["second"]>) {
  const steps = [undefined, ...checkpointSteps(app.payload)];
  const name = (one: number | null | undefined) =>
    one === undefined ? app.t("second.same") : stepName(app, one);
  const pairs = steps.map((one) => [String(one), name(one)] as const);
  return chooser(app.t("second.step"), pairs, String(second.step), (value) =>
    app.show({ second: { ...second, step: steps.find((one) => String(one) === value) } }),
  );
}

/** Returns the second translation's words, and buttons that light the weights that differ most. */
function told(app: App, numbers: StageNumbers, second: Second): Child[] {
  const { t } = app;
  const row = second.lit.cross;
  const word = second.written.find(({ column }) => column === numbers.row);
  const source = row && numbers.translated.sourceTokens[largestPlace(row)];
  const { isBefore, translated } = second;
  const unknown = unknownWords(app, translated);
  return [
    element(
      "div",
      "gfs-second-text",
      element("span", "gfs-second-about", t(isBefore ? "second.was" : "second.writes")),
      " ",
      marked(second, t),
    ),
    word &&
      source &&
      familyOf(app.state.box) === "cross" &&
      numbers.steps.crossKeyValue.side === "source" &&
      element(
        "p",
        "gfs-second-looks",
        t(
          "second.looks",
          tokenName(word.token, t),
          seated(second.source, largestPlace(row), t),
          probabilityWords(Math.max(...row)),
        ),
      ),
    element("p", "gfs-second-most", mostChanged(app, numbers, second)),
    unknown && element("p", {}, unknown),
  ];
}

/** Returns the second translation's words; words that the first translation lacks are marked. */
function marked({ written }: Second, t: App["t"]) {
  return written.map(({ token, isOwn }) => [
    element(isOwn ? "mark" : "span", { title: isOwn ? t("second.only") : "" }, tokenName(token, t)),
    " ",
  ]);
}

/** Returns buttons that light the attention weights that differ most, among words that both translations have. */
function mostChanged(app: App, { translated }: StageNumbers, { changes }: Second) {
  const most = [...changes]
    .flatMap(([name, one]) => largestChanges(one).map((cell) => ({ name, ...cell })))
    .filter(({ change }) => change !== 0)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change))
    .slice(0, MOST_WEIGHTS);
  if (most.length === 0) return [];
  const buttons = most.map(({ name, index: [head, row, key], change }) => {
    const attention = name.replace(".weights", "");
    const { family, layer } = placeIn(attention);
    const readers = family.id === "encoder" ? translated.sourceTokens : translated.outputTokens;
    const names = [readers[row], labelsOf(translated, name).columns?.[key]].map((one) =>
      tokenName(one ?? "", app.t),
    );
    const light = () => {
      const heads = { ...app.state.heads };
      for (const { id, stack } of FAMILIES) if (stack === family.stack) heads[id] = { ...heads[id], layer };
      heads[family.id] = { layer, head };
      const place = family.id === "encoder" ? { sourceWord: row } : { row, sourceWord: null };
      app.show({ heads, box: `${family.stack}.${family.sublayer}`, ...place });
    };
    return button(
      `${headName(app, { attention, head })}: ${names[0]} → ${names[1]} ${numberText(change, 2, true)}`,
      light,
      { className: "gfs-chip" },
    );
  });
  return [element("span", {}, app.t("second.most")), buttons];
}
