"""OpenNMT-py: its embeddings, encoder, decoder and beam search, put together as in OpenNMT-py's own builder."""

import importlib
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers.task import BOS, EOS, PAD, UNK, Task
from benchmarks.peers.torch_peer import TorchPeer, adam, begin, cross_entropy, longest_output, until

FOR_DATA_AND_SERVICE = ("spacy", "fasttext", "ahocorasick", "waitress", "flask")
"""Modules that OpenNMT-py imports for reading corpora and for its server; they need not be installed here."""


def make(folder: Path, precision: str) -> TorchPeer:
    for name in FOR_DATA_AND_SERVICE:
        if name not in sys.modules:
            sys.modules[name] = _nothing(name)
    task = begin(folder)
    model, entropy = _model(task), cross_entropy(task)

    def loss(source: Tensor, target_input: Tensor, target_output: Tensor) -> Tensor:
        # OpenNMT-py itself drops the last token
        whole = torch.cat([target_input[:, :1], target_output], dim=1)[..., None]
        hidden, _ = model(source[..., None], whole, (source != PAD).sum(1))
        return entropy(model.generator(hidden), target_output)

    def decode(source: Tensor, beam_size: int) -> list[list[int]]:
        return _search(model, source, beam_size)

    return TorchPeer(precision, model, adam(model, task), loss, decode, ["OpenNMT-py"])


def _nothing(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    return module


def _model(task: Task) -> Any:
    modules = importlib.import_module("onmt.modules")
    relu = importlib.import_module("onmt.modules.position_ffn").ActivationFunction.relu

    def embeddings() -> Any:
        return modules.Embeddings(
            word_vec_size=task.d_model,
            word_vocab_size=task.vocabulary,
            word_padding_idx=PAD,
            position_encoding=True,
            position_encoding_type="SinusoidalInterleaved",
            dropout=task.dropout,
        )

    source, target = embeddings(), embeddings()
    target.word_lut.weight = source.word_lut.weight
    # Both constructors take positional arguments: layers, widths, (copying and kind of attention,) dropouts,
    # embeddings, …
    encoder = importlib.import_module("onmt.encoders.transformer").TransformerEncoder(
        task.encoder_layers,
        task.d_model,
        task.heads,
        task.d_ff,
        task.dropout,
        task.dropout,
        source,
        0,
        0,
        pos_ffn_activation_fn=relu,
    )
    decoder = importlib.import_module("onmt.decoders.transformer").TransformerDecoder(
        task.decoder_layers,
        task.d_model,
        task.heads,
        task.d_ff,
        False,
        "scaled-dot",
        task.dropout,
        task.dropout,
        target,
        0,
        0,
        False,
        False,
        -3,
        0,
        pos_ffn_activation_fn=relu,
    )
    model = importlib.import_module("onmt.models.model").NMTModel(encoder, decoder)
    model.generator = nn.Linear(task.d_model, task.vocabulary)
    model.generator.weight = target.word_lut.weight
    for name, parameter in model.named_parameters():  # OpenNMT-py's classes do not initialise their weights
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
        elif "layer_norm" not in name:
            nn.init.zeros_(parameter)
    return model


def _search(model: Any, source: Tensor, beam_size: int) -> list[list[int]]:
    """Search as in `Translator._translate_batch_with_strategy`; a beam of 1 is greedy."""
    found = importlib.import_module("onmt.translate.beam_search")
    lengths = (source != PAD).sum(1)
    search = found.BeamSearch(
        beam_size,
        batch_size=len(source),
        pad=PAD,
        bos=BOS,
        eos=EOS,
        unk=UNK,
        start=BOS,
        n_best=1,
        global_scorer=found.GNMTGlobalScorer(1.0, 0.0, "wu", "none"),
        min_length=0,
        max_length=longest_output(source),
        return_attention=False,
        block_ngram_repeat=0,
        exclusion_tokens=set(),
        stepwise_penalty=None,
        ratio=0.0,
        ban_unk_token=False,
    )
    encoded, state, lengths = model.encoder(source[..., None], lengths)
    model.decoder.init_state(source[..., None], encoded, state)
    mapped, encoded, _ = search.initialize(encoded, lengths, None)
    if mapped is not None:
        model.decoder.map_state(mapped)
    for step in range(search.max_length):
        fed = search.current_predictions.view(-1, 1, 1)
        hidden, _ = model.decoder(fed, encoded, src_len=search.src_len, step=step, return_attn=False)
        search.advance(model.generator(hidden.squeeze(1)).log_softmax(-1), None)
        finished = any(any(row) for row in search.is_finished_list)
        if finished:
            search.update_finished()
            if search.done:
                break
        chosen = search.select_indices
        if finished:
            encoded = encoded[chosen]
        model.decoder.map_state(lambda state, dim: state[chosen])  # noqa: ARG005, B023
    return [until(predictions[0].tolist(), EOS) for predictions in search.predictions]
