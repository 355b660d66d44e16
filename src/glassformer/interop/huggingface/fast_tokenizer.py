"""Write a tokenizer as `tokenizer.json`: the format of the library `tokenizers`, which transformers.js also reads.

A tokenizer that is loaded from this file gives the same ids as our tokenizer for nearly all texts. Known differences:

- The letters "<pad>", "<bos>" and "<eos>" in a text become the special tokens, as with every `tokenizer.json`.
- Kind "words": only `LEVELS` parts are cut off at each end of a word.
- Kind "unigram" with byte fallback: transformers.js does not support bytes and gives `<unk>`.
- Imported models: transformers.js replaces sentencepiece's normalisation by NFKC.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from glassformer.errors import ConfigError, quoted
from glassformer.text.lookup import LookupTokenizer
from glassformer.text.normalisation import PLAIN_STEPS, SPACE_MARK, Normalisation
from glassformer.text.subword_model import BPE, BYTE, NORMAL, UNIGRAM, USER_DEFINED, read_subword_model
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from glassformer.text.words import CLOSING, CONTRACTIONS, ELISIONS, OPENING

__all__ = ["fast_tokenizer"]

Steps = dict[str, Any]
"""A part of `tokenizer.json` that describes steps of the tokenizer."""

UNREACHABLE = -1e4
"""The score of a token that must never be chosen; it is lower than any sum of scores in a text."""
LEVELS = 6
"""Maximum number of parts that are cut off at each end of a word; each needs a step of its own."""
CODE = re.compile(r">>.+<<")
"""A target language's code in the vocabulary of an imported model, such as ">>fra<<"."""
# The white space of `str.split` plus SPACE_MARK, listed because regular expression engines disagree about \s.
SPACES = f"[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000{SPACE_MARK}]+"


def fast_tokenizer(tokenizer: Tokenizer) -> Steps:
    """Return the content of `tokenizer.json` for a tokenizer; encoding adds the `<bos>` and `<eos>` of our sources.

    Raises:
        ConfigError: `tokenizer.json` cannot express this tokenizer.
    """
    if tokenizer.kind not in _KINDS:
        raise ConfigError(
            f"tokenizer.kind: expected {', '.join(_KINDS)}, which tokenizer.json can express, got "
            f"{quoted(tokenizer.kind)}; use --to ctranslate2"
        )
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_special(id) for id in (PAD_ID, BOS_ID, EOS_ID)],
        **_KINDS[tokenizer.kind](tokenizer),
        "post_processor": _template(tokenizer),
    }


def _special(id: int) -> Steps:
    return _added(id, SPECIALS[id]) | {"special": True}


def _added(id: int, content: str) -> Steps:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": id, "content": content, **flags}


def _template(tokenizer: Tokenizer) -> Steps:
    """Return the step that adds `<bos>` and `<eos>` to a text, if our tokenizer adds them."""
    before = [BOS_ID] * (isinstance(tokenizer, LookupTokenizer) and tokenizer.with_bos)
    behind = [EOS_ID] * (tokenizer.eos_id == EOS_ID)  # some imported models have no end token in their sources
    first, last = ([{"SpecialToken": {"id": SPECIALS[id], "type_id": 0}} for id in ids] for ids in (before, behind))
    specials = {SPECIALS[id]: {"id": SPECIALS[id], "ids": [id], "tokens": [SPECIALS[id]]} for id in before + behind}
    return {
        "type": "TemplateProcessing",
        "single": [*first, {"Sequence": {"id": "A", "type_id": 0}}, *last],
        "pair": [*first, *({"Sequence": {"id": one, "type_id": 0}} for one in "AB"), *last],
        "special_tokens": specials,
    }


def _replace(pattern: str, content: str) -> Steps:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _sequence(what: str, *steps: Steps) -> Steps:
    return {"type": "Sequence", what: list(steps)}


