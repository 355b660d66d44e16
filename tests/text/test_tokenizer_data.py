import json
import subprocess
import sys
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from glassformer.errors import VocabularyError
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.tokenizer import CharacterTokenizer, Tokenizer, WordTokenizer
from glassformer.text.vocabulary import SPECIALS

LINES = [
    "the black cat sat on the couch",
    "le chat noir était assis sur le canapé",
    "the brown dog slept on the rug",
] * 3
SUBWORDS = {
    f"{kind}, byte_fallback={fallback}": SentencePieceTokenizer.train(kind, LINES, 320, byte_fallback=fallback)
    for kind in ("bpe", "unigram")
    for fallback in (False, True)
}
subwords = pytest.mark.parametrize("tokenizer", SUBWORDS.values(), ids=SUBWORDS)


def foreign(**settings: Any) -> SentencePieceTokenizer:
    """Return a tokenizer from a foreign model, with our special ids."""
    ids = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
    common = {"vocab_size": 40, "hard_vocab_limit": False, "minloglevel": 2}
    SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=(model := BytesIO()), **ids, **common, **settings
    )
    return SentencePieceTokenizer("unigram", model.getvalue())


@pytest.mark.parametrize("kind", [WordTokenizer, CharacterTokenizer])
def test_words_and_characters_are_a_list_of_tokens_by_id(kind) -> None:
    tokenizer = kind.train(LINES, 100)
    expected = {"kind": tokenizer.kind, "tokens": tokenizer.tokens(range(len(tokenizer)))}
    assert tokenizer.to_dict() == expected


@subwords
def test_subwords_have_a_token_a_score_and_a_type_for_every_id(tokenizer: SentencePieceTokenizer) -> None:
    data = tokenizer.to_dict()
    assert data["kind"] == tokenizer.kind
    assert data["tokens"] == tokenizer.tokens(range(len(tokenizer)))
    assert len(data["scores"]) == len(data["types"]) == len(tokenizer)


@subwords
def test_scores_equal_sentencepieces_to_the_last_bit_of_float32(tokenizer: SentencePieceTokenizer) -> None:
    processor = SentencePieceProcessor(model_proto=tokenizer.model)
    own = [processor.get_score(id) for id in range(len(tokenizer))]
    assert np.array_equal(np.float32(tokenizer.to_dict()["scores"]), np.float32(own))


@subwords
def test_types_distinguish_special_tokens_and_bytes_from_pieces(tokenizer: SentencePieceTokenizer) -> None:
    data = tokenizer.to_dict()
    assert data["types"][:4] == [3, 3, 3, 2]
    bytes_ = [token for token, type in zip(data["tokens"], data["types"], strict=True) if type == 6]
    assert bytes_ in ([], [f"<0x{byte:02X}>" for byte in range(256)])
    assert set(data["types"][4 + len(bytes_) :]) == {1}


@pytest.mark.parametrize("tokenizer", [*SUBWORDS.values(), WordTokenizer.train(LINES, 100)])
def test_json_restores_everything(tokenizer: Tokenizer) -> None:
    data = tokenizer.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert tuple(data["tokens"][:4]) == SPECIALS


@pytest.mark.parametrize("settings", [{"normalization_rule_name": "nfkc"}, {"add_dummy_prefix": False}])
def test_a_model_that_the_page_would_segment_differently_is_an_error(settings) -> None:
    settings = {"normalization_rule_name": "identity", "pad_piece": "<pad>", "bos_piece": "<bos>"} | settings
    with pytest.raises(VocabularyError, match="as glassformer trains them"):
        foreign(**settings).to_dict()


def test_the_data_does_not_need_torch() -> None:
    code = "import sys, glassformer.text.tokenizer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
