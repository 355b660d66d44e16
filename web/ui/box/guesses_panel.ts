// The logit lens as a panel: for each box of a stack and each word, what the model would write if the model stopped
// at this box.
import { logitLens, readOutRun, sideOf } from "../../engine/lens.ts";
import { layerNames } from "../../engine/model.ts";
import { rowOf, tensor, times } from "../../engine/tensor.ts";
import { sublayersOf } from "../app/boxes.ts";
import { element } from "../app/dom.ts";
import { candidatesIn } from "../figure/figure_reading.ts";
import { probabilityWords, tokenName } from "../app/wording.ts";
import { stopButton } from "./zoom_parts.ts";

import type { Side, Stack } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Sentence } from "./opened.ts";
import type { Candidate } from "../figure/shown.ts";

/** A box whose result is read as words, and the likeliest words at each position, best first. */
export interface Guesses {
  box: string;
  name: string;
  guesses: Candidate[][];
}

const WORDS = 5;

/**
 * Returns the guesses after each box of a stack that adds something, first to last. If Python computes the model,
 * only the last box of each layer is read. `only`: the position to read; by default, all positions. Returns null for a
 * recording, which has no output matrix.
 */
export async function readGuesses(app: App, stack: Stack, only?: number): Promise<Guesses[] | null> {
  const { engine, config } = app;
  const { trace, changes } = app.result.current;
  if (engine.live === false) return null;
  const run = await readOutRun(engine, stack, changes);
  const sublayers = sublayersOf(stack).slice(engine.live === true ? 0 : -1);
  const all = layerNames(stack, config[`${stack}_layers`]).flatMap((layer, at) =>
    sublayers.map((id) => ({ part: `${layer}.${id}`, at, id })),
  );
  const found: Guesses[] = [];
  for (const { part, at, id } of all.filter(({ part }) => trace.has(`${part}.added`))) {
    const stream = await trace.get(`${part}.${run.preNorm ? "added" : "normed"}`);
    const guesses: Candidate[][] = [];
    for (const row of only === undefined ? times(stream.shape[0], Number) : [only]) {
      const one = tensor([1, stream.shape[1]], rowOf(stream, row));
      guesses.push(candidatesIn(app, logitLens(run, stack, one).data, WORDS, sideOf(stack)));
      await run.pause(); // with a large vocabulary, this takes a while
    }
    found.push({ box: `${part}.add`, name: app.t("zoom.layer", app.t(`zoom.add.from.${id}`), at), guesses });
  }
  return found;
}

/**
 * Returns the sentence about what the model would write at the open box or, if there are no guesses for this box, at
 * the last box of its layer.
 */
export function guessSentence(
  app: App,
  all: Guesses[],
  box: string,
  stack: Stack,
  row: number,
  word: string,
): Sentence {
  const layer = box.replace(/\w+\.add$/, "");
  const read = all.filter((one) => one.box.startsWith(layer));
  const { guesses, name } = read.find((one) => one.box === box) ?? read[read.length - 1];
  const [{ token, probability }] = guesses[row];
  const side: Side = stack === "encoder" ? "source" : "target";
  const words = [word, tokenName(token, app.t)].map((one) => ({ word: one, side }));
  return { key: `zoom.guess.${stack}`, values: [...words, probabilityWords(probability), name], section: "" };
}

/** Returns the panel: a row for each box, with the last box on top, and a column for each word. */
export function guessesPanel(app: App, all: Guesses[], box: string, stack: Stack, row: number): Child[] {
  const { sourceTokens, targetTokens } = app.result.current;
  const tokens = stack === "encoder" ? sourceTokens : targetTokens;
  const go = (to: string, at: number) =>
    app.show({
      zoom: { box: to, key: null },
      [stack === "encoder" ? "sourceWord" : "row"]: at,
      selected: null,
      panel: "calculation",
    });
  const cell = (to: string, words: Candidate[], at: number) => {
    const [{ token, probability }] = words;
    const title = words
      .map((one) => `${tokenName(one.token, app.t)} ${probabilityWords(one.probability)}`)
      .join("\n");
    const said = [
      element("bdi", {}, tokenName(token, app.t)),
      element("small", {}, probabilityWords(probability)),
    ];
    const made = stopButton(`guess ${to} ${at}`, said, () => go(to, at), { title });
    made.toggleAttribute("data-first", to === box && at === row);
    made.style.setProperty("--share", `${Math.round(45 * probability)}%`);
    return element("td", {}, made);
  };
  const lit = (at: number) => (at === row ? "true" : null);
  const heads = tokens.map((token, at) =>
    element("th", { scope: "col", "aria-current": lit(at) }, element("bdi", {}, tokenName(token, app.t))),
  );
  const rows = [...all].reverse().map(({ box: to, name, guesses }) =>
    element(
      "tr",
      { "aria-current": to === box ? "true" : null },
      element("th", { scope: "row" }, name),
      guesses.map((words, at) => cell(to, words, at)),
    ),
  );
  const table = element(
    "table",
    "gfz-guesses",
    element("thead", {}, element("tr", {}, element("td"), heads)),
    element("tbody", {}, rows),
  );
  for (const one of table.querySelectorAll(`tr > :nth-child(${row + 2})`)) one.classList.add("gfz-lit");
  return [element("div", "gfz-scroll gfz-panel", table)];
}
