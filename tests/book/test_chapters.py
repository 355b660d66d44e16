"""The chapters as files, which a reader can use without building the book."""

import importlib
import inspect
import json
import re
import tomllib
from codeop import CommandCompiler
from itertools import chain, pairwise
from pathlib import Path

import jupytext
import nbformat.v4
import pytest
import torch
from chapters import BOOK, CHAPTERS, GUIDE, Chapter, changed, parsed, write_record
from navigation import reading_minutes
from pages import (
    CHECKED,
    ROOT,
    SOLUTION,
    addresses,
    definitions,
    key,
    localised,
    notebook_page,
    slug,
    translatable,
    translations,
)
from pictures import TABLE, chinese_label, chinese_picture, labels
from torch.nn.functional import cross_entropy

from glassformer import Translator
from glassformer.watch.capstone import EXERCISES
from glassformer.watch.pictures import curves, player

RESULTS = BOOK / "experiments" / "results"
BOOK_PAGES = [chapter for chapter in CHAPTERS if chapter.path.is_relative_to(BOOK)]
EXPERIMENTS = [chapter for chapter in CHAPTERS if chapter.name.startswith("experiments/")]
BY_NAME = {chapter.name: chapter for chapter in CHAPTERS}
PARTS = CHAPTERS[[*BY_NAME].index("embeddings") : [*BY_NAME].index("by_hand_backward") + 1]
"""The chapters that explain the model part by part."""
SHORT = ["attention", "masks", "heads", "residual", "decoder", "embeddings", "positions", "feed_forward", "encoder"]
SHORT += ["output", "training", "decoding"]
"""The chapters with a summary of their answers directly before the exercises."""
FOLDED = {"hide-input", "hide-cell", "remove-input"}
LONGEST_CELL = 25
"""Maximum number of lines of a code cell that is not folded: about what a screen shows beside its text."""


def name_of(chapter) -> str:
    return chapter.name


def test_the_book_and_the_guide_have_all_their_notebooks():
    paths = [chapter.path for chapter in CHAPTERS]
    assert len(BY_NAME) == len(paths)
    assert {*paths} == {*BOOK.glob("*.py"), *(BOOK / "experiments").glob("*.py"), *GUIDE.glob("*.py")}
    assert [*BY_NAME][:3] == ["overview", "tour", "why_attention"]


def test_next_leads_from_the_overview_through_every_page_of_the_book():
    """The last section of each page links to the next page in the overview's table."""
    for page, after in pairwise(BOOK_PAGES):
        text = page.path.read_text(encoding="utf-8")
        end = re.split(r"^# ## (?:Next|Where to go .*)$", text, flags=re.MULTILINE)
        linked = re.findall(r"\]\(([^()\s#]*\.py)", "".join(end[1:]))
        assert after.path in [(page.path.parent / link).resolve() for link in linked], f"{page.name} → {after.name}"


def test_the_path_of_an_hour_takes_an_hour():
    """The overview's first path takes an hour, with 15 seconds for the output of each cell that is not only a check."""

    def minutes(name, end):
        notebook = parsed(BY_NAME[name].path)
        ends = [number for number, cell in enumerate(notebook.cells) if f"## {end}\n" in f"{cell.source}\n"]
        notebook.cells = notebook.cells[: ends[0] + 1]
        notebook.cells[-1].source = notebook.cells[-1].source.split(f"## {end}")[0]
        for cell in notebook.cells:
            if cell.cell_type == "code" and "check" not in cell.metadata.get("tags", []):
                cell.outputs = [nbformat.v4.new_output("stream")]
        return reading_minutes(notebook, "en")

    path = {"tour": "Where to go next", "why_attention": "Read on after the chapter on attention"}
    assert 50 <= sum(minutes(*one) for one in (path | {"attention": "Exercises"}).items()) <= 62


