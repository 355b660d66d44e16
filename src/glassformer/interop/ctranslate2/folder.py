"""Read a folder of CTranslate2: `model.bin`, the vocabularies and, since version 3.0, `config.json`.

All of these files may be damaged or malicious.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, VocabularyError, quoted
from glassformer.interop.ctranslate2.binary import BINARY_VERSION, CTranslate2Binary, Variables, read_binary
from glassformer.interop.ctranslate2.earlier import told_by_attributes, with_todays_names
from glassformer.system.files import read_any_json, read_bytes

__all__ = ["CTranslate2Folder", "read_ctranslate2"]

_CONFIG = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CTranslate2Folder:
    """A model as CTranslate2 stores it."""

    variables: Variables
    """The variables by today's names, aliases included."""
    config: Mapping[str, Any]
    """The content of `config.json`; before version 3.0, the same fields from attributes in `model.bin`."""
    source: tuple[str, ...]
    """The source tokens, in the order of CTranslate2's ids."""
    target: tuple[str, ...]
    """The target tokens, in the order of CTranslate2's ids."""


def read_ctranslate2(folder: Path) -> CTranslate2Folder:
    """Return the model in a folder of CTranslate2.

    The weights are only mapped, so the folder must exist as long as the model is used.

    Raises:
        CheckpointError: a file is missing or damaged, or has an unknown version of the format.
        ConfigError: the model is not a Transformer with an encoder and a decoder.
        VocabularyError: a vocabulary is not a list of tokens.
    """
    binary = read_binary(folder / "model.bin")
    config = _config(folder / _CONFIG, binary)
    variables = with_todays_names(binary)
    unknown = config.get("unk_token")
    shared = _tokens(folder, "shared")
    # "source_1": folders of models with source features have several vocabularies.
    source = shared or _tokens(folder, "source") or _tokens(folder, "source_1")
    target = shared or _tokens(folder, "target")
    for side, tokens in (("source", source), ("target", target)):
        if not tokens:
            raise CheckpointError(
                f"{folder} has neither shared_vocabulary nor {side}_vocabulary, as .json or .txt; copy the whole folder"
            )
    return CTranslate2Folder(
        variables=variables,
        config=config,
        source=_fitted(source, unknown, variables, ("encoder/embeddings", "encoder/embeddings_0")),
        target=_fitted(target, unknown, variables, ("decoder/embeddings",)),
    )


def _config(path: Path, binary: CTranslate2Binary) -> dict[str, Any]:
    """Return the fields of `config.json`; attributes in `model.bin` override them, as in CTranslate2."""
    told: dict[str, Any] = {}
    if binary.version < BINARY_VERSION:
        told = told_by_attributes(binary.variables)
        if not path.exists():
            return told
    config = read_any_json(path)
    if not isinstance(config, dict):
        raise CheckpointError(f"{path}: expected an object, got {quoted(config)}; copy it again")
    # null stands for a value that the folder does not contain; the user must add it to config.json.
    return told | config | {name: value for name, value in told.items() if value is not None}


def _fitted(
    tokens: tuple[str, ...], unknown: object, variables: Variables, embeddings: Sequence[str]
) -> tuple[str, ...]:
    """Return a vocabulary with the tokens that it has in CTranslate2, one for each row of the embedding.

    - Like CTranslate2, append the unknown token if the vocabulary does not have it. (Vocabularies of OpenNMT-tf were
      copied unchanged.)
    - Drop empty lines after the last row of the embedding. CTranslate2 never outputs a token from there.
    - Give a name to each empty token except the first one, because a token may occur only once here.
    """
    names = (f"{name}/weight" for name in embeddings)
    rows = next((variables[name].shape[0] for name in names if name in variables and variables[name].shape), 0)
    while len(tokens) > rows > 0 and not tokens[-1].strip():
        tokens = tokens[:-1]
    if isinstance(unknown, str) and unknown not in tokens and rows == len(tokens) + 1:
        tokens = (*tokens, unknown)
    first = tokens.index("") if "" in tokens else 0
    return tuple(token if token or id == first else f"<empty-{id}>" for id, token in enumerate(tokens))


def _tokens(folder: Path, name: str) -> tuple[str, ...]:
    """Return the tokens of the vocabulary with this name, or () if the folder has no such vocabulary."""
    path = folder / f"{name}_vocabulary.json"
    if path.exists():
        tokens = read_any_json(path)
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise VocabularyError(f"{path}: expected a list of tokens; copy the file again")
    else:
        path = path.with_suffix(".txt")
        if not path.exists():
            return ()
        tokens = _lines(path)
    try:
        "".join(tokens).encode()
    except UnicodeEncodeError as error:
        raise VocabularyError(f"{path}: a token holds half a surrogate pair; convert the model again") from error
    return tuple(tokens)


def _lines(path: Path) -> list[str]:
    try:
        lines = read_bytes(path).decode().removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise VocabularyError(f"{path} cannot be read: {error}; copy the file again") from error
    # A token may end with a carriage return. As in CTranslate2, carriage returns belong to the line ends only if all #
    # lines end with one.
    return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines
