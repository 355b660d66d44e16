import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import CheckpointError, DataError, VocabularyError
from glassformer.text.normalisation import normalise
from glassformer.text.subwords import SentencePieceTokenizer
from profiles import scaled

LINES = [
    "the black cat sat on the couch",
    "le chat noir était assis sur le canapé",
    "the brown dog slept on the rug",
] * 3
KINDS = ["bpe", "unigram"]
covered = st.text("abcdeéhiklnorstu ▁\u00a0\t", max_size=30)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> SentencePieceTokenizer:
    return SentencePieceTokenizer.train(request.param, LINES, 60)


@pytest.fixture(scope="module", params=KINDS)
def byte_tokenizer(request: pytest.FixtureRequest) -> SentencePieceTokenizer:
    return SentencePieceTokenizer.train(request.param, LINES, 320, byte_fallback=True)


@given(covered)
def test_decoding_restores_every_text_of_known_characters(tokenizer: SentencePieceTokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == normalise(text)


@scaled(300)
@given(st.text())
def test_byte_fallback_restores_every_text(byte_tokenizer: SentencePieceTokenizer, text: str) -> None:
    ids = byte_tokenizer.encode(text)
    assert byte_tokenizer.decode(ids) == normalise(text, "plain")
    assert all(4 <= id < len(byte_tokenizer) for id in ids)


@given(text=st.text())
def test_a_loaded_tokenizer_normalises_texts_as_it_was_trained(byte_tokenizer: SentencePieceTokenizer, text) -> None:
    older = SentencePieceTokenizer(byte_tokenizer.kind, byte_tokenizer.model, "spaces")
    assert older.decode(older.encode(text)) == normalise(text)
    assert older.join(older.split("e\u0301\u00ad")) == "e<0xCC><0x81><0xC2><0xAD>"


@given(st.text())
def test_encoding_never_gives_the_ids_of_pad_bos_and_eos(tokenizer: SentencePieceTokenizer, text: str) -> None:
    assert all(3 <= id < len(tokenizer) for id in tokenizer.encode(text))


def test_special_tokens_have_our_names_and_ids(tokenizer: SentencePieceTokenizer) -> None:
    assert tokenizer.tokens(range(4)) == ["<pad>", "<bos>", "<eos>", "<unk>"]


def test_special_ids_are_skipped_and_unknown_characters_become_unk(tokenizer: SentencePieceTokenizer) -> None:
    assert tokenizer.decode([1, *tokenizer.encode("the cat"), 2, 0, 0]) == "the cat"
    assert tokenizer.decode(tokenizer.encode("the Щ")) == "the <unk>"


def test_pieces_show_spaces_and_unknown_characters(tokenizer: SentencePieceTokenizer) -> None:
    assert "".join(tokenizer.split("the  Щ cat")) == "▁the▁Щ▁cat"
    assert "".join(tokenizer.tokens(tokenizer.encode("the Щ"))) == "▁the▁<unk>"


def test_an_id_out_of_range_is_an_error(tokenizer: SentencePieceTokenizer) -> None:
    with pytest.raises(VocabularyError, match="ids 0 to"):
        tokenizer.decode([len(tokenizer)])
    with pytest.raises(VocabularyError, match="-1"):
        tokenizer.tokens([-1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_lines_give_the_same_model(kind) -> None:
    assert SentencePieceTokenizer.train(kind, LINES, 60).model == SentencePieceTokenizer.train(kind, LINES, 60).model


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_does_not_depend_on_the_order_of_dicts(kind) -> None:
    code = (
        "import hashlib; from glassformer.text.subwords import SentencePieceTokenizer as T;"
        f"print(hashlib.sha256(T.train({kind!r}, {LINES!r}, 60).model).hexdigest())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True)
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != b""
    assert [run.stderr for run in runs] == [b"", b""]


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_corpus_makes_a_smaller_vocabulary(kind) -> None:
    assert 4 < len(SentencePieceTokenizer.train(kind, ["a b c"], 8000)) < 20


@pytest.mark.parametrize("kind", KINDS)
def test_very_long_lines_are_learned_from(kind) -> None:
    long = "xylophone " * 2000
    tokenizer = SentencePieceTokenizer.train(kind, ["abc", long], 50)
    assert tokenizer.decode(tokenizer.encode("xylophone")) == "xylophone"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_look_like_special_tokens_are_learned_from_and_restored(kind) -> None:
    text = "x<eos> <unk> <pad>y <s> </s>"
    tokenizer = SentencePieceTokenizer.train(kind, [text, "pause, donkey", text], 60)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert min(tokenizer.encode(text)) > 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "the lines hold no text; name files with text"),
        (["", " \t"], "the lines hold no text; name files with text"),
        (["a▅", "", "▅"], "each line holds ▅, and sentencepiece skips such lines; remove this character"),
    ],
)
def test_lines_without_a_vocabulary_are_an_error_with_their_reason(capfd, kind, lines: list[str], reason: str) -> None:
    with pytest.raises(VocabularyError) as caught:
        SentencePieceTokenizer.train(kind, lines, 100)
    assert str(caught.value) == f"no subword vocabulary could be made: {reason}"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "rest", "others"),
    [
        ({}, 4, "4 special tokens"),
        ({"byte_fallback": True}, 260, "4 special tokens, 256 bytes"),
        ({"symbols": ["<de>", "<fr>"]}, 6, "4 special tokens, 2 symbols"),
    ],
)
def test_too_many_characters_are_an_error_whose_advice_helps(capfd, kind, settings: dict, rest: int, others: str):
    lines = ["".join(chr(0x4E00 + number) for number in range(50)), "abcdefghij" * 1000 + "<de>"]
    size, needed = rest + 40, rest + 50 + 10 + 1 + (0 if "symbols" in settings else 2)  # "▁"; "<" and ">"
    with pytest.raises(VocabularyError) as caught:
        SentencePieceTokenizer.train(kind, lines, size, **settings)
    message, coverage, _ = re.split(r"character_coverage to (0\.99\d+)", str(caught.value))
    assert message == (
        f"tokenizer.vocab_size: expected at least {needed}, for {needed - rest} different characters, {others}, got "
        f"{size}; raise it to {needed}, or set tokenizer."
    )
    assert capfd.readouterr() == ("", "")
    with pytest.raises(VocabularyError, match=f"raise it to {needed}"):
        SentencePieceTokenizer.train(kind, lines, needed - 1, **settings)
    assert len(SentencePieceTokenizer.train(kind, lines, needed, **settings)) == needed
    SentencePieceTokenizer.train(kind, lines, size, **settings | {"character_coverage": float(coverage)})


