"""What a reader sees of outputs while greedy search writes them."""

import threading
from io import BytesIO
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.text.marian import MarianTokenizer
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.tokenizer import Tokenizer, TokenizerConfig, train_tokenizers
from glassformer.text.vocabulary import SPECIALS
from glassformer.translating.growing import Beginning, Growth, shown
from glassformer.translating.translation import Translation
from glassformer.translator import Translator
from models import random_translator

LINES = ["le chat n'a pas dormi , dit - il : « 猫 » .", "l'été 😀 \u00a0 e\u0301", "un  chien ▁ ( 3 , 5 )"]
TEXTS = [
    "the cat sees",
    "a big black dog and the cat sleeps .",
    "",
    "dog dog dog",
    "the cat sees",
    "black",
    "cat 1234 .",
]


def marian() -> MarianTokenizer:
    model = BytesIO()
    how = {"vocab_size": 330, "hard_vocab_limit": False, "byte_fallback": True, "minloglevel": 2}
    SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=model, **how)
    processor = SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(id) for id in range(3, processor.get_piece_size())]
    return MarianTokenizer(model.getvalue(), [*SPECIALS, *pieces])


def subwords(kind) -> SentencePieceTokenizer:
    return SentencePieceTokenizer.train(kind, LINES, 330, byte_fallback=True)


def whole_tokens(kind) -> Tokenizer:
    return train_tokenizers(LINES, LINES, TokenizerConfig(kind=kind, vocab_size=60))[0]


TOKENIZERS = [subwords("bpe"), subwords("unigram"), whole_tokens("words"), whole_tokens("characters"), marian()]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda one: one.kind)
@given(numbers=st.lists(st.integers(0, 10**6), max_size=12))
@example(numbers=[])
def test_first_tokens_show_a_beginning_of_the_whole_text(tokenizer, numbers) -> None:
    ids = [4 + number % (len(tokenizer) - 4) if number % 9 else 3 for number in numbers]
    whole, last = tokenizer.decode(ids), ""
    for count in range(len(ids) + 1):
        beginning = shown(tokenizer.decode(ids[:count]))
        assert beginning.startswith(last)
        assert whole.startswith(beginning)
        last = beginning


@pytest.mark.parametrize("tokenizer", [one for one in TOKENIZERS if "<0xF0>" in one.tokens(range(len(one)))])
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs"], exclude_characters="\ufffd"), max_size=6))
@example(text="🦊é한")
def test_no_half_of_a_character_is_shown(tokenizer, text) -> None:
    ids = tokenizer.encode(text)
    whole = tokenizer.decode(ids)  # Marian's normalisation may change the text
    for count in range(len(ids)):
        beginning = shown(tokenizer.decode(ids[:count]))
        assert whole.startswith(beginning)
        assert "\ufffd" not in beginning


@pytest.fixture(scope="module", params=["torch", "ctranslate2"])
def translator(request, tmp_path_factory) -> Translator:
    """Return a translator whose outputs are words, cut after a few tokens or ended before."""
    made = random_translator(tmp_path_factory.mktemp("growing"), extra_length=9)
    if request.param == "torch":
        return made
    made.bundle.save(made.model)
    export_ctranslate2(made.bundle, made.bundle.folder / "exported")
    return Translator.load(made.bundle.folder / "exported", engine="ctranslate2")


def grown(
    translator: Translator, given_up: tuple[int, ...] = (), **options
) -> tuple[dict[int, list[Beginning]], list[Translation]]:
    """Return all beginnings of each output, and the translations; some texts are given up at once."""
    steps, seen = translator.grow(TEXTS, **options), dict[int, list[Beginning]]()
    try:
        news = next(steps)
        while True:
            for place, one in news.items():
                seen.setdefault(place, []).append(one)
            news = steps.send(given_up)
    except StopIteration as end:
        return seen, end.value


