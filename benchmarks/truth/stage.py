"""Checks of the sentences that the stage shows about the lit box."""

import math
import re
from collections.abc import Callable, Mapping

from benchmarks.truth.claims import ROUNDING, differs, expected, first, read
from benchmarks.truth.seen import Check, Seen, family_of
from benchmarks.truth.zoom import by_hand
from glassformer.text.vocabulary import UNK_ID

__all__ = ["CHECKS", "GENERAL", "guess_at", "lit"]

MOSTLY = 0.5
"""The smallest weight at which a head counts as looking mostly at one word."""
CLOSE = 1e-3
"""Margins that differ by less than this value count as equal."""
SECTIONS = {
    "embedding": "3.4",
    "positions": "3.5",
    "self_attention": "3.2.3",
    "cross_attention": "3.2.3",
    "feed_forward": "3.3",
    "linear": "3.4",
    "softmax": "3.4",
}
"""Sections of the paper, by box; sums and norms are in 3.1."""


def lit(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the words that a sentence names: the written word, the reading word and the lit source word."""
    right = {"target": seen.target, "reader": seen.queries[seen.query]}
    if seen.family != "cross":
        right["source"] = seen.read_words[seen.lit_source]
    return first(*(expected(name, values[name], word) for name, word in right.items() if name in values))


def only(is_true: Callable[[Seen], bool], what: str) -> Check:
    """Return a check of the words that a sentence names, and of a condition on the model."""
    return lambda seen, values: lit(seen, values) or ("" if is_true(seen) else f"{what} is false")


def looks(*, shared: bool = False, own: bool = False, tied: bool = False) -> Check:
    """Return a check of the word that a head looks at: mostly, or more than at others, or the reading word itself."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        weights, keys = seen.lit_weights, seen.keys
        most = float(weights.max())
        word = values.get("looked" if seen.family != "cross" else "source", keys[seen.query] if own else "")
        places = [at for at, key in enumerate(keys) if key == word and weights[at] >= most - ROUNDING]
        # The page computes in float32, where nearly equal weights may become equal, so both claims count as right.
        least = most - ROUNDING if tied else most
        rivals = {key for at, key in enumerate(keys) if key != word and weights[at] >= least}
        return first(
            lit(seen, values),
            "" if places else f"it looks most at {keys[int(weights.argmax())]}, with {most:.3f}",
            "" if not own or seen.query in places else "it looks most at a different place than its own",
            "" if tied or shared == (most < MOSTLY) or abs(most - MOSTLY) < ROUNDING else f"its largest is {most:.3f}",
            "" if tied == bool(rivals) or abs(most) < ROUNDING else f"it looks as much at {rivals or 'nothing'}",
        )

    return check


def looks_at_nothing(seen: Seen, values: Mapping[str, str]) -> str:
    return lit(seen, values) or ("" if float(seen.lit_weights.max()) == 0 else "it has weights above 0")


def place_of_word(seen: Seen, values: Mapping[str, str]) -> str:
    count = str(len(seen.output))
    return first(expected("place", values["0"], str(seen.row + 1)), expected("number of words", values["1"], count))


def section(seen: Seen, values: Mapping[str, str]) -> str:
    name = seen.state["box"].partition(".")[2]
    if seen.state["zoom"]:
        name = seen.box.rpartition(".")[2]
        if name.endswith("attention"):  # the paper explains the parts of attention in subsections
            return "" if values["0"].startswith("§3.2") else f"{values['0']} is not about attention"
        if name in ("embedding", "positions"):  # both boxes show the same sum
            return "" if values["0"] in ("§3.4", "§3.5") else f"{values['0']} is not about embeddings"
    is_beside = name.endswith(("add", "norm"))
    return expected("section", values["0"], f"§{'3.1' if is_beside else SECTIONS[name]}")


def share_of_attention(seen: Seen, values: Mapping[str, str]) -> str:
    layer = seen.box.split(".")[2]
    return first(
        expected("head", values["head"], str(seen.head)),
        expected("layer", values["layer"], layer),
        differs(values["weight"], float(seen.lit_weights.max()), "the largest weight"),
    )


def worth(seen: Seen) -> tuple[float, float]:
    """Return the probability of the lit word with and without the lit head."""
    id = seen.output[seen.row]
    return seen.probability(id), float(seen.without(seen.box, seen.head)[id].exp())


def still_has(seen: Seen, values: Mapping[str, str]) -> str:
    before, after = worth(seen)
    return first(
        expected("word", values["0"], seen.target),
        differs(values["1"], before, "the probability"),
        differs(values["1"], after, "the probability without the head"),
        is_off(seen, wanted=False),
    )


def depends(falls: bool) -> Check:
    def check(seen: Seen, values: Mapping[str, str]) -> str:
        before, after = worth(seen)
        return first(
            expected("word", values["0"], seen.target),
            differs(values["1"], before, "the probability"),
            differs(values["2"], after, "the probability without the head"),
            "" if (after < before) == falls else "it goes the other way",
            is_off(seen, wanted=False),
        )

    return check


def costs_most(seen: Seen, _: Mapping[str, str]) -> str:
    id, after = seen.output[seen.row], worth(seen)[1]
    others = (head for head in seen.model.heads if head != (seen.box, seen.head))
    least = min(float(seen.without(*head)[id].exp()) for head in others)
    return "" if after < least + ROUNDING else f"without another head, {least:.4f} is left, not {after:.4f}"


def is_off(seen: Seen, *, wanted: bool) -> str:
    is_so = seen.head in seen.changes.get("ablated", {}).get(seen.box, [])
    return "" if is_so == wanted else f"the head is {'on' if wanted else 'off'}"


def is_by_hand(seen: Seen, *, wanted: bool) -> str:
    return "" if by_hand(seen) == wanted else f"the row was {'computed' if wanted else 'turned by hand'}"


def hides_later(seen: Seen, _: Mapping[str, str]) -> str:
    later = seen.trace[f"{seen.box}.weights"][:, seen.row, seen.row + 1 :]
    return "" if not bool(later.any()) else "the row reads later words"


def unknown_words(seen: Seen, values: Mapping[str, str]) -> str:
    bundle = seen.model.bundle
    known = [
        word
        for word in re.findall("“(.*?)”", values["0"])
        if all(UNK_ID not in one.encode(word) for one in (bundle.source_tokenizer, bundle.target_tokenizer))
    ]
    return f"the vocabulary has {', '.join(known)}" if known else ""


def forced(likeliest: bool) -> Check:
    def check(seen: Seen, values: Mapping[str, str]) -> str:
        id = seen.output[seen.row]
        return first(
            expected("word", values["0"], seen.target),
            "" if seen.is_forced else "the word was not forced",
            "" if (seen.best == id) == likeliest else f"the likeliest word is {seen.name(seen.best, 'target')}",
            differs(values["1"], seen.probability(id), "its probability"),
        )

    return check


def chosen_by_beam(seen: Seen, values: Mapping[str, str]) -> str:
    id = seen.output[seen.row]
    return first(
        expected("word", values["0"], seen.target),
        "the word was forced" if seen.is_forced else "",
        "it is the likeliest word" if seen.best == id else "",
        differs(values["1"], seen.probability(id), "its probability"),
    )


def softmax(seen: Seen, values: Mapping[str, str]) -> str:
    probability = seen.probability(seen.output[seen.row])
    return lit(seen, values) or differs(values["probability"], probability, "its probability")


def guess(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the guess that the page shows next to a box."""
    return guess_at(seen, seen.at, values["0"], values["1"])


def guess_at(seen: Seen, at: str, word: str, probability: str) -> str:
    """Check the likeliest word and its probability if a box of the decoder were the decoder's last box."""
    point = "added" if seen.norm == "pre" else "normed"
    layer = seen.state["heads"]["cross"]["layer"]
    closed = re.fullmatch(r"layer\.(\d+)", at)
    name = f"{closed[1]}.feed_forward" if closed else f"{layer}.{at.removesuffix('.add')}"
    log_probs = seen.lens(seen.trace[f"decoder.layers.{name}.{point}"][seen.row])
    best, name = float(log_probs.max()), seen.name(int(log_probs.argmax()), "target")
    likeliest = {seen.name(id, "target") for id in (log_probs >= best - ROUNDING).nonzero()[:, 0].tolist()}
    return first(
        "" if word in likeliest else f"it would write {name}", differs(probability, math.exp(best), "its probability")
    )


def head_name(seen: Seen, name: str, head: int) -> str:
    """Return the page's name for a head of an attention."""
    layer = name.split(".")[2]
    return seen.words[f"stage.head.{family_of(name)}"].replace("{0}", str(head)).replace("{1}", layer)


def turned_head(seen: Seen, values: Mapping[str, str]) -> str:
    return expected("head", values["0"], head_name(seen, seen.box, seen.head))


def turned_to(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the output while the reader holds the lit row of an attention; see `Visit.held`."""
    [place] = seen.lit_weights.nonzero()[:, 0].tolist()
    reader = seen.queries[seen.query]
    return first(
        expected("word that is read", values["looked"], seen.keys[place]),
        expected("word that reads", values.get("reader", reader), reader),
        expected("likeliest word", values["target"], seen.name(seen.best, "target")),
    )


def turned_between(seen: Seen, values: Mapping[str, str]) -> str:
    weights = seen.lit_weights
    one, other = weights.nonzero()[:, 0].tolist()
    reader = seen.queries[seen.query]
    return first(
        expected("first word", values["looked"], seen.keys[one]),
        differs(values["weight"], float(weights[one]), "its weight"),
        expected("second word", values["second"], seen.keys[other]),
        differs(values["rest"], float(weights[other]), "its weight"),
        expected("word that reads", values.get("reader", reader), reader),
        expected("likeliest word", values["target"], seen.name(seen.best, "target")),
    )


def turned_rows(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the rows that the reader has turned: the word that each row reads unchanged, and the word it reads now."""
    rows = [(name, *row) for name, all in seen.changes["overrides"].items() for row in all]
    said = values["0"].split("; ")
    plain = seen.model.trace(seen.source, seen.output, {})
    whys = ["" if len(said) >= min(2, len(rows)) else f"{len(rows)} rows are turned"]
    for text, (name, head, query, given) in zip(said, rows[:2], strict=False):
        language = seen.state["language"]
        claims = read(re.sub(r" \([^)]*\)$", "", text), language, ("stage.look.row", "stage.look.to"))
        if not claims:
            return f"it cannot be read: {text}"
        [claim] = claims
        words = (
            seen.written_words if name.startswith("decoder") and name.endswith("self_attention") else seen.read_words
        )
        now = max(range(len(given)), key=given.__getitem__)
        whys += [
            expected("head", claim.values["0"], head_name(seen, name, head)),
            expected("word that it reads now", claim.values["2"], words[now] if now < len(words) else ""),
            ""
            if claim.key == "stage.look.to"
            else expected(
                "word that it read", claim.values["1"], words[int(plain[f"{name}.weights"][head, query].argmax())]
            ),
        ]
    return first(*whys)


def loose_share(seen: Seen, values: Mapping[str, str]) -> str:
    total = float(seen.lit_weights.sum())
    return share_of_attention(seen, values) or ("" if abs(total - 1) >= 0.01 else f"they sum to {total:.3f}")


def needs(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the source words whose removal makes the lit word's margin smallest, and the word's probability then."""
    word, rival = seen.output[seen.row], seen.rival()
    left = [seen.hidden(at) for at in range(len(seen.source))]
    margins = [float(one[word] - one[rival]) for one in left]
    whys = [
        expected("word", values["0"], seen.target),
        expected("rival", values["1"], seen.name(rival, "target")),
        differs(values["2"], seen.probability(word), "the probability"),
    ]
    for place, least in enumerate(sorted(margins)[: len(values) // 2 - 1]):
        name, probability = (values[str(at)] for at in (3 + 2 * place, 4 + 2 * place))
        near = [at for at, one in enumerate(margins) if abs(one - least) < CLOSE]
        after = [float(left[at][word].exp()) for at in near if seen.read_words[at] == name]
        whys.append("" if after else f"it depends on {[seen.read_words[at] for at in near]}")
        whys.append("" if not all(differs(probability, one) for one in after) else f"with it hidden, it has {after}")
    return first(*whys)


CHECKS: dict[str, Check] = {
    "stage.word.of": place_of_word,
    "stage.changed": lambda seen, _: "" if seen.is_changed else "nothing is changed",
    "stage.paper": section,
    "stage.guess": guess,
    "stage.turned.kicker": turned_head,
    "stage.turned": turned_to,
    "stage.turned.two": turned_between,
    "stage.turned.self": turned_to,
    "stage.turned.self.two": turned_between,
    "stage.more.turned": turned_rows,
    "stage.more.weight.loose": loose_share,
    "stage.more.weight": lambda seen, values: share_of_attention(seen, values) or is_by_hand(seen, wanted=False),
    "stage.more.weight.hand": lambda seen, values: share_of_attention(seen, values) or is_by_hand(seen, wanted=True),
    "stage.said.hand": lambda seen, _: is_by_hand(seen, wanted=True),
    "stage.more.same": still_has,
    "stage.more.falls": depends(falls=True),
    "stage.more.rises": depends(falls=False),
    "stage.more.most": costs_most,
    "stage.more.needs": needs,
    "stage.more.needs.two": needs,
    "stage.more.mask": hides_later,
    "stage.more.unknown": unknown_words,
    "stage.more.off": lambda seen, _: is_off(seen, wanted=True),
    "stage.more.forced": forced(likeliest=False),
    "stage.more.forced.too": forced(likeliest=True),
    "stage.more.beam": chosen_by_beam,
    "stage.said.decoder.softmax": softmax,
    "stage.said.decoder.cross_attention": looks(),
    "stage.said.decoder.cross_attention.shared": looks(shared=True),
    "stage.said.decoder.cross_attention.tied": looks(tied=True),
    "stage.said.decoder.self_attention": looks(),
    "stage.said.decoder.self_attention.shared": looks(shared=True),
    "stage.said.decoder.self_attention.tied": looks(tied=True),
    "stage.said.decoder.self_attention.self": looks(own=True),
    "stage.said.decoder.self_attention.self.shared": looks(own=True, shared=True),
    "stage.said.encoder.self_attention": looks(),
    "stage.said.encoder.self_attention.shared": looks(shared=True),
    "stage.said.encoder.self_attention.tied": looks(tied=True),
    "stage.said.encoder.self_attention.self": looks(own=True),
    "stage.said.encoder.self_attention.self.shared": looks(own=True, shared=True),
    "stage.said.nothing": looks_at_nothing,
}
"""The checks of the templates about this model, by the template's key."""

has_norm_first = only(lambda seen: seen.norm == "pre", "that a norm comes first")
has_last_norm = only(lambda seen: seen.model.config.final_norm, "that the stack ends with a norm")
has_waves = only(lambda seen: seen.positions not in ("none", "learned"), "that waves are added")
GENERAL: dict[str, Check] = {
    "stage.more.norm": only(lambda seen: seen.norm == "post", "that the sum is normalised"),
    "stage.said.encoder.embedding": lit,
    "stage.said.decoder.embedding": lit,
    "stage.said.encoder.positions": has_waves,
    "stage.said.decoder.positions": has_waves,
    "stage.said.positions.learned": only(lambda seen: seen.model.config.positions == "learned", "that it was learned"),
    "stage.said.positions.off": only(lambda seen: not seen.changes.get("positions", True), "that they are off"),
    "stage.said.encoder.feed_forward": lit,
    "stage.said.decoder.feed_forward": lit,
    "stage.said.attention.norm": has_norm_first,
    "stage.said.feed_forward.norm": has_norm_first,
    "stage.said.encoder.self_attention.add": lit,
    "stage.said.encoder.feed_forward.add": lit,
    "stage.said.decoder.self_attention.add": lit,
    "stage.said.decoder.cross_attention.add": lit,
    "stage.said.decoder.feed_forward.add": lit,
    "stage.said.encoder.norm": has_last_norm,
    "stage.said.decoder.norm": has_last_norm,
    "stage.said.decoder.linear": lit,
    "stage.said.decoder.linear.unseen": lit,
}
"""The checks of templates that are true of every such model: they check only the words and the kind of model."""
