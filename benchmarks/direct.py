"""Translate with CTranslate2's own package, without glassformer: `python -m benchmarks.direct FOLDER < lines`.

Reads lines from stdin and prints their translations, all in one call. FOLDER is an export with its tokenizers.
`benchmarks.engines` compares glassformer with this call, both in its own process and in a new process.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2

from glassformer.bundle import Bundle
from glassformer.system.machine import cores

Way = Callable[[list[str]], list[str]]


def cut(tokenizer: Any, lines: list[str]) -> list[list[str]]:
    """Return the tokens of each line, from the tokenizer's own library."""
    processor = getattr(tokenizer, "_processor", None)
    if not processor:
        return [tokenizer.split(line) for line in lines]
    return _each(processor.encode, lines, out_type=str)


def joined(tokenizer: Any, hypotheses: list[list[str]]) -> list[str]:
    """Return the text of each token sequence."""
    processor = getattr(tokenizer, "_processor", None)
    return _each(processor.decode, hypotheses) if processor else [tokenizer.join(tokens) for tokens in hypotheses]


def _each(work: Callable[..., Any], inputs: list[Any], **options: Any) -> list[Any]:
    """Return sentencepiece's result for each input; a single input is passed alone, because a list starts a thread."""
    return [work(inputs[0], **options)] if len(inputs) == 1 else work(inputs, **options)


def direct(folder: Path, beam_size: int, batch: int) -> Way:
    """Return a function that translates with CTranslate2's Python package, in its fastest configuration."""
    bundle = Bundle.load(folder)
    model = ctranslate2.Translator(str(folder), inter_threads=cores(), intra_threads=1)

    def translate(lines: list[str]) -> list[str]:
        tokens = cut(bundle.source_tokenizer, lines)
        longest = max(map(len, tokens)) + bundle.configuration.decoding.extra_length
        results = model.translate_batch(tokens, beam_size=beam_size, max_batch_size=batch, max_decoding_length=longest)
        return joined(bundle.target_tokenizer, [result.hypotheses[0] for result in results])

    return translate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    lines = [line.rstrip("\n") for line in sys.stdin]
    for text in direct(given.folder, given.beam_size, given.batch)(lines):
        print(text)


if __name__ == "__main__":
    main()
