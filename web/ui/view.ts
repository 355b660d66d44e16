// One view: the page's frame, its panels, and the console for scripts and tests.
import { numberText } from "../engine/number_text.ts";
import { createApp, messageOf } from "./app.ts";
import { FAMILIES, attentionName } from "./heads.ts";
import { arithmetic } from "../engine/arithmetic.ts";
import { createBeside } from "./beside.ts";
import { areAllPinned, newSentenceBanner, openNew, pinButton } from "./changes/new_sentence.ts";
import { button, chooser, element, hint, refill, tokenElement } from "./dom.ts";
import { createFlow } from "./flow.ts";
import { claimLink, keepLink } from "./link.ts";
import { createMap } from "./map.ts";
import { panelOf } from "./panels.ts";
import { createPointView } from "./point_view.ts";
import { createSettings } from "./settings.ts";
import { createBeamScene } from "./stage/beam_scene.ts";
import { followChapters, welcome } from "./stage/chapter_view.ts";
import { followLecture } from "./stage/lecture.ts";
import { createOutline } from "./stage/outline.ts";
import { createStage } from "./stage/stage.ts";

import type { Host, Payload } from "../engine/types.ts";
import type { App } from "./app.ts";
import type { Child, Mounted, SomeChanges, Token, Translated, View } from "./types.ts";

/** Returns the newest open view, from this one backwards. */
function stillOpen(view: View | undefined): View | undefined {
  return view?.closed ? stillOpen(view.earlier) : view;
}

/** Returns the console of the view in `el`; the view is ready when `ready` resolves. */
export function createView(el: Mounted, payload: Payload, host: Host | null) {
  const closing = new AbortController(),
    earlier = globalThis.glassformer;
  claimLink(closing.signal);
  const root = element("div", { className: "glassformer" });
  refill(el, element("style", {}, payload.styles), root);
  let app: App | null = null;
  const made = createApp(payload, host, closing.signal);
  const ready = made.then(async (one) => {
    if (closing.signal.aborted) return;
    app = one;
    const complete = build(root, app);
    await keepLink(app);
    welcome(app);
    complete();
  });
  ready.catch((error) => {
    refill(root, element("p", { className: "gf-error", role: "alert" }, messageOf(error)));
  });
  /** Returns an action that waits until the view is ready. */
  const after =
    <Given extends unknown[], Made>(action: (app: App, ...given: Given) => Made) =>
    async (...given: Given) => {
      await ready;
      return action(await made, ...given);
    };
  return {
    ready,
    get parity() {
      return app?.parity ?? null;
    },
    get firstDifference() {
      return app?.result?.firstDifference ?? null;
    },
    get app() {
      return app;
    },
    earlier,
    get closed() {
      return closing.signal.aborted;
    },
    points: after((app) => app.result.current.trace.names),
    value: after((app, name: string) => app.value(name)),
    translate: after(async (app, ...asked: Parameters<App["translate"]>) => {
      const { text, score, logProb, tokens } = await app.translate(...asked);
      return { text, score, logProb, tokens };
    }),
    set: after((app, changes: SomeChanges) => app.set(changes)),
    reset: after((app) => app.reset()),
    explain: after((app, name: string, index: number[]) => arithmetic(app, name, index)),
    close() {
      closing.abort();
      refill(el);
      if (globalThis.glassformer === this) globalThis.glassformer = stillOpen(earlier);
      if (el.glassformer === this) delete el.glassformer;
    },
  };
}

/**
 * Builds the stage. Returns a function that builds the page of all numbers, now or when the reader opens it: the stage
 * does not wait for pictures that it hides.
 */
