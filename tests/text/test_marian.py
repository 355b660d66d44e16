"""A tokenizer of an imported model: sentencepiece's pieces, numbered by a vocabulary."""

from io import BytesIO

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from glassformer.errors import CheckpointError, ConfigError, DataError, VocabularyError
from glassformer.text.marian import MarianTokenizer
from glassformer.text.tokenizer import TokenizerConfig, load_tokenizers, save_tokenizers, train_tokenizers
from glassformer.text.vocabulary import SPECIALS

LINES = ["the cat sees a black dog", "the dog sleeps", "a black cat sleeps", "½ of the ﬁsh"]


def trained(lines=LINES, size=60, **options) -> bytes:
    model = BytesIO()
    options = {"vocab_size": size, "hard_vocab_limit": False, "minloglevel": 2, **options}
    SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **options)
    return model.getvalue()


@pytest.fixture(scope="module")
def model() -> bytes:
    return trained()


@pytest.fixture(scope="module")
def pieces(model) -> list[str]:
    processor = SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(id) for id in range(processor.get_piece_size())]


@pytest.fixture
def tokenizer(model, pieces) -> MarianTokenizer:
    return MarianTokenizer(model, [*SPECIALS, ">>fra<<", *reversed(pieces[3:])])


def test_pieces_have_the_ids_of_the_vocabulary(tokenizer, model):
    processor = SentencePieceProcessor(model_proto=model)
    for text in LINES:
        ids = tokenizer.encode(text)
        assert tokenizer.tokens(ids) == processor.encode(text, out_type=str) == tokenizer.split(text)
        assert min(ids) > 3
    assert tokenizer.encode_all(LINES) == [tokenizer.encode(text) for text in LINES]


def test_the_models_own_normalisation_is_used(tokenizer):
    assert tokenizer.encode("the  ﬁsh\u3000sleeps") == tokenizer.encode("the fish sleeps")
    assert tokenizer.decode(tokenizer.encode("½ the ﬁsh ")) == "1/2 the fish".replace("/", "\u2044")


def test_a_leading_code_is_one_token(tokenizer):
    assert tokenizer.tokens(tokenizer.encode(">>fra<< the cat"))[:1] == [">>fra<<"]
    assert tokenizer.encode(">>fra<< the cat")[1:] == tokenizer.encode("the cat")
    assert tokenizer.encode(">>deu<<a")[0] == 3
    assert 4 not in tokenizer.encode("a >>fra<<")
    assert 4 not in tokenizer.encode(">>fra")


def test_texts_cannot_contain_special_tokens(tokenizer):
    for text in ("<eos>", "</s>", "<pad> <bos>"):
        assert min(tokenizer.encode(text)) >= 3


def test_unknown_pieces_are_shown_and_other_special_tokens_skipped(tokenizer):
    cat = tokenizer.encode("cat")
    assert tokenizer.decode([1, *cat, 3, *cat, 2, 0]) == "cat <unk> cat"
    assert tokenizer.decode([]) == ""


def test_another_model_may_join_the_pieces(model, pieces):
    vocabulary = [*SPECIALS, *pieces[3:]]
    two = MarianTokenizer(model, vocabulary, decoder=trained(["the cat is a dog"], 30))
    assert two.decode(two.encode("a black cat sleeps")) == "a black cat sleeps"


def test_both_sides_are_loaded_as_they_were_saved(tokenizer, model, pieces, tmp_path):
    other = MarianTokenizer(model, [*SPECIALS, *pieces[3:]], decoder=model)
    save_tokenizers(tmp_path, tokenizer, other)
    source, target = load_tokenizers(tmp_path)
    assert source.encode_all(LINES) == tokenizer.encode_all(LINES)
    assert target.encode_all(LINES) == other.encode_all(LINES)
    assert (source.kind, len(source), target.decoder) == ("marian", len(tokenizer), model)


def test_texts_are_cut_in_several_ways(tokenizer):
    ways = {tuple(tokenizer.resampled(["the cat sees a black dog"], 0.1, seed)[0]) for seed in range(20)}
    assert len(ways) > 1
    assert {tokenizer.decode(ids) for ids in ways} == {"the cat sees a black dog"}
    assert tokenizer.resampled(LINES, 0.1, 7) == tokenizer.resampled(LINES, 0.1, 7)


@pytest.mark.parametrize("kind", ["word", "char"])
def test_texts_of_whole_words_or_characters_have_no_other_cut(kind):
    tokenizer = MarianTokenizer(trained(model_type=kind), [*SPECIALS, "▁the"])
    with pytest.raises(ConfigError, match=r"tokenizer.sampling = 0.1 needs subwords"):
        tokenizer.resampled(LINES, 0.1, 1)


def test_half_a_surrogate_pair_is_refused(tokenizer):
    with pytest.raises(DataError, match="half a surrogate pair"):
        tokenizer.encode("\ud800")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["<pad>", "a"], "begins with"),
        ([*SPECIALS, "a", "b", "a"], "got 'a' more than once"),
        ([*SPECIALS, "<bos>"], "got '<bos>' more"),
    ],
)
def test_an_impossible_vocabulary_is_refused(model, tokens, message):
    with pytest.raises(VocabularyError, match=message):
        MarianTokenizer(model, tokens)


def test_damaged_files_are_named(tokenizer, tmp_path):
    with pytest.raises(VocabularyError, match="not a sentencepiece model"):
        MarianTokenizer(b"\x00" * 99, SPECIALS)
    tokenizer.save(tmp_path / "source")
    (tmp_path / "source.model").write_bytes(b"nonsense")
    with pytest.raises(VocabularyError, match="source"):
        MarianTokenizer.load(tmp_path / "source")
    (tmp_path / "source.model").unlink()
    with pytest.raises(CheckpointError, match=r"source\.model"):
        MarianTokenizer.load(tmp_path / "source")
    (tmp_path / "source.json").write_text('{"format_version": 1, "tokens": [1]}')
    with pytest.raises(CheckpointError, match=r"source\.json: expected a list of strings"):
        MarianTokenizer.load(tmp_path / "source")


def test_it_cannot_be_trained():
    with pytest.raises(VocabularyError, match="cannot be trained: its vocabulary comes with an imported model"):
        train_tokenizers(LINES, LINES, TokenizerConfig(kind="marian", vocab_size=50))
