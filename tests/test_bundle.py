"""A model is loaded from a folder as it was saved, and errors name the damage."""

import errno
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import glassformer as gf
from glassformer.bundle import Bundle, check_weights, load_weights, save_weights
from glassformer.errors import CheckpointError, CheckpointVersionError, VocabularyError
from glassformer.model.alignment import Alignment
from glassformer.recipes.toml import from_dict
from glassformer.system.files import write_safely
from models import new_bundle

SOURCE = ["the black cat sleeps", "the dog sees a cat", "a dog sleeps"]
TARGET = ["le chat noir dort", "le chien voit un chat", "un chien dort"]
SIZES = {"d_model": 11, "heads": 3, "d_k": 5, "d_v": 7, "d_ff": 13, "encoder_layers": 1, "decoder_layers": 1}
LAYOUTS = {
    "joint": ({"joint": True}, {}),
    "joint, untied": ({"joint": True}, {"tie_embeddings": False, "tie_output": False}),
    "separate": ({"joint": False}, {}),
    "separate, untied": ({"joint": False}, {"tie_output": False}),
    "separate kinds": ({"joint": False, "kind": "characters", "target_kind": "unigram"}, {"norm": "pre"}),
    "learned positions": ({"joint": True}, {"positions": "learned", "max_length": 17}),
}


@pytest.fixture
def make_bundle(tmp_path, seed):
    """Return a function that makes a bundle and its model, with random values for all weights."""

    def make(tokenizer=None, folder=tmp_path / "run", **model):
        values = {"kind": "words", "joint": True, "vocab_size": 31, **(tokenizer or {})}
        configuration = from_dict(
            {"data": {"source": "a.tsv", "max_length": 17}, "tokenizer": values, "model": {**SIZES, **model}}
        )
        bundle = new_bundle(folder, configuration, SOURCE, TARGET)
        network = gf.Transformer(bundle.model_config).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.normal_()
        return bundle, network

    return make


@pytest.fixture
def run(make_bundle):
    """Return the folder of a saved bundle."""
    bundle, model = make_bundle()
    bundle.save(model)
    return bundle.folder


# Round trip


