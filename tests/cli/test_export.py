"""`glassformer export`, and translating with an export."""

import json
import shutil

import pytest

from glassformer.bundle import Bundle
from glassformer.recipes.toml import from_dict
from models import EVEN, new_bundle, random_model


@pytest.fixture
def subwords(tmp_path_factory):
    """A run of subwords with a random model, and without validation texts."""
    folder = tmp_path_factory.mktemp("subwords") / "run"
    values = {"data": {"source": "a.tsv"}, "tokenizer": {"kind": "bpe", "vocab_size": 40}, "model": EVEN}
    bundle = new_bundle(folder, from_dict(values), ["the cat sees a black dog"], ["le chat voit un chien noir"])
    bundle.save(random_model(**{name: value for name, value in bundle.model_config.to_dict().items() if value}))
    return folder


LINES = b"the cat sees a dog\n\na big dog and the cat\n"


def test_an_export_translates_as_the_run_does(glassformer, trained, tmp_path):
    result = glassformer("export", trained, tmp_path / "out", "--to", "ctranslate2", "--quantization", "float32")
    assert result.status == 0
    texts = len((trained / "prepared" / "valid.jsonl").read_text().splitlines())
    assert f"verified: {texts} of {texts} outputs equal the run's" in result.err
    assert f"glassformer translate {tmp_path / 'out'}" in result.out
    expected = glassformer("translate", trained, "--engine", "torch", stdin=LINES)
    assert glassformer("translate", tmp_path / "out", stdin=LINES) == expected
    assert "no translation of 1 of 3 lines: 1 blank" in expected.err


@pytest.mark.slow
def test_an_export_without_validation_texts_is_verified_by_random_tokens(glassformer, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run", ignore=shutil.ignore_patterns("prepared", "ctranslate2"))
    result = glassformer("export", tmp_path / "run", "--quantization", "float32")
    assert "verified: 32 of 32 outputs equal the run's" in result.err
    asked = glassformer("export", tmp_path / "run", "--probe", 5)
    assert (asked.status, "holds no validation texts; give --probe a file of texts" in asked.err) == (1, True)


@pytest.mark.slow
def test_the_validation_texts_of_a_shared_prepared_folder_are_found(glassformer, trained, tmp_path):
    run, shared = tmp_path / "run", tmp_path / "shared"
    shutil.copytree(trained, run, ignore=shutil.ignore_patterns("ctranslate2"))
    (run / "prepared").rename(shared)
    settings = (run / "config.toml").read_text()
    (run / "config.toml").write_text(settings.replace('prepared = ""', f'prepared = "{shared}"'))
    result = glassformer("export", run, tmp_path / "out", "--probe", 5)
    assert (result.status, "verified: 5 of 5 outputs" in result.err) == (0, True)
    assert "translating 12 texts" in glassformer("calibrate", run).err


@pytest.mark.slow
def test_an_export_says_which_outputs_may_differ(glassformer, tmp_path):
    """For random tokens, the demo has many near ties."""
    result = glassformer("export", "demo", tmp_path / "out", "--json")
    found = json.loads(result.out)
    assert found["equal"] < found["outputs"]
    said = glassformer("export", "demo", tmp_path / "out").err
    assert f"verified: {found['equal']} of 32 outputs equal the run's" in said
    assert "any number of outputs may differ at near ties: where an output first differs, the log" in said
    assert f"may be 1 below that of the run's own token; here, it is at most {found['preference']:.2g} below" in said


def test_an_export_is_verified_by_given_texts(glassformer, trained, tmp_path):
    (tmp_path / "probe.txt").write_text("the cat\na dog\n")
    texts = len((trained / "prepared" / "valid.jsonl").read_text().splitlines())
    for probe, outputs in ((tmp_path / "probe.txt", 2), (5, 5), (99, texts)):
        result = glassformer("export", trained, tmp_path / "out", "--probe", probe, "--json")
        found = json.loads(result.out)
        assert (found["outputs"], found["quantization"], found["folder"]) == (outputs, "int8", str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--to", "ctranslate3"],
            "got 'ctranslate3' (did you mean 'ctranslate2'?)",
        ),
        (["--license", "mit"], "--license has no effect with --to ctranslate2; leave it out"),
        (["--unverified"], "--unverified has no effect with --to ctranslate2; leave it out"),
        (
            ["--to", "huggingface", "--quantization", "int8"],
            "quantization: expected float32 for Hugging Face's transformers, got 'int8'",
        ),
        (["--to", "huggingface", "--unverified"], "tokenizer.joint: expected true with words"),
        (["--to", "argos", "--unverified"], "the source's tokenizer: expected subwords, got words"),
        (["--set", "data.source_language=e n"], "data.source_language: expected a BCP 47 tag"),
        (
            ["--set", "data.valid_lines=3"],
            "--set: expected data.source_language or data.target_language, got data.valid",
        ),
        (["--set", "training.steps=3"], "--set: expected data.NAME=VALUE, such as data.source_language=en"),
    ],
    ids=str,
)
def test_an_impossible_option_is_a_clear_error(glassformer, trained, tmp_path, options, message):
    result = glassformer("export", trained, tmp_path / "out", *options)
    assert (result.status, result.out) == (1, "")
    assert message in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_another_programs_format_is_written_without_that_program_only_if_asked(glassformer, subwords, tmp_path):
    export = ("export", subwords, tmp_path / "out", "--to", "huggingface")
    assert "data.source_language: expected the language" in glassformer(*export, "--unverified").err
    export += ("--set", "data.source_language=en", "--set", "data.target_language=fr")
    refused = glassformer(*export)
    assert (refused.status, [*tmp_path.iterdir()]) == (1, [])
    assert "not verified: transformers is not installed; run `pip install transformers sentencepiece`" in refused.err
    (tmp_path / "scores.json").write_text('[{"name": "BLEU", "value": 33.3, "interval": null, "signature": "nrefs:1"}]')
    written = glassformer(*export, "--unverified", "--license", "mit", "--scores", tmp_path / "scores.json")
    assert (written.status, written.err) == (0, "not verified, because of --unverified\n")
    assert f"the model is in {tmp_path / 'out'}\n" in written.out
    card = (tmp_path / "out/README.md").read_text()
    assert "license: mit" in card
    assert "| BLEU | 33.30 | `nrefs:1` |" in card
    printed = json.loads(glassformer(*export, "--unverified", "--json").out)
    assert printed == {"folder": str(tmp_path / "out"), "quantization": "float32", "verified": False, "remarks": []}


