"""`glassformer import`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from glassformer.cli.option_groups import Computing
from glassformer.errors import ConfigError, quoted

if TYPE_CHECKING:
    from glassformer.evaluation.items import Items
    from glassformer.interop.importing import Imported

__all__ = ["import_command"]

T = TypeVar("T")

_SHARED = {
    (False, False): "",
    (True, False): ", one matrix for source and target",
    (False, True): ", one matrix for target and output",
    (True, True): ", one matrix for source, target and output",
}
"""A description of the model's shared matrices, by `tie_embeddings` and `tie_output`."""


def import_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="Folder of Hugging Face's transformers or CTranslate2, .argosmodel file, or state dict to import.",
        ),
    ],
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder to write.")],
    heads: Annotated[
        int | None,
        typer.Option(
            "--heads", metavar="N", help="Number of attention heads, which a state dict does not show.", min=1
        ),
    ] = None,
    source_vocabulary: Annotated[
        Path | None,
        typer.Option(
            "--source-vocabulary",
            metavar="FILE",
            help="Source tokens in the order of their ids, one per line or as JSON.",
        ),
    ] = None,
    target_vocabulary: Annotated[
        Path | None,
        typer.Option("--target-vocabulary", metavar="FILE", help="Target tokens, in the form of --source-vocabulary."),
    ] = None,
    special_ids: Annotated[
        str | None,
        typer.Option(
            "--special-ids",
            metavar="PAD,BOS,EOS,UNK",
            help="Ids of the special tokens.  [default: found by their usual names]",
        ),
    ] = None,
    tokens: Annotated[
        Literal["words", "characters"] | None,
        typer.Option(
            "--tokens",
            help="Cut texts into words or characters.  [default: characters if each token is a single character]",
        ),
    ] = None,
    source_bos: Annotated[
        bool,
        typer.Option(
            "--source-bos", help="Begin each source with <bos>, because the model was trained with such sources."
        ),
    ] = False,
    source_eos: Annotated[
        bool | None,
        typer.Option(
            "--source-eos/--no-source-eos",
            help="Say whether sources end with </s>, if a CTranslate2 folder does not show it.",
            show_default=False,
        ),
    ] = None,
    sentencepiece: Annotated[
        list[Path] | None,
        typer.Option(
            "--sentencepiece",
            metavar="FILE",
            help="Sentencepiece model for a CTranslate2 folder. Give two if source and target have separate models.",
        ),
    ] = None,
    languages: Annotated[
        str, typer.Option("--languages", metavar="SOURCE,TARGET", help="Languages, as BCP 47 tags such as en,de.")
    ] = "",
    rename: Annotated[
        list[str] | None,
        typer.Option("--rename", metavar="OLD=NEW", help="Replace OLD by NEW in the names of weights. Repeatable."),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="TEXT",
            help="Import the model whose weight names begin with TEXT, if a file holds several models.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="model.NAME=VALUE",
            help="Set a field that the weights do not show, such as model.norm=pre. Repeatable.",
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", metavar="FILE", help="Calibrate the guards on the pairs in this .tsv or .jsonl file."),
    ] = None,
) -> None:
    """Turn a model trained elsewhere into a run.

    Models of these kinds can be imported: Marian (such as OPUS-MT) and Pegasus of Hugging Face's transformers;
    CTranslate2, from folders and from packages of Argos Translate and LibreTranslate; and the state dicts of three
    tutorials: PyTorch's on translation (nn.Transformer), Ben Trevett's on sequence-to-sequence models, and the
    Annotated Transformer. Only a state dict needs the options for heads and special tokens.
    """
    from glassformer.evaluation.items import read_items
    from glassformer.interop.argos.reader import import_argos, is_argos
    from glassformer.interop.ctranslate2.reader import ForeignTexts, import_ctranslate2_run, is_ctranslate2
    from glassformer.interop.huggingface.reader import import_hugging_face, is_hugging_face
    from glassformer.interop.importing import ForeignTokens, import_run, read_vocabulary
    from glassformer.interop.torch.weight_files import check_weights_file
    from glassformer.jobs.evaluation import corpus_of
    from glassformer.recipes.toml import section_changes

    settings = section_changes("model", overrides or (), "model.norm=pre")
    tags = _pair("--languages", languages, ",") if languages else None
    told = {
        "--heads": heads,
        "--source-vocabulary": source_vocabulary,
        "--target-vocabulary": target_vocabulary,
        "--special-ids": special_ids,
        "--source-bos": source_bos or None,
        "--rename": rename,
        "--prefix": prefix,
    }
    of_ctranslate2 = {"--sentencepiece": sentencepiece, "--source-eos": source_eos}
    items = read_items(corpus_of(pairs, None)) if pairs else None  # read before the import, which may take long
    if is_argos(source):
        _leave_out(told | of_ctranslate2 | {"--set": overrides})
        imported = import_argos(source, run, languages=tags)
    elif is_ctranslate2(source):
        _leave_out(told | {"--set": overrides})
        texts = ForeignTexts(sentencepiece=sentencepiece or (), kind=tokens, source_eos=source_eos)
        imported = import_ctranslate2_run(source, run, texts, languages=tags)
    elif is_hugging_face(source):
        _leave_out(told | of_ctranslate2)
        imported = import_hugging_face(source, run, languages=tags, settings=settings)
    else:
        check_weights_file(source)
        _leave_out(of_ctranslate2)
        heads = _given("--heads", heads)
        foreign = ForeignTokens(
            source=read_vocabulary(_given("--source-vocabulary", source_vocabulary)),
            target=read_vocabulary(_given("--target-vocabulary", target_vocabulary)),
            special_ids=_special_ids(special_ids),
            kind=tokens,
            source_bos=source_bos,
        )
        imported = import_run(
            source,
            run,
            foreign,
            heads=heads,
            renames=dict(_pair("--rename", text, "=") for text in rename or ()),
            prefix=prefix,
            languages=tags or ("", ""),
            settings=settings,
        )
    _report(imported, run)
    if items:
        _calibrate(run, items)


