"""The report as a file: self-contained, complete even for incomplete runs, and safe with any text."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import glassformer as gf
from glassformer.bundle import Bundle
from glassformer.watch.report import REPORT, write_report

GOLDEN = Path(__file__).parents[2] / "golden" / "format-1"


class Page(HTMLParser):
    """The content of a page: its elements with their attributes, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def tags(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def reported(run, tmp_path_factory):
    """Return a copy of the run into which the report was written, and what `write_report` returned."""
    folder = Path(shutil.copytree(run, tmp_path_factory.mktemp("page") / "run"))
    (folder / REPORT).unlink(missing_ok=True)
    return folder, write_report(folder)


@pytest.fixture(scope="module")
def written(reported):
    """Return the page of the run, written once."""
    _, page = reported
    return page


@pytest.fixture
def copy(run, tmp_path):
    """Return a copy of the run, to be damaged."""
    return Path(shutil.copytree(run, tmp_path / "run"))


@pytest.fixture
def untranslated(copy):
    """Return a copy of the run without its weights and corpus, whose report takes little time."""
    (copy / "model.safetensors").unlink()
    shutil.rmtree(copy / "prepared")
    return copy


def sections(page: Page) -> list[str | None]:
    return [attributes["id"] for attributes in page.tags("h2")]


@pytest.mark.slow
def test_a_trained_run_has_all_sections(written):
    page = Page(written)
    assert sections(page) == ["training", "translations", "limits", "attention", "corpus", "configuration"]
    assert [attributes["href"] for attributes in page.tags("a")] == [f"#{id}" for id in sections(page)]
    for words in (
        "greedy BLEU, validation, step",
        "Greedy BLEU",
        "validation loss",
        "d_model = 32",
        "Waiting for data",
        "blank",
        "training pairs",
    ):
        assert words in page.text


@pytest.mark.slow
def test_the_page_is_written_into_the_run_by_default(reported):
    folder, page = reported
    assert page == folder / REPORT
    assert page.stat().st_size < 1_000_000


@pytest.mark.slow
def test_the_page_requests_nothing_and_runs_no_script(written):
    page = Page(written)
    assert not page.tags("script")
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    fetching = ("src", "href", "xlink:href")
    addresses = [attributes[name] for _, attributes in page.elements for name in fetching if name in attributes]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    [policy] = [one["content"] for one in page.tags("meta") if "http-equiv" in one]
    assert policy.startswith("default-src 'none'")


@pytest.mark.slow
def test_text_of_the_corpus_stays_text(written):
    assert "<script>" not in written.read_text(encoding="utf-8")
    assert "<script>" in Page(written).text


@pytest.mark.slow
def test_each_picture_has_a_description_and_each_id_is_unique(written):
    page = Page(written)
    assert len(page.tags("svg")) == 11
    assert all(one["role"] == "img" and one["aria-label"] for one in page.tags("svg"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_numbers_of_the_log_are_on_the_page(run, written):
    page = Page(written)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    validations = [line for line in lines if line["type"] == "validation"]
    assert len(validations) == 3
    for line in validations:
        assert f"{line['loss']:.3f}" in page.text
        assert f"{line['metric'][1]:.1f}" in page.text


@pytest.mark.slow
def test_a_run_before_its_first_validation_is_reported(copy, tmp_path):
    (copy / "model.safetensors").unlink()
    lines = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text("".join(lines[:3]) + '{"type": "st')
    page = Page(write_report(copy, tmp_path / "page.html"))
    assert sections(page) == ["training", "limits", "corpus", "configuration"]
    assert "in progress, or killed" in page.text
    assert "train the run to its first validation" in page.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "loss",
        "metric",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("perplexity", "best", "tokens_per_second")),
    ],
)
def test_a_log_without_a_value_is_reported(untranslated, tmp_path, name):
    log = untranslated / "metrics.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    kept = [{key: value for key, value in line.items() if key != name} for line in lines]
    log.write_text("".join(json.dumps(line) + "\n" for line in kept))
    assert sections(Page(write_report(untranslated, tmp_path / "page.html"))) == ["training", "limits", "configuration"]


@pytest.mark.slow
def test_a_run_that_has_just_begun_is_reported(copy, tmp_path):
    for name in ("metrics.jsonl", "model.safetensors"):
        (copy / name).unlink()
    shutil.rmtree(copy / "prepared")
    page = Page(write_report(copy, tmp_path / "page.html"))
    assert sections(page) == ["limits", "configuration"]
    assert "the log has no entries yet" in page.text


@pytest.mark.slow
def test_a_run_without_its_corpus_is_reported(tmp_path):
    page = Page(write_report(GOLDEN, tmp_path / "page.html"))
    assert sections(page) == ["training", "limits", "configuration"]
    assert "the run did not keep them" in page.text


