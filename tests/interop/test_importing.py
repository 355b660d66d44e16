"""An imported state dict is a run like any other run; an import that is impossible gives one sentence of error."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import glassformer as gf
from glassformer.bundle import Bundle
from glassformer.cli import main
from glassformer.errors import CheckpointError, ConfigError, VocabularyError
from glassformer.evaluation.guards import Guards
from glassformer.interop.importing import (
    ForeignTokens,
    SpecialIds,
    import_run,
    lookup_tokenizer,
    read_vocabulary,
    reordered,
    special_ids,
)
from glassformer.interop.torch.state_dicts import norm_difference
from glassformer.interop.torch.weight_files import read_state_dicts
from interop.tutorials import Annotated, TorchTutorial, Trevett

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")

SPECIALS = ["<unk>", "<pad>", "<bos>", "<eos>"]
SOURCE = [*SPECIALS, *"abcdefghijkl "]
TARGET = [*SPECIALS, *(f"w{number}" for number in range(19))]
TOKENS = ForeignTokens(source=[*SPECIALS, *(f"s{number}" for number in range(13))], target=TARGET)


@pytest.fixture
def tutorial(seed) -> TorchTutorial:
    model = TorchTutorial(17, 23).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


@pytest.fixture
def file(tutorial, tmp_path) -> Path:
    torch.save({"epoch": 3, "model_state_dict": tutorial.state_dict()}, tmp_path / "model.pt")
    return tmp_path / "model.pt"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_runs_model_computes_the_same_with_our_ids(tutorial, file, tmp_path):
    bundle, title, difference = import_run(file, tmp_path / "run", TOKENS, heads=3, languages=("en", "fr"))
    assert title.startswith("torch.nn.Transformer")
    assert difference == 0
    loaded = Bundle.load(tmp_path / "run")
    model = loaded.model()
    assert (loaded.origin, bundle.configuration.data.target_language) == ("model.pt", "fr")
    source, target = torch.tensor([[2, 5, 9, 3]]), torch.tensor([[2, 8, 21]])
    ours = [3, 0, 1, 2, *range(4, 23)]  # our id for each of their ids
    with torch.no_grad():
        expected = tutorial(source, target)
        found = model(source.apply_(ours.__getitem__), target.apply_(ours.__getitem__))
    torch.testing.assert_close(found[..., ours], expected, rtol=0, atol=1e-4)
    assert bundle.source_tokenizer.tokens(range(5)) == ["<pad>", "<bos>", "<eos>", "<unk>", "s0"]
    assert bundle.target_tokenizer.tokens([22]) == ["w18"]


@pytest.mark.slow
def test_the_run_translates_traces_and_explains(file, tmp_path):
    import_run(file, tmp_path / "run", TOKENS, heads=3)
    translator = gf.Translator.load(tmp_path / "run")
    [found] = translator.translate(["s0 s7 s3"], beam_size=2, extra_length=5)
    assert found.tokens
    assert translator.explain("s0 s7 s3", extra_length=5).source == ("s0", "s7", "s3", "<eos>")


def test_sources_begin_with_bos_if_those_of_the_training_did(file, tmp_path):
    tokens = ForeignTokens(source=SOURCE, target=TARGET, source_bos=True)
    import_run(file, tmp_path / "run", tokens, heads=3)
    translator = gf.Translator.load(tmp_path / "run")
    tokenizer = translator.bundle.source_tokenizer
    assert tokenizer.tokens(tokenizer.encode("ab x")) == ["<bos>", "a", "b", "▁", "<unk>"]
    assert tokenizer.decode(tokenizer.encode("ab c")) == "ab c"
    assert translator.unknown("ab x") == ("x",)
    assert translator.bundle.target_tokenizer.encode("w3") == [7]
    assert translator.bundle.source_tokenizer.to_dict()["with_bos"] is True


@pytest.mark.parametrize(
    ("tokens", "kind"),
    [
        (["a", "b", " ", "é", "中", "👩"], "characters"),
        (["a", "<mask>", "[CLS]"], "characters"),
        (["a", "b", "cd"], "words"),
        (["a", "<>"], "words"),
        (["<mask>"], "words"),
        ([], "words"),
    ],
)
def test_a_vocabulary_of_single_characters_is_one_of_characters(tokens, kind):
    vocabulary = ["<pad>", "<bos>", "<eos>", "<unk>", *tokens]
    assert lookup_tokenizer(None, vocabulary).kind == kind
    for given in ("words", "characters") if " " not in tokens else ("characters",):
        assert lookup_tokenizer(given, vocabulary).kind == given


def test_each_side_has_the_kind_that_its_vocabulary_shows(file, tmp_path):
    bundle = import_run(file, tmp_path / "run", ForeignTokens(source=SOURCE, target=TARGET), heads=3).bundle
    assert (bundle.source_tokenizer.kind, bundle.target_tokenizer.kind) == ("characters", "words")
    assert bundle.configuration.tokenizer.kinds == ("characters", "words")
    assert bundle.source_tokenizer.split("ab c") == ["a", "b", "▁", "c"]


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_both_kinds_of_files_are_read(tutorial, tmp_path, suffix):
    path, state = tmp_path / f"model{suffix}", tutorial.state_dict()
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    found = read_state_dicts(path)[""]
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], state[name]) for name in state)


def test_names_of_a_copy_can_be_replaced(tutorial, tmp_path):
    state = {name.replace("src_tok_emb", "encoder_emb"): tensor for name, tensor in tutorial.state_dict().items()}
    torch.save(state, tmp_path / "copy.pt")
    with pytest.raises(CheckpointError, match=r"lacks 'src_tok_emb\.embedding\.weight'"):
        import_run(tmp_path / "copy.pt", tmp_path / "run", TOKENS, heads=3)
    import_run(tmp_path / "copy.pt", tmp_path / "run", TOKENS, heads=3, renames={"encoder_emb": "src_tok_emb"})


def test_the_difference_of_the_annotated_transformers_norm_is_measured(seed, tmp_path):
    theirs = Annotated(17, 23).eval()
    torch.save(theirs.state_dict(), tmp_path / "model.pt")
    imported = import_run(tmp_path / "model.pt", tmp_path / "run", TOKENS, heads=3)
    assert 0 < imported.difference < 1e-4
    exact = gf.import_module(theirs.double(), heads=3, pad_id=0, bos_id=1, eos_id=2)
    source, target = torch.tensor([[4, 9, 16]]), torch.tensor([[5, 20]])
    with torch.no_grad():
        assert (exact(source, target) - theirs(source, target)).abs().max() <= 10 * norm_difference(exact)


def test_reordering_permutes_the_logits(seed):
    model = gf.import_module(Trevett(17, 23).eval(), heads=3, pad_id=0, bos_id=1, eos_id=2)
    # ids of both sides; 0 is padding
    source, target = ([0, *(1 + torch.randperm(size - 1)).tolist()] for size in (17, 23))
    other = reordered(model, source, target)
    ids, written = torch.tensor([[4, 9, 16, 0]]), torch.tensor([[5, 20]])
    with torch.no_grad():
        theirs = model(torch.tensor(source)[ids], torch.tensor(target)[written])
        torch.testing.assert_close(other(ids, written), theirs[..., target])


VOCABULARIES = {
    "tokens.txt": "<unk>\n<pad>\n<bos>\n<eos>\na\n",
    "tokens.json": json.dumps(["<unk>", "<pad>", "<bos>", "<eos>", "a"]),
    "ids.json": json.dumps({"a": 4, "<unk>": 0, "<pad>": 1, "<bos>": 2, "<eos>": 3}),
    "nested.json": json.dumps({"itos": ["<unk>", "<pad>", "<bos>", "<eos>", "a"], "freqs": {}}),
}


@pytest.mark.parametrize(("name", "text"), VOCABULARIES.items())
def test_vocabularies_are_read_in_their_usual_forms(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_vocabulary(tmp_path / name) == ["<unk>", "<pad>", "<bos>", "<eos>", "a"]


def test_a_pickle_of_plain_values_is_read_and_one_with_objects_is_refused(tmp_path):
    path = tmp_path / "vocabulary.pkl"
    path.write_bytes(pickle.dumps({"stoi": {"a": 1, "b": 0}}))
    assert read_vocabulary(path) == ["b", "a"]
    path.write_bytes(pickle.dumps({"itos": [Path("x")]}))
    with pytest.raises(CheckpointError, match="holds an object of class pathlib"):
        read_vocabulary(path)


BAD_VOCABULARIES = {
    "gaps.json": ('{"a": 0, "b": 2}', VocabularyError, "expected the ids 0 to 1, each once"),
    "numbers.json": ("[1, 2]", VocabularyError, "expected a list of tokens"),
    "cut.json": ('["a", ', CheckpointError, "cannot be read"),
    "deep.json": ("[" * 100_000, CheckpointError, "cannot be read"),
    "cut.pkl": ("cos\nsystem\n(S'echo'\ntR.", CheckpointError, "holds an object of class os"),
}


@pytest.mark.parametrize("name", BAD_VOCABULARIES)
def test_a_broken_vocabulary_is_one_clear_error(tmp_path, name):
    text, error, message = BAD_VOCABULARIES[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=message) as caught:
        read_vocabulary(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_special_tokens_are_found_by_their_names_or_asked_for():
    assert special_ids(["<unk>", "a", "</s>", "<s>", "<pad>"]) == SpecialIds(pad=4, bos=3, eos=2, unk=0)
    with pytest.raises(
        ConfigError, match=r"source: expected one token <pad> or .* got 0 such tokens; give --special-ids"
    ):
        special_ids(["a", "b"], "source")


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Harmful:
        def __reduce__(self):
            return Path.touch, (tmp_path / "touched",)

    torch.save({"state_dict": {}, "hook": Harmful()}, tmp_path / "bad.pt")
    with pytest.raises(CheckpointError, match=r"holds objects other than tensors \([\w.]+\), which could run code"):
        read_state_dicts(tmp_path / "bad.pt")
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a model", b"\x80\x02}q\x00."])
def test_a_file_that_is_no_state_dict_is_one_clear_error(tmp_path, content):
    (tmp_path / "bad.pt").write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        read_state_dicts(tmp_path / "bad.pt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_missing_file_is_named(tmp_path, suffix):
    with pytest.raises(CheckpointError, match=r"model\S+ does not exist; correct the path"):
        read_state_dicts(tmp_path / f"model{suffix}")


@pytest.mark.parametrize(
    ("name", "message"), [("nowhere", "does not exist; correct the path"), ("", "a different folder")]
)
def test_the_command_names_a_source_that_is_not_a_model_before_it_asks_for_options(tmp_path, capsys, name, message):
    with pytest.raises(SystemExit):
        main(["import", str(tmp_path / name), str(tmp_path / "run")])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("override", ["data.task=copy", "decoding.beam_size=2"])
def test_settings_of_other_sections_are_refused(file, tmp_path, capsys, override):
    for side, tokens in (("source", TOKENS.source), ("target", TARGET)):
        (tmp_path / f"{side}.txt").write_text("\n".join(tokens) + "\n")
    vocabularies = [f"--{side}-vocabulary={tmp_path / side}.txt" for side in ("source", "target")]
    with pytest.raises(SystemExit):
        main(["import", str(file), str(tmp_path / "run"), "--heads", "3", *vocabularies, "--set", override])
    assert "--set: expected model.NAME=VALUE, such as model.norm=pre, got" in capsys.readouterr().err


def test_a_failed_import_leaves_nothing(file, tmp_path):
    before = files(tmp_path)
    short = ForeignTokens(source=TOKENS.source[:-1], target=TARGET)
    with pytest.raises(VocabularyError, match="source: expected 17 tokens, one for each row of the embedding, got 16"):
        import_run(file, tmp_path / "run", short, heads=3)
    assert files(tmp_path) == before


@pytest.mark.parametrize("ids", [(1, 2, 3, 17), (1, 2, 2, 0)])
def test_impossible_special_ids_are_refused(file, tmp_path, ids):
    tokens = ForeignTokens(source=TOKENS.source, target=TARGET, special_ids=SpecialIds(*ids))
    with pytest.raises(ConfigError, match="--special-ids: expected four different ids from 0 to 16, got"):
        import_run(file, tmp_path / "run", tokens, heads=3)


def test_a_folder_with_files_is_not_overwritten(file, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("x")
    with pytest.raises(ConfigError, match="is not an empty folder"):
        import_run(file, tmp_path / "run", TOKENS, heads=3)
    assert files(tmp_path / "run") == {"mine"}


def test_an_imported_run_has_no_corpus_to_train_on(file, tmp_path, capsys):
    import_run(file, tmp_path / "run", TOKENS, heads=3)
    for command in (
        ["train", str(tmp_path / "run" / "config.toml"), "--set", "training.steps=1"],
        ["evaluate", str(tmp_path / "run")],
    ):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 1
    err = capsys.readouterr().err
    assert "data: expected a built-in task or source files, got task = '' and source = ''; name a task" in err
    assert "Traceback" not in err


def test_the_command_imports_and_asks_for_what_is_missing(file, tmp_path, capsys):
    (tmp_path / "source.txt").write_text("\n".join(TOKENS.source) + "\n")
    (tmp_path / "target.txt").write_text("\n".join(TARGET) + "\n")
    options = {
        "--heads": "3",
        "--source-vocabulary": str(tmp_path / "source.txt"),
        "--target-vocabulary": str(tmp_path / "target.txt"),
    }
    for missing in options:
        given = [word for pair in options.items() if pair[0] != missing for word in pair]
        with pytest.raises(SystemExit):
            main(["import", str(file), str(tmp_path / "run"), *given])
        assert f"error: {missing}: expected a value, got nothing" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["import", str(file), str(tmp_path / "run"), *(word for pair in options.items() for word in pair)])
    assert not end.value.code
    assert (
        "imported torch.nn.Transformer, as in PyTorch's tutorial on translation: 2 + 3 layers, width 24, post-norm"
        in capsys.readouterr().out
    )


@pytest.mark.slow
def test_the_command_calibrates_the_guards_on_given_pairs(file, tmp_path, capsys):
    (tmp_path / "source.txt").write_text("\n".join(TOKENS.source) + "\n")
    (tmp_path / "target.txt").write_text("\n".join(TARGET) + "\n")
    (tmp_path / "pairs.tsv").write_text("".join(f"s{n % 13} s{n % 11} s{n % 7}\tw{n % 19}\n" for n in range(300)))
    command = ["import", str(file), str(tmp_path / "run"), "--heads", "3"]
    command += [f"--{side}-vocabulary={tmp_path / side}.txt" for side in ("source", "target")]
    with pytest.raises(SystemExit) as end:
        main([*command, "--pairs", str(tmp_path / "nowhere.tsv")])
    assert end.value.code == 1
    assert not (tmp_path / "run").exists()
    with pytest.raises(SystemExit) as end:
        main([*command, "--pairs", str(tmp_path / "pairs.tsv")])
    assert not end.value.code
    assert "300 outputs" in capsys.readouterr().out
    found = Guards.load(tmp_path / "run")
    assert found is not None
    assert found.outputs == 300