def outputs(found: list[Translation]) -> list[tuple]:
    """Return all but the log probabilities, whose last digits may differ between threads of PyTorch."""
    return [(one.text, one.tokens, one.status, one.reasons, one.retry, one.kept) for one in found]


@pytest.mark.slow
def test_outputs_grow_into_the_translations_that_they_are_without_readers(translator) -> None:
    seen, found = grown(translator, beam_size=1)
    assert outputs(found) == outputs(translator.translate(TEXTS, beam_size=1))
    assert [*sorted(seen)] == [0, 1, 3, 4, 5]  # not the blank text, nor the one whose number must be kept
    for place, beginnings in seen.items():
        assert beginnings[-1] == Beginning(found[place].text, is_whole=True)
        texts = [one.text for one in beginnings]
        assert all(one == beginnings[-1] for one in beginnings if one.is_whole)
        assert all(after.startswith(before) for before, after in pairwise(texts))
    assert "max_length" in {one.status for one in found}


@pytest.mark.slow
def test_a_search_in_one_thread_shows_every_token(translator) -> None:
    """Here, the reader waits for no other process, and the search waits for the reader."""
    told: list[tuple[int, int]] = []

    class Attentive(Growth):
        def tell(self, place, ids, is_whole) -> None:
            told.append((place, len(ids)))

    found = translator.translate(TEXTS[:2], beam_size=1, growth=Attentive(range(2)))
    for place, one in enumerate(found):
        written = len(one.tokens) - (one.status == "max_length")  # nobody waits for the last <eos>, which is forced
        counts = [count for told_place, count in told if told_place == place]
        assert counts[:written] == [*range(1, written + 1)]


@pytest.mark.slow
def test_prefixes_are_shown_first_and_only_watched_texts_are_shown(translator) -> None:
    seen, found = grown(translator, watched=[1, 3], beam_size=1, prefix="le chien")
    assert outputs(found) == outputs(translator.translate(TEXTS, beam_size=1, prefix="le chien"))
    assert seen.keys() == {1, 3}
    assert all(found[place].text.startswith(each[0].text) for place, each in seen.items())


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"beam_size": 2}, {"beam_size": 1, "retry": True}])
def test_nothing_is_shown_that_may_be_replaced(translator, options) -> None:
    seen, found = grown(translator, **options)
    assert not seen
    assert outputs(found) == outputs(translator.translate(TEXTS, **options))


@pytest.mark.slow
def test_outputs_that_are_given_up_end_and_change_no_other(translator) -> None:
    class Deserted(Growth):
        def is_wanted(self, place) -> bool:
            return place not in (1, 3)

    whole = translator.translate(TEXTS, beam_size=1)
    found = translator.translate(TEXTS, beam_size=1, growth=Deserted(range(len(TEXTS))))
    for place, (one, other) in enumerate(zip(found, whole, strict=True)):
        assert len(one.tokens) <= 2 if place in (1, 3) else one.tokens == other.tokens


@pytest.mark.slow
def test_equal_texts_go_on_as_long_as_one_of_them_is_wanted(translator) -> None:
    class Deserted(Growth):
        def is_wanted(self, place) -> bool:
            return place != 0

    assert TEXTS[0] == TEXTS[4]
    found = translator.translate(TEXTS, beam_size=1, growth=Deserted(range(len(TEXTS))))
    assert outputs(found) == outputs(translator.translate(TEXTS, beam_size=1))


@pytest.mark.slow
def test_a_reader_that_leaves_ends_the_search(translator) -> None:
    before = threading.active_count()
    steps = translator.grow(TEXTS, beam_size=1)
    next(steps)
    steps.close()
    assert threading.active_count() == before
    assert translator.translate(TEXTS[:1], beam_size=1)


@pytest.mark.slow
def test_errors_are_those_of_translate(translator) -> None:
    with pytest.raises(Exception, match="beam_size"):
        next(translator.grow(TEXTS, beam_size=0))
