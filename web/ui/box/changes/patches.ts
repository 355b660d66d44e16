// The section for patches: rows of a tensor that are replaced by rows of another sentence, and the effect of patching
// each row of the residual stream.
import { times } from "../../../engine/tensor.ts";
import { NO_CHANGES } from "../../../engine/changes.ts";
import { contestOf } from "../../../engine/contest.ts";
import { patchSweep, sideOf } from "../../../engine/lens.ts";
import { hasHeads, pointNames } from "../../../engine/model.ts";
import { BLANK_BELOW, numberText } from "../../../engine/number_text.ts";
import { messageOf } from "../../app/app.ts";
import { engineChanges, joinMarks } from "../../app/translator.ts";
import { chooser, element, note, refill } from "../../app/dom.ts";
import { layersOf } from "../../app/heads.ts";
import { collected } from "../../app/latest.ts";
import { chip, field, form, labelled, press, row, tokenPairs, tryChange } from "./controls.ts";
import { without } from "./lists.ts";
import type { Stack, TextPatch } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { Child, PatchDraft } from "../../app/types.ts";
import type { ChangesPanel } from "./panel_state.ts";

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
  const heads: [string, string][] = times(app.config.heads, (head) => [String(head), String(head)]);
  const head = () => chooser("", [["", app.t("changes.patch.heads")], ...heads], patch.head, pick("head"));
  return [
    form(
      () => pick("sentence")(joinMarks(app.engine.tokenizers.source, sentence.value)),
      app.t("changes.patch.use"),
      sentence,
    ),
    element(
      "div",
      "gf-fields",
      labelled(app.t("changes.patch.point"), point, "point"),
      hasHeads(app.config, patch.point) && labelled(app.t("word.head"), head(), "patch head"),
    ),
    ...(patch.sentence ? [...(await patchPositions(panel, patch)), ...sweepParts(app, patch)] : []),
  ];
}

/** Returns a new patch, which does not replace any rows yet. */
function draft(sentence: string, point: string): PatchDraft {
  return { sentence, point, head: "", key: "", pairs: [], here: 0, there: 0, donor: null, sweep: null };
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
      { class: "gf-chips", "aria-label": app.t("changes.patch.pairs") },
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
      "gf-fields",
      place("here", here),
      place("there", there),
      press("patch add", app.t("changes.patch.add"), add),
    ),
    press("patch apply", app.t("changes.apply"), apply, { className: "gf-primary", disabled }),
  ];
}

/** Translates the other sentence, and returns its tokens along the rows of the point; null if the translation fails. */
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

// The sweep

/**
 * Returns the controls that measure the effect of each single patch of the encoder's or the decoder's stream, and the
 * effects that have been measured so far.
 */
function sweepParts(app: App, patch: PatchDraft): Child[] {
  const { current: of } = app.result;
  if (patch.sweep?.of !== of || patch.sweep.sentence !== patch.sentence) {
    patch.sweep?.ending.abort();
    patch.sweep = {
      of,
      sentence: patch.sentence,
      ending: new AbortController(),
      found: element("div", { role: "status" }),
    };
  }
  const { sweep } = patch;
  const begin = (stack: Stack | null) => {
    sweep.ending.abort();
    sweep.ending = new AbortController();
    refill(sweep.found);
    const signal = AbortSignal.any([sweep.ending.signal, app.signal]);
    return stack && app.attempt(() => measure(app, patch.sentence, stack, sweep.found, signal));
  };
  const stacks = ["encoder", "decoder"] as const;
  return [
    element("h3", {}, app.t("changes.sweep")),
    note(app.t("changes.sweep.about")),
    row(
      stacks.map((stack) => press(`sweep ${stack}`, app.t(`changes.sweep.${stack}`), () => begin(stack))),
      press("sweep stop", app.t("changes.sweep.stop"), () => begin(null)),
    ),
    sweep.found,
  ];
}

/**
 * Replaces one row of the residual stream at a time by a row of the other sentence's stream, and shows the effects as a
 * table.
 */
async function measure(app: App, sentence: string, stack: Stack, holder: HTMLElement, signal: AbortSignal) {
  const { current } = app.result;
  const other = await app.translated(sentence, "", { ...current.changes, patches: [] });
  const contest = contestOf(
    { sourceIds: current.sourceIds, ids: current.hypothesis.ids },
    { sourceIds: other.sourceIds, ids: other.hypothesis.ids },
  );
  if (!contest) return refill(holder, app.t("changes.sweep.same"));
  const [mine] = contest.cases;
  const donor = { sourceIds: other.sourceIds, targetIds: [app.config.bos_id, ...contest.prefixIds] };
  const length =
    stack === "encoder" ? Math.min(current.sourceIds.length, donor.sourceIds.length) : donor.targetIds.length;
  const layers = layersOf(app.config, { stack }) + 1; // the layers, and the input of the first layer
  const steps = patchSweep(app.engine, { ...contest, cases: [mine] }, donor, stack, length, current.changes);
  const found = await collected(app, holder, steps, layers * length, signal);
  if (signal.aborted) return;
  const largest = Math.max(...found.map(({ effect }) => Math.abs(effect))) || 1;
  const cell = ({ effect }: { effect: number }) => {
    const text = Math.abs(effect) < BLANK_BELOW ? "" : numberText(effect, 1, true);
    const style = `--share: ${Math.round((45 * Math.abs(effect)) / largest)}%`;
    const data = element("data", { value: String(effect) }, text);
    return element("td", { style, class: effect < 0 ? "gf-minus" : "" }, data);
  };
  const head = (scope: string, text: string) => element("th", { scope }, element("bdi", {}, text));
  const tokens = current[`${sideOf(stack)}Tokens`].slice(0, length);
  const names = times(layers, (at) => app.t(at ? "stage.layer" : "why.part.input", at - 1));
  const rows = tokens.map((token, at) =>
    element("tr", {}, head("row", token), found.filter(({ position }) => position === at).map(cell)),
  );
  const [word, rival] = app.engine.tokens("target", [mine.word, mine.rival]);
  refill(
    holder,
    element("p", {}, app.t("changes.sweep.effect", word, rival)),
    element(
      "div",
      { class: "gf-scroll", tabindex: "0", role: "group", "aria-label": app.t("changes.sweep") },
      element(
        "table",
        "gf-table gf-coloured",
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            element("td"),
            names.map((name) => head("col", name)),
          ),
        ),
        element("tbody", {}, rows),
      ),
    ),
  );
}

/**
 * Returns the pairs of positions with different words, between the common beginning and the common end of both
 * sentences.
 */
function differingPlaces(here: string[], there: string[]): [number, number][] {
  const least = Math.min(here.length, there.length);
  let start = 0,
    end = 0;
  while (start < least && here[start] === there[start]) start++;
  while (end < least - start && here.at(-1 - end) === there.at(-1 - end)) end++;
  const places = times(least - start - end, (place) => start + place);
  return places.filter((place) => here[place] !== there[place]).map((place) => [place, place]);
}

/**
 * Returns the example that is most similar to the present sentence: the example with the fewest different words, of
 * the same length if possible.
 */
function likestExample(app: App) {
  const words = app.state.sentence.split(" ");
  const distance = (text: string) => {
    const others = text.split(" ");
    const differing = others.filter((word, place) => word !== words[place]).length;
    return Math.abs(others.length - words.length) * 100 + differing;
  };
  const others = app.payload.examples.filter((text) => text !== app.state.sentence);
  return others.sort((a, b) => distance(a) - distance(b))[0] ?? "";
}
