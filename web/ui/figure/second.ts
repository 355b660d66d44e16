// A second translation on the same figure: of another sentence, with the weights of another training step, or of the
// sentence before the changes. The words of the second translation are shown under the words of the first, the lines
// of the second translation are dashed, and weights that differ are outlined.
import { largestPlace, rowOfHead } from "../../engine/tensor.ts";
import {
  alignment,
  largestChanges,
  MARKED_FROM,
  weightChanges,
  wordChanges,
} from "../../engine/alignment.ts";
import { BLANK_BELOW, numberText } from "../../engine/number_text.ts";
import { messageOf } from "../app/app.ts";
import { button, chooser, element, named, refill } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";
import { FAMILIES, attentionName, layersOf, placeIn } from "../app/heads.ts";
import { joinMarks, labelsOf } from "../app/translator.ts";
import { familyOf } from "./choices.ts";
import { ribbonHeight, ribbonPath } from "./ribbons.ts";
import { rowPathOf } from "./row_path.ts";
import { path, text } from "./pen.ts";
import { unknownWords } from "./sentences.ts";
import { arcPath } from "./strands.ts";
import { headName, probabilityWords, tokenName } from "../app/wording.ts";
import { checkpointSteps, stepName } from "../app/checkpoints.ts";

import type { Tensor } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child, FamilyId, Selection, Translated } from "../app/types.ts";
import type { StackPlace } from "./geometry.ts";
import type { Pen } from "./pen.ts";
import type { Pair, Seat, Second, StageNumbers } from "./shown.ts";

const MOST_WEIGHTS = 3;
/** The last comparison, which is reused for every word that the reader highlights. */
const last: WeakMap<App, { key: unknown[]; made: Promise<Second> }> = new WeakMap();

/** Returns the second translation that the reader has asked for, or null. */
async function secondOf(app: App): Promise<Second | null> {
  const { second, chapter } = app.state;
  const { reference, current } = app.result;
  if (!second || chapter > 0 || app.engine.live === false) return null;
  const own = second.text.trim();
  if (!own && second.step === undefined && !app.changed) return null;
  const key = [current, reference, own, second.step];
  const known = last.get(app);
  const made =
    known?.key.every((one, at) => one === key[at]) === true
      ? known.made
      : compared(app, current, own, second.step);
  last.set(app, { key, made });
  return made.catch((error) => {
    app.complain(messageOf(error));
    return null;
  });
}

async function compared(
  app: App,
  here: Translated,
  own: string,
  step: number | null | undefined,
): Promise<Second> {
  const isBefore = !own && step === undefined;
  const there = isBefore ? app.result.reference : await otherOf(app, here, own, step);
  const pairs = {
    source: alignment(here.sourceIds, there.sourceIds),
    target: alignment(here.targetIds, there.targetIds),
  };
  const words = wordChanges(here.hypothesis, there.hypothesis);
  const changes: Second["changes"] = new Map();
  for (const family of FAMILIES)
    for (let layer = 0; layer < layersOf(app.config, family); layer++) {
      const name = `${attentionName(family, layer)}.weights`;
      const [one, other] = await Promise.all([here, there].map(({ trace }) => trace.get(name)));
      const sides = [here, there].map((each) => labelsOf(each, name).columnSide ?? family.columns);
      if (sides[0] === sides[1])
        changes.set(name, weightChanges(one, other, pairs[family.rows], pairs[sides[0]]));
    }
  return {
    translated: there,
    isBefore,
    source: seats(there.sourceTokens, here.sourceTokens.length, pairs.source),
    written: seats(
      there.outputTokens,
      here.outputTokens.length,
      words.map(({ pair }) => pair),
      words.map(({ change }) => change),
    ),
    rows: pairs.target,
    lit: {},
    changes,
  };
}

/** Returns the second translation, under the same changes but with the weights of `step` if one is chosen. */
function otherOf(app: App, { changes }: Translated, own: string, step: number | null | undefined) {
  const checkpoint = step === undefined ? changes.checkpoint : step;
  const text = own || (app.changes.source ?? app.state.sentence);
  return app.translated(text, app.changes.prefix ?? "", { ...changes, checkpoint });
}

/**
 * Returns the tokens of the second translation, each with a column of the first translation: a shared word gets the
 * column of its counterpart, and other words get the columns between shared words, in order.
 */
function seats(tokens: string[], columns: number, pairs: Pair[], changes: number[] = []): Seat[] {
  let [column, at] = [-1, 0];
  return tokens.map((token, place) => {
    while (at < pairs.length && pairs[at][1] < place) at++;
    const isOwn = pairs[at]?.[1] !== place;
    const next = pairs[at]?.[0] ?? columns; // the column of the next shared word
    column = isOwn ? Math.max(0, Math.min(column + 1, next - 1)) : next;
    return { column, token, isOwn, change: isOwn ? 0 : (changes[at] ?? 0) };
  });
}

/** Returns the words of the second translation that are shown in a column; "" if the column has none. */
export function seated(all: Seat[], column: number, t: App["t"]) {
  const here = all.filter((one) => one.column === column);
  return here.map(({ token }) => tokenName(token, t)).join(" ");
}

/** Adds the second translation's highlighted rows to the numbers of the figure. */
export async function withSecond(app: App, numbers: StageNumbers): Promise<StageNumbers> {
  const second = await secondOf(app);
  if (!second) return numbers;
  const lit: Second["lit"] = {};
  for (const family of FAMILIES) {
    const attention = attentionName(family, numbers.open[family.stack]);
    const weights = await second.translated.trace.get(`${attention}.weights`);
    lit[family.id] = rowIn(numbers, family.id, second, weights);
  }
  return { ...numbers, second: { ...second, lit }, before: { ...numbers.before, rows: {}, word: null } };
}