@pytest.mark.parametrize("kind", KINDS)
def test_a_coverage_that_sentencepiece_refuses_is_not_advised(kind) -> None:
    with pytest.raises(VocabularyError, match=r"got 20; raise it to 64$"):
        SentencePieceTokenizer.train(kind, ["".join(chr(0x4E00 + number) for number in range(59))], 20)


@pytest.mark.parametrize("kind", KINDS)
def test_another_error_of_sentencepiece_is_one_sentence_of_ours(kind) -> None:
    with pytest.raises(
        VocabularyError, match=r"could be made: no reason is known; change the settings in \[tokenizer\]$"
    ):
        SentencePieceTokenizer.train(kind, LINES, 100, character_coverage=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_surrogate_pair_in_training_is_named(kind) -> None:
    with pytest.raises(DataError, match=r"'a\\ud800b' holds half a surrogate pair at 1"):
        SentencePieceTokenizer.train(kind, [*LINES, "a\ud800b"], 100)


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_encoding_write_nothing(capfd, kind) -> None:
    tokenizer = SentencePieceTokenizer.train(kind, [*LINES, "nul \0 and \u2028", "▁"], 100)
    tokenizer.decode(tokenizer.encode("the \0 cat"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("model", [b"", b"garbage", b"\0" * 100])
def test_a_file_that_is_not_a_model_is_refused(capfd, model: bytes) -> None:
    with pytest.raises(VocabularyError, match="not a sentencepiece model"):
        SentencePieceTokenizer("bpe", model)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("old", ["the", "<unk>"])
def test_a_model_with_a_piece_that_is_not_utf8_is_refused(old: str) -> None:
    model = SentencePieceTokenizer.train("bpe", LINES, 60).model
    assert old.encode() in model
    with pytest.raises(VocabularyError, match="not a sentencepiece model"):
        SentencePieceTokenizer("bpe", model.replace(old.encode(), b"\xff" * len(old.encode())))


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"joint\.model"):
        SentencePieceTokenizer.load("bpe", tmp_path / "joint.model")


def test_half_a_surrogate_pair_is_an_error(tokenizer: SentencePieceTokenizer) -> None:
    with pytest.raises(DataError, match="surrogate"):
        tokenizer.encode("half \ud83d pair")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_a_symbol_is_one_token_everywhere(kind, byte_fallback: bool) -> None:
    size = 60 + 256 * byte_fallback
    symbols = ("<de>", "²⁰", "cat")
    tokenizer = SentencePieceTokenizer.train(kind, LINES, size, symbols=symbols, byte_fallback=byte_fallback)
    for text in ("<de> the black cat", "the<de>cat", "²⁰²⁰ dogs", "<de>"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert sum(tokenizer.split(text).count(symbol) for symbol in symbols) == sum(
            text.count(symbol) for symbol in symbols
        )


@pytest.mark.parametrize("kind", KINDS)
def test_symbols_survive_saving(tmp_path: Path, kind) -> None:
    tokenizer = SentencePieceTokenizer.train(kind, LINES, 60, symbols=("<de>",))
    tokenizer.save(tmp_path / "joint.model")
    assert "<de>" in SentencePieceTokenizer.load(kind, tmp_path / "joint.model").split("<de> the cat")


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_symbols_are_an_error(capfd, kind) -> None:
    with pytest.raises(VocabularyError, match=r"tokenizer\.vocab_size: .*, 40 symbols, got 30; raise it to 6\d$"):
        SentencePieceTokenizer.train(kind, LINES, 30, symbols=[f"<{number}>" for number in range(40)])
    assert capfd.readouterr() == ("", "")


@scaled(50)
@given(st.lists(st.text(max_size=20), max_size=70))
def test_many_texts_are_encoded_like_single_texts(tokenizer: SentencePieceTokenizer, texts: list[str]) -> None:
    assert tokenizer.encode_all(texts) == [tokenizer.encode(text) for text in texts]


def test_half_a_surrogate_pair_among_many_is_an_error(tokenizer: SentencePieceTokenizer) -> None:
    with pytest.raises(DataError, match="surrogate"):
        tokenizer.encode_all(["the cat"] * 100 + ["half \ud83d pair"] + ["the dog"] * 100)


@scaled(50)
@given(texts=st.lists(covered.map(normalise), max_size=9), seed=st.integers(0, 2**40))
def test_randomly_segmented_texts_are_restored(byte_tokenizer: SentencePieceTokenizer, texts, seed: int) -> None:
    cuts = byte_tokenizer.resampled(texts, 0.3, seed)
    assert [byte_tokenizer.decode(ids) for ids in cuts] == texts
    assert cuts == byte_tokenizer.resampled(texts, 0.3, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_encoding_uses_no_random_numbers(kind) -> None:
    tokenizer = SentencePieceTokenizer.train(kind, LINES, 60)
    before = tokenizer.encode_all(LINES)
    tokenizer.resampled(LINES, 0.5, 1)
    assert tokenizer.encode_all(LINES) == before == [tokenizer.encode(line) for line in LINES]
