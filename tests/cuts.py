"""Texts that are hard to split, and how Python's tokenizers split them, for the tests of the page's tokenizers."""

import random
import struct
from collections.abc import Iterable, Sequence
from functools import cache
from io import BytesIO
from typing import Any

from sentencepiece import SentencePieceTrainer

from glassformer.corpus.tasks import english_french
from glassformer.text.marian import MarianTokenizer
from glassformer.text.subword_model import CONTROL, UNKNOWN, read_subword_model
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.tokenizer import CharacterTokenizer, Tokenizer, WordTokenizer
from glassformer.text.vocabulary import SPECIALS, Vocabulary
from glassformer.text.words import CLOSING, CONTRACTIONS, ELISIONS, OPENING

SUBWORDS = ["unigram", "bpe", "unigram with bytes", "bpe with bytes"]
MARIAN: dict[str, dict[str, Any]] = {
    "marian unigram": {},
    "marian bpe": {"model_type": "bpe", "byte_fallback": True},
    "marian spaces as they are": {"add_dummy_prefix": False, "remove_extra_whitespaces": False},
    "marian one leading space": {"remove_extra_whitespaces": False, "normalization_rule_name": "nfkc_cf"},
    "marian identity": {"normalization_rule_name": "identity", "byte_fallback": True},
    "marian unigram, symbols": {"user_defined_symbols": ["ca", "cat", "ﬁ", "▁le▁", "😀"]},
    "marian bpe, symbols": {"user_defined_symbols": ["ca", "cat", "ﬁ", "▁le▁", "😀"], "model_type": "bpe"},
}
"""Settings of sentencepiece for models like those of imported runs, which have their own normalisation."""
KINDS = ["words", "characters", "characters with bos", *SUBWORDS]
HALVES = ["\ud800", "a\udc00 b", "'\ud83d", "\udfff'", "l'\ude00."]
"""Texts with halves of surrogate pairs, which are not characters: sentencepiece's tokenizers refuse such texts."""
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

NORMALISED = [
    *[
        "ﬁ ½ Ａ ß ﷺ",
        "  two  spaces　wide ",
        "\u1100\u1161\u11a8 각",
        "e\u0301 o\u0308\u0301",
        "Ⅷ ㍿ ①",
        "a▁ ▁b ▁",
        "\u3000",
    ],
    *["\u200b", " \u200b ", "a\u200b b\x7f\x80", "ｶﾞ ﾊﾟ", "\xad-\u2010\u2011", "¨ a¨", "﷐ \u0e33 \u0dda", "  "],
    *[
        ">>fra<< the cat",
        ">>fra<<the",
        ">>fra<<",
        ">>deu<< cat",
        ">> fra << cat",
        "a >>fra<<",
        ">>fra",
        ">><<cat",
        "<<>>",
    ],
    *["cat cacat le cat", "▁le▁ le le", "ca t", "the ﬁcat", ">><<cat", "<<>>"],
]
HIDDEN = [
    *[
        "Ka\u00adter",
        "fu\u00ad\u0308r",
        "fu\u0308r",
        "l\u2019e\u0301te\u0301.",
        "e\u2011mail",
        "a \u00ad b",
        "\u2060",
        "\u00ad \u200b",
    ],
    *[
        "\u202bשלום\u202c \u200fعلى\u200e",
        "x\u2066y\u2069",
        "zero\u200bwidth",
        "zero\u200b width",
        "\u200d\u200c\ufe0f",
        "❤\ufe0f",
    ],
    *[
        "แมว\u200bนอน",
        "แมว\u200b\u200b\u2060นอน\u200b",
        "ឆ្មា\u200bគេង",
        "แมว\u200bcat\u200b",
        "ก\u200b\u200b\u0e38ข",
        "ก\u0e48\u200bก",
    ],
    *[
        "ก\u0301\u200b\u0e38\u200bก",
        "e\u200b\u0301\u200bก",
        "\u1025\u200b\u102e",
        "か\u200b\u3099\u200bか",
        "\ufa00\u200b\U0002f800",
    ],
    *[
        "\u1112\u1161\u11ab",
        "\u1100\u200b\u1161",
        "\u1100\u00ad\u1161\u11a8",
        "\u212b \u2126",
        "q\u0323\u0307 q\u0307\u0323",
        "=\u00ad\u0338",
    ],
]
"""Texts that the normalisation "plain" changes, or that look like such texts."""
PIECES = [*LEANING, *ODD, *NORMALISED, *HIDDEN, "the ", "cat", "😀", "\u200b", "\u00ad", "\u0301", "\u0e38", "ก", "猫"]


@cache
def sentences(split: str) -> list[str]:
    """Return the grammar's sentences, in both languages."""
    corpus = english_french(1, train=1_500, valid=0, test=500, unseen=0, pairs=0, senses=0, longer=0)
    return [text for example in corpus.splits[split] for text in (example.source, example.target)]


@cache
def trained(kind: str) -> Tokenizer:
    """Return a tokenizer trained on the grammar's sentences; words and characters are also trained on the odd texts."""
    lines = sentences("train")
    match kind.split():
        case ["words"]:
            return WordTokenizer.train([*lines, *ODD, *(text for text in LEANING if "’" not in text)], 5000)
        case ["characters"]:
            return CharacterTokenizer.train([*lines, *ODD], 5000)
        case ["characters", "with", "bos"]:
            vocabulary = Vocabulary(tuple(trained("characters").to_dict()["tokens"]))
            return CharacterTokenizer(vocabulary, normalisation="spaces", with_bos=True)
        case ["marian", *_]:
            return marian(kind, lines)
    return subwords(kind, lines, 600)


