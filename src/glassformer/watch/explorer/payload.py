"""The data of an explorer page: configuration, vocabulary, weights, the curve of the training, and PyTorch's numbers.

The weights of small models are embedded in half precision, and the page computes with them. For larger models, Python
computes and answers the page's questions. A recorded page has no weights, only the numbers of one sentence. All data is
plain and ready for JSON; tensors are joined into one base64 text, with a list of their names, shapes and offsets.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch

from glassformer.bundle import Bundle
from glassformer.errors import ConfigError, DataError, quoted
from glassformer.model.config import ModelConfig
from glassformer.model.points import named_points
from glassformer.model.transformer import Transformer
from glassformer.translator import Translator
from glassformer.watch.explorer.examples import example_sentences, frequent_words, story_pair
from glassformer.watch.explorer.module import strings, styles
from glassformer.watch.explorer.opening import openings
from glassformer.watch.explorer.packing import pack
from glassformer.watch.explorer.recording import recorded_data
from glassformer.watch.explorer.remote import search_data
from glassformer.watch.explorer.sentence import searched, source_ids, trace_data
from glassformer.watch.explorer.training_history import progress, shrunk, shrunk_bytes, snapshots_in, spread
from glassformer.watch.inspection import MISTAKES

__all__ = [
    "LIMITS",
    "PAYLOAD_VERSION",
    "PageLimits",
    "StoryOpens",
    "fits_page",
    "mistake_data",
    "payload",
    "point_data",
    "recorded_payload",
    "rounded",
]

PAYLOAD_VERSION = 2
FRAME = 320_000
"""Approximate size, in bytes, of the page without its data: the module and the HTML."""
MOST_CHECKPOINTS = 6
SOON = 5e9
"""Maximum number of multiplications for the opening of a page while a reader waits: half a second on two cores."""

StoryOpens = Literal["never", "first", "always"]


@dataclass(frozen=True, kw_only=True)
class PageLimits:
    """Limits on the contents of a page."""

    model: int = 2_000_000
    """Maximum number of parameters of a model whose weights are embedded, so that the page computes everything."""
    page: int = 10_000_000
    """Maximum size of a page in bytes. Snapshots that do not fit are left out; a recording that does not fit is an
    error."""
    comparison: int = 800_000
    """Maximum size, in bytes, of PyTorch's numbers with which the page compares its own numbers."""


LIMITS = PageLimits()


def payload(
    translator: Translator,
    sentence: str = "",
    *,
    checkpoints: int = 0,
    host: str | None = None,
    story: StoryOpens = "never",
    limits: PageLimits = LIMITS,
) -> dict[str, Any]:
    """Return all data, ready for JSON, of a page that shows this model, beginning with `sentence`.

    Args:
        translator: The model with its tokenizers; it is not changed.
        sentence: The first sentence to translate; by default, an example of the run's task or frequent words.
        checkpoints: Maximum number of snapshots of the training in the page, at most 6.
        host: Address of a server that answers the page's questions. If given, the page fetches snapshots from this
            server, and also the numbers of a model that is too large for a page.
        story: When the page opens its first chapter without a click: never, at a reader's first visit, or always.
        limits: Limits on the sizes of the model, the page and the comparison.

    Raises:
        ConfigError: the model is too large for a page without a host.
        DataError: the sentence cannot be translated.
        CheckpointError: a snapshot is damaged.
    """
    bundle = translator.bundle
    count, travels = _count(translator), fits_page(translator, limits)
    if not (travels or host):
        raise ConfigError(
            f"{bundle.folder}: expected a model of at most {limits.model:,} parameters for a page, got {count:,}, "
            f"which would make a page of about {(FRAME + count * 8 / 3) / 1e6:.0f} MB; use --recorded for a page of "
            "one sentence's numbers, or leave out --html, so that Python computes for the page"
        )
    model = rounded(translator.model) if travels else translator.model
    page, source = _page(translator, sentence)
    hypotheses, tree = searched(bundle, model, source)
    page |= {
        "source": bundle.source_tokenizer.to_dict(),
        "target": _target_tokenizer(bundle),
        "weights": pack(dict(model.named_parameters()), "float16") if travels else None,
        **progress(bundle.folder),
        "trace": trace_data(model, source, [bundle.model_config.bos_id, *hypotheses[0].tokens[:-1]], limits.comparison),
        "search": None if travels else search_data(bundle.target_tokenizer, hypotheses, tree),
        "host": {"url": host} if host else None,
        "story": {"opens": story, "pair": story_pair(bundle)},
        "openings": openings(translator, model, [page["sentence"]], SOON, examples=page["examples"])
        if host
        else openings(translator, model, [page["sentence"], *page["examples"]], examples=page["examples"]),
    }
    snapshots = snapshots_in(bundle.folder)
    chosen = spread(sorted(snapshots), min(checkpoints, MOST_CHECKPOINTS), page["step"])
    if host:
        return page | {"checkpoints": [{"step": step, "data": None} for step in chosen]}
    carried = spread(chosen, _room(limits.page, page, model), page["step"]) if chosen else []
    return page | {
        "checkpoints": [shrunk(step, snapshots[step], model, page["trace"]) for step in carried],
        "left_out": [step for step in chosen if step not in carried],
    }


