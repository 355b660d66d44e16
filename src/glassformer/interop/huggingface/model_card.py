"""The model card of an exported model: a README.md with the front matter that Hugging Face's hub reads."""

from collections.abc import Sequence
from pathlib import PurePath

from glassformer.bundle import Bundle
from glassformer.corpus.files import files_of
from glassformer.interop.exporting import ExportOptions, languages_of

__all__ = ["model_card"]


def model_card(bundle: Bundle, options: ExportOptions, loading: str, notes: Sequence[str]) -> str:
    """Return the text of a model card: languages, licence, model, data, scores, how to load the model, and notes.

    Raises:
        ConfigError: the run does not name its languages.
    """
    source, target = languages_of(bundle)
    codes = dict.fromkeys(language.partition("-")[0] for language in (source, target))
    front = [
        "---",
        "language:",
        *(f"- {code}" for code in codes),
        *([f"license: {options.licence}"] if options.licence else []),
        "pipeline_tag: translation",
        "---",
    ]
    parts = [
        f"# {bundle.folder.name}: {source} → {target}",
        _model(bundle),
        f"Licence: {options.licence or 'not stated'}.",
        "## Data",
        _data(bundle),
        "## Scores",
        _scores(options),
        "## Use",
        loading,
        "\n".join(f"- {note}" for note in notes),
    ]
    return "\n".join(front) + "\n\n" + "\n\n".join(parts) + "\n"


def _model(bundle: Bundle) -> str:
    config = bundle.model_config
    return (
        f"A Transformer ({config.encoder_layers} + {config.decoder_layers} layers, width {config.d_model}, "
        f"{config.heads} heads, {config.norm}-norm), trained and exported with glassformer."
    )


def _data(bundle: Bundle) -> str:
    data = bundle.configuration.data
    if bundle.origin:
        return f"The model was imported from {bundle.origin}; see there for its training data."
    if data.task:
        return f"The built-in corpus {data.task}."
    names = [PurePath(file).name for files in (data.source, data.target) for file in files_of(files) if file]
    return f"Trained on {', '.join(names)}."


def _scores(options: ExportOptions) -> str:
    rows = [f"| {row['name']} | {row['value']:.2f} | `{row['signature']}` |" for row in options.scores]
    table = ["| metric | value | signature |\n|---|---|---|\n" + "\n".join(rows)] if rows else []
    validation = [f"In training, on the validation texts: {options.validation}."] if options.validation else []
    return "\n\n".join([*table, *validation]) or "None were measured."
