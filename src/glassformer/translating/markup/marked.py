"""A text with tags: its units, and the text again with other words in their places."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from glassformer.text.edits import Replacement, edited
from glassformer.translating.markup.units import Chunk, Unit

__all__ = ["MarkedText"]


@dataclass(frozen=True, kw_only=True)
class MarkedText:
    """A text and its units in order; units may stand in the marks of other units, as attributes do."""

    text: str
    units: tuple[Unit, ...]

    def rebuilt(self, changed: Mapping[int, Sequence[Chunk]]) -> str:
        """Return the text with new chunks for some units, by their indices; all else stays as it is."""
        done: list[Replacement] = []
        # Inner units come first: they end earlier or, if both end at the same character, begin later.
        for place in sorted(changed, key=lambda one: (self.units[one].end, -self.units[one].begin)):
            unit, inner = self.units[place], list[Replacement]()
            while done and unit.begin <= done[-1].begin:
                inner.append(done.pop())
            done.append(unit.edit(changed[place], inner, self.text))
        return edited(self.text, done)

    def line(self, place: int) -> int:
        """Return the line in which a unit begins, from 1."""
        return bisect_right(self._line_starts, self.units[place].begin)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]
