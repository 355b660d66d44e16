"""An exported folder for transformers, imported again, gives the same run; damaged folders give a sentence of error."""

import json
import random
import shutil
import tracemalloc

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from glassformer.bundle import Bundle
from glassformer.cli import main
from glassformer.errors import CheckpointError, ConfigError, GlassformerError, VocabularyError
from glassformer.interop.activations import OF_HUGGING_FACE
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.interop.exporting import EXPORTER, ExportOptions
from glassformer.interop.huggingface.reader import import_hugging_face, is_hugging_face
from glassformer.interop.huggingface.writer import export_hugging_face
from glassformer.translator import Translator
from glassformer.watch.inspection.check import check
from interop.huggingface.test_writer import a_run
from interop.small_runs import with_facts
from interop.small_weights import add_small_model
from models import with_new_activations

LARGEST = 30e6
"""Maximum number of bytes that Python may allocate while a damaged folder is imported."""


def exported(folder, **settings) -> Bundle:
    bundle = with_facts(a_run(folder / "run", **settings))
    export_hugging_face(bundle, folder / "theirs", ExportOptions(verified=False))
    return bundle


def changed(folder, name, **values):
    path = folder / "theirs" / name
    content = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))


def foreign(folder) -> None:
    """Make an exported folder look like the folder of another program."""
    changed(folder, "config.json", **{EXPORTER: ...})


RETURNED = [
    {"norm": "pre"},
    {"norm": "pre", "positions": "halves", "kind": "unigram"},
    {"norm": "post"},
    {"norm": "post", "positions": "halves", "output_bias": True},
    {"norm": "post", "joint": False, "tie_output": False},
    {"norm": "post", "tie_output": False, "tie_embeddings": False, "activation": "gelu"},
    {"norm": "pre", "kind": "words", "activation": "silu"},
    {"norm": "post", "kind": "characters", "d_model": 15, "heads": 3},
]
RETURNED += with_new_activations(RETURNED, OF_HUGGING_FACE.values()).values()


@pytest.mark.parametrize("settings", RETURNED, ids=str)
def test_an_exported_run_comes_back_bit_for_bit(tmp_path, settings):
    before = exported(tmp_path, **settings)
    assert is_hugging_face(tmp_path / "theirs")
    after = import_hugging_face(tmp_path / "theirs", tmp_path / "again").bundle
    assert after.model_config == before.model_config
    weights = before.model().state_dict()
    again = after.model().state_dict()
    assert again.keys() == weights.keys()
    assert all(weight.equal(weights[name]) for name, weight in again.items())
    text = "the black  cat sees a\u00a0dog"
    assert after.source_tokenizer.encode(text) == before.source_tokenizer.encode(text)
    assert (after.source_tokenizer is after.target_tokenizer) == settings.get("joint", True)
    data = after.configuration.data
    assert (data.source_language, data.target_language, after.origin) == ("en", "fr", "theirs")
    assert after.habits == before.habits
    assert after.spellings.read_bytes() == before.spellings.read_bytes()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_foreign_folder_computes_the_same_after_its_tokens_are_reordered(tmp_path, norm):
    before = exported(tmp_path, norm=norm, positions="halves")
    foreign(tmp_path)
    found = import_hugging_face(tmp_path / "theirs", tmp_path / "again")
    assert found.title == {"post": "Marian", "pre": "Pegasus"}[norm] + " of Hugging Face's transformers"
    after, ours, theirs = found.bundle, before.model(), found.bundle.model()
    # The folder's `<pad>` becomes <bos>, and the exported run's <pad> has become an ordinary token.
    names = after.target_tokenizer.tokens(range(len(after.target_tokenizer)))
    assert names[:4] == ["<pad>", "<bos>", "<eos>", "<unk>"]
    source = before.source_tokenizer.encode("the cat sees")
    target = before.target_tokenizer.encode("le chat")
    ids = {token: id for id, token in enumerate(names) if id > 3}
    moved = [[ids[before.source_tokenizer.tokens([id])[0]] for id in one] for one in (source, target)]
    with torch.no_grad():
        expected = ours(torch.tensor([[*source, 2]]), torch.tensor([[1, *target]]))[0].log_softmax(-1)
        got = theirs(torch.tensor([[*moved[0], 2]]), torch.tensor([[1, *moved[1]]]))[0].log_softmax(-1)
    torch.testing.assert_close(got[:, moved[1]], expected[:, target], rtol=0, atol=1e-5)
    assert got[:, 1].max() < -1e8


