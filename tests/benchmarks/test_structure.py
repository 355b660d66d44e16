"""The counts of a checkout's lines, folders, imports and settings."""

import pytest
from benchmarks.structure import ROOT, Walk, answers, own_imports, read_sources


@pytest.fixture
def checkout(tmp_path):
    """Return a checkout with a package of three files."""
    package = tmp_path / "src/glassformer"
    for folder in ("text", "recipes"):
        (package / folder).mkdir(parents=True)
    (package / "errors.py").write_text("ONE = 1\n")
    (package / "text/words.py").write_text("from glassformer.errors import ONE\n")
    (package / "translator.py").write_text(
        "from glassformer.errors import ONE\nfrom glassformer.text import words\nimport os\n\n\n"
        "def late():\n    from glassformer.errors import ONE\n    from glassformer.recipes.toml import load\n"
    )
    (package / "recipes/demo.toml").write_text("[model]\n")
    return tmp_path


def test_imports_count_each_own_module_once_wherever_it_is_imported(checkout):
    package = checkout / "src/glassformer"
    assert own_imports(package / "translator.py", package) == 3
    assert own_imports(package / "errors.py", package) == 0


def test_sources_are_counted_by_folder(checkout):
    found = read_sources(checkout)
    assert found["files"] == 3
    assert found["folders at the top"] == 1  # the folder `recipes` contains no Python
    assert found["own modules that one file imports, at most"] == "3 (translator.py)"
    assert found["lines of recipes"] == 1
    assert found["rooms"] == {"text": "1 / 1"}


def test_a_walk_counts_functions_of_the_package_alone():
    from glassformer.errors import quoted

    once = Walk().of(lambda: quoted("a"))
    assert once.split(" / ")[1] == "1"  # a file
    assert Walk().of(lambda: [quoted(text) for text in ("a", "b")]) == once
    assert Walk().of(lambda: sorted("ba")) == "0 / 0 / 0"


@pytest.mark.slow
def test_the_package_tells_its_settings_commands_and_walks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = answers()
    assert len(read_sources(ROOT)["rooms"]) <= 14
    assert 0 < found["commands"] < found["parameters of commands"]
    forward, *_ = (int(number) for number in found["walk of a forward pass (functions / files / depth)"].split(" / "))
    assert forward < 45