def _calibrate(run: Path, items: "Items") -> None:
    from glassformer.cli.measure.calibrate import calibrate_run

    calibrate_run(Computing().load(run), items)


def _leave_out(options: dict[str, Any]) -> None:
    for option, value in options.items():
        if value is not None:
            raise ConfigError(f"{option}: expected no value, because the model decides it, got {quoted(str(value))}")


def _report(imported: "Imported", run: Path) -> None:
    config = imported.bundle.model_config
    typer.echo(
        f"imported {imported.title}: {config.encoder_layers} + {config.decoder_layers} layers, width {config.d_model}, "
        f"{config.norm}-norm, {config.positions} positions and {config.activation}"
        f"{_SHARED[config.tie_embeddings, config.tie_output]}:  glassformer check {shlex.quote(str(run))}"
    )
    if imported.difference:
        typer.echo(
            "the original layer norm treats small variances differently: on random tokens, logits differ by at most "
            f"{imported.difference:.1g}",
            err=True,
        )


def _given(option: str, value: T | None) -> T:
    if value is None:
        raise ConfigError(f"{option}: expected a value, got nothing; give it, because the weights do not show it")
    return value


def _special_ids(text: str | None) -> Any:
    from glassformer.interop.importing import SpecialIds

    if text is None:
        return None
    numbers = text.split(",")
    if len(numbers) != len(SpecialIds._fields) or not all(number.strip().isdecimal() for number in numbers):
        raise ConfigError(f"--special-ids: expected four ids such as 1,2,3,0, got {quoted(text)}")
    return SpecialIds(*map(int, numbers))


def _pair(option: str, text: str, separator: str) -> tuple[str, str]:
    first, found, second = text.partition(separator)
    if not (first and found):
        raise ConfigError(f"{option}: expected two texts with {separator!r} between them, got {quoted(text)}")
    return first, second