@pytest.mark.slow
def test_an_imported_run_is_checked_converted_and_translated(tmp_path):
    exported(tmp_path, norm="post")
    foreign(tmp_path)
    run = import_hugging_face(tmp_path / "theirs", tmp_path / "again").bundle
    failed = {one.name for one in check(run.model()).checks if one.status == "failed"}
    assert not failed
    assert export_ctranslate2(run, tmp_path / "converted", "float32").equal > 0
    texts = ["the black cat", "a dog sees"]
    ours, theirs = (Translator.load(run.folder, engine=engine).translate(texts) for engine in ("torch", "ctranslate2"))
    assert [one.text for one in ours] == [one.text for one in theirs]


def test_weights_may_lie_in_parts_in_half_precision_or_in_a_pickle(tmp_path):
    exported(tmp_path, norm="post")
    foreign(tmp_path)
    folder = tmp_path / "theirs"
    weights = load_file(folder / "model.safetensors")
    expected = import_hugging_face(folder, tmp_path / "whole").bundle.model().state_dict()
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for part, some in parts.items():
        save_file({name: weights[name] for name in some}, folder / part)
    index = {"weight_map": {name: part for part, some in parts.items() for name in some}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    in_parts = import_hugging_face(folder, tmp_path / "parts").bundle.model().state_dict()
    assert all(weight.equal(expected[name]) for name, weight in in_parts.items())
    (folder / "model.safetensors.index.json").unlink()
    # DataParallel saves weights with this prefix
    halved = {f"module.{name}": weight.half() for name, weight in weights.items()}
    torch.save({"state_dict": halved}, folder / "pytorch_model.bin")
    halves = import_hugging_face(folder, tmp_path / "halves").bundle.model().state_dict()
    assert all(weight.dtype == torch.float32 for weight in halves.values())
    assert all((weight - expected[name]).abs().max() < 2e-3 for name, weight in halves.items() if "output" not in name)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("config.json", {"model_type": "t5"}, "expected marian or pegasus, got 't5', which has relative positions"),
        ("config.json", {"model_type": "bart"}, "a layer norm on the embeddings"),
        ("config.json", {"activation_function": "gelu_new"}, "activation_function: expected relu, .*, got 'gelu_new'"),
        ("config.json", {"normalize_embedding": True}, "normalize_embedding: expected False with marian, got True"),
        ("config.json", {"normalize_before": True}, "normalize_before: expected False with marian, got True"),
        ("config.json", {"forced_bos_token_id": 3}, "forced_bos_token_id: expected None"),
        ("config.json", {"decoder_attention_heads": 2}, "decoder_attention_heads: expected the encoder's 4, got 2"),
        ("config.json", {"decoder_ffn_dim": 9}, "decoder_ffn_dim: expected the encoder's 32, got 9"),
        ("config.json", {"encoder_layers": 3}, "encoder_layers: expected 2, as in the weights, got 3"),
        ("config.json", {"eos_token_id": [2, 3]}, r"eos_token_id: expected int, got \[2, 3\]"),
        ("config.json", {"decoder_start_token_id": 999}, "decoder_start_token_id: expected an id of the vocabulary"),
        ("vocab.json", {"cat": 999}, "expected ids below 40"),
        ("vocab.json", {"<unk>": ...}, "expected the token '<unk>' in the vocabulary"),
        ("vocab.json", {"twice": 7}, "an id occurs more than once"),
    ],
)
def test_what_cannot_be_held_is_refused_by_name(tmp_path, name, values, message):
    exported(tmp_path, norm="post")
    foreign(tmp_path)
    changed(tmp_path, name, **values)
    with pytest.raises((ConfigError, CheckpointError, VocabularyError), match=message):
        import_hugging_face(tmp_path / "theirs", tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"positions": "rotary"}, "glassformer: positions: expected interleaved or halves, got 'rotary'; export the"),
        ({"kinds": ["bpe", "wordpiece"]}, "glassformer: kinds: expected words, .* or marian, got 'wordpiece'; export"),
        ({"kinds": [["bpe"], "bpe"]}, r"glassformer: kinds: expected words, .*, got \['bpe'\]"),
        ({"normalisations": ["plain", "nfd"]}, "glassformer: normalisations: expected plain or spaces, got 'nfd'; exp"),
    ],
)
def test_an_exported_run_of_an_unknown_kind_is_refused_by_name(tmp_path, own, message):
    exported(tmp_path)
    stored = json.loads((tmp_path / "theirs" / "config.json").read_text())[EXPORTER]
    changed(tmp_path, "config.json", **{EXPORTER: {**stored, **own}})
    with pytest.raises(CheckpointError, match=message) as caught:
        import_hugging_face(tmp_path / "theirs", tmp_path / "again")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.json", "source.spm", "target.spm"])
