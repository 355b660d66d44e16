"""What the sentences of the explorer's page claim, each checked against PyTorch.

A sentence is read as a reader sees it: as text, which must be made of templates of the page's texts. `CHECKS` has a
function for each template that says what a model does; `GENERAL` has the templates that are true of every model on
which the page shows them, and names words at most. A text without a template, or a template without a check, is
reported like a false sentence.

Axes: H heads · T target positions · S source positions · V target vocabulary.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.decoding.transformer_step import padded
from glassformer.model.taps import record
from glassformer.text.normalisation import SPACE_MARK
from glassformer.text.vocabulary import UNK_ID
from glassformer.translator import Translator
from glassformer.watch.explorer.module import strings
from glassformer.watch.explorer.opening import openings
from glassformer.watch.explorer.payload import rounded
from glassformer.watch.explorer.remote import Remote, unbatched
from glassformer.watch.explorer.sentence import source_ids
from glassformer.watch.inspection.changes import Changes, changed
from glassformer.watch.inspection.edits import attentions

__all__ = ["CHECKS", "GENERAL", "Claim", "Model", "Problem", "Seen", "problems", "read"]

MOSTLY = 0.5
"""The smallest weight at which a head looks at one word, rather than at several."""
SAME = 0.01
"""A probability that changes by less hardly depends on what has changed."""
PRINTED = 0.001
"""The smallest difference of probabilities that is printed."""
ROUNDING = 3e-5
"""By how much the page's float32 may differ from PyTorch's, of a number up to 1."""
KEPT = 40
"""Number of forward passes that are kept for the next claims."""
CHANGES = ("ablated", "masks", "overrides", "positions", "scale", "mistakes")
"""The changes of a state that `Changes` describes."""
RESTING = re.compile(r"<(bos|eos|pad)>|[\W_]+")
"""Tokens that carry no word: the marks of the ends, and punctuation."""
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


class Claim(NamedTuple):
    """A template of the page's texts, and what fills its places."""

    key: str
    values: dict[str, str]


class Problem(NamedTuple):
    """A sentence that is false, or that cannot be checked."""

    key: str
    text: str
    why: str


# Reading


def read(text: str, language: str, kinds: Sequence[str]) -> list[Claim] | None:
    """Return the claims that make up a text, or None if it is made of anything else.

    `kinds` are the keys of templates that may occur, or their beginnings with a final dot.
    """
    text = text.strip()
    if not text:
        return []
    for key, pattern in _patterns(language, kinds):
        if match := pattern.match(text):
            rest = read(text[match.end() :], language, kinds)
            if rest is not None:
                values = {name.removeprefix("_"): value.strip() for name, value in match.groupdict().items()}
                return [Claim(key, values), *rest]
    return None


_KNOWN: dict[tuple[str, tuple[str, ...]], list[tuple[str, re.Pattern[str]]]] = {}


def _patterns(language: str, kinds: Sequence[str]) -> list[tuple[str, re.Pattern[str]]]:
    """Return the patterns of templates of these kinds, those with the longest texts first."""
    wanted = (language, tuple(kinds))
    if wanted not in _KNOWN:
        chosen = {
            key: text
            for key, text in strings()[language].items()
            if any(key == kind or (kind.endswith(".") and key.startswith(kind)) for kind in kinds)
        }
        by_length = sorted(chosen, key=lambda key: -len(re.sub(r"\{\w+\}", "", chosen[key])))
        _KNOWN[wanted] = [(key, _pattern(chosen[key], language)) for key in by_length]
    return _KNOWN[wanted]


def _pattern(template: str, language: str) -> re.Pattern[str]:
    """Return the pattern of a template at the beginning of a text."""
    pieces = re.split(r"\{(\w+)\}", template)
    made, seen = "", set()
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            made += re.escape(piece)
        else:
            is_last = at == len(pieces) - 2 and not pieces[-1]
            made += f"(?P=_{piece})" if piece in seen else f"(?P<_{piece}>{'.+$' if is_last else '.+?'})"
            seen.add(piece)
    return re.compile(made + (r"(?=\s|$)" if language == "en" else ""), re.DOTALL)


