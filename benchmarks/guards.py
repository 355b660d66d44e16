"""Measure how well guards find known failures, how well second searches mend loops, and how accurate the confidence is:
`python -m benchmarks.guards --demo RUN --multi30k RUN --young RUN --data DIR`.

Some failures are made: the output of a different source, a phrase that is repeated 3 to 10 times, an output without a
third of its words, a copied source, a changed number, and a source in a different language. Other failures are the
model's own. Outputs of perturbed sources (with a rare token in front, or with the letters of their words swapped) count
as hallucinations if their chrF against the output of the unperturbed source is below 20 (Lee et al. 2018). Models
trained for few updates write loops.

The model scores each made output like an output of its own. Outputs for validation and test pairs are split into
halves: guards calibrated on one half judge the other half. In tables that say "test", guards are calibrated on the
validation outputs, as at the end of training.

RUNs are finished runs: a demo run and runs of the recipe multi30k-de-en; runs for --young were trained for few updates.
DIR is the folder of Multi30k's files. Writes results/guards.json. Takes ten minutes on a busy machine.
"""

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import as_command
from benchmarks.results import described, machine, read, table, write
from glassformer.corpus.readers import read_lines
from glassformer.corpus.tasks import TASKS
from glassformer.decoding.engine import AttentionRows
from glassformer.evaluation.confidence import calibration_error
from glassformer.evaluation.guards import Guards
from glassformer.evaluation.metrics import sentence_scores
from glassformer.evaluation.signals import SIGNALS, ModelOutput, signals
from glassformer.jobs.calibration import guards_of
from glassformer.recipes.configuration import settings_of_outputs
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

HALLUCINATED = 20.0
"""An output of a perturbed source is a hallucination if its chrF against the unperturbed output is below this value."""
LOOP = 3.0
"""An output is a loop if it repeats more tokens than this, after subtracting the tokens that the source repeats."""
LOOPS = 120
"""Maximum number of natural loops of a run that are searched again."""
GOALS = {
    "clean": 0.01,
    "loop": 0.98,
    "copy": 0.98,
    "numbers": 1.0,
    "detached": 0.95,
    "missing": 0.60,
    "hallucinations": 0.85,
    "mended": 0.70,
    "calibration error": 0.05,
}
"""The goals: minimum shares of failures found, minimum AUROC and share of mended loops; goals in AT_MOST are maxima."""
AT_MOST = ("clean", "calibration error")
"""Names of the goals that are maxima."""
CORPORA = ("demo", "Multi30k")

Pair = tuple[str, str]
"""A source and an output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Sources and references of a corpus, with a run's outputs."""

    name: str
    translator: Translator
    sources: Sequence[str]
    references: Sequence[str]
    found: Sequence[Translation]

    @classmethod
    def of(cls, name: str, translator: Translator, pairs: Iterable[tuple[str, str]]) -> "Outputs":
        sources, references = zip(*pairs, strict=True)
        found = translator.translate(sources, guards=False)
        return cls(name=name, translator=translator, sources=sources, references=references, found=found)

    @property
    def judged(self) -> list[ModelOutput]:
        """The outputs in the form that guards judge."""
        return self.translator.outputs(self.sources, self.found)

    def guards(self, some: slice = slice(None)) -> Guards:
        """Return guards calibrated on the outputs in a slice, by default on all outputs."""
        references = [[one] for one in self.references[some]]
        search = settings_of_outputs(self.translator.bundle.configuration.decoding)
        return guards_of(self.judged[some], references, search)

    @property
    def pairs(self) -> list[Pair]:
        """Each source with its output."""
        return [(source, one.text) for source, one in zip(self.sources, self.found, strict=True)]


# Failures


def detached(pairs: Sequence[Pair], chance: random.Random) -> list[Pair]:
    """Return each source with the output of a different source."""
    shift = chance.randrange(1, len(pairs))
    return [(source, pairs[(place + shift) % len(pairs)][1]) for place, (source, _) in enumerate(pairs)]


def looped(pairs: Sequence[Pair], chance: random.Random) -> list[Pair]:
    """Return outputs in which a phrase of two to four words occurs 3 to 10 times."""
    return [(source, _looped(output.split(), chance)) for source, output in pairs]


def missing(pairs: Sequence[Pair], chance: random.Random) -> list[Pair]:
    """Return outputs without a run of consecutive words, a third of their words."""
    return [(source, _without(output.split(), chance)) for source, output in pairs]


