"""Checks of the sentences in opened boxes: Linear, Softmax, the embedding and the positions."""

from collections.abc import Callable, Mapping

from torch import Tensor

from benchmarks.truth.claims import differs, expected, first
from benchmarks.truth.seen import Check, Seen

__all__ = ["CHECKS", "GENERAL"]

LOWEST = 2**-126
"""The temperature that stands for 0."""


def open_word(seen: Seen) -> int:
    """Return the word whose number is open: the reader's choice or, by default, the written word."""
    key = seen.state["zoom"]["key"]
    return seen.output[seen.row] if key is None else int(key)


def of_word(number: str, what: Callable[[Seen], Tensor], is_so: Callable[[Seen, int], bool], rank: str = "") -> Check:
    """Return a check of the open word, its number, and its rank among all words."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        id, all = open_word(seen), what(seen)
        place = int((all > all[id]).sum()) + 1
        return first(
            expected("number of words", values["0"], str(len(all))),
            expected("word", values["1"], seen.name(id, "target")),
            differs(values[number], float(all[id])),
            differs(values["3"], seen.state["temperature"], "the temperature") if not rank and "3" in values else "",
            expected("rank", values[rank], str(place)) if rank else "",
            "" if is_so(seen, place) else f"its rank is {place}",
        )

    return check


def probabilities(seen: Seen) -> Tensor:
    """Return the probabilities (V) at the temperature that the reader has set."""
    temperature = max(seen.state["temperature"], LOWEST)
    shares: Tensor = (seen.log_probs.double() / temperature).softmax(-1)
    return shares


def logits(seen: Seen) -> Tensor:
    return seen.trace["logits"][seen.row]


def vector(seen: Seen, values: Mapping[str, str]) -> str:
    numbers = seen.trace["decoder.output"][seen.row]
    at = seen.state["selected"]["index"][1]
    return first(
        expected("count of numbers", values["0"], str(len(numbers))),
        expected("number", values["1"], str(at)),
        differs(values["2"], float(numbers[at])),
    )


def closest(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the two likeliest words, at the step (other than the lit one) where their probabilities are closest."""
    two, ids = seen.trace["log_probs"].exp().topk(2)
    gaps = [(float(two[row, 0] - two[row, 1]), row) for row in range(len(two)) if row != seen.row]
    least = min(gaps)[0]
    whys = []
    for row in (row for gap, row in gaps if gap < least + 1e-4):
        words = [seen.name(int(id), "target") for id in ids[row]]
        whys.append(
            first(
                expected("first word", values["0"], words[0]),
                differs(values["1"], float(two[row, 0])),
                expected("second word", values["2"], words[1]),
                differs(values["3"], float(two[row, 1])),
            )
        )
    return "" if "" in whys else whys[0]


def side(seen: Seen) -> str:
    return "source" if seen.box.startswith("encoder") else "target"


def id_of(seen: Seen) -> int:
    ids = seen.source if side(seen) == "source" else seen.written
    return ids[seen.query]


def own_row(seen: Seen, values: Mapping[str, str]) -> str:
    return first(
        expected("word", values["0"], seen.queries[seen.query]),
        expected("count of numbers", values["1"], str(seen.model.config.d_model)),
        expected("row", values["2"], str(id_of(seen))),
    )


def entry(point: str, kinds: tuple[str, ...], place: str, at: str, number: str, word: str = "") -> Check:
    """Return a check of one number of a position's vector or of the sum, for positions of these kinds."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        numbers = seen.trace[f"{side(seen)}.{point}"][seen.query]
        return first(
            expected("word", values[word], seen.queries[seen.query]) if word else "",
            expected("position", values[place], str(seen.query)) if place else "",
            differs(values[number], float(numbers[int(values[at])])),
            "" if seen.positions in kinds else f"the positions are {seen.positions}",
        )

    return check


def name_only(_: Seen, values: Mapping[str, str]) -> str:
    """Check a name, such as the name of a box; a name makes no claim."""
    return "" if not values else "it has places"


WAVES = ("interleaved", "halves")
CHECKS: dict[str, Check] = {
    "zoom.words.about.vector": vector,
    "zoom.words.about.probability": of_word("2", probabilities, lambda *_: True),
    "zoom.words.about.best": of_word("2", logits, lambda _, rank: rank == 1),
    "zoom.words.about.logit": of_word("2", logits, lambda _, rank: rank > 1, "3"),
    "zoom.words.closest": closest,
    "zoom.embedding.about.embedding": own_row,
    "zoom.embedding.about.waves": entry("positions", WAVES, "0", "1", "2"),
    "zoom.embedding.about.learned": entry("positions", ("learned",), "0", "1", "2"),
    "zoom.embedding.about.sum": entry("input", (*WAVES, "learned"), "1", "2", "3", word="0"),
    "zoom.embedding.about.none": entry("input", ("none",), "", "1", "2", word="0"),
    "zoom.embedding.place": lambda seen, values: expected("position", values["0"], str(seen.query)),
}
"""The check of each template, by the template's key."""
GENERAL: dict[str, Check] = {
    "stage.box.decoder.linear": name_only,
    "stage.box.decoder.softmax": name_only,
    "stage.encoder": name_only,
    "stage.decoder": name_only,
}
"""The names of boxes and stacks."""
