"""Small models for the tests of what Python does for the explorer."""

from browser.conftest import make_translator

__all__ = ["make_translator"]
