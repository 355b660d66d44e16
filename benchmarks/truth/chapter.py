"""Checks of the first chapter's sentences: a word and its rival, the head that decides, the effect of a turned beam."""

import math
import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from benchmarks.truth.claims import differs, differs_in_times, expected, first, read
from benchmarks.truth.seen import Check, Seen
from glassformer.watch.explorer.examples import story_pair

__all__ = ["CHECKS", "GENERAL", "looks", "opening", "tug"]

Head = tuple[str, int]
MOST = 3
"""Maximum number of following words that a sentence names."""


def opening(seen: Seen) -> dict[str, Any]:
    return seen.model.opening(seen.state["sentence"])


def named(seen: Seen) -> tuple[str, str]:
    """Return the names of the chapter's word and of its rival."""
    found = opening(seen)
    return seen.name(found["ids"][found["row"]], "target"), seen.name(found["rival"], "target")


def by_cost(seen: Seen) -> list[Head]:
    """Return the heads of cross-attention; the head whose removal lowers the word's margin most comes first."""
    without = opening(seen)["without"]
    names = [name for name in without if name.endswith("cross_attention")]
    heads = [(name, head) for name in names for head in range(len(without[name]))]
    return sorted(heads, key=lambda one: without[one[0]][one[1]]["margin"])


def looks(seen: Seen) -> list[Head]:
    """Return the heads whose rows the page's dot turns."""
    turn = opening(seen)["turn"]
    return [(turn["attention"], turn["head"])] if turn else by_cost(seen)[:2]


def position(seen: Seen) -> list[float] | None:
    """Return the attention weights that the reader has set; None if no row is turned."""
    name, head = looks(seen)[0]
    rows = seen.changes.get("overrides", {}).get(name, [])
    given = [weights for one, query, weights in rows if (one, query) == (head, opening(seen)["row"])]
    return given[0] if given else None


def word(seen: Seen, values: Mapping[str, str]) -> str:
    return expected("word", values["0"], named(seen)[0])


def both(seen: Seen, values: Mapping[str, str]) -> str:
    mine, rival = named(seen)
    return first(expected("word", values["0"], mine), expected("rival", values["1"], rival))


def differing(seen: Seen, values: Mapping[str, str]) -> str:
    """Check that a word is in this sentence of the pair, and not in the other sentence."""
    pair = story_pair(seen.model.bundle)
    one, other = (re.split(r"[\s.]+", text) for text in sorted(pair, key=lambda text: text != seen.state["sentence"]))
    return "" if values["0"] in one and values["0"] not in other else "the sentences share this word"


def both_of_pair(seen: Seen, values: Mapping[str, str]) -> str:
    sentence = seen.state["sentence"]
    is_pair = sentence in story_pair(seen.model.bundle) and " it " in sentence
    return both(seen, values) or ("" if is_pair else "the sentence is not in the pair")


def told_with_heads(check: Check) -> Check:
    """Return a check of a text that also says how many heads the model has."""

    def told(seen: Seen, values: Mapping[str, str]) -> str:
        config = seen.model.config
        heads = config.heads * (config.encoder_layers + 2 * config.decoder_layers)
        return check(seen, values) or expected("number of heads", values["3"], str(heads))

    return told


NOUNS = {"elle": "street", "il": "animal"}
"""What each pronoun of the pair stands for."""


def answer(seen: Seen, values: Mapping[str, str]) -> str:
    """Check that the title names what the likeliest pronoun stands for, and the word of the pair."""
    return first(
        expected("noun", values["0"], NOUNS.get(seen.name(seen.best, "target"), "no noun of the pair")),
        differing(seen, {"0": values["1"]}),
        "" if position(seen) else "no row is turned",
    )


def genders_of_pair(seen: Seen, values: Mapping[str, str]) -> str:
    """Check that the bar compares the two pronouns, and that the sentence is about an animal and a street."""
    text = seen.state["sentence"]
    are_named = text in story_pair(seen.model.bundle) and "animal" in text and "street" in text
    return first(
        expected("pronouns", str([values["0"], values["1"]]), str([*NOUNS])),
        expected("words", str(sorted(named(seen))), str(["elle", "il"])),
        "" if are_named else "the sentence is not about an animal and a street",
    )


def asked(check: Check) -> Check:
    """Return a check of a text about the model's own word; the text is true only if this word still follows."""
    return lambda seen, values: check(seen, values) or ("" if begins_alike(seen) else "it begins differently")


def other_beginning(seen: Seen, values: Mapping[str, str]) -> str:
    """Check that the output begins differently and, if words are named, that the bar compares these words."""
    return first(
        "" if not begins_alike(seen) else "it begins as before",
        both(seen, values) if values else "",
        expected("number of the word", values["2"], str(opening(seen)["row"] + 1)) if values else "",
    )


