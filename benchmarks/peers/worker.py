"""The program of a peer's process: `python -m benchmarks.peers.worker PEER FOLDER`, run in the peer's environment.

The process makes the peer for the task in FOLDER, and prints a line when the peer is ready. The process then answers
each JSON line on its standard input with a JSON line on its standard output:

    {"do": "update", "batch": 3}                                one update of the weights on batch 3 of the list
    {"do": "steps", "count": 8}                                 the next steps of a peer with batches of its own
    {"do": "read", "file": "…"}                                 replace the list of batches
    {"do": "translate", "texts": […], "beam_size": 5, "batch_size": 64}
    {"do": "quit"}

After a failure, the answer is {"error": "…"}. Times do not include reading questions and writing answers.
"""

import argparse
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchmarks.peers.task import BATCHES, EOS, TOKENIZER, UNK, read_batches


class Peer(Protocol):
    """An object that an adapter's `make(folder, precision, **options)` returns; a decode-only peer has no `update`."""

    def update(self, batch: Any, number: int, rate: float | None) -> float:
        """Update the weights on a batch, given with its number in the list; return the loss per token.

        `rate` is the learning rate; with None, the task's rate applies.
        """

    def translate(self, sources: Sequence[Sequence[int]], beam_size: int, batch_size: int) -> list[list[int]]:
        """Return the ids of the translations, without special ids, for sources that end with `<eos>`.

        A batch has at most `batch_size` sentences.
        """

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages that determine the speed."""


class Desk:
    """A class that answers questions with a peer."""

    def __init__(self, peer: Any, folder: Path) -> None:
        self.peer, self.folder = peer, folder
        self.batches = read_batches(folder / BATCHES) if (folder / BATCHES).exists() else []
        self.tokenizer: Any = None

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question, or {"error": …}."""
        handlers: dict[str, Callable[..., dict[str, Any]]] = {
            "update": self.update,
            "steps": self.steps,
            "read": self.read,
            "translate": self.translate,
        }
        try:
            return handlers[question.pop("do")](**question)
        except Exception as error:
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {error}"[:500]}

    def update(self, batch: int, rate: float | None = None) -> dict[str, Any]:
        return timed("loss", lambda: self.peer.update(self.batches[batch], batch, rate))

    def steps(self, count: int) -> dict[str, Any]:
        return timed("loss", lambda: self.peer.steps(count))

    def read(self, file: str) -> dict[str, Any]:
        self.batches = read_batches(Path(file))
        return {"batches": len(self.batches)}

    def translate(self, texts: list[str], beam_size: int, batch_size: int) -> dict[str, Any]:
        if hasattr(self.peer, "translate_texts"):  # only glassformer's adapter: it uses glassformer's own tokenizer
            return timed("texts", lambda: self.peer.translate_texts(texts, beam_size, batch_size))
        return timed("texts", lambda: self._by_pieces(texts, beam_size, batch_size))

    def _by_pieces(self, texts: list[str], beam_size: int, batch_size: int) -> list[str]:
        sources = [[*ids, EOS] for ids in self.pieces.encode(texts)]
        outputs = self.peer.translate(sources, beam_size, batch_size)
        found: list[str] = self.pieces.decode([[id for id in output if id >= UNK] for output in outputs])
        return found

    @property
    def pieces(self) -> Any:
        """The tokenizer that all peers share."""
        if self.tokenizer is None:
            from sentencepiece import SentencePieceProcessor

            self.tokenizer = SentencePieceProcessor(model_file=str(self.folder / TOKENIZER))
        return self.tokenizer


def timed(name: str, work: Callable[[], Any]) -> dict[str, Any]:
    """Call `work`; return its result under `name`, and the seconds that it took."""
    begun = time.perf_counter()
    result = work()
    return {"seconds": time.perf_counter() - begun, name: result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--options", type=json.loads, default={}, help="further arguments of the adapter, as JSON")
    given = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # printed text goes to stderr, because stdout carries the answers

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    begun = time.perf_counter()
    try:
        peer = importlib.import_module(f"benchmarks.peers.{given.peer}").make(
            given.folder, given.precision, **given.options
        )
    except Exception as error:
        traceback.print_exc()
        say({"error": f"{type(error).__name__}: {error}"[:500]})
        sys.exit(1)
    desk = Desk(peer, given.folder)
    say({"ready": True, "seconds": time.perf_counter() - begun, "versions": peer.versions()})
    for line in sys.stdin:
        question = json.loads(line)
        if question["do"] == "quit":
            break
        say(desk.answer(question))


if __name__ == "__main__":
    main()
