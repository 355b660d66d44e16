"""Profile training and translating: group the operations in PyTorch's profile by kind of work."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from torch import nn
from torch.autograd.profiler import profile, record_function

from glassformer.jobs.speed.measurement import Workload, answered, training_of, warmed_up
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.fast.dropout import Dropout
from glassformer.training.reports import StepReport

__all__ = ["OVERHEAD", "WAITING", "WORK_KINDS", "Work", "kind_of", "profiled", "shares", "table", "work_of_updates"]

PROFILED = 4
"""Number of updates that are profiled."""

OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "matrix products": ("mm", "addmm", "_addmm_activation", "_linear_pointwise", "mkldnn_linear", "_int_mm"),
    "attention": (
        *("bmm", "baddbmm", "_softmax", "_softmax_backward_data"),
        *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward"),
        *("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"),
    ),
    "dropout": ("random_", "bernoulli_", "native_dropout", "native_dropout_backward"),
    "norms": ("native_layer_norm", "native_layer_norm_backward"),
    "optimiser": ("linalg_vector_norm", "_fused_adam_", "_fused_adamw_"),
    "copies and fills": ("copy_", "fill_", "zero_", "cat", "_to_copy", "clone", "index_select", "constant_pad_nd"),
}
"""Kinds of work that an operation's name alone decides, with the names of the operations."""

LIBRARIES = ("aten::", "mkldnn::", "mkl::")
"""Prefixes of the names of operations that compute; other entries of a profile are Python and the autograd engine."""
_SCOPE = "glassformer/"
_OWNERS: Mapping[type[nn.Module], str] = {Dropout: "dropout", MultiHeadAttention: "attention"}
_OWNING_NAMES = {"_SmoothedCrossEntropy": "loss", "Optimizer.": "optimiser"}
"""Parts of the model that own the operations within an entry of a profile, by the prefix of the entry's name."""
_BEFORE_COPIES = ("dropout", "loss", "norms")
"""Owners whose copies and fills count as their own work; a copy within attention counts as a copy."""

ELSE, WAITING, OVERHEAD = "sums and activations", "waiting for data", "Python and overhead"
WORK_KINDS = ("matrix products", "attention", "loss", "dropout", "norms", "optimiser", ELSE, "copies and fills")
"""The kinds of work of operations. The rest of the time is `WAITING` and `OVERHEAD`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The time of one kind of work."""

    kind: str
    """One of `WORK_KINDS`, `WAITING` or `OVERHEAD`."""
    seconds: float
    """Seconds per update, or per translated sentence."""
    share: float
    """Share of the whole time, in [0, 1]."""


def table(shares: Mapping[str, float], seconds: float) -> tuple[Work, ...]:
    """Return the kinds of work by their shares of a time of `seconds` seconds, largest share first."""
    ranked = sorted(shares.items(), key=lambda one: -one[1])
    return tuple(Work(kind=kind, seconds=share * seconds, share=share) for kind, share in ranked)


def shares(seconds: Mapping[str, float], whole: float, waited: float = 0.0) -> dict[str, float]:
    """Return the share of each kind of work in a time of `whole` seconds, of which `waited` seconds were spent waiting.

    The remaining time is `OVERHEAD`. It includes the profiler's own time, so it is smaller without a profiler.
    """
    spent = {**seconds, WAITING: waited} if waited else dict(seconds)
    rest = max(whole - sum(spent.values()), 0.0)
    total = sum(spent.values()) + rest
    return {kind: one / total for kind, one in {**spent, OVERHEAD: rest}.items()}