def head(heads: int, trails: bool | None = None) -> Check:
    """Return a check of the deciding head, the word that it reads, and the number of heads that are turned together."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        turned = looks(seen)
        name, at = turned[0]
        weights = seen.weights(name, at, opening(seen)["row"])
        is_behind = margin(seen, opening(seen)) < 0
        return first(
            expected("word that is read", values["0"], seen.read_words[int(weights.argmax())]),
            differs(values["1"], float(weights.max()), "its weight"),
            expected("layer", values["2"], name.split(".")[2]),
            expected("head", values["3"], str(at)),
            "" if len(turned) == heads else f"{len(turned)} heads are turned",
            "" if trails in (None, is_behind) else f"{'no ' if trails else ''}head was tried",
            "" if not trails else both(seen, {"0": values["4"], "1": values["5"]}),
        )

    return check


def opens_with(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the head whose removal lowers the word's margin most, if this head is not turned."""
    name, at = by_cost(seen)[0]
    read = seen.weights(name, at, opening(seen)["row"]).argmax()
    return first(
        expected("layer", values["0"], name.split(".")[2]),
        expected("head", values["1"], str(at)),
        expected("word that is read", values["2"], seen.read_words[int(read)]),
        both(seen, {"0": values["3"], "1": values["4"]}),
        "" if (name, at) not in looks(seen) else "this head is turned",
    )


def later(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the word read by the most important unturned head of a later layer, with and without the turned rows."""
    row, name = opening(seen)["row"], f"decoder.layers.{values['0']}.cross_attention"
    left = next(one for one in by_cost(seen) if one not in looks(seen))
    before = seen.model.trace(seen.source, opening(seen)["ids"], {})[f"{name}.weights"][int(values["1"]), row]
    now = seen.weights(name, int(values["1"]), row)
    return first(
        expected("head", str((name, int(values["1"]))), str(left)),
        expected("word before", values["2"], seen.read_words[int(before.argmax())]),
        expected("word now", values["3"], seen.read_words[int(now.argmax())]),
        differs(values["4"], float(now.max()), "its weight"),
        "" if values["0"] > looks(seen)[0][0].split(".")[2] else "the head is not in a later layer",
    )


def margin(seen: Seen, found: Mapping[str, Any], log_probs: Tensor | None = None) -> float:
    """Return log p of the word minus log p of its rival, by default in the unchanged model."""
    if log_probs is None:
        log_probs = seen.model.log_probs(seen.source, found["ids"], {})[found["row"]]
    return float(log_probs[found["ids"][found["row"]]] - log_probs[found["rival"]])


def likelier(seen: Seen, values: Mapping[str, str]) -> str:
    found = opening(seen)
    now = margin(seen, found, seen.log_probs)
    shown = [math.exp(float(seen.log_probs[one])) for one in (found["ids"][found["row"]], found["rival"])]
    return (
        both(seen, values) or differs_in_times(values["2"], now, *shown) or ("" if now > 0 else "the rival is likelier")
    )


def destination(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the word to which the reader is told to drag the beam: there, the rival becomes the likeliest word."""
    found = opening(seen)
    name, at = looks(seen)[0]
    places = [place for place, one in enumerate(seen.read_words) if one == values["0"]]
    for place in places:
        row = [at, found["row"], [*[0.0] * place, 1.0]]
        log_probs = seen.model.log_probs(seen.source, found["ids"], {"overrides": {name: [row]}})
        if seen.model.likeliest(log_probs[found["row"]]) == found["rival"]:
            return ""
    return "the rival does not win there"


def read_now(seen: Seen, text: str) -> str:
    """Check the words to which the reader has turned the heads."""
    weights = position(seen) or []
    places = [at for at, weight in enumerate(weights) if weight > 0]
    found = read(text, seen.state["language"], ["look.both"])
    if not found:
        return expected("words that are read", text, " ".join(f"“{seen.read_words[at]}”" for at in places))
    values = found[0].values
    said = [(values["0"], values["1"]), (values["2"], values["3"])]
    return first(
        "" if len(places) == len(said) else f"{len(places)} words are read",
        *(
            expected("word that is read", name, seen.read_words[at]) or differs(share, weights[at], "its weight")
            for (name, share), at in zip(said, places, strict=False)
        ),
    )


def written(heads: int, stays: bool) -> Check:
    """Return a check of the output while the heads are turned."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        old, now = opening(seen)["ids"][opening(seen)["row"]], seen.output[seen.row]
        return first(
            read_now(seen, values["0"]),
            expected("written word", values["1"], seen.name(now, "target")),
            differs(values["2"], seen.probability(now), "its probability"),
            expected("own word", values["3"], seen.name(old, "target")) if not stays else "",
            "" if (now == old) == stays else f"it writes {seen.name(now, 'target')}",
            "" if begins_alike(seen) else "it begins differently",
            "" if len(looks(seen)) == heads else f"{len(looks(seen))} heads are turned",
        )

    return check


def begins_alike(seen: Seen) -> bool:
    """Return whether the words before the chapter's word are the same as in the model's unchanged output."""
    row = opening(seen)["row"]
    return bool(seen.output[:row] == opening(seen)["ids"][:row])


def begins(heads: int) -> Check:
    """Return a check of an output whose beginning has changed."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        return first(
            read_now(seen, values["0"]),
            expected("number of the word", values["1"], str(opening(seen)["row"] + 1)),
            "" if not begins_alike(seen) else "it begins as before",
            "" if len(looks(seen)) == heads else f"{len(looks(seen))} heads are turned",
        )

    return check


