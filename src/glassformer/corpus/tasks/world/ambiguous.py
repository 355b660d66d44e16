"""Ambiguous words: an English word has two or three meanings, for which French has different words.

`AMBIGUOUS` lists, for each word, its meanings, and the frames of `senses.py` in which the contexts of the meanings
differ. To add a word, write down the French noun and the context of each meaning: the meaning's verbs, its adjectives,
or nouns that are found near it.

>>> [meaning.noun.french for meaning in AMBIGUOUS["bank"].meanings]
['rive', 'banque']
"""

from glassformer.corpus.tasks.draw import Draw, Table
from glassformer.corpus.tasks.world.adjectives import adjectives
from glassformer.corpus.tasks.world.clauses import moment
from glassformer.corpus.tasks.world.fragments import Fragment, join
from glassformer.corpus.tasks.world.nouns import nouns
from glassformer.corpus.tasks.world.senses import Meaning, Word, beside, done, getting_there, light, said, there, well
from glassformer.corpus.tasks.world.verbs import verbs
from glassformer.corpus.tasks.world.words import Gender, Noun

__all__ = ["AMBIGUOUS", "members", "sense"]


def _word(english: str, french: str, gender: Gender, at: str = "", plural: str = "", french_plural: str = "") -> Noun:
    return Noun(english, french, gender, "ambiguous", at, plural, french_plural)


_HANDLED, _ALIKE = verbs("see, wash, paint, draw"), adjectives("dirty wet white clean")

