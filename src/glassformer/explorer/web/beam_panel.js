// The beam tree: every candidate that the search weighed, what became of it, and how the length penalty ranks
// the ends.
import { button, chooser, element, numberText, refill, tokenElement } from "./dom.js";
import { drawing, remark, slider } from "./figure.js";
import { lengthPenaltyOf } from "./search.js";

const MOST_NODES = 250;
const LARGEST_BEAM = 8;
const NODE = { wide: 48, high: 48, gap: 4, step: 18 };

/** Returns the panel as an element. */
export function createBeamPanel(app) {
  const state = { alpha: app.search.lengthPenalty, pruned: 2, looked: null };
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

  const ended = () => rankedEnds(app.result.current.search.tree, state.alpha);

  function look(id) {
    state.looked = id;
    const { search } = app.result.current;
    refill(details, pathDetails(app, search.tree, id, state.alpha));
    tree.trace(id);
  }

  function fill() {
    const { beamSize } = app.search;
    const sizes = Array.from({ length: Math.max(LARGEST_BEAM, beamSize) }, (_, at) => String(at + 1));
    const resize = (next) => searchAgain(app, { beamSize: Number(next) });
    const size = chooser(
      app.t("beam.size"),
      sizes.map((one) => [one, one]),
      String(beamSize),
      resize,
    );
    size.disabled = app.engine.live === false;
    const counts = { 0: "none", 2: "best", Infinity: "all" };
    const kinds = Object.keys(counts).map((count) => [count, app.t(`beam.pruned.${counts[count]}`)]);
    const larger = button("⤢", enlarge, { className: "gf-larger", title: app.t("beam.larger") });
    larger.setAttribute("aria-label", larger.title);
    refill(
      bar,
      element("label", {}, app.t("beam.size"), size),
      chooser(app.t("beam.show"), kinds, String(state.pruned), (next) => {
        state.pruned = Number(next);
        draw();
      }),
      larger,
    );
    const kind = app.t(beamSize === 1 ? "beam.greedy" : "beam.about", beamSize);
    about.textContent = `${kind} ${app.t("beam.legend")}`;
    again.textContent = app.t("beam.again");
    const range = { low: Math.min(0, state.alpha), high: Math.max(2, state.alpha), step: 0.05 };
    const written = (value) => numberText(value, 2);
    const alpha = slider("α", { ...range, value: state.alpha, written }, (value) => {
      state.alpha = value;
      state.looked = null; // the best path is followed
      draw();
    });
    refill(
      ranking,
      element("h3", {}, app.t("beam.penalty")),
      remark(app.t("beam.penalty.about")),
      alpha,
      again,
      list,
    );
    draw();
  }

  function draw() {
    if (!app.result || !body.clientWidth) return; // a hidden panel is drawn when it is opened
    const { search } = app.result.current;
    const ends = ended();
    again.disabled = app.engine.live === false || state.alpha === app.search.lengthPenalty;
    refill(list, rankingTable(app, ends, look));
    tree.draw(search.tree, ends, dialog.open);
    look(tree.has(state.looked) ? state.looked : ends[0].node.id);
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

function searchAgain(app, search) {
  return app.attempt(() => app.searchWith(search));
}

/** Returns the finished candidates, best first: {node, length, score}; ties in the order of the search. */
function rankedEnds(nodes, alpha) {
  const ends = nodes
    .filter(({ state }) => state === "finished")
    .map((node) => {
      const length = node.position + 1;
      return { node, length, score: node.logProb / lengthPenaltyOf(length, alpha) };
    });
  return ends.sort((a, b) => b.score - a.score);
}

/** Returns a number in as few characters as a node has room for. */
function shortNumber(value) {
  if (value > 0 && value < 0.005) return "<.01";
  return numberText(value, Math.abs(value) < 9.95 ? 2 : 1);
}

/** Returns the nodes from the first token to this one. */
function pathTo(nodes, id) {
  const path = [];
  for (let node = nodes[id]; node.parent !== null; node = nodes[node.parent]) path.unshift(node);
  return path;
}

/** Returns the text of a path, without its end. */
function textOf(app, path) {
  return app.engine.decode(path.filter(({ state }) => state !== "finished").map(({ token }) => token));
}

/** Returns the nodes that are drawn: paths to the ends first, then what was kept, then some of the others. */
function drawnNodes(nodes, ends, pruned) {
  const counts = new Map();
  const among = (node) => {
    counts.set(node.position, (counts.get(node.position) ?? 0) + 1);
    return counts.get(node.position) <= pruned;
  };
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

/** Returns the tree: {element, draw(nodes, ends, across), trace(id), has(id)}; `look` hears of a visit. */
function createTree(app, state, look) {
  const lines = drawing("svg", { "aria-hidden": "true" });
  const holder = element("div", { className: "gf-tree", role: "tree" });
  const note = element("p", { className: "gf-note" });
  let nodes = [];
  let places = new Map();
  let sideways = false;

  function draw(next, ends, across) {
    nodes = next;
    sideways = across;
    const { drawn, left } = drawnNodes(nodes, ends, state.pruned);
    const best = new Set(pathTo(nodes, ends[0].node.id));
    const scores = new Map(ends.map(({ node, score }) => [node.id, score]));
    places = placed(drawn, across, holder.parentElement.clientWidth);
    holder.setAttribute("aria-label", app.t("panel.beam"));
    const all = [...places.values()];
    const size = {
      width: Math.max(...all.map(({ x, wide }) => x + wide)),
      height: Math.max(...all.map(({ y }) => y)) + NODE.high,
    };
    for (const [name, value] of Object.entries(size)) {
      holder.style[name] = `${value}px`;
      lines.setAttribute(name, value);
    }
    const kinds = [
      ["pruned", ({ state: fate }) => fate === "pruned"],
      ["kept", ({ state: fate }) => fate !== "pruned"],
      ["best", (node) => best.has(node)],
    ];
    lines.replaceChildren(
      ...kinds.map(([kind, belongs]) =>
        drawing("path", { class: `gf-edge gf-edge-${kind}`, d: edges(drawn.filter(belongs)) }),
      ),
      drawing("path", { class: "gf-edge gf-edge-looked" }),
    );
    refill(
      holder,
      lines,
      drawn.map((node) => nodeElement(node, best.has(node), scores.get(node.id))),
    );
    note.textContent = left ? app.t("beam.left", drawn.length, left) : "";
  }

  function nodeElement(node, best, score) {
    const { x, y, wide } = places.get(node.id);
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

  /** Returns the lines from these nodes to their parents. */
  function edges(some) {
    return some
      .filter(({ parent }) => parent !== null && places.has(parent))
      .map(({ id, parent }) => {
        const [from, to] = [places.get(parent), places.get(id)];
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

  function trace(id) {
    lines.lastChild?.setAttribute("d", edges(pathTo(nodes, id)));
    for (const one of holder.querySelectorAll("[data-node]")) {
      const here = Number(one.dataset.node) === id;
      one.tabIndex = here ? 0 : -1;
      one.setAttribute("aria-selected", String(here));
    }
  }

  const idAt = (event) => event.target.closest("[data-node]")?.dataset.node;
  const visit = (event) => {
    const id = idAt(event);
    if (id === undefined) return;
    look(Number(id));
    app.light([{ side: "target", position: nodes[id].position + 1 }]);
  };
  holder.addEventListener("pointerover", visit);
  holder.addEventListener("focusin", visit);
  for (const type of ["pointerleave", "focusout"]) holder.addEventListener(type, () => app.light([]));
  holder.addEventListener("keydown", (event) => {
    const from = idAt(event);
    const to = from === undefined ? undefined : neighbour(nodes[from], event.key);
    if (to === undefined) return;
    event.preventDefault();
    holder.querySelector(`[data-node="${to.id}"]`).focus();
  });

  /** Returns the node that a key leads to: towards the parent, the best child, or along the step. */
  function neighbour(node, key) {
    const turned = sideways
      ? { ArrowLeft: "parent", ArrowRight: "child", ArrowUp: -1, ArrowDown: 1 }
      : { ArrowUp: "parent", ArrowDown: "child", ArrowLeft: -1, ArrowRight: 1 };
    const way = { ...turned, Home: "root" }[key];
    const drawn = nodes.filter(({ id }) => places.has(id));
    if (way === "root") return nodes[0];
    if (way === "parent") return nodes[node.parent];
    if (way === "child") return drawn.find(({ parent }) => parent === node.id);
    const step = drawn.filter(({ position }) => position === node.position);
    return way && step[step.indexOf(node) + way];
  }
  return {
    element: element("div", {}, element("div", { className: "gf-treebox" }, holder), note),
    draw,
    trace,
    has: (id) => places.has(id),
  };
}

/** Returns where each node stands, by id: one step behind the other, in a step the best first. */
function placed(drawn, across, room) {
  const counts = new Map();
  const ranks = drawn.map(({ position }) => {
    counts.set(position, (counts.get(position) ?? -1) + 1);
    return counts.get(position);
  });
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

/** Returns what is known of a node: its text, the terms of its log probability, and its score in numbers. */
function pathDetails(app, nodes, id, alpha) {
  const node = nodes[id];
  const path = pathTo(nodes, id);
  if (path.length === 0) return [remark(app.t("beam.root"))];
  const terms = path.map(({ text, tokenLogProb }) =>
    element("span", {}, tokenElement(text), numberText(tokenLogProb, 4)),
  );
  const penalty = lengthPenaltyOf(path.length, alpha);
  const sum = numberText(node.logProb, 4);
  const base = `((5 + ${path.length}) / 6)^${numberText(alpha, 2)}`;
  const score = `${app.t("word.score")} = ${sum} / ${base} = ${sum} / ${numberText(penalty, 4)} = `;
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
      ? element("p", { className: "gf-mono" }, score, element("b", {}, numberText(node.logProb / penalty, 4)))
      : remark(app.t(`beam.${node.state}.about`)),
  ];
}

/** Returns the finished hypotheses as a table, best first. */
function rankingTable(app, ends, look) {
  const names = ["#", app.t("beam.text"), "n", "log p", app.t("word.score")];
  const heads = names.map((name) => element("th", { scope: "col" }, name));
  const text = (node) => textOf(app, pathTo(app.result.current.search.tree, node.id)) || "–";
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
