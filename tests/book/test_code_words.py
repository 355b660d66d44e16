"""The comments and printed lines in the code cells of Chinese pages."""

import re

import nbformat
import pytest
from cells import chinese_code, chinese_line, chinese_output, comments, has_words, pattern, printed, tables, without_row
from chapters import CHAPTERS, EXECUTED, parsed
from pages import CAPSTONE
from pictures import chinese_markdown

TRANSLATED = [chapter for chapter in CHAPTERS if chapter.translation.exists()]


def code_of(chapter) -> list[str]:
    code = [cell.source for cell in parsed(chapter.path).cells if cell.cell_type == "code"]
    solution = [(CAPSTONE / "mine.py").read_text(encoding="utf-8")]  # the chapter "write_it_yourself" shows this file
    return code + solution * (chapter.name == "write_it_yourself")


@pytest.mark.parametrize("chapter", TRANSLATED, ids=lambda chapter: chapter.name)
def test_each_comment_and_printed_line_of_a_translated_chapter_is_translated(chapter):
    """Add the rows that this test lists to book/zh/code.toml: without them, the words are in English on the page."""
    said = [one.words for code in code_of(chapter) for one in comments(code)]
    missing = [f"[comments] {words}" for words in said if has_words(words) and words not in tables()["comments"]]
    lines = sorted(set().union(*map(printed, code_of(chapter))))
    missing += [f"[printed] {row}" for line in lines for row in without_row(chapter.name, line)]
    assert missing == []


def test_the_rows_are_in_alphabetical_order_and_have_the_values_of_the_english():
    for part, rows in tables().items():
        assert list(rows) == sorted(rows), part
        assert part in {"comments", "printed", *(chapter.name for chapter in CHAPTERS)}
        for english, chinese in rows.items():
            if part != "comments":
                assert len(re.findall(r"\{\d?\}", chinese)) == english.count("{}"), english


@pytest.mark.docs
@pytest.mark.long
def test_each_row_is_used():
    """Delete or correct the rows that this test lists: their words are in no chapter. Needs executed chapters."""
    said = {one.words for chapter in CHAPTERS for code in code_of(chapter) for one in comments(code)}
    unused = [f"[comments] {words}" for words in tables()["comments"] if words not in said]
    texts = {chapter.name: "\n".join([*code_of(chapter), printed_by(chapter)]) for chapter in CHAPTERS}
    for part, rows in tables().items():
        text = texts.get(part, "\n".join(texts.values()))
        for english in rows if part != "comments" else ():
            # A sentence that this run's model did not print must at least occur in the chapter's code.
            in_code = all(piece.strip(" ,:.;()") in text for piece in english.split("{}"))
            unused += [f"[{part}] {english}"] * (not in_code and not pattern(english).search(text))
    assert unused == []


def printed_by(chapter) -> str:
    cells = nbformat.read(EXECUTED / f"{chapter.name}.ipynb", 4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    text = "\n".join(output.text for output in outputs if output.output_type == "stream")
    return text + "\n" + re.sub(r"\n +", " ", text)  # a row may stand for a line and its continuation lines


def test_comments_and_docstrings_become_chinese_and_the_code_stays(monkeypatch):
    rows = {"a heading of two lines": "两行的标题" * 15, "inline": "行内", "Return 1.": "返回 1。"}
    monkeypatch.setitem(tables(), "comments", rows)
    code = (
        '# a heading\n# of two lines\nx = "é # no"  # inline\ndef f():\n    """Return 1."""\n    return x  # unknown\n'
    )
    lines = chinese_code(code).split("\n")
    assert "".join(line.removeprefix("# ") for line in lines[:2]) == "两行的标题" * 15
    assert lines[2:] == ['x = "é # no"  # 行内', "def f():", '    """返回 1。"""', "    return x  # unknown", ""]


def test_code_in_computed_text_keeps_its_code(monkeypatch):
    monkeypatch.setitem(tables(), "comments", {"Step 2": "第 2 步"})
    code = "```python\n# Step 2\nself.heads = heads\n```"
    assert chinese_markdown("tour", f"{code}\nencoder\n{code}") == f"{code}\n编码器\n{code}".replace(
        "Step 2", "第 2 步"
    )


def test_a_row_may_stand_for_a_line_and_the_indented_lines_that_continue_it(monkeypatch):
    monkeypatch.setitem(tables(), "indented", {"wrote {} of the lines": "写了 {} 行", "then": "然后"})
    assert chinese_output("indented", "  wrote 5 of\n    the lines\n  then\nwrote 5 of\nthe lines") == (
        "  写了 5 行\n  然后\nwrote 5 of\nthe lines"
    )


def test_printed_lines_become_chinese_in_their_columns(monkeypatch):
    rows = {"lack {} of {}": "{1} 缺 {0}", "post-norm": "后归一化", "strides": "步数"}
    monkeypatch.setitem(tables(), "new", rows)
    assert chinese_line("new", "  lack 0.5 of post-norm") == "  后归一化 缺 0.5"
    assert chinese_line("new", "lack 0.5    of post-norm   ") == "后归一化 缺 0.5   "
    assert chinese_output("new", "a      strides\npost-norm  100\n") == "a         步数\n后归一化   100\n"


def test_what_a_cell_prints_is_read_from_its_code():
    code = 'print("a sum", x, f"of {y:>5} {\'one\' if z else \'two\'}")\nprint("no end", end=" ")\nprint(f"{n} W_O")'
    assert printed(code) == {"a sum {} of {} {}", "one", "two", "no end {} W_O"}
    assert not has_words("(B, T, d_model) @ W_O")
