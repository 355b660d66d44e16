"""A combination: a run, the models that rescore its outputs, and the weight of each. Kept in a small file.

combination.json          the folders, relative to the file's own; the beam size; the weights; what `tune` measured
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from glassformer.built_in import run_folder
from glassformer.errors import CheckpointError, ConfigError
from glassformer.system.files import read_json, write_json, write_safely

__all__ = ["COMBINATION", "SUFFIX", "Combination", "CombinationWeights"]

COMBINATION = "combination.json"
"""The file's name in the folder of its run."""
SUFFIX = ".json"
"""The suffix of every such file, which distinguishes it from the folder of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinationWeights:
    """How much each model counts. The score of a candidate is the sum of its features, each times its weight."""

    run: float = 1.0
    """Of the log probability that the run, or its ensemble, gives to the candidate."""
    rescore: tuple[float, ...] = ()
    """Of the log probability by each rescoring model."""
    length: float = 0.0
    """Added for each token of the run, including `<eos>`; long outputs have low log probabilities."""
    confidence: float = 1.0
    """Of the logarithm of the lexicon's confidence, for a candidate that the lexicon proposes."""
    listed: float = 4.0
    """Added for a candidate that the lexicon proposes."""

    @classmethod
    def equal(cls, models: int) -> "CombinationWeights":
        """Return the weights before tuning, which are the same for all models."""
        return cls(rescore=(1.0,) * models)

    @classmethod
    def of(cls, vector: Sequence[float]) -> "CombinationWeights":
        """Return the weights of a vector in the order of `vector`."""
        run, *rescore, length, confidence, listed = vector
        return cls(run=run, rescore=tuple(rescore), length=length, confidence=confidence, listed=listed)

    @property
    def vector(self) -> tuple[float, ...]:
        """The weights in the order of `Candidates.features`."""
        return self.run, *self.rescore, self.length, self.confidence, self.listed

    @property
    def place_of_length(self) -> int:
        """The index of `length` in `vector`."""
        return 1 + len(self.rescore)


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """A run, the models that rescore its outputs, and their weights."""

    run: Path
    """Folder of the run; its tokens, settings and test sets are the combination's."""
    ensemble: tuple[Path, ...] = ()
    """Runs whose probabilities are averaged with the run's at each step."""
    rescore: tuple[Path, ...] = ()
    """Runs that score every candidate. A run of the opposite direction scores the source, given the candidate; all
    others also propose candidates."""
    lexicon: bool = False
    """Whether the run's lexicon proposes and weighs candidates by analogy with its training words."""
    beam_size: int | None = None
    """Number of candidates of each model; None = the run's beam size."""
    weights: CombinationWeights = field(default_factory=CombinationWeights)
    tuned: Mapping[str, Any] = field(default_factory=dict)
    """What `tune` measured; empty before it."""

    def __post_init__(self) -> None:
        """Check that each model has a weight.

        Raises:
            ConfigError: the numbers of models and weights differ.
        """
        if len(self.weights.rescore) != len(self.rescore):
            raise ConfigError(
                f"weights.rescore: expected {len(self.rescore)} numbers, one for each model of `rescore`, got "
                f"{len(self.weights.rescore)}"
            )

    @property
    def models(self) -> tuple[Any, ...]:
        """What decides which weights fit: the models, with the folders resolved."""
        return *(one.resolve() for one in self.folders), len(self.ensemble), self.lexicon

    @classmethod
    def of(
        cls, run: Path, *, ensemble: Sequence[Path] = (), rescore: Sequence[Path] = (), lexicon: bool = False
    ) -> "Combination":
        """Return the combination of these models: the one stored with the run, if it consists of them, or else one with
        equal weights.

        Raises:
            CheckpointError: the stored combination is damaged.
        """
        weights = CombinationWeights.equal(len(rescore))
        new = cls(run=run, ensemble=tuple(ensemble), rescore=tuple(rescore), lexicon=lexicon, weights=weights)
        stored = cls.load(run / COMBINATION) if (run / COMBINATION).exists() else None
        return (
            replace(new, weights=stored.weights, tuned=stored.tuned) if stored and stored.models == new.models else new
        )

    @classmethod
    def named(
        cls, path: Path, *, ensemble: Sequence[Path] = (), rescore: Sequence[Path] = (), lexicon: bool = False
    ) -> "Combination":
        """Return the combination that a user names: the one in a file that `tune` wrote, or a run with these models.

        Raises:
            CheckpointError: the file is damaged.
            ConfigError: the file names all models already.
        """
        path, ensemble, rescore = run_folder(path), tuple(map(run_folder, ensemble)), tuple(map(run_folder, rescore))
        combination = cls.load(path) if path.suffix == SUFFIX and path.is_file() else cls(run=path)
        if combination.rescores and (ensemble or rescore or lexicon):
            raise ConfigError(
                f"{path} names all models of its combination: leave out the ensemble, rescoring models and the lexicon"
            )
        if rescore or lexicon:
            return cls.of(path, ensemble=ensemble, rescore=rescore, lexicon=lexicon)
        return replace(combination, ensemble=(*combination.ensemble, *ensemble))

    @classmethod
    def load(cls, path: Path) -> "Combination":
        """Return the combination in a file.

        Raises:
            CheckpointError: the file is missing or damaged.
        """
        content = read_json(path)
        place = path.parent
        try:
            weights = {name: _numbers(value) for name, value in content["weights"].items()}
            return cls(
                run=place / content["run"],
                ensemble=tuple(place / one for one in content["ensemble"]),
                rescore=tuple(place / one for one in content["rescore"]),
                lexicon=bool(content["lexicon"]),
                beam_size=None if content["beam_size"] is None else int(content["beam_size"]),
                weights=CombinationWeights(**weights),
                tuned=dict(content["tuned"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(
                f"{path}: expected a combination, as `glassformer tune` writes it, got {error!r}; run `glassformer "
                "tune` again, or give the folder of a run"
            ) from error

    def save(self, path: Path) -> None:
        """Write the combination into a file; the folders are written relative to it.

        Raises:
            CheckpointError: the file cannot be written.
        """

        def relative(folder: Path) -> str:
            return os.path.relpath(folder, path.parent)

        content = asdict(self) | {
            "run": relative(self.run),
            "ensemble": list(map(relative, self.ensemble)),
            "rescore": list(map(relative, self.rescore)),
        }
        write_safely(path, lambda temporary: write_json(temporary, content))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of all models."""
        return self.run, *self.ensemble, *self.rescore

    @property
    def rescores(self) -> bool:
        """Whether other models or a lexicon rescore the outputs of the run."""
        return bool(self.rescore) or self.lexicon

    @property
    def settings(self) -> dict[str, Any]:
        """The decoding settings that differ from the run's."""
        return {} if self.beam_size is None else {"beam_size": self.beam_size}


def _numbers(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, list) else float(value)
