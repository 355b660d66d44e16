"""Calibrate a run's guards and its confidence on outputs of its own search."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import DataError
from glassformer.evaluation.confidence import Calibration, fit_calibration, too_few
from glassformer.evaluation.guards import GUARDS, Guards, above, common_thresholds, medians_of
from glassformer.evaluation.items import Items
from glassformer.evaluation.metrics import METRICS
from glassformer.evaluation.signals import ModelOutput, Usual, signals
from glassformer.jobs.options import CLOSE_CHRF, FLAGGED
from glassformer.recipes.configuration import settings_of_outputs
from glassformer.system.files import remove
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

__all__ = ["CALIBRATED_TEXTS", "calibrate", "fewest_texts", "forget_guards", "guards_of"]

CALIBRATED_TEXTS = 2000
"""Maximum number of texts that commands translate to calibrate guards."""
TEXTS_AT_ONCE = 100
"""Number of texts that `calibrate` translates between two calls of `stop`."""


def calibrate(
    translator: Translator,
    items: Items,
    *,
    flagged: float = FLAGGED,
    close_chrf: float = CLOSE_CHRF,
    stop: Callable[[], bool] = lambda: False,
) -> Guards:
    """Translate some texts, and return guards calibrated on the translations. The guards are not saved.

    Each guard's threshold is a quantile of the guard's values for all outputs. The quantile is the same for all guards:
    the lowest quantile with which all guards together flag at most a share `flagged` of the outputs. `Guards.flagged`
    and `Calibration.error` are measured on halves of the outputs: each half is judged by the thresholds and the
    calibration of the other half.

    Args:
        translator: the run, with the search to calibrate.
        items: the texts; a confidence needs references (see `too_few`).
        flagged: largest share of the outputs that are flagged, from 0 to 1.
        close_chrf: smallest chrF, from 0 to 100, at which an output counts as close to its reference.
        stop: returns True to stop translating; the guards are then calibrated on the outputs so far.

    Raises:
        DataError: there are too few texts that can be translated.
    """
    found: list[Translation] = []
    while len(found) < len(items.sources) and not stop():
        texts = items.sources[len(found) : len(found) + TEXTS_AT_ONCE]
        found += translator.translate(texts, guards=False, retry=False, split=False, recase=False)
    judged = [place for place, one in enumerate(found) if one.read]  # no model read the texts that were copied
    if len(judged) < fewest_texts(flagged):
        raise DataError(
            f"calibration: expected at least {fewest_texts(flagged)} texts that can be translated, got {len(judged)}; "
            "give more texts, or flag a larger share"
        )
    outputs = translator.outputs([items.sources[place] for place in judged], [found[place] for place in judged])
    search = settings_of_outputs(replace(translator.bundle.configuration.decoding, retry=False))
    return guards_of(outputs, [items.references[place] for place in judged], search, flagged, close_chrf)


def guards_of(
    outputs: Sequence[ModelOutput],
    references: Sequence[Sequence[str]],
    search: Mapping[str, Any],
    flagged: float = FLAGGED,
    close_chrf: float = CLOSE_CHRF,
) -> Guards:
    """Return guards calibrated on given outputs.

    `search` holds the decoding settings of the outputs. `flagged` and `close_chrf` are as in `calibrate`.
    """
    usual = Usual.of(outputs)
    values = [signals(one, usual) for one in outputs]
    thresholds, quantile = common_thresholds(values, flagged)
    fitted, unfitted = _confidence(outputs, references, close_chrf)
    return Guards(
        usual=usual,
        thresholds=thresholds,
        medians=medians_of(values),
        quantile=quantile,
        flagged=_flagged_elsewhere(values, flagged),
        outputs=len(outputs),
        search=search,
        **fitted,
        unfitted=unfitted,
        close_chrf=close_chrf,
    )


def fewest_texts(flagged: float = FLAGGED) -> int:
    """Return the number of texts that calibration needs: a share `flagged` of the texts must be at least one text."""
    return int(np.ceil(1 / flagged))


def forget_guards(folder: Path) -> None:
    """Remove the guards of a run whose weights are about to change: the guards were calibrated with the old weights."""
    remove(folder / GUARDS)


def _confidence(
    outputs: Sequence[ModelOutput], references: Sequence[Sequence[str]], close_chrf: float
) -> tuple[dict[str, Calibration], dict[str, str]]:
    """Return the calibrations ("exact", "close") that can be fitted, and why each missing one cannot be fitted."""
    if not all(references):
        return {}, dict.fromkeys(("exact", "close"), "the texts have no references")
    log_probs, texts = [one.token_log_probs for one in outputs], [one.target for one in outputs]
    exact, chrf = (_line_scores(name, texts, references) for name in ("exact", "chrf"))
    right = {"exact": (exact >= 100).tolist(), "close": (chrf >= close_chrf).tolist()}
    names = {"exact": "exactly right", "close": f"close (chrF ≥ {close_chrf:g})"}
    unfitted = {part: why for part, name in names.items() if (why := too_few(right[part], name))}
    return {part: fit_calibration(log_probs, right[part]) for part in names if part not in unfitted}, unfitted


def _line_scores(name: str, texts: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return the value of a metric for each line."""
    counted = METRICS[name].count_in(texts, references)
    return counted.values(counted.lines)


def _flagged_elsewhere(values: Sequence[Mapping[str, float]], share: float) -> float:
    """Return the share of the outputs that are flagged if each half is judged by the other half's thresholds."""
    halves = (values[::2], values[1::2])
    thresholds = [common_thresholds(half, share)[0] for half in halves]
    pairs = zip(halves, reversed(thresholds), strict=True)
    return sum(bool(above(one, some)) for half, some in pairs for one in half) / len(values)
