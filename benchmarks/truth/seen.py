"""What the page shows, and what PyTorch computes of it.

Axes: H heads · T target positions · S source positions · V target vocabulary.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.transformer_step import padded
from glassformer.model.taps import record
from glassformer.text.normalisation import SPACE_MARK
from glassformer.translator import Translator
from glassformer.watch.explorer.module import strings
from glassformer.watch.explorer.opening import openings
from glassformer.watch.explorer.payload import rounded
from glassformer.watch.explorer.remote import Remote, unbatched
from glassformer.watch.explorer.sentence import source_ids
from glassformer.watch.inspection.changes import Changes, changed
from glassformer.watch.inspection.edits import attentions

__all__ = ["Check", "Model", "Seen"]

KEPT = 150
"""Number of forward passes that are kept for the next claims."""
CHANGES = ("ablated", "masks", "overrides", "positions", "scale", "mistakes")
"""The changes of a state that `Changes` describes."""


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

    def likeliest(self, log_probs: Tensor) -> int:
        """Return the likeliest word of those that searches write, from the log probabilities of all words, (V)."""
        log_probs = log_probs.clone()
        log_probs[[self.config.bos_id, self.config.pad_id]] = -torch.inf
        return int(log_probs.argmax())

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
        """The place of the lit word: the one that the reader chose, or the one with which the sentence opens."""
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
        return family_of(self.box)

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
        return self.model.likeliest(self.log_probs)

    def probability(self, id: int) -> float:
        return float(self.log_probs[id].exp())

    def without(self, name: str, head: int) -> Tensor:
        """Return the log probabilities of the lit row without one more head, (V)."""
        ablated = dict(self.changes.get("ablated", {}))
        ablated[name] = sorted({*ablated.get(name, []), head})
        return self.model.trace(self.source, self.output, self.changes | {"ablated": ablated})["log_probs"][self.row]

    @property
    def heads(self) -> list[tuple[str, int]]:
        """All heads, each as its attention and its number."""
        return [(name, head) for name in attentions(self.model.transformer) for head in range(self.model.config.heads)]

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
        token = self.token(id, side)
        if token in ("<bos>", "<eos>"):
            return self.words["stage.start" if token == "<bos>" else "stage.end"]
        return token.replace(SPACE_MARK, "").strip() or "␣"

    def token(self, id: int, side: str) -> str:
        """Return a token as the panels write it."""
        bundle = self.model.bundle
        [token] = (bundle.source_tokenizer if side == "source" else bundle.target_tokenizer).tokens([id])
        return token

    @cached_property
    def read_words(self) -> list[str]:
        """The names of the source's words."""
        return [self.name(id, "source") for id in self.source]

    @property
    def written(self) -> list[int]:
        """The ids that the decoder reads, which begin with `<bos>`."""
        return [self.model.config.bos_id, *self.output[:-1]]

    @cached_property
    def written_words(self) -> list[str]:
        """The names of the words that the decoder reads."""
        return [self.name(id, "target") for id in self.written]

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


def family_of(box: str) -> str:
    """Return the family of an attention, or of the attention whose head is lit beside another box."""
    return "encoder" if box.startswith("encoder") else "cross" if "cross" in box else "decoder"


Check = Callable[[Seen, Mapping[str, str]], str]
"""A function that returns why a claim is false; "" if it is true."""
