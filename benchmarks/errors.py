"""Count a run's errors on words by the kind of word: `python -m benchmarks.errors RUN DEV [--rescore RUN ...]`.

DEV is a set of words that the run was not trained on. The lexicon of the training words decides the kind of each word:

- *extends a known word*: the word is a known word with an ending, such as a plural;
- *within a known word*: a known word is this word with an ending;
- *compound*: the word consists of two known words;
- *other analogy*: only other exchanges of endings or beginnings lead from a known word to this word;
- *no analogy*: no analogy leads to this word.

The command also prints the share of words whose N best outputs are all wrong, the share of wrong words by the
confidence of the analogy, and the gain from each part of a combination alone: the lexicon, and each model of --rescore.
A gain is cross-fitted on halves of DEV, and tested against the run alone. `--phonetisaurus PYTHON` adds a Phonetisaurus
model (PyPI: phonetisaurus) that is trained on the run's training pairs; PYTHON is the interpreter of an environment in
which phonetisaurus is installed.

Writes results/errors.json.
"""

import argparse
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import as_command
from benchmarks.results import command, described, machine, number, read, table, write
from benchmarks.work import WORK
from glassformer.corpus.analogy import LONGEST_ENDING, SHORTEST_STEM, Lexicon
from glassformer.evaluation.items import Items, read_items
from glassformer.evaluation.significance import Comparison
from glassformer.jobs.evaluation import corpus_of
from glassformer.jobs.log import METRICS_FILE, read_log
from glassformer.jobs.tuning import keep_lexicon, tune
from glassformer.system.machine import cores
from glassformer.translating.combination import Combination
from glassformer.translator import Translator

NAME = "errors"
N_BEST = 20
COUNTS = (1, 5, 10, N_BEST)
"""Values of N for the share of words whose N best outputs are all wrong."""
BANDS = (0.9, 0.7, 0.5, 0.3, 0.0)
"""Lower ends of the bands of confidence."""
KINDS = ("extends a known word", "within a known word", "compound", "other analogy", "no analogy")


def kind_of(word: str, lexicon: Lexicon, extended: frozenset[str]) -> str:
    """Return the kind of a word; `extended` is the result of `beginnings`."""
    cuts = range(SHORTEST_STEM, len(word))
    if any(word[:cut] in lexicon.words for cut in cuts if len(word) - cut <= LONGEST_ENDING):
        return KINDS[0]
    if word in extended:
        return KINDS[1]
    if any(
        word[:cut] in lexicon.words and word[cut:] in lexicon.words for cut in cuts if len(word) - cut >= SHORTEST_STEM
    ):
        return KINDS[2]
    return KINDS[3] if lexicon.analogies(word) else KINDS[4]


def beginnings(lexicon: Lexicon) -> frozenset[str]:
    """Return the beginnings of known words: each word without its last 1 to LONGEST_ENDING letters."""
    return frozenset(
        word[:cut] for word in lexicon.words for cut in range(max(SHORTEST_STEM, len(word) - LONGEST_ENDING), len(word))
    )


def share(wrong: Sequence[bool], there: Sequence[bool]) -> float:
    """Return the percentage of wrong words among the words that are `there`."""
    found = [one for one, counts in zip(wrong, there, strict=True) if counts]
    return 100 * sum(found) / len(found) if found else 0.0


def groups(of: Sequence[str], names: Sequence[str], wrong: Mapping[str, Sequence[bool]]) -> dict[str, dict[str, float]]:
    """Return, for each group, its share of all words, and the share of its words that each system gets wrong."""
    return {
        name: {"share": 100 * of.count(name) / len(of)}
        | {system: share(each, [one == name for one in of]) for system, each in wrong.items()}
        for name in names
        if name in of
    }


def all_wrong(outputs: Sequence[Sequence[str]], items: Items, most: int = 1) -> list[bool]:
    """Return, for each word, whether its first `most` outputs are all wrong."""
    return [not set(some[:most]) & set(right) for some, right in zip(outputs, items.references, strict=True)]