@pytest.mark.parametrize(("tokenizer", "settings"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_saved_bundle_is_loaded_back_equal(make_bundle, tokenizer, settings):
    bundle, model = make_bundle(tokenizer, **settings)
    bundle.save(model)
    loaded = Bundle.load(bundle.folder)
    assert loaded.model_config == bundle.model_config
    for ours, theirs in (
        (bundle.source_tokenizer, loaded.source_tokenizer),
        (bundle.target_tokenizer, loaded.target_tokenizer),
    ):
        assert theirs.tokens(range(len(theirs))) == ours.tokens(range(len(ours)))
    assert (loaded.source_tokenizer is loaded.target_tokenizer) == bundle.configuration.tokenizer.joint
    source = torch.tensor([loaded.source_tokenizer.encode(SOURCE[0])])
    target = torch.tensor([[1, *loaded.target_tokenizer.encode(TARGET[1])]])
    assert torch.equal(loaded.model()(source, target), model(source, target))


@pytest.mark.parametrize(("tokenizer", "settings"), LAYOUTS.values(), ids=LAYOUTS)
def test_saving_a_loaded_bundle_changes_no_file(make_bundle, tmp_path, tokenizer, settings):
    bundle, model = make_bundle(tokenizer, **settings)
    bundle.save(model)
    first = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    loaded = Bundle.load(bundle.folder)
    loaded.save(loaded.model())
    assert {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == first


def test_a_loaded_model_is_ready_to_translate(run):
    model = Bundle.load(run).model()
    assert not model.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_folder_may_be_moved(run, tmp_path):
    run.rename(tmp_path / "elsewhere")
    assert Bundle.load(tmp_path / "elsewhere").folder == tmp_path / "elsewhere"
    Bundle.load(str(tmp_path / "elsewhere")).model()


def layer(stack, *attentions):
    """Return the weights of a stack's only layer."""
    rows = 51  # heads · (d_k + d_k + d_v)
    shapes = {
        "feed_forward.expand.weight": (13, 11),
        "feed_forward.expand.bias": (13,),
        "feed_forward.contract.weight": (11, 13),
        "feed_forward.contract.bias": (11,),
    }
    for name in attentions:
        shapes[f"{name}.input_projection.weight"] = (rows, 11)
        shapes[f"{name}.input_projection.bias"] = (rows,)
        shapes[f"{name}.output_projection.weight"] = (11, 21)
        shapes[f"{name}.output_projection.bias"] = (11,)
    for name in (*attentions, "feed_forward"):
        shapes |= {f"{name}_residual.norm.{part}": (11,) for part in ("weight", "bias")}
    return {f"{stack}.layers.0.{name}": shape for name, shape in shapes.items()}


def test_the_names_of_the_weights_in_a_file_are_a_contract(make_bundle):
    bundle, model = make_bundle({"joint": False}, tie_output=False)
    bundle.save(model)
    source, target = bundle.model_config.source_vocab_size, bundle.model_config.target_vocab_size
    assert {name: tuple(weight.shape) for name, weight in load_file(bundle.folder / "model.safetensors").items()} == {
        "source.tokens.weight": (source, 11),
        "target.tokens.weight": (target, 11),
        **layer("encoder", "self_attention"),
        **layer("decoder", "self_attention", "cross_attention"),
        "output.weight": (target, 11),
    }


def test_shared_matrices_are_written_once(make_bundle):
    bundle, model = make_bundle()
    bundle.save(model)
    names = set(load_file(bundle.folder / "model.safetensors"))
    assert "source.tokens.weight" in names
    assert not {"target.tokens.weight", "output.weight"} & names
    loaded = Bundle.load(bundle.folder).model()
    assert loaded.source.tokens.weight is loaded.target.tokens.weight is loaded.output.weight


def test_weights_in_double_precision_are_loaded_in_the_models_precision(run):
    path = run / "model.safetensors"
    weights = load_file(path)
    save_file({name: weight.double() for name, weight in weights.items()}, path)
    model = Bundle.load(run).model()
    assert all(torch.equal(parameter, weights[name]) for name, parameter in model.named_parameters())


# Damage

DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "without its end": lambda path: path.write_bytes(path.read_bytes()[:-2]),
    "corrupted": lambda path: path.write_bytes(b"\xff" * 64 + path.read_bytes()[64:]),
    "empty": lambda path: path.write_bytes(b""),
    "something else": lambda path: path.write_text("<html>not found</html>"),
    "missing": lambda path: path.unlink(),
    "a folder": lambda path: [path.unlink(), path.mkdir()],
    "a pipe": lambda path: [path.unlink(), os.mkfifo(path)],
    "a device": lambda path: [path.unlink(), path.symlink_to("/dev/zero")],
    "a loop": lambda path: [path.unlink(), path.symlink_to(path.name)],
}
DEEP = {
    "config.toml": f"x = {'[' * 100_000}",
    "tokenizer/tokenizer.json": f'{{"joint": {"[" * 100_000}',
    "tokenizer/joint.json": "[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_weights_are_one_line_with_the_file_and_advice(run, damage):
    damage(run / "model.safetensors")
    with pytest.raises(CheckpointError) as caught:
        Bundle.load(run).model()
    message = str(caught.value)
    assert str(run / "model.safetensors") in message
    assert "copy" in message
    assert "\n" not in message


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", ["config.toml", "tokenizer/tokenizer.json", "tokenizer/joint.json"])
def test_other_damaged_files_are_named(run, name, damage):
    damage(run / name)
    with pytest.raises(CheckpointError, match=Path(name).name):
        Bundle.load(run)


@pytest.mark.parametrize(
    ("setting", "known"),
    [
        ("model.activation", "relu, gelu, silu"),
        ("model.norm", "post, pre"),
        ("model.positions", "interleaved, halves, learned, none"),
        ("tokenizer.kind", "words, characters, bpe, unigram, marian, auto"),
        ("training.schedule", "paper, cosine, constant"),
        ("training.optimiser", "auto, adam, adamw, muon"),
        ("training.precision", "auto, fp32, bf16, fp16"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_a_configuration_with_an_unknown_kind_is_refused_by_name(run, setting, known):
    name = setting.partition(".")[2]
    text = (run / "config.toml").read_text()
    changed = re.sub(rf'^{name} = ".*"$', f'{name} = "newer"', text, flags=re.MULTILINE)
    assert changed != text
    (run / "config.toml").write_text(changed)
    message = rf"config\.toml.*{setting}: expected one of {known}.*, got 'newer'"
    with pytest.raises(CheckpointError, match=message) as caught:
        Bundle.load(run)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_of_an_unknown_kind_is_refused_by_name(run):
    path = run / "tokenizer" / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "source": "wordpieces"}))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: expected words, .* or marian, got 'wordpieces'"):
        Bundle.load(run)


@pytest.mark.parametrize("name", DEEP)
def test_a_file_that_is_nested_too_deeply_is_named(run, name):
    (run / name).write_text(DEEP[name])
    with pytest.raises(CheckpointError, match=f"{Path(name).name}.*nested too deeply"):
        Bundle.load(run)


@pytest.mark.parametrize("name", ["config.toml", "tokenizer/joint.json"])
def test_a_file_that_is_too_large_is_not_read(run, name):
    os.truncate(run / name, 1 << 40)
    with pytest.raises(CheckpointError, match=r"expected at most \d+ bytes, got 1099511627776"):
        Bundle.load(run)


@pytest.mark.parametrize("tokens", [["a\nb"], ["\ud800"], ["a b"]])
def test_a_vocabulary_with_tokens_that_break_lines_is_refused(run, tokens):
    values = json.loads((run / "tokenizer" / "joint.json").read_text())
    values["tokens"][-1:] = tokens
    (run / "tokenizer" / "joint.json").write_text(json.dumps(values))
    with pytest.raises(VocabularyError, match=r"joint\.json: a token holds"):
        Bundle.load(run)


@pytest.mark.parametrize("kind", [torch.int32, torch.uint8, torch.float8_e4m3fn])
def test_weights_that_are_not_numbers_of_a_model_are_refused(run, kind):
    path = run / "model.safetensors"
    save_file({name: weight.to(kind) for name, weight in load_file(path).items()}, path)
    with pytest.raises(CheckpointError, match=r"expected numbers of type F64, F32, F16, BF16 in .*, got"):
        Bundle.load(run).model()


def forget_facts(run):
    """Write a run's weights as earlier versions did, and as other programs do: without the model's settings."""
    save_file(load_file(run / "model.safetensors"), run / "model.safetensors")


@pytest.mark.parametrize(
    ("setting", "trained"),
    [
        ('norm = "pre"', "expected 'post'"),
        ('activation = "gelu"', "expected 'relu'"),
        ('positions = "halves"', "expected 'interleaved'"),
        ("heads = 1\nd_k = 15\nd_v = 21", "expected 3"),
        ("d_ff = 17", "expected 13"),
        ("encoder_layers = 2", "expected 1"),
        ("tie_output = false", "expected True"),
    ],
)
def test_a_configuration_that_no_longer_fits_the_weights_is_named_by_its_field(run, setting, trained):
    """The first four change no weight's name or shape."""
    name = setting.partition(" ")[0]
    text = config_of(run)
    for line in setting.splitlines():
        text = re.sub(rf"(?m)^{line.partition(' ')[0]} = .*", line, text)
    (run / "config.toml").write_text(text)
    said = rf"config\.toml: model\.{name}: {trained}, with which the weights in model\.safetensors were trained, got"
    with pytest.raises(CheckpointError, match=said):
        Bundle.load(run).model()
    with pytest.raises(CheckpointError, match=said):
        check_weights(run / "model.safetensors", Bundle.load(run).model_config)


def test_settings_of_the_training_may_be_changed(run):
    text = re.sub(r"(?m)^((attention_|activation_)?dropout) = .*", r"\1 = 0.25", config_of(run))
    (run / "config.toml").write_text(text.replace("max_length = 1024", "max_length = 7"))
    assert Bundle.load(run).model_config.activation_dropout == 0.25
    Bundle.load(run).model()


def config_of(run):
    return (run / "config.toml").read_text()


@pytest.mark.parametrize("setting", ["decoder_layers = 1000", "d_v = 65536", "d_ff = 1048576"])
def test_a_gigantic_model_is_refused_before_it_is_built(run, setting):
    name = setting.partition(" ")[0]
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(re.sub(rf"(?m)^{name} = .*", setting, text))
    forget_facts(run)
    with pytest.raises(CheckpointError, match="belong to a model with a different configuration"):
        Bundle.load(run).model()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"encoder_layers": 2},
            r"has an unknown weight 'encoder\.layers\.1\..*: the weights belong to a model with a different config",
        ),
        ({"tie_output": False}, "has an unknown weight 'output.weight'"),
        ({"d_ff": 17}, r"expected shape \(13, 11\) for .*expand\.weight, got \(17, 11\)"),
        ({"d_v": 5}, "expected shape .*, got"),
    ],
)
def test_weights_of_a_different_configuration_are_refused(make_bundle, run, settings, message):
    _, other = make_bundle(**settings)
    save_weights(other, run / "model.safetensors")
    forget_facts(run)
    with pytest.raises(CheckpointError, match=message):
        Bundle.load(run).model()


