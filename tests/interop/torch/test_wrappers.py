"""State dicts as they are saved: wrapped, nested, averaged, in half precision, with one copy of a shared matrix."""

import copy
import json
import re
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file, save_model
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from glassformer.bundle import Bundle
from glassformer.cli import main
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.importing import ForeignTokens, import_run
from glassformer.interop.torch.state_dicts import import_state_dict, recognised
from glassformer.interop.torch.weight_files import read_state_dicts
from glassformer.model.transformer import Transformer
from interop.tutorials import PAD, Annotated, TorchTutorial, Trevett

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")

KINDS = [TorchTutorial, Trevett, Annotated]
IDS = {"heads": 3, "pad_id": PAD, "bos_id": 2, "eos_id": 3}
SPECIALS = ["<unk>", "<pad>", "<bos>", "<eos>"]
TOKENS = ForeignTokens(
    source=[*SPECIALS, *(f"s{number}" for number in range(13))],
    target=[*SPECIALS, *(f"t{number}" for number in range(19))],
)


def made(kind: type = TorchTutorial, seed: int = 1, target: int = 23) -> Any:
    """Return a tutorial's model in which every parameter is random."""
    torch.manual_seed(seed)
    model = kind(17, target).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def imported(path: Path, content: Any, prefix: str | None = None, **settings: Any) -> Transformer:
    """Return the model in a file with this content."""
    torch.save(content, path)
    family, state = recognised(read_state_dicts(path), prefix)
    return import_state_dict(state, family=family, **IDS, **settings)


def assert_equal(one: Transformer, other: Transformer) -> None:
    """Check that two models are the same, bit for bit."""
    assert one.config == other.config
    first, second = one.state_dict(), other.state_dict()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@cache
def plain(kind: type = TorchTutorial) -> Any:
    """Return a tutorial's model, which no test changes."""
    return made(kind)


@cache
def expected_of(kind: type = TorchTutorial) -> Transformer:
    """Return the model that the bare state dict of `plain(kind)` becomes."""
    return import_state_dict(plain(kind).state_dict(), **IDS)


PREFIXES = ["module", "_orig_mod", "model", "net", "ema_model", "averaged_model", "online.0", "transformer", "encoder"]
PLACES = ["model", "state_dict", "model_state_dict", "shadow", "ema", "params"]
OTHERS: dict[str, Any] = {
    "epoch": 3,
    "hyper_parameters": {"lr": 0.1, "names": ["a"]},
    "optimizer": {"state": {0: {"exp_avg": torch.ones(3, 4), "step": torch.tensor(2.0)}}},
    "n_averaged": torch.tensor(7),
    "loss": torch.tensor(0.3),
}
"""Other entries next to a state dict in a file."""


@pytest.mark.slow
@given(
    kind=st.sampled_from(KINDS),
    prefixes=st.lists(st.sampled_from(PREFIXES), max_size=4),
    places=st.lists(st.sampled_from(PLACES), max_size=3),
    inside=st.sampled_from(["", "module.", "_orig_mod.", "module._orig_mod."]),
    others=st.sets(st.sampled_from(sorted(OTHERS))),
    beside=st.booleans(),
)
def test_any_nesting_of_prefixes_gives_the_same_model(tmp_path_factory, kind, prefixes, places, inside, others, beside):
    start = "".join(f"{prefix}." for prefix in prefixes)
    content: Any = {
        start + name.replace(".layers.", f".{inside}layers.", 1): tensor
        for name, tensor in plain(kind).state_dict().items()
    }
    if beside and start:
        content |= {"criterion.weight": torch.ones(23), "n_averaged": torch.tensor(3)}
    for place in places:
        content = {place: content, **{name: OTHERS[name] for name in others if name != place}}
    path = tmp_path_factory.getbasetemp() / "nested.pt"
    assert_equal(imported(path, content), expected_of(kind))


