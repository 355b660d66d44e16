"""`--device`: commands compute on the given device, and a device that does not exist gives one line of error."""

import pytest

COMMANDS = {
    "train": ("train", "{run}/config.toml"),
    "translate": ("translate", "{run}", "{source}"),
    "evaluate": ("evaluate", "{run}", "{source}", "{target}"),
    "score": ("score", "{run}", "{source}", "{target}"),
    "bulk": ("bulk", "{run}", "{source}", "--output", "{folder}/bulk"),
    "check": ("check", "{run}"),
    "explore": ("explore", "{run}", "--html", "{folder}/page.html"),
}


@pytest.fixture
def command(glassformer, trained, tmp_path):
    """Return a function that calls a command on a device, for a text of one line and its translation."""
    (tmp_path / "in.en").write_text("the cat\n")
    (tmp_path / "in.fr").write_text("le chat\n")
    places = {"run": trained, "folder": tmp_path, "source": tmp_path / "in.en", "target": tmp_path / "in.fr"}
    return lambda name, device: glassformer(*(word.format(**places) for word in COMMANDS[name]), "--device", device)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_device_is_one_line_and_status_1(command, name):
    result = command(name, "cuda:99")
    assert result.status == 1
    last = result.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert "device: expected" in last
    assert "cuda:99" in last


@pytest.mark.slow
@pytest.mark.parametrize("name", ["translate", "evaluate", "score", "bulk", "check", "explore"])
def test_the_cpu_can_be_named(command, name):
    assert command(name, "cpu").status == 0
