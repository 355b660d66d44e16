"""Helper processes of the main process."""

import os
import signal
import threading
import time

import psutil
import pytest

from glassformer.errors import DataError, VocabularyError
from glassformer.system.processes import Worker
from glassformer.text.tokenizer import TOKENIZER_KINDS, TokenizerConfig, train_tokenizers

LINES = [f"the {word} cat didn't sleep" for word in ("black", "brown", "big", "Щ▁", "\u2028")]


def started(before: set[psutil.Process]) -> psutil.Process:
    """Return the process that has been started since the processes `before` were listed."""
    [process] = set(psutil.Process().children()) - before
    return process


def test_a_helper_answers_repeatedly_and_raises_errors() -> None:
    with Worker(divmod, "divides") as worker:
        assert worker.ask(17, 5) == (3, 2)
        with pytest.raises(ZeroDivisionError):
            worker.ask(17, 0)
        assert worker.ask(19, 7) == (2, 5)


def test_printed_text_is_not_taken_for_an_answer(capfd: pytest.CaptureFixture[str]) -> None:
    with Worker(print, "prints") as worker:
        assert worker.ask("to whom it may concern", flush=True) is None
    assert capfd.readouterr() == ("", "to whom it may concern\n")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind, row in TOKENIZER_KINDS.items() if row.trainable])
@pytest.mark.parametrize("joint", [True, False])
def test_a_helper_trains_the_same_tokenizers_as_the_caller(kind, joint: bool) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=31, joint=joint)
    here = train_tokenizers(LINES, LINES[::-1], config)
    with Worker(train_tokenizers, "trains the tokenizer") as worker:
        there = worker.ask(LINES, LINES[::-1], config)
        with pytest.raises(VocabularyError):
            worker.ask([], [], config)
    assert (there[0] is there[1]) == joint
    for one, other in zip(here, there, strict=True):
        assert one.tokens(range(len(one))) == other.tokens(range(len(other)))
        assert [one.encode(line) for line in LINES] == [other.encode(line) for line in LINES]


def test_signals_to_the_process_group_do_not_end_a_helper() -> None:
    before = set(psutil.Process().children())
    with Worker(divmod, "divides") as worker:
        process = started(before)
        assert os.getsid(process.pid) == process.pid  # from the start, a terminal's Ctrl-C does not reach this process
        assert worker.ask(17, 5) == (3, 2)
        for number in (signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
        assert worker.ask(17, 5) == (3, 2)


def test_a_helper_ends_with_its_context_even_while_busy() -> None:
    before, raised = set(psutil.Process().children()), []

    def ask() -> None:
        try:
            worker.ask(3600.0)
        except DataError as error:
            raised.append(error)

    with Worker(time.sleep, "sleeps") as worker:
        process = started(before)
        worker.ask(0.0)
        thread = threading.Thread(target=ask)
        thread.start()
    thread.join()
    assert not process.is_running()
    assert "a process that sleeps was killed" in str(raised[0])
    with pytest.raises(DataError, match="a process that sleeps was killed"):
        worker.ask(0.0)  # simulates the thread asking late, when the pipes are closed
