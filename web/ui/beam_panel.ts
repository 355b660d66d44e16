// The beam tree: every candidate of the search, whether it was kept, and how the length penalty ranks
// the finished ones.
import { numberText } from "../engine/number_text.ts";
import { button, chooser, element, refill, tokenElement } from "./dom.ts";
import { drawing, remark, slider } from "./figure.ts";
import { scoreOf, scoreText } from "../engine/search.ts";
import { elementSvg, saveMenu } from "./take_away.ts";

import type { Decoding, TreeNode } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Child, Search } from "./types.ts";

/** The reader's settings: the length penalty, the number of pruned candidates shown per step, and the chosen node. */
interface State {
  alpha: number;
  pruned: number;
  looked: number | null;
}

interface End {
  node: TreeNode;
  length: number;
  score: number;
}

interface Place {
  x: number;
  y: number;
  wide: number;
}

const MOST_NODES = 250;
const LARGEST_BEAM = 8;
const NODE = { wide: 48, high: 48, gap: 4, step: 18 };

/** Returns the panel as an element. */
export function createBeamPanel(app: App) {
  const state: State = { alpha: app.search.lengthPenalty, pruned: 2, looked: null };
  const bar = element("div", { className: "gf-controls" });
  const about = element("p", { className: "gf-note" });
  const tree = createTree(app, state, look);
  const details = element("div", { className: "gf-path" });
  const ranking = element("div");
  const again = button("", () => searchAgain(app, { lengthPenalty: state.alpha }));
  const list = element("div", { className: "gf-scroll" });
  const body = element("div", {}, bar, about, tree.element, details, ranking);
  const dialog = element("dialog", {
    className: "gf-dialog",
    onclose: () => {
      panel.prepend(body);
      draw();
    },
  });
  const panel = element("div", { className: "gf-beam" }, body, dialog);

  const decoding = () => ({ ...app.engine.decoding, length_penalty: state.alpha });
  const ended = () => rankedEnds(app.result.current.search.tree, decoding());

  function look(id: number) {
    state.looked = id;
    const { search } = app.result.current;
    refill(details, pathDetails(app, search.tree, id, decoding()));
    tree.trace(id);
  }

  function fill() {
    const { beamSize } = app.search;
    const sizes = Array.from({ length: Math.max(LARGEST_BEAM, beamSize) }, (_, at) => String(at + 1));
    const resize = (next: string) => searchAgain(app, { beamSize: Number(next) });
    const size = chooser(
      app.t("beam.size"),
      sizes.map((one) => [one, one] as const),
      String(beamSize),
      resize,
    );
    const kinds: [string, string][] = [
      ["0", app.t("beam.pruned.none")],
      ["2", app.t("beam.pruned.best")],
      ["Infinity", app.t("beam.pruned.all")],
    ];
    const larger = button("⤢", enlarge, { className: "gf-larger", title: app.t("beam.larger") });
    larger.setAttribute("aria-label", larger.title);
    refill(
      bar,
      app.engine.live !== false && element("label", {}, app.t("beam.size"), size),
      chooser(app.t("beam.show"), kinds, String(state.pruned), (next) => {
        state.pruned = Number(next);
        draw();
      }),
      larger,
      saveMenu(app, "beam", () => elementSvg(app, tree.element, kind)),
    );
    const kind = app.t(beamSize === 1 ? "beam.greedy" : "beam.about", beamSize);
    about.textContent = `${kind} ${app.t("beam.legend")}`;
    again.textContent = app.t("beam.again");
    const range = { low: Math.min(0, state.alpha), high: Math.max(2, state.alpha), step: 0.05 };
    const written = (value: number) => numberText(value, 2);
    const alpha = slider("α", { ...range, value: state.alpha, written }, (value) => {
      state.alpha = value;
      state.looked = null; // the view follows the best path
      draw();
    });
    refill(
      ranking,
      element("h3", {}, app.t("beam.penalty")),
      remark(app.t("beam.penalty.about")),
      alpha,
      app.engine.live !== false && again,
      list,
    );
    draw();
  }

  function draw() {
    if (!body.clientWidth) return; // a hidden panel is drawn when it is opened
    const { search } = app.result.current;
    const ends = ended();
    again.disabled = state.alpha === app.search.lengthPenalty;
    refill(list, rankingTable(app, ends, look));
    tree.draw(search.tree, ends, dialog.open);
    look(state.looked !== null && tree.has(state.looked) ? state.looked : ends[0].node.id);
  }

  function enlarge() {
    dialog.setAttribute("aria-label", app.t("panel.beam"));
    refill(
      dialog,
      button(app.t("word.close"), () => dialog.close(), { className: "gf-close" }),
      body,
    );
    dialog.showModal();
    draw();
  }

  app.on("result", () => {
    state.alpha = app.search.lengthPenalty;
    state.looked = null;
    fill();
  });
  app.on("busy", (busy) => panel.setAttribute("aria-busy", String(busy)));
  app.on("resize", draw);
  app.on("ui", (keys) => {
    if (keys.includes("language")) fill();
    else if (keys.includes("panel")) queueMicrotask(draw); // once it is no longer hidden
  });
  fill();
  return panel;
}

