"""One tab for all tests of a process, in which the explorer's module stays loaded.

Loading a page takes longer than most tests. Each test gets a new view of its model in this tab, at an address of its
own, as if the reader had just opened the page: a new document body, an empty storage, the usual size. As in most
frames, the browser refuses the whole screen.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from browser.payloads import KEPT
from browser.waiting import COUNT_TIMERS
from glassformer.watch.explorer import standalone

__all__ = ["SIZE", "Desk"]

Size = tuple[int, int]
SIZE = (1280, 800)
OFFER = """
Element.prototype.requestFullscreen = async () => { throw new TypeError("refused"); }; // else no test could resize it
Object.assign(globalThis, { mount, payloads: new Map() });
globalThis.own = new Set([...Object.keys(globalThis), "own", "axe"]);
"""
"""A script that gives the module's function to the tests; the page's policy permits it as part of the module."""
SHOW = """async ([key, address]) => {
  globalThis.glassformer?.close?.(); // without a view, this name means the element
  for (const name of Object.keys(globalThis)) if (!own.has(name)) delete globalThis[name];
  delete performance.now; // `rest` sets it
  const body = document.createElement("body"), place = document.createElement("div");
  place.id = "glassformer";
  body.append(place);
  document.body = body;
  localStorage.clear();
  scrollTo(0, 0);
  history.replaceState(null, "", location.pathname + address);
  await mount(place, JSON.parse(payloads.get(key))).ready;
}"""
CLOSE = "() => globalThis.glassformer?.close?.()"  # without a view, this name means the element


class Desk:
    """The tab, which is opened when a test first needs it, and again after a failed test."""

    def __init__(self, window: Any, folder: Path) -> None:
        self._window, self._folder = window, folder
        self._tab: Any = None
        self._problems: list[str] = []
        self._payloads: list[str] = []

    def show(self, shown: Mapping[str, Any], address: str, size: Size) -> Any:
        """Return the tab, in which a new view shows a payload at an address: "" or "#" and a state."""
        if self._problems:
            problems, self._tab = self._problems, None
            pytest.fail(f"an earlier test has left errors on the page that all tests share: {problems}")
        tab = self._tab = self._tab or self._opened(shown)
        if tab.viewport_size != {"width": size[0], "height": size[1]}:
            tab.set_viewport_size({"width": size[0], "height": size[1]})
        text = json.dumps(shown, allow_nan=False)
        key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        if key not in self._payloads:
            self._payloads = [*self._payloads[1 - KEPT :], key]
            tab.evaluate(
                "([keys, text]) => { payloads.set(keys.at(-1), text);"
                " for (const one of [...payloads.keys()]) if (!keys.includes(one)) payloads.delete(one); }",
                [self._payloads, text],
            )
        tab.evaluate(SHOW, [key, address])
        return tab

    def clear(self, *, is_spoilt: bool) -> list[str]:
        """Close the view, and the tab itself if a test has spoilt it; return the errors on the page."""
        problems, self._problems = self._problems, []
        tab = self._tab
        if is_spoilt or problems:
            tab.close()
            self._tab, self._payloads = None, []
        else:
            tab.mouse.move(0, 0)
            tab.evaluate(CLOSE)
        return problems

    def _opened(self, shown: Mapping[str, Any]) -> Any:
        """Return a new tab with the page of a payload."""
        path = self._folder / "page.html"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(standalone, "BOOTSTRAP", OFFER)
            path.write_bytes(standalone.page_html(shown).encode("utf-8", "replace"))
        tab, problems = self._window.new_page(), self._problems
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        tab.add_init_script(COUNT_TIMERS)
        tab.goto(path.as_uri())
        return tab
