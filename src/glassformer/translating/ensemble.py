"""Ensembles: several models that write each output together."""

from typing import TYPE_CHECKING

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Engine
from glassformer.errors import ConfigError, quoted

if TYPE_CHECKING:
    from glassformer.model.transformer import Transformer

__all__ = ["check_targets", "engine_of"]


def engine_of(bundle: Bundle, model: "Transformer | Engine", *others: Engine) -> Engine:
    """Return the engine of a model, or of an ensemble if there are `others`."""
    if isinstance(model, Engine) and not others:
        return model
    from glassformer.decoding.torch_engine import TorchEngine

    first = model if isinstance(model, Engine) else TorchEngine(model, alignment=bundle.alignment)
    members = [one for one in (first, *others) if isinstance(one, TorchEngine)]
    if len(members) <= len(others):
        raise ConfigError("an ensemble needs the engine torch; choose the engine torch for all of its models")
    return TorchEngine(
        *(model for member in members for model in member.models),
        workers=members[0].workers,
        budget=members[0].budget,
        alignment=members[0].alignment,
    )


def check_targets(first: Bundle, other: Bundle) -> None:
    """Raise an error if the models of an ensemble have different target vocabularies."""
    ours, theirs = first.target_tokenizer, other.target_tokenizer
    if first.configuration.data.reverse_target != other.configuration.data.reverse_target:
        raise ConfigError(
            f"the models of an ensemble must write in the same direction, but one of {first.folder} and {other.folder} "
            "writes from right to left (data.reverse_target): let one rescore the other's outputs instead"
        )
    problem = f"the models of an ensemble must share their target tokens, but {first.folder} and {other.folder}"
    remedy = (
        "train both with the same [data] and [tokenizer] settings, and with the same run.seed unless data.valid_source "
        "names validation files"
    )
    if (ours.kind, len(ours)) != (theirs.kind, len(theirs)):
        sizes = f"{len(ours):,} {ours.kind} and {len(theirs):,} {theirs.kind}"
        raise ConfigError(f"{problem} have {sizes} tokens; {remedy}")
    pairs = zip(ours.tokens(range(len(ours))), theirs.tokens(range(len(theirs))), strict=True)
    for id, (one, another) in enumerate(pairs):
        if one != another:
            raise ConfigError(f"{problem} differ first in id {id}, {quoted(one)} and {quoted(another)}; {remedy}")
