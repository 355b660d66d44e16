"""Combinations: a run, the models that rescore its outputs, and the weight of each model, stored in a small file.

combination.json the folders, relative to the file's folder; the beam size; the weights; what `tune` measured
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
"""The name of a combination's file in the folder of its run."""
SUFFIX = ".json"
"""The suffix of a combination's file, which distinguishes the file from a run's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinationWeights:
    """The weight of each feature. The score of a candidate is the sum of its features, each times its weight."""

    run: float = 1.0
    """Weight of the log probability that the run, or its ensemble, gives to the candidate."""
    rescore: tuple[float, ...] = ()
    """Weights of the log probabilities that the rescoring models give, one for each model."""
    length: float = 0.0
    """Number added for each of the candidate's tokens, including `<eos>`, because long outputs have low log
    probabilities."""
    confidence: float = 1.0
    """Weight of the logarithm of the lexicon's confidence, for a candidate that the lexicon proposes."""
    listed: float = 4.0
    """Number added for a candidate that the lexicon proposes."""

    @classmethod
    def equal(cls, models: int) -> "CombinationWeights":
        """Return the weights before tuning, with the weight 1 for each of the `models` rescoring models."""
        return cls(rescore=(1.0,) * models)

    @classmethod
    def of(cls, vector: Sequence[float]) -> "CombinationWeights":
        """Return the weights from a vector in the order of the property `vector`."""
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
    """Folder of the run, whose tokens, settings and test sets the combination uses."""
    ensemble: tuple[Path, ...] = ()
    """Folders of runs whose probabilities are averaged with the run's probabilities at each step."""
    rescore: tuple[Path, ...] = ()
    """Folders of runs that score every candidate. A run that translates in the opposite direction scores the source,
    given the candidate. Each other run also proposes candidates."""
    lexicon: bool = False
    """Whether the run's lexicon proposes candidates by analogy with its training words, and gives them a confidence."""
    beam_size: int | None = None
    """Number of candidates from each model; None = the run's beam size."""
    weights: CombinationWeights = field(default_factory=CombinationWeights)
    tuned: Mapping[str, Any] = field(default_factory=dict)
    """What `tune` measured; empty if the combination has not been tuned."""

    def __post_init__(self) -> None:
        """Check that each rescoring model has a weight.

        Raises:
            ConfigError: the number of weights is not the number of rescoring models.
        """
        if len(self.weights.rescore) != len(self.rescore):
            raise ConfigError(
                f"weights.rescore: expected {len(self.rescore)} numbers, one for each model of `rescore`, got "
                f"{len(self.weights.rescore)}; run `glassformer tune` again"
            )

    @property
    def models(self) -> tuple[Any, ...]:
        """Values that identify the models; weights fit every combination with equal values. Folders are resolved."""
        return *(one.resolve() for one in self.folders), len(self.ensemble), self.lexicon

    @classmethod
    def of(
        cls, run: Path, *, ensemble: Sequence[Path] = (), rescore: Sequence[Path] = (), lexicon: bool = False
    ) -> "Combination":
        """Return the combination of these models, with the run's stored weights if they fit, else equal weights.

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
        """Return the combination in a file that `tune` wrote, or the combination of a run's folder and these models.

        Raises:
            CheckpointError: the file is damaged.
            ConfigError: the file already names all models, and further models are given.
        """
        path, ensemble, rescore = run_folder(path), tuple(map(run_folder, ensemble)), tuple(map(run_folder, rescore))
        combination = cls.load(path) if path.suffix == SUFFIX and path.is_file() else cls(run=path)
        if combination.rescores and (ensemble or rescore or lexicon):
            raise ConfigError(
                f"{path} names all models of its combination; leave out the ensemble, rescoring models and the lexicon"
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
        """The decoding settings that differ from the run's settings."""
        return {} if self.beam_size is None else {"beam_size": self.beam_size}


def _numbers(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, list) else float(value)
