"""How near `glassformer translate` comes to CTranslate2 itself: `python -m benchmarks.engines RUN --data DIR`.

All take the same lines, cut by the same tokenizer, with the same exported model, and give text back:

- direct: CTranslate2's own package, all lines in one call, tokens and text by the tokenizer's own library;
- translator: `Translator.stream`, which is what the command calls;
- command: `glassformer translate`, a process of its own, its start (the median of some runs of one line) taken off;
- torch: `Translator` on the engine torch, if asked for with --torch.

They take turns, in another order each round, so that the machine's noise hits all alike. Prints a table in Markdown:
sentences per second, the median of all rounds and their spread, and each round's ratio to direct.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import ctranslate2
import sacrebleu

from benchmarks import results
from glassformer.bundle import Bundle
from glassformer.decoding.engine import EngineName, Quantization
from glassformer.decoding.hypothesis import EXTRA_LENGTH
from glassformer.interop.export import export_ctranslate2
from glassformer.text.corpus import read_lines
from glassformer.text.workers import cores
from glassformer.translator import Translator

SINGLE = 200
"""Lines that are translated one by one."""
STARTS = 5
"""How often a round measures a command's start: one is as noisy as what it is taken off."""

Way = Callable[[list[str]], list[str]]


def cut(tokenizer: Any, lines: list[str]) -> list[list[str]]:
    """Return the tokens of lines, as the user of another package would cut them."""
    processor = getattr(tokenizer, "_processor", None)
    if not processor:
        return [tokenizer.split(line) for line in lines]
    return _each(processor.encode, lines, out_type=str)


def joined(tokenizer: Any, hypotheses: list[list[str]]) -> list[str]:
    """Return the texts of tokens."""
    processor = getattr(tokenizer, "_processor", None)
    return _each(processor.decode, hypotheses) if processor else [tokenizer.join(tokens) for tokens in hypotheses]


def _each(work: Callable[..., Any], inputs: list[Any], **options: Any) -> list[Any]:
    """Return sentencepiece's work on each input; for a list, even of one, it starts a thread."""
    return [work(inputs[0], **options)] if len(inputs) == 1 else work(inputs, **options)


def direct(folder: Path, beam_size: int, batch: int) -> Way:
    """Return CTranslate2 as it is called from Python, in its best configuration for this work."""
    bundle = Bundle.load(folder)
    model = ctranslate2.Translator(str(folder), inter_threads=cores(), intra_threads=1)

    def translate(lines: list[str]) -> list[str]:
        tokens = cut(bundle.source_tokenizer, lines)
        longest = max(map(len, tokens)) + EXTRA_LENGTH
        results = model.translate_batch(tokens, beam_size=beam_size, max_batch_size=batch, max_decoding_length=longest)
        return joined(bundle.target_tokenizer, [result.hypotheses[0] for result in results])

    return translate


def through_translator(folder: Path, beam_size: int, engine: EngineName) -> Way:
    translator = Translator.load(folder, engine=engine)

    def translate(lines: list[str]) -> list[str]:
        return [one.text for one in translator.stream(lines, beam_size=beam_size, log_probs=False)]

    return translate


def through_command(folder: Path, beam_size: int) -> Way:
    arguments = [sys.executable, "-m", "glassformer", "translate", str(folder), "--beam-size", str(beam_size)]

    def translate(lines: list[str]) -> list[str]:
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run(arguments, input=text, capture_output=True, text=True, check=True, encoding="utf-8")
        return done.stdout.splitlines()

    return translate


def one_by_one(way: Way) -> Way:
    return lambda lines: [text for line in lines[:SINGLE] for text in way([line])]


def seconds(way: Way, lines: list[str]) -> tuple[float, list[str]]:
    begun = time.perf_counter()
    texts = way(lines)
    return time.perf_counter() - begun, texts


def start_of(way: Way, lines: list[str]) -> float:
    return median(seconds(way, lines[:1])[0] for _ in range(STARTS))


def measure(ways: dict[str, Way], lines: list[str], references: list[str], rounds: int) -> dict[str, list[float]]:
    """Return the sentences per second of each way in each round; what a command needs to start is taken off."""
    names = list(ways)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    outputs: dict[str, list[str]] = {}
    for name, way in ways.items():
        way(lines[:64])  # what is loaded, read and compiled only once
        print(f"  {name} is ready", file=sys.stderr)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            start = start_of(ways[name], lines) if name == "command" else 0.0
            whole, outputs[name] = seconds(ways[name], lines)
            taken[name].append(len(outputs[name]) / (whole - start))
    compare(outputs, references)
    return taken


def compare(outputs: dict[str, list[str]], references: list[str]) -> None:
    """Print how often the ways gave the same texts, and how good these are where there are references."""
    against = "torch" if "torch" in outputs else "direct"
    for name, texts in outputs.items():
        same = sum(one == other for one, other in zip(texts, outputs[against], strict=True))
        bleu = ""
        if references:
            bleu = f", BLEU {sacrebleu.corpus_bleu(texts, [references[: len(texts)]]).score:.2f}"
        print(f"  {name}: {same} of {len(texts)} texts are those of {against}{bleu}", file=sys.stderr)


def table(title: str, taken: dict[str, list[float]]) -> str:
    rows = []
    for name, rates in taken.items():
        ratios = [rate / base for rate, base in zip(rates, taken["direct"], strict=True)]
        numbers = (f"{median(rates):.0f}", f"{min(rates):.0f} – {max(rates):.0f}", f"{median(ratios):.3f}")
        rows.append((name, *numbers, f"{min(ratios):.3f} – {max(ratios):.3f}"))
    return results.table((title, "sentences/s", "least – most", "of direct", "least – most"), rows)


@contextmanager
def exported(run: Path, quantization: Quantization) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(Bundle.load(run), Path(folder) / "model", quantization)
        yield Path(folder) / "model"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder with the lines")
    parser.add_argument("--lines", default="test_2016_flickr.de.gz", help="the file in it")
    parser.add_argument("--references", help="the file in it with their translations, for BLEU")
    parser.add_argument("--quantization", default="int8")
    parser.add_argument("--batch", type=int, default=64, help="of the direct call")
    parser.add_argument("--beam-size", type=int, action="append", help="[default: 1 and 5]")
    parser.add_argument("--limit", type=int, help="only so many lines")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--torch", action="store_true", help="measure the engine torch, too")
    given = parser.parse_args()
    lines = read_lines(given.data / given.lines)[: given.limit]
    references = read_lines(given.data / given.references)[: given.limit] if given.references else []
    print(f"{results.described(results.machine())}; {given.quantization}; {len(lines)} lines of {given.lines}\n")
    with exported(given.run, given.quantization) as folder:
        for beam_size in given.beam_size or [1, 5]:
            ways: dict[str, Way] = {
                "direct": direct(folder, beam_size, given.batch),
                "translator": through_translator(folder, beam_size, "ctranslate2"),
                "command": through_command(folder, beam_size),
            }
            if given.torch:
                ways["torch"] = through_translator(given.run, beam_size, "torch")
            print(table(f"beam {beam_size}, all lines", measure(ways, lines, references, given.rounds)))
            singly = {name: one_by_one(way) for name, way in ways.items() if name != "command"}
            print(table(f"beam {beam_size}, one by one", measure(singly, lines, references, given.rounds)))


if __name__ == "__main__":
    main()
