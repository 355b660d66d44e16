"""Plants known mistakes, one at a time, in a copy of the package, and tells which test notices each.

    python tests/mutations.py                 all of them; exit status 1 if one survives
    python tests/mutations.py softmax mask    only those whose name holds one of these words
    python tests/mutations.py --write         all of them, and put the table into MUTATIONS.md

A mistake is planted by replacing `old`, which must occur exactly once in `file`, by `new`. The sources themselves are
never touched. To add a mistake, add a line to MISTAKES.
"""

# ruff: noqa: T201 – a script: it prints.

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "MUTATIONS.md"


class Mistake(NamedTuple):
    """One mistake: what it is, where it is planted and how, and the tests that should notice it."""

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
        ".tril()",
        ".triu()",
        "tests/model/test_masks.py",
    ),
    Mistake(
        "the causal mask hides the position itself",
        "model/masks.py",
        ".tril()",
        ".tril(-1)",
        "tests/model/test_masks.py",
    ),
    Mistake(
        "the causal mask shows one position of the future",
        "model/masks.py",
        ".tril()",
        ".tril(1)",
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
        "memory_mask = padding_mask(source, self.config.pad_id)\n        return self.decoder(",
        "memory_mask = padding_mask(target_input, self.config.pad_id)\n        return self.decoder(",
        "tests/model/test_transformer.py -k cross_attention_follows",
    ),
    # Equation 1
    Mistake(
        "scores are not divided by √d_k",
        "model/attention.py",
        "query @ key.mT / math.sqrt(query.shape[-1])",
        "query @ key.mT",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "fused scores are not divided by √d_k",
        "model/attention.py",
        "value, mask, self._dropout())\n        joined",
        "value, mask, self._dropout(), scale=1.0)\n        joined",
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
        "value, mask, self._dropout())\n        joined",
        "value, mask, self._dropout(), scale=self.output_projection.out_features**-0.5)\n        joined",
        "tests/model/test_parity.py",
    ),
    Mistake(
        "scores are divided by d_k",
        "model/attention.py",
        "math.sqrt(query.shape[-1])",
        "query.shape[-1]",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "masked scores become 0",
        "model/attention.py",
        "scores.masked_fill(~mask, -math.inf).softmax(-1, dtype=precise)",
        "scores.masked_fill(~mask, 0.0).softmax(-1, dtype=precise)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "masked scores become −10 000",
        "model/attention.py",
        "scores.masked_fill(~mask, -math.inf).softmax(-1, dtype=precise)",
        "scores.masked_fill(~mask, -10000.0).softmax(-1, dtype=precise)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "the mask comes after the softmax",
        "model/attention.py",
        "scores.masked_fill(~mask, -math.inf).softmax(-1, dtype=precise)",
        "scores.softmax(-1, dtype=precise)",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "a query without any key gets NaN",
        "model/attention.py",
        "return weights.masked_fill(~mask, 0.0)",
        "return weights",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "the softmax is taken twice",
        "model/attention.py",
        "        return scores.softmax(-1, dtype=precise)\n",
        "        return scores.softmax(-1, dtype=precise).softmax(-1)\n",
        "tests/model/test_attention.py",
    ),
    Mistake(
        "the softmax is taken over the queries",
        "model/attention.py",
        "        return scores.softmax(-1, dtype=precise)\n",
        "        return scores.softmax(-2, dtype=precise)\n",
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
        "query and key change places",
        "model/attention.py",
        'self._heads("query", query), self._heads("key", key)',
        'self._heads("key", key), self._heads("query", query)',
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
        "Xavier's bound is that of the fused matrix",
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
        "self._lookup(ids) * self.scale",
        "self._lookup(ids)",
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
        "angles = torch.arange(length, dtype=torch.float64)[:, None]",
        "angles = torch.arange(1, length + 1, dtype=torch.float64)[:, None]",
        "tests/model/test_positions.py",
    ),
    Mistake(
        "positions are shifted by one while decoding",
        "model/cache.py",
        "return self.length if self.entered is None",
        "return self.length + 1 if self.entered is None",
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
        "sine and cosine change places",
        "model/positions.py",
        "torch.stack([angles.sin(), angles.cos()], dim=-1)",
        "torch.stack([angles.cos(), angles.sin()], dim=-1)",
        "tests/model/test_positions.py",
    ),
    Mistake(
        "positions are computed in float32",
        "model/positions.py",
        "dtype=torch.float64).to(dtype).to(device)",
        "dtype=torch.float32).to(dtype).to(device)",
        "tests/model/test_positions.py",
    ),
    Mistake(
        "an edit writes into the cached positions",
        "model/positions.py",
        "return patterns.clone()",
        "return patterns",
        "tests/model/test_taps.py",
    ),
    # Residual connections, norms, dropout
    Mistake(
        "post-norm and pre-norm change places",
        "model/residual.py",
        'self.pre = norm == "pre"',
        'self.pre = norm == "post"',
        "tests/model/test_residual.py",
    ),
    Mistake(
        "the residual adds the normalised x",
        "model/residual.py",
        "x + self.dropout(sublayer(normed))",
        "normed + self.dropout(sublayer(normed))",
        "tests/model/test_residual.py",
    ),
    Mistake(
        "there is no residual",
        "model/residual.py",
        "x + self.dropout(sublayer(x))",
        "self.dropout(sublayer(x))",
        "tests/model/test_residual.py",
    ),
    Mistake(
        "dropout acts on the input of the sub-layer",
        "model/residual.py",
        "x + self.dropout(sublayer(x))",
        "x + sublayer(self.dropout(x))",
        "tests/model/test_residual.py",
    ),
    Mistake(
        "the norm uses the unbiased deviation",
        "model/residual.py",
        'return self.tap("normed", self.norm(added))',
        "scaled = (added - added.mean(-1, keepdim=True)) / (added.var(-1, keepdim=True) + 1e-5).sqrt()\n"
        '        return self.tap("normed", scaled * self.norm.weight + self.norm.bias)',
        "tests/model/test_residual.py",
    ),
    Mistake(
        "the norm adds eps outside the root",
        "model/residual.py",
        'return self.tap("normed", self.norm(added))',
        "scaled = (added - added.mean(-1, keepdim=True)) / (added.std(-1, correction=0, keepdim=True) + 1e-5)\n"
        '        return self.tap("normed", scaled * self.norm.weight + self.norm.bias)',
        "tests/model/test_residual.py",
    ),
    Mistake(
        "pre-norm stacks end without a norm",
        "model/residual.py",
        'nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()',
        "nn.Identity()",
        "tests/model/test_parity.py",
    ),
    Mistake(
        "post-norm stacks end with one norm more",
        "model/residual.py",
        'nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()',
        "nn.LayerNorm(d_model)",
        "tests/model/test_transformer.py",
    ),
    Mistake(
        "dropout of sub-layers is always on",
        "model/residual.py",
        "x + self.dropout(sublayer(x))",
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
    # The whole
    Mistake(
        "the output matrix is not tied",
        "model/transformer.py",
        "        if config.tie_output:\n            self.output.weight = self.target.tokens.weight\n",
        "",
        "tests/model/test_transformer.py",
    ),
    Mistake(
        "the embeddings are not tied",
        "model/transformer.py",
        "            self.target.tokens.weight = self.source.tokens.weight\n",
        "            self.target.tokens.weight.data.copy_(self.source.tokens.weight)\n",
        "tests/model/test_transformer.py",
    ),
    Mistake(
        "the layers of a stack are one layer",
        "model/encoder.py",
        "self.layers = nn.ModuleList(layers)",
        "layers = list(layers)\n        self.layers = nn.ModuleList(layers[:1] * len(layers))",
        "tests/model/test_transformer.py",
    ),
    # The cache
    Mistake(
        "the cache is not reordered",
        "model/cache.py",
        "layer.past and layer.past.select(rows),",
        "layer.past,",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "the memory stays when its sentence has left",
        "model/cache.py",
        "layer.memory if same else layer.memory.select(sentences),",
        "layer.memory,",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "the mask of the memory stays when its sentence has left",
        "model/cache.py",
        "memory_mask=self.memory_mask[sentences]",
        "memory_mask=self.memory_mask",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "a source's padding is looked at when its decoding goes on",
        "model/transformer.py",
        "padded=not memory_mask.all()",
        "padded=False",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "sentences that change places are taken for the same ones",
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
        "a step changes the cache that it was given",
        "model/cache.py",
        "layers = tuple(LayerCache(layer.memory, layer.past) for layer in self.layers)",
        "layers = self.layers",
        "tests/model/test_cache.py",
    ),
    Mistake(
        "new keys are put before the old ones, their values behind",
        "model/cache.py",
        "torch.cat([self.past.key, key], dim=2)",
        "torch.cat([key, self.past.key], dim=2)",
        "tests/model/test_cache.py",
    ),
    # Named points
    Mistake(
        "a recording holds what was there before the edit",
        "model/taps.py",
        "for listener in (*_listening.interventions, *_listening.recordings):\n            if self",
        "for listener in (*_listening.recordings, *_listening.interventions):\n            if self",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "recordings cut the graph of gradients",
        "model/taps.py",
        "append(tensor)",
        "append(tensor.detach())",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "an edit is ignored",
        "model/taps.py",
        "        return edited\n",
        "        return tensor\n",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "all threads listen to one another",
        "model/taps.py",
        "class _Listening(threading.local):",
        "class _Listening:",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "listening goes on after an error",
        "model/taps.py",
        "    try:\n        yield trace\n    finally:\n        _listening.recordings = before",
        "    yield trace\n    _listening.recordings = before",
        "tests/model/test_taps.py",
    ),
    Mistake(
        "edited weights are not used",
        "model/attention.py",
        'weights = self.tap("weights", dropout(attention_weights(scores, mask), self._dropout()))',
        'weights = dropout(attention_weights(scores, mask), self._dropout())\n        self.tap("weights", weights)',
        "tests/model/test_taps.py",
    ),
    # Training
    Mistake(
        "smoothing is spread over the other entries only",
        "training/objective.py",
        "- smoothing * mean) / passes",
        "- smoothing * (mean * weight.shape[0] - correct) / (weight.shape[0] - 1)) / passes",
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
        "        self.optimiser.zero_grad()\n",
        "",
        "tests/training/test_loop.py",
    ),
    Mistake(
        "validation with dropout",
        "training/loop.py",
        "    model.eval()\n    for batch",
        "    for batch",
        "tests/training/test_loop.py",
    ),
    Mistake(
        "the random state is not restored",
        "training/checkpoint.py",
        "    torch.set_rng_state(states[_RANDOM])\n",
        "",
        "tests/training/test_checkpoint.py",
    ),
    Mistake(
        "the optimiser's means are not restored",
        "training/checkpoint.py",
        '    optimiser.load_state_dict({"state": entries, "param_groups": optimiser.state_dict()["param_groups"]})\n',
        "",
        "tests/training/test_checkpoint.py",
    ),
    Mistake(
        "the schedule counts steps from 0",
        "training/schedule.py",
        "rise = step / warmup",
        "rise = (step - 1) / warmup",
        "tests/training/test_schedule.py",
    ),
    # Decoding
    Mistake(
        "logits are searched as if they were log-probabilities",
        "decoding/transformer_step.py",
        "return logits.log_softmax(-1), state",
        "return logits, state",
        "tests/decoding/test_transformer_step.py",
    ),
    Mistake(
        "the source has no <eos>",
        "translator.py",
        "return [(*ids, tokenizer.eos_id) for ids in tokenizer.encode_all(texts)]",
        "return [(*ids,) for ids in tokenizer.encode_all(texts)]",
        "tests/test_translator.py",
    ),
    Mistake(
        "given targets are not shifted",
        "decoding/torch_engine.py",
        "[[model.config.bos_id, *target[:-1]] for",
        "[[model.config.bos_id, *target[1:]] for",
        "tests/test_translator.py",
    ),
    Mistake(
        "the weights of the last validation are kept, not the best",
        "run/training.py",
        "isinstance(report, ValidationReport) and report.best:",
        "isinstance(report, ValidationReport):",
        "tests/test_run.py",
    ),
    Mistake(
        "validation pairs are trained on",
        "run/corpus.py",
        "return pairs, _without(kept, places)",
        "return pairs, kept",
        "tests/run/test_corpus.py",
    ),
]