def training_state() -> dict[str, Any]:
    """Return a checkpoint as training programs save it, with options of argparse and values of NumPy."""
    options = Namespace(arch="transformer", lr=[np.float32(0.1)], encoder=Namespace(layers=np.int64(2)))
    return {
        "args": options,
        "model": plain().state_dict(),
        "extra_state": {"best": np.float64(3.5), "val": {np.int64(7): np.bool_(True)}, "name": np.str_("valid")},
        "rng": np.random.RandomState(5).get_state(),
        "history": np.array([1.5, 2.5]),
    }


@pytest.mark.parametrize("is_zip", [True, False])
def test_options_and_values_of_numpy_beside_a_model_are_left_out(tmp_path, is_zip):
    torch.save(training_state(), tmp_path / "m.pt", _use_new_zipfile_serialization=is_zip)
    found = read_state_dicts(tmp_path / "m.pt")
    assert [*found] == ["model"]
    family, state = recognised(found)
    assert_equal(import_state_dict(state, family=family, **IDS), expected_of())


@pytest.mark.parametrize("core", [b"core", b"_core"])
def test_values_of_any_version_of_numpy_are_left_out(tmp_path, core):
    torch.save(training_state(), tmp_path / "m.pt", _use_new_zipfile_serialization=False)
    content, count = re.subn(rb"(?<=cnumpy\.)_?core(?=\.)", core, (tmp_path / "m.pt").read_bytes())
    assert count == 2
    (tmp_path / "m.pt").write_bytes(content)
    assert [*read_state_dicts(tmp_path / "m.pt")] == ["model"]


@pytest.mark.parametrize("place", ["args", "best", "history"])
def test_code_inside_options_and_arrays_is_refused_and_not_run(tmp_path, place):
    class Harmful:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "touched",)

    around = {
        "args": Namespace(hook=Harmful()),
        "best": {np.float64(1): Harmful()},
        "history": np.array([Harmful()], dtype=object),
    }
    torch.save({"model": plain().state_dict(), "other": around[place]}, tmp_path / "m.pt")
    with pytest.raises(CheckpointError, match="which could run code"):
        read_state_dicts(tmp_path / "m.pt")
    assert not (tmp_path / "touched").exists()


compiled = partial(torch.compile, backend="eager")


def with_a_compiled_part(model: Any) -> dict[str, Tensor]:
    part = "transformer" if hasattr(model, "transformer") else "encoder"
    setattr(model, part, compiled(getattr(model, part)))
    return model.state_dict()


def with_a_parallel_part(model: Any) -> dict[str, Tensor]:
    part = "transformer" if hasattr(model, "transformer") else "decoder"
    setattr(model, part, nn.DataParallel(getattr(model, part)))
    return model.state_dict()


def lightning(model: Any) -> dict[str, Any]:
    state = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    metric = {"train_loss.mean": torch.ones(1), "criterion.weight": torch.ones(23)}
    return {
        "epoch": 1,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": state | metric,
        "loops": {"fit_loop": {"state_dict": {}}},
        "optimizer_states": [{"state": {0: {"exp_avg": torch.ones(2)}}}],
        "hparams_name": "kwargs",
        "hyper_parameters": {"d_model": 24, "state_dict": "x"},
    }


def encoder_and_decoder(model: Any) -> dict[str, Any]:
    """Return one state dict for each part, as many projects save them."""
    parts = {name: part.state_dict() for name, part in model.named_children()}
    return {"epoch": 2, **parts}


