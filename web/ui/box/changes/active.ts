// The reader's active changes, each with a function that undoes the change.
import { placeName } from "./choosers.ts";
import { withList, without } from "./lists.ts";
import type { App } from "../../app/app.ts";
import type { MaskCell, TextChanges } from "../../../engine/types.ts";
import type { ActiveChange, SomeChanges } from "../../app/types.ts";

/** Returns a change that one action made, or none. */
function one(on: boolean, section: ActiveChange["section"], text: string, undo: SomeChanges): ActiveChange[] {
  return on ? [{ section, id: Object.keys(undo)[0], text, undo: () => undo }] : [];
}

/** Returns a change for each entry of a list. */
function each<Entry>(
  list: Entry[],
  section: ActiveChange["section"],
  id: (entry: Entry) => unknown,
  text: (entry: Entry) => string,
  undo: (entry: Entry, changes: TextChanges) => SomeChanges,
): ActiveChange[] {
  return list.map((entry) => ({
    section,
    id: `${section} ${JSON.stringify(id(entry))}`,
    text: text(entry),
    undo: (changes) => undo(entry, changes),
  }));
}

/** Returns the active changes. */
export function activeChanges(app: App): ActiveChange[] {
  const { source, prefix, checkpoint, positions, scale, mistakes, patches, ablated } = app.changes;
  const { sentence } = app.state;
  const { t } = app;
  return [
    ...one((source ?? sentence) !== sentence, "words", t("changes.is.source", source ?? ""), {
      source: sentence,
    }),
    ...one(Boolean(prefix), "words", t("changes.is.prefix", prefix ?? ""), { prefix: "" }),
    ...each(
      Object.entries(ablated),
      "heads",
      ([name]) => name,
      ([name, heads]) => t("changes.is.ablated", heads.join(", "), placeName(app, name)),
      ([name], changes) => ({ ablated: withList(changes.ablated, name, []) }),
    ),
    ...activeMasks(app),
    ...activeRows(app),
    ...each(
      patches,
      "patch",
      (patch) => patch,
      ({ point, sentence: other, positions: pairs }) => {
        const words = pairs.map(([to]) => app.labels(point).rows[to] ?? to).join(" ");
        return t("changes.is.patch", words, other, point);
      },
      (patch, changes) => ({ patches: without(changes.patches, patch) }),
    ),
    ...one(!positions, "parts", t("changes.positions"), { positions: true }),
    ...one(!scale, "parts", t("changes.scale"), { scale: true }),
    ...each(
      mistakes,
      "mistakes",
      (id) => id,
      (id) => t(`mistake.${id}`),
      (id, changes) => ({ mistakes: without(changes.mistakes, id) }),
    ),
    ...one(checkpoint !== null, "training", t("changes.is.checkpoint", checkpoint ?? 0), {
      checkpoint: null,
    }),
  ];
}

/**
 * Returns the text of a change; if the change only concerns positions that the present sentence lacks, the text says
 * so.
 */
function said(app: App, isHere: boolean, text: string) {
  return isHere ? text : app.t("changes.elsewhere", text);
}

/** Returns the changes of masks; cells with the same key and value count as one change. */
export function activeMasks(app: App): ActiveChange[] {
  const { masks } = app.changes,
    kind = ([, key, may]: MaskCell) => `${key} ${may}`;
  return Object.entries(masks).flatMap(([name, cells]) => {
    const { rows, columns } = app.labels(`${name}.weights`);
    return [...new Set(cells.map(kind))].map((alike) => {
      const [[query, key, may], ...more] = cells.filter((cell) => kind(cell) === alike);
      const others = ({ masks }: TextChanges) => (masks[name] ?? []).filter((cell) => kind(cell) !== alike);
      const who = more.length > 0 ? app.t("changes.many", more.length + 1) : `“${rows[query] ?? query}”`;
      return {
        section: "masks",
        id: `masks ${name} ${alike}`,
        text: said(
          app,
          [[query, key], ...more].some((cell) => cell[0] < rows.length && cell[1] < (columns?.length ?? 0)),
          app.t(`changes.is.${may ? "open" : "blocked"}`, who, columns?.[key] ?? key, placeName(app, name)),
        ),
        undo: (changes) => ({ masks: withList(changes.masks, name, others(changes)) }),
      };
    });
  });
}

function activeRows(app: App): ActiveChange[] {
  const { overrides } = app.changes;
  return Object.entries(overrides).flatMap(([name, rows]) =>
    rows.map((one) => {
      const word = app.labels(`${name}.weights`).rows[one[1]];
      return {
        section: "hand",
        id: `hand ${name} ${one.slice(0, 2)}`,
        text: said(
          app,
          word !== undefined,
          app.t("changes.is.override", word ?? one[1], one[0], placeName(app, name)),
        ),
        undo: ({ overrides }) => ({
          overrides: withList(overrides, name, without(overrides[name] ?? [], one)),
        }),
      };
    }),
  );
}