def main() -> int:
    """Return the exit status: 0 if every mistake is noticed, 1 if one survives, 2 if the tests fail without any."""
    parser = argparse.ArgumentParser(description="Plant known mistakes and tell which test notices each.")
    parser.add_argument("words", nargs="*", help="only mistakes whose name holds one of these")
    parser.add_argument("--write", action="store_true", help="put the table into MUTATIONS.md")
    options = parser.parse_args()
    chosen = [m for m in MISTAKES if not options.words or any(word in m.name for word in options.words)]
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
            plant(mistake, copy / "glassformer" / mistake.file)
        for arguments in tests:
            failure = run(arguments.split(" "), copy)
            if failure:
                return failure
    return None


def plant(mistake: Mistake, path: Path) -> None:
    """Write the mistake into a file of the copy."""
    text = path.read_text()
    if text.count(mistake.old) != 1:
        raise SystemExit(f"{mistake.name}: {mistake.old!r} occurs {text.count(mistake.old)} times in {mistake.file}")
    path.write_text(text.replace(mistake.old, mistake.new))


def run(arguments: list[str], sources: Path) -> str | None:
    """Return the first test that fails on these sources, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow"]
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    finished = subprocess.run([*command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    if finished.returncode == 0:
        return None
    named = re.search(r"^(?:FAILED|ERROR) (?:\S*/)?(test_\w+\.py\S*)", finished.stdout, flags=re.MULTILINE)
    if not named:
        raise SystemExit(f"pytest {' '.join(arguments)} ended with {finished.returncode}:\n{finished.stdout}")
    return named[1].split("[")[0]


def write_table(rows: Iterable[tuple[Mistake, str | None]]) -> None:
    """Put the table in the place of the one in MUTATIONS.md."""
    before = TABLE.read_text().split("| mistake |")[0]
    lines = [f"| {mistake.name} | `{mistake.file}` | `{test or 'survives'}` |" for mistake, test in rows]
    TABLE.write_text("\n".join([f"{before}| mistake | planted in | noticed by |", "|---|---|---|", *lines]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