def test_the_tour_shows_its_reader_no_mathematics_and_no_code():
    cells = parsed(BY_NAME["tour"].path).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert all({"hide-input", "remove-input"} & set(cell.metadata.get("tags", [])) for cell in code)
    said = [cell.source for cell in cells if cell.cell_type == "markdown"]
    said += chain.from_iterable(labels(cell.source) for cell in code)
    assert not re.findall(r"\$|\blog|softmax|vector|matri[xc]", " ".join(said))


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/site/index.zh.md", "book/overview.py"])
def test_a_newcomer_is_led_to_the_tour_before_any_other_page_of_the_book(page):
    linked = re.findall(r"[\]\"]?[(\"]([\w./]+)\.(?:py|html)[)\"]", (ROOT / page).read_text(encoding="utf-8"))
    assert next(name for name in linked if Path(name).name in BY_NAME).endswith("tour")


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS, ids=name_of)
def test_cells_can_be_pasted_into_a_plain_interpreter(chapter):
    """A terminal gets the cells line by line, and there a blank line ends each block."""
    compiled = CommandCompiler()
    for cell in parsed(chapter.path).cells:
        pending: list[str] = []
        for line in [*cell.source.splitlines(), ""] if cell.cell_type == "code" else ():
            pending.append(line)
            if compiled("\n".join(pending), "<pasted>", "single") is not None:
                pending = []
        assert not "".join(pending).strip()


def unfolded(chapter) -> list[str]:
    """Return the code that a reader of a chapter sees without opening anything."""
    cells = [cell for cell in parsed(chapter.path).cells if cell.cell_type == "code"]
    return [cell.source for cell in cells if not FOLDED & set(cell.metadata.get("tags", []))]


@pytest.mark.slow
def test_a_visible_cell_is_short():
    """If this test lists a cell, split the cell where a thought ends, or fold it with the tag "hide-input"."""
    codes = [(chapter.name, code) for chapter in CHAPTERS for code in unfolded(chapter)]
    long = [(name, code.splitlines()[0]) for name, code in codes if len(code.splitlines()) > LONGEST_CELL]
    assert long == []


def test_assertions_are_folded():
    """An assertion and its expected values belong in a cell with the tags "hide-input" and "check"."""
    for chapter in CHAPTERS:
        for cell in parsed(chapter.path).cells:
            tags = cell.metadata.get("tags", [])
            assert "check" not in tags or "hide-input" in tags
    asserted = re.compile(r"\s*(assert\b|expected =|\w+(\.\w+)*\.assert_\w+\()")
    lines = [(chapter.name, line) for chapter in CHAPTERS for code in unfolded(chapter) for line in code.splitlines()]
    assert [(name, line) for name, line in lines if asserted.match(line)] == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_folded_cell_of_assertions_says_what_it_is(language):
    notebook = jupytext.reads('# %% tags=["hide-input", "check"]\nassert True\n\n# %%\n1\n', "py:percent")
    page, _ = notebook_page("attention", notebook, {"attention"}, language)
    assert page.cells[0].metadata["mystnb"]["code_prompt_show"] == CHECKED[language]
    assert "mystnb" not in page.cells[1].metadata


@pytest.mark.parametrize(("language", "hint"), [("en", "Hint"), ("zh", "提示")])
def test_the_button_of_a_solution_says_what_it_is(language, hint):
    cells = [
        nbformat.v4.new_code_cell("an = 'example'", metadata={"tags": ["hide-cell"]}),
        nbformat.v4.new_markdown_cell(
            f"**1.** How many?\n\n<details><summary>{hint}</summary>\n\nCount.\n\n</details>"
        ),
        nbformat.v4.new_code_cell("answer = None"),
        nbformat.v4.new_code_cell("answer = 1", metadata={"tags": ["hide-cell"]}),
    ]
    page, _ = notebook_page("attention", nbformat.v4.new_notebook(cells=cells), {"attention"}, language)
    assert [cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in page.cells] == [
        *(None, None, None),
        SOLUTION[language][0],
    ]


@pytest.mark.parametrize("chapter", PARTS, ids=name_of)
def test_a_chapter_has_questions_explanations_code_and_exercises(chapter):
    text = chapter.path.read_text(encoding="utf-8")
    headings = re.findall(r"^# ## (.*)$", text, flags=re.MULTILINE)
    assert len(headings) == len(set(headings))
    for heading in ("The question", "The mathematics", "What goes wrong", "Exercises"):
        assert heading in headings
    assert re.search(r"§\d", text)
    assert text.count('tags=["hide-cell"]') >= 3
    assert text.count("assert") >= 5