def _split(pattern: str, behavior: str = "Isolated") -> Steps:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def _normalised(normalisation: Normalisation | None) -> list[Steps]:
    """Return the steps that do what `normalise` does; None = as with "spaces"."""
    before, after = ([_replace(*step) for step in steps] for steps in PLAIN_STEPS)
    plain = [*before, {"type": "NFC"}, *after] if normalisation == "plain" else []
    return [*plain, _replace(SPACES, " "), _replace("^ | $", "")]


# Words and characters


def _lookup_model(tokenizer: Tokenizer) -> Steps:
    tokens = tokenizer.tokens(range(len(tokenizer)))
    vocabulary = {token: id for id, token in enumerate(tokens)}
    return {"type": "WordLevel", "vocab": vocabulary, "unk_token": SPECIALS[UNK_ID]}


def _characters(tokenizer: Tokenizer) -> Steps:
    return {
        "normalizer": _sequence("normalizers", *_normalised(tokenizer.normalisation), _replace(" ", SPACE_MARK)),
        "pre_tokenizer": _split("[^\n]"),
        "model": _lookup_model(tokenizer),
        "decoder": _sequence("decoders", {"type": "Fuse"}, _replace(SPACE_MARK, " ")),
    }


def _words(tokenizer: Tokenizer) -> Steps:
    """Return the steps that do what `split_words` and `join_words` do, by regular expressions."""
    straight = not any("’" in token for token in tokenizer.tokens(range(len(tokenizer))))
    closing, opening = _one_of(CLOSING), _one_of(OPENING)
    contractions = _any_of(sorted(CONTRACTIONS, key=len, reverse=True))
    elisions = [_any_case(one) for one in sorted(ELISIONS, key=len, reverse=True)]
    tail, head = f"(?:{closing}|{contractions})", f"(?:{opening}|{'|'.join(elisions)})"
    not_alone = _any_case("n't")
    # Matches a word whose first token joins the word before it. "n't" alone is not such a word: it is cut into "n'"
    # and "t".
    first = f"(?!{not_alone})(?:{tail})+(?: |$)"
    last = _after([opening, *elisions], ["^", f"[ '’{opening[1:]}"])
    cut_head = _split(f"^{SPACE_MARK}?{head}(?=.)")
    cut_tail = _split(f"(?<=[^{SPACE_MARK}]){tail}(?<!{_after_nothing(elisions)})$")
    leaning = _after([opening, *elisions], ["^", " ", SPACE_MARK])
    return {
        "normalizer": _sequence(
            "normalizers",
            *_normalised(tokenizer.normalisation),
            *([_replace("’", "'")] if straight else []),
            _replace(f" (?={first})", f" {SPACE_MARK}"),
            _replace(f"(?<={last}) (?!{SPACE_MARK})", f" {SPACE_MARK}"),
        ),
        "pre_tokenizer": _sequence("pretokenizers", _split(" ", "Removed"), *[cut_head] * LEVELS, *[cut_tail] * LEVELS),
        "model": _lookup_model(tokenizer),
        "decoder": _sequence(
            "decoders",
            # no token begins with two space marks, so no token has this prefix
            {"type": "WordPiece", "prefix": 2 * SPACE_MARK, "cleanup": False},
            {"type": "Fuse"},
            _replace(f" (?={tail}(?: |$))|(?<={leaning}) ", ""),
            _replace(f" ?{SPACE_MARK}", " "),
            _replace("^ ", ""),
        ),
    }


def _one_of(characters: frozenset[str]) -> str:
    return f"[{''.join(map(re.escape, sorted(characters)))}]"


def _any_of(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(map(_any_case, words))})"


def _any_case(word: str) -> str:
    """Return a pattern for a word in any case, with either apostrophe."""
    return "".join("['’]" if one == "'" else f"[{one}{one.upper()}]" for one in word)


def _after(endings: Sequence[str], before: Sequence[str]) -> str:
    """Return the alternatives of a look-behind; each has a fixed length, which Oniguruma requires."""
    return "|".join(f"{start}{ending}" for ending in endings for start in before)


