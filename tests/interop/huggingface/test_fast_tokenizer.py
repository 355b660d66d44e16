"""`tokenizer.json` contains the run's vocabulary; tests/clients tests other programs that read this file."""

import json

import pytest

from cuts import KINDS, trained
from glassformer.errors import ConfigError
from glassformer.interop.huggingface.fast_tokenizer import fast_tokenizer
from glassformer.text.subwords import SentencePieceTokenizer


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_has_our_ids(kind):
    tokenizer = trained(kind)
    written = json.loads(json.dumps(fast_tokenizer(tokenizer)))
    vocabulary = written["model"]["vocab"]
    if written["model"]["type"] == "Unigram":
        vocabulary = {token: id for id, (token, _) in enumerate(vocabulary)}
    assert list(vocabulary) == tokenizer.tokens(range(len(tokenizer)))
    assert [one["content"] for one in written["added_tokens"]] == ["<pad>", "<bos>", "<eos>"]


def test_symbols_need_a_unigram_model():
    lines = ["the cat sees <a> dog and the cat sleeps", "a dog sleeps"]
    unigram, bpe = (SentencePieceTokenizer.train(kind, lines, 60, symbols=["<a>"]) for kind in ("unigram", "bpe"))
    assert dict(fast_tokenizer(unigram)["model"]["vocab"])["<a>"] == 0
    with pytest.raises(ConfigError, match=r"tokenizer\.symbols: expected none with the kind bpe, got '<a>'"):
        fast_tokenizer(bpe)