@pytest.mark.parametrize("name", SHORT)
def test_a_chapter_of_the_model_ends_in_short_with_three_points(name):
    english = BY_NAME[name].path.read_text(encoding="utf-8").replace("\n# ", "\n").replace("\n#\n", "\n\n")
    chinese = BY_NAME[name].translation.read_text(encoding="utf-8")
    for text, heading, after in ((english, "In short", "Exercises"), (chinese, "小结", "练习")):
        [points] = re.findall(rf"^## {heading}\n\n(.*?)\n\n## {after}$", text, flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^- ", points, flags=re.MULTILINE)) == 3
        assert not re.search(r"\n(?!- |  )", points)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_no_line_of_a_paragraph_begins_like_a_list(chapter):
    """A number with a dot or a bracket at the beginning of a line would begin a numbered list."""
    cells = [cell.source for cell in parsed(chapter.path).cells if cell.cell_type == "markdown"]
    if chapter.translation.exists():
        cells.append(chapter.translation.read_text(encoding="utf-8"))
    lines = "\n\n".join(cells).split("\n")
    item, words = re.compile(r"\d+[.)](\s|$)"), re.compile(r"[^\s<#]")
    pairs = [(before, line) for before, line in pairwise(lines) if item.match(line)]
    assert [pair for pair in pairs if words.match(pair[0]) and not item.match(pair[0])] == []


def test_write_it_yourself_sets_the_tasks_that_the_command_prints_each_with_minutes_shapes_and_a_hint():
    page = re.sub(r"\n# ?|\s+", " ", BY_NAME["write_it_yourself"].path.read_text(encoding="utf-8"))
    steps = re.split(r" ## Step \d+: ", page)[1:]
    for step, exercise in zip(steps, EXERCISES, strict=True):
        assert f"Write `{exercise.signature.split(', with ')[0].split(' and ')[0]}" in step
        assert exercise.task in re.sub(r"`(<\w+>)`", r"\1", step)
        assert re.search(r"\*\d+ minutes\.\*.* \| in \| out \| .*<details><summary>Hint</summary>", step)


def test_both_halves_by_hand_compute_with_the_same_tools_words_and_weights():
    forward, backward = (
        [cell.source for cell in parsed(BOOK / f"{name}.py").cells if cell.cell_type == "code"]
        for name in ("by_hand", "by_hand_backward")
    )
    for start in ("def short(", "words = ["):
        assert next(cell for cell in forward if cell.startswith(start)) in backward
    drawn = next(cell for cell in forward if cell.startswith("random = "))
    assert any(drawn.startswith(cell) for cell in backward if cell.startswith("random = "))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name_of)