SAVED: dict[str, Callable[[Any], Any]] = {
    "DataParallel": lambda model: nn.DataParallel(model).state_dict(),
    "compiled": lambda model: compiled(model).state_dict(),
    "compiled in DataParallel": lambda model: nn.DataParallel(compiled(model)).state_dict(),
    "averaged": lambda model: AveragedModel(model).state_dict(),
    "averaged, compiled": lambda model: {"swa": AveragedModel(compiled(model)).state_dict(), "epoch": 1},
    "a compiled part": with_a_compiled_part,
    "a parallel part": with_a_parallel_part,
    "Lightning": lightning,
    "parts": encoder_and_decoder,
    "moving average": lambda model: {"decay": 0.999, "num_updates": 3, "shadow": dict(model.state_dict())},
    "twice the same": lambda model: {"model": model.state_dict(), "ema": {"module": model.state_dict()}},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", SAVED)
def test_what_programs_save_is_the_same_model(tmp_path, how, kind):
    content = SAVED[how](copy.deepcopy(plain(kind)))
    assert_equal(imported(tmp_path / "model.pt", content), expected_of(kind))


def named(start: str) -> dict[str, Any]:
    """Return the state dict of a tutorial's model with the prefix `start` before each name."""
    return {f"{start}{name}": tensor for name, tensor in plain().state_dict().items()}


SCRIPTS: dict[str, Callable[[], Any]] = {
    "accelerate, compiled, DDP": lambda: named("_orig_mod.module."),
    "DDP, compiled": lambda: named("module._orig_mod."),
    "FSDP and activation checkpoints": lambda: named("_fsdp_wrapped_module._checkpoint_wrapped_module."),
    "timm": lambda: {
        "epoch": 9,
        "arch": "t",
        "state_dict": named(""),
        "state_dict_ema": named("module."),
        "version": 2,
    },
    "detectron's trainer": lambda: {"model": named("module."), "optimizer": {}, "scheduler": {}, "iteration": 100},
    "fairseq's nesting": lambda: {
        "args": None,
        "model": named(""),
        "extra_state": {"epoch": 2},
        "last_optimizer_state": {},
    },
    "DeepSpeed": lambda: {"module": named("module."), "buffer_names": [], "dp_world_size": 2, "mp_world_size": 1},
    "Lightning with a named net": lambda: {"state_dict": named("net."), "callbacks": {}, "global_step": 7},
    "Lightning, compiled": lambda: {"state_dict": named("model._orig_mod."), "lr_schedulers": []},
    "ema-pytorch": lambda: {"ema": named("ema_model."), "step": torch.tensor(4)},
    "ema-pytorch, whole": lambda: {
        **named("online_model."),
        **named("ema_model."),
        "initted": torch.tensor(True),
        "step": torch.tensor(4),
    },
    "Ignite": lambda: {"trainer": {"iteration": 1}, "model": OrderedDict(named("")), "lr": 0.1},
    "deep": lambda: {"checkpoint": {"model_state_dict": {**named("module.model.")}}, "rng": torch.get_rng_state()},
    "parameters": lambda: {"net": {name: torch.nn.Parameter(tensor) for name, tensor in named("").items()}},
    "double": lambda: {name: tensor.double() for name, tensor in named("module.").items()},
}
"""The contents of files that public training scripts and trainers save."""


@pytest.mark.parametrize("how", SCRIPTS)
def test_what_public_scripts_save_is_the_same_model(tmp_path, how):
    assert_equal(imported(tmp_path / "model.pt", SCRIPTS[how]()), expected_of())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        pytest.param(kind, dtype, marks=[] if number == place else [pytest.mark.long])
        for number, kind in enumerate(KINDS)
        for place, dtype in enumerate((torch.float16, torch.bfloat16, torch.float64))
    ],
)
def test_other_precisions_become_float32_runs(tmp_path, dtype, kind):
    model = copy.deepcopy(plain(kind)).to(dtype)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    run = import_run(tmp_path / "model.pt", tmp_path / "run", TOKENS, heads=3).bundle
    expected = import_state_dict({name: tensor.float() for name, tensor in model.state_dict().items()}, **IDS)
    assert run.model_config.positions == expected_of(kind).config.positions
    found = run.model()
    weights = [one.decoder.layers[0].feed_forward.expand.weight for one in (found, expected)]
    assert weights[0].dtype == torch.float32
    torch.testing.assert_close(*weights, rtol=0, atol=0)


def test_mixed_precisions_lose_nothing(tmp_path):
    state = {name: tensor if "norm" in name else tensor.bfloat16() for name, tensor in plain().state_dict().items()}
    model = imported(tmp_path / "model.pt", state)
    assert model.source.tokens.weight.dtype == torch.float32
    assert torch.equal(model.encoder.norm.weight, state["transformer.encoder.norm.weight"])


