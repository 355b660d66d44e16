"""Each exercise of the book has a difficulty, minutes and a hint, and a verdict if the exercise asks for numbers."""

import re

import pytest
from chapters import CHAPTERS

from glassformer.watch.capstone.answers import ANSWERS

WITH_EXERCISES = [chapter for chapter in CHAPTERS if "\n# ## Exercises\n" in chapter.path.read_text(encoding="utf-8")]
LEVELS = {"en": ("Easy", "Medium", "Hard"), "zh": ("容易", "中等", "较难")}
HEAD = {
    "en": r"\*\*(\d+)\.(?: [^*]+)?\*\* \*(\w+) · (\d+) min(?: · [\w ]+)?\.\* \S",
    "zh": r"\*\*(\d+)\.(?: [^*]+)?\*\* \*(\w+) · (\d+) 分钟(?: · [^*]+)?。\* \S",
}
HINT = {
    name: rf"\n\n<details><summary>{word}</summary>\n\n[^\n].*?\n\n</details>"
    for name, word in (("en", "Hint"), ("zh", "提示"))
}
NUMBERS = (
    r"\b[Hh]ow (?:many|much|large|wide|often|close)\b|\bwhat share\b|\bAbove which\b|\bAt which step\b|\bcalculator\b"
)


def sections(text: str, heading: str, last: str) -> list[str]:
    """Return the exercises of a chapter as text, each with the code below it."""
    section = text.split(f"\n## {heading}\n")[1].split(f"\n## {last}")[0]
    return re.split(r"\n(?=(?:\*\*)?\d+\. |\*\*\d+\.)", section)[1:]


def english(chapter) -> list[str]:
    lines = chapter.path.read_text(encoding="utf-8").splitlines()
    return sections("\n".join(re.sub(r"^#(?! %%) ?", "", line) for line in lines), "Exercises", "Next")


def said(exercise: str) -> str:
    """Return the question of an exercise, without its hint and its code."""
    return re.split(r"\n# %%|\n\n<details>", exercise)[0]


@pytest.mark.parametrize("chapter", WITH_EXERCISES, ids=lambda chapter: chapter.name)
def test_each_exercise_has_a_difficulty_minutes_and_a_folded_hint(chapter):
    languages = {"en": english(chapter)}
    if chapter.translation.exists():
        languages["zh"] = sections(chapter.translation.read_text(encoding="utf-8"), "练习", "下一步")
    heads = {}
    for language, exercises in languages.items():
        found = [re.match(HEAD[language], one) for one in exercises]
        assert None not in found, [one[:60] for one, head in zip(exercises, found, strict=True) if head is None]
        assert [len(re.findall(HINT[language], one, re.DOTALL)) for one in exercises] == [1] * len(exercises)
        ends = [re.split(r"\n# %%|\n<!-- cell", one.split("</details>")[1])[0].strip() for one in exercises]
        assert not any(ends), "the hint must end an exercise's text"
        heads[language] = [(int(one[1]), LEVELS[language].index(one[2]), int(one[3])) for one in found]
    assert all(one == heads["en"] for one in heads.values())
    assert [number for number, _, _ in heads["en"]] == [*range(1, len(heads["en"]) + 1)]
    assert all(1 <= minutes <= 15 for _, _, minutes in heads["en"])


@pytest.mark.parametrize("chapter", WITH_EXERCISES, ids=lambda chapter: chapter.name)
def test_an_exercise_that_asks_for_numbers_gives_a_verdict_which_the_solution_passes(chapter):
    for number, exercise in enumerate(english(chapter), start=1):
        name = f"{chapter.path.stem}.{number}"
        asked, folded, solution = exercise.partition('# %% tags=["hide-cell"]')
        on_stage = "&task=" in said(exercise)
        assert bool(folded) != on_stage, name
        assert (f'print(verdict("{name}", answer' in asked) == (name in ANSWERS), name
        assert (f'assert verdict("{name}", ' in solution) == (name in ANSWERS), name
        if re.search(NUMBERS, said(exercise)) and not on_stage:
            assert name in ANSWERS, said(exercise)
