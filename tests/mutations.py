"""Plant known mistakes, one at a time, in a copy of the package, and report which test notices each mistake.

    python tests/mutations.py                 plant all mistakes; exit status 1 if no test notices one
    python tests/mutations.py softmax mask    plant only mistakes whose name contains one of these words
    python tests/mutations.py --changed       plant only mistakes whose code or test has changed since the table
    python tests/mutations.py --write         write the rows of the planted mistakes into the table of MUTATIONS.md

A mistake is planted by replacing `old`, an expression or statements found exactly once in `file`, by `new`. The code is
compared as syntax, so layout and comments do not count; a single capital letter stands for any expression. The sources
themselves are never changed. To add a mistake, add a line to MISTAKES.

The table has a hash of each mistake, of its file and of its tests' file, as they were when the mistake was planted.
"""

# ruff: noqa: T201 – a script: it prints.

import argparse
import ast
import hashlib
import multiprocessing
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, NoReturn

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "MUTATIONS.md"
FORKS = multiprocessing.get_context("forkserver")
"""Forks a process for each mistake from a process that has imported the packages below, because imports are slow."""
FORKS.set_forkserver_preload(["numpy", "pytest", "torch"])


class Mistake(NamedTuple):
    """A mistake: its name, its file, the old code, the new code, and the tests that should notice it."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MISTAKES = [
    # Masks
    Mistake(
        "the padding mask hides the real tokens",
        "model/masks.py",
        "(ids != pad_id)",
        "(ids == pad_id)",
        "tests/model/test_masks.py",
    ),
    Mistake(
        "the padding mask always takes 0 for padding",
        "model/masks.py",
        "(ids != pad_id)",
        "(ids != 0)",
        "tests/model/test_masks.py",
    ),
    Mistake(
        "the causal mask hides the past",
        "model/masks.py",
        "X.tril()",
        "X.triu()",
        "tests/model/test_masks.py",
    ),
    Mistake(
        "the causal mask hides the position itself",
        "model/masks.py",
        "X.tril()",
        "X.tril(-1)",
        "tests/model/test_masks.py",
    ),
    Mistake(
        "the causal mask shows one position of the future",
        "model/masks.py",
        "X.tril()",
        "X.tril(1)",
        "tests/model/test_transformer.py",
    ),
    Mistake(
        "the decoder is not causal",
        "model/masks.py",
        "padding_mask(ids, pad_id) & causal_mask(ids.shape[1], ids.device)",
        "padding_mask(ids, pad_id).expand(-1, 1, ids.shape[1], -1)",
        "tests/model/test_transformer.py",
    ),
    Mistake(
        "the decoder sees the padding of the target",
        "model/masks.py",
        "padding_mask(ids, pad_id) & causal_mask(ids.shape[1], ids.device)",
        "causal_mask(ids.shape[1], ids.device).expand(ids.shape[0], -1, -1, -1)",
        "tests/model/test_masks.py",
    ),
    Mistake(
        "cross-attention uses the mask of the target",
        "model/transformer.py",
        "memory_mask = padding_mask(source, X)\nreturn self.decoder(A, B, C, D)",
        "memory_mask = padding_mask(target_input, X)\nreturn self.decoder(A, B, C, D)",
        "tests/model/test_transformer.py -k cross_attention_masks",
    ),
    # Equation 1
    Mistake(
        "scores are not divided by √d_k",
        "model/attention.py",
        "Q @ K.mT / math.sqrt(Q.shape[-1])",
        "Q @ K.mT",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "fused scores are not divided by √d_k",
        "model/fast/attention.py",
        "return F.scaled_dot_product_attention(Q, K, V, M, P)",
        "return F.scaled_dot_product_attention(Q, K, V, M, P, scale=1.0)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "scores are divided by √d_model",
        "model/attention.py",
        'self.tap("scores", attention_scores(query, key))',
        'self.tap("scores", query @ key.mT / self.output_projection.out_features**0.5)',
        "tests/model/test_parity.py",
    ),
    Mistake(
        "fused scores are divided by √d_model",
        "model/attention.py",
        "weighted_values(query, A, B, C, D)",
        "weighted_values(query * (query.shape[-1] / self.output_projection.out_features) ** 0.5, A, B, C, D)",
        "tests/model/test_parity.py",
    ),
    Mistake(
        "scores are divided by d_k",
        "model/attention.py",
        "Q @ K.mT / math.sqrt(Q.shape[-1])",
        "Q @ K.mT / Q.shape[-1]",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "masked scores become 0",
        "model/attention.py",
        "scores.masked_fill(~mask, -math.inf).softmax(-1, dtype=P)",
        "scores.masked_fill(~mask, 0.0).softmax(-1, dtype=P)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "masked scores become −10 000",
        "model/attention.py",
        "scores.masked_fill(~mask, -math.inf).softmax(-1, dtype=P)",
        "scores.masked_fill(~mask, -10000.0).softmax(-1, dtype=P)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "the mask comes after the softmax",
        "model/attention.py",
        "scores.masked_fill(~mask, -math.inf).softmax(-1, dtype=P)",
        "scores.softmax(-1, dtype=P)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "a query without any key gets NaN",
        "model/attention.py",
        "X.masked_fill(~mask, 0.0)",
        "X",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "the softmax is taken twice",
        "model/attention.py",
        "return scores.softmax(-1, dtype=P)",
        "return scores.softmax(-1, dtype=P).softmax(-1)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "the softmax is taken over the queries",
        "model/attention.py",
        "return scores.softmax(-1, dtype=P)",
        "return scores.softmax(-2, dtype=P)",
        "tests/model/test_attention.py",
    ),
    # Heads
    Mistake(
        "heads are split without the transpose",
        "model/attention.py",
        "x.view(*x.shape[:2], heads, -1).transpose(1, 2)",
        "x.reshape(x.shape[0], heads, x.shape[1], -1)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "heads are joined without the transpose",
        "model/attention.py",
        "x.transpose(1, 2).flatten(2)",
        "x.reshape(x.shape[0], x.shape[2], -1)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "query and key are swapped",
        "model/attention.py",
        'self.tap("query", split_heads(query, self.heads)), self.tap("key", split_heads(key, self.heads)), X',
        'self.tap("query", split_heads(key, self.heads)), self.tap("key", split_heads(query, self.heads)), X',
        "tests/model/test_parity.py",
    ),
    Mistake(
        "cross-attention takes keys and values from the decoder",
        "model/decoder.py",
        "self.cross_attention(y, memory_mask, memory=cache.memory)",
        "self.cross_attention(y, mask)",
        "tests/model/test_parity.py",
    ),
    Mistake(
        "Xavier's bound comes from the fused matrix",
        "model/attention.py",
        "(*self.input_projection.weight.split(self.widths), self.output_projection.weight)",
        "(self.input_projection.weight, self.output_projection.weight)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "the rows of a sentence are mixed up with its positions",
        "model/attention.py",
        "return rows.transpose(1, 2).flatten(2, 3)",
        "return rows.permute(0, 2, 3, 1, 4).flatten(2, 3)",
        "tests/model/test_attention.py",
    ),
    # Embedding and positions
    Mistake(
        "the embedding is not scaled",
        "model/embedding.py",
        'self.tap("embedding", rows * self.scale)',
        'self.tap("embedding", rows)',
        "tests/model/test_embedding.py",
    ),
    Mistake(
        "the position is scaled too",
        "model/embedding.py",
        "self.dropout(embedding + positions)",
        "self.dropout(embedding + positions * self.scale)",
        "tests/model/test_embedding.py",
    ),
    Mistake(
        "embeddings start with a standard deviation of 1",
        "model/embedding.py",
        "nn.init.normal_(self.tokens.weight, std=d_model**-0.5)",
        "nn.init.normal_(self.tokens.weight)",
        "tests/model/test_embedding.py",
    ),
    Mistake(
        "positions are shifted by one",
        "model/positions.py",
        "torch.arange(length, dtype=torch.float64)[:, None]",
        "torch.arange(1, length + 1, dtype=torch.float64)[:, None]",
        "tests/model/test_positions.py",
    ),
    Mistake(
        "positions are shifted by one while decoding",
        "model/cache.py",
        "self.length if self.entered is None else X",
        "self.length + 1 if self.entered is None else X",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "the exponent of the positions is doubled",
        "model/positions.py",
        "torch.arange(0, d_model, 2, dtype=torch.float64) / d_model",
        "2 * torch.arange(0, d_model, 2, dtype=torch.float64) / d_model",
        "tests/model/test_positions.py",
    ),
    Mistake(
        "sine and cosine are swapped",
        "model/positions.py",
        "torch.stack([angles.sin(), angles.cos()], dim=-1)",
        "torch.stack([angles.cos(), angles.sin()], dim=-1)",
        "tests/model/test_positions.py",
    ),
    Mistake(
        "positions are computed in float32",
        "model/positions.py",
        "sinusoids(A, B, C, dtype=torch.float64)",
        "sinusoids(A, B, C, dtype=torch.float32)",
        "tests/model/test_positions.py",
    ),
    Mistake(
        "an edit writes into the cached positions",
        "model/positions.py",
        "return X.clone()",
        "return X",
        "tests/model/test_taps.py",
    ),
    # Residual connections, norms, dropout
    Mistake(
        "post-norm and pre-norm are swapped",
        "model/residual.py",
        'match place:\n    case "post":\n        self.pre = False\n    case "pre":\n        self.pre = True',
        'self.pre = place == "post"',
        "tests/model/test_residual.py",
    ),
    Mistake(
        "the residual adds the normalised x",
        "model/residual.py",
        "self.add(x, sublayer(normed))",
        "self.add(normed, sublayer(normed))",
        "tests/model/test_residual.py",
    ),
    Mistake(
        "the residual connection is missing",
        "model/residual.py",
        "self.add(x, sublayer(x))",
        "self.dropout(sublayer(x))",
        "tests/model/test_residual.py",
    ),
    Mistake(
        "dropout acts on the input of the sub-layer",
        "model/residual.py",
        "self.add(x, sublayer(x))",
        "x + sublayer(self.dropout(x))",
        "tests/model/test_residual.py",
    ),
    Mistake(
        "the norm uses the unbiased deviation",
        "model/residual.py",
        'return self.tap("normed", self.norm(added))',
        "scaled = (added - added.mean(-1, keepdim=True)) / (added.var(-1, keepdim=True) + 1e-5).sqrt()\n"
        'return self.tap("normed", scaled * self.norm.weight + self.norm.bias)',
        "tests/model/test_residual.py",
    ),
    Mistake(
        "the norm adds eps outside the root",
        "model/residual.py",
        'return self.tap("normed", self.norm(added))',
        "scaled = (added - added.mean(-1, keepdim=True)) / (added.std(-1, correction=0, keepdim=True) + 1e-5)\n"
        'return self.tap("normed", scaled * self.norm.weight + self.norm.bias)',
        "tests/model/test_residual.py",
    ),
    Mistake(
        "pre-norm stacks end without a norm",
        "model/transformer.py",
        "_norm(config) if config.final_norm else nn.Identity()",
        "nn.Identity()",
        "tests/model/test_parity.py",
    ),
    Mistake(
        "post-norm stacks end with one norm more",
        "model/transformer.py",
        "_norm(config) if config.final_norm else nn.Identity()",
        "_norm(config)",
        "tests/model/test_transformer.py",
    ),
    Mistake(
        "dropout of sub-layers is always on",
        "model/residual.py",
        "self.add(x, sublayer(x))",
        "x + nn.functional.dropout(sublayer(x), self.dropout.p)",
        "tests/model/test_residual.py",
    ),
    Mistake(
        "dropout of attention weights is always on",
        "model/attention.py",
        "self.dropout if self.training else 0.0",
        "self.dropout",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "dropout is never on",
        "model/embedding.py",
        "self.dropout(embedding + positions)",
        "embedding + positions",
        "tests/model/test_embedding.py",
    ),
    Mistake(
        "the feed-forward network has no non-linearity",
        "model/feed_forward.py",
        "self.dropout(self.activation(hidden))",
        "self.dropout(hidden)",
        "tests/model/test_feed_forward.py",
    ),
    # The whole model
    Mistake(
        "the output matrix is not tied",
        "model/transformer.py",
        "if config.tie_output:\n    self.output.weight = self.target.tokens.weight",
        "pass",
        "tests/model/test_transformer.py",
    ),
    Mistake(
        "the embeddings are not tied",
        "model/transformer.py",
        "self.target.tokens.weight = self.source.tokens.weight",
        "self.target.tokens.weight.data.copy_(self.source.tokens.weight)",
        "tests/model/test_transformer.py",
    ),
    Mistake(
        "the layers of a stack are one layer",
        "model/encoder.py",
        "self.layers = nn.ModuleList(layers)",
        "layers = list(layers)\nself.layers = nn.ModuleList(layers[:1] * len(layers))",
        "tests/model/test_transformer.py",
    ),
    # The cache
    Mistake(
        "the cache is not reordered",
        "model/cache.py",
        "layer.past and layer.past.select(rows)",
        "layer.past",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "the memory of a finished sentence stays",
        "model/cache.py",
        "layer.memory if same else layer.memory.select(sentences)",
        "layer.memory",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "the memory mask of a finished sentence stays",
        "model/cache.py",
        "self.memory_mask[sentences]",
        "self.memory_mask",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "padding of a source is attended to in later steps",
        "model/transformer.py",
        "not memory_mask.all()",
        "False",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "reordered sentences are taken for unchanged ones",
        "model/cache.py",
        "same = torch.equal(sentences, torch.arange(self.memory_mask.shape[0], device=sentences.device))",
        "same = len(sentences) == len(self.memory_mask)",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "sentences that enter later see the zeros before them",
        "model/cache.py",
        "return None if self.entered is None else entry_mask(self._of_rows(self.entered), self.length)",
        "return None",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "sentences that enter later count their positions from the cache's beginning",
        "model/cache.py",
        "self._of_rows(self.length - self.entered)[:, None]",
        "self._of_rows(self.length - 0 * self.entered)[:, None]",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "a step changes the given cache",
        "model/cache.py",
        "layers = tuple(LayerCache(layer.memory, layer.past) for layer in self.layers)",
        "layers = self.layers",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "new keys are put before the old ones, and new values after them",
        "model/cache.py",
        "torch.cat([self.past.key, key], dim=2)",
        "torch.cat([key, self.past.key], dim=2)",
        "tests/model/test_cache.py",
    ),
    # Named points
    Mistake(
        "a recording has the values before the edit",
        "model/taps.py",
        "for X in (*_listening.interventions, *_listening.recordings):\n    if A:\n        B = C",
        "for X in (*_listening.recordings, *_listening.interventions):\n    if A:\n        B = C",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "recordings cut the autograd graph",
        "model/taps.py",
        "X.append(tensor)",
        "X.append(tensor.detach())",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "an edit is ignored",
        "model/taps.py",
        "return edited",
        "return tensor",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "all threads record each other",
        "model/taps.py",
        "threading.local",
        "object",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "recording continues after an error",
        "model/taps.py",
        "try:\n    yield trace\nfinally:\n    X = Y",
        "yield trace\nX = Y",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "edited weights are not used",
        "model/attention.py",
        'weights = self.tap("weights", X)',
        'weights = X\nself.tap("weights", weights)',
        "tests/model/test_taps.py",
    ),
    # Training
    Mistake(
        "smoothing is spread over the other entries only",
        "training/objective.py",
        "smoothed = -(smoothing * means).sum() / passes",
        "smoothed = -(smoothing * means * vocabulary / (vocabulary - 1)).sum() / passes",
        "tests/training/test_objective.py",
    ),
    Mistake(
        "only the last chunk reaches the output matrix",
        "training/objective.py",
        "weight_grad = more.to(precise) if weight_grad is None else weight_grad.add_(more)",
        "weight_grad = more.to(precise)",
        "tests/training/test_objective.py",
    ),
    Mistake(
        "padding counts in the loss",
        "training/gradients.py",
        "real = target_output != model.config.pad_id",
        "real = target_output != -1",
        "tests/training/test_loop.py",
    ),
    Mistake(
        "gradients are not cleared after an update",
        "training/loop.py",
        "self.optimiser.zero_grad()",
        "None",
        "tests/training/test_loop.py::test_a_training_equals_a_simple_loop",
    ),
    Mistake(
        "each rank divides by the number of its own tokens",
        "training/gradients.py",
        "add_gradients(self._model, self._config, batches, tokens)",
        "add_gradients(self._model, self._config, batches, 1 + sum(batch.target_tokens for batch in batches))",
        "tests/training/test_distributed.py::test_the_weights_do_not_depend_on_the_number_of_ranks",
    ),
    Mistake(
        "the numbers that no rank's part holds are not added up",
        "training/sums.py",
        "size * (rank + 1) // count",
        "size // count * (rank + 1)",
        "tests/training/test_sums.py::test_all_ranks_have_the_sum_bit_for_bit",
    ),
    Mistake(
        "validation with dropout",
        "training/loop.py",
        "was_training, A, B = model.training, X, Y\nmodel.eval()",
        "was_training, A, B = model.training, X, Y",
        "tests/training/test_loop.py",
    ),
    Mistake(
        "the random state is not restored",
        "training/checkpoint.py",
        "torch.set_rng_state(X)",
        "None",
        "tests/training/test_checkpoint.py",
    ),
    Mistake(
        "the optimiser's means are not restored",
        "training/checkpoint.py",
        "optimiser.load_state_dict(X)",
        "None",
        "tests/training/test_checkpoint.py",
    ),
    Mistake(
        "the schedule counts steps from 0",
        "training/schedule.py",
        "rise = min(max(step / warmup, time / LONGEST_WARMUP), 1.0)",
        "rise = min(max((step - 1) / warmup, time / LONGEST_WARMUP), 1.0)",
        "tests/training/test_schedule.py",
    ),
    # Decoding
    Mistake(
        "a protected span may stand too often",
        "text/terms.py",
        "any(counts[form] for form in forms)",
        "False",
        "tests/text/test_terms.py",
    ),
    Mistake(
        "a term is placed before the prefix",
        "text/placing.py",
        "_end_of_word(target, begun)",
        "0",
        "tests/text/test_placing.py",
    ),
    Mistake(
        "placeholders of a text may change places",
        "text/settling.py",
        "(_in_order, _spaced)",
        "(_spaced,)",
        "tests/translating/test_keeping.py",
    ),
    Mistake(
        "placeholders of a prefix may change places",
        "text/settling.py",
        "[one for one in written if one.begin >= begun]",
        "[one for one in written]",
        "tests/translating/test_keeping.py",
    ),
    Mistake(
        "placeholders of tags may change places",
        "translating/markup/projection.py",
        "not plain.order or _order(one) == plain.order",
        "True",
        "tests/translating/markup/test_projection.py",
    ),
    Mistake(
        "words between ordered placeholders are aligned across them",
        "translating/markup/pieces.py",
        "[(-1, -1), *anchors, (len(A), len(B))]",
        "[(-1, -1), (len(A), len(B))]",
        "tests/translating/markup/test_projection.py",
    ),
    Mistake(
        "a link that gives a word to another link keeps it, too",
        "translating/markup/projection.py",
        "self._runs[host] = first, last",
        "pass",
        "tests/translating/markup/test_projection.py",
    ),
    Mistake(
        "a link is put inside another link",
        "translating/markup/projection.py",
        "guest.has_link and any(one.has_link for one in (around, *inside))",
        "False",
        "tests/translating/markup/test_projection.py",
    ),
    Mistake(
        "a link without a word stays empty",
        "translating/markup/projection.py",
        "not tag.has_link",
        "True",
        "tests/translating/markup/test_projection.py",
    ),
    Mistake(
        "a token of a script without spaces counts for its last word only",
        "text/links.py",
        "range(bisect_right(ends, first), X)",
        "range(bisect_left(ends, last), X)",
        "tests/text/test_links.py",
    ),
    Mistake(
        "an apostrophe before a brace begins a quotation",
        "text/messages.py",
        "count == 2 or _quotes(text, one)",
        "count == 2",
        "tests/translating/test_inside_messages.py",
    ),
    Mistake(
        "a doubled apostrophe becomes a single one",
        "text/messages.py",
        "count == 2 or _quotes(text, one)",
        "_quotes(text, one)",
        "tests/translating/test_inside_messages.py",
    ),
    Mistake(
        "former codes of languages are not understood",
        "text/languages.py",
        "_CURRENT.get(language.lower(), language)",
        "language",
        "tests/serving/test_models.py",
    ),
    Mistake(
        "small chunks of a body are not counted",
        "serving/connections.py",
        "self.spare + len(event.data) / SMALL - event.chunk_start",
        "self.spare + len(event.data) / SMALL",
        "tests/serving/test_connections.py",
    ),
    Mistake(
        "a large chunk allows any number of small ones",
        "serving/connections.py",
        "min(MOST_SMALL, X)",
        "X",
        "tests/serving/test_connections.py",
    ),
    Mistake(
        "the small chunks of all requests of a connection count together",
        "serving/connections.py",
        "self.spare = MOST_SMALL",
        "self.spare = self.spare",
        "tests/serving/test_connections.py",
    ),
    Mistake(
        "the key of a form is looked for by its escaped name",
        "serving/reading.py",
        "_unescaped(written) == name",
        "written == name.encode()",
        "tests/serving/test_keys.py -k decoder_reads",
    ),
    Mistake(
        "logits are searched as if they were log-probabilities",
        "decoding/transformer_step.py",
        "X.log_softmax(-1), S",
        "X, S",
        "tests/decoding/test_transformer_step.py",
    ),
    Mistake(
        "the source has no <eos>",
        "translating/reading.py",
        "return [(*ids, tokenizer.eos_id) for ids in tokenizer.encode_all(texts)]",
        "return [(*ids,) for ids in tokenizer.encode_all(texts)]",
        "tests/test_translator.py",
    ),
    Mistake(
        "given targets are not shifted",
        "decoding/torch_engine.py",
        "[model.config.bos_id, *target[:-1]]",
        "[model.config.bos_id, *target[1:]]",
        "tests/test_translator.py",
    ),
    Mistake(
        "the weights of the last validation are kept, not the best",
        "jobs/saving.py",
        "isinstance(report, ValidationReport) and report.best",
        "isinstance(report, ValidationReport)",
        "tests/test_run.py::test_a_run_keeps_the_weights_of_its_best_validation",
    ),
    Mistake(
        "validation pairs are trained on",
        "jobs/prepared/held_out.py",
        "return pairs, _without(kept, places)",
        "return pairs, kept",
        "tests/jobs/test_preparation.py",
    ),
    # Bulk translation
    Mistake(
        "a line that starts where a range begins is skipped",
        "corpus/ranges.py",
        "position = self.begin - 1",
        "position = self.begin",
        "tests/corpus/test_ranges.py",
    ),
    Mistake(
        "a line that starts where a range ends is read twice",
        "corpus/ranges.py",
        "self._is_whole or position < self.end",
        "self._is_whole or position <= self.end",
        "tests/corpus/test_ranges.py",
    ),
    Mistake(
        "a row group that starts where a range ends is read twice",
        "corpus/parquet.py",
        "begin <= start < end",
        "begin <= start <= end",
        "tests/corpus/test_parquet.py",
    ),
]


def main() -> int:
    """Return the exit status: 0 if every mistake is noticed, 1 if one survives, 2 if the tests fail without any."""
    parser = argparse.ArgumentParser(description="Plant known mistakes and tell which test notices each.")
    parser.add_argument("words", nargs="*", help="only mistakes whose name holds one of these")
    parser.add_argument("--changed", action="store_true", help="only mistakes whose code or test has changed")
    parser.add_argument("--write", action="store_true", help="put their rows into MUTATIONS.md")
    options = parser.parse_args()
    chosen = changed_mistakes() if options.changed else MISTAKES
    chosen = [m for m in chosen if not options.words or any(word in m.name for word in options.words)]
    complaint = first_failure(sorted({mistake.tests for mistake in chosen}))
    if complaint:
        print(f"without any mistake, {complaint} fails")
        return 2
    rows = []
    for mistake in chosen:
        rows.append((mistake, first_failure([mistake.tests], mistake)))
        print(f"{mistake.name}: {rows[-1][1] or 'SURVIVES'}", flush=True)
    if options.write:
        write_table(rows)
    survivors = sum(not test for _, test in rows)
    print(f"{len(rows) - survivors} of {len(rows)} mistakes are noticed")
    return 1 if survivors else 0


def first_failure(tests: Iterable[str], mistake: Mistake | None = None) -> str | None:
    """Return the name of the first test that fails on a copy of the sources with this mistake in it."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mistake:
            path = copy / "glassformer" / mistake.file
            path.write_text(planted(mistake, path.read_text(encoding="utf-8")), encoding="utf-8")
        for arguments in tests:
            failure = run(arguments.split(" "), copy)
            if failure:
                return failure
    return None