def test_a_missing_file_is_named(tmp_path, name):
    exported(tmp_path, norm="post")
    foreign(tmp_path)
    (tmp_path / "theirs" / name).unlink()
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        import_hugging_face(tmp_path / "theirs", tmp_path / "again")


def test_a_file_outside_the_folder_is_not_read(tmp_path):
    exported(tmp_path, norm="post")
    (tmp_path / "theirs/model.safetensors").rename(tmp_path / "secret.safetensors")
    index = {"weight_map": {"a": "../secret.safetensors"}}
    (tmp_path / "theirs/model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="expected names of files in this folder"):
        import_hugging_face(tmp_path / "theirs", tmp_path / "again")


def test_the_command_takes_a_folder_and_no_options_that_it_tells(tmp_path, capsys):
    exported(tmp_path, norm="post")
    folder, run = str(tmp_path / "theirs"), str(tmp_path / "again")
    with pytest.raises(SystemExit):
        main(["import", folder, run, "--heads", "4"])
    assert "--heads: expected no value, because the model decides it" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["import", folder, run, "--languages", "en,de"])
    assert ended.value.code == 0
    assert "imported Marian of Hugging Face's transformers: 2 + 2 layers" in capsys.readouterr().out
    assert Bundle.load(run).configuration.data.target_language == "de"


def damaged(chance: random.Random, folder) -> str:
    """Damage one file of a folder at random; return a description of the damage."""
    path = chance.choice(sorted(path for path in folder.iterdir() if path.name != "README.md"))
    content = bytearray(path.read_bytes())
    kind = chance.choice(["cut", "flip", "insert", "value", "long", "deep"])
    if kind == "value" and path.suffix == ".json":
        values = json.loads(content)
        odd = [None, -1, 2**70, 1.5, "", [], {}, True, "x" * 10_000, 10**6]
        values[chance.choice(sorted(values))] = chance.choice(odd)
        content = bytearray(json.dumps(values).encode())
    elif kind == "long" and path.suffix == ".json":
        content = bytearray(b'{"' + b"x" * 1_000_000 + b'": 1}')
    elif kind == "deep" and path.suffix == ".json":
        content = bytearray(b'{"a":' * 100_000)
    elif kind == "cut":
        content = content[: chance.randrange(len(content))]
    elif kind == "insert":
        place = chance.randrange(len(content))
        content[place:place] = chance.randbytes(chance.randint(1, 9))
    else:
        for _ in range(chance.choice([1, 1, 3, 30])):
            content[chance.randrange(min(len(content), 4000))] = chance.randrange(256)
    path.write_bytes(content)
    return f"{kind} {path.name}"


@pytest.mark.long
def test_damaged_folders_end_in_one_sentence(tmp_path):
    """Each of 600 folders with random damage is imported or refused, with bounded memory and without partial files."""
    exported(tmp_path, norm="post")
    foreign(tmp_path)
    messages = []
    for seed in range(600):
        folder, run = tmp_path / "damaged", tmp_path / "again"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(tmp_path / "theirs", folder)
        what = damaged(random.Random(seed), folder)
        tracemalloc.start()
        try:
            import_hugging_face(folder, run)
        except GlassformerError as error:
            messages.append(str(error))
        except Exception as error:
            raise AssertionError(f"seed {seed}, {what}: {error!r}") from error
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert used < LARGEST, what
        assert sorted(path.name for path in tmp_path.iterdir() if path != run) == ["damaged", "run", "theirs"]
    assert 300 < len(messages) < 600
    assert all("\n" not in message and len(message) < 1000 for message in messages)


def test_a_folder_with_pegasus_own_tokenizer_has_its_ids(tmp_path):
    """The ids are those of transformers' PegasusTokenizer: 105 special tokens, then the pieces from the third on."""
    (folder := tmp_path / "theirs").mkdir()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sees a black dog", "a dog sleeps"]),
        model_prefix=str(folder / "spiece"),
        vocab_size=40,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    processor = SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    rows = processor.get_piece_size() + 103
    (folder / "config.json").write_text(json.dumps({"model_type": "pegasus", "vocab_size": rows}))
    add_small_model(folder, tmp_path)
    run = import_hugging_face(folder, tmp_path / "imported").bundle
    source, target = run.source_tokenizer, run.target_tokenizer
    assert source is target
    assert len(source) == rows + 1  # one more for <bos>
    names = source.tokens(range(len(source)))
    assert names[4:9] == ["<mask_1>", "<mask_2>", "<unk_2>", "<unk_3>", "<unk_4>"]
    assert names[106:110] == ["<unk_102>", *(processor.id_to_piece(id) for id in (3, 4, 5))]
    assert source.tokens(source.encode("the black cat")) == processor.encode("the black cat", out_type=str)
    assert source.decode(source.encode("the black cat")) == "the black cat"
