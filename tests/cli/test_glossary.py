"""`--glossary`: terms of a file in the outputs of `translate` and `bulk`, and in documents."""

import json

import pytest

TERMS = b"cat\tchien|matou\nsees\tsees\n"


@pytest.fixture
def terms(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_bytes(TERMS)
    return path


def has_terms(line):
    words = line.lower().split()
    return "sees" in words and bool({"chien", "matou"} & {*words})


def test_each_line_has_its_terms_and_a_status_says_how(glassformer, trained, terms, tmp_path):
    options = ("--glossary", terms, "--status", tmp_path / "status.jsonl")
    result = glassformer("translate", trained, *options, stdin=b"the cat sees a dog\na dog\nthe cat sees 12345\n")
    first, second, third = result.out.splitlines()
    assert has_terms(first)
    assert has_terms(third)
    assert "12345" in third
    kept = [json.loads(line).get("kept") for line in (tmp_path / "status.jsonl").read_text().splitlines()]
    assert kept[1] is None
    assert {kept[0], kept[2]} == {"placed"}
    assert second == glassformer("translate", trained, stdin=b"a dog\n").out.strip("\n")


def test_protection_can_be_switched_off(glassformer, trained):
    on, off = (
        glassformer("translate", trained, "--set", f"decoding.protect={value}", stdin=b"the cat sees 12345\n").out
        for value in ("true", "false")
    )
    assert "12345" in on
    assert "12345" not in off


def test_a_document_has_the_terms(glassformer, trained, terms, tmp_path):
    (tmp_path / "in.html").write_text('<p>the <b>cat</b> sees a dog</p><p translate="no">the cat sees</p>')
    output = tmp_path / "out.html"
    result = glassformer("translate", trained, tmp_path / "in.html", "--output", output, "--glossary", terms)
    assert result.status == 0
    first, second = output.read_text().split("</p>")[:2]
    assert has_terms(first.replace("<b>", "").replace("</b>", "").replace("<p>", ""))
    assert second == '<p translate="no">the cat sees'


@pytest.mark.slow
def test_a_bulk_folder_belongs_to_its_glossary(glassformer, trained, terms, tmp_path):
    (tmp_path / "in.txt").write_text("the cat sees a dog\na dog\n")
    command = ("bulk", trained, tmp_path / "in.txt", "--output", tmp_path / "out")
    assert glassformer(*command, "--glossary", terms).status == 0
    [part] = (tmp_path / "out" / "parts").glob("*.txt")
    assert has_terms(part.read_text().splitlines()[0])
    refused = glassformer(*command)
    assert refused.status == 1
    assert "different glossary" in refused.err
    terms.write_bytes(TERMS + b"dog\tchien\n")
    assert "different glossary" in glassformer(*command, "--glossary", terms).err


def test_a_wrong_glossary_is_refused_in_one_line(glassformer, trained, terms):
    terms.write_bytes(b"cat\tchat\ncat chien\n")
    refused = glassformer("translate", trained, "--glossary", terms, stdin=b"the cat\n")
    assert (refused.status, refused.err.count("\n"), refused.out) == (1, 1, "")
    assert "terms.tsv, line 2: expected a source term, a tab and a target term" in refused.err
    refused = glassformer("translate", trained, "--glossary", terms, "--explain", stdin=b"the cat\n")
    assert "leave out --glossary" in refused.err
