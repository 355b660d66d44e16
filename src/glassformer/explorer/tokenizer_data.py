"""A tokenizer as plain data, from which the page cuts texts exactly as Python does."""

from typing import TYPE_CHECKING, Any

from glassformer.errors import VocabularyError
from glassformer.text.lookup import LookupTokenizer
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

__all__ = ["tokenizer_data"]

# The numbers of sentencepiece's ModelProto.
NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6
# A normalisation rule other than "identity" changes at least one of these, and the dummy prefix shows as the first "▁".
TOUCHSTONE, UNTOUCHED = "Ａ ﬁ ½ ß", "▁Ａ▁ﬁ▁½▁ß"


def tokenizer_data(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return what the page needs to cut texts as `tokenizer` does, ready for JSON.

    Always "kind" and "tokens", all tokens by id; for sentencepiece's kinds also "scores" and "types", by id too (types
    by the numbers of sentencepiece's ModelProto).

    Raises:
        VocabularyError: the page could not cut as this tokenizer does.
    """
    if isinstance(tokenizer, LookupTokenizer):
        return {"kind": tokenizer.kind, "tokens": list(tokenizer.vocabulary.tokens)}
    if isinstance(tokenizer, SentencePieceTokenizer):
        return {"kind": tokenizer.kind, **_pieces(tokenizer.model)}
    raise VocabularyError(f"the page cuts words, characters, bpe and unigram, got {type(tokenizer).__name__}")


def _pieces(model: bytes) -> dict[str, Any]:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=model)
    ids = range(processor.get_piece_size())
    types = [_type(processor, id) for id in ids]
    if UNUSED in types or processor.normalize(TOUCHSTONE) != UNTOUCHED:
        raise VocabularyError(
            "the page knows sentencepiece models as glassformer trains them: with the normalization rule 'identity', "
            "add_dummy_prefix, and no unused pieces. Train the tokenizer with `glassformer train`"
        )
    return {
        "tokens": [processor.id_to_piece(id) for id in ids],
        # Nine digits tell any two float32 apart.
        "scores": [float(f"{processor.get_score(id):.9g}") for id in ids],
        "types": types,
    }


def _type(processor: "SentencePieceProcessor", id: int) -> int:
    kinds = {
        UNKNOWN: processor.is_unknown,
        CONTROL: processor.is_control,
        UNUSED: processor.is_unused,
        BYTE: processor.is_byte,
    }
    return next((number for number, is_one in kinds.items() if is_one(id)), NORMAL)