# What PyTorch computes


class Model:
    """A model with the weights of its page, and its latest forward passes."""

    def __init__(self, translator: Translator) -> None:
        self.bundle = translator.bundle
        self.transformer = rounded(translator.model)
        self.translator = Translator(translator.bundle, self.transformer)
        self.config = self.transformer.config
        self._remote = Remote(self.translator)
        self._kept: dict[str, Any] = {}

    def trace(self, source: Sequence[int], output: Sequence[int], changes: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Return all points of a forward pass, without the batch's axis."""

        def make() -> dict[str, Tensor]:
            target = [self.config.bos_id, *output[:-1]]
            made = Changes.from_dict(changes)
            with torch.no_grad(), changed(self.transformer, made), record(self.transformer) as trace:
                self.transformer(padded(self.transformer, [source]), padded(self.transformer, [target]))
            return {name: unbatched(value) for name, value in trace.items()}

        found: Mapping[str, Tensor] = self._keep([source, output, changes], make)
        return found

    def score(self, source: Sequence[int], prefix: Sequence[int], changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the best output of a search, with its ids and its score."""

        def make() -> dict[str, Any]:
            decoding = self.bundle.configuration.decoding
            asked = {"kind": "search", "source_ids": source, "prefix_ids": prefix, "n_best": 1, "changes": changes}
            asked |= {"beam_size": decoding.beam_size, "length_penalty": decoding.length_penalty}
            found: dict[str, Any] = self._remote.answer(asked)[0]["hypotheses"][0]
            return found

        best: dict[str, Any] = self._keep(["search", source, prefix, changes], make)
        return best

    def opening(self, sentence: str) -> dict[str, Any]:
        """Return what the page lights at first in a sentence."""
        found: dict[str, Any] = self._keep(
            ["opening", sentence], lambda: openings(self.translator, self.transformer, [sentence])[sentence]
        )
        return found

    def _keep(self, key: Any, make: Callable[[], Any]) -> Any:
        text = json.dumps(key, sort_keys=True)
        found = self._kept.pop(text, None)
        self._kept[text] = make() if found is None else found
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return self._kept[text]


@dataclass
class Seen:
    """What the page shows: the reader's choices, the texts, and the model with which they are compared."""

    model: Model
    state: Mapping[str, Any]
    at: str = ""
    """The box beside which a guess stands."""

    @cached_property
    def words(self) -> Mapping[str, str]:
        return strings()[self.state["language"]]

    @cached_property
    def changes(self) -> dict[str, Any]:
        return {name: value for name, value in self.state["changes"].items() if name in CHANGES}

    @cached_property
    def sentence(self) -> str:
        return str(self.state["changes"].get("source", self.state["sentence"]))

    @cached_property
    def source(self) -> list[int]:
        return source_ids(self.model.translator, self.sentence)

    @cached_property
    def prefix(self) -> list[int]:
        text = self.state["changes"].get("prefix", "")
        return self.model.bundle.target_tokenizer.encode(text) if text else []

    @property
    def output(self) -> list[int]:
        """The ids of the words that the page shows."""
        ids: list[int] = self.state["ids"]
        return ids

    @cached_property
    def is_changed(self) -> bool:
        rest = {name: value for name, value in self.changes.items() if name not in ("positions", "scale")}
        plain = self.changes.get("positions", True) and self.changes.get("scale", True)
        return not plain or any(rest.values()) or bool(self.prefix) or self.sentence != self.state["sentence"]

    @cached_property
    def row(self) -> int:
        """The place of the lit word: the reader's, or that of the sentence's opening."""
        row = self.state["row"]
        wanted = self.model.opening(self.state["sentence"])["row"] if row is None else row
        return min(int(wanted), len(self.output) - 1)

    @cached_property
    def target(self) -> str:
        return self.name(self.output[self.row], "target")

    @cached_property
    def box(self) -> str:
        """The lit or the opened box, by the name of its part of the model."""
        box: str = self.state["zoom"]["box"] if self.state["zoom"] else self.state["box"]
        stack, _, rest = box.partition(".")
        layer = self.state["heads"]["encoder" if stack == "encoder" else "cross"]["layer"]
        is_inner = rest.partition(".")[0] in ("self_attention", "cross_attention", "feed_forward")
        return f"{stack}.layers.{layer}.{rest}" if is_inner else box

    @property
    def family(self) -> str:
        return "encoder" if self.box.startswith("encoder") else "cross" if "cross" in self.box else "decoder"

    @property
    def head(self) -> int:
        head: int = self.state["heads"][self.family]["head"]
        return head

    @cached_property
    def query(self) -> int:
        """The position that reads in the lit attention, or that stands in the lit box."""
        return self.lit_source if self.box.startswith("encoder") else self.row

    @cached_property
    def lit_source(self) -> int:
        """The lit source word: the reader's, or the one that the lit head of cross-attention reads most."""
        chosen, cross = self.state["sourceWord"], self.state["heads"]["cross"]
        if chosen is None:
            name = f"decoder.layers.{cross['layer']}.cross_attention"
            chosen = self.weights(name, cross["head"], self.row).argmax()
        return min(int(chosen), len(self.source) - 1)

    @property
    def trace(self) -> Mapping[str, Tensor]:
        return self.model.trace(self.source, self.output, self.changes)

    def weights(self, name: str, head: int, query: int) -> Tensor:
        return self.trace[f"{name}.weights"][head, query]

    @property
    def lit_weights(self) -> Tensor:
        return self.weights(self.box, self.head, self.query)

    @property
    def log_probs(self) -> Tensor:
        """The log probabilities of all words in the lit row, (V)."""
        return self.trace["log_probs"][self.row]

    @property
    def best(self) -> int:
        """The likeliest word of those that searches write."""
        log_probs = self.log_probs.clone()
        log_probs[[self.model.config.bos_id, self.model.config.pad_id]] = -torch.inf
        return int(log_probs.argmax())

    def probability(self, id: int) -> float:
        return float(self.log_probs[id].exp())

    def without(self, name: str, head: int) -> Tensor:
        """Return the log probabilities of the lit row without one more head, (V)."""
        ablated = dict(self.changes.get("ablated", {}))
        ablated[name] = sorted({*ablated.get(name, []), head})
        return self.model.trace(self.source, self.output, self.changes | {"ablated": ablated})["log_probs"][self.row]

    def hidden(self, position: int) -> Tensor:
        """Return the log probabilities of the lit row when nobody may attend to a source position, (V)."""
        masks = dict(self.changes.get("masks", {}))
        for name in attentions(self.model.transformer):
            if name.startswith("encoder") or name.endswith("cross_attention"):
                queries = len(self.source) if name.startswith("encoder") else len(self.output)
                masks[name] = [*masks.get(name, []), *([query, position, False] for query in range(queries))]
        return self.model.trace(self.source, self.output, self.changes | {"masks": masks})["log_probs"][self.row]

    def name(self, id: int, side: str) -> str:
        """Return a token as the stage writes it."""
        bundle = self.model.bundle
        [token] = (bundle.source_tokenizer if side == "source" else bundle.target_tokenizer).tokens([id])
        if token in ("<bos>", "<eos>"):
            return self.words["stage.start" if token == "<bos>" else "stage.end"]
        return token.replace(SPACE_MARK, "").strip() or "␣"

    @cached_property
    def read_words(self) -> list[str]:
        """The names of the source's words."""
        return [self.name(id, "source") for id in self.source]

    @cached_property
    def written_words(self) -> list[str]:
        """The names of the words that the decoder reads."""
        return [self.name(id, "target") for id in (self.model.config.bos_id, *self.output[:-1])]

    @property
    def keys(self) -> list[str]:
        """The names of the words at which the lit attention can look."""
        return self.written_words if self.family == "decoder" else self.read_words

    @property
    def queries(self) -> list[str]:
        """The names of the words of the lit box's own stack."""
        return self.read_words if self.box.startswith("encoder") else self.written_words

    @property
    def is_forced(self) -> bool:
        return self.row < len(self.prefix)


Check = Callable[[Seen, Mapping[str, str]], str]
"""A function that returns why a claim is false; "" if it is true."""


def problems(seen: Seen, text: str, kinds: Sequence[str]) -> tuple[list[Claim], list[Problem]]:
    """Return the claims of a text, and those that are false."""
    claims = read(text, seen.state["language"], kinds)
    if claims is None:
        return [], [Problem("", text, "no template of the page's texts")]
    found = []
    for key, values in claims:
        if key in CHECKS or key in GENERAL:
            why = (CHECKS.get(key) or GENERAL[key])(seen, values)
        else:
            why = "this template has no check"
        if why:
            found.append(Problem(key, text, why))
    return claims, found


# Numbers as the page prints them


def differs(text: str, value: float, what: str = "it") -> str:
    """Return why a printed number is not a value rounded to the digits that are printed; "" if it is."""
    number = text.replace("\u2212", "-").replace("–∞", "-inf").replace(",", "")
    slack = ROUNDING * max(1.0, abs(value))
    if match := re.fullmatch(r"([<>]) ([\d.e-]+)", number):
        is_right = value < float(match[2]) + slack if match[1] == "<" else value > float(match[2]) - slack
    else:
        digits, _, power = number.partition("e")
        decimals = len(digits.partition(".")[2]) - int(power or 0)
        is_right = float(number) == value or abs(float(number) - value) <= 0.5 * 10.0**-decimals + slack
    return "" if is_right else f"{what} is {value:.6g}, not {text}"


def differs_in_times(text: str, margin: float) -> str:
    """Return why a printed factor is not e^|margin| with two digits; "" if it is."""
    times, said = math.exp(abs(margin)), text.removeprefix("> ").replace(",", "")
    if text.startswith(">"):
        return "" if times > float(said) * 0.999 else f"it is {times:.4g} times, not {text}"
    digits = 3 if times < 1.05 else 2
    half = 0.5 * 10.0 ** (math.floor(math.log10(times)) - digits + 1)
    return "" if abs(float(said) - times) <= half + 1e-3 * times else f"it is {times:.4g} times, not {text}"


def expected(name: str, said: str, wanted: str) -> str:
    return "" if said == wanted else f"the {name} is {wanted}, not {said}"


def first(*whys: str) -> str:
    """Return the first reason why a claim is false; "" if there is none."""
    return next((why for why in whys if why), "")


# What is lit


def lit(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the words that a sentence names: the word that is written, the reading word, the lit source word."""
    right = {"target": seen.target, "reader": seen.queries[seen.query]}
    if seen.family != "cross":
        right["source"] = seen.read_words[seen.lit_source]
    return first(*(expected(name, values[name], word) for name, word in right.items() if name in values))


def only(is_true: Callable[[Seen], bool], what: str) -> Check:
    """Return a check of the words, and of a condition of the model."""
    return lambda seen, values: lit(seen, values) or ("" if is_true(seen) else f"{what} is false")


def looks(*, shared: bool = False, own: bool = False, tied: bool = False) -> Check:
    """Return a check of where a head looks: mostly at one word, or most at it, perhaps at the reading word itself."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        weights, keys = seen.lit_weights, seen.keys
        most = float(weights.max())
        word = values.get("looked" if seen.family != "cross" else "source", keys[seen.query] if own else "")
        places = [at for at, key in enumerate(keys) if key == word and weights[at] >= most - ROUNDING]
        rivals = {key for at, key in enumerate(keys) if key != word and weights[at] >= most - ROUNDING}
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
    shown, all = len(seen.output), int(values["1"])
    return first(expected("place", values["0"], str(seen.row + 1)), expected("length", str(all), str(shown)))


def section(seen: Seen, values: Mapping[str, str]) -> str:
    name = seen.state["box"].partition(".")[2]
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


def is_same(before: float, after: float) -> bool:
    """Return whether a word hardly depends on what makes this difference, in itself or by a tenth."""
    most = max(PRINTED, min(SAME, max(before, after) / 10)) if min(before, after) >= PRINTED / 2 else before / 10
    return abs(before - after) < most + ROUNDING


def hardly_depends(seen: Seen, values: Mapping[str, str]) -> str:
    before, after = worth(seen)
    why = f"without the head it has {after:.4f} instead of {before:.4f}"
    return first(
        expected("word", values["0"], seen.target),
        "" if is_same(before, after) else why,
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


def mostly_independent(seen: Seen, _: Mapping[str, str]) -> str:
    before, after = worth(seen)
    return "" if before / 2 - ROUNDING < after < before else f"{after:.4f} of {before:.4f} is left"


def is_off(seen: Seen, *, wanted: bool) -> str:
    is_so = seen.head in seen.changes.get("ablated", {}).get(seen.box, [])
    return "" if is_so == wanted else f"the head is {'on' if wanted else 'off'}"


def hides_later(seen: Seen, _: Mapping[str, str]) -> str:
    later = seen.trace[f"{seen.box}.weights"][:, seen.row, seen.row + 1 :]
    return "" if not bool(later.any()) else "the row reads later words"


def unknown_words(seen: Seen, values: Mapping[str, str]) -> str:
    bundle = seen.model.bundle
    known = [
        word
        for word in values["0"].split(", ")
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
    """Check the word that the model would write if a box, `at`, were its last; and its probability."""
    at, model = seen.at, seen.model.transformer
    point = "added" if seen.model.config.norm == "pre" else "normed"
    layer = seen.state["heads"]["cross"]["layer"]
    closed = re.fullmatch(r"layer\.(\d+)", at)
    name = f"{closed[1]}.feed_forward" if closed else f"{layer}.{at.removesuffix('.add')}"
    with torch.no_grad():
        stream = seen.trace[f"decoder.layers.{name}.{point}"][seen.row]
        log_probs = model.output(model.decoder.norm(stream)).log_softmax(-1)
    word, _, probability = values["0"].rpartition(" ")
    if word.endswith("<"):
        word, probability = word[:-2], f"< {probability}"
    best, name = float(log_probs.max()), seen.name(int(log_probs.argmax()), "target")
    likeliest = {seen.name(id, "target") for id in (log_probs >= best - ROUNDING).nonzero()[:, 0].tolist()}
    return first(
        "" if word in likeliest else f"it would write {name}", differs(probability, math.exp(best), "its probability")
    )


CHECKS: dict[str, Check] = {
    "stage.word.of": place_of_word,
    "stage.changed": lambda seen, _: "" if seen.is_changed else "nothing is changed",
    "stage.paper": section,
    "stage.guess": guess,
    "stage.more.weight": share_of_attention,
    "stage.more.same": hardly_depends,
    "stage.more.falls": depends(falls=True),
    "stage.more.rises": depends(falls=False),
    "stage.more.others": mostly_independent,
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
"""The check of each template that says what this model does."""

has_norm_first = only(lambda seen: seen.model.config.norm == "pre", "that a norm comes first")
has_last_norm = only(lambda seen: seen.model.config.final_norm, "that the stack ends with a norm")
has_waves = only(
    lambda seen: seen.model.config.positions not in ("none", "learned") and seen.changes.get("positions", True),
    "that waves are added",
)
GENERAL: dict[str, Check] = {
    "stage.more.norm": only(lambda seen: seen.model.config.norm == "post", "that the sum is normalised"),
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
"""Templates that say how every such model works: only their words, and whether this is such a model, are checked."""
