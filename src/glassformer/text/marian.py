"""Texts as the subwords of an imported model: a sentencepiece model cuts them, and a vocabulary numbers the pieces.

Marian trains one sentencepiece model per language and numbers the pieces of both models in one vocabulary, so the ids
inside a sentencepiece model are not used. A text goes to sentencepiece unchanged, because the sentencepiece model
applies the normalisation with which it was trained (often NFKC).
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, ConfigError, VocabularyError, quoted
from glassformer.system.files import read_bytes, read_json, write_json
from glassformer.text.normalisation import SPACE_MARK
from glassformer.text.subword_model import (
    BPE,
    BYTE,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    read_subword_model,
)
from glassformer.text.subwords import SentencePieceTokenizer, check_characters, load_processor
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, check_ids

__all__ = ["MarianTokenizer"]

CODE_BEGINS, CODE_ENDS = ">>", "<<"
"""The marks around a target language's code, such as ">>fra<<", with which a source of a multilingual model begins."""
_KINDS: Mapping[int, str] = {UNIGRAM: "unigram", BPE: "bpe"}
"""The sentencepiece model types that the explorer's page knows, and the kind of tokenizer that cuts in the same way."""
_VOCABULARY, _MODEL, _DECODER = ".json", ".model", ".decoder.model"


