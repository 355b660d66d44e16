"""Languages by their BCP 47 tags: names and the codes that other programs use."""

__all__ = ["argos_code", "current", "language_name", "primary", "script"]

_CURRENT = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "no": "nb", "fil": "tl"}
"""Languages by their former codes, and by those that name the same language in practice."""

_CODES = {"pt-BR": "pb", "zh-Hant": "zt", "zh-TW": "zt"}
"""The codes by which Argos names languages, where these are not the first part of the tag."""
_NAMES = (
    "ar Arabic, az Azerbaijani, bg Bulgarian, bn Bengali, ca Catalan, cs Czech, da Danish, de German, el Greek, "
    "en English, eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish, fr French, ga Irish, "
    "gl Galician, he Hebrew, hi Hindi, hu Hungarian, id Indonesian, is Icelandic, it Italian, ja Japanese, "
    "ka Georgian, ko Korean, lt Lithuanian, lv Latvian, ms Malay, nb Norwegian, nl Dutch, pb Portuguese (Brazil), "
    "pl Polish, pt Portuguese, ro Romanian, ru Russian, sk Slovak, sl Slovenian, sq Albanian, sv Swedish, th Thai, "
    "tl Tagalog, tr Turkish, uk Ukrainian, ur Urdu, vi Vietnamese, zh Chinese, zt Chinese (traditional)"
)
_LANGUAGES = dict(entry.split(" ", 1) for entry in _NAMES.split(", "))


def current(tag: str) -> str:
    """Return a tag with the code of today: "he-IL" for "iw_IL"; Norwegian is "nb"."""
    language, mark, rest = tag.replace("_", "-").partition("-")
    return _CURRENT.get(language.lower(), language) + mark + rest


def primary(tag: str) -> str:
    """Return the language itself, without script or region, by its code of today: "pt" of "pt-BR", "he" of "iw"."""
    return current(tag).partition("-")[0].lower()


def script(tag: str) -> str:
    """Return the script that a tag names, in lower case: "hant" of "zh-Hant-TW"; "" if it names none."""
    return next(
        (part.lower() for part in tag.replace("_", "-").split("-")[1:] if len(part) == 4 and part.isalpha()), ""
    )


def argos_code(tag: str) -> str:
    """Return the code by which Argos names a language: "zt" of "zh-Hant", "fr" of "fr-CA"."""
    return _CODES.get(tag, primary(tag))


def language_name(tag: str) -> str:
    """Return the English name of a language, or its tag if it is not a common one."""
    return _LANGUAGES.get(argos_code(tag), tag)
