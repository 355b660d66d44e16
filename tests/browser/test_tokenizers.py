"""The page's tokenizers against Python's: the same ids, tokens, texts and cuts for every text."""

import json
import random
import struct
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser.engine import serve_sources
from glassformer.tasks import english_french
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.tokenizer import CharacterTokenizer, Tokenizer, WordTokenizer
from glassformer.text.words import CLOSING, CONTRACTIONS, ELISIONS, OPENING
from profiles import scaled

KINDS = ["words", "characters", "unigram", "bpe", "unigram with bytes", "bpe with bytes"]
HALVES = ["\ud800", "a\udc00 b", "'\ud83d", "\udfff'", "l'\ude00."]
"""Halves of surrogate pairs, which are no characters: sentencepiece's tokenizers refuse them."""
ODD = [
    *["", " ", "▁", " \t\n ▁ ", "\u00a0", "\ufeff", "\u200b", "\u180e a\u180e", "\0", "a\0b", "\x1c\x1d\x1e\x1f\x85a"],
    *["שלום עולם, מה נשמע?", "مرحبا بالعالم", "e\u0301te\u0301 o\u0308", "\U0010ffff\ufffe", "\ufffd▅", "\ufeffa"],
    *["👩‍👩‍👧‍👦 🇫🇷 👍🏽", "😀'", "'😀", "a😀.", "😀n't"],
    *["</script><!--<script>\"'&", "<eos> <unk> <pad>", "<eos><bos>", "<0x41><0xFF>", "constructor __proto__ toString"],
    *[
        "line\u2028separator\u2029s",
        "thin\u2009space\u3000wide",
        "qui est-ce ?",
        "l' l' animal",
        "( ( a )",
        "the end . ’ s",
    ],
    *["'", "''", "'" * 3, "’’", "'n't's", "d'd", "l'l'l'", "...", ")))(((", "(it's)'d.", "«L’»", "İ' İ's ſ' K'S"],
]
LONG = ["x" * 300, "Щ" * 6000 + " the chat noir", "'" * 50, "le chat" * 200, "n't" * 30 + "😀" * 300]
LEANING = [
    variant
    for token in sorted(OPENING | CLOSING | ELISIONS | {*CONTRACTIONS})
    for case in sorted({token, token.upper(), token.title(), token.replace("'", "’")})
    for variant in (case, f"a{case}", f"{case}a", f"a{case}a", f"a {case} a", f"{case}{case}", f"({case}Arbre{case}).")
]
tricky = st.lists(st.sampled_from([*LEANING, *ODD, "the ", "cat", "😀"]) | st.text(max_size=3), max_size=8)

CUT = """async ([sources, request]) => {
  const { makeTokenizer } = await import(`${sources}engine/tokenizers.js`);
  const { data, texts, lists } = JSON.parse(request);
  const tokenizer = makeTokenizer(data);
  const said = (action) => { try { return action(); } catch (error) { return `${error.name}: ${error.message}`; } };
  const cut = (text) => {
    const ids = tokenizer.encode(text);
    return [ids, tokenizer.tokens(ids), tokenizer.decode(ids), tokenizer.split(text)];
  };
  return JSON.stringify({
    kind: tokenizer.kind,
    cuts: texts.map((text) => said(() => cut(text))),
    decoded: lists.map((ids) => said(() => tokenizer.decode(ids))),
  });
}"""


def on_the_page(page: Any, tokenizer: Tokenizer, texts: list[str], lists: list[list[int]] | None = None) -> Any:
    """Return what the page makes of the texts and the lists of ids, all in one call."""
    # As ASCII, so that nothing between here and there changes half a surrogate pair.
    request = json.dumps({"data": tokenizer.to_dict(), "texts": texts, "lists": lists or []})
    return json.loads(page.evaluate(CUT, [serve_sources(page), request]))


def differences(page: Any, tokenizer: Tokenizer, texts: list[str]) -> list[Any]:
    """Return the first texts that the page cuts otherwise than Python, with what either says."""
    cuts = zip(texts, on_the_page(page, tokenizer, texts)["cuts"], strict=True)
    return [(text, there, cut(tokenizer, text)) for text, there in cuts if there != cut(tokenizer, text)][:3]


def cut(tokenizer: Tokenizer, text: str) -> list[Any]:
    ids = tokenizer.encode(text)
    return [ids, tokenizer.tokens(ids), tokenizer.decode(ids), tokenizer.split(text)]


