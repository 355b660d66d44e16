"""Texts as subwords: pieces that sentencepiece has learnt, by byte-pair encoding or as a unigram model.

The model is sentencepiece's own file, so that other programs can read it. It is trained with the normalisation rule
"identity": what changes a text is `normalise` alone, as for words and characters, and not a table inside the model.
"""

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glassformer.errors import CheckpointError, DataError, VocabularyError
from glassformer.text.normalisation import normalise
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, check_ids

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

__all__ = ["SentencePieceTokenizer"]

# The same on every machine: a unigram model's last digits depend on how many threads share the sums.
THREADS = 2
# sentencepiece passes over longer lines without a word; its own limit is 4192 bytes.
LONGEST_LINE = 2**30
ERRORS_ONLY = 2


class SentencePieceTokenizer:
    """A sentencepiece model: decode(encode(text)) == normalise(text) when the model has all its characters.

    With byte fallback that holds for every text.

    Raises:
        VocabularyError: `model` is no sentencepiece model, or its special tokens have other ids than `SPECIALS`.
    """

    suffix = ".model"
    pad_id, bos_id, eos_id, unk_id = PAD_ID, BOS_ID, EOS_ID, UNK_ID

    def __init__(self, kind: Literal["bpe", "unigram"], model: bytes) -> None:
        self.kind = kind
        self.model = model
        self._processor = _processor(model)

    @classmethod
    def train(
        cls,
        kind: Literal["bpe", "unigram"],
        lines: Iterable[str],
        vocab_size: int,
        *,
        character_coverage: float = 1.0,
        byte_fallback: bool = False,
    ) -> "SentencePieceTokenizer":
        """Return a tokenizer with at most `vocab_size` pieces; the same lines always give the same model.

        Raises:
            VocabularyError: there is no text, or more characters than `vocab_size` has room for.
        """
        from sentencepiece import SentencePieceTrainer

        model = BytesIO()
        try:
            SentencePieceTrainer.train(
                sentence_iterator=map(normalise, lines),
                model_writer=model,
                model_type=kind,
                vocab_size=vocab_size,
                hard_vocab_limit=False,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                normalization_rule_name="identity",
                max_sentence_length=LONGEST_LINE,
                num_threads=THREADS,
                minloglevel=ERRORS_ONLY,
                unk_surface=SPECIALS[UNK_ID],
                **_specials(),
            )
        except RuntimeError as error:
            raise VocabularyError(
                f"no {kind} vocabulary of {vocab_size} tokens could be made: sentencepiece says {str(error)!r}. "
                "Check that there is text, and raise tokenizer.vocab_size or lower tokenizer.character_coverage"
            ) from error
        return cls(kind, model.getvalue())

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's pieces, without `<bos>` and `<eos>`; unknown characters are `<unk>`.

        Raises:
            DataError: the text holds half a surrogate pair, which is no character.
        """
        ids: list[int] = self._processor.encode(_checked(text))
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; special ids are skipped, an unknown piece reads "<unk>".

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        text: str = self._processor.decode([id for id in ids if id >= UNK_ID])
        return text

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id, "▁" for a space in it, special ones as "<eos>" and so on.

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        return [self._processor.id_to_piece(id) for id in ids]

    def split(self, text: str) -> list[str]:
        """Return the text's pieces, unknown characters as they stand.

        Raises:
            DataError: the text holds half a surrogate pair, which is no character.
        """
        pieces: list[str] = self._processor.encode(_checked(text), out_type=str)
        return pieces

    def save(self, path: Path) -> None:
        """Write sentencepiece's model file."""
        path.write_bytes(self.model)

    @classmethod
    def load(cls, kind: Literal["bpe", "unigram"], path: Path) -> "SentencePieceTokenizer":
        """Return the tokenizer that `save` wrote.

        Raises:
            CheckpointError: the file cannot be read.
            VocabularyError: it is no sentencepiece model.
        """
        try:
            return cls(kind, path.read_bytes())
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read ({error}): save the run's tokenizers again") from error


def _specials() -> dict[str, Any]:
    """Return sentencepiece's settings that give the special tokens our names and ids."""
    names = ("pad", "bos", "eos", "unk")
    ids = {f"{name}_id": id for id, name in enumerate(names)}
    return ids | {f"{name}_piece": piece for name, piece in zip(names, SPECIALS, strict=True)}


def _processor(model: bytes) -> "SentencePieceProcessor":
    import sentencepiece

    sentencepiece.set_min_log_level(ERRORS_ONLY)
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
    except RuntimeError as error:
        raise VocabularyError("not a sentencepiece model: train the tokenizer again") from error
    if ids != (PAD_ID, BOS_ID, EOS_ID, UNK_ID):
        raise VocabularyError(f"expected a sentencepiece model with pad, bos, eos, unk = 0, 1, 2, 3, got {ids}")
    return processor


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{text[:60]!r} holds half a surrogate pair at {error.start}: decode it as UTF-8") from error
    return normalise(text)
