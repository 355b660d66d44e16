// The beam tree: every candidate of the search, whether the candidate was kept, and how the length penalty ranks the
// finished candidates.
import { numberText } from "../../engine/number_text.ts";
import { button, chooser, element, named, note, refill, tokenElement, watchSize } from "../app/dom.ts";
import { remark, slider } from "../app/drawing.ts";
import { SCORE_FORMULA, scoreOf, scoreText } from "../../engine/search.ts";
import { BeamTree, pathTo } from "./beam_tree.ts";
import { elementSvg, saveMenu } from "./take_away.ts";

import type { Decoding, TreeNode } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { End } from "./beam_tree.ts";
import type { Child, Search } from "../app/types.ts";

/** The reader's settings: the length penalty, the number of pruned candidates shown per step, and the chosen node. */
interface State {
  alpha: number;
  pruned: number;
  looked: number | null;
}

const LARGEST_BEAM = 8;

/** Returns the panel as an element. */
export function createBeamPanel(app: App) {
  const state: State = { alpha: app.state.search.lengthPenalty, pruned: 2, looked: null };
  const [bar, details, ranking] = [element("div", "gf-controls"), element("div", "gf-path"), element("div")];
  const about = note();
  const tree = new BeamTree(app, look);
  const again = button("", () => searchAgain(app, { lengthPenalty: state.alpha }));
  const list = element("div", "gf-scroll");
  const body = element("div", {}, bar, about, tree.element, details, ranking);
  const dialog = element("dialog", "gf-dialog");
  const panel = element("div", "gf-beam", body, dialog);
  let drawn = 0;

  const decoding = () => ({ ...app.engine.decoding, length_penalty: state.alpha });

  function look(id: number) {
    state.looked = id;
    refill(details, pathDetails(app, app.result.current.search.tree, id, decoding()));
    tree.trace(id);
  }

  function fill(more: Partial<State> = {}) {
    Object.assign(state, more);
    const { beamSize } = app.state.search;
    const kind = app.t(beamSize === 1 ? "beam.greedy" : "beam.about", beamSize);
    refill(
      bar,
      app.engine.live !== false && sizeChooser(app),
      prunedChooser(app, state.pruned, (pruned) => draw({ pruned })),
      named(
        button("⤢", () => enlargeIn(app, dialog, body, draw), { className: "gf-larger" }),
        app.t("beam.larger"),
      ),
      saveMenu(app, "beam", () => elementSvg(app, tree.element, kind)),
    );
    about.textContent = `${kind} ${app.t("beam.legend")}`;
    again.textContent = app.t("beam.again");
    // without a chosen node, the view follows the best path
    const alpha = alphaSlider(state.alpha, (value) => draw({ alpha: value, looked: null }));
    refill(ranking, penaltyText(app), alpha, app.engine.live !== false && again, list);
    draw();
  }

  function draw(more: Partial<State> = {}) {
    Object.assign(state, more);
    drawn = body.clientWidth;
    if (!drawn) return; // a hidden panel is drawn when it is opened
    const { tree: nodes } = app.result.current.search;
    const ends = rankedEnds(nodes, decoding());
    again.disabled = state.alpha === app.state.search.lengthPenalty;
    refill(list, rankingTable(app, ends, look));
    tree.draw(nodes, ends, state.pruned, dialog.open);
    look(state.looked !== null && tree.has(state.looked) ? state.looked : ends[0].node.id);
  }

  dialog.addEventListener("close", () => {
    panel.prepend(body);
    draw();
  });
  app.on(["result"], ({ search }) => fill({ alpha: search.lengthPenalty, looked: null }));
  app.on(["busy"], ({ busy }) => (panel.ariaBusy = String(busy)));
  app.on(["language"], () => fill());
  watchSize(app.signal, body, () => drawn !== body.clientWidth && draw());
  fill();
  return panel;
}

/** Shows the body of the panel in a dialog, and draws it there. */
function enlargeIn(app: App, dialog: HTMLDialogElement, body: HTMLElement, draw: () => void) {
  dialog.ariaLabel = app.t("panel.beam");
  refill(
    dialog,
    button(app.t("word.close"), () => dialog.close(), { className: "gf-close" }),
    body,
  );
  dialog.showModal();
  draw();
}

