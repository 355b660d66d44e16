"""Waiting for a page of the explorer."""

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
