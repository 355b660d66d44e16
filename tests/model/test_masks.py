"""Masks are boolean, and True means: may be attended to."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.model.masks import causal_mask, padding_mask, target_mask

ids = (
    st.integers(1, 4)
    .flatmap(
        lambda length: st.lists(st.lists(st.integers(0, 3), min_size=length, max_size=length), min_size=1, max_size=3)
    )
    .map(torch.tensor)
)


def test_padding_cannot_be_attended_to():
    mask = padding_mask(torch.tensor([[5, 7, 0], [5, 0, 0]]), pad_id=0)
    assert mask.tolist() == [[[[True, True, False]]], [[[True, False, False]]]]


def test_padding_is_the_positions_with_the_padding_id():
    assert padding_mask(torch.tensor([[5, 0, 3]]), pad_id=3).tolist() == [[[[True, True, False]]]]


def test_the_future_cannot_be_attended_to():
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(3).tolist() == [[expected]]


def test_a_mask_is_on_the_device_of_its_ids():
    assert target_mask(torch.zeros(2, 3, dtype=torch.long, device="meta"), pad_id=0).device.type == "meta"


@given(ids)
def test_the_target_sees_neither_padding_nor_the_future(ids):
    mask = target_mask(ids, pad_id=0)
    batch, length = ids.shape
    assert mask.shape == (batch, 1, length, length)
    for b in range(batch):
        for i in range(length):
            assert mask[b, 0, i].tolist() == [bool(ids[b, j] != 0) and j <= i for j in range(length)]
