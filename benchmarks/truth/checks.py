"""The checks of all templates, and a function that checks a text made of templates."""

from collections.abc import Sequence

from benchmarks.truth import acts, boxes, chapter, layers, stage, why, zoom
from benchmarks.truth.claims import Claim, Problem, read
from benchmarks.truth.seen import Check, Seen

__all__ = ["CHECKS", "GENERAL", "problems"]

CHECKS: dict[str, Check] = {
    **stage.CHECKS,
    **zoom.CHECKS,
    **boxes.CHECKS,
    **layers.CHECKS,
    **why.CHECKS,
    **chapter.CHECKS,
    **acts.CHECKS,
}
"""The checks of the templates about this model."""
GENERAL: dict[str, Check] = {**stage.GENERAL, **zoom.GENERAL, **boxes.GENERAL, **chapter.GENERAL, **acts.GENERAL}
"""The checks of templates that are true of every such model: they check only the words and the kind of model."""


def problems(seen: Seen, text: str, kinds: Sequence[str]) -> tuple[list[Claim], list[Problem]]:
    """Return the claims of a text, and the problems of false claims."""
    claims = read(text, seen.state["language"], kinds)
    if claims is None:
        return [], [Problem("", text, "no template of the page's texts")]
    found = []
    for key, values in claims:
        if key in CHECKS or key in GENERAL:
            why = (CHECKS.get(key) or GENERAL[key])(seen, values)
        else:
            why = "this template has no check"
        if why:
            found.append(Problem(key, text, why))
    return claims, found
