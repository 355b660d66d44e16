"""Checks of the sentences in an opened feed-forward network, sum or norm."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from benchmarks.truth.claims import ROUNDING, differs, expected, first
from benchmarks.truth.seen import Check, Seen

__all__ = ["CHECKS"]


def sublayer(seen: Seen) -> str:
    """Return the part of the model to which an opened sum or norm belongs."""
    return seen.box.rpartition(".")[0]


def ends(seen: Seen) -> tuple[Tensor, Tensor]:
    """Return the vector before and after the opened box."""
    part, is_sum = sublayer(seen), seen.box.endswith(".add")
    if part in ("encoder", "decoder"):  # the final norm of a stack
        config = seen.model.config
        last = (config.encoder_layers if part == "encoder" else config.decoder_layers) - 1
        return (
            seen.trace[f"{part}.layers.{last}.feed_forward.{'added' if seen.norm == 'pre' else 'normed'}"][seen.query],
            seen.trace[f"{part}.output"][seen.query],
        )
    after = "added" if is_sum and seen.norm == "pre" else "normed"
    return seen.trace[f"{part}.input"][seen.query], seen.trace[f"{part}.{after}"][seen.query]


def guesses(seen: Seen, vector: Tensor) -> set[str]:
    """Return the word that the model would write if this vector were the last one; several if equally likely."""
    log_probs = seen.lens(vector)
    likeliest = (log_probs >= log_probs.max() - ROUNDING).nonzero()[:, 0].tolist()
    return {seen.name(id, "target") for id in likeliest}


def turn(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the number of degrees by which the box turns the vector, and the guesses before and after the box."""
    before, after = (end.double() for end in ends(seen))
    degrees = math.degrees(math.acos(max(-1.0, min(1.0, float(torch.cosine_similarity(before, after, dim=0))))))
    words = [guesses(seen, end) for end in ends(seen)] if "2" in values else [set(), set()]
    said = [values.get("2", ""), values.get("3", values.get("2", ""))]
    return first(
        expected("word", values["0"], seen.queries[seen.query]),
        "" if abs(float(values["1"]) - degrees) <= 0.51 else f"it turns by {degrees:.1f} degrees",
        *(
            "" if not word or word in right else f"the guess is {', '.join(right)}"
            for word, right in zip(said, words, strict=True)
        ),
    )


