"""What an opened feed-forward network, sum or norm says."""

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
    if part in ("encoder", "decoder"):  # the norm that ends a stack
        config = seen.model.config
        last = (config.encoder_layers if part == "encoder" else config.decoder_layers) - 1
        return (
            seen.trace[f"{part}.layers.{last}.feed_forward.added"][seen.query],
            seen.trace[f"{part}.output"][seen.query],
        )
    after = "added" if is_sum and seen.model.config.norm == "pre" else "normed"
    return seen.trace[f"{part}.input"][seen.query], seen.trace[f"{part}.{after}"][seen.query]


def guesses(seen: Seen, vector: Tensor) -> set[str]:
    """Return the word that the model would write if this vector were its last; several if they are as likely."""
    model = seen.model.transformer
    with torch.no_grad():
        log_probs = model.output(model.decoder.norm(vector)).log_softmax(-1)
    likeliest = (log_probs >= log_probs.max() - ROUNDING).nonzero()[:, 0].tolist()
    return {seen.name(id, "target") for id in likeliest}


def turn(seen: Seen, values: Mapping[str, str]) -> str:
    """Check by how many degrees the box turns the vector, and the guesses before and after it."""
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


def length(seen: Seen, values: Mapping[str, str]) -> str:
    before, after = (float(end.double().norm()) for end in ends(seen))
    return first(
        expected("word", values["0"], seen.queries[seen.query]),
        differs(values["1"], before, "its length before"),
        differs(values["2"], after, "its length after"),
    )


def units(says_words: bool) -> Check:
    """Return a check of how many units answer, of the strongest of them, and of its words or its number."""

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
    """Check the words whose rows of the matrix that reads the stream have the largest product with what a unit adds."""
    side, table = ("source", "source.tokens.weight") if seen.family == "encoder" else ("target", "output.weight")
    weights = seen.model.transformer.state_dict()
    scores = weights[table] @ weights[f"{seen.box}.contract.weight"][:, unit]
    words = [seen.name(id, side) for id in scores.topk(2).indices.tolist()]
    return expected("words", said, seen.words["word.comma"].join(words))


def no_units(seen: Seen, values: Mapping[str, str]) -> str:
    activated = seen.trace[f"{seen.box}.activated"][seen.query]
    return first(
        expected("number of units", values["0"], str(len(activated))),
        expected("word", values["1"], seen.queries[seen.query]),
        "" if not bool((activated > 0).any()) else "a unit is above 0",
    )


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
    "zoom.units.said": units(says_words=True),
    "zoom.units.most": units(says_words=False),
    "zoom.units.none": no_units,
    "zoom.add.final": place,
    **{f"zoom.add.place.{part}.{end}": place for part in SUBLAYERS for end in ("add", "norm")},
    "zoom.layer": network,
}
"""The check of each template."""