@pytest.mark.slow
@pytest.mark.usefixtures("small_task")
def test_a_run_on_a_task_without_its_prepared_corpus_is_reported(tmp_path):
    run = tmp_path / "copy"
    small = ["model.d_model=16", "model.heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1"]
    gf.train("copy", overrides=["training.steps=3", "training.batch_tokens=200", *small, f"run.directory={run}"])
    shutil.rmtree(run / "prepared", ignore_errors=True)
    page = Page(write_report(run))
    assert sections(page) == ["training", "translations", "limits", "attention", "corpus", "configuration"]
    assert "the built-in task copy" in page.text
    assert "validation pairs" in page.text


@pytest.mark.slow
def test_the_page_begins_with_what_was_trained_and_what_came_out(run, written):
    text = " ".join(Page(written).text.split())
    parameters = sum(weight.numel() for weight in gf.Translator.load(run).model.parameters())
    assert f"A Transformer with {parameters:,} parameters, trained on 174 sentence pairs After 60 steps, it" in text
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["type"] == "validation"][-1]
    assert f"its validation loss was still best at the last step ({last['loss']:.3f})." in text
    right = re.search(r"it translates (\d+) of 13 validation sentences exactly", text)
    assert right
    assert f"13 validation sentences, translated greedily; {right[1]} exactly right." in text


@pytest.mark.slow
def test_the_page_tells_what_the_model_cannot_do(run, reported, written):
    known = len(Bundle.load(run).source_tokenizer) - 4
    text = Page(written).text
    assert f"It knows {known} source words and signs; it reads every other word as <unk>." in text
    assert "It has read no source of more than 8 tokens" in text
    assert f"glassformer evaluate {reported[0]} --variants tries how it translates lines in capitals" in text


@pytest.mark.slow
def test_the_page_shows_how_other_spellings_are_translated(copy, tmp_path, monkeypatch):
    monkeypatch.setattr("glassformer.watch.report.variants.MOST_TRIED_SECONDS", 3000)  # also on a busy machine
    log = (copy / "metrics.jsonl").read_text()
    (copy / "metrics.jsonl").write_text(log + '{"type": "end", "step": 60, "reason": "steps", "seconds": 30000}\n')
    pairs = (f'["The {"cat " * count}sees.", "Le {"chat " * count}voit."]\n' for count in range(30))
    (copy / "prepared/valid.jsonl").write_text("".join(pairs))
    text = Page(write_report(copy, tmp_path / "report.html")).text
    assert "30 validation sentences as other people write them, translated greedily" in text
    assert re.search(r"capitals30\d+\.\d\d+\.\d\d+\.\d %\d+\.\d %", text)
    assert "two in a line" in text


@pytest.mark.slow
def test_curves_for_developers_are_folded(written):
    text = written.read_text(encoding="utf-8")
    folded = text.partition("Curves for developers")[2].partition("</details>")[0]
    assert all(f"<h3>{title}</h3>" in folded for title in ("Learning rate", "Gradient norm", "Speed", "Padding"))
    assert "<h3>Loss per target token</h3>" not in folded


@pytest.mark.slow
def test_the_page_links_to_the_explorer_if_it_was_written(untranslated, tmp_path, written):
    assert "glassformer explore" in Page(written).text
    (untranslated / "explorer.html").touch()
    assert Page(write_report(untranslated)).tags("a")[0]["href"] == "explorer.html"
    elsewhere = write_report(untranslated, tmp_path / "page.html")
    assert Page(elsewhere).tags("a")[0]["href"] == f"{untranslated.name}/explorer.html"


@pytest.mark.slow
def test_missing_validation_files_are_mentioned(copy, tmp_path):
    shutil.rmtree(copy / "prepared")
    text = (copy / "config.toml").read_text()
    text = re.sub('valid_source = ""', 'valid_source = "valid.tsv"', text)
    (copy / "config.toml").write_text(text)
    page = Page(write_report(copy, tmp_path / "page.html"))
    assert "valid.tsv does not exist" in page.text


@pytest.mark.slow
def test_the_run_is_unchanged(run, reported):
    def contents(folder):
        files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        return {name: content for name, content in files.items() if name != Path(REPORT)}

    assert contents(reported[0]) == contents(run)


@pytest.mark.parametrize(("output", "message"), [("", "is a folder"), ("none/page.html", "the folder ")])
def test_a_path_that_cannot_be_a_file_is_refused(run, tmp_path, output, message):
    with pytest.raises(gf.ConfigError, match=message):
        write_report(run, tmp_path / output)


def test_a_folder_that_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(gf.CheckpointError, match="is not a run"):
        write_report(tmp_path)
