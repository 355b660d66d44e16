"""Turn the attention in the explorer's first chapter for several runs of the demo: `python -m benchmarks.turns RUN …`.

In the first chapter, the reader turns a head of cross-attention to a different source word while the model writes a
word, and sees whether the rival word replaces this word. The runs have different seeds. For both sentences of the pair,
this command prints the word and its rival. It also prints what makes the rival the likeliest word: one turned row, or
the rows of the two most important heads turned to the same source word, or neither.
"""

import argparse
from pathlib import Path
from typing import Any

from benchmarks.command import as_command
from benchmarks.results import table
from benchmarks.truth.chapter import by_cost
from benchmarks.truth.seen import Model, Seen
from glassformer.translator import Translator
from glassformer.watch.explorer.examples import story_pair

HEADINGS = ["run", "word and rival", "rows that flip it", "from → to", "word, before → after", "rival, before → after"]


def turned(model: Model, sentence: str) -> list[str]:
    """Return the word that a run writes in a sentence of the pair, and which turned rows replace it by its rival."""
    found = model.opening(sentence)
    seen = Seen(model, {"sentence": sentence, "changes": {}, "language": "en", "row": None, "ids": found["ids"]})
    row, word, rival = found["row"], found["ids"][found["row"]], found["rival"]
    names = [seen.name(id, "target") for id in (word, rival)]

    def probabilities(changes: dict[str, Any]) -> tuple[float, float, bool]:
        log_probs = model.log_probs(seen.source, found["ids"], changes)[row]
        return float(log_probs[word].exp()), float(log_probs[rival].exp()), model.likeliest(log_probs) == rival

    def overrides(heads: list[tuple[str, int]], to: int) -> dict[str, Any]:
        rows: dict[str, list[Any]] = {}
        for name, head in heads:
            rows.setdefault(name, []).append([head, row, [*[0.0] * to, 1.0]])
        return {"overrides": rows}

    before, turn = probabilities({}), found["turn"]
    pair = by_cost(seen)[:2]
    if turn:
        heads, places = [(turn["attention"], turn["head"])], [turn["to"]]
    else:
        heads, places = pair, list(range(len(seen.source) - 1))
    to, after = max(((to, probabilities(overrides(heads, to))) for to in places), key=lambda one: one[1][1:][::-1])
    start = int(seen.weights(heads[0][0], heads[0][1], row).argmax())
    flips = f"{len(heads)}" if after[2] else "none of 1 or 2"
    ends = [f"{one:.3f} → {two:.3f}" for one, two in zip(before[:2], after[:2], strict=True)]
    return [" / ".join(names), flips, f"{seen.read_words[start]} → {seen.read_words[to]}", *ends]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    rows = []
    for run in parser.parse_args().runs:
        model = Model(Translator.load(run))
        rows += [[f"`{run.name}`", *turned(model, sentence)] for sentence in story_pair(model.bundle)]
    print(table(HEADINGS, rows))


if __name__ == "__main__":
    as_command(main)