def two(kind: type = TorchTutorial) -> dict[str, Any]:
    """Return the contents of a Lightning checkpoint with a moving average."""
    trained, averaged = made(kind, 1), made(kind, 2)
    state = {f"model.{name}": tensor for name, tensor in trained.state_dict().items()}
    state |= {f"ema_model.module.{name}": tensor for name, tensor in averaged.state_dict().items()}
    return {"state_dict": state | {"ema_model.n_averaged": torch.tensor(3)}}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_several_models_are_named_and_one_is_chosen(tmp_path, kind):
    path, content = tmp_path / "model.pt", two(kind)
    message = (
        r"expected one model, got 2 different models, whose weight names begin with 'state_dict\.ema_model\.module\.', "
        r"'state_dict\.model\.'; choose one with --prefix, such as --prefix state_dict\.ema_model\.module\."
    )
    with pytest.raises(CheckpointError, match=message):
        imported(path, content)
    for prefix, seed in (("state_dict.model.", 1), ("state_dict.ema_model.module.", 2), ("state_dict.ema", 2)):
        expected = import_state_dict(made(kind, seed).state_dict(), **IDS)
        assert_equal(imported(path, content, prefix), expected)
    with pytest.raises(
        CheckpointError, match=r"--prefix: expected one of 'state_dict\.ema_model\.module\.', .* got 'swa'"
    ):
        imported(path, content, "swa")


def test_a_model_without_a_prefix_can_be_chosen_beside_another(tmp_path):
    content = dict(made(seed=1).state_dict()) | {
        f"module.{name}": one for name, one in made(seed=2).state_dict().items()
    }
    for prefix, seed in (("", 1), ("module.", 2)):
        expected = import_state_dict(made(seed=seed).state_dict(), **IDS)
        assert_equal(imported(tmp_path / "model.pt", content, prefix), expected)


@pytest.mark.slow
def test_the_command_chooses_by_prefix(tmp_path, capsys):
    torch.save(two(), tmp_path / "model.pt")
    command = ["import", str(tmp_path / "model.pt"), str(tmp_path / "run"), "--heads", "3"]
    for side, tokens in (("source", TOKENS.source), ("target", TOKENS.target)):
        (tmp_path / f"{side}.txt").write_text("\n".join(tokens) + "\n")
        command += [f"--{side}-vocabulary", str(tmp_path / f"{side}.txt")]
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code == 1
    assert "choose one with --prefix" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main([*command, "--prefix", "state_dict.ema_model.module."])
    assert not end.value.code
    weight = Bundle.load(tmp_path / "run").model().encoder.norm.weight
    assert torch.equal(weight, made(seed=2).transformer.encoder.norm.weight)


def tied(*, embeddings: bool = False, output: bool = False) -> Any:
    """Return PyTorch's tutorial with shared matrices; both vocabularies have one size if the embeddings are shared."""
    model = made(target=17 if embeddings else 23)
    if embeddings:
        model.tgt_tok_emb.embedding.weight = model.src_tok_emb.embedding.weight
    if output:
        model.generator.weight = model.tgt_tok_emb.embedding.weight
    return model


@pytest.mark.parametrize("ties", [{"output": True}, {"embeddings": True, "output": True}], ids=str)
@pytest.mark.parametrize("kept", ["first", "last"])
def test_one_copy_of_a_shared_matrix_is_enough(tmp_path, ties, kept):
    model = tied(**ties)
    expected = import_state_dict(model.state_dict(), **IDS)
    assert (expected.config.tie_output, expected.config.tie_embeddings) == (True, len(ties) == 2)
    parameters = dict(model.named_parameters())  # lists each parameter once
    if kept == "last":
        one = parameters.pop("generator.weight")
        parameters["tgt_tok_emb.embedding.weight"] = one
    state = {name: tensor.detach() for name, tensor in parameters.items()}
    state["positional_encoding.pos_embedding"] = model.positional_encoding.pos_embedding
    assert len(state) < len(model.state_dict())
    assert_equal(imported(tmp_path / "model.pt", {"shadow": state}), expected)


