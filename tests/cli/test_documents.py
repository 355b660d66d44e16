"""`glassformer translate` with a document: the output is a document in which only the text has changed."""

import pytest


def test_a_document_is_translated_into_a_file(glassformer, trained, tmp_path):
    page = "<p>the <b>cat</b> sees\n a dog</p>\n<pre>the cat</pre>\n"
    (tmp_path / "in.html").write_text(page)
    result = glassformer("translate", trained, tmp_path / "in.html", "-o", tmp_path / "out.html")
    assert (result.status, result.out) == (0, "")
    assert result.err.startswith(("1 unit\n", "1 unit;"))
    out = (tmp_path / "out.html").read_text()
    line = glassformer("translate", trained, stdin=b"the cat sees a dog\n").out.strip()
    assert out.replace("<b>", "").replace("</b>", "") == page.replace("the <b>cat</b> sees\n a dog", line)
    assert out.count("<b>") == out.count("</b>") == 1


def test_a_text_file_is_a_document_only_with_an_output(glassformer, trained, tmp_path):
    (tmp_path / "in.txt").write_text("the cat sees\na dog\n")
    assert glassformer("translate", trained, tmp_path / "in.txt").out.count("\n") == 2
    result = glassformer("translate", trained, tmp_path / "in.txt", "-o", tmp_path / "out.txt")
    paragraph = glassformer("translate", trained, stdin=b"the cat sees a dog\n").out
    assert result.status == 0
    assert (tmp_path / "out.txt").read_text().split() == paragraph.split()


def test_each_line_of_a_text_file_may_be_a_sentence(glassformer, trained, tmp_path):
    lines = ["the cat sees", "a dog. the dog", "", "a cat"]
    (tmp_path / "in.txt").write_bytes("\r\n".join(lines).encode("utf-16"))
    options = ("--set", "documents.lines=true", "--set", "decoding.beam_size=2", "-o", tmp_path / "out.txt")
    result = glassformer("translate", trained, tmp_path / "in.txt", *options)
    assert result.status == 0
    written = (tmp_path / "out.txt").read_bytes().decode("utf-16")
    stdin = "".join(f"{line}\n" for line in lines).encode()
    alone = glassformer("translate", trained, "--beam-size", "2", stdin=stdin).out.split("\n")
    assert written.split("\r\n") == alone[:4]


def test_what_has_no_translation_is_summarised(glassformer, trained, tmp_path):
    (tmp_path / "in.txt").write_text("the cat\n\n" + "cat " * 5000 + "\n")
    options = ("--set", "decoding.max_source=50", "-o", tmp_path / "out.txt")
    result = glassformer("translate", trained, tmp_path / "in.txt", *options)
    assert "2 units; 1 too long: line 3" in result.err
    assert (tmp_path / "out.txt").read_text().endswith("cat cat \n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in.html"], "name the file for its translation by --output"),
        (["in.html", "-o", "in.html"], "--output: expected a different file than the input"),
        (["in.html", "-o", "out.html", "--explain"], "--explain is for lines"),
        (["in.doc", "-o", "out.doc"], "FILE: expected a document"),
        (["-o", "out.html"], "got stdin"),
        (
            ["in.html", "-o", "out.html", "--set", "documents.lines=true"],
            "documents.lines: expected a file with the suffix .txt",
        ),
        (["in.txt", "--set", "documents.lines=true"], "--set documents.NAME=VALUE is for documents"),
        (
            ["in.html", "-o", "out.html", "--set", "documents.line=true"],
            "documents.line: unknown field (did you mean 'lines'",
        ),
        (
            ["in.html", "-o", "out.html", "--set", "documents.lines=maybe"],
            "documents.lines: expected true or false, got 'maybe'",
        ),
        (["absent.html", "-o", "out.html"], "absent.html does not exist"),
    ],
)
def test_what_does_not_fit_is_one_line(glassformer, trained, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name in ("in.html", "in.doc", "in.txt"):
        (tmp_path / name).write_text("the cat\n")
    result = glassformer("translate", trained, *arguments)
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert message in result.err
    assert (tmp_path / "in.html").read_text() == "the cat\n"