/**
 * Returns the row of the second translation that belongs to the same word as the highlighted row of the first
 * translation; undefined if the second translation lacks this word. Each weight stands at the index of the same word in
 * the first translation.
 */
function rowIn(numbers: StageNumbers, id: FamilyId, { rows, source }: Second, weights: Tensor) {
  const own =
    id === "encoder"
      ? source.findIndex(({ column, isOwn }) => column === numbers.source && !isOwn)
      : (rows.find(([here]) => here === numbers.row)?.[1] ?? -1);
  if (own < 0) return undefined;
  const row = new Float32Array(numbers.rows[id].length);
  const isOfSource = id === "encoder" || (id === "cross" && numbers.steps.crossKeyValue.side === "source");
  rowOfHead(weights, numbers.heads[id], own).forEach((weight, key) => {
    const at = isOfSource ? source[key]?.column : rows.find(([, there]) => there === key)?.[0];
    if (at !== undefined) row[at] += weight;
  });
  return row;
}

// Drawing

/**
 * Draws the second translation: its words under the words of the first translation, its highlighted rows as dashed
 * lines, and outlines where weights differ.
 */
export function drawSecond(pen: Pen): Child[] {
  const { geometry, numbers } = pen;
  const { second } = numbers;
  if (!second) return [];
  const { encoder, decoder, narrow, written } = geometry;
  return [
    ...FAMILIES.flatMap(({ id }) => [...dashed(pen, second, id), ...outlines(pen, second, id)]),
    !narrow && [
      ...words(pen, encoder, second.source, encoder.words[1] + 15, "var(--src)"),
      ...words(pen, decoder, second.written, written[1] + 6, "var(--tgt)"),
      ...second.written.flatMap(({ column, change }) =>
        Math.abs(change) < BLANK_BELOW || !decoder.columns.shown[column]
          ? []
          : [label(decoder.columns.at[column], written[1] + 22, numberText(change, 2, true))],
      ),
    ],
  ];
}

function label(x: number, y: number, content: Child, colour = "var(--ink3)") {
  return text(x, y, content, { anchor: "middle", fill: colour, kind: "gfs-second-word" });
}

/**
 * Draws the second translation's words under the words of a stack; words that only the second translation has are
 * coloured and underlined.
 */
function words(pen: Pen, { columns }: StackPlace, seats: Seat[], y: number, colour: string) {
  return columns.at.flatMap((x, column) => {
    const here = columns.shown[column] ? seats.filter((one) => one.column === column) : [];
    if (here.length === 0) return [];
    const parts = here.map(({ token, isOwn }, at) => [
      at > 0 && " ",
      drawing("tspan", isOwn ? { class: "gfs-own", fill: colour } : {}, tokenName(token, pen.t)),
    ]);
    return [label(x, y, parts)];
  });
}

function dashed(pen: Pen, { lit }: Second, id: FamilyId) {
  const { geometry, numbers } = pen;
  const row = lit[id];
  if (!row) return [];
  const { isArc, place, query, family } = rowPathOf(pen, id);
  return [...row.keys()]
    .filter((key) => row[key] >= MARKED_FROM)
    .map((key) => {
      const way = isArc
        ? arcPath(place, key, query, family.sublayer)
        : `${ribbonPath(geometry, key, numbers.read.length)}H${place.columns.at[query]}`;
      return path(way, "var(--ink)", 0.75 + 1.5 * row[key], { class: "gfs-second-line" });
    });
}

/**
 * Draws an outline around each weight of the shown head that differs much, with its value in the second translation.
 */
function outlines(pen: Pen, { changes }: Second, id: FamilyId) {
  const { geometry, numbers } = pen;
  const { isArc, place, query, attention, head, tokens, family } = rowPathOf(pen, id);
  const change = changes.get(`${attention}.weights`);
  if (!change) return [];
  const { translated, weights, at } = numbers;
  const readers = id === "encoder" ? translated.sourceTokens : translated.outputTokens;
  const last = id === "encoder" ? Infinity : query + 1;
  const made: SVGElement[] = [];
  for (let row = 0; row < Math.min(change.shape[1], last); row++)
    rowOfHead(change, head, row).forEach((more, key) => {
      if (Math.abs(more) <= MARKED_FROM || key >= tokens.length) return;
      const here = rowOfHead(weights[id], head, row)[key];
      const names = [readers[row] ?? "", tokens[key]].map((token) => tokenName(token, pen.t));
      const values = [here, here + more].map(probabilityWords);
      const way = arcPath(place, key, row, family.sublayer);
      const centre = { cx: place.columns.at[row], cy: ribbonHeight(geometry, key, numbers.read.length) };
      const isHeld = row === query && key === Math.round(at[id]); // the draggable handle covers this weight
      made.push(
        drawing(
          "g",
          { class: isHeld ? "gfs-differs gfs-held" : "gfs-differs" },
          drawing("title", {}, pen.t("second.weight", ...names, ...values)),
          isArc
            ? [path(way, "var(--ink)", 1.25, { "stroke-dasharray": "1 3" }), path(way, "transparent", 9)]
            : drawing("circle", { ...centre, r: 8.5, fill: "transparent", stroke: "var(--ink)" }),
        ),
      );
    });
  return made;
}

// The panel

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