def stands_for(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the word and its probability if the vector after an opened sum were the model's last vector."""
    stack, _, layer, part = sublayer(seen).split(".")
    vector = seen.trace[f"{sublayer(seen)}.{'added' if seen.norm == 'pre' else 'normed'}"][seen.query]
    log_probs = seen.lens(vector, stack)
    best, side = float(log_probs.max()), "source" if stack == "encoder" else "target"
    likeliest = (log_probs >= best - ROUNDING).nonzero()[:, 0].tolist()
    named = seen.words["zoom.layer"].replace("{0}", seen.words[f"zoom.add.from.{part}"]).replace("{1}", layer)
    return first(
        expected("word", values["0"], seen.queries[seen.query]),
        "" if values["1"] in {seen.name(id, side) for id in likeliest} else f"it is {seen.name(likeliest[0], side)}",
        differs(values["2"], math.exp(best), "its probability"),
        expected("box", values["3"], named),
    )


def length(seen: Seen, values: Mapping[str, str]) -> str:
    before, after = (float(end.double().norm()) for end in ends(seen))
    return first(
        expected("word", values["0"], seen.queries[seen.query]),
        differs(values["1"], before, "its length before"),
        differs(values["2"], after, "its length after"),
    )


def units(says_words: bool) -> Check:
    """Return a check of the number of active units, and of the strongest unit with its words or its number."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        activated = seen.trace[f"{seen.box}.activated"][seen.query]
        unit = int(values["3"])
        return first(
            expected("number of active units", values["0"], str(int((activated > 0).sum()))),
            expected("number of units", values["1"], str(len(activated))),
            expected("word", values["2"], seen.queries[seen.query]),
            "" if activated[unit] >= activated.max() - ROUNDING else f"unit {int(activated.argmax())} is the strongest",
            pushes(seen, unit, values["4"]) if says_words else differs(values["4"], float(activated[unit])),
        )

    return check


def pushes(seen: Seen, unit: int, said: str) -> str:
    """Check the words that a unit favours: the rows of the word matrix with the largest product with its vector."""
    side, table = ("source", "source.tokens.weight") if seen.family == "encoder" else ("target", "output.weight")
    with seen.model.under(seen.changes) as model:
        weights = model.state_dict()
    scores = weights[table] @ weights[f"{seen.box}.contract.weight"][:, unit]
    words = [f"“{seen.name(id, side)}”" for id in scores.topk(2).indices.tolist()]
    return expected("words", said, seen.words["word.comma"].join(words))


def no_units(seen: Seen, values: Mapping[str, str]) -> str:
    activated = seen.trace[f"{seen.box}.activated"][seen.query]
    return first(
        expected("number of units", values["0"], str(len(activated))),
        expected("word", values["1"], seen.queries[seen.query]),
        "" if not bool((activated > 0).any()) else "a unit is above 0",
    )


def unit(says_words: bool) -> Check:
    """Return a check of an open, active unit, and of its words."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        at = int(values["0"])
        activation = float(seen.trace[f"{seen.box}.activated"][seen.query][at])
        return first(
            expected("word", values["1"], seen.queries[seen.query]),
            differs(values["2"], activation),
            "" if activation > 0 else "it does not answer",
            pushes(seen, at, values["3"]) if says_words else "",
        )

    return check


def silent_unit(seen: Seen, values: Mapping[str, str]) -> str:
    before, after = (
        float(seen.trace[f"{seen.box}.{point}"][seen.query][int(values["0"])]) for point in ("hidden", "activated")
    )
    return first(
        expected("word", values["1"], seen.queries[seen.query]),
        differs(values["2"], before),
        differs(values["3"], after),
        "" if after <= 0 else "it answers",
    )


def read_number(seen: Seen, values: Mapping[str, str]) -> str:
    point = "normed" if seen.norm == "pre" else "input"
    return first(
        expected("word", values["0"], seen.queries[seen.query]),
        differs(values["2"], float(seen.trace[f"{seen.box}.{point}"][seen.query][int(values["1"])])),
    )


def written_number(seen: Seen, values: Mapping[str, str]) -> str:
    return first(
        expected("number of units", values["0"], str(seen.model.config.d_ff)),
        differs(values["2"], float(seen.trace[f"{seen.box}.output"][seen.query][int(values["1"])])),
    )


def column(*points: str) -> Check:
    """Return a check of one column of an opened sum or norm: its numbers at these points of the box."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        at, (before, after) = int(values["0"]), ends(seen)
        inner = {one: seen.trace[f"{sublayer(seen)}.{one}"][seen.query] for one in points if one in ("output", "added")}
        numbers = {"input": before, "normed": after, **inner}
        return first(*(differs(values[str(place)], float(numbers[one][at])) for place, one in enumerate(points, 1)))

    return check


def place(seen: Seen, values: Mapping[str, str]) -> str:
    layer = values.get("1")
    return first(
        expected("stack", values["0"], seen.words[f"stage.{seen.box.split('.')[0]}"]),
        expected("layer", layer, seen.box.split(".")[2]) if layer else "",
    )


def network(seen: Seen, values: Mapping[str, str]) -> str:
    stack, _, layer, _ = seen.box.split(".")
    return first(
        expected("network", values["0"], seen.words[f"numbers.feed.{stack}"]), expected("layer", values["1"], layer)
    )


SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")
CHECKS: dict[str, Check] = {
    "zoom.add.turned": turn,
    "zoom.add.same": turn,
    "zoom.add.guess": turn,
    "zoom.add.length": length,
    **{f"zoom.guess.{stack}": stands_for for stack in ("encoder", "decoder")},
    "zoom.units.said": units(says_words=True),
    "zoom.units.most": units(says_words=False),
    "zoom.units.none": no_units,
    "zoom.units.unit": unit(says_words=False),
    "zoom.units.pushes": unit(says_words=True),
    "zoom.units.silent": silent_unit,
    "zoom.units.read": read_number,
    "zoom.units.output": written_number,
    "zoom.add.sum": column("input", "output", "added"),
    "zoom.add.sum.norm": column("input", "output", "added", "normed"),
    "zoom.add.one": column("input"),
    "zoom.add.one.norm": column("input", "normed"),
    "zoom.add.final": place,
    **{f"zoom.add.place.{part}.{end}": place for part in SUBLAYERS for end in ("add", "norm")},
    "zoom.layer": network,
}
"""The check of each template, by the template's key."""
