import doctest
import importlib
import pkgutil

import pytest

from glassformer.corpus import tasks

MODULES = [f"glassformer.corpus.tasks.{module.name}" for module in pkgutil.iter_modules(tasks.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
