"""Measure how fast a trained model translates on this machine, profile the translation, and find faster settings."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from benchmarks.speed.profiling import profiled, shares, table
from benchmarks.speed.rates import Speed, Trial, advice_of_trials
from glassformer.bundle import Bundle
from glassformer.corpus.readers import read_lines
from glassformer.decoding.options import EngineName, Quantization
from glassformer.errors import ConfigError, DataError
from glassformer.jobs.evaluation import held_out
from glassformer.jobs.speed.estimate import forward_flops
from glassformer.system.machine import cores
from glassformer.training.precision import matrix_speed
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

__all__ = ["Pace", "TranslationSpeed", "translation_speed"]

MOST_LINES = 2000
"""Maximum number of lines to translate."""
WARM_UP_LINES = 16
"""Number of lines translated first, to warm up and to estimate how many lines the time allows."""
LINE_BY_LINE = 3.0
"""Translating all lines in one call is advised if it is at least this many times as fast as line by line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The measured speed of translating lines with one beam size, together in one call or line by line."""

    beam_size: int
    together: bool
    """Whether all lines were translated in one call (true) or each line in a call of its own (false)."""
    lines: int
    seconds: float
    tokens: int
    """Number of tokens in the translations, including `<eos>`."""

    @property
    def lines_per_second(self) -> float:
        """Lines per second."""
        return self.lines / self.seconds

    @property
    def tokens_per_second(self) -> float:
        """Tokens of the translations per second."""
        return self.tokens / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationSpeed(Speed):
    """The speed of translating with a run on this machine.

    The fields of `Speed` describe the first pace, in float32.
    """

    paces: tuple[Pace, ...]
    """The paces with the configured beam (all lines together, then line by line), and the same with greedy search."""


def translation_speed(
    run: str | Path,
    file: str | Path | None = None,
    *,
    beam_size: int | None = None,
    device: str = "auto",
    seconds: float = 30.0,
    on_progress: Callable[[str], object] = lambda _: None,
) -> TranslationSpeed:
    """Translate for about `seconds` seconds; return the speed, with advice on faster settings.

    The lines come from `file` or, by default, from the run's test or validation set. `device` is as in
    `Translator.load`.

    Raises:
        CheckpointError: the run is missing or damaged.
        ConfigError: no file is given, and the run's configuration names no test or validation set.
        DataError: the file cannot be read, or none of its lines can be translated.
    """
    on_progress("loading the model")
    translator = Translator.load(run, device=device)
    bundle = translator.bundle
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
    on_progress("profiling")
    work = _work(translator, lines[: first.lines], size)
    ceiling = matrix_speed(seconds=min(each, 1.0))
    flops = _flops(bundle, measured.translations, size) / first.seconds
    trials = [_greedy(first, paces), *_trials(bundle, device, measured, first, on_progress)]
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
    """Return the lines to translate, and a description of the lines."""
    if file is not None:
        lines, name = read_lines(file), str(file)
    else:
        name, items = next(iter(_line_sets(bundle)))
        lines, name = list(items), f"the run's {name} set"
    return lines[:MOST_LINES], f"{min(len(lines), MOST_LINES):,} lines of {name}"


def _line_sets(bundle: Bundle) -> list[tuple[str, tuple[str, ...]]]:
    try:
        sets = held_out(bundle.configuration)
    except (ConfigError, DataError) as error:
        raise ConfigError(f"{error}; or give a FILE to translate") from error
    return [(name, items.sources) for name, items in sorted(sets.items(), key=lambda one: one[0] != "test")]


class _Measured:
    """A measurement of a translator's speed, on as many of the first lines as the time allows."""

    def __init__(self, translator: Translator, lines: Sequence[str], seconds: float) -> None:
        self.translator, self.lines, self.seconds = translator, lines, seconds
        self.translations: list[tuple[str, Translation]] = []
        """The lines of the first pace that could be translated, with their translations."""

    def pace(self, beam_size: int, *, together: bool, lines: int = 0, translator: Translator | None = None) -> Pace:
        """Return the pace of the first `lines` lines; 0 = as many lines as the time allows."""
        translator = translator or self.translator
        calls = _together_calls if together else _single_calls
        spent, _ = _timed(translator, calls(self.lines[:WARM_UP_LINES]), beam_size)
        fitting = lines or max(int(self.seconds / spent * min(WARM_UP_LINES, len(self.lines))), 1)
        used = self.lines[:fitting]
        spent, results = _timed(translator, calls(used), beam_size)
        tokens = sum(len(result.tokens) for result in results)
        if not tokens:
            longest = min(translator.bundle.configuration.decoding.max_source, translator.engine.longest)
            raise DataError(
                f"none of the lines can be translated: all are blank or longer than {longest:,} tokens; give a "
                "different FILE"
            )
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
        results += translator.translate(texts, beam_size=beam_size, guards=False)
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
    """Return the operations that encode each source once and decode each hypothesis of the beam."""
    config, total = bundle.model_config, 0.0
    for line, translation in translations:
        source = len(bundle.source_tokenizer.encode(line)) + 1
        read = forward_flops(config, source, 0)
        total += read + beam_size * (forward_flops(config, source, len(translation.tokens)) - read)
    return total