def copied(pairs: Sequence[Pair], _: random.Random) -> list[Pair]:
    """Return each source with itself as the output."""
    return [(source, source) for source, _ in pairs]


def other_number(pairs: Sequence[Pair], chance: random.Random) -> list[Pair]:
    """Return pairs whose sides both end with a number; in the output, one digit of the number is changed."""
    return [
        (f"{source} {number}", f"{output} {_changed(number, chance)}")
        for source, output in pairs
        for number in (str(chance.randrange(10, 10_000)),)
    ]


FAILURES: Mapping[str, Callable[[Sequence[Pair], random.Random], list[Pair]]] = {
    "detached": detached,
    "loop": looped,
    "missing": missing,
    "copy": copied,
    "numbers": other_number,
}


def swapped(source: str, chance: random.Random) -> str:
    """Return a source with the letters of each word in a random order."""
    return " ".join("".join(chance.sample(word, len(word))) for word in source.split())


def with_rare_token(source: str, token: str) -> str:
    """Return a source with a rare token in front."""
    return f"{token} {source}"


def _looped(words: list[str], chance: random.Random) -> str:
    begin, length = chance.randrange(max(len(words) - 1, 1)), chance.randint(2, 4)
    phrase = words[begin : begin + length]
    return " ".join([*words[:begin], *phrase * chance.randint(3, 10), *words[begin + length :]])


def _without(words: list[str], chance: random.Random) -> str:
    length = max(math.ceil(len(words) / 3), 1)
    begin = chance.randrange(len(words) - length + 1)
    return " ".join([*words[:begin], *words[begin + length :]]) or words[0]


def _changed(number: str, chance: random.Random) -> str:
    place = chance.randrange(len(number))
    digit = chance.choice([one for one in "123456789" if one != number[place]])
    return number[:place] + digit + number[place + 1 :]


# Signals from attention, which the guards do not use


def ignored(rows: AttentionRows) -> float:
    """Return the share of source tokens that get, from all target tokens together, attention weight below 0.2."""
    sums = np.array([row[:-1] for row in rows]).sum(0)
    return float((sums < 0.2).mean()) if len(sums) else 0.0


def drift(rows: AttentionRows) -> float:
    """Return the mean attention weight on the source's `<eos>`, which is often high for detached outputs."""
    return float(np.array([row[-1] for row in rows]).mean())


def blur(rows: AttentionRows) -> float:
    """Return the mean entropy of the attention rows, as a share of the entropy of a uniform row."""
    weights = np.array(rows)
    entropy = -(weights * np.log(np.maximum(weights, 1e-12))).sum(1).mean()
    return float(entropy / math.log(max(weights.shape[1], 2)))


OF_ATTENTION: Mapping[str, Callable[[AttentionRows], float]] = {"ignored": ignored, "drift": drift, "blur": blur}


# Measures


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the probability that a positive value is above a negative one; equal values count as half."""
    below = np.sort(np.array(negative))
    high = np.searchsorted(below, positive, "right")
    low = np.searchsorted(below, positive, "left")
    return float((high + low).mean() / 2 / len(below))


def as_outputs(translator: Translator, pairs: Sequence[Pair]) -> list[ModelOutput]:
    """Return given outputs in the form that guards judge, with the model's log probabilities."""
    sources = [source for source, _ in pairs]
    return translator.outputs(sources, translator.score(pairs))


def made_failures(corpus: Outputs, seed: int = 1) -> dict[str, Any]:
    """Return, for clean outputs and each kind of failure, the share found by all guards and by each guard alone."""
    made = {name: make(corpus.pairs, random.Random(seed)) for name, make in FAILURES.items()}
    kinds = {"clean": corpus.judged, **{name: as_outputs(corpus.translator, pairs) for name, pairs in made.items()}}
    guards = halves(corpus)
    return {name: found_by(guards, outputs) for name, outputs in kinds.items()}


def halves(corpus: Outputs) -> tuple[Guards, Guards]:
    """Return two guards: one calibrated on the outputs with odd indices, and one on the outputs with even indices."""
    return corpus.guards(slice(1, None, 2)), corpus.guards(slice(0, None, 2))


def found_by(guards: tuple[Guards, Guards], outputs: Sequence[ModelOutput]) -> dict[str, Any]:
    """Return the share of outputs found by all guards and by each guard alone; each of `guards` judges one half."""
    reasons = [found for half in (0, 1) for found in map(guards[half].reasons, outputs[half::2])]
    alone = {name: float(np.mean([name in one for one in reasons])) for name in SIGNALS}
    return {"outputs": len(reasons), "found": float(np.mean([bool(one) for one in reasons])), "alone": alone}


