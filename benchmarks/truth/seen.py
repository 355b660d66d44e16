"""The state that the page shows, and the values that PyTorch computes for this state.

Axes: H heads · T target positions · S source positions · V target vocabulary.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.bundle import put_weights
from glassformer.decoding.beam import beam_search
from glassformer.decoding.hypothesis import Hypothesis, max_length
from glassformer.decoding.transformer_step import padded
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.taps import Edit, intervene, record
from glassformer.model.transformer import Transformer
from glassformer.text.normalisation import SPACE_MARK
from glassformer.translator import Translator
from glassformer.watch.explorer.module import strings
from glassformer.watch.explorer.opening import openings
from glassformer.watch.explorer.packing import dequantised, quantised
from glassformer.watch.explorer.payload import rounded
from glassformer.watch.explorer.remote import snapshot_halves, unbatched
from glassformer.watch.explorer.sentence import source_ids
from glassformer.watch.explorer.training_history import snapshots_in
from glassformer.watch.inspection.changes import Changes, changed
from glassformer.watch.inspection.edits import attentions
from glassformer.watch.inspection.forced import decoding
from glassformer.watch.inspection.mistakes import replaced

__all__ = ["Check", "Model", "Seen"]

KEPT = 150
"""Number of recent forward passes that are kept for the next claims."""
CHANGES = ("ablated", "masks", "overrides", "positions", "scale", "mistakes", "checkpoint")
"""The fields of a state that change the model: the fields of `Changes`, and the step of a snapshot."""
PLAIN = {"positions": True, "scale": True}
"""The neutral values of changes whose neutral value is not empty."""


class Model:
    """A model with the weights of its page and of the page's snapshots, and with its latest forward passes."""

    def __init__(self, translator: Translator, steps: Sequence[int] = ()) -> None:
        self.bundle = translator.bundle
        self.transformer = rounded(translator.model)
        self.translator = Translator(translator.bundle, self.transformer)
        self.config = self.transformer.config
        self.steps = list(steps)
        self._at: dict[int | None, Transformer] = {None: self.transformer}
        self._at |= {step: snapshot(self.transformer, snapshots_in(self.bundle.folder)[step]) for step in steps}
        self._kept: dict[str, Any] = {}

    @contextmanager
    def under(self, changes: Mapping[str, Any]) -> Iterator[Transformer]:
        """Yield the model, with the weights of the step in `changes`, while it computes under these changes."""
        rest = {name: value for name, value in changes.items() if name != "checkpoint"}
        model = self._at[changes.get("checkpoint")]
        with torch.no_grad(), changed(model, Changes.from_dict(rest)):
            yield model

    def trace(self, source: Sequence[int], output: Sequence[int], changes: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Return all points of a forward pass, without the batch's axis."""
        found: Mapping[str, Tensor] = self._keep(
            [source, output, changes], lambda: self._recorded(source, output, changes)
        )
        return found

    def log_probs(self, source: Sequence[int], output: Sequence[int], changes: Mapping[str, Any]) -> Tensor:
        """Return the log probabilities (T, V) of all words in all rows."""
        kept: Tensor = self._keep(
            ["log_probs", source, output, changes],
            lambda: self._recorded(source, output, changes, "log_probs")["log_probs"],
        )
        return kept

    def _recorded(
        self, source: Sequence[int], output: Sequence[int], changes: Mapping[str, Any], points: str = "*"
    ) -> dict[str, Tensor]:
        target = [self.config.bos_id, *output[:-1]]
        with self.under(changes) as model, record(model, points) as trace:
            model(padded(model, [source]), padded(model, [target]))
        return {name: unbatched(value) for name, value in trace.items()}

    def without_each_head(
        self, source: Sequence[int], output: Sequence[int], row: int, changes: Mapping[str, Any]
    ) -> Tensor:
        """Return the log probabilities (heads, V) of a row without each of `heads`, computed in one pass."""

        def edit(name: str) -> Edit:
            def ablated(values: Tensor) -> Tensor:
                values = values.clone()
                for at, (one, head) in enumerate(self.heads):
                    if one == name:
                        values[at, head] = 0.0
                return values

            return ablated

        edits = {f"{name}.heads": edit(name) for name in attentions(self.transformer)}
        kept: Tensor = self._keep(
            ["without", source, output, row, changes],
            lambda: self._varied(source, output, row, changes, len(self.heads), lambda model: intervene(model, edits)),
        )
        return kept

    def with_each_hidden(
        self, source: Sequence[int], output: Sequence[int], row: int, changes: Mapping[str, Any]
    ) -> Tensor:
        """Return the log probabilities (S, V) of a row with each source position hidden, computed in one pass."""

        def make(attention: MultiHeadAttention, queries: int) -> Callable[..., Tensor]:
            right = attention.attend

            def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
                whole = torch.ones(1, 1, 1, 1, dtype=torch.bool) if mask is None else mask
                whole = whole.expand(len(source), -1, query.shape[2], key.shape[2]).clone()
                for position in range(len(source)):
                    whole[position, :, :queries, position] = False
                return right(query, key, value, whole)

            return attend

        @contextmanager
        def hidden(model: Transformer) -> Iterator[None]:
            with ExitStack() as stack:
                for name, attention in attentions(model).items():
                    queries = len(source) if name.startswith("encoder") else len(output)
                    if name.startswith("encoder") or name.endswith("cross_attention"):
                        stack.enter_context(replaced(attention, "attend", make(attention, queries)))
                yield

        kept: Tensor = self._keep(
            ["hidden", source, output, row, changes],
            lambda: self._varied(source, output, row, changes, len(source), hidden),
        )
        return kept

    def _varied(
        self,
        source: Sequence[int],
        output: Sequence[int],
        row: int,
        changes: Mapping[str, Any],
        count: int,
        variants: Callable[[Transformer], AbstractContextManager[None]],
    ) -> Tensor:
        """Return the log probabilities of a row for `count` variants of one sentence, computed as a batch."""
        target = [self.config.bos_id, *output[:-1]]
        with self.under(changes) as model, variants(model), record(model, "log_probs") as trace:
            model(padded(model, [source] * count), padded(model, [target] * count))
        return trace["log_probs"][:, row].clone()

    @cached_property
    def heads(self) -> list[tuple[str, int]]:
        """All heads, each as the name of its attention and its number."""
        return [(name, head) for name in attentions(self.transformer) for head in range(self.config.heads)]

    def search(
        self, source: Sequence[int], prefix: Sequence[int], changes: Mapping[str, Any], *, beam_size: int, **more: float
    ) -> list[Hypothesis]:
        """Return the outputs of a search, best output first."""

        def found() -> list[Hypothesis]:
            rest = {name: value for name, value in changes.items() if name != "checkpoint"}
            model, settings = self._at[changes.get("checkpoint")], asdict(self.bundle.configuration.decoding)
            longest = max_length(self.config, len(source), int(settings["extra_length"]))
            settings |= {"beam_size": beam_size, **more}
            with torch.no_grad(), decoding(model, padded(model, [source]), Changes.from_dict(rest)) as step:
                [best] = beam_search(step, max_lengths=[longest], n_best=beam_size, prefixes=[prefix], **settings)
            return best

        kept: list[Hypothesis] = self._keep([source, prefix, changes, beam_size, more], found)
        return kept

    def likeliest(self, log_probs: Tensor) -> int:
        """Return the likeliest word that a search can write, given the log probabilities (V) of all words."""
        log_probs = log_probs.clone()
        log_probs[[self.config.bos_id, self.config.pad_id]] = -torch.inf
        return int(log_probs.argmax())

    def opening(self, sentence: str) -> dict[str, Any]:
        """Return what the page highlights when a sentence opens."""
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


def snapshot(model: Transformer, path: Path) -> Transformer:
    """Return a model with the weights of a snapshot as the page has them, with 8-bit matrices."""
    early, names = deepcopy(model), [name for name, _ in model.named_parameters()]
    weights = (dequantised(quantised(half.astype("float32"))) for half in snapshot_halves(path, model))
    put_weights(early, {name: torch.from_numpy(one) for name, one in zip(names, weights, strict=True)}, str(path))
    return early


@dataclass
class Seen:
    """A state of the page: the reader's choices, the texts, and the model with which the texts are compared."""

    model: Model
    state: Mapping[str, Any]
    at: str = ""
    """The box next to which the page shows a guess."""

    @cached_property
    def words(self) -> Mapping[str, str]:
        return strings()[self.state["language"]]

    @cached_property
    def changes(self) -> dict[str, Any]:
        changes = self.state["changes"]
        return {name: changes[name] for name in CHANGES if name in changes and is_change(name, changes[name])}

    @cached_property
    def sentence(self) -> str:
        return str(self.state["changes"].get("source", self.state["sentence"]))

    @cached_property
    def source(self) -> list[int]:
        return source_ids(self.model.translator, self.sentence)

    @cached_property
    def mistakes(self) -> list[str]:
        """The planted mistakes."""
        planted: list[str] = self.changes.get("mistakes", [])
        return planted

    def as_read(self, ids: Sequence[int]) -> list[int]:
        """Return ids as the model reads them: padded to the longer side's length if a mistake mixes up the masks."""
        longest = max(len(self.source), len(self.output)) if "target_padding_mask" in self.mistakes else 0
        return [*ids, *[self.model.config.pad_id] * (longest - len(ids))]

    @property
    def read_ids(self) -> list[int]:
        """The ids of the source that the model reads."""
        return self.as_read(self.source)

    @property
    def norm(self) -> str:
        """The place of the norms ("pre" or "post"), with the planted mistakes."""
        norm = self.model.config.norm
        return norm if "norm_order" not in self.mistakes else {"pre": "post", "post": "pre"}[norm]

    @property
    def positions(self) -> str:
        """The kind of the positions that are added."""
        return self.model.config.positions if self.changes.get("positions", True) else "none"

    def lens(self, vector: Tensor, stack: str = "decoder") -> Tensor:
        """Return the log probabilities (V) of the words if a vector (D) of a stack were the stack's last vector.

        The encoder has no output matrix, so the embedding of the source is used for its vectors.
        """
        with self.model.under(self.changes) as model:
            if stack == "encoder":
                logits: Tensor = model.encoder.norm(vector) @ model.source.tokens.weight.T
            else:
                logits = model.output(model.decoder.norm(vector))
        log_probs = logits.log_softmax(-1)
        return log_probs.exp().log_softmax(-1) if "double_softmax" in self.mistakes else log_probs

    @property
    def search(self) -> dict[str, Any]:
        """The settings of the page's search."""
        asked = self.state["search"]
        return {"beam_size": asked["beamSize"], "length_penalty": asked["lengthPenalty"]}

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
        return bool(self.changes or self.prefix) or self.sentence != self.state["sentence"]

    @cached_property
    def row(self) -> int:
        """The row of the lit word: the word that the reader chose, or the word with which the sentence opens."""
        row = self.state["row"]
        wanted = self.model.opening(self.state["sentence"])["row"] if row is None else row
        return min(int(wanted), len(self.output) - 1)

    @cached_property
    def target(self) -> str:
        return self.name(self.output[self.row], "target")

    @cached_property
    def box(self) -> str:
        """The name of the model's part that belongs to the lit or opened box."""
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
        """The position whose vector the lit attention or the lit box computes."""
        return self.lit_source if self.box.startswith("encoder") else self.row

    @cached_property
    def lit_source(self) -> int:
        """The lit source word: the reader's choice, or the word that the lit head of cross-attention reads most."""
        chosen, cross = self.state["sourceWord"], self.state["heads"]["cross"]
        if chosen is None and "decoder_keys" in self.mistakes:
            chosen = 0  # the head attends to no source word
        elif chosen is None:
            name = f"decoder.layers.{cross['layer']}.cross_attention"
            chosen = self.weights(name, cross["head"], self.row).argmax()
        return min(int(chosen), len(self.read_ids) - 1)

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
        """The log probabilities (V) of all words in the lit row."""
        return self.trace["log_probs"][self.row]

    @property
    def best(self) -> int:
        """The likeliest word that a search can write in the lit row."""
        return self.model.likeliest(self.log_probs)

    def probability(self, id: int) -> float:
        return float(self.log_probs[id].exp())

    def rival(self) -> int:
        """Return the word that the page compares with the written word: the example's rival, or the likeliest other."""
        word, opening = self.output[self.row], self.model.opening(self.state["sentence"])
        is_own = self.state["measured"] and not self.changes and opening["ids"] == self.output
        if is_own and opening["row"] == self.row:
            return int(opening["rival"])
        return next(int(id) for id in self.log_probs.topk(2).indices if id != word)

    def without(self, name: str, head: int) -> Tensor:
        """Return the log probabilities (V) of the lit row without one more head."""
        all = self.model.without_each_head(self.source, self.output, self.row, self.changes)
        return all[self.model.heads.index((name, head))]

    def hidden(self, position: int) -> Tensor:
        """Return the log probabilities (V) of the lit row if no position may attend to source position `position`."""
        return self.model.with_each_hidden(self.source, self.output, self.row, self.changes)[position]

    def name(self, id: int, side: str) -> str:
        """Return the name of a token as the stage displays it."""
        token = self.token(id, side)
        if token in ("<bos>", "<eos>"):
            return self.words["stage.start" if token == "<bos>" else "stage.end"]
        return token.replace(SPACE_MARK, "").strip() or "␣"

    def token(self, id: int, side: str) -> str:
        """Return the name of a token as the panels display it."""
        bundle = self.model.bundle
        [token] = (bundle.source_tokenizer if side == "source" else bundle.target_tokenizer).tokens([id])
        return token

    @cached_property
    def read_words(self) -> list[str]:
        """The names of the source's words."""
        return [self.name(id, "source") for id in self.read_ids]

    @property
    def written(self) -> list[int]:
        """The ids that the decoder reads, which begin with `<bos>`."""
        return self.as_read([self.model.config.bos_id, *self.output[:-1]])

    @cached_property
    def written_words(self) -> list[str]:
        """The names of the words that the decoder reads."""
        return [self.name(id, "target") for id in self.written]

    @property
    def keys(self) -> list[str]:
        """The names of the words at which the lit attention can look."""
        reads_target = self.family == "decoder" or (self.family == "cross" and "decoder_keys" in self.mistakes)
        return self.written_words if reads_target else self.read_words

    @property
    def queries(self) -> list[str]:
        """The names of the words in the stack of the lit box."""
        return self.read_words if self.box.startswith("encoder") else self.written_words

    @property
    def is_forced(self) -> bool:
        return self.row < len(self.prefix)


def is_change(name: str, value: Any) -> bool:
    """Return whether this value of a field changes the model."""
    return value is not None and (value != PLAIN[name] if name in PLAIN else bool(value))


def family_of(box: str) -> str:
    """Return the family of an attention; for another box, the family of the attention whose head is lit next to it."""
    return "encoder" if box.startswith("encoder") else "cross" if "cross" in box else "decoder"


Check = Callable[[Seen, Mapping[str, str]], str]
"""A function that returns why a claim is false, or "" if the claim is true."""
