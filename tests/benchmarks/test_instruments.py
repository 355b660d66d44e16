"""The benchmarks of decoding, quality, precision, growth and start-up run on toy data, and conclude correctly."""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks.peers.ours import RUN, model_config
from benchmarks.peers.task import EXAMPLES, TASK, Task, read_batches, read_task, read_weights
from benchmarks.processes import Entry, take_turns

from benchmarks import command, decoding, growth, precision, quality, startup
from glassformer.bundle import Bundle, save_weights
from glassformer.errors import CheckpointError
from glassformer.model.transformer import Transformer
from glassformer.recipes import toml
from glassformer.text.tokenizer import train_tokenizers

TEXTS = ["ein Hund läuft", "zwei Hunde laufen", "der Hund", "ein Hund läuft"]


def point(minutes, bleu):
    return {"minutes": minutes, "bleu": bleu, "step": 1, "loss": 1.0}


@pytest.fixture
def run(tmp_path):
    """Return a folder with a random glassformer model."""
    settings = toml.from_dict(
        {
            "data": {"source": "a.tsv"},
            "tokenizer": {"kind": "unigram", "vocab_size": 30},
            "model": {"d_model": 16, "heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 2}
            | {"positions": "halves"},
        }
    )
    source, target = train_tokenizers(TEXTS, TEXTS, settings.tokenizer)
    task = Task(vocabulary=len(source), d_model=16, heads=2, d_ff=24, encoder_layers=1, decoder_layers=2)
    torch.manual_seed(5)
    model = Transformer(model_config(task))
    bundle = Bundle(
        folder=tmp_path / "run",
        configuration=settings,
        model_config=model.config,
        source_tokenizer=source,
        target_tokenizer=target,
    )
    bundle.save(model)
    return bundle.folder


def data_of(folder):
    for language in ("de", "en"):
        (folder / f"test_2016_flickr.{language}").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return folder


def test_decoding_gives_all_peers_the_weights_and_the_test_set_of_one_run(run, tmp_path):
    work = tmp_path / "work"
    decoding.make_work(work, run, data_of(tmp_path))
    task, weights = read_task(work), read_weights(work)
    model = Bundle.load(run).model()
    assert (task.d_model, task.decoder_layers, task.vocabulary) == (16, 2, model.config.target_vocab_size)
    assert all((weights[name] == weight.detach().numpy()).all() for name, weight in model.named_parameters())
    assert (work / RUN / "model.safetensors").exists()


def test_the_model_trained_for_decoding_is_supported_by_every_peer(tmp_path):
    configuration = toml.load(decoding.RECIPE, decoding.REFERENCE, data=tmp_path)
    decoding.check_model(toml.model_config(configuration, 8000, 8000), tmp_path)


@pytest.mark.long
def test_ours_decodes_in_every_precision_and_fp32_is_the_baseline(run, tmp_path):
    work = tmp_path / "work"
    decoding.make_work(work, run, data_of(tmp_path))
    chosen = [Entry(peer="ours", precision=one, threads=1) for one in ("fp32", "bf16", "int8")]
    chosen.append(Entry(peer="ours", threads=1, options={"workers": 1, "engine": "ctranslate2"}))
    found = decoding.measure(work, chosen, 2, dict.fromkeys(decoding.CELLS, 3))
    figures = {"command": "c", "day": "d", "machine": decoding.machine(), **found}
    for cell in found["cells"].values():
        assert cell["failed"] == {}
        assert cell["scores"]["ours, fp32"]["equal"] == 100
        assert [len(answers) for answers in cell["answers"].values()] == [2, 2, 2, 2]
    assert "| ours, int8 |" in decoding.markdown(figures)
    assert decoding.plot(figures, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_a_run_that_the_peers_cannot_load_is_refused(run, tmp_path):
    other = tmp_path / "other"
    bundle = Bundle.load(run)
    text = (run / "config.toml").read_text().replace('positions = "halves"', 'positions = "interleaved"')
    bundle.save_configuration()
    other.mkdir()
    (run / "config.toml").write_text(text)
    save_weights(Transformer(Bundle.load(run).model_config), run / "model.safetensors")
    with pytest.raises(SystemExit, match=r"model\.positions = 'interleaved'"):
        decoding.make_work(other, run, data_of(tmp_path))


def test_equal_texts_are_counted_against_the_first_one():
    outputs = {"a": ["x y z w v", "u"], "b": ["x y z w v", "t"]}
    found = decoding.compared(outputs, ["x y z w v", "u"])
    assert (found["a"]["equal"], found["b"]["equal"]) == (100, 50)
    assert found["a"]["bleu"] > found["b"]["bleu"]


def test_the_learning_rate_rises_stays_and_falls_to_a_fiftieth():
    assert quality.rate(3.0, quality.WARMUP // 2, 0.0) == pytest.approx(1.5)
    assert quality.rate(3.0, quality.WARMUP, 0.4) == pytest.approx(3.0)
    assert quality.rate(3.0, 10_000, 0.7) == pytest.approx(1.5)
    assert quality.rate(3.0, 10_000, 1.0) == pytest.approx(3.0 / 50)


def test_the_time_to_a_score_is_the_shortest_of_all_trainings_or_none():
    curves = [[point(1, 10), point(6, 35)], [point(2, 20), point(4, 34), point(9, 36)]]
    assert quality.time_to(34, curves) == 4
    assert quality.time_to(36.5, curves) is None
    assert quality.time_to(1, []) is None


@pytest.mark.slow
def test_the_table_of_quality_has_the_ratio_and_the_scores_not_reached(tmp_path):
    figures = {
        "commands": ["c", "c2"],
        "day": "d",
        "machine": quality.machine(),
        "ours": "a recipe",
        "curves": {"ours": {"5": [point(2, 34.5)], "10": [point(3, 38)]}, "them": {"5": [], "10": [point(5, 34)]}},
        "failed": {"another": "it died"},
    }
    text = quality.markdown(figures)
    assert "| ours | 2.0 | 3.0 | 38.0 | 3.0 |" in text
    assert "| them | 5.0 | not reached | 34.0 | 5.0 |" in text
    assert "34 BLEU 2.50 times as fast as the fastest peer." in text
    assert "Not measured: another: it died" in text
    assert quality.plot(figures, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_the_peer_gets_new_batches_of_all_sentences_in_each_epoch(work, tmp_path):
    class Reader:
        """A process that reads each given list of batches."""

        def __init__(self):
            self.lists = []

        def ask(self, do, file):
            self.lists.append(read_batches(Path(file)))

    for name in (TASK, EXAMPLES):
        shutil.copy(work / name, tmp_path / name)
    reader = Reader()
    numbers = quality.endless_batches(reader, tmp_path)
    first = next(numbers)
    count = len(reader.lists[0])
    assert [first, *(next(numbers) for _ in range(count))] == [*range(count), 0]
    tokens = [sum(batch.target_tokens for batch in batches) for batches in reader.lists]
    assert len(tokens) == 2
    assert tokens[0] == tokens[1]
    assert any(
        (a.source != b.source).any() for a, b in zip(*reader.lists, strict=False) if a.source.shape == b.source.shape
    )


def test_the_verdict_on_precision_compares_the_means_with_the_spread_of_seeds():
    found = precision.verdict({"fp32": [1.0, 2.0, 3.0], "bf16": [2.0, 3.0, 4.0]})
    assert found["difference"] == pytest.approx(1.0)
    assert found["seeds"] == pytest.approx(1.0)
    assert found["error"] == pytest.approx((2 / 3) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.001, 1.0], ids=["within", "beyond"])
def test_precision_is_compared_with_the_noise_of_seeds(shift):
    def curves(losses):
        return {str(seed): [{"step": 9, "loss": loss}] for seed, loss in enumerate(losses)}

    losses = [1.0, 1.1, 1.2]
    figures = {
        "command": "c",
        "day": "d",
        "machine": precision.machine(),
        "config": "x",
        "steps": 9,
        "seeds": [0, 1, 2],
    }
    figures["curves"] = {"fp32": curves(losses), "bf16": curves([loss + shift for loss in losses])}
    assert ("not within the noise" in precision.markdown(figures)) is (shift == 1.0)


@pytest.mark.long
def test_growth_trains_on_sentences_of_the_given_length(tmp_path):
    task = Task(vocabulary=41, d_model=12, heads=3, d_ff=20, encoder_layers=1, decoder_layers=1)
    found = growth.train(tmp_path, (task, 3, 17), [Entry(peer="torch_nn", threads=1), Entry(peer="ours", threads=1)], 2)
    assert found["tokens"] == 51
    assert found["failed"] == {}
    assert {name: len(answers) for name, answers in found["answers"].items()} == {"torch_nn, fp32": 2, "ours, fp32": 2}
    figures = {"command": "c", "day": "d", "machine": growth.machine(), "axes": {"length": {"17": found}}}
    assert "| ours, fp32 |" in growth.markdown(figures)
    assert growth.plot(figures, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_each_axis_changes_one_size_and_keeps_the_number_of_tokens():
    cases = growth.cases()
    for axis in ("length", "vocabulary", "width"):
        assert {rows * length for _, rows, length in cases[axis].values()} == {growth.TOKENS}
    assert [rows * length for _, rows, length in cases["batch"].values()] == list(growth.BATCHES)
    assert [task.vocabulary for task, _, _ in cases["vocabulary"].values()] == [8000, 16000, 32000, 64000]
    assert all(task.d_model % task.heads == 0 for task, _, _ in cases["width"].values())


@pytest.mark.long
def test_a_model_that_avoids_eos_writes_outputs_of_maximum_length(tmp_path):
    growth.make_decoding_work(tmp_path)
    found = growth.decode(tmp_path, 9, [Entry(peer="ours", threads=1)], 1)
    assert found["failed"] == {}
    [answer] = take_turns(
        [Entry(peer="ours", threads=1)],
        tmp_path,
        [{"do": "translate", "texts": ["abc def"], "beam_size": 1, "batch_size": 8}],
    ).answers["ours, fp32"]
    tokenizer = Bundle.load(tmp_path / RUN).source_tokenizer
    assert len(tokenizer.encode(answer["texts"][0])) > 40


@pytest.mark.slow
def test_startup_times_the_commands_in_turns_and_shows_the_added_time():
    timed = {
        "empty interpreter": ([sys.executable, "-c", "pass"], ""),
        "import json": ([sys.executable, "-c", "import json"], ""),
    }
    taken = startup.measure(timed, 2)
    assert {name: len(some) for name, some in taken.items()} == {"empty interpreter": 2, "import json": 2}
    text = startup.markdown({"command": "c", "day": "d", "machine": startup.machine(), "seconds": taken})
    assert "| empty interpreter |" in text
    assert "+0 ms" in text


def test_a_failed_command_gives_no_figure():
    with pytest.raises(startup.subprocess.CalledProcessError):
        startup.seconds([sys.executable, "-c", "raise SystemExit(3)"], "")


def test_an_unknown_name_is_refused_before_anything_is_trained(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["quality", "--data", "d", "--only", "ours", "hugging_face"])
    with pytest.raises(SystemExit):
        quality.main()
    assert "--only 'hugging_face': expected some of 'ours', 'hugging_face, fp32, allocator kept'" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ("engines", "--data", "{here}"),
            r"error: .*test_2016_flickr\.de\.gz does not exist",
            marks=pytest.mark.long,
        ),
        (("pareto", "nobodys", "--data", "{here}"), r"nobodys is neither a file nor one of \['cmudict', 'multi30k'\]"),
        (("startup", "--run", "{here}/none"), "/none' does not exist"),
    ],
    ids=["engines", "pareto", "startup"],
)
@pytest.mark.slow
def test_a_mistake_is_reported_in_one_sentence(words, message, tmp_path):
    arguments = [word.format(here=tmp_path) for word in words[1:]]
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{words[0]}", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode
    assert re.search(message, done.stderr)
    assert "Traceback" not in done.stderr
    assert not any(tmp_path.iterdir())


def test_a_missing_run_is_not_trained(tmp_path):
    with pytest.raises(CheckpointError, match="does not exist; give the folder of a run"):
        decoding.trained(argparse.Namespace(run=tmp_path / "run"))


def test_a_stopped_training_resumes(tmp_path, monkeypatch):
    calls = []

    def train(arguments, check):
        calls.append(arguments)
        (tmp_path / "decoding" / "trained").mkdir(parents=True, exist_ok=True)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(command.subprocess, "run", train)
    given = argparse.Namespace(run=None, work=tmp_path, data=tmp_path, minutes=1)
    with pytest.raises(KeyboardInterrupt):
        decoding.trained(given)
    assert decoding.trained(given) == decoding.trained(given) == tmp_path / "decoding" / "trained"
    assert len(calls) == 2


def test_every_timed_command_exists(tmp_path):
    from glassformer.cli import COMMANDS

    assert set(startup.SUBCOMMANDS) <= set(COMMANDS)
    assert "echo LINE | glassformer translate RUN" in startup.commands(tmp_path)
