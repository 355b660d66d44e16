// Draws the tree of a search: a box for each candidate, and a line from the candidate to its parent.
import { numberText } from "../../engine/number_text.ts";
import { element, note, refill } from "../app/dom.ts";
import { drawing } from "../app/drawing.ts";

import type { TreeNode } from "../../engine/types.ts";
import type { App } from "../app/app.ts";

/** A finished candidate, with its number of tokens and its score. */
export interface End {
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
const NODE = { wide: 48, high: 48, gap: 4, step: 18 };

/** The tree as an element; `look` is called with each node that the reader visits. */
export class BeamTree {
  #app: App;
  #look: (id: number) => void;
  #nodes: TreeNode[] = [];
  #places: Map<number, Place> = new Map();
  /** Whether the steps run from left to right instead of from top to bottom. */
  #sideways = false;
  #lines = drawing("svg", { "aria-hidden": "true" });
  #looked = drawing("path", "gf-edge gf-edge-looked");
  #holder = element("div", { class: "gf-tree", role: "tree" });
  #note = note();
  element = element("div", {}, element("div", "gf-treebox", this.#holder), this.#note);

  constructor(app: App, look: (id: number) => void) {
    this.#app = app;
    this.#look = look;
    this.#holder.addEventListener("pointerover", (event) => this.#visit(event));
    this.#holder.addEventListener("focusin", (event) => this.#visit(event));
    this.#holder.addEventListener("keydown", (event) => this.#move(event));
  }

  /** Draws a tree; `pruned`: how many pruned candidates to show for each step. */
  draw(nodes: TreeNode[], ends: End[], pruned: number, sideways: boolean) {
    const { drawn, left } = drawnNodes(nodes, ends, pruned);
    this.#nodes = nodes;
    this.#sideways = sideways;
    this.#places = placed(drawn, sideways, this.#holder.parentElement?.clientWidth ?? 0);
    this.#size();
    const best = new Set(pathTo(nodes, ends[0].node.id));
    const scores = new Map(ends.map(({ node, score }) => [node.id, score]));
    refill(this.#lines, this.#edges(drawn, best), this.#looked);
    this.#holder.ariaLabel = this.#app.t("panel.beam");
    const boxes = drawn.map((node) => this.#box(node, best.has(node), scores.get(node.id)));
    refill(this.#holder, this.#lines, boxes);
    this.#note.textContent = left ? this.#app.t("beam.left", drawn.length, left) : "";
  }

  /** Returns whether a node is drawn. */
  has(id: number) {
    return this.#places.has(id);
  }

  /** Highlights a node and the path to this node. */
  trace(id: number) {
    this.#looked.setAttribute("d", this.#linesTo(pathTo(this.#nodes, id)));
    for (const one of this.#boxes()) {
      const here = Number(one.dataset.node) === id;
      one.tabIndex = here ? 0 : -1;
      one.ariaSelected = String(here);
    }
  }

  #size() {
    const all = [...this.#places.values()];
    const size = {
      width: Math.max(...all.map(({ x, wide }) => x + wide)),
      height: Math.max(...all.map(({ y }) => y)) + NODE.high,
    };
    for (const name of ["width", "height"] as const) {
      this.#holder.style[name] = `${size[name]}px`;
      this.#lines.setAttribute(name, String(size[name]));
    }
  }

  #edges(drawn: TreeNode[], best: Set<TreeNode>) {
    const kinds = {
      pruned: drawn.filter(({ state }) => state === "pruned"),
      kept: drawn.filter(({ state }) => state !== "pruned"),
      best: drawn.filter((node) => best.has(node)),
    };
    return Object.entries(kinds).map(([kind, nodes]) =>
      drawing("path", { class: `gf-edge gf-edge-${kind}`, d: this.#linesTo(nodes) }),
    );
  }

  /** Returns the lines from these nodes to their parents. */
  #linesTo(nodes: TreeNode[]) {
    const lines = nodes.map(({ id, parent }) => {
      const [from, to] = [parent === null ? undefined : this.#places.get(parent), this.#places.get(id)];
      return from && to ? curve(from, to, this.#sideways) : "";
    });
    return lines.join("");
  }

  #box(node: TreeNode, best: boolean, score?: number) {
    const { x, y, wide } = this.#places.get(node.id) ?? { x: 0, y: 0, wide: 0 };
    const numbers = numbersOf(node, score);
    const state = this.#app.t(`beam.${node.state}`);
    const names = [node.text, ...numbers, state, ...(best ? [this.#app.t("beam.best")] : [])];
    return element(
      "div",
      {
        role: "treeitem",
        class: `gf-node gf-${node.state}${best ? " gf-best" : ""}`,
        "data-node": node.id,
        tabindex: "-1",
        "aria-level": node.position + 2,
        "aria-label": names.join(", "),
        style: `left: ${x}px; top: ${y}px; width: ${wide}px; height: ${NODE.high}px`,
      },
      [node.text, ...numbers].join("\n"),
    );
  }

  #boxes() {
    return this.#holder.querySelectorAll("[data-node]") as NodeListOf<HTMLElement>;
  }

  #visit(event: Event) {
    const node = this.#nodeAt(event);
    if (!node) return;
    this.#look(node.id);
  }

  /** Moves the focus in response to a key. */
  #move(event: KeyboardEvent) {
    const from = this.#nodeAt(event);
    const to = from && this.#neighbour(from, event.key);
    if (!to) return;
    event.preventDefault();
    for (const one of this.#boxes()) if (Number(one.dataset.node) === to.id) one.focus();
  }

  /** Returns the node on which an event happened. */
  #nodeAt({ target }: Event): TreeNode | undefined {
    const at = target instanceof Element ? target.closest("[data-node]") : null;
    return at ? this.#nodes[Number(at.getAttribute("data-node"))] : undefined;
  }

  /** Returns the node to which a key leads: the parent, the best child, or a neighbour in the same step. */
  #neighbour(node: TreeNode, key: string): TreeNode | undefined {
    const [up, down, back, on] = this.#sideways
      ? ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]
      : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
    const drawn = this.#nodes.filter(({ id }) => this.has(id));
    if (key === "Home") return this.#nodes[0];
    if (key === up) return node.parent === null ? undefined : this.#nodes[node.parent];
    if (key === down) return drawn.find(({ parent }) => parent === node.id);
    const step = drawn.filter(({ position }) => position === node.position);
    if (key === back) return step[step.indexOf(node) - 1];
    return key === on ? step[step.indexOf(node) + 1] : undefined;
  }
}

/** Returns the nodes from the first token to the node `id`. */
export function pathTo(nodes: TreeNode[], id: number) {
  const path = [];
  for (let node = nodes[id]; node.parent !== null; node = nodes[node.parent]) path.unshift(node);
  return path;
}

/** Returns the nodes to draw: finished paths first, then kept nodes, then some pruned nodes. */
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

/** Returns a function that returns how often it was called before with the same key. */
function counter(): (key: number) => number {
  const counts: Map<number, number> = new Map();
  return (key) => {
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    return count;
  };
}

/** Returns the position of each node, by id. Steps are in order, and the best node of a step comes first. */
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

/** Returns the path of the line from a node to its child. */
function curve(from: Place, to: Place, sideways: boolean) {
  if (sideways) {
    const [x, y] = [from.x + from.wide, from.y + NODE.high / 2];
    const [right, down] = [to.x, to.y + NODE.high / 2];
    return `M${x} ${y}C${right} ${y} ${x} ${down} ${right} ${down}`;
  }
  const [x, y] = [from.x + from.wide / 2, from.y + NODE.high];
  const [across, down] = [to.x + to.wide / 2, to.y];
  return `M${x} ${y}C${x} ${down} ${across} ${y} ${across} ${down}`;
}

/**
 * Returns the numbers shown in a node: the node's own probability or its score, and the log probability of the path
 * up to the node.
 */
function numbersOf({ parent, tokenLogProb, logProb }: TreeNode, score?: number) {
  if (parent === null) return [];
  const sum = `Σ ${shortNumber(logProb)}`;
  return score === undefined
    ? [`p ${shortNumber(Math.exp(tokenLogProb))}`, sum]
    : [sum, `★ ${shortNumber(score)}`];
}

/** Returns a number as text that is short enough for a node. */
function shortNumber(value: number) {
  if (value > 0 && value < 0.005) return "<.01";
  return numberText(value, Math.abs(value) < 9.95 ? 2 : 1);
}
