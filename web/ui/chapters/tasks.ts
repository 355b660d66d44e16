// Tasks from the book's exercises. An address with `task=NAME` shows a task below the page, with a mark once the task
// is done. The texts are the strings `task.NAME`.
import { largestPlace, logSoftmax, rowOf, rowOfHead, tensor } from "../../engine/tensor.ts";
import { messageOf } from "../app/app.ts";
import { button, element, named } from "../app/dom.ts";
import { latestOnly } from "../app/latest.ts";
import { actOf } from "./chapters.ts";
import { litRow } from "../figure/lighting.ts";

import type { App } from "../app/app.ts";
import type { State } from "../app/state.ts";

const READ: (keyof State)[] = [
  "task",
  "busy",
  "result",
  "row",
  "sourceWord",
  "heads",
  "zoom",
  "selected",
  "chapter",
  "act",
  "temperature",
  "second",
  "language",
];

/** For each task, a function that returns whether the present state and result fulfil the task. */
export const TASKS: Record<string, (app: App) => boolean | Promise<boolean>> = {
  turn: (app) => isAny(app.changes.overrides) && writes(app, "elle"),
  head: async (app) =>
    Object.values(app.changes.ablated).flat().length === 1 && (await logChance(app, "il")) < Math.log(0.5),
  what_if: (app) => {
    const { reference, current } = app.result;
    const [old, now] = [reference, current].map(({ sourceIds }) => sourceIds);
    return (
      old.length === now.length && old.filter((id, at) => id !== now[at]).length === 1 && writes(app, "elle")
    );
  },
  hide: async (app) => isAny(app.changes.masks) && (await logChance(app, "il")) < Math.log(0.1),
  mistake: ({ changes, result }) =>
    changes.mistakes.length > 0 && result.current.text !== result.reference.text,
  temperature: async (app) =>
    actOf(app)?.id === "temperature" && (await logChance(app, "il", app.state.temperature)) > Math.log(0.99),
  beam: ({ result }) => result.current.search.hypotheses.some(({ tokens }) => tokens.includes("elle")),
  look: async (app) => {
    const { sourceTokens } = app.result.current;
    const { layer, head } = app.state.heads.encoder;
    const read = sourceTokens.indexOf("it");
    if (app.state.sourceWord !== read) return false;
    const weights = await weightsIn(app, `encoder.layers.${layer}.self_attention`, head, read);
    return sourceTokens[largestPlace(weights)] === "tired";
  },
  attention: async (app) => {
    const { outputTokens, sourceTokens } = app.result.current;
    const { zoom, heads } = app.state;
    const row = await litRow(app);
    if (!zoom || !isOpen(app, /cross_attention$/) || outputTokens[row] !== "il") return false;
    return (await weightsIn(app, zoom.box, heads.cross.head, row))[sourceTokens.indexOf("animal")] > 0.9;
  },
  feed_forward: async (app) => {
    const found = isOpen(app, /feed_forward$/) && (await chosen(app, /\.(hidden|activated)$/));
    return found !== false && found <= 0;
  },
  norm: async (app) => {
    const { zoom } = app.state;
    const { box, key } = zoom ?? { box: "", key: null };
    if (key === null || !isOpen(app, /\.add$/)) return false;
    const row = box.startsWith("encoder") ? await litSource(app) : await litRow(app);
    const name = box.replace(/\.add$/, "");
    const [before, after] = await Promise.all(
      ["input", "added"].map(async (point) => rowOf(await app.value(`${name}.${point}`), row)[key]),
    );
    return before * after < 0;
  },
  positions: async (app) => {
    const found = isOpen(app, /positions$/) && (await chosen(app, /\.positions$/));
    return found !== false && Math.abs(found) < 0.01;
  },
  softmax: async (app) => {
    const { tokenLogProbs } = app.result.current.hypothesis;
    return isOpen(app, /softmax$/) && tokenLogProbs[await litRow(app)] === Math.min(...tokenLogProbs);
  },
  learning: (app) => app.changes.checkpoint !== null && writes(app, "elle"),
  second: async (app) => {
    const text = app.state.second?.text.trim();
    if (!text || writes(app, "elle")) return false;
    return (await app.translated(text, "", app.result.current.changes)).outputTokens.includes("elle");
  },
};

const isAny = (byAttention: object) => Object.keys(byAttention).length > 0;
const isOpen = ({ state: { zoom } }: App, box: RegExp) => box.test(zoom?.box ?? "");
const writes = ({ result }: App, word: string) => result.current.outputTokens.includes(word);

/**
 * Returns log p, in the present model, of a word of the unchanged translation. The result is −∞ if the output differs
 * before the word, and NaN if the unchanged translation lacks the word.
 */
async function logChance(app: App, word: string, temperature = 1) {
  const { reference, current } = app.result;
  const row = reference.outputTokens.indexOf(word);
  const isAlike = reference.hypothesis.ids.slice(0, row).every((id, at) => id === current.hypothesis.ids[at]);
  if (row < 0 || !isAlike) return row < 0 ? NaN : -Infinity;
  const logits = rowOf(await app.value("logits"), row).map((one) => one / temperature);
  return logSoftmax(tensor([1, logits.length], logits)).data[reference.hypothesis.ids[row]];
}

/** Returns the index of the highlighted source word. */
async function litSource(app: App) {
  const { layer, head } = app.state.heads.cross;
  const read = weightsIn(app, `decoder.layers.${layer}.cross_attention`, head, await litRow(app));
  return app.state.sourceWord ?? largestPlace(await read);
}

/** Returns one row of weights of a head. */
async function weightsIn(app: App, attention: string, head: number, row: number) {
  return rowOfHead(await app.value(`${attention}.weights`), head, row);
}

/** Returns the number that the reader has opened if its point matches, otherwise false. */
async function chosen(app: App, point: RegExp) {
  const { selected } = app.state;
  if (!selected || !point.test(selected.name)) return false;
  const [row, at] = selected.index;
  return rowOf(await app.value(selected.name), row)[at];
}

/** Returns the line that shows the task; the line is hidden if the address names no task. */
export function createTask(app: App) {
  const [name, said, found] = [element("strong"), element("span"), element("span", { role: "status" })];
  const leave = button("×", () => app.show({ task: "" }));
  const made = element("aside", "gf-task", name, said, found, leave);
  let done = "";
  const read = async () => {
    const { task, busy } = app.state;
    return task && (done === task || (!busy && (await TASKS[task](app)))) ? task : "";
  };
  const show = (kept: string) => {
    const { task } = app.state;
    done = kept;
    made.hidden = !task;
    made.toggleAttribute("data-done", done !== "");
    if (!task) return;
    made.ariaLabel = name.textContent = app.t("task.name");
    said.textContent = app.t(`task.${task}`);
    found.textContent = app.t(done ? "task.done" : "task.open");
    named(leave, app.t("task.leave"));
  };
  const follow = latestOnly(app.signal, read, show);
  const look = () => void follow().catch((error) => app.complain(messageOf(error)));
  app.on(READ, look);
  look();
  return made;
}
