import pytest

from glassformer.corpus.tasks.world.adjectives import adjectives
from glassformer.corpus.tasks.world.french import (
    Features,
    adjective_form,
    agree,
    finite,
    french_plural,
    french_text,
    participle,
    settle,
)
from glassformer.corpus.tasks.world.verbs import verbs

M, F, MM, FF = Features("m"), Features("f"), Features("m", True), Features("f", True)


@pytest.mark.parametrize(
    ("one", "more"),
    [("chat", "chats"), ("souris", "souris"), ("oiseau", "oiseaux"), ("cheval", "chevaux"), ("bleu", "bleus"),
     ("nez", "nez"), ("vieux", "vieux"), ("jeu", "jeux")],
)  # fmt: skip
def test_plurals_are_regular(one, more):
    assert french_plural(one) == more


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("black", "noir noire noirs noires"),
        ("white", "blanc blanche blancs blanches"),
        ("brown", "marron marron marron marron"),
        ("orange", "orange orange orange orange"),
        ("grey", "gris grise gris grises"),
        ("blue", "bleu bleue bleus bleues"),
        ("red", "rouge rouge rouges rouges"),
        ("old", "vieux vieille vieux vieilles"),
        ("beautiful", "beau belle beaux belles"),
        ("new", "nouveau nouvelle nouveaux nouvelles"),
        ("nervous", "nerveux nerveuse nerveux nerveuses"),
        ("dry", "sec sèche secs sèches"),
        ("proud", "fier fière fiers fières"),
        ("kind", "gentil gentille gentils gentilles"),
        ("fresh", "frais fraîche frais fraîches"),
        ("soft", "doux douce doux douces"),
    ],
)
def test_adjectives_agree(name, forms):
    (adjective,) = adjectives(name)
    assert [adjective_form(adjective, features) for features in (M, F, MM, FF)] == forms.split()


@pytest.mark.parametrize(
    ("name", "following", "form"),
    [("old", "animal", "vieil"), ("beautiful", "homme", "bel"), ("new", "hôtel", "nouvel"), ("new", "œuf", "nouvel"),
     ("old", "hérisson", "vieux"), ("beautiful", "chat", "beau"), ("small", "éléphant", "petit")],
)  # fmt: skip
def test_some_masculine_adjectives_change_before_a_vowel(name, following, form):
    assert adjective_form(*adjectives(name), M, following) == form


def test_plural_and_feminine_adjectives_do_not_change_before_a_vowel():
    assert adjective_form(*adjectives("old"), MM, "animaux") == "vieux"
    assert adjective_form(*adjectives("old"), F, "araignée") == "vieille"


def test_verbs_agree_with_their_subject():
    sleep, sit, stand, go = verbs("sleep, sit, stand, go")
    assert [finite(sleep, features) for features in (M, FF)] == ["dormait", "dormaient"]
    assert [(finite(sit, f), participle(sit, f)) for f in (F, FF)] == [("était", "assise"), ("étaient", "assises")]
    assert participle(stand, FF) == "debout"
    assert (finite(go, MM), participle(go, MM)) == ("sont", "allés")
    assert agree("mis", FF) == "mises"


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("le animal", "l'animal"), ("la eau", "l'eau"), ("le homme", "l'homme"), ("le hérisson", "le hérisson"),
        ("la haie", "la haie"), ("la haute tour", "la haute tour"), ("la autre haie", "l'autre haie"),
        ("à le lac", "au lac"), ("à les oies", "aux oies"), ("à le hôtel", "à l'hôtel"),
        ("de le hérisson", "du hérisson"), ("de les loups", "des loups"),
        ("de la oie", "de l'oie"), ("de un lac", "d'un lac"), ("je ai", "j'ai"),
        ("parce que elle", "parce qu'elle"), ("il ne y avait pas", "il n'y avait pas"),
        ("se est arrêté", "s'est arrêté"),
        ("ne se est pas arrêté", "ne s'est pas arrêté"), ("jusque à le lac", "jusqu'au lac"),
        ("sur le tapis", "sur le tapis"),
        ("hier , le âne", "hier, l'âne"),
    ],
)  # fmt: skip
def test_words_elide_and_contract(words, written):
    assert french_text(settle(words.split())[0]) == written


def test_a_contracted_word_comes_from_both_halves():
    assert settle(("à", "le", "lac"), (0b001, 0b010, 0b100)) == (("au", "lac"), (0b011, 0b100))
