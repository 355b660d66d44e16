// Lecture mode: the stage fills the screen, in type that can be read from the last row of a lecture hall.
import { isForPage } from "../app/dom.ts";

import type { App } from "../app/app.ts";

/** Enters and leaves lecture mode when the state changes. The keys F and Escape change the state. */
export function followLecture(app: App, root: HTMLElement) {
  const { signal } = app;
  let isWhole = false; // whether this view fills the screen instead of only its frame
  const follow = async () => {
    const { lecture } = app.state;
    root.toggleAttribute("data-lecture", lecture);
    if (lecture) {
      await root.requestFullscreen?.().catch(() => {}); // most frames refuse full screen: the stage fills its frame
      isWhole = document.fullscreenElement === root;
    } else {
      // after the Escape key, the figure's focus ring would be drawn around the whole page
      if (document.activeElement instanceof SVGElement) document.activeElement.blur();
      if (isWhole && document.fullscreenElement === root) await document.exitFullscreen();
      isWhole = false;
    }
    app.layOut();
  };
  app.on(["lecture"], () => void follow());
  if (app.state.lecture) void follow();
  const left = () => isWhole && !document.fullscreenElement && app.show({ lecture: false });
  document.addEventListener("fullscreenchange", left, { signal });
  const key = (event: KeyboardEvent) => {
    const { zoom, sheet, lecture } = app.state;
    if (!isForPage(event)) return;
    if (event.key === "f") app.show({ lecture: !lecture });
    else if (event.key === "Escape" && lecture && !zoom && !sheet) app.show({ lecture: false });
    else return;
    event.preventDefault();
  };
  window.addEventListener("keydown", key, { signal });
}
