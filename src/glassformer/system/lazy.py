"""Public names of a package whose modules are imported at the first use of each name."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, which imports the module of a public name.

    Args:
        package: the package's name, for the message about an unknown name.
        modules: the public names of each module. A module without names is public itself, under
            the last part of its name.
    """
    homes = {name: module for module, names in modules.items() for name in names}
    public = {module.rpartition(".")[2]: module for module, names in modules.items() if not names}

    def get(name: str) -> Any:
        if name in public:
            return import_module(public[name])
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get
