"""The language of many lines, by their function words: the commonest words, which every text of a language has."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["FUNCTION_WORDS", "Seeming", "seeming_language"]

FUNCTION_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "bg": "на да се за от не по това при към или като със през до са бъде има още само който която което трябва",
        "ca": "de la el que els les amb per una un és no del al són ha com més aquest aquesta però també només",
        "cs": "na se je že do pro od při jako nebo není ale ze ve který která které jsou být podle pouze bez této",
        "da": "og at det er en til på af for ikke der som med den et har fra kan var hun han ved eller men blev",
        "de": "der die das und ist ein eine nicht in zu den von mit auf für im dem des sich auch wird oder er sie",
        "el": "και το του της να με για από την τον στο στη είναι δεν που σε θα των τη τα στην ένα μια ή οι",
        "en": "the of and to is in that it for on with as was be this are not by an or at from he she you his her",
        "es": "de la que el en los las se por un una con no es para del al lo como su más pero está sus este",
        "et": "ja on ei ta et see ma kui oma aga ka või mis ning seda selle kas olla pole kuid mida siis",
        "fi": "ja on ei se että hän oli ovat kun tai mutta sen myös jos niin mitä ole tämä joka kuin voi minä",
        "fr": "de la le et les des un une est que en du dans il elle pour pas au sur ne avec ce par sont qui plus",
        "hr": "je se na da za od su ili koji koja koje nije kao ali biti ako samo iz do sa bez već može",
        "hu": "az egy és hogy nem is van ez de meg csak vagy el már ki lehet mint volt azt ha kell minden",
        "id": "yang dan di untuk dari dengan ini tidak adalah pada itu dalam akan atau ke oleh saya telah bisa ada",
        "it": "di che il la un una per non è in del con si le della sono da dei al nel come più ha gli anche lo",
        "lt": "ir yra kad ne su tai bet iš ar į kaip nuo tik jis buvo už per apie dėl ji jau po taip",
        "lv": "un ir no ar uz par kas ka tas nav bet vai lai pie pēc kā šo var tikai bija viņš viņa arī",
        "nb": "og det er en til på av for ikke som med den et har fra kan var hun han ved eller men ble å seg",
        "nl": "de het een en van is in te dat op niet zijn voor met aan er die ook als maar om bij wordt hij of",
        "pl": "nie się na jest do że to jak po ale dla od przez ze czy być może lub oraz są tylko który przy tego",
        "pt": "de que os as um uma não para com do da em no na se por dos das mais como ao são foi ele você",
        "ro": "de și în la cu pe nu că un este se din sau pentru să ce mai fi care sunt ai ale prin acest",
        "ru": "не на что это как по но за из от для то он она же бы так или если его при до был может только",
        "sk": "na sa je že do pre od pri ako alebo nie ale zo vo ktorý ktorá ktoré sú byť podľa iba bez tejto si",
        "sl": "je in na se da za ni ne od so ali ki pri kot po tudi pa iz bi lahko če samo kaj sem",
        "sr": "је се на да за од су или који која које није као али бити ако само из до са без већ може",
        "sv": "och att det är en som på för med av till den inte ett har om de han hon från kan var eller men",
        "tr": "bir ve bu için ile da de mi olarak değil ne çok daha var gibi ama kadar her olan veya sonra en",
        "uk": "не на що це як та до за від для або але він вона якщо при його бути може лише ще цей було її",
    }.items()
}
"""At most thirty function words of a language, by its BCP 47 code; words of two or more letters tell more."""

LEAST_WORDS = 300
"""Minimum number of words; of fewer, nothing is said."""
LEAST_SHARE = 0.05
"""Minimum share of function words among all words. Sentences have 20 to 45 %, menus 8 %, single words next to none."""
LEAST_DIFFERENT = 8
"""Minimum number of different function words, so that no name of three letters decides."""
CLEARLY = 3.0
"""A language is not the expected one if its function words are so many times as frequent as the expected ones."""

_WORD = re.compile(r"[^\W\d_]{2,}")


class Seeming(NamedTuple):
    """The language that some lines seem to have."""

    language: str
    share: float
    """Share of its function words among all words, 0 to 1."""


def seeming_language(lines: Iterable[str], expected: str) -> Seeming | None:
    """Return the language that lines seem to have instead of the expected one, or None if there is none.

    Languages without a list of function words are not judged: `expected` is a code of `FUNCTION_WORDS`.
    """
    words = Counter(word for line in lines for word in _WORD.findall(line.lower()))
    total = sum(words.values())
    if total < LEAST_WORDS or expected not in FUNCTION_WORDS:
        return None
    counts = {one: sum(words[word] for word in known) for one, known in FUNCTION_WORDS.items()}
    likeliest = max(counts, key=counts.__getitem__)
    different = sum(word in words for word in FUNCTION_WORDS[likeliest])
    share, wanted = counts[likeliest] / total, counts[expected] / total
    if share < LEAST_SHARE or different < LEAST_DIFFERENT or share < CLEARLY * wanted:
        return None
    return Seeming(likeliest, share)