function penaltyText(app: App): Child[] {
  return [element("h3", {}, app.t("beam.penalty")), remark(app.t("beam.penalty.about", SCORE_FORMULA))];
}

/** Returns a list that chooses the size of the beam, and searches again. */
function sizeChooser(app: App) {
  const { beamSize } = app.state.search;
  const sizes = Array.from({ length: Math.max(LARGEST_BEAM, beamSize) }, (_, at) => String(at + 1));
  const list = chooser(
    app.t("beam.size"),
    sizes.map((one) => [one, one] as const),
    String(beamSize),
    (next) => searchAgain(app, { beamSize: Number(next) }),
  );
  return element("label", {}, app.t("beam.size"), list);
}

/** Returns a list that chooses how many pruned candidates are shown per step. */
function prunedChooser(app: App, pruned: number, choose: (pruned: number) => void) {
  const kinds: [string, string][] = [
    ["0", app.t("beam.pruned.none")],
    ["2", app.t("beam.pruned.best")],
    ["Infinity", app.t("beam.pruned.all")],
  ];
  return chooser(app.t("beam.show"), kinds, String(pruned), (next) => choose(Number(next)));
}

function alphaSlider(value: number, change: (value: number) => void) {
  const range = { low: Math.min(0, value), high: Math.max(2, value), step: 0.05 };
  return slider("α", { ...range, value, written: (one) => numberText(one, 2) }, change);
}

function searchAgain(app: App, search: Partial<Search>) {
  return app.attempt(() => app.searchWith(search));
}

/** Returns the finished candidates, best first; ties keep the order of the search. */
function rankedEnds(nodes: TreeNode[], decoding: Decoding) {
  const ends = nodes
    .filter(({ state }) => state === "finished")
    .map((node) => {
      const length = node.position + 1;
      return { node, length, score: scoreOf(node.logProb, length, decoding) };
    });
  return ends.sort((a, b) => b.score - a.score);
}

/** Returns the text of a path through the tree, without <eos>. */
function textOf(app: App, path: TreeNode[]) {
  return app.engine.decode(path.filter(({ state }) => state !== "finished").map(({ token }) => token));
}

/**
 * Returns the details of a node: the text so far, the terms of its log probability, and the arithmetic of its score.
 */
function pathDetails(app: App, nodes: TreeNode[], id: number, decoding: Decoding): Child[] {
  const node = nodes[id];
  const path = pathTo(nodes, id);
  if (path.length === 0) return [remark(app.t("beam.root"))];
  const terms = path.map(({ text, tokenLogProb }) =>
    element("span", {}, tokenElement(text), numberText(tokenLogProb, 4)),
  );
  const sum = numberText(node.logProb, 4);
  const score = numberText(scoreOf(node.logProb, path.length, decoding), 4);
  const formula = `${app.t("word.score")} = ${scoreText(node.logProb, path.length, decoding)} = `;
  return [
    element(
      "p",
      {},
      element("b", {}, element("bdi", {}, textOf(app, path) || "–")),
      ` · ${app.t(`beam.${node.state}`)}`,
    ),
    element("p", "gf-sum", "log p = ", ...terms.flatMap((term) => [term, " "]), "= ", element("b", {}, sum)),
    node.state === "finished"
      ? element("p", "gf-mono", formula, element("b", {}, score))
      : remark(app.t(`beam.${node.state}.about`)),
  ];
}

/** Returns the finished hypotheses as a table, best first. */
function rankingTable(app: App, ends: End[], look: (id: number) => void) {
  const names = ["#", app.t("beam.text"), "n", "log p", app.t("word.score")];
  const heads = names.map((name) => element("th", { scope: "col" }, name));
  const text = (node: TreeNode) => textOf(app, pathTo(app.result.current.search.tree, node.id)) || "–";
  const rows = ends.map(({ node, length, score }, at) =>
    element(
      "tr",
      {},
      element("td", {}, String(at + 1)),
      element(
        "td",
        {},
        button(element("bdi", {}, text(node)), () => look(node.id), { className: "gf-link" }),
      ),
      element("td", {}, String(length)),
      element("td", {}, numberText(node.logProb, 3)),
      element("td", {}, numberText(score, 3)),
    ),
  );
  return element(
    "table",
    "gf-table gf-ranking",
    element("thead", {}, element("tr", {}, heads)),
    element("tbody", {}, rows),
  );
}