def hallucinations(guards: Guards, corpus: Outputs, seed: int = 1) -> dict[str, Any]:
    """Return the AUROC of each signal, and of all signals together, for hallucinations against clean outputs."""
    chance = random.Random(seed)
    rare = rare_words(corpus.sources, 50)
    perturbed = [with_rare_token(source, chance.choice(rare)) for source in corpus.sources]
    perturbed += [swapped(source, chance) for source in corpus.sources]
    found = corpus.translator.translate(perturbed, guards=False)
    clean = [one.text for one in corpus.found] * 2
    same = sentence_scores([one.text for one in found], clean, "chrf")
    chosen = [place for place, chrf in enumerate(same) if chrf < HALLUCINATED and found[place].tokens]
    positive = corpus.translator.outputs([perturbed[place] for place in chosen], [found[place] for place in chosen])
    return {
        "perturbed": len(perturbed),
        "hallucinations": len(positive),
        "found": float(np.mean([bool(guards.reasons(one)) for one in positive])) if positive else math.nan,
        "auroc": aurocs(corpus, guards, positive, corpus.judged) if positive else {},
    }


def aurocs(
    corpus: Outputs, guards: Guards, positive: Sequence[ModelOutput], negative: Sequence[ModelOutput]
) -> dict[str, float]:
    """Return the AUROC of each signal, of all signals together, and of the signals from attention."""
    values = [[signals(one, guards.usual) for one in some] for some in (positive, negative)]
    found = {name: auroc(*([one[name] for one in some] for some in values)) for name in SIGNALS}
    found["all"] = auroc(*([guards.suspicion(one) for one in some] for some in (positive, negative)))
    seen = [attention_of(corpus, some) for some in (positive, negative)]
    for name, signal in OF_ATTENTION.items():
        found[f"attention: {name}"] = auroc(*([signal(rows) for rows in some] for some in seen))
    return found


def attention_of(corpus: Outputs, outputs: Sequence[ModelOutput]) -> list[AttentionRows]:
    """Return the attention rows of given outputs, computed by the engine torch."""
    engine = Translator.load(corpus.translator.bundle.folder).engine
    ids = corpus.translator.bundle.target_tokenizer
    targets = [(*ids.encode(one.target), ids.eos_id) for one in outputs]
    return engine.attention([((tuple(one.source_ids),), target) for one, target in zip(outputs, targets, strict=True)])


