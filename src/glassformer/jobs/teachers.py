"""Learn the distributions of teachers: what other runs expect at each token of the training pairs.

    prepared/teachers-HASH/00000.npy       what these teachers expect at each target token of `PART` pairs
    prepared/teachers-HASH/hashes.json     the hash of each of these files
    prepared/unlabelled/                   the pairs of `data.unlabelled_source`, prepared like the others
    prepared/unlabelled/teachers-HASH/     what the teachers expect there

A row holds the tokens that the teachers find likeliest; all other tokens share the rest of the probability equally.
Each file is written only when it is complete, so that a second run makes only the missing files.

Papers: Hinton et al. 2015, "Distilling the Knowledge in a Neural Network", §2; Kim and Rush 2016, "Sequence-Level
Knowledge Distillation", §3.1.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.corpus.batching import TEACHERS, Examples, TeacherTokens, batches
from glassformer.corpus.files import files_of, is_url
from glassformer.corpus.mixture import MixedExamples
from glassformer.corpus.shards import Sentences, mapped, save_array
from glassformer.errors import ConfigError, quoted
from glassformer.jobs.kept_settings import stored_weights
from glassformer.jobs.manifest import Manifest
from glassformer.jobs.preparation import OnProgress, Prepared, prepare_all
from glassformer.jobs.run_reports import ProgressReport
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import OTHER_SPLITS, Configuration
from glassformer.system.files import hash_of_bytes, hash_of_file, read_json, write_json, write_safely
from glassformer.system.locks import locked
from glassformer.text.vocabulary import PAD_ID

__all__ = ["expectations", "with_teachers"]

LIKELIEST = 8
"""Number of tokens that are kept at each position: nearly all of the probability."""
PART = 1 << 14
"""Number of pairs per file; a killed run loses at most these."""
BATCH_TOKENS = 2048
"""Maximum number of tokens of a batch: few enough for the probabilities of a large vocabulary."""
_UNLABELLED, _HASHES = "unlabelled", "hashes.json"


def with_teachers(
    prepared: Prepared, device: torch.device, on_progress: OnProgress = lambda _: None, *, whole: bool = False
) -> Prepared:
    """Return a prepared corpus with what `training.teachers` expect at each target token, if there are teachers.

    The pairs of `data.unlabelled_source` are mixed in; their targets are outputs of the teachers. Finished files are
    not made again. `whole`: another process of this job has just done this.

    Raises:
        ConfigError: a setting is impossible, a teacher has different vocabularies, or the folder holds a corpus
            prepared with different settings.
        DataError: the unlabelled pairs cannot be read.
        CheckpointError: a teacher is missing or damaged, or a file cannot be written.
    """
    configuration = prepared.configuration
    _check(configuration)
    names = files_of(configuration.training.teachers)
    if not names or not names[0]:
        return prepared
    data, folder = configuration.data, prepared.folder
    teaching = _Teaching(_runs(names, prepared), device, on_progress, whole)
    train = teaching.taught(prepared.train, configuration.training.teacher_weight, folder)
    if data.unlabelled_source:
        others = {f"{split}_{side}": "" for split in OTHER_SPLITS for side in ("source", "target")}
        own: dict[str, Any] = {"source": data.unlabelled_source, "target": data.unlabelled_target}
        alone = replace(configuration, data=replace(data, **(own | others)))
        unlabelled = prepare_all(alone, folder / _UNLABELLED, on_progress, whole=whole)
        train = MixedExamples(
            source=train.source,
            target=train.target,
            teachers=train.teachers,
            trust=train.trust,
            other=teaching.taught(unlabelled, 1.0, folder / _UNLABELLED),
            share=data.unlabelled_share,
        )
    return replace(prepared, train=train)


def _check(configuration: Configuration) -> None:
    """Raise an error for settings that have no effect, or no meaning, beside each other."""
    data, training = configuration.data, configuration.training
    if not training.teachers:
        if data.unlabelled_source:
            raise ConfigError(
                f"data.unlabelled_source: expected no value without training.teachers, got "
                f"{quoted(data.unlabelled_source)}; set training.teachers to the runs whose outputs these are"
            )
        return
    if data.replay_source:
        raise ConfigError(
            f"data.replay_source: expected no value with training.teachers, got {quoted(data.replay_source)}; leave "
            "one of them out"
        )
    if configuration.tokenizer.sampling not in (0, "auto"):
        raise ConfigError(
            f"tokenizer.sampling: expected 0 with training.teachers, which know only one way to cut a text, got "
            f"{configuration.tokenizer.sampling}; leave it out"
        )
    if is_url(data.prepared):
        raise ConfigError(
            f"data.prepared: expected a folder, because training.teachers adds to it, got {quoted(data.prepared)}"
        )


def _runs(names: Sequence[str], prepared: Prepared) -> list[Bundle]:
    """Return the teachers; raise an error if one of them does not share the corpus's vocabularies."""
    runs, reverse = [Bundle.load(name) for name in names], prepared.configuration.data.reverse_target
    for run in runs:
        if run.configuration.data.reverse_target != reverse:
            raise ConfigError(
                f"training.teachers: expected runs with data.reverse_target = {str(reverse).lower()}, as here, got "
                f"{run.folder}; leave that run out"
            )
        for side in ("source", "target"):
            theirs, ours = (getattr(one, f"{side}_tokenizer") for one in (run, prepared))
            if theirs.tokens(range(len(theirs))) != ours.tokens(range(len(ours))):
                raise ConfigError(
                    f"training.teachers: expected runs with the {side} vocabulary of this run, got {run.folder}; "
                    "`glassformer distil --level token` gives a student the vocabularies of its teachers"
                )
    return runs


