"""The planted mistakes can be planted: the code that each of them changes is still there."""

import pytest

from mutations import MISTAKES, ROOT


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name.replace(" ", "-"))
def test_what_a_mistake_changes_is_there_once(mistake):
    path = ROOT / "src/glassformer" / mistake.file
    assert path.read_text(encoding="utf-8").count(mistake.old) == 1
    assert mistake.new != mistake.old
    assert (ROOT / mistake.tests.split(" ")[0]).is_file()
