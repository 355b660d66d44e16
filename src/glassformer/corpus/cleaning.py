"""The settings for cleaning a corpus."""

from dataclasses import dataclass
from typing import Annotated, Literal

from glassformer.errors import ConfigError
from glassformer.settings import Range, check_fields

__all__ = ["CleaningConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningConfig:
    """[cleaning]: which training pairs are left out. Reports count these pairs by problem, and list the first pairs.

    Pairs with a blank side are always left out, even from validation and test files. Otherwise, validation and test
    files are not cleaned.

    Raises:
        ConfigError: a value is impossible.
    """

    max_characters: Annotated[int, Range(0, 10**9)] = 4000
    """Leave out pairs with a side of more than N characters; 0 = no limit. (`data.max_length` counts tokens.)"""
    max_ratio: Annotated[float, Range(0, 10**6)] = 9.0
    """Leave out pairs in which one side has more than N times as many characters as the other side; 0 = no limit. Five
    characters are added to each side first, so that the lengths of short sides may differ more."""
    duplicates: Literal["drop", "keep"] = "drop"
    """Leave out pairs that repeat an earlier pair, with both sides equal character by character."""
    copies: Literal["drop", "keep"] = "keep"
    """Leave out pairs whose target equals the source."""
    control_characters: Literal["drop", "keep"] = "drop"
    """Leave out pairs with NUL or another control character that is not white space."""
    on_invalid: Literal["error", "skip"] = "error"
    """Treatment of lines that are not UTF-8: stop and report the line, or leave out the pair."""
    leakage: Literal["warn", "drop"] = "warn"
    """Treatment of training pairs that also occur in the validation or test files: warn, or leave out the pairs."""
    workers: Annotated[int, Range(0, 1024)] = 0
    """Number of processes that check and tokenise the corpus; 0 = one per core."""

    def __post_init__(self) -> None:
        check_fields("cleaning", self)
        if 0 < self.max_ratio < 1:
            raise ConfigError(f"cleaning.max_ratio: expected at least 1, or 0 for no limit, got {self.max_ratio}")