def test_missing_weights_are_named(make_bundle, run):
    bundle, model = make_bundle(norm="pre", folder=run.with_name("pre"))
    bundle.save(model)
    shutil.copy(run / "model.safetensors", bundle.folder)
    forget_facts(bundle.folder)
    with pytest.raises(CheckpointError, match=r"model\.safetensors has no weight 'encoder\.norm\.weight'"):
        Bundle.load(bundle.folder).model()


def test_refused_weights_leave_the_model_unchanged(make_bundle, tmp_path):
    _, model = make_bundle()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    _, other = make_bundle(d_ff=17)
    save_weights(other, tmp_path / "other.safetensors")
    with pytest.raises(CheckpointError, match="expand"):
        load_weights(model, tmp_path / "other.safetensors")
    assert all(torch.equal(before[name], weight) for name, weight in model.named_parameters())


def test_weights_that_contradict_the_tokenizer_are_refused(run):
    [path] = (run / "tokenizer").glob("joint.*")
    path.write_text(json.dumps({**(content := json.loads(path.read_text())), "tokens": content["tokens"][:-1]}))
    with pytest.raises(CheckpointError, match=r"expected shape \(17, \d+\) for source\.tokens\.weight, got \(18"):
        Bundle.load(run).model()


def test_the_origin_of_a_run_is_stored_with_it_and_refused_if_it_is_damaged(run):
    assert Bundle.load(run).origin == ""
    replace(Bundle.load(run), origin="model.pt").save()
    assert Bundle.load(run).origin == "model.pt"
    (run / "origin.json").write_text('{"format_version": 1, "imported_from": 3}')
    with pytest.raises(CheckpointError, match=r"origin\.json: expected a name in imported_from, got 3; copy the file"):
        Bundle.load(run)