AMBIGUOUS = {
    "match": Word(
        frames=(done, done, said),
        looks=adjectives("long"),
        meanings=(
            Meaning(
                noun=_word("match", "allumette", "f"), done=verbs("strike, burn"), said=adjectives("wet dry broken")
            ),
            Meaning(
                noun=_word("match", "match", "m"), done=verbs("win, miss, watch"), said=adjectives("important secret")
            ),
        ),
    ),
    "bat": Word(
        share=1.7,
        frames=(done, said, said),
        looks=adjectives("old small black big"),
        meanings=(
            Meaning(
                noun=_word("bat", "chauve-souris", "f"),
                done=verbs("feed, hear, help, follow"),
                said=adjectives("tired hungry thirsty scared sick nervous"),
            ),
            Meaning(
                noun=_word("bat", "batte", "f"),
                done=verbs("break, paint, repair"),
                said=adjectives("broken expensive"),
            ),
        ),
    ),
    "nail": Word(
        frames=(done,),
        looks=adjectives("long dirty small"),
        meanings=(
            Meaning(noun=_word("nail", "clou", "m"), done=verbs("hammer in, pull out")),
            Meaning(noun=_word("nail", "ongle", "m"), done=verbs("cut, file, bite")),
        ),
    ),
    "ball": Word(
        frames=(done,),
        alone=(there,),
        looks=adjectives("beautiful big"),
        meanings=(
            Meaning(noun=_word("ball", "balle", "f"), done=verbs("throw, catch, lose")),
            Meaning(
                noun=_word("ball", "bal", "m", at="at à"),
                done=verbs("go, arrive, come back"),
                there=verbs("dance, sing"),
            ),
        ),
    ),
    "date": Word(
        frames=(done, said),
        looks=adjectives("good bad"),
        meanings=(
            Meaning(
                noun=_word("date", "datte", "f"), done=verbs("eat, taste"), said=adjectives("ripe sweet delicious")
            ),
            Meaning(
                noun=_word("date", "date", "f"),
                done=verbs("forget, choose, write"),
                said=adjectives("important secret"),
            ),
        ),
    ),
    "plant": Word(
        share=1.7,
        frames=(done, said, said),
        alone=(there,),
        looks=adjectives("old big new beautiful"),
        meanings=(
            Meaning(
                noun=_word("plant", "plante", "f"), done=verbs("water, cut"), said=adjectives("green dry wet fresh")
            ),
            Meaning(
                noun=_word("plant", "usine", "f", at="at à"),
                done=verbs("visit, enter"),
                said=adjectives("closed flooded remote empty"),
                there=verbs("work"),
            ),
        ),
    ),
    "nut": Word(
        frames=(done, done, said),
        looks=adjectives("big small"),
        meanings=(
            Meaning(noun=_word("nut", "noix", "f"), done=verbs("eat, taste"), said=adjectives("delicious fresh sweet")),
            Meaning(noun=_word("nut", "écrou", "m"), done=verbs("tighten, unscrew"), said=adjectives("rusty")),
        ),
    ),
    "glasses": Word(
        frames=(done,),
        looks=adjectives("old new small big"),
        plural=True,
        meanings=(
            Meaning(noun=_word("glass", "lunette", "f"), done=verbs("wear, put on")),
            Meaning(noun=_word("glass", "verre", "m"), done=verbs("fill, empty")),
        ),
    ),
    "key": Word(
        frames=(done, said),
        compound=True,
        meanings=(
            Meaning(
                noun=_word("key", "clé", "f"), owners=nouns("house car castle suitcase"), done=_HANDLED, said=_ALIKE
            ),
            Meaning(
                noun=_word("key", "touche", "f"), owners=nouns("piano accordion computer"), done=_HANDLED, said=_ALIKE
            ),
        ),
    ),
    "trunk": Word(
        frames=(done, said),
        meanings=(
            Meaning(noun=_word("trunk", "trompe", "f"), owners=nouns("elephant"), done=_HANDLED, said=_ALIKE),
            Meaning(noun=_word("trunk", "coffre", "m"), owners=nouns("car"), done=_HANDLED, said=_ALIKE),
            Meaning(noun=_word("trunk", "tronc", "m"), owners=nouns("tree"), done=_HANDLED, said=_ALIKE),
        ),
    ),
    "pen": Word(
        share=2,
        frames=(beside, beside),
        alone=(there, done),
        looks=adjectives("old small new"),
        meanings=(
            Meaning(
                noun=_word("pen", "enclos", "m", at="in dans"),
                done=verbs("enter"),
                there=verbs("sleep, wait, stand, rest"),
                visitors=nouns("goat cow horse donkey hen goose"),
                beside=nouns("goat cow horse donkey hen goose"),
            ),
            Meaning(
                noun=_word("pen", "stylo", "m"),
                done=verbs("forget, lose, buy, choose"),
                beside=nouns("letter book newspaper cup umbrella"),
            ),
        ),
    ),
    "bank": Word(
        frames=(getting_there,),
        meanings=(
            Meaning(noun=_word("bank", "rive", "f")),
            Meaning(noun=_word("bank", "banque", "f", at="at à"), there=verbs("work, wait")),
        ),
        alone=(there,),
    ),
    "light": Word(
        frames=(light,),
        alone=(done,),
        meanings=(Meaning(noun=_word("light", "lumière", "f"), done=verbs("turn on, turn off")),),
    ),
    "well": Word(frames=(well,), meanings=(Meaning(noun=_word("well", "puits", "m")),)),
}
"""The ambiguous words. To add a word, write down its meanings and choose the frames that tell the meanings apart."""

_WORDS = Table(*((word, word.share) for word in AMBIGUOUS.values()))


def members(draw: Draw, name: str) -> tuple[Fragment, ...]:
    """Return sentences with this ambiguous word, one for each meaning. The sentences differ only in the context."""
    word = AMBIGUOUS[name]
    return _placed(draw, draw.choose(word.frames)(draw, word))


def sense(draw: Draw) -> Fragment:
    """Return a sentence with an ambiguous word, such as "the girl struck the match"."""
    word = draw.pick(_WORDS)
    return draw.choose(_placed(draw, draw.choose(word.frames + word.alone)(draw, word)))


def _placed(draw: Draw, sentences: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    """Return the sentences, sometimes with a time; all sentences get the same time."""
    before, after = moment(draw, 0.25)
    return tuple(join(before, sentence, after) for sentence in sentences)