@cache
def table_rows() -> dict[str, tuple[str, str, str]]:
    """Return the rows of the table in MUTATIONS.md by name of the mistake: its file, its test, its hash."""
    rows = re.findall(
        r"^\| (.+) \| `(.+)` \| `(.+)` \| `(.+)` \|$", TABLE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return {name: (file, test, digest) for name, file, test, digest in rows}


def noticed_by(mistake: Mistake) -> str:
    """Return the test that notices this mistake according to the table in MUTATIONS.md."""
    if mistake.name not in table_rows():
        raise LookupError(
            f"{TABLE.name} has no row for {mistake.name!r}; run `python tests/mutations.py --changed --write`"
        )
    folder = file_of_tests(mistake).rpartition("/")[0]
    return f"{folder}/{table_rows()[mistake.name][1]}"


def file_of_tests(mistake: Mistake) -> str:
    """Return the file of the tests that should notice this mistake."""
    return re.split(" |::", mistake.tests)[0]


def changed_mistakes() -> list[Mistake]:
    """Return the mistakes that have changed since the table was written, or whose file or test file has changed."""
    known = {name: digest for name, (_, _, digest) in table_rows().items()}
    return [mistake for mistake in MISTAKES if known.get(mistake.name) != hash_of(mistake)]


def hash_of(mistake: Mistake, root: Path = ROOT) -> str:
    """Return a hash of a mistake, of the file in which it is planted, and of the file of its tests."""
    found = hashlib.blake2b("\n".join(mistake).encode(), digest_size=4)
    for path in (root / "src" / "glassformer" / mistake.file, root / file_of_tests(mistake)):
        found.update(path.read_bytes() if path.exists() else b"")
    return found.hexdigest()


def planted(mistake: Mistake, text: str) -> str:
    """Return the source with the mistake planted at the only place that matches `old`."""
    tree, old, new = ast.parse(text), pattern(mistake.old), pattern(mistake.new)
    places = [place for node in ast.walk(tree) for place in found(node, old)]
    if len(places) != 1:
        raise LookupError(f"{mistake.name}: {mistake.old!r} is in {len(places)} places of {mistake.file}")
    [(holder, at, values)] = places
    filled = [Fill(values).visit(one) for one in new]
    if isinstance(at, slice):
        holder[at] = [one if isinstance(one, ast.stmt) else ast.Expr(one) for one in filled]
    else:
        [holder[at]] = filled
    return ast.unparse(ast.fix_missing_locations(tree))


def pattern(text: str) -> list[ast.AST]:
    """Parse Python code; return its expression or its statements."""
    body = ast.parse(text).body
    return [body[0].value] if len(body) == 1 and isinstance(body[0], ast.Expr) else body


def found(node: ast.AST, old: list[ast.AST]) -> Iterator[tuple[Any, Any, dict[str, ast.AST]]]:
    """Yield the matches of a pattern in a node: the container, the place in the container, and the letters' values."""
    for name, value in ast.iter_fields(node):
        if isinstance(old[0], ast.expr):
            holder, places = (value, range(len(value))) if isinstance(value, list) else (vars(node), [name])
        else:
            holder, places = value, [slice(i, i + len(old)) for i in range(len(value))] if is_block(value) else []
        for place in places:
            values: dict[str, ast.AST] = {}
            there = holder[place] if isinstance(place, slice) else [holder[place]]
            if same(old, there, values):
                yield holder, place, values


def is_block(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, ast.stmt) for one in value)