def test_a_run_of_a_newer_version_is_refused(run):
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("format_version = 1", "format_version = 2"))
    with pytest.raises(CheckpointVersionError, match="expected at most 1, got 2; upgrade"):
        Bundle.load(run)


def test_a_missing_folder_is_an_error_that_names_the_nearest(run):
    with pytest.raises(CheckpointError, match=r"rum' does not exist \(did you mean 'run'\?\); give the folder of"):
        Bundle.load(run.with_name("rum"))
    with pytest.raises(CheckpointError, match="' does not exist; give the folder of a run"):
        Bundle.load("no/such/place")


@pytest.mark.parametrize("name", ["config.toml", "tokenizer"])
def test_a_folder_that_is_not_a_run_is_an_error_that_says_what_is_missing(run, name):
    (run / name).rename(run / "other")
    with pytest.raises(CheckpointError, match=rf"is not a run: {name} is missing; `glassformer train` makes a run"):
        Bundle.load(run)


# Writing


def test_a_write_leaves_only_the_written_file(tmp_path):
    write_safely(tmp_path / "new" / "a.txt", lambda path: path.write_text("one"))
    write_safely(tmp_path / "new" / "a.txt", lambda path: path.write_text("two"))
    assert [(path.name, path.read_text()) for path in (tmp_path / "new").iterdir()] == [("a.txt", "two")]