function searchAgain(app: App, search: Partial<Search>) {
  return app.attempt(() => app.searchWith(search));
}

/** Returns the finished candidates, best first; ties in the order of the search. */
function rankedEnds(nodes: TreeNode[], decoding: Decoding) {
  const ends = nodes
    .filter(({ state }) => state === "finished")
    .map((node) => {
      const length = node.position + 1;
      return { node, length, score: scoreOf(node.logProb, length, decoding) };
    });
  return ends.sort((a, b) => b.score - a.score);
}

/** Returns a number as short text that fits into a node. */
function shortNumber(value: number) {
  if (value > 0 && value < 0.005) return "<.01";
  return numberText(value, Math.abs(value) < 9.95 ? 2 : 1);
}

/** Returns the nodes from the first token to this one. */
function pathTo(nodes: TreeNode[], id: number) {
  const path = [];
  for (let node = nodes[id]; node.parent !== null; node = nodes[node.parent]) path.unshift(node);
  return path;
}

/** Returns the text of a path, without <eos>. */
function textOf(app: App, path: TreeNode[]) {
  return app.engine.decode(path.filter(({ state }) => state !== "finished").map(({ token }) => token));
}

/** Returns the nodes to draw: finished paths first, then kept nodes, then some pruned ones. */
function drawnNodes(nodes: TreeNode[], ends: End[], pruned: number) {
  const next = counter();
  const among = ({ position }: TreeNode) => next(position) < pruned;
  const worth = [
    ...ends.flatMap(({ node }) => pathTo(nodes, node.id)),
    ...nodes.filter(({ state }) => state === "kept"),
    ...nodes.filter((node) => node.state === "pruned" && among(node)),
  ];
  const wanted = new Set([nodes[0], ...worth]);
  return {
    drawn: [...wanted].slice(0, MOST_NODES).sort((a, b) => a.id - b.id),
    left: Math.max(0, wanted.size - MOST_NODES),
  };
}