def fits_page(translator: Translator, limits: PageLimits = LIMITS) -> bool:
    """Return whether a page can hold the weights of this model; otherwise, it holds a recording."""
    return _count(translator) <= limits.model


def recorded_payload(translator: Translator, sentence: str = "", *, limits: PageLimits = LIMITS) -> dict[str, Any]:
    """Return all data, ready for JSON, of a page that shows PyTorch's numbers for one sentence, without the weights.

    Raises:
        DataError: the sentence cannot be translated, or its numbers are too many for a page.
    """
    page, source = _page(translator, sentence)
    hypotheses, tree = searched(translator.bundle, translator.model, source)
    page |= recorded_data(translator, page["sentence"], source, hypotheses, tree)
    size = FRAME + len(json.dumps(page, separators=(",", ":")))
    if size > limits.page:
        raise DataError(
            f"{quoted(page['sentence'])}: expected a page of at most {limits.page / 1e6:.0f} MB, got {size / 1e6:.1f} "
            f"MB for {len(source)} source and {len(hypotheses[0].tokens)} target tokens; shorten the sentence"
        )
    return page


def _page(translator: Translator, sentence: str) -> tuple[dict[str, Any], list[int]]:
    """Return the data that every page has, and the ids of its sentence."""
    bundle, config = translator.bundle, translator.bundle.model_config
    examples = example_sentences(bundle)
    sentence = sentence or (examples[0] if examples else frequent_words(bundle.source_tokenizer))
    decoding, data = bundle.configuration.decoding, bundle.configuration.data
    page = {
        "format_version": PAYLOAD_VERSION,
        "recorded": False,
        "name": bundle.folder.resolve().name,
        "config": config.to_dict(),
        "points": point_data(config),
        "mistakes": mistake_data(config),
        "parameters": _count(translator),
        "decoding": {**asdict(decoding), "protect_also": list(decoding.protect_also)},
        "alignment": bundle.alignment.to_json() if bundle.alignment else None,
        "sentence": sentence,
        "examples": examples,
        "openings": {},
        "languages": {"source": data.source_language, "target": data.target_language},
        "label_smoothing": 0.0 if bundle.origin else bundle.configuration.training.label_smoothing,
        "story": {"opens": "never", "pair": []},
        "strings": {language: words | _words_of_mistakes(language) for language, words in strings().items()},
        "styles": styles(),
        "source": None,
        "target": None,
        "weights": None,
        "step": None,
        "curve": {"loss": [], "validation": []},
        "trace": None,
        "search": None,
        "host": None,
        "checkpoints": [],
        "left_out": [],
    }
    return page, source_ids(translator, sentence)


def _count(translator: Translator) -> int:
    """Return the number of parameters of the model."""
    return sum(parameter.numel() for parameter in translator.model.parameters())


def _room(largest: int, page: Mapping[str, Any], model: Transformer) -> int:
    """Return how many snapshots with 8 bits per weight still fit into the page."""
    return (largest - FRAME - len(json.dumps(page))) * 3 // 4 // shrunk_bytes(model)


def rounded(model: Transformer) -> Transformer:
    """Return a copy of a model in evaluation mode on the CPU, in float32, with weights rounded to half precision."""
    model, largest = copy.deepcopy(model).cpu(), torch.finfo(torch.half).max
    for weight in model.parameters():
        # the output bias of an imported model may be −10⁹, which would become infinite in half precision
        weight.data.clamp_(-largest, largest)
    return model.half().float().eval()


def point_data(config: ModelConfig) -> list[dict[str, Any]]:
    """Return the page's data about each named point, in the order of the forward pass."""
    return [{"name": one.name, "part": one.part, "heads": one.has_heads} for one in named_points(config).values()]


def mistake_data(config: ModelConfig) -> list[dict[str, Any]]:
    """Return the page's data about each classic mistake, in the order of `MISTAKES`."""
    return [
        {"first": one.first(config), **{key: getattr(one, key) for key in ("id", "at", "causal", "one_length")}}
        for one in MISTAKES.values()
    ]


def _words_of_mistakes(language: str) -> dict[str, str]:
    """Return the page's texts about classic mistakes: title, explanation, and why some models show no difference."""
    words = {}
    for one in MISTAKES.values():
        texts = one.zh if language == "zh" else {"title": one.title, "wrong": one.wrong, "unseen": one.unseen}
        words[f"mistake.{one.id}"] = texts["title"][0].upper() + texts["title"][1:]
        words[f"mistake.{one.id}.about"] = texts["wrong"]
        if one.unseen:
            words[f"mistake.{one.id}.unseen"] = texts["unseen"]
    return words


def _target_tokenizer(bundle: Bundle) -> dict[str, Any] | None:
    """Return the target tokenizer, or None if it equals the source tokenizer."""
    joint = bundle.target_tokenizer is bundle.source_tokenizer
    return None if joint else bundle.target_tokenizer.to_dict()
