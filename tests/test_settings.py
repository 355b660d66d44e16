"""Settings: the default values that apply if a stored file does not have a setting."""

from dataclasses import dataclass

from glassformer.settings import with_defaults


@dataclass
class Old:
    given: int
    size: int = 3


@dataclass
class New:
    names: tuple[str, ...] = ("a",)


def test_a_setting_that_a_file_lacks_has_its_default():
    assert with_defaults({"size": 5, "other": 7}, Old, New) == {"size": 5, "other": 7, "names": ["a"]}
    assert with_defaults({"old.given": 1}, Old, section="old.") == {"old.given": 1, "old.size": 3}
