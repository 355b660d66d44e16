"""What a corpus is cleaned of: thresholds, each of which is a setting."""

import math
from dataclasses import dataclass
from typing import Literal

from glassformer.errors import ConfigError

__all__ = ["CleaningConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningConfig:
    """[cleaning]: which pairs of the training files are left out; each is counted with its reason and line.

    A pair with a blank side is always left out. Validation and test files are never cleaned.

    Raises:
        ConfigError: a value is impossible.
    """

    max_characters: int = 4000
    """Pairs with a longer side, in characters, are left out; 0 = no limit. (`data.max_length` counts tokens.)"""
    max_ratio: float = 9.0
    """Pairs are left out when one side is so many times as long as the other, in characters, five added to each so
    that short ones may differ; 0 = no limit."""
    duplicates: Literal["drop", "keep"] = "drop"
    """Pairs that occurred before, both sides letter by letter."""
    copies: Literal["drop", "keep"] = "keep"
    """Pairs whose target is their source."""
    control_characters: Literal["drop", "keep"] = "drop"
    """Pairs with NUL or another control character that is no white space."""
    on_invalid: Literal["error", "skip"] = "error"
    """Lines that are not UTF-8: stop and say where, or leave their pairs out."""
    leakage: Literal["warn", "drop"] = "warn"
    """Training pairs that are in the validation or test files as well: say so, or leave them out."""
    memory: int = 256
    """Megabytes that looking for duplicates may take; what is more goes to the disk."""
    workers: int = 0
    """Processes that check and tokenize; 0 = one for each core."""

    def __post_init__(self) -> None:
        for name, minimum in {"max_characters": 0, "max_ratio": 0, "memory": 1, "workers": 0}.items():
            if not minimum <= getattr(self, name) < math.inf:
                raise ConfigError(f"cleaning.{name} = {getattr(self, name)!r}: expected a number of at least {minimum}")
        if 0 < self.max_ratio < 1:
            raise ConfigError(f"cleaning.max_ratio = {self.max_ratio}: expected at least 1, or 0 for no limit")
