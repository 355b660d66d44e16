"""How fast a trained model translates on this machine, where its time goes, and what would be faster."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from glassformer.bundle import Bundle
from glassformer.decoding.engine import EngineName, Quantization
from glassformer.errors import ConfigError, DataError
from glassformer.machine import cores
from glassformer.run.evaluation import held_out
from glassformer.text.corpus import read_lines
from glassformer.training.estimate import forward_flops
from glassformer.training.precision import matrix_speed
from glassformer.training.speed import Trial, advice_of_trials
from glassformer.training.work import Work, profiled, shares, table
from glassformer.translator import Translation, Translator

__all__ = ["Pace", "TranslationSpeed", "translation_speed"]

MOST = 2000
"""Lines of a file that are used at most."""
FIRST = 16
"""Lines that are translated first, to know how many there is time for; they do not count."""
LINE_BY_LINE = 3.0
"""How much faster lines have to be together than one by one before it is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast some lines were translated in one way."""

    beam_size: int
    together: bool
    """Whether in one call, or each line in a call of its own."""
    lines: int
    seconds: float
    tokens: int
    """Of the translations, `<eos>` included."""

    @property
    def lines_per_second(self) -> float:
        """Lines per second."""
        return self.lines / self.seconds

    @property
    def tokens_per_second(self) -> float:
        """Tokens of the translations per second."""
        return self.tokens / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationSpeed:
    """What translating with a run reaches on this machine."""

    origin: str
    """What was translated, in words."""
    threads: int
    paces: tuple[Pace, ...]
    """First as the run's configuration searches, all lines together; then line by line, and the same greedily."""
    flops_per_second: float
    """Floating-point operations of the first pace: of the matrix products that the lines and their hypotheses need."""
    matrix_flops_per_second: float
    """What the machine does in one large product in float32, with as many threads."""
    matrix_share: float
    """The share of that which translating reaches."""
    work: tuple[Work, ...]
    """Where the time of a sentence goes, in the first pace; the shares add up to 1."""
    trials: tuple[Trial, ...]
    advice: tuple[str, ...]
    """What to change, with what was measured as the reason; a sentence each."""


def translation_speed(
    run: str | Path,
    file: str | Path | None = None,
    *,
    beam_size: int | None = None,
    seconds: float = 30.0,
    on_progress: Callable[[str], object] = lambda _: None,
) -> TranslationSpeed:
    """Translate for about so many seconds, and return how fast that is and what would be faster.

    What is translated are the lines of a file, or else what the run can be tested on.

    Raises:
        CheckpointError: the run is missing or damaged.
        ConfigError: no file is given, and the run's configuration names nothing that it could be tested on.
        DataError: the file cannot be read, or none of its lines can be translated.
    """
    on_progress("loading the model")
    bundle = Bundle.load(run)
    translator = Translator(bundle, bundle.model())
    lines, origin = _lines(bundle, file)
    size = bundle.configuration.decoding.beam_size if beam_size is None else beam_size
    each = seconds / 8
    measured = _Measured(translator, lines, each)
    paces = []
    for beam in dict.fromkeys((size, 1)):
        for together in (True, False):
            on_progress(f"beam {beam}, {'all lines together' if together else 'line by line'}")
            paces.append(measured.pace(beam, together=together))
    first = paces[0]
    on_progress("looking where the time goes")
    work = _work(translator, lines[: first.lines], size)
    ceiling = matrix_speed(seconds=min(each, 1.0))
    flops = _flops(bundle, measured.translations, size) / first.seconds
    trials = [_greedy(first, paces), *_trials(bundle, measured, first, on_progress)]
    tried = tuple(trial for trial in trials if trial is not None)
    return TranslationSpeed(
        origin=origin,
        threads=torch.get_num_threads(),
        paces=tuple(paces),
        flops_per_second=flops,
        matrix_flops_per_second=ceiling,
        matrix_share=flops / ceiling,
        work=table(work, first.seconds / first.lines),
        trials=tried,
        advice=(*advice_of_trials(tried), *_together(paces)),
    )


def _lines(bundle: Bundle, file: str | Path | None) -> tuple[list[str], str]:
    """Return lines to translate, and what they are."""
    if file is not None:
        lines, name = read_lines(file), str(file)
    else:
        name, items = next(iter(_held_out(bundle)))
        lines, name = list(items), f"the run's {name} set"
    return lines[:MOST], f"{min(len(lines), MOST):,} lines of {name}"


def _held_out(bundle: Bundle) -> list[tuple[str, tuple[str, ...]]]:
    try:
        sets = held_out(bundle.configuration)
    except (ConfigError, DataError) as error:
        raise ConfigError(f"{error}: or give a FILE to translate") from error
    return [(name, items.sources) for name, items in sorted(sets.items(), key=lambda one: one[0] != "test")]


