"""Checks of the sentences in an opened attention about the chosen number."""

import re
from collections.abc import Callable, Mapping
from functools import partial, reduce

import torch
from torch import Tensor

from benchmarks.truth.claims import ROUNDING, differs, expected, first
from benchmarks.truth.seen import Check, Seen
from glassformer.watch.inspection.edits import attentions

__all__ = ["CHECKS", "GENERAL"]

SURE = 0.99
"""The largest weight of a row from which softmax leaves little for the other words."""
LEAST = 0.05
"""The smallest weight that counts as resting on a token."""
RESTING = re.compile(r"<(bos|eos|pad)>|▁?[^\w\s]+")
"""Tokens that are not words: special tokens and punctuation."""


def allowed(seen: Seen) -> list[bool]:
    """Return, for each key, whether the opened row may attend to it."""
    keys = [seen.family != "decoder" or key <= seen.query for key in range(len(seen.keys))]
    for query, key, is_allowed in seen.changes.get("masks", {}).get(seen.box, []):
        if query == seen.query and key < len(keys):
            keys[key] = is_allowed
    return keys


def by_hand(seen: Seen) -> bool:
    rows = seen.changes.get("overrides", {}).get(seen.box, [])
    return any((head, query) == (seen.head, seen.query) for head, query, _ in rows)


def key(seen: Seen) -> int:
    """Return the open key: the reader's choice, or the key with the largest weight."""
    chosen = seen.state["zoom"]["key"]
    return int(seen.lit_weights.argmax() if chosen is None else min(chosen, len(seen.keys) - 1))


def weight(word: str, share: str, is_so: Callable[[Seen], bool], count: str = "") -> Check:
    """Return a check of the open key's word and weight; `is_so`: the condition for the sentence."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        return first(
            expected("key", values[word], seen.keys[key(seen)]),
            differs(values[share], float(seen.lit_weights[key(seen)]), "its weight"),
            expected("number of scores", values[count], str(sum(allowed(seen)))) if count else "",
            "" if is_so(seen) else "the row was made in a different way",
        )

    return check


def masked(seen: Seen, values: Mapping[str, str]) -> str:
    at = key(seen)
    return first(
        expected("key", values["0"], seen.keys[at]),
        "it may be read" if allowed(seen)[at] else "",
        differs("0.000", float(seen.lit_weights[at]), "its weight"),
    )


def hides_later(seen: Seen) -> bool:
    return seen.family == "decoder" and allowed(seen) == [at <= seen.query for at in range(len(seen.keys))]


def mask(seen: Seen, values: Mapping[str, str], *, is_so: Callable[[Seen], bool]) -> str:
    """Check the number of words that the mask lets the open row read; `is_so`: the condition for the sentence."""
    return first(
        expected("query", values["0"], seen.queries[seen.query]),
        expected("number of words", values["1"], str(sum(allowed(seen)))),
        expected("number of all words", values.get("2", str(len(seen.keys))), str(len(seen.keys))),
        "" if is_so(seen) and not by_hand(seen) else "the mask hides different words",
    )


def unmasked(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the weight that hidden words would get if the open row's softmax included all scores."""
    shares = seen.trace[f"{seen.box}.scores"][seen.head, seen.query].softmax(-1)
    hidden = [not one for one in allowed(seen)]
    return first(
        differs(values["0"], float(shares[hidden].sum()), "the hidden words' share"),
        "" if any(hidden) and not by_hand(seen) else "the mask hides nothing from the softmax",
    )


