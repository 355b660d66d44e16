"""`glassformer recipes`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.errors import ConfigError, nearest, quoted

__all__ = ["recipes_command"]

RECIPE_GROUPS = ("Built in", "Your own corpus", "Sentences", "Words", "Published")
"""The groups of recipes, in the order of the list; the first line of each recipe begins with one of these groups."""


def recipes_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Print this recipe as TOML, for you to edit and train.")
    ] = None,
) -> None:
    """List the built-in recipes, or print one as TOML."""
    from glassformer.recipes.files import recipe_text, recipes

    known = recipes()
    if name is None:
        _print_list(known)
    elif name in known:
        typer.echo(recipe_text(name), nl=False)
    else:
        raise ConfigError(
            f"NAME: expected the name of a recipe, got {quoted(name)}{nearest(name, known)}; `glassformer recipes` "
            "lists the names"
        )


def _print_list(known: dict[str, Path]) -> None:
    """Print the recipes in groups; the first line of each recipe's file is "# Group: its purpose"."""
    groups: dict[str, list[str]] = {}
    for name, path in known.items():
        first = path.read_text(encoding="utf-8").splitlines()[0]
        group, _, text = first.removeprefix("#").strip().partition(": ")
        groups.setdefault(group, []).append(f"{name:<{max(map(len, known))}}  {text}")
    for group in sorted(groups, key=RECIPE_GROUPS.index):
        typer.echo(f"{group}:")
        typer.echo("\n".join(groups[group]) + "\n")
    typer.echo("print one as TOML:            glassformer recipes NAME")
    typer.echo("train one:                    glassformer train NAME --data DIR")
    typer.echo("edit a copy:                  glassformer recipes NAME > mine.toml")