function build(root: HTMLElement, app: App) {
  const print = matchMedia("print");
  const dress = () => {
    root.dataset.theme = print.matches ? "light" : app.state.theme;
    root.lang = app.state.language === "zh" ? "zh-CN" : "en";
    const page = document.documentElement;
    if (page.hasAttribute("data-explorer")) page.lang = root.lang; // or else the page is somebody else's
    root.dataset.view = app.state.view;
  };
  dress();
  app.on(["theme", "language", "view"], dress); // before the panels, whose pictures are drawn in the theme's colours
  const redress = () => {
    dress();
    app.layOut();
  };
  print.addEventListener("change", redress, { signal: app.signal });
  const figure = createStage(app);
  const scene = createBeamScene(app, (lit) => app.show({ chapter: 1, act: 1, ...lit }));
  const outline = createOutline(app);
  const numbers = element("div", { className: "gf-all-numbers" });
  const choose = () => {
    const { view, chapter, act } = app.state;
    figure.element.hidden = view !== "stage" || chapter === 1;
    scene.hidden = view !== "stage" || chapter !== 1 || act > 0;
    outline.hidden = view !== "stage" || chapter !== 1 || act === 0;
    numbers.hidden = view !== "numbers";
  };
  choose();
  app.on(["view", "chapter", "act"], choose);
  refill(root, figure.element, scene, outline, numbers);
  watchSize(root, app);
  const problems = element("p", { className: "gf-error", role: "alert", hidden: true });
  root.prepend(element("div", { className: "gf-problem" }, problems)); // over the page, which stays where it is
  app.on(["problem"], ({ problem }) => {
    problems.textContent = problem;
    problems.hidden = !problem;
  });
  let isComplete = false;
  function complete() {
    if (app.state.view !== "numbers" || app.signal.aborted || isComplete) return;
    isComplete = true;
    numbers.append(
      header(app),
      outcome(app),
      element("main", { className: "gf-main" }, createFlow(app), stage(app), panels(app)),
      app.engine.live === false ? "" : createBeside(app),
    );
    app.layOut();
  }
  return () => {
    app.on(["view"], complete);
    figure.begin();
    followChapters(app);
    followLecture(app, root);
    complete();
  };
}

/** Returns the map and the view of a point, one of which is shown. */
function stage(app: App) {
  const [map, point] = [createMap(app), createPointView(app)];
  const choose = () => {
    map.hidden = app.state.stage !== "map";
    point.hidden = app.state.stage !== "point";
  };
  choose();
  const made = element("div", { className: "gf-stage" }, map, point);
  app.on(["stage", "point"], (_, changed) => {
    const isAbove = changed.has("point") && made.getBoundingClientRect().top < 0; // on a phone the model's picture is below it
    choose();
    if (!isAbove) return;
    const arrive = () => requestAnimationFrame(() => made.scrollIntoView()); // when it has its height
    app.value(app.state.point.name).then(arrive, () => {});
  });
  return made;
}

/** Tells the panels when the page's width changes, so that they redraw their pictures. */
function watchSize(root: HTMLElement, app: App) {
  let width = root.clientWidth;
  const observer = new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    app.layOut();
  });
  observer.observe(root);
  app.signal.addEventListener("abort", () => observer.disconnect(), { once: true });
}

function header(app: App) {
  const top = element("header", { className: "gf-header" });
  const settings = createSettings(app);
  const field = element("input", { type: "text", spellcheck: false, dir: "auto", autocomplete: "off" });
  field.value = app.state.sentence;
  const form = element("form", {
    className: "gf-form",
    onsubmit: (event) => {
      event.preventDefault();
      app.attempt(() => openNew(app, field.value));
    },
  });
  function fill() {
    const { config, payload, engine } = app;
    field.setAttribute("aria-label", app.t("page.sentence"));
    const examples: [string, string][] = [
      ["", app.t("page.examples.pick")],
      ...payload.examples.map((text) => [text, text] as [string, string]),
    ];
    const pick = chooser(app.t("page.examples"), examples, "", (text) => {
      field.value = text;
      pick.value = ""; // the box offers examples; the field beside it shows the sentence
      app.attempt(() => openNew(app, text));
    });
    refill(
      form,
      field,
      element("button", { type: "submit", className: "gf-primary" }, app.t("page.translate")),
      payload.examples.length > 0 && pick,
    );
    const { encoder_layers: encoder, decoder_layers: decoder, heads, d_model: width } = config;
    const count = payload.parameters.toLocaleString("en");
    const about = app.t("page.about", payload.name, count, encoder, decoder, heads, width);
    refill(
      top,
      element(
        "div",
        { className: "gf-brand" },
        button(app.t("stage.back"), () => app.show({ view: "stage" }), { className: "gf-link" }),
        element("h1", {}, "glassformer"),
        element("p", { className: "gf-note", title: about }, element("bdi", {}, about)),
      ),
      engine.live === false ? element("p", { className: "gf-form" }, app.t("page.recorded.about")) : form,
      element("div", { className: "gf-tools" }, badge(app), settings),
    );
  }
  fill();
  app.on(["language"], fill);
  app.on(["result"], () => {
    if (document.activeElement !== field) field.value = app.changes.source ?? app.state.sentence;
  });
  return top;
}

