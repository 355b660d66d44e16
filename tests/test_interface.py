"""Names of the Python interface that must stay; tests/cli/test_help.py has the names of the commands."""

import pytest

import glassformer as gf

NAMES = """
    ModelConfig ModelConfig.preset Transformer Transformer.encode Transformer.decode attention sinusoids
    record intervene Translator Translator.load Translator.translate train training.steps check explore
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_each_public_name_exists_and_has_a_docstring(name):
    found = gf
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    assert found.__doc__
