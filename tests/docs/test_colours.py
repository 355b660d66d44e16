"""The site has the same colours as the explorer's stage."""

import re

import pytest
from pages import ROOT

STAGE = (ROOT / "web/ui/figure/stage.css").read_text(encoding="utf-8")
SITE = (ROOT / "docs/site/static/site.css").read_text(encoding="utf-8")


def colours(text: str, selector: str) -> dict[str, str]:
    """Return the colours that the first rule of a selector names."""
    [rule] = re.findall(rf"^\s*{re.escape(selector)} {{(.*?)}}", text, flags=re.MULTILINE | re.DOTALL)[:1]
    return dict(re.findall(r"(--[\w-]+): (#[0-9a-f]+);", rule))


@pytest.mark.parametrize(
    ("ours", "stage"),
    [
        ("body", ".gf-stage-root"),
        ('body[data-theme="dark"]', '[data-theme="dark"] .gf-stage-root'),
        ('body:not([data-theme="light"])', '[data-theme="dark"] .gf-stage-root'),
    ],
)
def test_the_colours_are_those_of_the_stage(ours, stage):
    found = colours(SITE, ours)
    assert len(found) >= 25
    assert found.items() <= colours(STAGE, stage).items()
