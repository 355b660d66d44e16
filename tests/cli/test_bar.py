"""Bars of text."""

from glassformer.cli.bar import bar


def test_bars_are_as_long_as_shares():
    assert [bar(share, 30) for share in (0.0, 0.1, 1.0)] == ["", "███", "█" * 30]
    assert bar(0.11, 30) == "███▎"