def gains(run: Path, rescore: Sequence[Path], items: Items, beam_size: int) -> dict[str, dict[str, Any]]:
    """Return the gain from each part of a combination alone, and from all parts together."""
    parts: dict[str, tuple[Sequence[Path], bool]] = {"the lexicon": ((), True)}
    parts |= {f"--rescore {one.name}": ([one], False) for one in rescore}
    if len(rescore) > 1:
        parts["all --rescore"] = (rescore, False)
    if rescore:
        parts["all --rescore and the lexicon"] = (rescore, True)
    found = {}
    for name, (models, lexicon) in parts.items():
        combination = Combination.of(run, rescore=models, lexicon=lexicon)
        settings = {"beam_size": beam_size}
        how: dict[str, Any] = {"rescore": models, "lexicon": lexicon, "settings": settings, "workers": cores()}
        tuned = tune(Translator.load(run, engine="auto", **how), combination, items, "word_error")
        found[name] = _gain(tuned.comparison) | {"oracle": tuned.oracle, "weights": tuned.combination.weights.vector}
        print(name, found[name], flush=True)
    return found


def described_run(run: Path) -> str:
    """Return the name of a run, with the length of its training."""
    end = next(line for line in reversed(read_log(run / METRICS_FILE)) if line["type"] == "end")
    return f"`{run.name}` ({number(end['step'])} updates in {end['seconds'] / 60:.0f} minutes)"


def _gain(one: Comparison) -> dict[str, Any]:
    return {"alone": one.first, "wrong": one.second, "low": one.low, "high": one.high, "p": one.p_value}


def phonetisaurus(python: str, work: Path, lexicon: Lexicon, words: Sequence[str]) -> list[list[str]]:
    """Return the five best outputs of Phonetisaurus for each word; its model is trained on the lexicon if missing."""
    model, pairs = work / "phonetisaurus.fst", work / "phonetisaurus.txt"
    if not model.exists():
        lines = (f"{word} {' '.join(one)}\n" for word, several in lexicon.words.items() for one in several)
        pairs.write_text("".join(lines), encoding="utf-8")
        _phonetisaurus(python, "train", "--model", str(model), str(pairs))
    found: dict[str, list[str]] = {}
    for line in _phonetisaurus(python, "predict", "--model", str(model), "--nbest", "5", *words).splitlines():
        word, _, phones = line.partition(" ")
        found.setdefault(word, []).append(phones)
    return [found.get(word, []) for word in words]


def _phonetisaurus(python: str, *arguments: str) -> str:
    call = [python, "-m", "phonetisaurus", *arguments]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout


def measured(run: Path, items: Items, python: str | None, work: Path) -> dict[str, Any]:
    """Return the errors of a run, of the best analogy and of Phonetisaurus, by kind and by confidence."""
    lexicon_file, translator = keep_lexicon(run), Translator.load(run, engine="auto", workers=cores())
    lexicon = Lexicon.load(lexicon_file, translator.bundle.target_tokenizer)
    found = translator.translate(items.sources, n_best=N_BEST, beam_size=N_BEST, guards=False)
    outputs = {"run": [[one.text for one in (best, *best.alternatives)] for best in found]}
    outputs["analogy"] = [list(lexicon.analogies(word)) for word in items.sources]
    if python:
        outputs["phonetisaurus"] = phonetisaurus(python, work, lexicon, items.sources)
    wrong = {name: all_wrong(each, items) for name, each in outputs.items()}
    extended = beginnings(lexicon)
    kinds = [kind_of(word, lexicon, extended) for word in items.sources]
    sure = [max(lexicon.analogies(word).values(), default=-1.0) for word in items.sources]
    names = [*(f"from {one:g}" for one in BANDS), "no analogy"]
    bands = [next((name for name, low in zip(names, BANDS, strict=False) if one >= low), names[-1]) for one in sure]
    counts = {name: [one for one in COUNTS if one <= max(map(len, each))] for name, each in outputs.items()}
    return {
        "words": len(items.sources),
        "of_best": {
            name: {most: wrong_share(all_wrong(each, items, most)) for most in counts[name]}
            for name, each in outputs.items()
        },
        "kinds": groups(kinds, KINDS, wrong),
        "confidence": groups(bands, names, wrong),
    }


