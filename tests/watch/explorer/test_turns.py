"""Turns of threads that share one model."""

import threading

from glassformer.watch.explorer.turns import Turns


def test_threads_get_turns_in_the_order_in_which_they_ask():
    turns, order, waiting = Turns(), [], threading.Event()

    def twice(name):
        for _ in range(2):
            with turns.next():
                waiting.wait(20)
                order.append(name)

    threads = [threading.Thread(target=twice, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    while len(turns) < 2:
        waiting.wait(0.001)
    waiting.set()
    for thread in threads:
        thread.join()
    assert order in (list("abab"), list("baba"))


def test_a_thread_that_fails_gives_its_turn_back():
    turns = Turns()
    try:
        with turns.next():
            raise KeyError
    except KeyError:
        pass
    with turns.next():
        assert len(turns) == 1
    assert len(turns) == 0
