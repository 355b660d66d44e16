"""Import a package of Argos Translate, which LibreTranslate also uses: a zip archive with a CTranslate2 model.

The archive may be malicious. Only the files that a model needs are unpacked, under names of our own choice; a
suspicious archive is refused before anything is unpacked.
"""

import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from glassformer.bundle import HABITS, SPELLINGS, SourceFacts
from glassformer.errors import CheckpointError, ConfigError, VocabularyError, quoted, remedy, shortened
from glassformer.interop.ctranslate2.reader import ForeignTexts, import_ctranslate2_run
from glassformer.interop.importing import Imported, check_target
from glassformer.system.files import check_regular, parse_json, read_bytes

__all__ = ["import_argos", "is_argos"]

_SUFFIX = ".argosmodel"
_METADATA, _MODEL, _TEXTS = "metadata.json", "model", "sentencepiece.model"
_VOCABULARIES = ("shared_vocabulary", "source_vocabulary", "target_vocabulary")
_NEEDED = (f"{_MODEL}/model.bin", _TEXTS)
_OPTIONAL = (
    HABITS,
    SPELLINGS,
    f"{_MODEL}/config.json",  # since CTranslate2 3.0
    *(f"{_MODEL}/{name}.{suffix}" for name in _VOCABULARIES for suffix in ("json", "txt")),
)
LARGEST_SMALL = 1 << 26
"""Maximum size of a file other than the weights, in bytes."""
LARGEST_RATIO = 50
"""Maximum ratio of the unpacked size to the archive's size. Compression makes weights smaller by a tenth, and
vocabularies smaller by three quarters."""
MOST_FILES = 100_000
_ENCRYPTED = 1
"""The bit of a file's flags that is set if the file is encrypted."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LANGUAGES = {"zt": "zh-Hant", "pb": "pt-BR"}
"""Argos' codes that are not BCP 47 tags."""
_DECODING: Mapping[str, Any] = {"beam_size": 4, "length_penalty": 0.2}
"""Argos's search settings. Its length penalty is length^α, which differs from our formula."""


def is_argos(path: Path) -> bool:
    """Return whether a path is an Argos package: a file `*.argosmodel`, or the folder of an installed package."""
    return path.suffix == _SUFFIX or ((path / _METADATA).exists() and (path / _MODEL).is_dir())


def import_argos(source: Path, folder: Path, *, languages: tuple[str, str] | None = None) -> Imported:
    """Write a run with the model of an Argos package.

    Args:
        source: the package: a file `*.argosmodel`, or the folder of an installed package.
        folder: the folder to write, which must be empty or absent.
        languages: the languages of source and target; by default, the languages that the package names.

    Raises:
        CheckpointError: the archive is damaged or suspicious, or the run cannot be written.
        ConfigError: the package is not a translation model with a sentencepiece model, or its model computes something
            that glassformer's Transformer cannot.
        VocabularyError: a vocabulary or the sentencepiece model does not fit the weights.
    """
    check_target(folder)
    if source.is_dir():
        return _imported(source, source.name, folder, languages)
    with TemporaryDirectory(prefix="glassformer-") as unpacked:
        _unpack(source, Path(unpacked))
        try:
            return _imported(Path(unpacked), source.name, folder, languages)
        except (CheckpointError, ConfigError, VocabularyError) as error:
            raise type(error)(str(error).replace(unpacked, str(source))) from error


def _imported(package: Path, origin: str, folder: Path, languages: tuple[str, str] | None) -> Imported:
    """Import an unpacked package; return the run."""
    metadata = _metadata(package)
    texts = ForeignTexts(
        sentencepiece=[package / _TEXTS], source_eos=False, prefix=str(metadata.get("target_prefix") or "")
    )
    imported = import_ctranslate2_run(
        package / _MODEL,
        folder,
        texts,
        origin=origin,
        languages=languages or _languages(metadata, package / _METADATA),
        decoding=_DECODING,
        source_facts=SourceFacts.load(package),
    )
    return imported._replace(title="an Argos package")


