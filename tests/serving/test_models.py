"""The served languages that a request's code means."""

import pytest

from glassformer.serving.models import Models, ServedModel, code_of
from glassformer.serving.process import ModelProcess


class Process(ModelProcess):
    """A process that is never started."""

    def __init__(self, name):
        self.name = name


def served(*pairs):
    """Return the models of some directions, such as "en-fr"."""
    directions = [pair.split(":") for pair in pairs]
    return Models(
        ServedModel(source=code_of(source), target=code_of(target), process=Process(f"{source}-{target}"), beam_size=1)
        for source, target in directions
    )


@pytest.mark.parametrize(
    ("given", "among", "code"),
    [
        ("fr", "en:fr", "fr"),
        ("FR-ca", "en:fr", "fr"),
        ("fr_FR", "en:fr", "fr"),
        ("en-US", "en:fr", "en"),
        ("en", "en-GB:fr", "en-GB"),
        ("pt", "en:pt-BR en:pt", "pt"),
        ("pt-AO", "en:pt-BR en:pt", "pt"),
        ("pt-br", "en:pt-BR en:pt", "pt-BR"),
        ("pb", "en:pt", "pt"),
        ("zh", "en:zh-Hans en:zh-Hant", "zh-Hans"),
        ("zh-CN", "en:zh", "zh-Hans"),
        ("zh-Hans-CN", "en:zh", "zh-Hans"),
        ("zh-TW", "en:zh-Hans en:zh-Hant", "zh-Hant"),
        ("zh-HK", "en:zh-Hans en:zh-Hant", "zh-Hant"),
        ("zh-Hant-TW", "en:zh", None),
        ("zh-TW", "en:zh", None),
        ("sr", "en:sr-Latn", "sr-Latn"),
        ("sr-Cyrl", "en:sr-Latn", None),
        ("de-1996", "de:en", "de"),
        ("iw", "en:he", "he"),
        ("IW_il", "en:he", "he"),
        ("he-IL", "en:iw", "he"),
        ("no", "en:nb", "nb"),
        ("nb_NO", "en:no", "nb"),
        ("no-NO", "nb:en", "nb"),
        ("nn", "en:no", None),
        ("in", "en:id", "id"),
        ("in-ID", "en:id", "id"),
        ("ji", "en:yi", "yi"),
        ("mo", "en:ro", "ro"),
        ("jw", "en:jv", "jv"),
        ("fil-PH", "en:tl", "tl"),
        ("f", "en:fr", None),
        ("fra", "en:fr", None),
        ("", "en:fr", None),
    ],
)
def test_a_code_means_the_nearest_served_language(given, among, code):
    assert served(*among.split()).code(given) == code