@pytest.mark.parametrize("content", ["", "[1]", "{}", '[{"name": "test", "bleu": 3}]'], ids=str)
def test_scores_of_another_form_are_refused(glassformer, subwords, tmp_path, content):
    (tmp_path / "scores.json").write_text(content)
    result = glassformer("export", subwords, "--to", "huggingface", "--scores", tmp_path / "scores.json")
    assert result.status == 1
    assert "scores.json" in result.err


def test_languages_can_be_named_at_the_export(glassformer, trained, tmp_path):
    languages = ("--set", "data.source_language=en", "--set", "data.target_language=no")
    assert glassformer("export", trained, tmp_path / "out", *languages).status == 0
    data = Bundle.load(tmp_path / "out").configuration.data
    assert (data.source_language, data.target_language) == ("en", "no")


def test_a_missing_probe_is_a_clear_error(glassformer, trained, tmp_path):
    result = glassformer("export", trained, tmp_path / "out", "--probe", tmp_path / "nothing.txt")
    assert result.status == 1
    assert "nothing.txt" in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options", [[], ["--beam-size", 1], ["--n-best", 2], ["--beam-size", 2, "--n-best", 2]], ids=str
)
def test_the_engines_give_the_same_outputs(glassformer, trained, options):
    ours = glassformer("translate", trained, *options, "--engine", "torch", stdin=LINES)
    theirs = glassformer("translate", trained, *options, "--engine", "ctranslate2", stdin=LINES)
    for one, other in zip(ours.out.splitlines(), theirs.out.splitlines(), strict=True):
        *numbers, text = one.split("\t")
        *others, text_ = other.split("\t")
        assert text == text_
        assert [*map(float, numbers)] == pytest.approx([*map(float, others)], abs=2e-4)


def test_verbose_names_the_engine(glassformer, trained):
    assert "engine ctranslate2 (float32)" in glassformer("translate", trained, "--verbose", stdin=LINES).err
    assert "engine" not in glassformer("translate", trained, stdin=LINES).err


@pytest.mark.parametrize("options", [["--sample"], ["--explain"], ["--prefix", "le"]], ids=str)
def test_pytorch_serves_requests_that_only_it_supports(glassformer, trained, options):
    result = glassformer("translate", trained, *options, stdin=LINES)
    assert result.status == 0
    assert result == glassformer("translate", trained, *options, "--engine", "torch", stdin=LINES)


def test_an_evaluation_can_choose_its_engine(glassformer, trained, tmp_path):
    (tmp_path / "test.en").write_text("the cat\na dog sees\n")
    (tmp_path / "test.fr").write_text("le chat\nun chien voit\n")
    files = (tmp_path / "test.en", tmp_path / "test.fr")
    scores = {
        engine: glassformer("evaluate", trained, *files, "--engine", engine).out for engine in ("torch", "ctranslate2")
    }
    assert scores["torch"] == scores["ctranslate2"]
    assert "BLEU" in scores["torch"]


@pytest.mark.parametrize("option", [["--engine", "tensorflow"], ["--quantization", "int3"]], ids=str)
def test_an_unknown_engine_or_quantization_is_a_usage_error(glassformer, trained, option):
    assert glassformer("translate", trained, *option, stdin=LINES).status == 2
