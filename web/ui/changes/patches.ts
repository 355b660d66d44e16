// Patches: rows of a tensor that come from a different sentence.
import { NO_CHANGES } from "../../engine/changes.ts";
import { hasHeads, pointNames } from "../../engine/model.ts";
import { messageOf } from "../app.ts";
import { engineChanges } from "../sentences.ts";
import { chooser, element } from "../dom.ts";
import { chip, field, form, labelled, press, tokenPairs, tryChange } from "./controls.ts";
import { without } from "./lists.ts";
import type { TextPatch } from "../../engine/types.ts";
import type { App } from "../app.ts";
import type { ChangesPanel, Child, PatchDraft } from "../types.ts";

export async function patchSection(panel: ChangesPanel): Promise<Child[]> {
  const { app } = panel,
    points = pointNames(app.config);
  if (app.engine.live === false) return [];
  const stream = points.filter((name) => name.endsWith(app.config.norm === "pre" ? ".added" : ".normed"));
  const patch = (panel.patch ??= draft(likestExample(app), stream[0]));
  const pick = (part: "sentence" | "point" | "head") => (value: string) => {
    patch[part] = value;
    panel.redraw();
  };
  const sentence = field(app.t("changes.patch.sentence"), patch.sentence, "patch sentence");
  const options = (label: string, names: string[]) =>
    element(
      "optgroup",
      { label: app.t(label) },
      names.map((name) => element("option", { value: name, selected: name === patch.point }, name)),
    );
  const point = element(
    "select",
    {},
    options("changes.patch.stream", stream),
    options(
      "changes.patch.more",
      points.filter((name) => !stream.includes(name)),
    ),
  );
  point.addEventListener("change", () => pick("point")(point.value));
  const heads: [string, string][] = Array.from({ length: app.config.heads }, (_, head) => [
    String(head),
    String(head),
  ]);
  const head = () => chooser("", [["", app.t("changes.patch.heads")], ...heads], patch.head, pick("head"));
  return [
    form(() => pick("sentence")(sentence.value), app.t("changes.patch.use"), sentence),
    element(
      "div",
      { className: "gf-fields" },
      labelled(app.t("changes.patch.point"), point, "point"),
      hasHeads(app.config, patch.point) && labelled(app.t("word.head"), head(), "patch head"),
    ),
    ...(patch.sentence ? await patchPositions(panel, patch) : []),
  ];
}

/** Returns an empty patch. */
function draft(sentence: string, point: string): PatchDraft {
  return { sentence, point, head: "", key: "", pairs: [], here: 0, there: 0, donor: null };
}

async function patchPositions(panel: ChangesPanel, patch: PatchDraft): Promise<Child[]> {
  const { app } = panel,
    here = app.labels(patch.point).rows,
    there = await patchTokens(app, patch);
  if (!there) return [];
  const key = JSON.stringify([here, there]);
  if (patch.key !== key) {
    Object.assign(patch, { key, pairs: differingPlaces(here, there), here: 0, there: 0 });
  }
  const pairs = (made: () => PatchDraft["pairs"]) => () => {
    patch.pairs = made();
    panel.redraw();
  };
  const place = (part: "here" | "there", tokens: string[]) => {
    const pick = (value: string) => {
      patch[part] = Number(value);
    };
    const choose = chooser("", tokenPairs(tokens), String(patch[part]), pick);
    return labelled(app.t(`changes.patch.${part}`), choose, `patch ${part}`);
  };
  const add = pairs(() => [...patch.pairs.filter(([to]) => to !== patch.here), [patch.here, patch.there]]);
  const heads = hasHeads(app.config, patch.point) && patch.head ? { heads: [Number(patch.head)] } : {};
  const made: TextPatch = { point: patch.point, sentence: patch.sentence, positions: patch.pairs, ...heads };
  const apply = () => tryChange(app, { patches: [...app.changes.patches, made] });
  const disabled = patch.pairs.length === 0;
  return [
    element(
      "ul",
      { className: "gf-chips", "aria-label": app.t("changes.patch.pairs") },
      patch.pairs.map((pair) =>
        chip(
          app,
          `${here[pair[0]]} ← ${there[pair[1]]}`,
          pairs(() => without(patch.pairs, pair)),
        ),
      ),
    ),
    element(
      "div",
      { className: "gf-fields" },
      place("here", here),
      place("there", there),
      press("patch add", app.t("changes.patch.add"), add),
    ),
    press("patch apply", app.t("changes.apply"), apply, { className: "gf-primary", disabled }),
  ];
}

/** Returns the other sentence's tokens at the point's rows, or null; this translates the sentence. */
async function patchTokens(app: App, patch: PatchDraft) {
  const { checkpoint } = app.changes,
    key = JSON.stringify([patch.sentence, checkpoint]);
  try {
    if (patch.donor?.key !== key) {
      const changes = engineChanges({ ...NO_CHANGES, checkpoint });
      patch.donor = { key, made: app.translated(patch.sentence, "", changes) };
    }
    const { sourceTokens, targetTokens } = await patch.donor.made;
    return app.labels(patch.point).rowSide === "source" ? sourceTokens : targetTokens;
  } catch (error) {
    app.complain(messageOf(error));
    return null;
  }
}

/** Returns the pairs of positions whose words differ, between the common beginning and the common end. */
function differingPlaces(here: string[], there: string[]): [number, number][] {
  const least = Math.min(here.length, there.length);
  let start = 0,
    end = 0;
  while (start < least && here[start] === there[start]) start++;
  while (end < least - start && here.at(-1 - end) === there.at(-1 - end)) end++;
  const places = Array.from({ length: least - start - end }, (_, place) => start + place);
  return places.filter((place) => here[place] !== there[place]).map((place) => [place, place]);
}

/** Returns the example of the same length that differs from the sentence in the fewest words. */
export function likestExample(app: App) {
  const words = app.state.sentence.split(" ");
  const distance = (text: string) => {
    const others = text.split(" ");
    const differing = others.filter((word, place) => word !== words[place]).length;
    return Math.abs(others.length - words.length) * 100 + differing;
  };
  const others = app.payload.examples.filter((text) => text !== app.state.sentence);
  return others.sort((a, b) => distance(a) - distance(b))[0] ?? "";
}