def wrong_share(wrong: Sequence[bool]) -> float:
    """Return the share of wrong words, in per cent."""
    return 100 * sum(wrong) / len(wrong)


def markdown(figures: dict[str, Any]) -> str:
    """Return Markdown tables: errors by number of outputs, by kind and by confidence, and the gain of each part."""
    names = {"run": "the run", "analogy": "best analogy", "phonetisaurus": "Phonetisaurus"}
    systems = [name for name in names if name in figures["of_best"]]
    head = [names[name] for name in systems]

    def grouped(title: str, rows: Mapping[str, Mapping[str, float]]) -> str:
        cells = [
            [name, f"{row['share']:.1f} %", *(f"{row[one]:.1f} %" for one in systems)] for name, row in rows.items()
        ]
        return table([title, "words", *head], cells)

    best = [
        [
            str(most),
            *(
                f"{value:.1f} %" if (value := of.get(str(most))) is not None else ""
                for of in (figures["of_best"][name] for name in systems)
            ),
        ]
        for most in COUNTS
    ]
    parts = [
        [
            name,
            f"{one['wrong']:.2f} %",
            f"{one['wrong'] - one['alone']:+.2f}".replace("-", "−"),
            f"{one['low']:+.2f} … {one['high']:+.2f}".replace("-", "−"),
            f"{one['p']:.4f}",
            f"{one['oracle']:.1f} %",
        ]
        for name, one in figures["gains"].items()
    ]
    alone = next((f"{one['alone']:.2f} %" for one in figures["gains"].values()), "")
    return (
        "## Errors on words\n\n"
        f"This section shows which of {number(figures['words'])} words of CMUdict's validation set are pronounced "
        "wrongly: by a run of glassformer, by the best analogy to a word of the lexicon, and by Phonetisaurus. "
        f"{_leader({names[one]: figures['of_best'][one]['1'] for one in systems})} "
        "The recipe trains for an hour, but the models of this section were trained for only a few minutes: "
        f"{', '.join(figures['models'])}.\n\n"
        f"Command, {figures['day']}: `{figures['command']}`\n\n"
        f"Share of words for which none of the N best outputs is right:\n\n{table(['best outputs', *head], best)}\n"
        "Share of wrong words by kind of word; *words* is the share of the kind among all words:\n\n"
        f"{grouped('kind', figures['kinds'])}\n"
        "Share of wrong words by the confidence of the best analogy:\n\n"
        f"{grouped('confidence', figures['confidence'])}\n"
        "The next table shows how much each part of a combination gains. "
        f"The run alone gets {alone} of the words wrong. The weights are "
        "cross-fitted on halves of these words. The interval is by paired bootstrap, the p-value by "
        "approximate randomisation. The last column is the share of words without a right candidate:\n\n"
        f"{table(['part', 'wrong', 'difference', '95 % interval', 'p', 'no candidate'], parts)}\n"
        f"{described(figures['machine'])}.\n"
    )


def _leader(wrong: Mapping[str, float]) -> str:
    """Return a sentence that names the systems, best system first."""
    first, *rest = sorted(wrong, key=lambda name: wrong[name])
    others = ", ".join(f"{name} {wrong[name]:.1f} %" for name in rest)
    return f"Without combinations, {first} has the fewest wrong words: {wrong[first]:.1f} % ({others})."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("dev", help="words and targets, a .tsv file")
    parser.add_argument("--rescore", type=Path, action="append", default=[], help="a model that rescores; repeatable")
    parser.add_argument("--beam-size", type=int, default=10, help="candidates of each model [default: %(default)s]")
    parser.add_argument("--phonetisaurus", metavar="PYTHON", help="interpreter that has Phonetisaurus")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for its model [default: %(default)s]")
    given = parser.parse_args()
    of, items = machine(), read_items(corpus_of(given.dev, None))
    given.work.mkdir(parents=True, exist_ok=True)
    figures = measured(given.run, items, given.phonetisaurus, given.work)
    print(figures, flush=True)
    figures |= {
        "command": command(),
        "models": [described_run(one) for one in (given.run, *given.rescore)],
        "gains": gains(given.run, given.rescore, items, given.beam_size),
    }
    write(NAME, figures, of)
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
