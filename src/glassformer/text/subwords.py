"""Texts as subwords: pieces learned by sentencepiece, by byte-pair encoding or as a unigram model.

The model is stored in sentencepiece's own format, which other software can read. Its normalisation rule is "identity",
so that only `normalise` changes a text, as for words and characters. Other software normalises no text before the
model cuts it: an export's model card says what to do.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glassformer.errors import CheckpointError, DataError, VocabularyError, quoted, shortened
from glassformer.system.files import read_bytes
from glassformer.text.normalisation import SPACE_MARK, Normalisation, is_normal, normalisation_of, normalise
from glassformer.text.subword_model import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, check_ids

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

__all__ = ["BYTES", "LEAST_COVERAGE", "SentencePieceTokenizer", "check_characters", "load_processor"]

# The same number on every machine, because the last digits of a unigram model's scores depend on the thread count.
THREADS = 2
SENTENCEPIECE_SUFFIX = ".model"
# sentencepiece silently skips longer lines, and its default limit is 4192 bytes.
LONGEST_SENTENCE = 2**30
ERRORS_ONLY = 2
LOOKED_AT_TOGETHER = 32
LEAST_COVERAGE = 0.98
"""Minimum of the character coverage in sentencepiece."""
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The tokens of bytes."""
RESERVED = "▅"
"""A character that sentencepiece uses itself; it skips lines that have this character."""
_SIZES = re.compile(r"(\d+) vs (\d+)")
"""The size of a vocabulary and the size that it needs at least, in sentencepiece's error."""
# Each normalisation rule except "identity" changes one of these characters. The first "▁" is the dummy prefix.
TOUCHSTONE, UNTOUCHED = "Ａ ﬁ ½ ß", "▁Ａ▁ﬁ▁½▁ß"


