"""Sentences that touch each other in Chinese get spaces between them in English, and no others."""

import pytest

from glassformer.serving.reading import Markup, read_marked, rebuilt_marked
from glassformer.text.links import Link
from glassformer.translating.translation import Translation

CHINESE = "<p>你好。<b>再见</b>。走。</p>"


def rebuilt(text, language, target, is_xml):
    asked = [text], Markup(is_xml=is_xml), language, True
    sentences, _ = read_marked(*asked, 100)
    one = Translation(text=target, tokens=("x",), links=(Link((0, 2), (0, len(target.split()[0]))),))
    return rebuilt_marked(*asked, [[[one for _ in sentences[0]]]])


@pytest.mark.parametrize("is_xml", [False, True])
@pytest.mark.parametrize(
    ("text", "language", "target", "expected"),
    [
        (CHINESE, "zh", "Hello you.", "<p>Hello you. <b>Hello</b> you. Hello you.</p>"),
        (CHINESE, "zh", "好。", "<p>好。<b>好</b>。好。</p>"),
        ("<p>Hello. Go.</p>", "en", "好。", "<p>好。 好。</p>"),
    ],
)
def test_spaces_come_between_sentences_that_touch(text, language, target, expected, is_xml):
    assert rebuilt(text, language, target, is_xml) == [[expected]]
