// One view: the frame of the page, and the console for scripts and tests.
import { createApp, messageOf } from "../app/app.ts";
import { arithmetic } from "../../engine/arithmetic.ts";
import { element, refill, watchSize } from "../app/dom.ts";
import { claimLink, keepLink } from "./link.ts";
import { followChapters, welcome } from "../chapters/chapter_view.ts";
import { followLecture } from "./lecture.ts";
import { createStage } from "./stage.ts";
import { createTask } from "../chapters/tasks.ts";

import type { Host, Payload } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { SomeChanges } from "../app/types.ts";

/** The console of a view, usable once `ready` resolves; docs/explorer.md describes it. */
export interface View {
  ready: Promise<void>;
  app: App | null;
  /** The view that was mounted before this view. */
  earlier: View | undefined;
  closed: boolean;
  close(): void;
}

/** An element that may hold a view. */
export type Mounted = HTMLElement & { glassformer?: View };

declare global {
  /** The newest open view on the page. */
  var glassformer: View | undefined;
}

/** Returns the newest view that is still open: this view, or an earlier view if this view is closed. */
function stillOpen(view: View | undefined): View | undefined {
  return view?.closed ? stillOpen(view.earlier) : view;
}

/** Returns the console of the view in `el`; the view can be used once `ready` resolves. */
export function createView(el: Mounted, payload: Payload, host: Host | null) {
  const closing = new AbortController(),
    earlier = globalThis.glassformer;
  claimLink(closing.signal);
  const root = element("div", "glassformer");
  refill(el, element("style", {}, payload.styles), root);
  let app: App | null = null;
  const made = createApp(payload, host, closing.signal);
  const ready = made.then(async (one) => {
    if (closing.signal.aborted) return;
    app = one;
    const begin = build(root, app);
    await keepLink(app);
    welcome(app);
    begin();
  });
  ready.catch((error) => {
    refill(root, element("p", { class: "gf-error", role: "alert" }, messageOf(error)));
  });
  /** Returns a function that runs an action once the view is ready. */
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
 * Builds the page. Returns a function that starts drawing; call this function once the address has been read into the
 * state.
 */
function build(root: HTMLElement, app: App) {
  const print = matchMedia("print");
  const dress = () => {
    root.dataset.theme = print.matches ? "light" : app.state.theme;
    root.lang = app.state.language === "zh" ? "zh-CN" : "en";
    const page = document.documentElement;
    // a page without this attribute belongs to another program
    if (page.hasAttribute("data-explorer")) page.lang = root.lang;
  };
  dress();
  app.on(["theme", "language"], dress); // before the pictures, which read the theme's colours
  const redress = () => {
    dress();
    app.layOut();
  };
  print.addEventListener("change", redress, { signal: app.signal });
  const figure = createStage(app);
  const problems = element("p", { class: "gf-error", role: "alert", hidden: true });
  app.on(["problem"], ({ problem }) => {
    problems.textContent = problem;
    problems.hidden = !problem;
  });
  refill(root, element("div", "gf-problem", problems), figure.element);
  watchWidth(root, app);
  return () => {
    root.append(createTask(app));
    figure.begin();
    followChapters(app);
    followLecture(app, root);
  };
}

/** Redraws the pictures when the page's width changes. */
function watchWidth(root: HTMLElement, app: App) {
  let width = root.clientWidth;
  watchSize(app.signal, root, () => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    app.layOut();
  });
}