@pytest.mark.parametrize(
    "ties", [{}, {"output": True}, {"embeddings": True}, {"embeddings": True, "output": True}], ids=str
)
def test_copies_that_safetensors_notes_are_there(tmp_path, ties):
    model = tied(**ties)
    save_model(model, str(tmp_path / "model.safetensors"))
    family, state = recognised(read_state_dicts(tmp_path / "model.safetensors"))
    assert_equal(import_state_dict(state, family=family, **IDS), import_state_dict(model.state_dict(), **IDS))


def test_a_target_embedding_that_may_be_either_copy_is_asked_about(tmp_path):
    model = tied(embeddings=True)
    state = dict(model.state_dict())
    del state["tgt_tok_emb.embedding.weight"]
    path = tmp_path / "model.pt"
    with pytest.raises(
        ConfigError, match=r"lacks 'tgt_tok_emb.*choose one by --set model\.tie_embeddings=true or --set"
    ):
        imported(path, state)
    expected = import_state_dict(model.state_dict(), **IDS)
    assert_equal(imported(path, state, tie_embeddings=True), expected)
    assert imported(path, state, tie_output=True).config.tie_output


def test_a_matrix_under_an_unknown_name_is_not_taken_for_a_missing_copy(tmp_path):
    state = {name.replace("generator.weight", "head.weight"): one for name, one in made().state_dict().items()}
    with pytest.raises(CheckpointError, match=r"lacks 'generator\.weight'"):
        imported(tmp_path / "model.pt", state)


def in_parts(folder: Path, suffix: str) -> list[Path]:
    """Write a model in three parts, as transformers and accelerate name them."""
    state = plain().state_dict()
    stem = {".bin": "pytorch_model", ".safetensors": "model"}[suffix]
    paths = [folder / f"{stem}-0000{part}-of-00003{suffix}" for part in (1, 2, 3)]
    for part, path in enumerate(paths):
        some = {name: state[name].clone() for name in sorted(state)[part::3]}
        save_file(some, path) if suffix == ".safetensors" else torch.save(some, path)
    index = {name: paths[number % 3].name for number, name in enumerate(sorted(state))}
    (folder / f"{stem}{suffix}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return [*paths, folder / f"{stem}{suffix}.index.json"]


@pytest.mark.parametrize("suffix", [".bin", ".safetensors"])
def test_a_model_in_parts_is_read_by_its_index_or_any_part(tmp_path, suffix):
    paths = in_parts(tmp_path, suffix)
    for path in paths:
        family, state = recognised(read_state_dicts(path))
        assert_equal(import_state_dict(state, family=family, **IDS), expected_of())
    paths[1].unlink()
    for path, message in (
        (paths[0], r"-00002-of-00003\.\w+ does not exist: the model is in 3 parts; copy all of them"),
        (paths[3], r"-00002-of-00003\.\w+ does not exist"),
    ):
        with pytest.raises(CheckpointError, match=message):
            read_state_dicts(path)


@pytest.mark.parametrize("weight_map", [{"a": "../x.bin"}, {"a": 3}, [], None])
def test_an_index_names_files_of_its_folder_only(tmp_path, weight_map):
    (tmp_path / "model.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(CheckpointError, match=r"expected (names of files in this folder|the file's name for)"):
        read_state_dicts(tmp_path / "model.index.json")


def test_a_dictionary_that_holds_itself_has_an_end(tmp_path):
    content: dict[str, Any] = {"state_dict": plain(Trevett).state_dict()}
    content["self"] = content
    assert_equal(imported(tmp_path / "model.pt", content), expected_of(Trevett))


def test_lists_of_weights_without_names_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"expected a state dict, got \['decay', 'shadow_params'\]"):
        imported(tmp_path / "ema.pt", {"decay": 0.9, "shadow_params": [torch.ones(2)]})


def test_a_weight_that_occurs_twice_inside_a_model_is_named(tmp_path):
    state = dict(plain().state_dict())
    state["transformer.module.encoder.norm.weight"] = torch.ones(24)
    with pytest.raises(CheckpointError, match=r"expected one weight 'transformer\.encoder\.norm\.weight', got several"):
        imported(tmp_path / "model.pt", state)
