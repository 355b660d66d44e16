"""`glassformer recipes`."""

import typer

__all__ = ["recipes"]


def recipes() -> None:
    """List the built-in recipes, with what each is for."""
    from glassformer.recipes.toml import recipes as built_in

    for name, path in built_in().items():
        first = path.read_text(encoding="utf-8").splitlines()[0]
        typer.echo(f"{name:<16} {first.removeprefix('#').strip()}")
