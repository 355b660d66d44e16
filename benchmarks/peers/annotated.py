"""The Annotated Transformer: its make_model, masks, LabelSmoothing and greedy_decode, and Adam as in its text.

It is a single file, named by the option `path`. Its imports for plots and corpora are left out.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers.task import BOS, EOS, PAD
from benchmarks.peers.torch_peer import TorchPeer, adam, begin, longest_output, until

FOR_PLOTS_AND_CORPORA = (
    "pandas",
    "altair",
    "torchtext",
    "torchtext.data",
    "torchtext.data.functional",
    "torchtext.vocab",
    "torchtext.datasets",
    "spacy",
    "GPUtil",
)


def make(folder: Path, precision: str, *, path: str) -> TorchPeer:
    task, code = begin(folder), _module(Path(path))
    model = code.make_model(
        task.vocabulary,
        task.vocabulary,
        N=task.encoder_layers,
        d_model=task.d_model,
        d_ff=task.d_ff,
        h=task.heads,
        dropout=task.dropout,
    )
    if task.encoder_layers != task.decoder_layers:
        raise ValueError("the Annotated Transformer needs the same number of layers in encoder and decoder")
    shared = model.src_embed[0].lut.weight
    model.tgt_embed[0].lut.weight = model.generator.proj.weight = shared  # tied, as the benchmark's task requires
    compute = code.SimpleLossCompute(model.generator, code.LabelSmoothing(task.vocabulary, PAD, task.smoothing))

    def loss(source: Tensor, target_input: Tensor, target_output: Tensor) -> Tensor:
        mask = code.Batch.make_std_mask(target_input, PAD)
        hidden = model(source, target_input, (source != PAD).unsqueeze(-2), mask)
        _, mean = compute(hidden, target_output, (target_output != PAD).sum())
        found: Tensor = mean
        return found

    def decode(source: Tensor, beam_size: int) -> list[list[int]]:
        if beam_size > 1:
            raise NotImplementedError("the Annotated Transformer has no beam search")
        found = []
        for row in source:  # greedy_decode takes one sentence at a time
            one = row[row != PAD][None]
            ids = code.greedy_decode(model, one, torch.ones(1, 1, one.shape[1]), longest_output(one), BOS)
            found.append(until(ids[0, 1:].tolist(), EOS))
        return found

    return TorchPeer(precision, model, adam(model, task), loss, decode)


def _module(path: Path) -> Any:
    """Return the file as a module, without the line that draws a plot on import."""
    for name in FOR_PLOTS_AND_CORPORA:
        stub: Any = ModuleType(name)
        stub.to_map_style_dataset = stub.build_vocab_from_iterator = None
        sys.modules[name] = stub
    torchtext: Any = sys.modules["torchtext"]
    torchtext.datasets = sys.modules["torchtext.datasets"]
    lines = path.read_text(encoding="utf-8").split("\n")
    code: Any = ModuleType("the_annotated_transformer")
    exec(compile("\n".join(line for line in lines if line != "example_learning_schedule()"), path, "exec"), vars(code))
    for name in FOR_PLOTS_AND_CORPORA:
        del sys.modules[name]
    return code