def rare_words(sources: Sequence[str], count: int) -> list[str]:
    """Return words that occur once in the sources."""
    words = [word for source in sources for word in source.split()]
    seen: dict[str, int] = {}
    for word in words:
        seen[word] = seen.get(word, 0) + 1
    return sorted(word for word, times in seen.items() if times == 1 and word.isalpha())[:: max(1, len(seen) // count)]


def other_language(corpus: Outputs, texts: Sequence[str]) -> dict[str, Any]:
    """Return the share of outputs for sources of a different language that guards find."""
    found = corpus.translator.translate(texts, guards=False)
    kept = [place for place, one in enumerate(found) if one.tokens]
    outputs = corpus.translator.outputs([texts[place] for place in kept], [found[place] for place in kept])
    return found_by(halves(corpus), outputs)


def mended(young: Sequence[Path], pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return how many loops of young models second searches mend.

    Guards are calibrated on the model's own outputs, except that `loop` has the threshold LOOP, because loops are usual
    in the outputs of a young model. A loop is mended if the new output is not a loop. Outputs that set off no guard
    must not change.
    """
    found: dict[str, Any] = {}
    for run in young:
        corpus = Outputs.of(run.name, Translator.load(run, engine="auto"), pairs)
        own = corpus.guards()
        guards = replace(own, thresholds={**own.thresholds, "loop": LOOP}, medians={**own.medians, "loop": 0.0})
        loops = [place for place, one in enumerate(corpus.judged) if "loop" in guards.reasons(one)]
        for engine in ("torch", "ctranslate2"):
            found[f"{run.name}, {engine}"] = {"outputs": len(pairs), **_mended(run, engine, guards, corpus, loops)}
    return found


def _mended(run: Path, engine: Any, guards: Guards, corpus: Outputs, loops: Sequence[int]) -> dict[str, Any]:
    translator = with_guards(Translator.load(run, engine=engine), guards)
    sources, references = ([some[place] for place in loops[:LOOPS]] for some in (corpus.sources, corpus.references))
    before = translator.translate(sources)
    after = translator.translate(sources, retry=True)
    mends = [bool(one.retry) and "loop" not in one.reasons for one in after]
    some = corpus.sources[:LOOPS]
    both = zip(translator.translate(some), translator.translate(some, retry=True), strict=True)
    unflagged = [one == other for one, other in both if not one.reasons]
    return {
        "loops": len(loops),
        "searched again": len(sources),
        "mended": float(np.mean(mends)),
        "no guard set off": float(np.mean([not one.reasons for one in after])),
        "by": {name: [one.retry for one in after].count(name) for name in sorted({one.retry for one in after})},
        "chrf before": float(np.mean(sentence_scores([one.text for one in before], references, "chrf"))),
        "chrf after": float(np.mean(sentence_scores([one.text for one in after], references, "chrf"))),
        "unflagged outputs": len(unflagged),
        "unflagged outputs that changed": unflagged.count(False),
    }


def with_guards(translator: Translator, guards: Guards) -> Translator:
    """Return a translator that uses these guards."""
    search = settings_of_outputs(translator.bundle.configuration.decoding)
    translator._layers.judging.__dict__["_guards"] = replace(guards, search=search)
    return translator


def confidence(guards: Guards, test: Outputs) -> dict[str, Any]:
    """Return the expected calibration error of the confidence, on pairs that it was not fitted on."""
    texts = [one.text for one in test.found]
    right = {
        "exact": [score >= 100 for score in sentence_scores(texts, test.references, "exact")],
        "close": [score >= guards.close_chrf for score in sentence_scores(texts, test.references, "chrf")],
    }
    told = [guards.confidence(one.token_log_probs) for one in test.found]
    found: dict[str, Any] = {}
    for part, is_right in right.items():
        values = [getattr(one, part) for one in told] if getattr(guards, part) else []
        error = calibration_error(values, is_right) if values else None
        found[part] = {
            "right": float(np.mean(is_right)),
            "told": float(np.mean(values)) if values else None,
            "calibration error": error,
            "auroc": auroc(*_by_truth(values, is_right)) if values else None,
            "why not": guards.unfitted.get(part, ""),
        }
    return found


def _by_truth(values: Sequence[float], right: Sequence[bool]) -> tuple[list[float], list[float]]:
    pairs = list(zip(values, right, strict=True))
    return [one for one, true in pairs if true], [one for one, true in pairs if not true]


# The corpora


def of_demo(run: Path) -> tuple[Outputs, Outputs, list[str]]:
    """Return the demo's validation and test outputs, and sources in a different language."""
    translator = Translator.load(run, engine="auto")
    splits = TASKS["english-french"](translator.bundle.configuration.run.seed).splits
    valid, test = ([(one.source, one.target) for one in splits[name]] for name in ("valid", "test"))
    own = [Outputs.of("demo", translator, pairs) for pairs in (valid, test)]
    return own[0], own[1], [target for _, target in test]


def of_multi30k(run: Path, data: Path) -> tuple[Outputs, Outputs, list[str]]:
    """Return Multi30k's validation and test outputs, and sources in a different language."""
    translator = Translator.load(run, engine="auto")
    valid, test = (list(_pairs(data, name)) for name in ("val", "test_2016_flickr"))
    own = [Outputs.of("Multi30k", translator, pairs) for pairs in (valid, test)]
    return own[0], own[1], list(read_lines(data / "test_2016_flickr.fr.gz"))


def _pairs(data: Path, name: str) -> Iterator[Pair]:
    return zip(*(read_lines(data / f"{name}.{language}.gz") for language in ("de", "en")), strict=True)


def measured(valid: Outputs, test: Outputs, foreign: Sequence[str]) -> dict[str, Any]:
    """Return all figures of a corpus."""
    both = replace(
        valid,
        sources=[*valid.sources, *test.sources],
        references=[*valid.references, *test.references],
        found=[*valid.found, *test.found],
    )
    guards = valid.guards()
    made = as_outputs(test.translator, detached(test.pairs, random.Random(2)))
    return {
        "made": {**made_failures(both), "other language": other_language(both, foreign)},
        "clean test": float(np.mean([bool(guards.reasons(one)) for one in test.judged])),
        "hallucinations": hallucinations(guards, test),
        "detached": {"auroc": aurocs(test, guards, made, test.judged)},
        "confidence": confidence(guards, test),
    }


def text(found: Mapping[str, Any]) -> str:
    """Return the results as Markdown tables."""
    parts = []
    for corpus in CORPORA:
        rows = [
            [kind, str(of["outputs"]), percent(of["found"]), *(percent(of["alone"][name]) for name in SIGNALS)]
            for kind, of in found[corpus]["made"].items()
        ]
        parts += [f"{corpus}, share found:\n", table(["outputs", "number", "all guards", *SIGNALS], rows)]
    names = ["all", *SIGNALS, *(f"attention: {name}" for name in OF_ATTENTION)]
    scores = {
        f"{corpus}, {kind}": found[corpus][kind]["auroc"]
        for corpus in CORPORA
        for kind in ("hallucinations", "detached")
    }
    rows = [[name, *(f"{of.get(name, math.nan):.3f}" for of in scores.values())] for name in names]
    parts += ["AUROC against clean test outputs:\n", table(["signal", *scores], rows)]
    rows = [
        [
            name,
            f"{of['searched again']} of {of['loops']} in {of['outputs']}",
            percent(of["mended"]),
            percent(of["no guard set off"]),
            f"{of['chrf before']:.1f} → {of['chrf after']:.1f}",
            f"{of['unflagged outputs that changed']} of {of['unflagged outputs']}",
            ", ".join(f"{search} {number}" for search, number in of["by"].items()),
        ]
        for name, of in found["retry"].items()
    ]
    head = [
        "run, engine",
        "loops",
        "mended",
        "no guard set off",
        "chrF",
        "unflagged outputs changed",
        "output kept from",
    ]
    parts += ["Second searches for natural loops:\n", table(head, rows)]
    rows = [
        [f"{corpus}, {part}", percent(of["right"]), of["why not"] or percent(of["calibration error"])]
        for corpus in CORPORA
        for part, of in found[corpus]["confidence"].items()
    ]
    parts += ["Confidence on test outputs:\n", table(["right if", "share right", "expected calibration error"], rows)]
    return "\n".join(parts)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def figures_of(found: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield each figure that has a goal, as a tuple: the goal's name, the figure's origin, and the figure."""
    for corpus in CORPORA:
        made, of = found[corpus]["made"], found[corpus]
        yield "clean", f"{corpus}, halves", made["clean"]["found"]
        yield "clean", f"{corpus}, test", of["clean test"]
        yield from ((kind, corpus, made[kind]["found"]) for kind in FAILURES)
        yield from (
            ("hallucinations", corpus, one) for name, one in of["hallucinations"]["auroc"].items() if name == "all"
        )
        for part, one in of["confidence"].items():
            if one["calibration error"] is not None:
                yield "calibration error", f"{corpus}, {part}", one["calibration error"]
    yield from (("mended", name, one["mended"]) for name, one in found["retry"].items())


def missed(found: Mapping[str, Any]) -> list[str]:
    """Return a description of each figure that misses its goal."""
    return [
        f"{name} ({where}): {figure:.3f}, expected {'at most' if name in AT_MOST else 'at least'} {GOALS[name]:g}"
        for name, where, figure in figures_of(found)
        if (figure > GOALS[name] if name in AT_MOST else figure < GOALS[name])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", type=Path, required=True, help="run of the demo")
    parser.add_argument("--multi30k", type=Path, required=True, help="run of multi30k-de-en")
    parser.add_argument("--young", type=Path, nargs="+", required=True, help="runs of it after few updates")
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k's files")
    parser.add_argument("--only-retry", action="store_true", help="keep the other figures of an earlier run")
    given = parser.parse_args()
    of = machine()
    found = {name: value for name, value in read("guards").items() if name in CORPORA}
    if not given.only_retry:
        found["demo"] = measured(*of_demo(given.demo))
        found["Multi30k"] = measured(*of_multi30k(given.multi30k, given.data))
    names = ("val", "test_2016_flickr", "test_2017_flickr")
    found["retry"] = mended(given.young, [pair for name in names for pair in _pairs(given.data, name)])
    write("guards", found, of)
    figures = read("guards")
    print(f"`{figures['command']}`, {figures['day']}:\n\n{text(figures)}")
    print(f"{described(figures['machine'])}.")
    if short := missed(figures):
        sys.exit("not reached:\n" + "\n".join(short))


if __name__ == "__main__":
    as_command(main)
