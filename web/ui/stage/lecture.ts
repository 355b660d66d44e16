// Lecture mode: the stage on the whole screen, in type that is read from the last row.
import { isForPage } from "../dom.ts";

import type { App } from "../app.ts";

/** Follows the state into lecture mode and out of it; F, and Escape, do the same from the keyboard. */
export function followLecture(app: App, root: HTMLElement) {
  const { signal } = app;
  let isWhole = false; // whether this view has the screen, rather than its frame
  const follow = async () => {
    const { lecture } = app.state;
    root.toggleAttribute("data-lecture", lecture);
    if (lecture) {
      await root.requestFullscreen?.().catch(() => {}); // refused, as in most frames: the stage fills its frame
      isWhole = document.fullscreenElement === root;
    } else {
      // Escape is a key: the focus ring of the figure would be drawn around the whole page
      if (document.activeElement instanceof SVGElement) document.activeElement.blur();
      if (isWhole && document.fullscreenElement === root) await document.exitFullscreen();
      isWhole = false;
    }
    app.layOut();
  };
  app.on(["lecture"], () => void follow());
  const left = () => isWhole && !document.fullscreenElement && app.show({ lecture: false });
  document.addEventListener("fullscreenchange", left, { signal });
  const key = (event: KeyboardEvent) => {
    const { view, zoom, sheet, lecture } = app.state;
    if (view !== "stage" || !isForPage(event)) return;
    if (event.key === "f") app.show({ lecture: !lecture });
    else if (event.key === "Escape" && lecture && !zoom && !sheet) app.show({ lecture: false });
    else return;
    event.preventDefault();
  };
  window.addEventListener("keydown", key, { signal });
}