def _greedy(first: Pace, paces: Sequence[Pace]) -> Trial | None:
    """Return the speed-up of greedy search over the configured beam, or None if the beam size is 1."""
    if first.beam_size == 1:
        return None
    greedy = next(pace for pace in paces if pace.beam_size == 1 and pace.together)
    remark = "its translations are a little worse: `glassformer evaluate --beam-size 1` measures by how much"
    return Trial.over(first.lines_per_second, "--beam-size 1", greedy.lines_per_second, remark)


def _trials(
    bundle: Bundle, device: str, measured: _Measured, first: Pace, on_progress: Callable[[str], object]
) -> list[Trial]:
    """Return the speed-ups of several processes, another engine and quantized matrices over the first pace."""
    trials = []
    for change, translator in _others(bundle, device):
        on_progress(f"trying {change}")
        trials.append(_other(change, translator, measured, first))
    return trials


def _others(bundle: Bundle, device: str) -> Iterator[tuple[str, Translator]]:
    """Yield other translators of the same model, each with the options that select the translator."""
    if cores() > 1:
        yield f"workers={cores()} (as `translate` does)", Translator.load(bundle.folder, workers=cores(), device=device)
    ways: list[tuple[EngineName, Quantization]] = [("torch", "bfloat16"), ("torch", "int8")]
    if find_spec("ctranslate2"):
        ways += [("ctranslate2", "float32"), ("ctranslate2", "int8")]
    for engine, quantization in ways:
        try:
            translator = Translator.load(bundle.folder, engine=engine, quantization=quantization, device=device)
        except ConfigError:
            continue  # this engine does not support this quantization
        yield f"--engine {engine} --quantization {quantization}", translator


def _other(change: str, translator: Translator, measured: _Measured, first: Pace) -> Trial:
    lines = [line for line, _ in measured.translations]
    _, results = _timed(translator, _together_calls(lines), first.beam_size)
    differing = sum(
        result.text != before.text for result, (_, before) in zip(results, measured.translations, strict=True)
    )
    remark = f"{differing} of {len(lines)} translations differ"
    # Timed after the translations above, so that the worker processes are already running.
    pace = measured.pace(first.beam_size, together=True, lines=first.lines, translator=translator)
    return Trial.over(first.lines_per_second, change, pace.lines_per_second, remark)


def _together(paces: Sequence[Pace]) -> list[str]:
    """Return advice to translate lines together if this is much faster than line by line."""
    together, single = paces[0], paces[1]
    gain = together.lines_per_second / single.lines_per_second
    if gain < LINE_BY_LINE:
        return []
    return [f"many lines in one call: {gain:.1f} times as fast as line by line, measured here"]
