"""Calibrate a run's guards and its confidence on outputs of its own search."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import DataError
from glassformer.evaluation.items import Items
from glassformer.evaluation.metrics import METRICS
from glassformer.guards.confidence import Calibration, fit_calibration
from glassformer.guards.guards import Guards, above, common_thresholds, of_search
from glassformer.guards.signals import Usual, signals
from glassformer.jobs.options import CLOSE_CHRF, FLAGGED
from glassformer.translator import Translation, Translator

__all__ = ["FEWEST_OF_CONFIDENCE", "calibrate"]

FEWEST_OF_CONFIDENCE = 500
"""Minimum number of outputs with references for a confidence: with fewer, a bin of a tenth says little."""


def calibrate(
    translator: Translator, items: Items, *, flagged: float = FLAGGED, close_chrf: float = CLOSE_CHRF
) -> Guards:
    """Return guards calibrated on the translations of some texts, which are not yet stored.

    The thresholds are taken from all outputs: one common quantile, the lowest with which all guards together flag at
    most `flagged` of them. `Guards.flagged` and `Calibration.error` are measured on halves, each with what the other
    half gives.

    Args:
        translator: the run, with the search to calibrate.
        items: the texts; the confidence is fitted if there are at least FEWEST_OF_CONFIDENCE, all with references.
        flagged: share of the outputs that are flagged, from 0 to 1.
        close_chrf: the chrF, from 0 to 100, of an output that is close to its reference.

    Raises:
        DataError: there are too few texts that can be translated.
    """
    found = translator.translate(items.sources, guards=False)
    judged = [place for place, one in enumerate(found) if one.tokens]
    if len(judged) * flagged < 1:
        raise DataError(
            f"calibration: expected at least {int(np.ceil(1 / flagged))} texts that can be translated, got "
            f"{len(judged)}; give more texts, or flag a larger share"
        )
    outputs = translator.outputs([items.sources[place] for place in judged], [found[place] for place in judged])
    usual = Usual.of(outputs)
    values = [signals(one, usual) for one in outputs]
    thresholds, quantile = common_thresholds(values, flagged)
    references = [items.references[place] for place in judged]
    exact = close = None
    if all(references) and len(judged) >= FEWEST_OF_CONFIDENCE:
        exact, close = _confidence([found[place] for place in judged], references, close_chrf)
    return Guards(
        usual=usual,
        thresholds=thresholds,
        quantile=quantile,
        flagged=_flagged_elsewhere(values, flagged),
        outputs=len(outputs),
        search=of_search(translator.bundle.configuration.decoding),
        exact=exact,
        close=close,
        close_chrf=close_chrf,
    )


def _confidence(
    found: Sequence[Translation], references: Sequence[Sequence[str]], close_chrf: float
) -> tuple[Calibration, Calibration]:
    log_probs = [one.token_log_probs for one in found]
    texts = [one.text for one in found]
    exact, chrf = (_line_scores(name, texts, references) for name in ("exact", "chrf"))
    is_exact, is_close = (exact >= 100).tolist(), (chrf >= close_chrf).tolist()
    return fit_calibration(log_probs, is_exact), fit_calibration(log_probs, is_close)


def _line_scores(name: str, texts: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return a metric of each line."""
    counted = METRICS[name].count_in(texts, references)
    return counted.values(counted.lines)


def _flagged_elsewhere(values: Sequence[Mapping[str, float]], share: float) -> float:
    """Return the share of the outputs that are flagged, each half by thresholds from the other half."""
    halves = (values[::2], values[1::2])
    thresholds = [common_thresholds(half, share)[0] for half in halves]
    pairs = zip(halves, reversed(thresholds), strict=True)
    return sum(bool(above(one, some)) for half, some in pairs for one in half) / len(values)
