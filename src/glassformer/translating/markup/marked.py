"""A text with tags and its units, which can be rebuilt with other words in the units."""

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
    """A text and its units in order. A unit may be inside a tag of another unit, as the unit of an attribute is."""

    text: str
    units: tuple[Unit, ...]

    def rebuilt(self, changed: Mapping[int, Sequence[Chunk]]) -> str:
        """Return the text with new chunks for the units with these indices; everything else is kept."""
        done: list[Replacement] = []
        # This order puts inner units before their outer unit: they end earlier or, if both end together, begin later.
        for place in sorted(changed, key=lambda one: (self.units[one].end, -self.units[one].begin)):
            unit, inner = self.units[place], list[Replacement]()
            while done and unit.begin <= done[-1].begin:
                inner.append(done.pop())
            done.append(unit.edit(changed[place], inner, self.text))
        return edited(self.text, done)

    def line(self, place: int) -> int:
        """Return the number of the line in which a unit begins, counted from 1."""
        return bisect_right(self._line_starts, self.units[place].begin)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]