function badge(app: App) {
  const good = app.parity === null || app.parity <= 1e-4;
  const { live } = app.engine;
  const difference = app.parity?.toExponential(0) ?? "";
  const key =
    live === true ? (good ? "page.parity" : "page.parity.bad") : live ? "page.remote" : "page.recorded";
  const title = live === true ? "page.parity.title" : live ? "page.remote" : "page.recorded.title";
  return element(
    "span",
    { className: good ? "gf-badge" : "gf-badge gf-bad", title: app.t(title) },
    app.t(key, difference),
  );
}

/** Returns the part under the header: source and translation, and under them the effect of the changes. */
function outcome(app: App) {
  const said = element("div", { className: "gf-said" });
  const effect = element("div", { className: "gf-effect" });
  const lines = element("section", { className: "gf-outcome", "aria-live": "polite" }, said, effect);
  const banner = newSentenceBanner(app);
  function fill() {
    const { reference, current } = app.result;
    refill(
      said,
      line(
        app,
        "output.source",
        tokens(app, current.sourceTokens, "source", (at) => readBy(app, at)),
      ),
      current.unknown.length > 0 &&
        element("p", { className: "gf-note gf-unknown" }, app.t("output.unknown"), listed(current.unknown)),
      app.changed &&
        current.text !== reference.text &&
        lineOf(
          app,
          "gf-before",
          "output.before",
          element("bdi", {}, reference.text),
          logProb(app, reference.hypothesis.logProb),
        ),
      lineOf(
        app,
        "gf-writing",
        app.changed ? "output.after" : "output.output",
        confidentTokens(app, current),
        logProb(app, current.hypothesis.logProb),
      ),
    );
    refill(effect, banner, app.changed && changeLine(app));
  }
  app.on(["result", "language"], fill);
  app.on(["pinned"], () => {
    const pin = lines.querySelector("[aria-pressed]"); // in place, so that it keeps the focus
    pin?.setAttribute("aria-pressed", String(areAllPinned(app)));
  });
  app.on(["busy"], ({ busy }) => lines.setAttribute("aria-busy", String(busy)));
  app.on(["lit"], ({ lit }) => {
    for (const one of lines.querySelectorAll("[data-side]")) {
      const { side: here, position: place } = (one as HTMLElement).dataset;
      one.classList.toggle(
        "gf-lit",
        lit.some(({ side, position }) => isWord(side, position, here, Number(place))),
      );
    }
  });
  fill();
  return lines;
}

/** Returns these words, of many the first ones. */
function listed(words: string[]): Child[] {
  const shown = [...new Set(words)].slice(0, 8).map((word) => word.slice(0, 40));
  return [shown.map((word) => [" ", tokenElement(word)]), words.length > 8 && " …"];
}

/** Returns whether a token is this word of the lines; the decoder reads each word one position after it was written. */
function isWord(side: Token["side"], position: number, here: string | undefined, place: number) {
  return side === "target"
    ? here === "output" && place === position - 1
    : side === here && place === position;
}

/**
 * Returns whether the old translation has one log p as it is written, word by word, and another as it is read, as a
 * whole: later words are seen then.
 */
function readsAhead({ result: { reference, current, logProbOfReference } }: App) {
  const isSame = String(reference.hypothesis.ids) === String(current.hypothesis.ids);
  return isSame && Math.abs(current.hypothesis.logProb - logProbOfReference) > 1e-3;
}

/** Returns the effect of the changes on the original translation, and the first tensor that differs. */
function changeLine(app: App) {
  const { reference, current, firstDifference, logProbOfReference } = app.result;
  const [before, after] = [reference.hypothesis.logProb, logProbOfReference].map((value) =>
    numberText(value),
  );
  return element(
    "p",
    { className: "gf-change" },
    current.text === reference.text ? `${app.t("output.same")} · ` : "",
    `${app.t("output.oldUnderNew")}: ${before} → ${after} `,
    readsAhead(app) && `(${app.t("output.whole")}) `,
    "· ",
    firstDifference
      ? element("span", {}, `${app.t("output.first")}: `, firstLink(app, firstDifference))
      : app.t("output.none"),
    " ",
    button(app.t("output.reset"), () => app.attempt(() => app.reset())),
    " ",
    pinButton(app),
  );
}

function line(app: App, key: string, ...content: Child[]) {
  return element(
    "p",
    { className: "gf-line" },
    element("span", { className: "gf-label" }, app.t(key)),
    element("span", { className: "gf-words", role: "group", "aria-label": app.t(key) }, content),
  );
}

/** Returns a line that the styles know. */
function lineOf(app: App, className: string, key: string, ...content: Child[]) {
  const made = line(app, key, ...content);
  made.classList.add(className);
  return made;
}