def marian(kind: str, lines: list[str]) -> MarianTokenizer:
    """Return a tokenizer of two sentencepiece models and a vocabulary with most of their pieces and other pieces."""
    settings = {"normalization_rule_name": "nmt_nfkc", **MARIAN[kind]}
    models = []
    for some in (lines[::2], [*lines[1::2], *lines[:200]]):
        model = BytesIO()
        SentencePieceTrainer.train(
            sentence_iterator=iter([*some, *ODD, *NORMALISED]),
            model_writer=model,
            vocab_size=700,
            hard_vocab_limit=False,
            character_coverage=0.995,
            num_threads=2,
            minloglevel=2,
            **settings,
        )
        models.append(model.getvalue())
    pieces = {
        piece: None
        for model in models
        for piece, (_, type) in read_subword_model(model).pieces.items()
        if type not in (CONTROL, UNKNOWN)
    }
    tokens = [*SPECIALS, ">>fra<<", "</s>", "中文", *reversed([*pieces][::2]), *[*pieces][1::2]]
    kept = [token for place, token in enumerate(tokens) if place < len(SPECIALS) + 3 or place % 19]
    return MarianTokenizer(models[0], kept, decoder=models[1], with_eos="identity" not in kind)


def subwords(kind: str, lines: list[str], size: int) -> SentencePieceTokenizer:
    name, *fallback = kind.split()
    return SentencePieceTokenizer.train(name, lines, size, byte_fallback=bool(fallback))


def even(kind: str) -> SentencePieceTokenizer:
    """Return a tokenizer whose splits are equally good up to rounding. Only its longer pieces contain b."""
    lines = ["ab ba aab bba abab baba aabb bbaa", "cd dc ccd ddc cdcd dcdc ccdd ddcc", "ac ca bd db"] * 3
    made = subwords(kind, lines, 300 if kind.endswith("bytes") else 60)
    model, data = made.model, made.to_dict()
    for token, score in zip(data["tokens"], data["scores"], strict=True):
        there = bytes([len(token.encode())]) + token.encode() + b"\x15"  # a token as stored in sentencepiece's file
        assert model.count(there + struct.pack("<f", score)) == 1
        bits = struct.pack("<f", -11.1 * len(token) if kind.startswith("unigram") else score // 3)
        model = model.replace(there + struct.pack("<f", score), there.replace(b"\1b", b"\1q") + bits)
    return SentencePieceTokenizer(kind.split()[0], model)


def drawn_texts(count: int) -> list[str]:
    """Return texts of up to eight pieces: three in four are hard to split, the others are random characters."""
    draw = random.Random(1)

    def piece() -> str:
        if draw.random() < 0.75:
            return draw.choice(PIECES)
        last = draw.choice([0x7F, 0x2FF, 0xD7FF, 0x10FFFF])
        return "".join(any_character(draw, last) for _ in range(draw.randint(1, 3)))

    return ["".join(piece() for _ in range(draw.randint(1, 8))) for _ in range(count)]


def any_character(draw: random.Random, last: int) -> str:
    code = draw.randint(0, last)
    return chr(code if not 0xD800 <= code < 0xE000 else 0xE000)


def even_texts(count: int) -> list[str]:
    """Return random texts of the letters in the even tokenizers, and a long text."""
    draw = random.Random(1)
    texts = ["".join(draw.choices("abcd ", k=draw.randrange(40))) for _ in range(count)]
    return [*texts, " ".join(texts[:500])]


def some_ids(tokenizer: Tokenizer, count: int) -> list[list[int]]:
    """Return random lists of ids, half of them from the first ids, which include the bytes."""
    draw, size = random.Random(1), len(tokenizer)
    return [draw.choices(range(min(size, limit)), k=8) for limit in (size, 260) for _ in range(count // 2)]


def tokenizers(count: int = 100) -> dict[str, Any]:
    """Return, for each kind of tokenizer, the splits of all hard texts and of `count` other texts of each sort."""
    made = {}
    for kind in [*KINDS, *MARIAN]:
        tokenizer = trained(kind)
        texts = [*ODD, *NORMALISED, *HIDDEN, *LONG, *LEANING, *sentences("test")[:count], *drawn_texts(count)]
        made[kind] = cuts(tokenizer, texts, some_ids(tokenizer, count))
    for kind in SUBWORDS:
        made[f"{kind}, even"] = cuts(even(kind), even_texts(count))
    return made


def every_character() -> dict[str, Any]:
    """Return the splits of each character of the basic plane; all white space is in this plane."""
    characters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    texts = ["x".join(characters[start : start + 200]) for start in range(0, len(characters), 200)]
    return cuts(CharacterTokenizer.train(texts, 100_000), texts)


def cuts(tokenizer: Tokenizer, texts: Iterable[str], lists: Iterable[Sequence[int]] = ()) -> dict[str, Any]:
    """Return a tokenizer's data, its splits of texts, its texts of lists of ids, and the texts that it refuses."""
    refused = HALVES if isinstance(tokenizer, SentencePieceTokenizer | MarianTokenizer) else []
    return {
        "data": tokenizer.to_dict(),
        "eos_id": tokenizer.eos_id,
        "cuts": [[text, *cut(tokenizer, text)] for text in [*texts, *HALVES] if text not in refused],
        "decoded": [[ids, tokenizer.decode(ids)] for ids in lists],
        "refused": refused,
    }


def cut(tokenizer: Tokenizer, text: str) -> list[Any]:
    ids = tokenizer.encode(text)
    return [ids, tokenizer.tokens(ids), tokenizer.decode(ids), tokenizer.split(text)]
