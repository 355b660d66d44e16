"""Small models for the tests of the explorer's Python side."""

from browser.conftest import make_translator

__all__ = ["make_translator"]