def _after_nothing(elisions: Sequence[str]) -> str:
    return _after(elisions, ["^", f"^{SPACE_MARK}"])


# Subwords


@runtime_checkable
class _HasModel(Protocol):
    """A tokenizer with a sentencepiece model."""

    model: bytes


def _subwords(tokenizer: Tokenizer) -> Steps:
    tokens = tokenizer.tokens(range(len(tokenizer)))
    model = read_subword_model(cast(_HasModel, tokenizer).model)
    if model.kind not in (UNIGRAM, BPE) or not model.prefix:
        raise ConfigError(
            f"tokenizer.kind: expected a unigram or BPE model with a space before each text, got a sentencepiece model "
            f"of type {model.kind}, which tokenizer.json cannot express; use --to ctranslate2"
        )
    metaspace = {"type": "Metaspace", "replacement": SPACE_MARK, "prepend_scheme": "always", "split": True}
    bytes_too = any(type == BYTE for _, type in model.pieces.values())
    return {
        "normalizer": _normaliser(model.characters, tokenizer.normalisation),
        "pre_tokenizer": metaspace,
        "model": {UNIGRAM: _unigram, BPE: _bpe}[model.kind](tokens, model.pieces) | {"byte_fallback": bytes_too},
        "decoder": _sequence("decoders", {"type": "ByteFallback"}, metaspace) if bytes_too else metaspace,
    }


def _marian(tokenizer: Tokenizer) -> Steps:
    tokens = tokenizer.tokens(range(len(tokenizer)))
    codes = [_added(id, token) for id, token in enumerate(tokens) if CODE.fullmatch(token)]
    return {**_subwords(tokenizer), "added_tokens": [*(_special(id) for id in (PAD_ID, BOS_ID, EOS_ID)), *codes]}


def _normaliser(characters: bytes, normalisation: Normalisation | None) -> Steps:
    if not characters:
        return _sequence("normalizers", *_normalised(normalisation))
    charsmap = base64.b64encode(characters).decode()
    precompiled = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    return _sequence("normalizers", precompiled, _replace(" +", " "), _replace("^ | $", ""))


def _unigram(tokens: Sequence[str], pieces: Mapping[str, tuple[float, int]]) -> Steps:
    def score(token: str) -> float:
        score, type = pieces.get(token, (UNREACHABLE, NORMAL))
        return score if type in (NORMAL, USER_DEFINED) else UNREACHABLE

    return {"type": "Unigram", "vocab": [[token, score(token)] for token in tokens], "unk_id": UNK_ID}


def _bpe(tokens: Sequence[str], pieces: Mapping[str, tuple[float, int]]) -> Steps:
    """Return the BPE model with its merges: every pair of pieces that forms a piece, best-scored pieces first."""
    for token in tokens:
        if pieces.get(token, (0.0, NORMAL))[1] == USER_DEFINED:
            raise ConfigError(
                f"tokenizer.symbols: expected none with the kind bpe, got {quoted(token)}, which tokenizer.json cannot "
                'express; train with tokenizer.kind = "unigram", or use --to ctranslate2'
            )
    known = {token for token in tokens if pieces.get(token, (0.0, 0))[1] == NORMAL}
    merged = sorted((token for token in known if len(token) > 1), key=lambda token: -pieces[token][0])
    cuts = ((token[:end], token[end:]) for token in merged for end in range(1, len(token)))
    return {
        "type": "BPE",
        "vocab": {token: id for id, token in enumerate(tokens)},
        "merges": [[left, right] for left, right in cuts if left in known and right in known],
        "unk_token": SPECIALS[UNK_ID],
        "fuse_unk": True,
    }


_KINDS: Mapping[str, Callable[[Tokenizer], Steps]] = {
    "words": _words,
    "characters": _characters,
    "bpe": _subwords,
    "unigram": _subwords,
    "marian": _marian,
}
