"""A small model for a transformers folder that has only tokenizers, because an import needs weights."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from glassformer.interop.exporting import ExportOptions
from glassformer.interop.huggingface.writer import export_hugging_face
from interop.huggingface.test_writer import a_run

NORMS = {"marian": "post", "pegasus": "pre"}
SIZES = (
    "d_model",
    *(f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "attention_heads", "ffn_dim")),
)


def add_small_model(folder: Path, place: Path) -> None:
    """Write the weights of a small model into a folder, and its sizes into config.json; `place` is for its run."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    run = a_run(place / "run", norm=NORMS[config["model_type"]], positions="halves")
    export_hugging_face(run, place / "exported", ExportOptions(verified=False))
    own = json.loads((place / "exported" / "config.json").read_text())
    path.write_text(json.dumps({**config, **{name: own[name] for name in SIZES}}))
    state = load_file(place / "exported" / "model.safetensors")
    rows = config["vocab_size"]
    for name, weight in state.items():
        if name == "final_logits_bias":
            state[name] = torch.zeros(1, rows)
        elif name.endswith(("shared.weight", "embed_tokens.weight", "lm_head.weight")):
            state[name] = torch.zeros(rows, weight.shape[1])
    save_file(state, folder / "model.safetensors")