def _unpack(source: Path, folder: Path) -> None:
    """Unpack the files that a model needs into a folder."""
    check_regular(source)
    try:
        with zipfile.ZipFile(source) as archive:
            files = _files(archive, source)
            (folder / _MODEL).mkdir()
            for name, info in files.items():
                with archive.open(info) as content, (folder / name).open("wb") as file:
                    shutil.copyfileobj(content, file)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError, struct.error) as error:
        # RuntimeError: the file is encrypted, or zipfile does not know its compression method.
        raise CheckpointError(f"{source} is damaged: {shortened(str(error))}; download the package again") from error
    except OSError as error:
        advice = remedy(error, "correct the path")
        raise CheckpointError(f"cannot unpack {source}: {error.strerror or error}; {advice}") from error


def _files(archive: zipfile.ZipFile, source: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the files that a model needs, by their paths in the package's top folder; refuse a suspicious archive."""
    files: dict[str, zipfile.ZipInfo] = {}
    tops: set[str] = set()
    for info in archive.infolist()[: MOST_FILES + 1]:
        path = PurePosixPath(info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if path.is_absolute() or ".." in path.parts or "\\" in info.filename or not path.parts:
            raise _suspicious(source, f"the path {quoted(info.filename)} leads out of the package")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _suspicious(source, f"{quoted(info.filename)} is neither a file nor a folder")
        if (name := "/".join(path.parts[1:])) in files and not info.is_dir():
            raise _suspicious(source, f"{quoted(info.filename)} occurs twice")
        tops.add(path.parts[0])
        if name and not info.is_dir():
            files[name] = info
    if len(tops) != 1 or len(archive.infolist()) > MOST_FILES:
        raise _suspicious(source, f"expected one folder with at most {MOST_FILES:,} files, got {len(tops)} folders")
    needed = {name: files[name] for name in (_METADATA, *_NEEDED, *_OPTIONAL) if name in files}
    _check_sizes(needed, source)
    return needed


def _check_sizes(files: Mapping[str, zipfile.ZipInfo], source: Path) -> None:
    for name, info in files.items():
        if info.flag_bits & _ENCRYPTED:
            raise _suspicious(source, f"{name} is encrypted")
        if info.compress_type not in _METHODS:
            raise _suspicious(source, f"{name}: expected compression by deflate or none, got {info.compress_type}")
        if info.file_size > LARGEST_SMALL and not name.endswith("model.bin"):
            raise _suspicious(source, f"{name}: expected at most {LARGEST_SMALL:,} bytes, got {info.file_size:,}")
    size, most = sum(info.file_size for info in files.values()), LARGEST_RATIO * source.stat().st_size
    if size > most:
        raise _suspicious(source, f"its files have {size:,} bytes unpacked, more than {LARGEST_RATIO} times its size")


def _suspicious(source: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"{source} is not read: {reason}; download the package again from where it is published")


def _metadata(package: Path) -> dict[str, Any]:
    """Return the content of metadata.json; refuse a package without the parts of a translation model."""
    path = package / _METADATA
    try:
        metadata = parse_json(read_bytes(path))
    except CheckpointError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else shortened(str(error))
        raise CheckpointError(f"{path} cannot be read: {reason}; download the package again") from error
    if not isinstance(metadata, dict):
        raise CheckpointError(f"{path}: expected an object, got {quoted(metadata)}; download the package again")
    if (kind := metadata.get("type", "translate")) != "translate":
        raise ConfigError(f"{path}: type: expected translate, got {quoted(kind)}; give another package")
    for name in _NEEDED:
        if not (package / name).exists():
            raise ConfigError(
                f"{package}: expected {name}, got none; only a package with a model of CTranslate2 and a sentencepiece "
                "model can be imported"
            )
    return metadata


def _languages(metadata: Mapping[str, Any], path: Path) -> tuple[str, str]:
    codes = [metadata.get(name, "") for name in ("from_code", "to_code")]
    for code in codes:
        if not isinstance(code, str):
            raise CheckpointError(f"{path}: expected a language's code, got {quoted(code)}; correct it")
    first, second = (_LANGUAGES.get(code, code) for code in codes)
    return first, second
