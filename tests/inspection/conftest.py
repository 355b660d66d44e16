"""Sentences for the small models of `make_model`: source ids with `<eos>`, target ids with `<bos>`."""

import pytest
import torch

SOURCE_IDS = [4, 5, 6, 7, 8, 2]
TARGET_IDS = [1, 4, 5, 9]


@pytest.fixture
def source():
    return torch.tensor([SOURCE_IDS])


@pytest.fixture
def target():
    return torch.tensor([TARGET_IDS])
