import re

import pytest
import torch
from benchmarks.peers import torch_nn
from benchmarks.peers.ours import model_config, training_config
from benchmarks.peers.task import BATCHES, Task, read_batches
from benchmarks.processes import Entry
from benchmarks.work import epoch, synthetic
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import gemm, results, training
from glassformer.corpus.batching import Examples
from glassformer.system.machine import cores

TASK = Task(vocabulary=41, d_model=12, heads=2, d_ff=20, encoder_layers=2, decoder_layers=3, max_length=20)


@pytest.mark.slow
def test_the_operations_equal_torchs_count_in_its_own_transformer():
    source, target = synthetic(rows=5, source=7, target=11, count=1, vocabulary=TASK.vocabulary)
    [batch] = epoch(Examples(source=source, target=target), 55, 1)
    model = torch_nn.Model(TASK)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counted:
        model(torch.from_numpy(batch.source), torch.from_numpy(batch.target_input))
    assert training.flops(TASK, batch) == 3 * counted.get_total_flops()


def test_padding_does_not_count_as_work(work):
    def operations(batch):
        return training.flops(TASK, batch)

    batch = next(batch for batch in read_batches(work / BATCHES) if (batch.source == 0).any())
    alone = [
        type(batch)(source[source != 0][None], output[output != 0][None], output[output != 0][None])
        for source, output in zip(batch.source, batch.target_output, strict=True)
    ]
    assert operations(batch) == pytest.approx(sum(map(operations, alone)))


def test_the_reference_model_and_its_training_follow_the_task():
    config, settings = model_config(Task()), training_config(Task(), "bf16", 2)
    assert (config.d_model, config.heads, config.d_ff, config.encoder_layers) == (256, 4, 1024, 3)
    assert (config.norm, config.tie_output, config.dropout, config.attention_dropout) == ("post", True, 0.1, 0.0)
    assert (settings.precision, settings.workers, settings.label_smoothing, settings.clip_norm) == ("bf16", 2, 0.1, 0.0)


def test_every_peer_is_measured_in_both_precisions_with_and_without_the_allocator_setting(tmp_path):
    for peer in (*training.OTHERS, "hugging_face"):
        forms = {(one.precision, one.keeping) for one in training.others(tmp_path) if one.peer == peer}
        assert forms == {("fp32", False), ("fp32", True), ("bf16", False), ("bf16", True)}
    assert not any(one.peer == "annotated" for one in training.others(None))
    assert training.RIVAL in training.rivals()
    assert (
        len({one.name for one in [*training.rivals(), *training.others(tmp_path)]}) == 4 + 2 * len({1, cores()}) + 4 * 6
    )


@pytest.fixture(scope="module")
def figures(work, tmp_path_factory):
    def ceilings(threads):
        return gemm.ceilings(gemm.measure(0.0, {"small": (32, 16, 24)}))

    rival = Entry(peer="torch_nn", threads=1)
    dead = Entry(peer="nobody", threads=1)
    measured = training.measure(work, [[rival, Entry(peer="ours", threads=1), dead]], 3, 1, ceilings)
    return {"command": "a command", "day": "a day", "machine": results.machine(), **measured}


@pytest.mark.long
def test_the_table_has_a_row_of_figures_for_each_entry(figures):
    rival = Entry(peer="torch_nn")
    text = training.markdown(figures, rival)
    for name in ("ours, fp32", "torch_nn, fp32"):
        row = training.summary(figures, rival)[name]
        assert f"| {name} | {row['tokens_per_second'].text()} | {row['ratio'].text(2)} |" in text
    assert training.summary(figures, rival)["torch_nn, fp32"]["ratio"].median == 1
    assert re.search(r"\| ours, fp32 \| [\d.]+ \(", text.split("Speed of glassformer")[1])


@pytest.mark.long
def test_the_picture_shows_the_speeds(figures, tmp_path):
    assert training.plot(figures, tmp_path).read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_an_entry_that_could_not_be_measured_is_named_below_the_table(figures):
    assert "Not measured: nobody, fp32: " in training.markdown(figures)


@pytest.mark.long
def test_speeds_are_tokens_per_second_and_ratios_are_taken_update_by_update(figures):
    [sitting] = figures["sittings"]
    ours, theirs = (training.seconds(sitting, name) for name in ("ours, fp32", "torch_nn, fp32"))
    assert len(ours) == len(figures["target_tokens"]) == 3
    assert training.ratio(sitting, "ours, fp32", "torch_nn, fp32") == [b / a for a, b in zip(ours, theirs, strict=True)]
    assert training.ratio(sitting, "ours, fp32", "nobody, fp32") == []
    assert training.spread_of([10.0, 20.0], [2.0, 5.0]) == [5.0, 4.0]


def test_more_rounds_than_there_are_batches_are_refused(work):
    with pytest.raises(SystemExit, match=r"expected at most \d+ batches"):
        training.measure(work, [[Entry(peer="torch_nn")]], 10_000, 0)


def test_the_ceiling_is_the_best_of_shapes_and_ways():
    measured = {"fp32 linear": {"a": 3.0, "b": 5.0}, "fp32 oneDNN": {"a": 4.0}, "bf16 linear": {"a": 7.0, "b": 6.0}}
    assert gemm.ceilings(measured) == {"fp32": 5.0, "bf16": 7.0}


def test_matrix_products_are_measured_in_every_way_that_exists():
    with torch.no_grad():
        measured = gemm.measure(0.0, {"small": (32, 16, 24)})
    assert {"fp32 linear", "bf16 linear"} <= measured.keys()
    assert all(speeds["small"] > 0 for speeds in measured.values())
