"""Glossaries: files of terms, and the terms in a text."""

import time

import pytest

from glassformer.errors import DataError
from glassformer.text.glossary import Glossary

TERMS = {
    "cat": "chat|matou",
    "machine": "appareil",
    "machine learning": "apprentissage automatique",
    "API": "API",
    "Paris": "Paris",
    "iPhone": "iPhone",
    ".NET": ".NET",
    "機械": "machine",
}


def found(text, taken=()):
    return [(text[term.begin : term.end], term.forms[0]) for term in Glossary.of(TERMS).terms(text, taken)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat", [("cat", "chat")]),
        ("Cat, CAT", [("Cat", "Chat"), ("CAT", "Chat")]),
        ("cats concatenate cat_x 5cat", [("cat", "chat")]),
        (
            "machine learning machines machine",
            [("machine learning", "apprentissage automatique"), ("machine", "appareil")],
        ),
        ("an API, an api", [("API", "API")]),
        ("PARIS paris", [("PARIS", "PARIS"), ("paris", "paris")]),
        ("iphone iPhone", [("iPhone", "iPhone")]),
        ("use .NET, not NET", [(".NET", ".NET")]),
        ("この機械は", [("機械", "machine")]),
        ("", []),
    ],
)
def test_terms_are_found_at_word_boundaries_the_longest_first(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    ("terms", "languages", "text", "expected"),
    [
        (["Straße"], "de", "STRASSE, Strasse, STRAẞE. Straßen", ["STRASSE", "Strasse", "STRAẞE"]),
        (["Strasse"], "de", "die straße", ["straße"]),
        (["ışık", "ilik"], "tr", "IŞIK ışık işik İLİK ilik ILIK", ["IŞIK", "ışık", "İLİK", "ilik"]),
        (["ışık", "ilik"], "az", "Işık İlik i\u0307lik Ilik", ["Işık", "İlik", "i\u0307lik"]),
        (["istanbul"], "", "ISTANBUL İstanbul ıstanbul", ["ISTANBUL", "İstanbul"]),
        (["νόμος", "Μάιος", "ή"], "el", "ΝΟΜΟΣ νομός, ΜΑΪΟΣ Η ή Ή", ["ΝΟΜΟΣ", "ΜΑΪΟΣ", "ή", "Ή"]),
        (["σοφός"], "el", "ΣΟΦΌΣ ο σοφόσ", ["ΣΟΦΌΣ", "σοφόσ"]),
        (["café"], "fr", "CAFE\u0301, cafe\u0301 cafe", ["CAFE\u0301", "cafe\u0301"]),
        (["cafe\u0301"], "fr", "Café", ["Café"]),
        (["Kater"], "de", "Ka\u00adter. KA\u00adTER\u00ad Ka-ter", ["Ka\u00adter", "KA\u00adTER\u00ad"]),
        (["Ka\u00adter", "iPhone"], "de", "Kater iPho\u200bne", ["Kater", "iPho\u200bne"]),
        (["e-mail"], "en", "e\u2011mail E-Mail", ["e\u2011mail", "E-Mail"]),
        (["üble straße"], "de", "ßß ÜBLE STRASSE ßß Üble Strasse", ["ÜBLE STRASSE", "Üble Strasse"]),
        (["stras"], "de", "Straße straß stras", ["stras"]),
        (["iPhone"], "tr", "İPHONE IPHONE iPhone", ["iPhone"]),
    ],
)
def test_terms_are_found_in_every_case_of_their_language(terms, languages, text, expected):
    found = Glossary.of(dict.fromkeys(terms, "x")).terms(text, source_language=languages)
    assert [text[term.begin : term.end] for term in found] == expected


@pytest.mark.parametrize("words", [("Masse", "Maße"), ("Maße", "Masse")])
def test_of_terms_with_the_same_capitals_the_one_that_is_written_counts(words):
    glossary = Glossary.of({word: f"{word}!" for word in words})
    assert [term.forms[0] for term in glossary.terms("Maße Masse maße masse")] == ["Maße!", "Masse!"] * 2
    assert [term.forms[0] for term in glossary.terms("MASSE")] == ["Masse!"]


def test_forms_are_written_in_normal_form_and_untranslated_terms_as_given():
    glossary = Glossary.of({"rug": "cafe\u0301|ta\u00adpis", "cafe\u0301": "café"})
    assert [term.forms for term in glossary.terms("rug cafe\u0301")] == [
        ("café", "tapis", "Café", "Tapis"),
        ("cafe\u0301",),
    ]
    with pytest.raises(DataError, match="expected a source term with a letter"):
        Glossary.of({"\u00ad": "a"})


def test_the_capital_of_a_form_is_that_of_the_targets_language():
    [term] = Glossary.of({"Constantinople": "istanbul"}).terms("Constantinople", target_language="tr")
    assert term.forms == ("istanbul", "İstanbul")


def test_taken_characters_belong_to_no_term():
    assert found("cat {cat} cat", [(4, 9)]) == [("cat", "chat"), ("cat", "chat")]
    assert found("machine learning", [(8, 16)]) == [("machine", "appareil")]
    assert found("ßß cat {cat} cat", [(7, 12)]) == [("cat", "chat"), ("cat", "chat")]


def test_the_first_letter_of_a_form_may_become_a_capital():
    [small], [capital] = (list(Glossary.of({"cat": "chat|matou"}).terms(text)) for text in ("a cat", "Cat"))
    assert small.forms == ("chat", "matou", "Chat", "Matou")
    assert capital.forms == ("Chat", "Matou", "chat", "matou")


def test_a_file_of_terms(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_bytes(b"\xef\xbb\xbfcat\tchat|matou\r\n\r\nAPI\tAPI\n  big  dog \t gros  chien")
    assert Glossary.load(path) == Glossary.of({"cat": "chat|matou", "API": "API", "big dog": "gros chien"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cat\tchat\ndog", r"terms\.tsv, line 2: expected a source term, a tab and a target term, got 1 column;"),
        (b"cat\tchat\tx", "line 1: .* got 3 columns"),
        (b"cat\t", "line 1: expected a target term with a letter or a digit, got ''"),
        (b"\tchat", "line 1: expected a source term with a letter or a digit, got ''"),
        (b"cat\tchat|", "line 1: expected a target term with a letter or a digit"),
        (
            b"\ncat\tchat\nCat\tfelin",
            r"line 3: expected one translation of 'Cat', got a different one than in .*line 2",
        ),
        (b"caf\xe9\tcaf\xe9", "terms.tsv: expected UTF-8, got an invalid byte at 3"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path, content, message):
    (tmp_path / "terms.tsv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        Glossary.load(tmp_path / "terms.tsv")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*none\.tsv: No such file"):
        Glossary.load(tmp_path / "none.tsv")


def test_terms_that_differ_in_a_case_that_counts_are_two():
    glossary = Glossary.of({"us": "nous", "US": "États-Unis"})
    assert [term.forms[0] for term in glossary.terms("us US")] == ["nous", "États-Unis"]


@pytest.mark.parametrize("number", [2, 1000])
def test_looking_up_terms_does_not_take_longer_for_more_of_them(number):
    glossary = Glossary.of({f"a {'b ' * 40}{one}": "x" for one in range(number)} | {"a a": "y"})
    text = "a b " * 2000
    began = time.process_time()
    assert list(glossary.terms(text, [(at, at + 1) for at in range(0, len(text), 4)])) == []
    assert time.process_time() - began < 2  # it took a thousand times as long before this was mended
