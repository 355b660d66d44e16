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


def rest(page: Any) -> None:
    """Wait until the present state is an entry of the history; a state that follows within 400 ms would replace it."""
    page.wait_for_timeout(450)


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
    page.evaluate("(looks) => glassformer.app.show(looks)", {"view": "stage", "chapter": 0, "panel": panel, **looks})
    return page