function logProb(app: App, value: number) {
  const term = hint("log p", app.t("output.logp.about"));
  return element("span", { className: "gf-note" }, " ", term, ` = ${numberText(value)}`);
}

function firstLink(app: App, name: string) {
  return button(name, () => app.show({ stage: "point", point: { name, head: 0 } }), {
    className: "gf-link gf-first",
  });
}

/** Returns words as one stop of the keyboard; arrows move between them, and `open` gets the word that is chosen. */
function tokens(app: App, texts: string[], side: Token["side"], open: (position: number) => unknown) {
  const made = texts.map((text, position) => {
    const light = (on: boolean) => () => app.light(on ? [{ side, position }] : []);
    return tokenElement(text, {
      role: "button",
      tabindex: position ? "-1" : "0",
      "data-side": side,
      "data-position": position,
      onpointerenter: light(true),
      onpointerleave: light(false),
      onfocus: light(true),
      onblur: light(false),
      onclick: () => open(position),
      onkeydown(event) {
        const { key } = event as KeyboardEvent;
        const ways: Record<string, number> = {
          ArrowRight: position + 1,
          ArrowLeft: position - 1,
          Home: 0,
          End: made.length - 1,
        };
        const next = made[ways[key]];
        if (next) {
          for (const one of made) one.tabIndex = one === next ? 0 : -1;
          next.focus();
        } else if (key === "Enter" || key === " ") open(position);
        else return;
        event.preventDefault();
      },
    });
  });
  return made;
}

/** Opens the largest weight with which the shown head of cross-attention reads a source word. */
async function readBy(app: App, column: number) {
  const { layer, head } = app.state.heads.cross;
  const name = `${attentionName(FAMILIES[1], layer)}.weights`;
  const {
    shape: [, rows, columns],
    data,
  } = await app.value(name);
  const weight = (row: number) => data[(head * rows + row) * columns + column];
  const best = Array.from({ length: rows }, (_, row) => row).reduce((a, b) =>
    weight(b) > weight(a) ? b : a,
  );
  if (column < columns) app.select(name, [head, best, column]); // some mistakes make the decoder read itself
}

/** Returns the output's words; the length of the line under each shows its probability. */
function confidentTokens(app: App, { outputTokens, hypothesis }: Translated) {
  const made = tokens(app, outputTokens, "output", (at) => app.show({ word: at, panel: "why" }));
  made.forEach((one, at) => {
    const probability = Math.exp(hypothesis.tokenLogProbs[at]);
    one.classList.add("gf-confident");
    one.style.setProperty("--share", `${Math.round(100 * probability)}%`);
    one.title = app.t("output.word", outputTokens[at], numberText(probability, 3));
  });
  return made;
}

function panels(app: App) {
  const aside = element("aside", { className: "gf-panels" });
  const ids = app.panels;
  const tabs = element("div", { role: "tablist", className: "gf-tabs" });
  const prefix = `gf-${Math.random().toString(36).slice(2)}`;
  function fill() {
    tabs.setAttribute("aria-label", app.t("page.panels"));
    refill(
      tabs,
      ids.map((id) =>
        element(
          "button",
          {
            type: "button",
            role: "tab",
            id: `${prefix}-tab-${id}`,
            "aria-controls": `${prefix}-${id}`,
            "aria-selected": String(id === app.state.panel),
            tabindex: id === app.state.panel ? "0" : "-1",
            onclick: () => app.show({ panel: id }),
          },
          app.t(`panel.${id}`),
        ),
      ),
    );
    holders.forEach((holder, place) => {
      holder.hidden = ids[place] !== app.state.panel;
    });
  }
  tabs.addEventListener("keydown", (event) => {
    const step = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft");
    if (step === 0) return;
    app.show({ panel: ids[(ids.indexOf(app.state.panel) + step + ids.length) % ids.length] });
    (tabs.querySelector("[aria-selected=true]") as HTMLElement | null)?.focus();
    event.preventDefault();
  });
  const holders = ids.map((id) =>
    element("div", {
      role: "tabpanel",
      id: `${prefix}-${id}`,
      "aria-labelledby": `${prefix}-tab-${id}`,
      tabindex: "0",
    }),
  );
  const settle = () => {
    if (app.state.view !== "numbers") return;
    holders.forEach((holder, place) => holder.append(panelOf(app, ids[place]))); // from the sheet, perhaps
  };
  settle();
  app.on(["view"], settle);
  refill(aside, tabs, holders);
  fill();
  app.on(["panel", "language"], fill);
  return aside;
}