@cache
def sentences(split: str) -> list[str]:
    """Return the grammar's sentences, in both languages."""
    corpus = english_french(1, train=1_500, valid=0, test=500, unseen=0, pairs=0, senses=0, longer=0)
    return [text for example in corpus.splits[split] for text in (example.source, example.target)]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """Return a tokenizer that knows the grammar's words; words and characters know the odd texts too."""
    lines = sentences("train")
    match request.param.split():
        case ["words"]:
            return WordTokenizer.train([*lines, *ODD, *(text for text in LEANING if "’" not in text)], 5000)
        case ["characters"]:
            return CharacterTokenizer.train([*lines, *ODD], 5000)
    kind, *fallback = request.param.split()
    return SentencePieceTokenizer.train(kind, lines, 600, byte_fallback=bool(fallback))


@pytest.fixture(scope="module", params=KINDS[2:])
def even(request: pytest.FixtureRequest) -> SentencePieceTokenizer:
    """Return a tokenizer whose cuts are equally good but for rounding, and that knows b in longer pieces only."""
    kind, *fallback = request.param.split()
    lines = ["ab ba aab bba abab baba aabb bbaa", "cd dc ccd ddc cdcd dcdc ccdd ddcc", "ac ca bd db"] * 3
    trained = SentencePieceTokenizer.train(kind, lines, 300 if fallback else 60, byte_fallback=bool(fallback))
    model, data = trained.model, trained.to_dict()
    for token, score in zip(data["tokens"], data["scores"], strict=True):
        there = bytes([len(token.encode())]) + token.encode() + b"\x15"  # as sentencepiece's file has it
        assert model.count(there + struct.pack("<f", score)) == 1
        bits = struct.pack("<f", -11.1 * len(token) if kind == "unigram" else score // 3)
        model = model.replace(there + struct.pack("<f", score), there.replace(b"\1b", b"\1q") + bits)
    return SentencePieceTokenizer(kind, model)


def test_a_thousand_sentences_of_the_grammar_are_cut_the_same(page: Any, tokenizer: Tokenizer) -> None:
    assert differences(page, tokenizer, sentences("test")) == []


def test_odd_texts_and_all_leaning_words_are_cut_the_same(page: Any, tokenizer: Tokenizer) -> None:
    assert differences(page, tokenizer, ODD + LONG + LEANING) == []


def test_generated_texts_are_cut_the_same(page: Any, tokenizer: Tokenizer) -> None:
    texts = []

    @scaled(500)
    @given(tricky.map("".join) | st.text())
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    assert differences(page, tokenizer, texts) == []


def test_where_many_cuts_are_equally_good_the_same_one_is_taken(page: Any, even: SentencePieceTokenizer) -> None:
    generator = random.Random(1)
    texts = ["".join(generator.choices("abcd ", k=generator.randrange(40))) for _ in range(1000)]
    assert differences(page, even, [*texts, " ".join(texts)]) == []


def test_any_ids_read_the_same(page: Any, tokenizer: Tokenizer) -> None:
    generator, size = random.Random(1), len(tokenizer)
    lists = [generator.choices(range(min(size, limit)), k=8) for limit in (size, 260) for _ in range(500)]
    there = on_the_page(page, tokenizer, [], lists)["decoded"]
    assert [pair for pair in zip(lists, there, strict=True) if pair[1] != tokenizer.decode(pair[0])] == []


def test_white_space_is_what_python_takes_for_it(page: Any) -> None:
    characters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]  # none of it lies beyond
    texts = ["x".join(characters[start : start + 200]) for start in range(0, len(characters), 200)]
    assert differences(page, CharacterTokenizer.train(texts, 100_000), texts) == []


def test_halves_of_surrogate_pairs_are_cut_the_same_or_refused(page: Any, tokenizer: Tokenizer) -> None:
    if isinstance(tokenizer, SentencePieceTokenizer):
        assert {said.partition(":")[0] for said in on_the_page(page, tokenizer, HALVES)["cuts"]} == {"Error"}
    else:
        assert differences(page, tokenizer, HALVES) == []


def test_an_id_out_of_range_is_an_error(page: Any, tokenizer: Tokenizer) -> None:
    said = on_the_page(page, tokenizer, [], [[4, len(tokenizer)], [-1]])["decoded"]
    assert said[0] == f"RangeError: token id {len(tokenizer)} is not in a vocabulary of {len(tokenizer)} tokens"
    assert said[1].startswith("RangeError: token id -1")


def test_a_tokenizer_says_its_kind(page: Any, tokenizer: Tokenizer) -> None:
    assert on_the_page(page, tokenizer, [])["kind"] == tokenizer.kind