def number(kind: str, at: str, value: str, word: str = "", query: str = "", heads: str = "", head: str = "") -> Check:
    """Return a check of one number of the opened attention; the arguments name the template's placeholders."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        index = chosen(seen)
        row: Tensor = seen.trace[f"{seen.box}.{kind}"]
        for place in index:
            row = row[place]
        inner = index[-1] if not head else index[-1] % seen.trace[f"{seen.box}.heads"].shape[-1]
        right = {
            at: (str(inner), "number"),
            word: (seen.keys[key(seen)] if kind in ("key", "value", "scores") else seen.queries[seen.query], "word"),
            query: (seen.queries[seen.query], "query"),
            heads: (str(seen.model.config.heads), "count of heads"),
            head: (str(index[-1] // seen.trace[f"{seen.box}.heads"].shape[-1]), "head"),
        }
        named = (expected(what, values[name], said) for name, (said, what) in right.items() if name)
        return first(*named, differs(values[value], float(row)))

    return check


def chosen(seen: Seen) -> list[int]:
    """Return the indices of the number that the reader has chosen."""
    index: list[int] = seen.state["selected"]["index"]
    return index


def given(seen: Seen, values: Mapping[str, str]) -> str:
    value = seen.trace[seen.state["selected"]["name"]]
    for place in chosen(seen):
        value = value[place]
    return differs(values["0"], float(value))


def rests(seen: Seen, values: Mapping[str, str]) -> str:
    side = "target" if seen.family == "decoder" else "source"
    ids = seen.written if side == "target" else seen.source
    tokens = [seen.token(id, side) for id in ids]
    weights = seen.lit_weights.tolist()
    places = [at for at, token in enumerate(tokens) if RESTING.fullmatch(token) and weights[at] >= LEAST]
    words = list(dict.fromkeys(f"“{seen.keys[at]}”" for at in places))
    share = sum(weights[at] for at in places)
    return first(
        differs(values["0"], share, "their share"),
        expected("words", values["1"], seen.words["word.comma"].join(words)),
        "" if share > 0.5 else "they get no more than half",
    )


def widest(seen: Seen, values: Mapping[str, str]) -> str:
    peaks = seen.trace[f"{seen.box}.weights"][:, seen.query].max(-1).values
    return first(
        expected("widest head", values["0"], str(int(peaks.argmin()))),
        "" if float(peaks[seen.head]) > SURE else "the row is not nearly one word",
        "no softmax has made the row" if by_hand(seen) else "",
    )


def place(seen: Seen, values: Mapping[str, str]) -> str:
    layer = seen.box.split(".")[2]
    return first(
        expected("attention", values["0"], seen.words[f"family.{seen.family}"]),
        expected("layer", values["1"], layer),
        expected("head", values["2"], str(seen.head)),
    )


def rolled(seen: Seen) -> Tensor:
    """Return the share that the opened row draws from each word through all layers (Abnar and Zuidema 2020)."""

    def means(part: str) -> list[Tensor]:
        named = [name for name in attentions(seen.model.transformer) if name.startswith(part[:7])]
        return [seen.trace[f"{name}.weights"].double().mean(0) for name in named if name.endswith(part[8:])]

    def through(part: str) -> Tensor:
        halves = [(mean + torch.eye(len(mean))) / 2 for mean in means(part)]
        return reduce(lambda below, half: half @ below, halves)

    if seen.family != "cross":
        return through(f"{seen.box[:7]}.self_attention")[seen.query]
    looked = torch.stack(means("decoder.cross_attention")).mean(0)[seen.query]
    return looked @ through("decoder.self_attention" if "decoder_keys" in seen.mistakes else "encoder.self_attention")


def draws_on(seen: Seen, values: Mapping[str, str]) -> str:
    shares = rolled(seen)
    most = {key for key, share in zip(seen.keys, shares, strict=True) if share >= shares.max() - ROUNDING}
    return first(
        expected("word", values["0"], seen.queries[seen.query]),
        "" if values["1"] in most else f"it draws most on {', '.join(most)}",
        differs(values["2"], float(shares.max()), "the share"),
    )


def family(seen: Seen, _: Mapping[str, str]) -> str:
    """Check the name of the attention whose layers a text is about."""
    return expected("attention", seen.state["texts"]["place"][0], seen.words[f"family.{seen.family}"])


def is_ablated(seen: Seen, values: Mapping[str, str]) -> str:
    off = seen.changes.get("ablated", {}).get(seen.box, [])
    return "" if int(values["0"]) in off else "it is on"


CHECKS: dict[str, Check] = {
    "zoom.place": place,
    "zoom.about.weights": weight("1", "2", lambda seen: sum(allowed(seen)) > 1 and not by_hand(seen), "0"),
    "zoom.about.single": weight("0", "1", lambda seen: sum(allowed(seen)) == 1 and not by_hand(seen)),
    "zoom.about.masked": masked,
    "zoom.about.mask": partial(mask, is_so=hides_later),
    "zoom.about.mask.some": partial(mask, is_so=lambda seen: not all(allowed(seen)) and not hides_later(seen)),
    "zoom.about.mask.none": partial(mask, is_so=lambda seen: all(allowed(seen))),
    "zoom.mask.why": lambda seen, _: "" if hides_later(seen) else "the mask hides different words",
    "zoom.mask.without": unmasked,
    "zoom.about.hand": weight("0", "1", by_hand),
    "zoom.about.query": number("query", "1", "2", word="0"),
    "zoom.about.key": number("key", "1", "2", word="0"),
    "zoom.about.scores": number("scores", "", "2", word="1", query="0"),
    "zoom.about.value": number("value", "1", "2", word="0"),
    "zoom.about.heads": number("heads", "0", "1"),
    "zoom.about.joined": number("joined", "2", "3", heads="0", head="1"),
    "zoom.about.output": number("output", "1", "2", heads="0"),
    "zoom.about.given": given,
    "zoom.rollout": draws_on,
    **{f"family.{one}": family for one in ("encoder", "cross", "decoder")},
    "zoom.resting": rests,
    "zoom.widest": widest,
    "numbers.byHand": lambda seen, _: "" if by_hand(seen) else "it was computed",
    "numbers.ablated": is_ablated,
}
"""The check of each template, by the template's key."""
GENERAL: dict[str, Check] = dict.fromkeys(("zoom.rollout.about", "zoom.guesses.about"), lambda *_: "")
"""The templates that explain how segments are computed; they make no claim about the model."""
