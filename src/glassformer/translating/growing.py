"""How translations begin, while greedy search still writes them."""

from collections.abc import Iterable, Iterator, Sequence
from threading import Condition
from typing import NamedTuple

from glassformer.decoding.engine import Ids

__all__ = ["Beginning", "Growth", "shown"]


class Beginning(NamedTuple):
    """The text of a translation so far."""

    text: str
    """Begins with every earlier beginning of the same translation."""
    is_whole: bool
    """Whether it is the whole translation."""


class Growth:
    """The outputs of a running search: its threads tell what they have written, and another thread reads it.

    Only the newest state of each output is kept, so that a slow reader costs neither time nor memory.
    """

    def __init__(self, watched: Iterable[int]) -> None:
        self._watched = frozenset(watched)
        self._news: dict[int, tuple[Sequence[int], bool]] = {}
        self._given_up: set[int] = set()
        self._changed = Condition()
        self._has_ended = False

    def tell(self, place: int, ids: Sequence[int], is_whole: bool) -> None:
        """Note the tokens so far of the output of a text; the sequence may grow later."""
        if place in self._watched:
            with self._changed:
                self._news[place] = ids, is_whole
                self._changed.notify()

    def is_wanted(self, place: int) -> bool:
        """Return whether somebody still waits for the output of a text."""
        return place not in self._given_up

    def give_up(self, places: Iterable[int]) -> None:
        """Let the search end the outputs of these texts."""
        self._given_up.update(places)

    def end(self) -> None:
        """Note that the search has ended."""
        with self._changed:
            self._has_ended = True
            self._changed.notify()

    def news(self) -> Iterator[dict[int, tuple[Ids, bool]]]:
        """Yield the outputs that have grown since the last time, whenever there are some, until the search ends."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._news or self._has_ended)
                news, self._news = self._news, {}
            if not news:
                return
            yield {place: (tuple(ids), is_whole) for place, (ids, is_whole) in news.items()}


def shown(text: str) -> str:
    """Return the part of the text of some first tokens with which the text of all tokens begins, too.

    Without the bytes that follow, the bytes of a character are decoded as U+FFFD. A space at the end may be removed.
    """
    return text.rstrip(" \ufffd")