def kind_of(name: str, owner: str | None) -> str | None:
    """Return the kind of work (one of `WORK_KINDS`) of an operation with this name and owner; None = overhead.

    All operations of the optimiser are "optimiser", including its matrix products.

    >>> kind_of("aten::mm", "loss"), kind_of("aten::add", "loss"), kind_of("aten::add", None)
    ('matrix products', 'loss', 'sums and activations')
    """
    if not name.startswith(LIBRARIES):
        return None
    if owner == "optimiser":
        return owner
    operation = name.partition("::")[2]
    by_name = next((kind for kind, names in OPERATIONS.items() if operation in names), None)
    if by_name is None and operation.startswith("_foreach_"):
        by_name = "optimiser"
    if by_name in ("matrix products", "dropout", "norms") or (by_name == "attention" and owner != "loss"):
        return by_name
    if owner in _BEFORE_COPIES:
        return owner
    return by_name or owner or ELSE


def work_of_updates(job: Workload) -> dict[str, float]:
    """Return the share of each kind of work in the time of some updates, measured in a separate process.

    If several processes share an update, this is the time of one of these processes.

    Raises:
        ConfigError: the process ended early.
    """
    return answered(_work_of_updates, job)


def _work_of_updates(job: Workload) -> dict[str, float]:
    model, updates = warmed_up(job, training_of(job))
    next(updates)
    reports: list[StepReport] = []

    def some() -> None:
        reports.extend(report for report in islice(updates, PROFILED) if isinstance(report, StepReport))

    seconds = profiled(model, some)
    whole = sum(report.target_tokens / report.tokens_per_second for report in reports)
    return shares(seconds, whole, sum(report.waited for report in reports))


def profiled(model: nn.Module, work: Callable[[], object]) -> dict[str, float]:
    """Call `work`, which uses a model, once under the profiler; return the seconds by kind of work."""
    with _scopes(model), profile() as found:
        work()
    return _by_kind(found.function_events or [])


def _by_kind(events: Sequence[Any]) -> dict[str, float]:
    """Return the seconds of events by kind of work; a gradient operation has the owner of its forward operation."""
    owners: dict[int, str] = {}  # the key is the sequence number that an operation shares with its backward pass
    for event in events:
        owner = _enclosing(event)
        if owner and event.sequence_nr >= 0:
            owners[event.sequence_nr] = owner
    seconds: defaultdict[str, float] = defaultdict(float)
    for event in events:
        kind = kind_of(event.name, _enclosing(event) or _of_gradient(event, owners))
        if kind:
            seconds[kind] += event.self_cpu_time_total / 1e6
    return dict(seconds)


def _line(event: Any) -> Iterator[Any]:
    """Yield an event and the events that enclose it, innermost first."""
    while event is not None:
        yield event
        event = event.cpu_parent


def _enclosing(event: Any) -> str | None:
    """Return the innermost owner of an operation."""
    for one in _line(event):
        if one.name.startswith(_SCOPE):
            return str(one.name.removeprefix(_SCOPE))
        for beginning, owner in _OWNING_NAMES.items():
            if one.name.startswith(beginning):
                return owner
    return None


def _of_gradient(event: Any, owners: Mapping[int, str]) -> str | None:
    return next((owners[one.sequence_nr] for one in _line(event) if one.sequence_nr in owners), None)


@contextmanager
def _scopes(model: nn.Module) -> Iterator[None]:
    """Mark the calls of the model's parts for the profiler, so that the profile shows which part calls an operation."""
    with ExitStack() as hooks:
        for path, module in model.named_modules():
            owner = next((name for kind, name in _OWNERS.items() if isinstance(module, kind)), None)
            if path.endswith(".norm"):  # norms of any kind
                owner = "norms"
            if owner:
                open_scopes: list[record_function] = []
                before, after = _entering(owner, open_scopes), _leaving(open_scopes)
                hooks.callback(module.register_forward_pre_hook(before).remove)
                hooks.callback(module.register_forward_hook(after).remove)
        yield


def _entering(owner: str, opened: list[record_function]) -> Callable[..., None]:
    def enter(*_: object) -> None:
        opened.append(record_function(_SCOPE + owner))
        opened[-1].__enter__()

    return enter


def _leaving(opened: list[record_function]) -> Callable[..., None]:
    def leave(*_: object) -> None:
        opened.pop().__exit__(None, None, None)

    return leave
