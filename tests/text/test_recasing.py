"""Lines in capitals, in lower case and in title case are written as usual; other lines are known as ordinary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.edits import edited
from glassformer.text.recasing import (
    MOST_BYTES,
    MOST_SPELLINGS,
    Spellings,
    case_of,
    in_capitals,
    lowered,
    recased,
    words_of,
)

GERMAN = Spellings(["Hund", "Straße", "Österreich", "NATO", "groß", "Berlin", "während", "Katze", "McDonald"], "de")
FRENCH = Spellings(["École", "Paris", "été", "garçon"], "fr")
GREEK = Spellings(["άνθρωπος", "Αθήνα", "μέρα"], "el")
TURKISH = Spellings(["İstanbul", "Işık"], "tr")
ENGLISH = Spellings(["London", "I", "NASA"], "en")


def usual(line, table, *, capital=True, kept=()):
    return edited(line, recased(line, table.usual, table.language, capital=capital, kept=kept))


@pytest.mark.parametrize(
    ("line", "table", "expected"),
    [
        ("DER HUND SCHLÄFT.", GERMAN, "Der Hund schläft."),
        ("DIE STRASSE IST GROSS.", GERMAN, "Die Straße ist groß."),
        ("der hund in österreich", GERMAN, "Der Hund in Österreich"),
        ("DER HUND DER NATO", GERMAN, "Der Hund der NATO"),
        ("WAEHREND DES TAGES", GERMAN, "Waehrend des tages"),
        ("EIN HUND UND EINE KATZE (BERLIN)", GERMAN, "Ein Hund und eine Katze (Berlin)"),
        ("EIN HUND-UND-KATZE-TAG", GERMAN, "Ein Hund-und-Katze-tag"),
        ("L'ECOLE DE PARIS", FRENCH, "L'École de Paris"),
        ("L'ÉCOLE EN ÉTÉ", FRENCH, "L'École en été"),
        ("UN GARCON", FRENCH, "Un garçon"),
        ("Ο ΑΝΘΡΩΠΟΣ ΣΤΗΝ ΑΘΗΝΑ", GREEK, "Ο άνθρωπος στην Αθήνα"),
        ("ΟΔΟΣ ΑΒΓ", GREEK, "Οδος αβγ"),
        ("ISTANBUL'DA IŞIK VAR", TURKISH, "Istanbul'da Işık var"),
        ("İSTANBUL ŞEHRİ", TURKISH, "İstanbul şehri"),
        ("THE CAT OF LONDON", ENGLISH, "The cat of London"),
        ("DO I KNOW NASA?", ENGLISH, "Do I know NASA?"),
        ("The Cat Slept On The Rug.", ENGLISH, "The cat slept on the rug."),
        ("DON'T GO, MP3 FANS!", ENGLISH, "Don't go, mp3 fans!"),
        ("2 CATS SLEEP", ENGLISH, "2 cats sleep"),
        ("coo\u00adking in lon\u00addon", ENGLISH, "Cooking in London"),
        ("WA\u0308HREND DER KATZEN", GERMAN, "Während der katzen"),
        ('"are you there?" - "no. not me!" he said', ENGLISH, '"Are you there?" - "No. Not me!" he said'),
        ("IT COSTS 3.50 EUROS, ETC.", ENGLISH, "It costs 3.50 euros, etc."),
        ("ᲗᲑᲘᲚᲘᲡᲘ ᲐᲠᲘᲡ THE CITY", ENGLISH, "ᲗᲑᲘᲚᲘᲡᲘ ᲐᲠᲘᲡ the city"),
        ("القاهرة 東京 THE CITY", ENGLISH, "القاهرة 東京 the city"),
    ],
)
def test_words_get_their_usual_spelling(line, table, expected):
    assert usual(line, table) == expected


def test_spans_keep_their_letters():
    line = "SEE HTTPS://A.ORG AND {X}"
    assert usual(line, ENGLISH, kept=[(4, 17), (22, 25)]) == "See HTTPS://A.ORG and {X}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("THE CAT SLEEPS", "capitals"),
        ("the cat sleeps", "lower"),
        ("The Cat Sleeps There", "title"),
        ("The Cat Sleeps On The Red Sofa", "title"),
        ("The cat sleeps", ""),
        ("The cat sees London and NASA", ""),
        ("Where is Angela Smith now?", ""),
        ("OK", ""),
        ("A B C", ""),
        ("THE 5", ""),
        ("NASA and THE CAT", ""),
        ("猫が寝る", ""),
        ("თბილისი არის ქალაქი", ""),
        ("القاهرة مدينة", ""),
        ("", ""),
        ("12:30", ""),
    ],
)
def test_the_case_of_a_line(line, expected):
    assert case_of(line, ENGLISH.usual) == expected


def test_nouns_that_usually_have_a_capital_are_no_title():
    assert case_of("Der Hund sieht die Katze", GERMAN.usual) == ""
    assert case_of("Ein Hund Sieht Seine Schöne Katze", GERMAN.usual) == "title"


def test_spans_do_not_count():
    assert case_of("THE CAT sees", ENGLISH.usual, kept=[(8, 12)]) == "capitals"
    assert case_of("the cat HTTPS://X", ENGLISH.usual, kept=[(8, 17)]) == "lower"


def test_usual_spellings_are_those_away_from_the_beginning_of_a_sentence():
    lines = [
        "The cat sees London. The dog sees London, too.",
        "THE DOG SEES A CAT",
        "Cats see Paris – And Paris sees cats.",
        "A café in a café and a resume",
        "Über über",
    ]
    found = Spellings.of(lines, "en")
    assert {*found.forms} == {"London", "café", "Paris"}
    assert found.usual("LONDON") == "London"
    assert found.usual("CAFE") == "café"
    assert found.usual("RESUME") == "resume"


def test_words_that_the_table_lacks_are_written_as_most_words_with_their_ending():
    lines = ["die Zeitung und Wohnung", "eine Meinung ist blutjung", "was ich lang sang, klang", "kein Blatt ist platt"]
    table = Spellings.of(lines, "de")
    assert table.forms == ("-Ung", "blutjung")
    assert table.usual("RECHNUNG") == "Rechnung"
    assert table.usual("BLUTJUNG") == "blutjung"  # seen in lower case
    assert table.usual("JUNG") == "jung"  # too short for the ending
    assert table.usual("SATT") == "satt"  # as many words with a capital as without one
    assert Spellings(table.forms, "de").usual("rechnung") == "Rechnung"
    assert Spellings(["-Ung", "-rung"], "de").usual("VORSPRUNG") == "vorsprung"  # the longest ending decides
    assert Spellings(["-İş"], "tr").usual("İLERLEYİŞ") == "İlerleyiş"


def test_a_known_word_is_no_other_word_with_accents():
    table = Spellings.of(["in der Nähe, in der Nähe", "ganz nahe, ganz nahe"], "de")
    assert (table.usual("nahe"), table.usual("nähe")) == ("nahe", "Nähe")


def test_a_joined_table_keeps_its_own_endings():
    joined = Spellings(["-Ung", "Berlin"], "de").joined(["-ung", "-Heit", "berlin", "Bonn"])
    assert joined.forms == ("-Ung", "Berlin", "-Heit", "Bonn")


@pytest.mark.slow
def test_a_table_is_small():
    lines = [f"a {word} b {word}" for word in (f"W{number:06}x" for number in range(60_000))]
    found = Spellings.of(lines, "en")
    assert len(found.forms) == MOST_SPELLINGS
    assert (
        sum(
            len(form.encode()) + 1
            for form in Spellings.of((f"a {'Ä' * 40}{n} {'Ä' * 40}{n}" for n in range(20_000)), "").forms
        )
        <= MOST_BYTES
    )


WORDS = [
    "the",
    "Cat",
    "SAW",
    "a",
    "A",
    "Éa",
    "éa",
    "ǅa",
    "x-Y",
    "O'b",
    "12",
    "a_B",
    "თბ",
    "თB",
    "(the",
    "iPad",
    "b" * 101,
]


@given(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join) | st.text("aAßÉ \u0301-_1Ⅷǆ", max_size=20))
def test_ordinary_lines_are_known_at_once(line):
    elsewhere = [(len(line) + 1, len(line) + 2)]  # with a span, each word is looked at
    assert case_of(line, ENGLISH.usual) == case_of(line, ENGLISH.usual, kept=elsewhere)


@given(st.text("aAßéÉΣσςiIİıბᲑ 12-.'", max_size=30), st.sampled_from([GERMAN, GREEK, TURKISH, ENGLISH]))
def test_only_the_letters_of_words_change(line, table):
    found = usual(line, table)
    words, others = [*words_of(line)], [*words_of(found)]
    assert len(words) == len(others)
    for (begin, end), (first, last) in zip(words, others, strict=True):
        assert line[:begin].count(" ") == found[:first].count(" ")
        assert line[end : end + 1] == found[last : last + 1]


@pytest.mark.parametrize(
    ("word", "language", "capitals"),
    [
        ("straße", "de", "STRASSE"),
        ("ısı iki", "tr", "ISI İKİ"),
        ("άνθρωπος", "el", "ΑΝΘΡΩΠΟΣ"),
        ("été", "fr", "ÉTÉ"),
        ("თბილისი", "ka", "თბილისი"),
        ("東京", "ja", "東京"),
    ],
)
def test_capitals_of_a_language(word, language, capitals):
    assert in_capitals(word, language) == capitals
    assert lowered(capitals, language) != capitals or word == capitals


def test_a_table_is_joined_to_another_whose_words_it_knows():
    table = Spellings(["Hund", "NATO"], "de").joined(["hund", "Nato", "Katze", "Straße"])
    assert table.forms == ("Hund", "NATO", "Katze", "Straße")
    assert (table.usual("NATO"), table.usual("STRASSE")) == ("NATO", "Straße")
    assert len(Spellings(["Hund"]).joined(f"Wort{number}" for number in range(60_000)).forms) == MOST_SPELLINGS