@pytest.mark.parametrize("call", ["os.fsync", "os.open", "pathlib.Path.replace", "pathlib.Path.mkdir"])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, call):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(call, full)
    with pytest.raises(CheckpointError, match=r"cannot write .*a\.txt: No space left on device; the previous"):
        write_safely(path, lambda temporary: temporary.write_text("new"))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "old")]


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def half(temporary):
        temporary.write_text("ne")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(CheckpointError, match="No space left"):
        write_safely(path, half)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "old")]


def test_weights_may_be_read_by_everybody_who_may_read_the_configuration(run):
    assert (run / "model.safetensors").stat().st_mode == (run / "config.toml").stat().st_mode


@pytest.mark.parametrize("limit", [0, 50, 2000])
def test_a_failed_write_of_weights_leaves_the_old_weights(run, make_bundle, limit):
    files = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    _, model = make_bundle()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(CheckpointError, match=r"cannot write .*model\.safetensors.*File too large"):
            save_weights(model, run / "model.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path: path.read_bytes() for path in run.iterdir() if path.is_file()} == files


@pytest.mark.parametrize("part", [".", "run", "run/tokenizer", "run/config.toml/x"])
def test_a_folder_that_cannot_be_written_is_one_error(make_bundle, tmp_path, part):
    bundle, model = make_bundle(folder=tmp_path / "blocked" / "run")
    blocked = (tmp_path / "blocked" / part).resolve()
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("a file where a folder should be, or the other way round")
    with pytest.raises(CheckpointError, match="cannot write"):
        bundle.save(model)


@pytest.mark.slow
def test_a_file_too_large_for_the_memory_is_one_clear_error(tmp_path):
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(1 << 40)
    code = """
import resource, sys
from pathlib import Path
from glassformer.bundle import read_weights
from glassformer.errors import CheckpointError
import safetensors.torch
resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))
try:
    read_weights(Path(sys.argv[1]))
except CheckpointError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "model.safetensors")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "is damaged or cut short" in found.stdout


# The heads that align words


ALIGNED = Alignment(layer=0, heads=(0, 2), shift=1, agreement=0.9, pairs=500)
ALIGNED = replace(ALIGNED, unshifted=Alignment(layer=0, heads=(1,), agreement=0.8, pairs=500))


def test_the_alignment_is_stored_with_the_run_and_carried_along(run, tmp_path):
    assert Bundle.load(run).alignment is None
    replace(Bundle.load(run), alignment=ALIGNED).save_alignment()
    copied = replace(Bundle.load(run), folder=tmp_path / "copy")
    copied.save()
    assert Bundle.load(copied.folder).alignment == ALIGNED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer": 1}, "layer: expected a number from 0 to 0, got 1"),
        ({"heads": [0, 3]}, "heads: expected different numbers from 0 to 2 in ascending order, got"),
        ({"heads": []}, "heads: expected different numbers"),
        ({"heads": [1, 1]}, "heads: expected different numbers"),
        ({"heads": "0"}, "expected layer, heads, shift (0 or 1), agreement and pairs, got"),
        ({"shift": 2}, "expected layer, heads, shift (0 or 1), agreement and pairs, got"),
        ({"unshifted": {"layer": 0}}, "expected layer, heads, shift (0 or 1), agreement and pairs, got"),
    ],
)
def test_a_damaged_alignment_is_refused_with_its_fault(run, change, message):
    replace(Bundle.load(run), alignment=ALIGNED).save_alignment()
    path = run / "alignment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=re.escape(f"{path}: {message}")):
        Bundle.load(run)