def test_links_lead_to_existing_code_and_headings(chapter):
    links = re.findall(r"\]\(([^()\s:]*\.py)(?:#([^()\s]+))?\)", chapter.path.read_text(encoding="utf-8"))
    assert links
    for file, name in links:
        path = (chapter.path.parent / file).resolve()
        assert path.exists(), file
        if path.is_relative_to(BOOK):
            headings = re.findall(r"^# #+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert name in {"", *map(slug, headings)}, (file, name)
        else:
            assert name in {"", *definitions(str(path.relative_to(ROOT)))}, (file, name)


@pytest.mark.parametrize("chapter", EXPERIMENTS, ids=name_of)
def test_an_experiment_has_a_command_a_committed_result_and_a_chapter(chapter):
    command = BOOK / "experiments" / "measure" / chapter.path.name
    measured = result(chapter.path.stem)
    assert command.exists()
    assert command.name in measured["command"]
    assert len(measured["seeds"]) >= 3
    assert {"glassformer", "torch", "python"} <= set(measured["versions"])
    assert f"{chapter.path.stem}.json" in chapter.path.read_text(encoding="utf-8")


def test_the_recurrent_models_use_all_their_weights_and_are_as_large_as_the_transformer(monkeypatch):
    monkeypatch.syspath_prepend(BOOK / "experiments" / "measure")
    models = importlib.import_module("recurrent").models(Translator.load("demo").bundle)
    ids = torch.randint(3, 600, (2, 7))
    for model in models.values():
        cross_entropy(model(ids, ids).flatten(0, 1), ids.flatten()).backward()
    unused = [name for model in models.values() for name, weight in model.named_parameters() if weight.grad is None]
    assert unused == []
    sizes = [sum(weight.numel() for weight in model.parameters()) for model in models.values()]
    assert max(sizes) < 1.001 * min(sizes)
    assert [runs[0]["weights"] for runs in result("recurrent")["models"].values()] == sizes
    assert len(result("recurrent")["seeds"]) == 3


def test_a_chapter_without_a_translation_is_read_in_english():
    """Such a chapter's row in the overview's table does not need a translation either."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# New")])
    assert localised(Chapter(BOOK / "new.py", "new"), notebook, "zh") is None
    assert addresses(BOOK, "attention", {"attention"}, "zh", set())("new.py") == "../new.html"
    here = addresses(BOOK, "decoding", {"experiments/beam"}, "zh", set())
    assert here("experiments/beam.py#longer-sentences") == "experiments/beam.html#longer-sentences"
    table = next(one.source for one in parsed(BY_NAME["overview"].path).cells if "| page |" in one.source)
    row = "| [Positions](positions.py) |"
    assert row in table
    assert key(table.replace(row, f"| [New](new.py) | What is new? |\n{row}")) == key(table)
    assert key(table.replace(row, "| [Place](positions.py) |")) != key(table)


def test_a_link_to_the_capstones_solution_opens_its_code():
    files = set()
    assert addresses(BOOK, "overview", {"overview"}, "zh", files)("capstone/mine.py") == (
        "../source/book/capstone/mine.py.html"
    )
    assert files == {"book/capstone/mine.py"}


def links(text: str) -> list[str]:
    return sorted(re.findall(r"\]\((\S+?)\)", text))


@pytest.mark.parametrize("chapter", [one for one in CHAPTERS if one.translation.exists()], ids=name_of)
def test_a_translation_has_every_present_cell_of_its_chapter(chapter):
    cells = parsed(chapter.path).cells
    english = [translatable(cell.source) for cell in cells if cell.cell_type == "markdown"]
    texts = translations(chapter.translation)
    assert set(texts) == set(map(key, english))
    assert all(re.search(r"[\u4e00-\u9fff]", text) for text in texts.values())
    for text in english:
        chinese = texts[key(text)]
        assert re.findall(r"^#+ ", chinese, flags=re.MULTILINE) == re.findall(r"^#+ ", text, flags=re.MULTILINE)
        # links to the explorer open it in Chinese
        assert links(re.sub(r"[#&]language=zh\b", "", chinese)) == links(text)
        assert chinese.count("```") == text.count("```")
    assert localised(chapter, parsed(chapter.path), "zh") is not None


@pytest.mark.parametrize("chapter", [one for one in CHAPTERS if one.translation.exists()], ids=name_of)
def test_each_label_in_a_picture_of_a_translated_chapter_is_translated(chapter):
    """Add the labels that this test lists to book/zh/pictures.toml."""
    cells = [cell.source for cell in parsed(chapter.path).cells if cell.cell_type == "code"]
    named = set().union(*map(labels, cells))
    assert [label for label in sorted(named) if chinese_label(chapter.name, label) is None] == []


def test_a_picture_becomes_chinese_but_for_its_numbers_and_the_words_of_a_sentence():
    drawn = curves(
        {"floor 0.998": ([0, 1], [2, 1]), "A <b>": ([0, 1], [1, 2])},
        alt="The street.",
        x_label="step",
        y_label="exact match (%)",
    )
    html = chinese_picture("training", player([drawn])._repr_html_())
    assert re.findall(r"<text[^>]*>([^<]*[^0-9.<][^<]*)</text>", html) == [
        "步",
        "精确匹配（%）",
        "下限 0.998",
        "A &lt;b&gt;",
    ]
    assert 'aria-label="播放或暂停"' in html
    assert "<p>The street.</p>" in html
    assert "font-family: system-ui, Noto Sans CJK SC, " in html
    assert chinese_picture("training", "<p>step</p>") == "<p>step</p>"


def test_a_computed_sentence_becomes_chinese_with_its_numbers():
    lines = [
        "This is head 4 of layer 1, one of 16. (Layers and heads are counted from 0.)",
        "Equal shares would be 7% for each token.",
        "With all heads, “il” is 402 times as likely as “elle”. Without head 5 of layer 0, it is only 1.2 times as "
        "likely. (This head gives 100% of its weight to “tired”.)",
        "| 8 | Le chat est large. |",
    ]
    output = nbformat.v4.new_output("execute_result", {"text/markdown": "\n".join(lines)})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])])
    assert localised(BY_NAME["tour"], notebook, "zh").cells[0].outputs[0].data["text/markdown"].split("\n") == [
        "这是第 1 层的头 4；解码器看英语词的头（下文称为交叉注意力）共有 16 个。（层和头都从 0 开始数。）",
        "如果平均分配，每个词元得到 7%。",
        "所有的头都开着时，写“il”的概率是写“elle”的 402 倍。关掉第 0 层的头 5，就只有 1.2 倍。"
        "（这个头把 100% 的权重给了“tired”。）",
        lines[3],
    ]


def test_a_label_is_translated_on_its_own_page():
    assert chinese_label("residual", "post-norm, none") == "后归一化，无预热"
    assert chinese_label("attention", "wide") == "宽"
    assert chinese_label("attention", "layer 0, head 5") == "第 0 层，头 5"
    assert chinese_label("decoding", "wide") is None
    assert chinese_label("output", "The smoothed loss") is None
    for page, rows in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        assert page == "common" or page in BY_NAME
        for english, chinese in rows.items():
            assert len(re.findall(r"\{\d?\}", chinese)) == english.count("{}"), english


@pytest.mark.slow
def test_each_row_of_the_table_is_a_label_of_its_page():
    """Delete the rows that this test lists, or correct them."""
    cells = {
        chapter.name: [cell.source for cell in parsed(chapter.path).cells if cell.cell_type == "code"]
        for chapter in CHAPTERS
    }
    buttons = Path(inspect.getfile(player)).read_text(encoding="utf-8")
    unknown = []
    for page, rows in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        code = cells.get(page) or [buttons, *chain.from_iterable(cells.values())]
        named, text = set().union(*map(labels, code)), "\n".join(code)
        text += "".join(path.read_text(encoding="utf-8") for path in RESULTS.glob("*.json") if path.name in text)
        for english in rows.keys() - named:  # a label may also be the value of a variable
            pieces = [piece.strip(" ,:“”().=√×") for piece in english.split("{}")]
            unknown += [f"[{page}] {english}"] * any(piece not in text for piece in pieces)
    assert unknown == []


def test_code_and_results_change_a_notebook_and_its_text_does_not(tmp_path, monkeypatch):
    path, results = tmp_path / "new.py", tmp_path / "experiments" / "results" / "new.json"
    results.parent.mkdir(parents=True)
    monkeypatch.setattr("chapters.BOOK", tmp_path)
    monkeypatch.setattr("chapters.RECORD", tmp_path / "executed.txt")
    monkeypatch.setattr("chapters.CHAPTERS", (Chapter(path, "new"),))

    def is_changed(text: str, code: str, result: str) -> bool:
        path.write_text(f"# %% [markdown]\n# {text}\n\n# %%\n{code}\n", encoding="utf-8")
        results.write_text(result, encoding="utf-8")
        return changed() == {"new"}

    read = 'open("results/new.json")'
    assert is_changed("A text.", read, "[1]")
    write_record()
    assert not is_changed("A text.", read, "[1]")
    assert not is_changed("Another text.", read, "[1]")
    assert is_changed("A text.", f"print({read})", "[1]")
    assert is_changed("A text.", read, "[2]")


def test_a_link_of_a_chinese_page_into_the_explorer_opens_it_in_chinese():
    address = addresses(BOOK, "overview", {"overview"}, "zh", set())
    assert address("../runs/demo/explorer.html") == "../explorer.html#language=zh"
    assert address("../runs/demo/explorer.html#chapter=2") == "../explorer.html#chapter=2&language=zh"
    assert address("../runs/demo/explorer.html#language=zh&chapter=0") == "../explorer.html#language=zh&chapter=0"
    assert addresses(BOOK, "overview", {"overview"}, "en", set())("../runs/demo/explorer.html") == "explorer.html"


def result(experiment: str):
    return json.loads((RESULTS / f"{experiment}.json").read_text(encoding="utf-8"))