class MarianTokenizer:
    """A sentencepiece model, and the vocabulary that gives its pieces their ids.

    The tokenizer cuts texts as Hugging Face's `MarianTokenizer` does, except that text such as "</s>" never becomes a
    special token.

    Args:
        model: the sentencepiece model, with any ids and any normalisation.
        tokens: the tokens by id, beginning with `SPECIALS`.
        decoder: the sentencepiece model that joins pieces to texts; by default, `model`.
        with_eos: whether each text ends with `<eos>`.

    Raises:
        VocabularyError: the bytes are not a sentencepiece model, or the tokens are not a vocabulary.
    """

    kind = "marian"
    normalisation = None
    pad_id, bos_id, unk_id = PAD_ID, BOS_ID, UNK_ID

    def __init__(
        self, model: bytes, tokens: Sequence[str], *, decoder: bytes | None = None, with_eos: bool = True
    ) -> None:
        self.eos_id = EOS_ID if with_eos else PAD_ID
        """The id that ends each text; if texts have no end, the id of `<pad>`, to which no position attends."""
        self.model, self.decoder = model, decoder
        self._tokens = tuple(tokens)
        if self._tokens[: len(SPECIALS)] != SPECIALS:
            raise VocabularyError(f"a vocabulary begins with {SPECIALS}, got {quoted(self._tokens[: len(SPECIALS)])}")
        ids = {token: id for id, token in enumerate(self._tokens)}
        if len(ids) < len(self._tokens):
            twice = next(token for id, token in enumerate(self._tokens) if ids[token] != id)
            raise VocabularyError(f"a vocabulary holds each token once, got {quoted(twice)} more than once")
        # Special tokens are excluded, so that no text can produce them.
        self._ids = {token: id for token, id in ids.items() if id > UNK_ID}
        self._processor = load_processor(model)
        self._joiner = load_processor(decoder) if decoder else self._processor

    def __len__(self) -> int:
        return len(self._tokens)

    def split(self, text: str) -> list[str]:
        """Return the text's pieces, with unknown characters unchanged; a leading code such as ">>fra<<" is one token.

        Raises:
            DataError: the text holds half a surrogate pair, which is not a character.
        """
        check_characters(text)
        end = text.find(CODE_ENDS) + len(CODE_ENDS) if text.startswith(CODE_BEGINS) and CODE_ENDS in text else 0
        pieces: list[str] = self._processor.encode(text[end:], out_type=str)
        return [text[:end], *pieces] if end else pieces

    @staticmethod
    def join(tokens: Iterable[str]) -> str:
        """Return the text of these pieces, which keeps the sentencepiece model's normalisation."""
        return SentencePieceTokenizer.join(tokens)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's pieces, without `<eos>`; pieces outside the vocabulary are `<unk>`.

        Raises:
            DataError: the text holds half a surrogate pair, which is not a character.
        """
        return [self._ids.get(piece, UNK_ID) for piece in self.split(text)]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `encode` returns for each text.

        Raises:
            DataError: a text holds half a surrogate pair, which is not a character.
        """
        return [self.encode(text) for text in texts]

    def resampled(self, texts: Sequence[str], amount: float, seed: int) -> list[list[int]]:
        """Return the ids of the texts, cut into random pieces; the same seed gives the same pieces.

        Args:
            texts: texts without a language code such as ">>fra<<".
            amount: for a BPE model, the probability of skipping a merge; for a unigram model, the exponent α.
            seed: the seed to set for sentencepiece's random generator.

        Raises:
            ConfigError: the model has whole words or single characters, so that a text can be cut in one way only.
        """
        import sentencepiece

        sentencepiece.set_random_generator_seed(seed % 2**32)
        try:
            cut = self._processor.encode(
                list(texts), out_type=str, enable_sampling=True, alpha=amount, nbest_size=-1, num_threads=1
            )
        except RuntimeError as error:
            raise ConfigError(
                f"tokenizer.sampling = {amount} needs subwords, but the tokenizer of this imported model has whole "
                "words or single characters; set tokenizer.sampling to 0"
            ) from error
        return [[self._ids.get(piece, UNK_ID) for piece in pieces] for pieces in cut]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; special ids are skipped, except that unknown pieces appear as "<unk>".

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        runs: list[list[str]] = [[]]
        for id in ids:
            if id == UNK_ID:
                runs.append([])
            elif id > UNK_ID:
                runs[-1].append(self._tokens[id])
        text = f" {SPECIALS[UNK_ID]} ".join(self._joiner.decode_pieces(run) for run in runs)
        return text.replace(SPACE_MARK, " ").strip()

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Return what `decode` returns for the ids of each sentence."""
        return [self.decode(ids) for ids in sentences]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the token of each id, with "▁" for a space; special tokens appear as "<eos>" and so on.

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        return [self._tokens[id] for id in ids]

    def save(self, stem: Path) -> None:
        """Write `stem`.json (the vocabulary), `stem`.model, and `stem`.decoder.model if there is a decoder."""
        ends = {} if self.eos_id == EOS_ID else {"with_eos": False}
        write_json(stem.with_suffix(_VOCABULARY), {"tokens": list(self._tokens), **ends})
        stem.with_suffix(_MODEL).write_bytes(self.model)
        if self.decoder:
            stem.with_suffix(_DECODER).write_bytes(self.decoder)

    @classmethod
    def load(cls, stem: Path) -> "MarianTokenizer":
        """Return the tokenizer that `save` wrote under this stem.

        Raises:
            CheckpointError: a file is missing or damaged.
            VocabularyError: a file does not hold what `save` wrote.
        """
        path, decoder = stem.with_suffix(_VOCABULARY), stem.with_suffix(_DECODER)
        content = read_json(path)
        tokens, with_eos = content.get("tokens"), content.get("with_eos", True) is True
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise CheckpointError(f"{path}: expected a list of strings under 'tokens', as in a vocabulary file")
        try:
            model = read_bytes(stem.with_suffix(_MODEL))
            joiner = read_bytes(decoder) if decoder.exists() else None
            return cls(model, tokens, decoder=joiner, with_eos=with_eos)
        except VocabularyError as error:
            raise VocabularyError(f"{stem}.*: {error}") from error
        except OSError as error:
            raise CheckpointError(f"cannot read {error.filename}: {error.strerror}; copy the file again") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the tokenizer as plain data: "kind", "tokens" by id, and one field for each sentencepiece model.

        "cutter" describes the model that cuts texts: its pieces and its normalisation, with the replacements of
        characters as base64. "joiner" describes the model that joins pieces: the type of each token, by id.

        Raises:
            VocabularyError: the explorer's page cannot cut texts as this sentencepiece model does.
        """
        cutter = read_subword_model(self.model)
        joiner = read_subword_model(self.decoder) if self.decoder else cutter
        pieces = {piece: one for piece, one in cutter.pieces.items() if one[1] in (NORMAL, USER_DEFINED, BYTE)}
        unused = cutter.kind == BPE and any(type == UNUSED for _, type in cutter.pieces.values())
        if cutter.kind not in _KINDS or cutter.suffix or unused or joiner.denormalised:
            raise VocabularyError(
                "the explorer's page cuts texts only with sentencepiece models of the types unigram and BPE that put "
                "spaces before words, and this imported model has a different one; glassformer trace shows its numbers"
            )
        return {
            "kind": self.kind,
            "tokens": list(self._tokens),
            **({} if self.eos_id == EOS_ID else {"with_eos": False}),
            "cutter": {
                "kind": _KINDS[cutter.kind],
                "pieces": list(pieces),
                # Nine digits are enough to distinguish any two float32 numbers.
                "scores": [float(f"{score:.9g}") for score, _ in pieces.values()],
                "types": [type for _, type in pieces.values()],
                "characters": b64encode(cutter.characters).decode(),
                "prefix": cutter.prefix,
                "trimmed": cutter.trimmed,
                "escaped": cutter.escaped,
            },
            "joiner": {
                "types": [joiner.pieces.get(token, (0.0, UNKNOWN))[1] for token in self._tokens],
                "prefix": joiner.prefix,
                "trimmed": joiner.trimmed,
            },
        }
