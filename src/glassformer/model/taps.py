"""Taps: the named points of the forward pass, at which tensors can be recorded or replaced.

A module owns a `Tap` and passes the values worth observing through it: `scores = self.tap("scores", …)`. A point's full
name is the module's path followed by the name given to the tap, such as `encoder.layers.2.self_attention.scores`.
Without a listener (a recording or an intervention), a tap returns its tensor unchanged.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

from torch import Tensor, nn

from glassformer.errors import ConfigError, ShapeError, nearest, quoted

__all__ = ["Edit", "Tap", "Trace", "intervene", "points", "record"]

Edit = Callable[[Tensor], Tensor]
"""A function that returns a replacement of the same shape for a tensor, without writing into that tensor."""


@dataclass(frozen=True, slots=True)
class _Listener:
    """A listener to some taps: `prefixes` has the path of each tap.

    `hear` receives a point's full name and tensor, and returns the tensor that replaces it.
    """

    prefixes: Mapping["Tap", str]
    hear: Callable[[str, Tensor], Tensor]


class _Listening(threading.local):
    """The listeners of this thread; interventions come first, so that recordings contain the changed values."""

    interventions: tuple[_Listener, ...] = ()
    recordings: tuple[_Listener, ...] = ()


_listening = _Listening()


class Tap:
    """A place through which a module passes its values, so that they can be recorded and changed."""

    def heard(self) -> bool:
        """Return whether this tap has a listener now."""
        return any(self in listener.prefixes for listener in (*_listening.interventions, *_listening.recordings))

    def __call__(self, point: str, tensor: Tensor) -> Tensor:
        """Return the tensor, or the interventions' replacement for it."""
        if not (_listening.interventions or _listening.recordings):
            return tensor
        for listener in (*_listening.interventions, *_listening.recordings):
            if self in listener.prefixes:
                tensor = listener.hear(_join(listener.prefixes[self], point), tensor)
        return tensor


class Trace(Mapping[str, Tensor]):
    """The values of a recording, by name and in the order of the forward pass.

    `trace[name]` is the latest value; `trace.history(name)` has a value for each pass through the point, for example
    one per step of decoding with a cache.
    """

    def __init__(self) -> None:
        self._values: dict[str, list[Tensor]] = {}

    def __getitem__(self, name: str) -> Tensor:
        """Return the latest value of a point."""
        return self.history(name)[-1]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order of their first value."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of recorded points."""
        return len(self._values)

    def history(self, name: str) -> list[Tensor]:
        """Return all values of a point, oldest first.

        Raises:
            KeyError: no point of that name was recorded.
        """
        if name not in self._values:
            raise KeyError(f"{quoted(name)} was not recorded{nearest(name, self._values)}")
        return self._values[name]

    def _hear(self, name: str, tensor: Tensor) -> Tensor:
        self._values.setdefault(name, []).append(tensor)
        return tensor


def points(model: nn.Module) -> list[str]:
    """Return the names of all points of a model, or of one of its modules; the names are relative to `model`."""
    return [_join(path, point) for path, _, names in _tapped(model) for point in names]


@contextmanager
def record(model: nn.Module, patterns: str | Iterable[str] = "*") -> Iterator[Trace]:
    """Record the values at a model's points within the context, in this thread only.

    `patterns` chooses points by name, with `*` and `?` as in file names. For example, `["*.weights"]` records only
    attention weights, which saves memory. Tensors are recorded as they are: not copied, and not detached from the
    autograd graph.

    Raises:
        ConfigError: a pattern matches no point.

    >>> import torch, glassformer as gf
    >>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).eval()
    >>> with gf.record(model) as trace:
    ...     logits = model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]]))
    >>> trace["decoder.layers.0.cross_attention.weights"].shape
    torch.Size([1, 8, 2, 3])
    """
    trace = Trace()
    wanted = _matching(model, [patterns] if isinstance(patterns, str) else patterns)
    listener = _Listener(
        _prefixes(model, wanted), lambda name, tensor: trace._hear(name, tensor) if name in wanted else tensor
    )
    before = _listening.recordings
    _listening.recordings = (*before, listener)
    try:
        yield trace
    finally:
        _listening.recordings = before


@contextmanager
def intervene(model: nn.Module, edits: Mapping[str, Edit]) -> Iterator[None]:
    """Replace the tensor at each named point by `edit(tensor)` within the context, in this thread only.

    Names may contain `*` and `?`. If two names match the same point, only the later edit applies. If `log_probs` is
    edited, the model returns the edited tensor instead of its logits.

    Raises:
        ConfigError: a name matches no point.
        ShapeError: an edit returned a tensor of a different shape.
    """
    chosen = {name: edit for pattern, edit in edits.items() for name in _matching(model, [pattern])}

    def hear(name: str, tensor: Tensor) -> Tensor:
        if name not in chosen:
            return tensor
        edited = chosen[name](tensor)
        if edited.shape != tensor.shape:
            raise ShapeError(f"the edit of {name}: expected shape {tuple(tensor.shape)}, got {tuple(edited.shape)}")
        return edited

    before = _listening.interventions
    _listening.interventions = (*before, _Listener(_prefixes(model, chosen), hear))
    try:
        yield
    finally:
        _listening.interventions = before


def _tapped(model: nn.Module) -> Iterator[tuple[str, Tap, tuple[str, ...]]]:
    """Yield path, tap and points of each module that owns a tap.

    A residual connection has no `POINTS`: its values pass through its sub-layer's tap and are listed in the
    sub-layer's `POINTS`.
    """
    for path, module in model.named_modules():
        tap, names = getattr(module, "tap", None), getattr(module, "POINTS", None)
        if isinstance(tap, Tap) and isinstance(names, tuple):
            yield path, tap, names


def _prefixes(model: nn.Module, names: Iterable[str]) -> dict[Tap, str]:
    """Return the path of each tap to which one of these points belongs."""
    parents = {name.rpartition(".")[0] for name in names}
    return {tap: path for path, tap, _ in _tapped(model) if path in parents}


def _matching(model: nn.Module, patterns: Iterable[str]) -> set[str]:
    known = points(model)
    matching: set[str] = set()
    for pattern in patterns:
        found = {name for name in known if fnmatchcase(name, pattern)}
        if not found:
            raise ConfigError(f"no point of the model is named {quoted(pattern)}{nearest(pattern, known)}")
        matching |= found
    return matching


def _join(prefix: str, point: str) -> str:
    return f"{prefix}.{point}" if prefix else point
