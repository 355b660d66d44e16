import doctest
import importlib
import pkgutil

import pytest

from glassformer import tasks

MODULES = [f"glassformer.tasks.{module.name}" for module in pkgutil.iter_modules(tasks.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
