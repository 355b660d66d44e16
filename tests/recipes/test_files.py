"""Configuration files that are based on recipes or on other files."""

import tomllib

import pytest

from glassformer.errors import ConfigError
from glassformer.recipes.files import read, recipe_text, recipes
from glassformer.recipes.toml import load


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file, and returns its path."""

    def written(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize("name", recipes())
def test_a_recipes_text_has_all_its_settings_in_sections(name):
    text = recipe_text(name)
    assert {section: fields for section, fields in tomllib.loads(text).items() if fields} == read(name)
    assert "base =" not in text
    assert recipes()[name].read_text(encoding="utf-8").splitlines()[0] == text.splitlines()[0]


def test_the_text_of_a_recipe_keeps_the_reasons_of_its_bases_and_its_suggestions():
    assert 'preset = "big"\ndropout = 0.1  # 6.1: 0.1 instead of 0.3' in recipe_text("wmt14-big-en-fr")
    assert "accumulate = 8\n" in recipe_text("wmt14-big-en-fr")
    assert "# crawled text has thousands of characters that occur once" in recipe_text("wmt14-big-en-fr")
    assert '[data]\n# source = "train.en"\n# target = "train.de"\n' in recipe_text("translation")


def test_a_file_changes_some_settings_of_a_recipe_and_has_the_others(write):
    path = write("mine.toml", 'base = "multi30k-en-de"\n[data]\nsource = "a.en"\n[model]\ndropout = 0.2\n')
    mine, recipe = load(path), load("multi30k-en-de")
    assert (mine.data.source, mine.data.target) == ("a.en", recipe.data.target)
    assert mine.model == {**recipe.model, "dropout": 0.2}
    assert (mine.training, mine.tokenizer, mine.decoding) == (recipe.training, recipe.tokenizer, recipe.decoding)
    assert mine.run.directory == "runs/mine"


def test_a_file_can_use_the_settings_that_recipes_share(write):
    path = write("mine.toml", 'base = "words"\n[data]\nsource = "mine.tsv"\n')
    assert load(path).training == load("ar2en", ["training.minutes=60"]).training


def test_a_base_is_found_beside_the_file_that_names_it(write):
    write("shared/first.toml", '[data]\ntask = "copy"\n[training]\nsteps = 5\nwarmup = 7\n')
    write("shared/second.toml", 'base = "first.toml"\ntraining.steps = 6\n')
    third = write("mine.toml", 'base = "shared/second.toml"\ntraining.minutes = 1\n')
    training = load(third, ["training.warmup=8"]).training
    assert (training.steps, training.minutes, training.warmup) == (6, 1, 8)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (
            '"wikipron-it"',
            r"mine.toml: base: expected a file or one of .*, got 'wikipron-it' \(did you mean",
        ),
        ("7", "mine.toml: base: expected the name of a recipe or a file, got 7"),
        ('"none.toml"', "none.toml cannot be read: No such file or directory"),
        (
            '"mine.toml"',
            "base: expected a file that is not based on this file, got mine.toml → mine.toml",
        ),
        ('"other.toml"', "got mine.toml → other.toml → mine.toml; remove a base"),
    ],
)
def test_an_impossible_base_is_an_error_that_names_the_file(write, base, message):
    write("other.toml", 'base = "mine.toml"\n')
    with pytest.raises(ConfigError, match=message):
        read(write("mine.toml", f"base = {base}\n"))


def test_a_value_in_place_of_a_section_is_refused_with_a_base_too(write):
    with pytest.raises(ConfigError, match="training: expected a section with fields, got 7"):
        load(write("mine.toml", 'base = "copy"\ntraining = 7\n'))