def tails(seen: Seen) -> tuple[list[str], list[str]]:
    """Return the words after the chapter's word, in the unchanged output and in the present output."""
    row, end = opening(seen)["row"], seen.model.config.eos_id
    both = (opening(seen)["ids"][row + 1 :], seen.output[row + 1 :])
    before, now = ([seen.name(id, "target") for id in ids if id != end] for ids in both)
    return before, now


def follow(seen: Seen, values: Mapping[str, str]) -> str:
    before, now = tails(seen)
    if len(before) != len(now):
        return "the number of words changes"
    pairs = [f"“{old}” → “{new}”" for old, new in zip(before, now, strict=True) if old != new]
    said = ", ".join(pairs[:MOST]) + (", …" if len(pairs) > MOST else "")
    return expected("changed words", values["0"], said)


def change(seen: Seen, _: Mapping[str, str]) -> str:
    before, now = tails(seen)
    return "" if before != now else "they do not change"


def alone(seen: Seen, _: Mapping[str, str]) -> str:
    before, now = tails(seen)
    return "" if before == now else f"{before} becomes {now}"


def searched(seen: Seen, values: Mapping[str, str]) -> str:
    return first(
        expected("likeliest word", values["0"], seen.name(seen.best, "target")),
        differs(values["1"], seen.probability(seen.best), "its probability"),
        "" if seen.best != seen.output[seen.row] else "it is the written word",
    )


def greedy(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the words of greedy search after the chapter's word."""
    config = seen.model.config
    ids = list(opening(seen)["ids"][: opening(seen)["row"]])
    while len(ids) < len(seen.source) + 100 and (not ids or ids[-1] != config.eos_id):
        log_probs = seen.model.log_probs(seen.source, [*ids, config.eos_id], seen.changes)
        ids.append(seen.model.likeliest(log_probs[-1]))
    text = seen.model.bundle.target_tokenizer.decode(ids)
    return first(expected("output", values["0"], text), "the search finds the same" if ids == seen.output else "")


def look(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the label of a beam: the name of a head, and the largest weight of the head's row."""
    layer, at = int(values["0"]), int(values["1"])
    weights = seen.weights(f"decoder.layers.{layer}.cross_attention", at, opening(seen)["row"])
    return differs(values["2"], float(weights.max()), "its largest weight")


def tug(seen: Seen, sides: Mapping[str, str]) -> str:
    """Check the two competing words in the bar (the "tug of war"), and their probabilities."""
    found = opening(seen)
    right = zip(named(seen), (found["ids"][found["row"]], found["rival"]), sides.items(), strict=True)
    return first(
        *(
            expected("word", said, name) or differs(number, seen.probability(id), f"the probability of {name}")
            for name, id, (said, number) in right
        )
    )


def others(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the probability that the two competing words leave to all other words."""
    found = opening(seen)
    left = 1 - sum(seen.probability(id) for id in (found["ids"][found["row"]], found["rival"]))
    return differs(values["0"], left, "what both words leave")


def leads_nowhere(seen: Seen, _: Mapping[str, str]) -> str:
    return "" if opening(seen)["turn"] is None else "one place is best"


def always(*_: object) -> str:
    return ""


CHECKS: dict[str, Check] = {
    "look.who": asked(differing),
    "look.is": asked(answer),
    "look.why": asked(word),
    "look.other": other_beginning,
    "look.lead.genders": asked(told_with_heads(genders_of_pair)),
    "look.lead.pair": asked(told_with_heads(both_of_pair)),
    "look.lead": asked(told_with_heads(both)),
    "look.lead.other": other_beginning,
    "look.looks": head(1),
    "look.looks.two": head(2, trails=False),
    "look.looks.trails": head(2, trails=True),
    "look.first": opens_with,
    "look.so": likelier,
    "look.drag": destination,
    "look.drag.any": leads_nowhere,
    "look.writes": written(1, stays=False),
    "look.writes.two": written(2, stays=False),
    "look.stays": written(1, stays=True),
    "look.stays.two": written(2, stays=True),
    "look.begins": begins(1),
    "look.begins.two": begins(2),
    "look.later": later,
    "look.follow": follow,
    "look.change": change,
    "look.alone": alone,
    "look.search": searched,
    "look.differs": greedy,
    "look.look": look,
    "look.pale": look,
    "look.others": others,
}
"""The check of each template, by the template's key."""

GENERAL: dict[str, Check] = {
    "look.read": always,
    "look.written": always,
    "look.hint": always,
    "look.changes": lambda seen, _: "" if seen.state["changes"] else "nothing is changed",
}
"""The checks of labels that are true of every such model, and of an offer to the reader."""
