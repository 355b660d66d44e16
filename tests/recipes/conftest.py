"""A configuration file that tests can change."""

import pytest

CONFIG = """
[data]
source = "a.txt"
target = "b.txt"
[model]
preset = "tiny"
"""


@pytest.fixture
def write_config(tmp_path):
    """Return a function that writes a configuration file, by default a small correct file."""

    def write(text=CONFIG):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