/** Returns the tree; `look` is called with the node that the reader visits. */
function createTree(app: App, state: State, look: (id: number) => void) {
  const lines = drawing("svg", { "aria-hidden": "true" });
  const looked = drawing("path", { class: "gf-edge gf-edge-looked" });
  const holder = element("div", { className: "gf-tree", role: "tree" });
  const note = element("p", { className: "gf-note" });
  let nodes: TreeNode[] = [];
  let places: Map<number, Place> = new Map();
  let sideways = false;

  /** `across`: from left to right, not from top to bottom. */
  function draw(next: TreeNode[], ends: End[], across: boolean) {
    nodes = next;
    sideways = across;
    const { drawn, left } = drawnNodes(nodes, ends, state.pruned);
    const best = new Set(pathTo(nodes, ends[0].node.id));
    const scores = new Map(ends.map(({ node, score }) => [node.id, score]));
    places = placed(drawn, across, holder.parentElement?.clientWidth ?? 0);
    holder.setAttribute("aria-label", app.t("panel.beam"));
    const all = [...places.values()];
    const size = {
      width: Math.max(...all.map(({ x, wide }) => x + wide)),
      height: Math.max(...all.map(({ y }) => y)) + NODE.high,
    };
    for (const name of ["width", "height"] as const) {
      holder.style[name] = `${size[name]}px`;
      lines.setAttribute(name, String(size[name]));
    }
    const line = (kind: string, some: TreeNode[]) =>
      drawing("path", { class: `gf-edge gf-edge-${kind}`, d: edges(some) });
    refill(
      lines,
      line(
        "pruned",
        drawn.filter((node) => node.state === "pruned"),
      ),
      line(
        "kept",
        drawn.filter((node) => node.state !== "pruned"),
      ),
      line(
        "best",
        drawn.filter((node) => best.has(node)),
      ),
      looked,
    );
    refill(
      holder,
      lines,
      drawn.map((node) => nodeElement(node, best.has(node), scores.get(node.id))),
    );
    note.textContent = left ? app.t("beam.left", drawn.length, left) : "";
  }

  function nodeElement(node: TreeNode, best: boolean, score?: number) {
    const { x, y, wide } = placeOf(node.id);
    const lower = [`p ${shortNumber(Math.exp(node.tokenLogProb))}`, `Σ ${shortNumber(node.logProb)}`];
    if (score !== undefined) lower.splice(0, 2, lower[1], `★ ${shortNumber(score)}`);
    if (node.parent === null) lower.length = 0;
    const names = [node.text, ...lower, app.t(`beam.${node.state}`), ...(best ? [app.t("beam.best")] : [])];
    return element(
      "div",
      {
        role: "treeitem",
        className: `gf-node gf-${node.state}${best ? " gf-best" : ""}`,
        "data-node": node.id,
        tabindex: "-1",
        "aria-level": node.position + 2,
        "aria-label": names.join(", "),
        style: `left: ${x}px; top: ${y}px; width: ${wide}px; height: ${NODE.high}px`,
      },
      [node.text, ...lower].join("\n"),
    );
  }

  function placeOf(id: number) {
    return places.get(id) ?? { x: 0, y: 0, wide: 0 };
  }

  /** Returns the lines from these nodes to their parents. */
  function edges(some: TreeNode[]) {
    return some
      .flatMap(({ id, parent }) => (parent !== null && places.has(parent) ? [[parent, id]] : []))
      .map(([parent, id]) => {
        const [from, to] = [placeOf(parent), placeOf(id)];
        if (sideways) {
          const [x, y, right, down] = [
            from.x + from.wide,
            from.y + NODE.high / 2,
            to.x,
            to.y + NODE.high / 2,
          ];
          return `M${x} ${y}C${right} ${y} ${x} ${down} ${right} ${down}`;
        }
        const [x, y, across, down] = [from.x + from.wide / 2, from.y + NODE.high, to.x + to.wide / 2, to.y];
        return `M${x} ${y}C${x} ${down} ${across} ${y} ${across} ${down}`;
      })
      .join("");
  }

  function trace(id: number) {
    looked.setAttribute("d", edges(pathTo(nodes, id)));
    for (const one of nodeElements()) {
      const here = Number(one.dataset.node) === id;
      one.tabIndex = here ? 0 : -1;
      one.setAttribute("aria-selected", String(here));
    }
  }

  const nodeElements = () => holder.querySelectorAll("[data-node]") as NodeListOf<HTMLElement>;
  /** Returns the id of an event's node. */
  const idAt = ({ target }: Event) => {
    const at = target instanceof Element ? target.closest("[data-node]") : null;
    return at === null ? undefined : Number(at.getAttribute("data-node"));
  };
  const visit = (event: Event) => {
    const id = idAt(event);
    if (id === undefined) return;
    look(id);
    app.light([{ side: "output", position: nodes[id].position }]);
  };
  holder.addEventListener("pointerover", visit);
  holder.addEventListener("focusin", visit);
  for (const type of ["pointerleave", "focusout"]) holder.addEventListener(type, () => app.light([]));
  holder.addEventListener("keydown", (event) => {
    const from = idAt(event);
    const to = from === undefined ? undefined : neighbour(nodes[from], event.key);
    if (to === undefined) return;
    event.preventDefault();
    for (const one of nodeElements()) if (Number(one.dataset.node) === to.id) one.focus();
  });

  /** Returns the node to which a key moves: the parent, the best child, or a neighbour in the step. */
  function neighbour(node: TreeNode, key: string): TreeNode | undefined {
    const [up, down, back, on] = sideways
      ? ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]
      : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
    const drawn = nodes.filter(({ id }) => places.has(id));
    if (key === "Home") return nodes[0];
    if (key === up) return node.parent === null ? undefined : nodes[node.parent];
    if (key === down) return drawn.find(({ parent }) => parent === node.id);
    const step = drawn.filter(({ position }) => position === node.position);
    if (key === back) return step[step.indexOf(node) - 1];
    return key === on ? step[step.indexOf(node) + 1] : undefined;
  }
  return {
    element: element("div", {}, element("div", { className: "gf-treebox" }, holder), note),
    draw,
    trace,
    has: (id: number) => places.has(id),
  };
}

/** Returns a function that counts, from 0, how often it was given each key. */
function counter(): (key: number) => number {
  const counts: Map<number, number> = new Map();
  return (key) => {
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    return count;
  };
}

/** Returns the place of each node, by id: the steps in order, and the best node of a step first. */
function placed(drawn: TreeNode[], across: boolean, room: number): Map<number, Place> {
  const next = counter();
  const ranks = drawn.map(({ position }) => next(position));
  const columns = Math.max(...ranks) + 1;
  const wide = across ? 72 : Math.max(NODE.wide, Math.min(92, Math.floor((room - 16) / columns) - NODE.gap));
  return new Map(
    drawn.map(({ id, position }, at) => {
      const step = position + 1;
      const place = across
        ? { x: step * (wide + NODE.step), y: ranks[at] * (NODE.high + NODE.gap) }
        : { x: ranks[at] * (wide + NODE.gap), y: step * (NODE.high + NODE.step) };
      return [id, { ...place, wide }];
    }),
  );
}

/** Returns the details of a node: its text, the terms of its log probability, and the arithmetic of its score. */
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
    element(
      "p",
      { className: "gf-sum" },
      "log p = ",
      ...terms.flatMap((term) => [term, " "]),
      "= ",
      element("b", {}, sum),
    ),
    node.state === "finished"
      ? element("p", { className: "gf-mono" }, formula, element("b", {}, score))
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
    { className: "gf-table gf-ranking" },
    element("thead", {}, element("tr", {}, heads)),
    element("tbody", {}, rows),
  );
}
