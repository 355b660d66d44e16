"""Languages by their BCP 47 tags: their names, and the codes that other programs use for them."""

__all__ = ["argos_code", "current", "language_name", "primary", "script"]

_CURRENT = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "no": "nb", "fil": "tl"}
"""Current language codes by former codes ("iw"), and by codes that mean the same language in practice ("no", "fil")."""

_CODES = {"pt-BR": "pb", "zh-Hant": "zt", "zh-TW": "zt"}
"""The language codes of Argos that differ from the first part of the BCP 47 tag."""
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
    """Return a tag with the current language code: "he-IL" for "iw_IL"; "no" (Norwegian) becomes "nb"."""
    language, mark, rest = tag.replace("_", "-").partition("-")
    return _CURRENT.get(language.lower(), language) + mark + rest


def primary(tag: str) -> str:
    """Return the current language code without script and region: "pt" for "pt-BR", "he" for "iw"."""
    return current(tag).partition("-")[0].lower()


def script(tag: str) -> str:
    """Return the script in a tag, in lower case: "hant" for "zh-Hant-TW"; "" if the tag has no script."""
    return next(
        (part.lower() for part in tag.replace("_", "-").split("-")[1:] if len(part) == 4 and part.isalpha()), ""
    )


def argos_code(tag: str) -> str:
    """Return Argos's code for a language: "zt" for "zh-Hant", "fr" for "fr-CA"."""
    return _CODES.get(tag, primary(tag))


def language_name(tag: str) -> str:
    """Return the English name of a language, or its tag if it is not a common one."""
    return _LANGUAGES.get(argos_code(tag), tag)
