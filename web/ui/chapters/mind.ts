// The act about the guess so far: the word that the model would write after each step of the decoder. The figure rises
// with it, box by box.
import { times } from "../../engine/tensor.ts";
import { boxName, sublayersOf } from "../app/boxes.ts";
import { button, element, letArrowsMove } from "../app/dom.ts";
import { headsAt } from "../app/heads.ts";
import { languageNames, probabilityWords, tokenName } from "../app/wording.ts";
import { readGuesses } from "../box/guesses_panel.ts";
import { wantsStillness } from "../figure/glide.ts";

import type { App } from "../app/app.ts";
import type { StageNumbers } from "../figure/shown.ts";
import type { Act, Found } from "./act.ts";

const PACE = 1000; // milliseconds for each step
const MOST = 3; // with more layers, a layer has a single step

/** A step of the decoder: a sub-layer whose result is added. */
interface Step {
  id: string;
  box: string;
  layer: number;
}

function stepsOf({ config }: App): Step[] {
  const sublayers = sublayersOf("decoder").slice(config.decoder_layers > MOST ? -1 : 0);
  return times(config.decoder_layers, (layer) =>
    sublayers.map((id) => ({ id, layer, box: `decoder.${id}.add` })),
  ).flat();
}

/** Returns the place of the highlighted step; if the reader has chosen another box, of the last step. */
function shownIn({ state }: App, steps: Step[]) {
  const { box, heads } = state;
  const at = steps.findIndex((one) => one.box === box && one.layer === heads.decoder.layer);
  return at < 0 ? steps.length - 1 : at;
}

const lit = ({ state }: App, { box, layer }: Step) => ({
  box,
  heads: headsAt(state.heads, "decoder", layer),
});

/** Returns the act, which highlights the shown step. */
export function mindAct(app: App): Act {
  const steps = stepsOf(app);
  const at = shownIn(app, steps);
  const { id, box } = steps[at];
  return {
    id: "mind",
    box,
    lit: [box],
    risen: { encoder: "all", decoder: at < steps.length - 1 ? `${id}.add` : "all" },
    looks: async () => {
      if (!wantsStillness()) void play(app, steps);
      return lit(app, wantsStillness() ? steps[steps.length - 1] : steps[0]);
    },
    found: (_, numbers) => mindOf(app, steps, at, numbers),
  };
}

/** Highlights one step after the other, until the reader chooses a step or leaves the act. */
async function play(app: App, steps: Step[]) {
  const { chapter, act } = app.state;
  for (let at = 0; at < steps.length - 1; at++) {
    await new Promise((go) => setTimeout(go, PACE));
    const { state, signal } = app;
    if (signal.aborted || state.chapter !== chapter || state.act !== act || shownIn(app, steps) !== at)
      return;
    app.show(lit(app, steps[at + 1]));
  }
}

async function mindOf(app: App, steps: Step[], at: number, { row }: StageNumbers): Promise<Found> {
  const all = (await readGuesses(app, "decoder", row)) ?? [];
  const guesses = steps.map(({ id, layer }) => {
    const read = all.find(({ box }) => box === boxName("decoder", `${id}.add`, layer));
    const { token = "", probability = 0 } = read?.guesses[0][0] ?? {};
    return { word: tokenName(token, app.t), probability };
  });
  const path = guesses.map(({ word }) => word).filter((word, place, words) => word !== words[place - 1]);
  const from = languageNames(app).source;
  const items = steps.map((step, place) => {
    const { word, probability } = guesses[place];
    const isKnown = place <= at;
    const said = [
      element("b", {}, app.t(`mind.${step.id}`, from)),
      element("small", {}, app.t(`zoom.add.from.${step.id}`)),
      element("bdi", {}, isKnown ? word : "…"),
      element("small", {}, isKnown ? probabilityWords(probability) : " "),
    ];
    const one = button(said, () => app.show(lit(app, step)));
    if (place === at) one.ariaCurrent = "step";
    one.tabIndex = place === at ? 0 : -1;
    const isNew = step.layer !== steps[place - 1]?.layer;
    return element("li", {}, element("small", {}, isNew ? app.t("stage.layer", step.layer) : "\u00a0"), one);
  });
  const picture = element("ol", { class: "gfs-mind", "aria-label": app.t("stage.guesses") }, items);
  letArrowsMove(picture, () => [...picture.querySelectorAll("button")]);
  return {
    values: { path: path.map((word) => `“${word}”`).join(" → ") },
    variant: path.length > 1 ? "" : "same",
    picture,
  };
}
