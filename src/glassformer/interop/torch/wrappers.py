"""Find a model in saved state dicts, which may put prefixes before its weight names and may hold further tensors.

A prefix is the part of a full name before the weight name of a known model. DataParallel, `torch.compile`, Lightning
and moving averages each add a prefix, a dictionary around the state dict adds another, and prefixes may be nested.
Instead of a list of known prefixes, each part of a full name is tried as the beginning of a known weight name.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from glassformer.errors import CheckpointError, quoted
from glassformer.interop.torch.weight_files import StateDict, StateDicts

__all__ = ["the_model"]

K = TypeVar("K", bound=Hashable)

_INSIDE = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
"""Parts of names that wrappers add. A wrapper may be around any part of a model, so these parts also occur inside
names."""
_DEEPEST = 32
"""Maximum number of parts in a prefix."""
_SHARE = 0.5
"""A match is a model only if it has more than this share of the best match's number of known names."""


class _Name(NamedTuple):
    """One way to divide a tensor's full name into a prefix and the name in a model."""

    prefix: str
    """The text before the name in the model: "", or a text that ends with a dot."""
    name: str
    """The name in the model."""
    place: str
    """The place of the tensor's dictionary in the file."""
    stored: str
    """The name of the tensor in this dictionary."""

    def begins_with(self, prefixes: tuple[str, ...]) -> bool:
        """Return whether the full name begins with one of these prefixes."""
        return f"{self.place}.{self.stored}".removeprefix(".").startswith(prefixes)


def the_model(
    state_dicts: StateDicts, known: Mapping[K, Collection[str]], prefix: str | None = None
) -> tuple[K, StateDict] | None:
    """Return the kind of the model in these state dicts, and its tensors by name; None if there is no model.

    Args:
        state_dicts: the state dicts of a file, by their place in the file.
        known: for each kind of model, some of its names.
        prefix: the beginning of the names of the model to return; needed if there are several models.

    Raises:
        CheckpointError: there are several different models, or no model with this prefix.
    """
    readings = [
        reading for place, state in state_dicts.items() for stored in state for reading in _readings(place, stored)
    ]
    matches = Counter(
        (reading.prefix, kind) for reading in readings for kind, names in known.items() if reading.name in names
    )
    if not matches:
        return None
    kinds: dict[str, K] = {}
    for (found, kind), count in matches.most_common():
        if count > _SHARE * max(matches.values()):
            kinds.setdefault(found, kind)
    models = {found: _tensors(state_dicts, readings, found, kinds, known[kind]) for found, kind in kinds.items()}
    chosen = _chosen(models, prefix)
    return kinds[chosen], models[chosen]


def _readings(place: str, stored: str) -> Iterator[_Name]:
    """Yield every way to split a tensor's full name, at one of its dots, into a prefix and the name in a model."""
    parts = f"{place}.{stored}".removeprefix(".").split(".")
    for start, part in enumerate(parts[:_DEEPEST]):
        if part not in _INSIDE:  # no name in a model begins with a wrapper's name, so the prefix may end here
            prefix = "".join(f"{one}." for one in parts[:start])
            yield _Name(prefix, ".".join(one for one in parts[start:] if one not in _INSIDE), place, stored)


def _tensors(
    state_dicts: StateDicts, readings: list[_Name], prefix: str, all_prefixes: Collection[str], known: Collection[str]
) -> StateDict:
    """Return the tensors of the model with this prefix.

    The tensors come from the dictionaries that contain a known name of the model. Tensors of another model whose prefix
    begins with this prefix are left out.
    """
    own = [reading for reading in readings if reading.prefix == prefix]
    places = {reading.place for reading in own if reading.name in known}
    inner = tuple(one for one in all_prefixes if one.startswith(prefix) and one != prefix)
    tensors: dict[str, Tensor] = {}
    for reading in own:
        if reading.place in places and not reading.begins_with(inner):
            if reading.name in tensors:
                raise CheckpointError(f"expected one weight {quoted(reading.name)}, got several; save one model only")
            tensors[reading.name] = state_dicts[reading.place][reading.stored]
    return tensors


def _chosen(models: Mapping[str, StateDict], prefix: str | None) -> str:
    """Return the prefix of the only model, or of the model with the requested prefix."""
    found = [*models]
    if prefix is not None:
        found = [prefix] if prefix in models else [one for one in models if one.startswith(prefix)]
    distinct = found[:1] + [one for one in found[1:] if not _equal(models[one], models[found[0]])]
    if len(distinct) == 1:
        return distinct[0]
    listed = ", ".join(map(quoted, sorted(distinct or models)))
    if not distinct:
        raise CheckpointError(
            f"--prefix: expected one of {listed}, the prefixes of the models in the file, got {quoted(prefix)}"
        )
    raise CheckpointError(
        f"expected one model, got {len(distinct)} different models, whose weight names begin with {listed}; choose one "
        f"with --prefix, such as --prefix {max(distinct, key=len)}"
    )


def _equal(one: StateDict, other: StateDict) -> bool:
    return one.keys() == other.keys() and all(
        tensor.dtype == other[name].dtype and torch.equal(tensor, other[name]) for name, tensor in one.items()
    )
