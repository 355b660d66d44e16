"""The layers around a search: their order, and the start of decoding before the first result is requested."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from glassformer.decoding.engine import Search
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.glossary import Glossary
from glassformer.text.terms import Terms
from glassformer.translating.layers import Layers
from glassformer.translating.request import Layer, Request, Translate
from glassformer.translating.translation import Translation
from models import random_translator


def request(*texts: str) -> Request:
    return Request(
        texts, [""] * len(texts), range(len(texts)), Search(settings=DecodingConfig(split=False)), Terms(protect=False)
    )


def marking(mark: str) -> Layer:
    """Return a layer that puts a mark before each text and after each translation."""

    def layer(asked: Request, below: Translate) -> Iterator[Translation]:
        found = below(asked._replace(texts=[mark + text for text in asked.texts]))
        return (Translation(text=one.text + mark) for one in found)

    return layer


def echo(asked: Request) -> Iterator[Translation]:
    return (Translation(text=f"({text})") for text in asked.texts)


class Listed(Layers):
    """Fixed layers around a fixed search, independent of the request."""

    def __init__(self, layers: list[Layer], search: Translate) -> None:
        self.layers, self.search, self.reader, self.rewrites = layers, search, self, ()
        self.ranking = self  # what others rank is not looked at before the search

    def read(self, asked: Request) -> Request:
        return asked

    def needed(self, asked: Request) -> Iterator[Layer]:
        return iter(self.layers)


def test_a_request_passes_the_layers_from_the_first_and_translations_come_back():
    answer = Listed([marking("a"), marking("b")], echo)
    assert [one.text for one in answer(request("x", "y"))] == ["(bax)ba", "(bay)ba"]


def test_without_layers_the_search_answers():
    assert [one.text for one in Listed([], echo)(request("x"))] == ["(x)"]


def test_decoding_begins_before_a_translation_is_read():
    begun = []

    def search(asked: Request) -> Iterator[Translation]:
        begun.append(asked.texts)
        return echo(asked)

    Listed([marking("a")], search)(request("x"))
    assert begun == [["ax"]]


def test_a_request_within_another_asks_for_no_second_search_and_is_not_judged():
    asked = request("x")
    asked = asked._replace(search=Search(settings=DecodingConfig(retry=True), sums=True))
    within = asked.within(beam_size=7)
    assert (within.guards, within.search.sums, within.search.settings.retry) == (False, False, False)
    assert within.search.settings.beam_size == 7


PLAIN = request("the 1000 cats")._replace(guards=False)
RETRYING = replace(PLAIN.search, settings=DecodingConfig(retry=True))


@pytest.mark.parametrize(
    ("asked", "needed"),
    [
        (PLAIN, []),
        (PLAIN._replace(guards=True), ["Judging"]),
        (PLAIN._replace(terms=Terms()), ["KeepingTerms"]),
        (PLAIN._replace(terms=Terms(protect=False, glossary=Glossary.of({"cats": "chats"}))), ["KeepingTerms"]),
        (PLAIN._replace(terms=Terms(), texts=["the cat"]), []),
        (PLAIN._replace(search=RETRYING), ["Retrying", "Judging"]),  # the guards decide what is searched again
        (PLAIN._replace(search=replace(RETRYING, sample=True)), []),
        (PLAIN._replace(search=RETRYING, terms=Terms()), ["Retrying", "Judging", "KeepingTerms"]),
    ],
)
def test_a_request_passes_only_the_layers_that_it_needs(tmp_path, asked, needed):
    translator = random_translator(tmp_path)
    layers = Layers((translator.bundle,), translator.engine, None)
    assert [type(layer).__name__ for layer in layers.needed(layers.reader.read(asked))] == needed
