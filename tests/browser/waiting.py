"""Functions that wait for the explorer's page and open its panels."""

from typing import Any


def until(page: Any, condition: str) -> None:
    """Wait until an expression is true; the page's policy forbids Playwright's own way of waiting."""
    page.evaluate(
        """(condition) => new Promise((done, fail) => {
      const last = performance.now() + 20000;
      const look = () => {
        if (CONDITION) done(null);
        else if (performance.now() > last) fail(new Error(condition));
        else requestAnimationFrame(look);
      };
      look();
    })""".replace("CONDITION", condition),
        condition,
    )


COUNT_TIMERS = """(() => {
  const { setTimeout: later, clearTimeout: cancel } = globalThis;
  globalThis.soon = new Set();
  globalThis.setTimeout = (act, wait = 0, ...given) => {
    const id = later(() => (soon.delete(id), act(...given)), wait);
    if (wait < 50) soon.add(id); // a longer timer is not work: it waits for the reader
    return id;
  };
  globalThis.clearTimeout = (id) => (soon.delete(id), cancel(id));
})()"""
"""A script that runs before the page's own scripts, and counts the timers that split the page's work into parts."""


def settled(page: Any) -> None:
    """Wait until the page has computed and drawn everything for its present state."""
    page.evaluate("""async () => {
      for (const last = performance.now() + 20000; performance.now() < last; ) {
        await new Promise(requestAnimationFrame);
        await scheduler.postTask(() => {}, { priority: "background" }); // after all that the page has begun
        if (!soon.size && !glassformer.app.state.busy) return;
      }
      throw new Error("the page does not come to rest");
    }""")


def rest(page: Any) -> None:
    """Make the present state an entry of the history, which a state that follows within 400 ms would replace."""
    page.evaluate("""() => {
      const later = performance.now() + 450 - Performance.prototype.now.call(performance);
      performance.now = () => Performance.prototype.now.call(performance) + later;
    }""")


def translate(page: Any, text: str) -> None:
    """Type a sentence into the field that the pencil opens."""
    page.locator(".gfs-edit").click()
    field = page.get_by_role("combobox", name="Source sentence")
    field.fill(text)
    field.press("Enter")


def open_panel(page: Any, panel: str) -> Any:
    """Open a panel in its place, a box or the sheet of the figure, and return the page."""
    box = {"why": "decoder.softmax", "beam": "decoder.softmax", "positions": "encoder.positions"}.get(panel)
    looks = {"zoom": {"box": box, "key": None}, "sheet": False} if box else {"zoom": None, "sheet": True}
    page.evaluate("(looks) => glassformer.app.show(looks)", {"chapter": 0, "panel": panel, **looks})
    return page