class SentencePieceTokenizer:
    """A sentencepiece model as a tokenizer.

    decode(encode(text)) == normalise(text, normalisation) if the model has all characters of the text, or has byte
    fallback.

    Args:
        kind: the kind of the model.
        model: the sentencepiece model, with our special tokens.
        normalisation: how texts are normalised; by default, as the model's pieces show.

    Raises:
        VocabularyError: `model` is not a sentencepiece model, or its special tokens do not have the ids of `SPECIALS`.
    """

    pad_id, bos_id, eos_id, unk_id = PAD_ID, BOS_ID, EOS_ID, UNK_ID

    def __init__(
        self, kind: Literal["bpe", "unigram"], model: bytes, normalisation: Normalisation | None = None
    ) -> None:
        self.kind = kind
        self.model = model
        self._processor = _processor(model)
        self.normalisation = normalisation or normalisation_of(self.tokens(range(len(self))))

    @classmethod
    def train(
        cls,
        kind: Literal["bpe", "unigram"],
        lines: Iterable[str],
        vocab_size: int,
        *,
        character_coverage: float = 1.0,
        byte_fallback: bool = False,
        symbols: Sequence[str] = (),
    ) -> "SentencePieceTokenizer":
        """Return a tokenizer with at most `vocab_size` pieces; the same lines always give the same model.

        Raises:
            VocabularyError: the lines hold no text, or more characters than `vocab_size` has room for.
            DataError: a line holds half a surrogate pair, which is not a character.
        """
        from sentencepiece import SentencePieceTrainer

        model, normal = BytesIO(), [normalise(line, "plain") for line in lines]
        try:
            SentencePieceTrainer.train(
                sentence_iterator=iter(normal),  # a Ctrl-C inside a Python iterator would become a RuntimeError here
                model_writer=model,
                model_type=kind,
                vocab_size=vocab_size,
                hard_vocab_limit=False,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                user_defined_symbols=list(symbols),
                normalization_rule_name="identity",
                max_sentence_length=LONGEST_SENTENCE,
                num_threads=THREADS,
                minloglevel=ERRORS_ONLY,
                unk_surface=SPECIALS[UNK_ID],
                **_specials(),
            )
        except RuntimeError as error:
            others = {"special tokens": len(SPECIALS), "symbols": len(symbols), "bytes": 256 * byte_fallback}
            raise VocabularyError(_why_none(normal, str(error), others)) from error
        return cls(kind, model.getvalue(), "plain")

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's pieces, without `<bos>` and `<eos>`; unknown characters are `<unk>`.

        Raises:
            DataError: the text holds half a surrogate pair, which is not a character.
        """
        ids: list[int] = self._processor.encode(self._checked(text))
        return ids

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `encode` returns for each text, faster.

        Raises:
            DataError: a text holds half a surrogate pair, which is not a character.
        """
        if len(texts) == 1:  # for a list, sentencepiece starts a thread, which takes longer than encoding one text
            return [self.encode(texts[0])]
        ids: list[list[int]] = self._processor.encode(self._all_checked(texts), num_threads=1)
        return ids

    def resampled(self, texts: Sequence[str], amount: float, seed: int) -> list[list[int]]:
        """Return the ids of the texts, cut into random pieces; the same seed gives the same pieces.

        Args:
            texts: normalised texts, such as `decode` returns.
            amount: for "bpe", the probability of skipping a merge; for "unigram", the exponent α: each way to cut a
                text is drawn with a probability proportional to its model probability to the power of α.
            seed: the seed to set for sentencepiece's random generator.

        Not in the paper: BPE-dropout (Provilkov et al. 2020) and subword regularisation (Kudo 2018).
        """
        import sentencepiece

        sentencepiece.set_random_generator_seed(seed % 2**32)
        ids: list[list[int]] = self._processor.encode(
            list(texts), enable_sampling=True, alpha=amount, nbest_size=-1, num_threads=1
        )
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; special ids are skipped, except that unknown pieces appear as "<unk>".

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        [text] = self.decode_all([ids])
        return text

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Return what `decode` returns for the ids of each sentence, faster.

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        for ids in sentences:
            check_ids(ids, len(self))
        kept = [[id for id in ids if id >= UNK_ID] for ids in sentences]
        if len(kept) == 1:
            return [self._processor.decode(kept[0])]
        texts: list[str] = self._processor.decode(kept, num_threads=1) if kept else []
        return texts

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id, with "▁" for a space; special tokens appear as "<eos>" and so on.

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        return [self._pieces[id] for id in ids]

    @cached_property
    def _pieces(self) -> list[str]:
        """All pieces, which several parts of a translation read."""
        return [self._processor.id_to_piece(id) for id in range(len(self))]

    def split(self, text: str) -> list[str]:
        """Return the text's pieces, with unknown characters unchanged.

        Raises:
            DataError: the text holds half a surrogate pair, which is not a character.
        """
        pieces: list[str] = self._processor.encode(self._checked(text), out_type=str)
        return pieces

    @staticmethod
    def join(tokens: Iterable[str]) -> str:
        """Return the text of these pieces; bytes appear as "<0x0A>" and so on."""
        return "".join(tokens).replace(SPACE_MARK, " ").lstrip(" ")

    def save(self, stem: Path) -> None:
        """Write sentencepiece's model file, `stem`.model."""
        stem.with_suffix(SENTENCEPIECE_SUFFIX).write_bytes(self.model)

    @classmethod
    def load(
        cls, kind: Literal["bpe", "unigram"], stem: Path, normalisation: Normalisation | None = None
    ) -> "SentencePieceTokenizer":
        """Return the tokenizer that `save` wrote under this stem, with this normalisation.

        Raises:
            CheckpointError: the file cannot be read.
            VocabularyError: the file is not a sentencepiece model.
        """
        path = stem.with_suffix(SENTENCEPIECE_SUFFIX)
        try:
            return cls(kind, read_bytes(path), normalisation)
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror}; copy the file again") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the tokenizer as plain data: "kind", and the lists "tokens", "scores" and "types", indexed by id.

        Scores and types are sentencepiece's numbers. "normalisation" is included only if it is not "plain".

        Raises:
            VocabularyError: the explorer's page cannot tokenize texts as this model does.
        """
        normalisation = {} if self.normalisation == "plain" else {"normalisation": self.normalisation}
        return {"kind": self.kind, **normalisation, **_pieces(self.model)}

    def _all_checked(self, texts: Sequence[str]) -> list[str]:
        """Return what `_checked` returns for each text, faster: one check covers many texts that need no change."""
        checked: list[str] = []
        for begin in range(0, len(texts), LOOKED_AT_TOGETHER):
            some = texts[begin : begin + LOOKED_AT_TOGETHER]
            checked += some if is_normal(" ".join(some)) else map(self._checked, some)
        return checked

    def _checked(self, text: str) -> str:
        if is_normal(text):
            return text
        check_characters(text)
        return normalise(text, self.normalisation)


def _why_none(lines: Sequence[str], error: str, others: Mapping[str, int]) -> str:
    """Return why sentencepiece made no vocabulary of these normalised lines, and what to do.

    Args:
        lines: the lines.
        error: what sentencepiece says.
        others: how many tokens the vocabulary needs besides those of characters, by their name.

    Raises:
        DataError: a line holds half a surrogate pair, which is not a character.
    """
    for line in lines:
        check_characters(line)
    texts = [line for line in lines if line]
    none = "no subword vocabulary could be made"
    if not texts:
        return f"{none}: the lines hold no text; name files with text"
    if all(RESERVED in text for text in texts):
        return f"{none}: each line holds {RESERVED}, and sentencepiece skips such lines; remove this character"
    if not (sizes := _SIZES.search(error)):
        said = error.rpartition("]")[2].strip() or "no reason is known"
        return f"{none}: {shortened(said)}; change the settings in [tokenizer]"
    size, needed = map(int, sizes.groups())
    room = size - sum(others.values())
    besides = ", ".join(f"{count} {name}" for name, count in others.items() if count)
    coverage = _coverage(texts, room)
    fix = f", or set tokenizer.character_coverage to {coverage}, which leaves out rare characters"
    return (
        f"tokenizer.vocab_size: expected at least {needed}, for {needed - size + room} different characters, "
        f"{besides}, got {size}; raise it to {needed}{fix if coverage >= LEAST_COVERAGE else ''}"
    )


def _coverage(texts: Iterable[str], room: int) -> float:
    """Return the character coverage, rounded down, with which at most `room` characters of the texts get a token."""
    counts = Counter[str]()
    for text in texts:
        counts.update(f" {text}")  # sentencepiece puts a space before each text
    covered = sum(count for _, count in counts.most_common(max(room - 1, 0)))
    return floor(covered / counts.total() * 10_000) / 10_000


def _specials() -> dict[str, Any]:
    """Return the sentencepiece settings that give the special tokens the names of `SPECIALS` and the ids 0 to 3."""
    names = ("pad", "bos", "eos", "unk")
    ids = {f"{name}_id": id for id, name in enumerate(names)}
    return ids | {f"{name}_piece": piece for name, piece in zip(names, SPECIALS, strict=True)}


def load_processor(model: bytes) -> "SentencePieceProcessor":
    """Return sentencepiece's processor for the bytes of a model.

    Raises:
        VocabularyError: the bytes are not a sentencepiece model.
    """
    import sentencepiece

    sentencepiece.set_min_log_level(ERRORS_ONLY)
    try:
        if not model:  # sentencepiece would also write to stderr
            raise RuntimeError("the model is empty")
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = [*range(processor.get_piece_size())]
        processor.id_to_piece(ids)  # raises an error for a piece that is not UTF-8
        processor.decode(ids)
    except (RuntimeError, UnicodeDecodeError) as error:
        raise VocabularyError("not a sentencepiece model: copy the file again, or train the tokenizer again") from error
    return processor


def _processor(model: bytes) -> "SentencePieceProcessor":
    processor = load_processor(model)
    ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
    if ids != (PAD_ID, BOS_ID, EOS_ID, UNK_ID):
        raise VocabularyError(f"expected a sentencepiece model with pad, bos, eos, unk = 0, 1, 2, 3, got {ids}")
    return processor


def check_characters(text: str) -> None:
    """Refuse a text that sentencepiece cannot read.

    Raises:
        DataError: the text holds half a surrogate pair, which is not a character.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{quoted(text)} holds half a surrogate pair at {error.start}; decode it as UTF-8") from error


def _pieces(model: bytes) -> dict[str, Any]:
    processor = _processor(model)
    ids = range(processor.get_piece_size())
    types = [_type(processor, id) for id in ids]
    if UNUSED in types or processor.normalize(TOUCHSTONE) != UNTOUCHED:
        raise VocabularyError(
            "the explorer's page needs sentencepiece models as glassformer trains them: normalization rule 'identity', "
            "add_dummy_prefix, no unused pieces. Train the tokenizer with `glassformer train`"
        )
    return {
        "tokens": [processor.id_to_piece(id) for id in ids],
        # Nine digits are enough to distinguish any two float32 numbers.
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
