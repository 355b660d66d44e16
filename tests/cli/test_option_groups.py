"""A command takes a group of options as one parameter; Typer sees the options one by one."""

import inspect
from typing import Annotated, NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from glassformer.cli.option_groups import as_command


class Size(NamedTuple):
    """A group for this test."""

    width: Annotated[int, typer.Option("--width")] = 3
    heights: Annotated[list[int] | None, typer.Option("--height")] = None


def draw(
    name: Annotated[str, typer.Argument()],
    *,
    before: Annotated[bool, typer.Option("--before")] = False,
    size: Size,
    after: Annotated[str, typer.Option("--after")] = "",
) -> None:
    """Print what is given."""
    typer.echo(f"{name} {before} {size.width} {size.heights} {after}")


def test_the_options_of_a_group_take_its_place():
    parameters = [*inspect.signature(as_command(draw)).parameters]
    assert parameters == ["name", "before", "width", "heights", "after", "debug", "verbose"]


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        (["a"], "a False 3 None "),
        (["--height", "2", "a", "--width", "5", "--height", "7", "--before"], "a True 5 [2, 7] "),
    ],
)
def test_a_command_gets_its_group_as_one_value(given, printed):
    app = typer.Typer()
    app.command()(as_command(draw))
    assert CliRunner().invoke(app, given).output == f"{printed}\n"
