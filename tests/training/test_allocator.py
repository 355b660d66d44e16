"""Only that the setting is taken: what it is good for shows in benchmarks."""

import sys

from glassformer.training.allocator import keep_memory


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_memory() is False


def test_it_says_whether_the_setting_was_taken():
    assert keep_memory() in (True, False)


def test_a_library_without_the_setting_is_no_error(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("ctypes.CDLL", missing)
    assert keep_memory() is False
