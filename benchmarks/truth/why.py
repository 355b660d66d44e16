"""Checks of the sentences in the panel "Why?": a word, its rival, and what the choice between them depends on."""

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

from benchmarks.truth.claims import differs, differs_in_times, expected, first, read
from benchmarks.truth.seen import Check, Seen, family_of

__all__ = ["CHECKS"]

CLOSE = 1e-3
"""Effects that differ by less, in nats, may come in either order."""
MOSTLY = 0.5
T = TypeVar("T")


def margin(seen: Seen, log_probs: Tensor) -> float:
    """Return log p of the word minus log p of its rival."""
    return float(log_probs[seen.output[seen.row]] - log_probs[seen.rival()])


def leads(is_so: Callable[[Seen], bool], word: str = "0", other: str = "1") -> Check:
    """Return a check of the ratio of the two words' probabilities."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        return first(
            expected("word", values[word], seen.token(seen.output[seen.row], "target")),
            expected("rival", values[other], seen.token(seen.rival(), "target")),
            differs_in_times(
                values["2"],
                margin(seen, seen.log_probs),
                *(math.exp(float(seen.log_probs[id])) for id in (seen.output[seen.row], seen.rival())),
            ),
            "" if is_so(seen) else "the words stand in a different relation",
        )

    return check


def then(seen: Seen, text: str, left: float) -> str:
    """Check which word is then more probable, and by which factor; `left` is the remaining margin."""
    found = read(text, seen.state["language"], ["why.then"])
    if not found or len(found) != 1:
        return f"{text} does not compare two words"
    values = found[0].values
    pair = [seen.token(id, "target") for id in (seen.output[seen.row], seen.rival())]
    words = [values["0"], values["1"]]
    is_even = abs(left) < CLOSE
    return first(
        "" if words == (pair if left >= 0 else pair[::-1]) or (is_even and sorted(words) == sorted(pair)) else "no",
        differs_in_times(values["2"], left),
    )


def strongest(usual: float, left: Mapping[T, float]) -> list[T]:
    """Return the keys of `left` without which the margin changes most; `left` has the margin without each key."""
    most = max(abs(one - usual) for one in left.values())
    return [name for name, one in left.items() if abs(one - usual) >= most - CLOSE]


def needs(place: int) -> Check:
    """Return a check of the source word without which the margin falls most (or second most, by `place`)."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        left = [margin(seen, seen.hidden(at)) for at in range(len(seen.source))]
        wanted = sorted(left)[place]
        right = {
            seen.token(id, "source"): one for id, one in zip(seen.source, left, strict=True) if is_near(one, wanted)
        }
        if values["0"] not in right:
            return f"it depends on {', '.join(right)}"
        word = seen.output[seen.row]
        halved = float(seen.hidden(left.index(right[values["0"]]))[word]) < math.log(seen.probability(word) / 2) + CLOSE
        falls = wanted < margin(seen, seen.log_probs)
        return then(seen, values["1"], right[values["0"]]) or (
            "" if falls and (place == 0 or halved) else "it does not"
        )

    return check


def is_near(one: float, other: float) -> bool:
    return abs(one - other) < CLOSE


def margins_without(seen: Seen) -> dict[tuple[str, int], float]:
    """Return the margin without each head, for all heads that are on."""
    off = seen.changes.get("ablated", {})
    on = ((name, head) for name, head in seen.model.heads if head not in off.get(name, []))
    return {(name, head): margin(seen, seen.without(name, head)) for name, head in on}


def head(seen: Seen, values: Mapping[str, str]) -> str:
    usual, left = margin(seen, seen.log_probs), margins_without(seen)
    for name, at in strongest(usual, left):
        layer, number = re.findall(r"\d+", values["0"])
        is_named = (layer, number) == (name.split(".")[2], str(at))
        if is_named and seen.words[f"family.{family_of(name)}"].lower() in values["0"]:
            return then(seen, values["1"], left[name, at])
    return "a different head matters most"


def reads(is_so: Callable[[float], bool], *, hand: bool = False) -> Check:
    """Return a check of the word that the strongest head reads; another sentence names this head.

    `is_so`: whether the sentence is true for a row with this largest weight. `hand`: whether the sentence says that the
    reader has turned the row.
    """

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        usual, left = margin(seen, seen.log_probs), margins_without(seen)
        rows = seen.changes.get("overrides", {})

        def turned(name: str, at: int) -> bool:
            return any(one[:2] == [at, seen.row] for one in rows.get(name, []))

        whys = []
        for name, at in strongest(usual, left):
            weights = seen.weights(name, at, seen.row)
            is_cross = name.endswith("cross_attention")
            ids = seen.source if is_cross else seen.written
            place = int(weights.argmax())
            most = float(weights[place])
            whys.append(
                first(
                    expected("word", values["0"], seen.token(ids[place], "source" if is_cross else "target")),
                    differs(values["1"], most, "its weight"),
                    "" if is_so(most) else f"its weight is {most:.3f}",
                    "" if turned(name, at) == hand else "the row was made in a different way",
                )
            )
        return "" if "" in whys else whys[0]

    return check


def row(seen: Seen, values: Mapping[str, str]) -> str:
    return first(
        expected("row", values["0"], str(seen.row)),
        expected("word that is read", values["1"], seen.token(seen.written[seen.row], "target")),
        expected("next word", values["2"], seen.token(seen.output[seen.row], "target")),
    )


def entropy(seen: Seen, values: Mapping[str, str]) -> str:
    nats = float(torch.special.entr(seen.log_probs.double().exp()).sum())
    return differs(values["0"], nats, "the entropy")


def direct(seen: Seen, values: Mapping[str, str]) -> str:
    logits = seen.trace["logits"][seen.row]
    return differs(values["2"].removeprefix("+"), float(logits[seen.output[seen.row]] - logits[seen.rival()]))


def title(seen: Seen, values: Mapping[str, str]) -> str:
    return expected("word", values["0"], seen.token(seen.output[seen.row], "target"))


CHECKS: dict[str, Check] = {
    "why.title": title,
    "why.leads": leads(lambda seen: margin(seen, seen.log_probs) > -CLOSE),
    "why.trails": leads(lambda seen: margin(seen, seen.log_probs) < CLOSE and not seen.is_forced),
    "why.given": leads(lambda seen: margin(seen, seen.log_probs) < CLOSE and seen.is_forced),
    "why.needs": needs(0),
    "why.needs.next": needs(1),
    "why.head": head,
    "why.reads": reads(lambda weight: weight > MOSTLY - CLOSE),
    "why.reads.shared": reads(lambda weight: weight < MOSTLY + CLOSE),
    "why.reads.hand": reads(lambda _: True, hand=True),
    "why.row": row,
    "why.entropy": entropy,
    "why.direct.about": direct,
}
"""The check of each template, by the template's key."""
