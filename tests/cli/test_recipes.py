"""`glassformer recipes`: the list, and a recipe to start from."""

import tomllib

import pytest

from glassformer.cli.train.recipes import RECIPE_GROUPS
from glassformer.recipes.files import read, recipes


def test_every_recipe_is_listed_once_under_its_group(glassformer):
    lines = glassformer("recipes").out.splitlines()
    assert [line.removesuffix(":") for line in lines if line.removesuffix(":") in RECIPE_GROUPS] == list(RECIPE_GROUPS)
    assert sorted(line.split()[0] for line in lines if line.split() and line.split()[0] in recipes()) == list(recipes())
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("name", ["cmudict", "translation", "wmt14-big-en-fr"])
def test_a_recipe_is_printed_with_its_comments_and_all_settings_of_its_bases(glassformer, name):
    result = glassformer("recipes", name)
    assert result.out.splitlines()[0] == recipes()[name].read_text(encoding="utf-8").splitlines()[0]
    assert {part: settings for part, settings in tomllib.loads(result.out).items() if settings} == read(name)


@pytest.mark.slow
def test_a_printed_recipe_is_a_working_configuration(glassformer, corpus):
    (corpus / "mine.toml").write_text(glassformer("recipes", "translation").out, encoding="utf-8")
    values = ["data.source=train.tsv", "training.steps=2", "training.minutes=0", "model.d_model=16", "model.heads=2"]
    result = glassformer("train", "mine.toml", *(f"--set={value}" for value in values))
    assert result.status == 0, result.err
    assert (corpus / "runs/mine/model.safetensors").is_file()


def test_an_unknown_recipe_is_named_with_the_nearest(glassformer):
    result = glassformer("recipes", "cmudct")
    assert result.status == 1
    assert "NAME: expected the name of a recipe, got 'cmudct' (did you mean 'cmudict'?)" in result.err