@dataclass(frozen=True, slots=True)
class _Teaching:
    """The teachers of a job, and how their distributions are made."""

    runs: Sequence[Bundle]
    device: torch.device
    on_progress: OnProgress
    whole: bool

    def taught(self, examples: Examples, weight: float, folder: Path) -> Examples:
        """Return examples with what the teachers expect, of this weight; `folder` holds the prepared examples."""
        lengths = np.fromiter(map(len, examples.target), np.int64, len(examples))
        rows = {f"{first // PART:05d}.npy": slice(first, first + PART) for first in range(0, len(lengths), PART)}
        place = folder / self._name(folder)
        with nullcontext() if self.whole else locked(place, lambda: self._say(f"waiting for {place}", 0, 0)):
            self._ensure(place, rows, examples)
        teachers = Sentences([(mapped(place / file), np.cumsum(lengths[some])) for file, some in rows.items()])
        return replace(examples, teachers=teachers, trust=np.full(len(examples), weight, np.float32))

    def _name(self, folder: Path) -> str:
        """Return a name that is different for different teachers, or different examples in the folder."""
        manifest = Manifest.load(folder)
        hashes = [hash_of_file(stored_weights(run.folder)) for run in self.runs]
        hashes += [hash for shard in manifest.shards for hash in shard.hashes] if manifest else []
        return f"teachers-{hash_of_bytes(' '.join(hashes).encode())[:16]}"

    def _ensure(self, place: Path, rows: Mapping[str, slice], examples: Examples) -> None:
        """Write the missing and the damaged files."""
        path = place / _HASHES
        hashes = read_json(path)["hashes"] if path.exists() else {}
        missing = [file for file in rows if not _is_whole(place / file, hashes.get(file))]
        if not missing:
            return
        models = [run.model().to(self.device) for run in self.runs]
        for done, file in enumerate(missing):
            self._say("asking the teachers", done * PART, len(missing) * PART)
            some = Examples(source=examples.source[rows[file]], target=examples.target[rows[file]])
            save_array(place / file, expectations(models, some, self.device))
            hashes[file] = hash_of_file(place / file)
            write_safely(path, lambda temporary: write_json(temporary, {"hashes": hashes}))

    def _say(self, stage: str, done: int, total: int) -> None:
        self.on_progress(ProgressReport(stage=stage, done=done, total=total, unit="pairs"))


@torch.no_grad()
def expectations(models: Sequence[Transformer], examples: Examples, device: torch.device) -> TeacherTokens:
    """Return what the models, on average, expect at each target token of the examples, (tokens, K), in their order."""
    found: list[TeacherTokens] = [np.zeros((0, LIKELIEST), TEACHERS)] * len(examples)
    for batch in batches(examples, BATCH_TOKENS, seed=0, epoch=0):
        source, target_input = (torch.from_numpy(ids).to(device) for ids in (batch.source, batch.target_input))
        real = torch.from_numpy(batch.target_output != PAD_ID).to(device)
        probs = torch.zeros((), device=device)
        for model in models:
            output = model.decoder_output(target_input, model.encode(source), source)[real]
            probs = probs + model.logits(output).softmax(-1, dtype=torch.float32) / len(models)
        ends = np.count_nonzero(batch.target_output != PAD_ID, axis=1).cumsum()
        for row, tokens in zip(batch.rows.tolist(), np.split(_likeliest(probs), ends[:-1]), strict=True):
            found[row] = tokens
    return np.concatenate(found)


def _likeliest(probs: Float[Tensor, "N V"]) -> TeacherTokens:
    """Return the likeliest tokens of each distribution, (N, K), with what is left when the others share equally."""
    size = probs.shape[1]
    top = probs.topk(min(LIKELIEST, size))
    rest = (1 - top.values.sum(1, keepdim=True)) / max(size - LIKELIEST, 1)
    tokens = np.zeros(top.indices.shape, TEACHERS)
    tokens["id"] = top.indices.cpu().numpy()
    tokens["share"] = (top.values - rest).clamp(min=0).cpu().numpy()
    return tokens


def _is_whole(path: Path, hash: str | None) -> bool:
    return path.is_file() and hash_of_file(path) == hash