def same(old: Any, new: Any, values: dict[str, ast.AST]) -> bool:
    """Return whether `new` matches `old`, in which a single capital letter stands for any expression."""
    if isinstance(old, ast.Name) and len(old.id) == 1 and old.id.isupper() and isinstance(new, ast.expr):
        return ast.unparse(values.setdefault(old.id, new)) == ast.unparse(new)
    if isinstance(old, list):
        return (
            isinstance(new, list)
            and len(old) == len(new)
            and all(same(*two, values) for two in zip(old, new, strict=True))
        )
    if isinstance(old, ast.AST):
        return type(old) is type(new) and all(same(value, getattr(new, name), values) for name, value in parts(old))
    return type(old) is type(new) and old == new


def parts(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a node that decide its meaning."""
    return ((name, value) for name, value in ast.iter_fields(node) if name not in {"ctx", "type_comment"})


class Fill(ast.NodeTransformer):
    """A transformer that replaces the letters of a pattern by the expressions that the letters matched."""

    def __init__(self, values: dict[str, ast.AST]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.values.get(node.id, node)


def run(arguments: list[str], sources: Path) -> str | None:
    """Return the first test that fails on these sources, or None; a slow test runs only if it is named."""
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-profile=mutations"]
    options += [] if "::" in arguments[0] else ["-m", "not slow and not long"]
    with TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        process = FORKS.Process(target=_run_pytest, args=([*options, *arguments], sources, output))
        process.start()
        process.join()
        printed = output.read_text(encoding="utf-8")
    if process.exitcode == 0:
        return None
    named = re.search(r"^(?:FAILED|ERROR) (?:\S*/)?(test_\w+\.py\S*)", printed, flags=re.MULTILINE)
    if not named:
        raise SystemExit(f"pytest {' '.join(arguments)} ended with {process.exitcode}:\n{printed}")
    return named[1].split("[")[0]


def _run_pytest(arguments: list[str], sources: Path, output: Path) -> NoReturn:
    """Run pytest on these sources, and exit with its status."""
    os.chdir(ROOT)
    os.environ.update(PYTHONPATH=str(sources), PYTHONDONTWRITEBYTECODE="1")
    sys.path.insert(0, str(sources))
    sys.dont_write_bytecode = True
    torch.set_num_threads(1)
    with output.open("w", encoding="utf-8") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        status = pytest.main(arguments)
        sys.stdout.flush()
    sys.exit(status)


def write_table(planted_now: Iterable[tuple[Mistake, str | None]]) -> None:
    """Write the table of MUTATIONS.md: new rows for the mistakes planted now, and the present rows of the others."""
    before = TABLE.read_text(encoding="utf-8").split("| mistake |")[0]
    rows = dict(table_rows())
    for one, test in planted_now:
        rows[one.name] = (one.file, test, hash_of(one)) if test else (one.file, "survives", "-")
    lines = ["| mistake | planted in | noticed by | hash |", "|---|---|---|---|"]
    for one in MISTAKES:
        if one.name in rows:
            lines.append(f"| {one.name} | " + " | ".join(f"`{cell}`" for cell in rows[one.name]) + " |")
    TABLE.write_text(before + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
