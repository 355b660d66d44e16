"""Translate a document into a file."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from glassformer.errors import ConfigError, DataError, counted

if TYPE_CHECKING:
    from glassformer.translating.documents.document import Document
    from glassformer.translating.documents.sentences import DocumentReport
    from glassformer.translating.translation import Translation
    from glassformer.translator import Translator

__all__ = ["document_of", "translate_document"]

LISTED_LINES = 10
"""Maximum number of lines that the summary lists for each status."""


def document_of(
    file: Path | None, output: Path | None, overrides: Sequence[str], unfit: dict[str, bool]
) -> "tuple[Document | None, list[str]]":
    """Return the document to translate, or None if the input is lines of text; and the decoding overrides.

    Overrides of the form "documents.NAME=VALUE" say how the document is read. A .txt file is a document only if
    `output` is given. `unfit` has the options that documents do not support, and whether they were given.

    Raises:
        ConfigError: the output is missing or is the input, or an option cannot be used with a document.
        DataError: the file does not have the suffix of a document, is missing, or is damaged.
    """
    from glassformer.translating.documents.document import DOCUMENT_SECTION, is_document

    of_documents = [one for one in overrides if one.startswith(f"{DOCUMENT_SECTION}.")]
    of_decoding = [one for one in overrides if one not in of_documents]
    is_marked = file is not None and is_document(file.name) and file.suffix.lower() != ".txt"
    if output is not None or is_marked:
        return _document(file, output, of_documents, unfit), of_decoding
    if of_documents:
        raise ConfigError(
            f"--set {DOCUMENT_SECTION}.NAME=VALUE is for documents; name the output by --output, or leave out --set"
        )
    return None, of_decoding


def _document(file: Path | None, output: Path | None, overrides: Sequence[str], unfit: dict[str, bool]) -> "Document":
    from glassformer.corpus.files import raw_lines
    from glassformer.recipes.toml import changed_settings, section_changes
    from glassformer.translating.documents.document import (
        DOCUMENT_SECTION,
        SUFFIXES,
        Document,
        DocumentOptions,
        is_document,
    )

    changes = section_changes(DOCUMENT_SECTION, overrides, f"{DOCUMENT_SECTION}.lines=true")
    options = changed_settings(DOCUMENT_SECTION, DocumentOptions(), changes)
    if file is None or not is_document(file.name):
        raise DataError(f"FILE: expected a document ({', '.join(SUFFIXES)}) for --output, got {file or 'stdin'}")
    if output is None:
        raise ConfigError(f"{file} is a document; name the file for its translation by --output")
    if output.exists() and file.exists() and output.samefile(file):
        raise ConfigError(f"--output: expected a different file than the input, got {output}; choose another name")
    given = [name for name, is_given in unfit.items() if is_given]
    if given:
        raise ConfigError(f"{given[0]} is for lines, and {file} is a document; leave out {given[0]}")
    options.check_for(file.name)
    return Document.read(str(file), b"".join(raw_lines(file)), options)


def translate_document(translator: "Translator", document: "Document", output: Path, options: dict[str, Any]) -> None:
    """Write the translation of a document to `output`, and print a summary of its units on stderr.

    Raises:
        CheckpointError: the output cannot be written.
        DataError: a translation has a character that the document's encoding does not have.
    """
    from glassformer.system.files import write_safely
    from glassformer.translating.documents.sentences import DocumentSentences

    language = translator.bundle.configuration.data.source_language or "en"
    sentences = DocumentSentences(document, language)
    wanted = sentences.wanted
    found = translator.stream(wanted, links=sentences.has_tags, **options)
    data, report = sentences.rebuilt(list(_shown(found, len(wanted))))
    write_safely(output, lambda path: path.write_bytes(data))
    typer.echo(_summary(report), err=True)


def _shown(found: "Iterable[Translation]", total: int) -> "Iterator[Translation]":
    """Yield the translations, and show a progress bar if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = not console.is_terminal
    yield from track(found, "translating", total=total, console=console, transient=True, disable=hidden)


def _summary(report: "DocumentReport") -> str:
    """Return a one-line summary: the number of units, and for each status, how many units to check and their lines."""
    summary = counted(report.units, "unit")
    for status in dict.fromkeys(doubt.status for doubt in report.doubts):
        lines = [str(doubt.line) for doubt in report.doubts if doubt.status == status]
        more = ", …" if len(lines) > LISTED_LINES else ""
        word = "line" if len(lines) == 1 else "lines"
        summary += f"; {len(lines)} {status.replace('_', ' ')}: {word} {', '.join(lines[:LISTED_LINES])}{more}"
    return summary
