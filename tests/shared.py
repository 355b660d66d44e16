"""Folders made once for all workers of pytest-xdist, and kept until their sources change."""

import hashlib
import inspect
import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from filelock import FileLock

import glassformer as gf

__all__ = ["made_once"]

DAY = 24 * 60 * 60


def made_once(place: Path, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder that `make` fills; tests must not change it.

    The folder is kept in `place` as long as the package, the version of torch, and the modules next to and below the
    module of `make` do not change.
    """
    made = place / name
    made.mkdir(parents=True, exist_ok=True)
    kept = digest(Path(inspect.getfile(getattr(make, "func", make))))
    whole = made / f"{kept}.whole"
    with FileLock(place / f"{name}.lock"):
        if not whole.exists():
            for old in made.iterdir():  # another session may be using newer folders
                if old.stem == kept or time.time() - old.stat().st_mtime > DAY:
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
            make(made / kept)
            whole.touch()
    return made / kept


@cache
def digest(file: Path) -> str:
    """Return a hash of the package's files, the version of torch, and the programs next to and below `file`."""
    found = hashlib.blake2b(torch.__version__.encode(), digest_size=8)
    package = (path for path in Path(gf.__file__).parent.rglob("*") if path.suffix in {".py", ".toml"})
    for path in (*sorted(package), *sorted(file.parent.rglob("*.py"))):
        found.update(path.read_bytes())
    return found.hexdigest()
