"""The gradient of an update, and the shares into which processes split it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.corpus.batching import Position, make_batch, stream
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.gradients import add_gradients, batch_loss, products_to_keep, share_of

CONFIG = TrainingConfig()
LENGTHS = (3, 5, 5, 6, 7, 7, 7, 8, 9, 11, 11, 13)


def gradient_of(model, config, batches):
    loss = add_gradients(model, config, batches, sum(batch.target_tokens for batch in batches))
    return loss, {name: weight.grad.clone() for name, weight in model.named_parameters()}


def test_r_drop_changes_nothing_without_dropout(make_model, make_examples):
    batch, _ = next(stream(make_examples(LENGTHS), 60, seed=1, start=Position()))
    model, found = make_model(dropout=0.0), []
    for r_drop in (0.0, 5.0):
        model.zero_grad()
        found.append(gradient_of(model, replace(CONFIG, r_drop=r_drop), [batch]))
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-12)


def test_r_drop_adds_the_divergence_of_two_passes_with_dropout(make_model, make_examples):
    batch, _ = next(stream(make_examples(LENGTHS), 60, seed=1, start=Position()))
    model, losses = make_model(dropout=0.3).train(), []
    for r_drop in (1e-12, 2.0, 4.0):
        torch.manual_seed(7)
        losses.append(float(batch_loss(model, batch, 0.1, r_drop).smoothed.detach()))
    assert losses[0] < losses[1]
    assert losses[2] - losses[0] == pytest.approx(2 * (losses[1] - losses[0]), rel=1e-9)


def test_every_pair_of_a_batch_is_in_one_share(make_examples):
    batch, _ = next(stream(make_examples(LENGTHS), 60, seed=1, start=Position()))
    shares = [batch.share(number, 3) for number in range(3)]
    assert sorted(row for share in shares for row in share.rows.tolist()) == sorted(batch.rows.tolist())
    assert sum(share.target_tokens for share in shares) == batch.target_tokens


@pytest.mark.parametrize(("length", "products"), [(11, 1024), (12, 32)])
def test_more_products_are_kept_for_short_targets(make_examples, length, products):
    assert products_to_keep(make_examples([length] * 3)) == products


@pytest.mark.parametrize(("accumulate", "whole"), [(1, False), (2, True), (3, False), (4, True)])
def test_whole_batches_are_shared_where_each_of_two_ranks_gets_as_many(make_examples, accumulate, whole):
    batches = [make_batch(make_examples(LENGTHS), np.array(rows)) for rows in ([0, 4, 7], [1, 2, 3, 5, 6], [8, 9])]
    shares = [share_of(batches, number, 2, TrainingConfig(accumulate=accumulate)) for number in range(2)]
    rows = [row for share in shares for batch in share for row in batch.rows.tolist()]
    assert sorted(rows) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert any(part is batch for share in shares for part in share for batch in batches) == whole
