"""What the corpus doctor suspects: wrong files, columns, languages and encodings, and targets of other sources."""

import random
from pathlib import Path
from typing import Any

import pytest

import word_by_word
from glassformer.corpus.cleaning import CleaningConfig
from glassformer.corpus.doctor.examine import examine
from glassformer.corpus.doctor.fit import LEAST_JUDGED, fit_of
from glassformer.corpus.doctor.function_words import FUNCTION_WORDS, LEAST_WORDS, seeming_language
from glassformer.corpus.doctor.mojibake import repaired
from glassformer.corpus.doctor.sample import MOST_SAMPLED
from glassformer.corpus.doctor.suspicions import LEAST_MISFITS
from glassformer.corpus.readers import Corpus

KEEP = CleaningConfig(duplicates="keep")


def suspicions(folder: Path, sides: Any, languages: tuple[str, str] = ("", "")) -> tuple[list[str], dict[str, Any]]:
    """Return the warnings and their data for a corpus of these source and target lines."""
    for name, lines in zip(("source", "target"), sides, strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    findings = examine(Corpus.of("source", "target", str(folder)), KEEP, languages=languages).findings
    return [*findings.warnings], {**findings.details}


def in_columns(folder: Path, text: str, **columns: Any) -> tuple[list[str], dict[str, Any]]:
    """Return the warnings and their data for a TSV file."""
    (folder / "words.tsv").write_text(text)
    findings = examine(Corpus.of("words.tsv", "", str(folder), **columns), KEEP).findings
    return [*findings.warnings], {**findings.details}


def sentences(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Return sentences of a language of 300 words, each with its translation word by word."""
    chance = random.Random(seed)
    words = {f"{a}{b}": f"{b}{a}s" for a in "abcdefghijklmnopqrst" for b in "aeiouäöüéèêëîïô"}
    pairs = word_by_word.pairs(count, seed, 4, 12, words)
    chance.shuffle(pairs)
    return [source for source, _ in pairs], [target for _, target in pairs]


def moved(lines: list[str], share: float) -> list[str]:
    """Return lines of which a share has changed places with each other."""
    chance = random.Random(2)
    places = chance.sample(range(len(lines)), round(share * len(lines)))
    changed = list(lines)
    for place, other in zip(places, places[1:] + places[:1], strict=True):
        changed[place] = lines[other]
    return changed


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_the_share_of_targets_that_belong_to_other_sources_is_estimated(tmp_path, share):
    source, target = sentences(1000)
    others = moved(target, share)
    warnings, details = suspicions(tmp_path, (source, others))
    [warning] = (one for one in warnings if "do not seem to belong" in one)
    assert details["misfits"]["share"] == pytest.approx(share, abs=0.06)
    assert all(target[line - 1] != others[line - 1] for line in details["misfits"]["lines"])
    assert f"such as line {details['misfits']['lines'][0]}, " in warning


@pytest.mark.parametrize("count", [LEAST_JUDGED, 1000])
def test_targets_that_fit_are_not_suspected(tmp_path, count):
    assert suspicions(tmp_path, sentences(count)) == ([], {})


@pytest.mark.parametrize("languages", ["words", "letters", "without spaces"])
def test_words_letters_and_languages_without_spaces_are_judged(languages):
    source, target = sentences(600)
    match languages:
        case "letters":  # a pronunciation dictionary: a word, and its sounds
            source = [line.replace(" ", "") for line in source]
        case "without spaces":
            target = ["".join(chr(0x4E00 + hash_of(word)) for word in line.split()) for line in target]
    right, wrong = fit_of(source, target), fit_of(source, moved(target, 0.2))
    assert right is not None
    assert wrong is not None
    assert right.misfits < 0.05 < LEAST_MISFITS < wrong.misfits


def hash_of(word: str) -> int:
    return sum(ord(letter) * 31**place for place, letter in enumerate(word)) % 5000


def test_texts_that_share_no_words_are_not_judged():
    names = [f"name{number} of{number} country{number}" for number in range(1000)]
    assert fit_of(names, [name.upper() for name in reversed(names)]) is None
    source, target = sentences(LEAST_JUDGED - 1)
    assert fit_of(source, target) is None


@pytest.mark.slow
def test_a_sample_does_not_depend_on_the_order_of_the_pairs(tmp_path):
    pairs = list(zip(*sentences(MOST_SAMPLED + 2000), strict=True))
    shuffled = random.Random(5).sample(pairs, len(pairs))
    found = []
    for one in (pairs, shuffled):
        source, target = map(list, zip(*one, strict=True))
        _, details = suspicions(tmp_path, (source, ["Ã¼" if "é" in line else line for line in target]))
        found.append(details["mojibake"]["target"]["count"])
    assert found[0] == found[1] < sum("é" in target for _, target in pairs)


def lines_in(language: str, count: int = 100) -> list[str]:
    """Return lines of which a quarter of the words are a language's function words."""
    chance, known = random.Random(language), sorted(FUNCTION_WORDS[language])
    letters = "".join(known).replace(" ", "")
    other = ["".join(chance.choices(letters, k=7)) for _ in range(200)]
    return [" ".join([*chance.choices(known, k=3), *chance.choices(other, k=9)]) for _ in range(count)]


@pytest.mark.parametrize("language", FUNCTION_WORDS)
def test_a_language_is_known_by_its_function_words(language):
    lines, other = lines_in(language), "en" if language != "en" else "de"
    assert len(FUNCTION_WORDS[language]) <= 30
    found = seeming_language(lines, other)
    assert found is not None
    assert found.language == language
    assert seeming_language(lines, language) is None
    assert seeming_language(lines, "ja") is None  # has no list
    assert seeming_language(lines[: LEAST_WORDS // 12 - 2], other) is None


def test_swapped_sides_and_wrong_languages_are_said(tmp_path):
    german, english, french = (lines_in(one) for one in ("de", "en", "fr"))
    [swapped], data = suspicions(tmp_path, (german, english), ("en-GB", "de"))
    assert swapped.startswith("the sides seem to be swapped: the source seems to be German, and the target English")
    assert data == {"languages": {"swapped": True}}
    [wrong], data = suspicions(tmp_path, (english, french), ("en", "de"))
    assert wrong == "the target seems to be French, but data.target_language is 'de': is this the right file?"
    assert data == {"languages": {"target": {"expected": "de", "found": "fr"}}}
    for right in (("en", "fr"), ("", ""), ("en", "ja"), ("en", "de-fonipa"), ("en", "de-Cyrl")):
        assert suspicions(tmp_path, (english, french), right) == ([], {})


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp1250", "cp1251", "cp1253", "cp437"])
def test_mojibake_is_found_and_repaired(tmp_path, encoding):
    texts = ["für alle", "das Öl", "naïve", "ещё раз", "Ωμέγα"]
    spoiled = [text.encode().decode(encoding, errors="replace") for text in texts]
    spoiled = [text for text in spoiled if "\ufffd" not in text]
    assert spoiled
    assert [repaired(text) for text in spoiled] == [
        text for text in texts if "\ufffd" not in text.encode().decode(encoding, errors="replace")
    ]
    assert [repaired(text) for text in texts] == texts
    [warning], details = suspicions(tmp_path, (["plain"] * 9, [f"{spoiled[0]} {number}" for number in range(9)]))
    assert warning.startswith(
        "mojibake in 100 % of the target lines with letters outside ASCII, such as line 1, 2, 3: "
    )
    assert details["mojibake"]["target"]["count"] == 9


def test_a_few_lines_that_look_like_mojibake_are_no_warning(tmp_path):
    source = ["für", "É»", "Ã¼", *(f"Öl auf {number}" for number in range(60))]
    assert [repaired(line) != line for line in source[:3]] == [False, True, True]
    assert suspicions(tmp_path, (source, ["a"] * len(source))) == ([], {})


def test_a_side_of_numbers_or_codes_is_the_wrong_column(tmp_path):
    words, target = sentences(150)
    for codes in (range(150), [f"s{number:05}" for number in range(150)], [f"1.{number}" for number in range(150)]):
        [warning], details = suspicions(tmp_path, (codes, target))
        assert warning.startswith(f"the source has no words, only numbers or codes such as '{codes[0]}'")
        assert details == {"no_words": {"source": {"share": 1.0}}}
    assert suspicions(tmp_path, (words, target)) == ([], {})
    assert suspicions(tmp_path, (range(150), range(150, 300))) == ([], {})  # a task of numbers


def test_columns_that_are_not_read_are_said_unless_a_setting_chooses(tmp_path):
    text = "".join(
        f"{source}\t{target}\tCC0 {number}\n"
        for number, (source, target) in enumerate(zip(*sentences(40), strict=True))
    )
    [warning], details = in_columns(tmp_path, text)
    assert warning.startswith("the lines have up to 3 columns: columns 0 and 1 are read, column 2 is ignored")
    assert details == {"ignored_columns": {"columns": 3}}
    assert in_columns(tmp_path, text, source_column=0, target_column=1) == ([], {})
    assert in_columns(tmp_path, text.replace("\tCC0", " CC0")) == ([], {})


@pytest.mark.parametrize("header", ["en\tde", "source\ttarget"])
def test_a_header_that_no_setting_names_is_said(tmp_path, header):
    pairs = "".join(f"{source}\t{target}\n" for source, target in zip(*sentences(40), strict=True))
    source, target = header.split("\t")
    [warning], details = in_columns(tmp_path, f"{header}\n{pairs}")
    assert warning.startswith("line 1 looks like a header, and is read as a pair: ")
    assert details == {"header": [source, target]}
    assert in_columns(tmp_path, f"{header}\n{pairs}", source_column=source, target_column=target) == ([], {})
    assert in_columns(tmp_path, pairs) == ([], {})


def test_a_header_in_two_files_is_said(tmp_path):
    source, target = sentences(40)
    [warning], details = suspicions(tmp_path, (["English", *source], ["French", *target]))
    assert warning.endswith("is read as a pair: remove 'English' and 'French' from the files")
    assert details == {"header": ["English", "French"]}
    assert suspicions(tmp_path, (["English", *source], ["anglais", *target])) == ([], {})  # a pair of words


def test_a_shift_is_said_once(tmp_path):
    source, target = sentences(2000)
    warnings, details = suspicions(tmp_path, (source[:1000] + source[1001:], target[:-1]))
    assert [*details] == ["shift"]
    assert len(warnings) == 1
    others = moved(target[:-1], 0.5)
    assert "misfits" in suspicions(tmp_path, (source[:1900] + source[1901:], others))[1]