class _Measured:
    """Measures how fast a translator is with some of the lines: as many as there is time for."""

    def __init__(self, translator: Translator, lines: Sequence[str], seconds: float) -> None:
        self.translator, self.lines, self.seconds = translator, lines, seconds
        self.translations: list[tuple[str, Translation]] = []
        """Of the first pace: each line that could be translated, and what became of it."""

    def pace(self, beam_size: int, *, together: bool, lines: int = 0, translator: Translator | None = None) -> Pace:
        """Return the pace of so many lines, or of as many as there is time for."""
        translator = translator or self.translator
        calls = _together_calls if together else _single_calls
        spent, _ = _timed(translator, calls(self.lines[:FIRST]), beam_size)
        fitting = lines or max(int(self.seconds / spent * min(FIRST, len(self.lines))), 1)
        used = self.lines[:fitting]
        spent, results = _timed(translator, calls(used), beam_size)
        tokens = sum(len(result.tokens) for result in results)
        if not tokens:
            raise DataError("none of the lines can be translated: are they blank, or longer than 1,024 tokens?")
        if not self.translations:
            self.translations = [pair for pair in zip(used, results, strict=True) if pair[1].tokens]
        return Pace(beam_size=beam_size, together=together, lines=len(used), seconds=spent, tokens=tokens)


def _together_calls(lines: Sequence[str]) -> list[Sequence[str]]:
    return [lines]


def _single_calls(lines: Sequence[str]) -> list[Sequence[str]]:
    return [[line] for line in lines]


def _timed(translator: Translator, calls: Sequence[Sequence[str]], beam_size: int) -> tuple[float, list[Translation]]:
    begun, results = time.perf_counter(), list[Translation]()
    for texts in calls:
        results += translator.translate(texts, beam_size=beam_size)
    return time.perf_counter() - begun, results


def _work(translator: Translator, lines: Sequence[str], beam_size: int) -> dict[str, float]:
    """Return the share of each kind of work in translating these lines together."""
    whole = 0.0

    def work() -> None:
        nonlocal whole
        whole, _ = _timed(translator, _together_calls(lines), beam_size)

    seconds = profiled(translator.model, work)
    return shares(seconds, whole)


def _flops(bundle: Bundle, translations: Sequence[tuple[str, Translation]], beam_size: int) -> float:
    """Return the operations of translations: each source is read once, and each hypothesis of the beam is written."""
    config, total = bundle.model_config, 0.0
    for line, translation in translations:
        source = len(bundle.source_tokenizer.encode(line)) + 1
        read = forward_flops(config, source, 0)
        total += read + beam_size * (forward_flops(config, source, len(translation.tokens)) - read)
    return total


def _greedy(first: Pace, paces: Sequence[Pace]) -> Trial | None:
    """Return what greedy search gains, where a beam is configured."""
    if first.beam_size == 1:
        return None
    greedy = next(pace for pace in paces if pace.beam_size == 1 and pace.together)
    remark = "its translations are a little worse: `glassformer evaluate --beam-size 1` says how much"
    return _trial("--beam-size 1", greedy, first, remark)


def _trials(bundle: Bundle, measured: _Measured, first: Pace, on_progress: Callable[[str], object]) -> list[Trial]:
    """Return what several processes, another engine and matrices of fewer bits gain over the first pace."""
    trials = []
    for change, translator in _others(bundle):
        on_progress(f"trying {change}")
        trials.append(_other(change, translator, measured, first))
    return trials


def _others(bundle: Bundle) -> Iterator[tuple[str, Translator]]:
    """Yield what else could translate with the same model, by the options that choose it."""
    if cores() > 1:
        yield f"workers={cores()} (as `translate` does)", Translator.load(bundle.folder, workers=cores())
    ways: list[tuple[EngineName, Quantization]] = [("torch", "bfloat16"), ("torch", "int8")]
    if find_spec("ctranslate2"):
        ways += [("ctranslate2", "float32"), ("ctranslate2", "int8")]
    for engine, quantization in ways:
        try:
            translator = Translator.load(bundle.folder, engine=engine, quantization=quantization)
        except ConfigError:
            continue  # this engine has no such model
        yield f"--engine {engine} --quantization {quantization}", translator


def _other(change: str, translator: Translator, measured: _Measured, first: Pace) -> Trial:
    lines = [line for line, _ in measured.translations]
    _, results = _timed(translator, _together_calls(lines), first.beam_size)
    differing = sum(
        result.text != before.text for result, (_, before) in zip(results, measured.translations, strict=True)
    )
    remark = f"{differing} of {len(lines)} translations differ"
    # Only now: its processes have started.
    pace = measured.pace(first.beam_size, together=True, lines=first.lines, translator=translator)
    return _trial(change, pace, first, remark)


def _trial(change: str, pace: Pace, first: Pace, remark: str) -> Trial:
    speed = pace.lines_per_second
    return Trial(change=change, per_second=speed, gain=speed / first.lines_per_second, remark=remark)


def _together(paces: Sequence[Pace]) -> list[str]:
    """Return the remark that lines are faster together, if they are much."""
    together, single = paces[0], paces[1]
    gain = together.lines_per_second / single.lines_per_second
    if gain < LINE_BY_LINE:
        return []
    return [f"many lines in one call: {gain:.1f} times as fast as line by line, measured here"]
