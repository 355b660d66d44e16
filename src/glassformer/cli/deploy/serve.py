"""`glassformer serve`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from glassformer.built_in import run_folder
from glassformer.cli.option_groups import Computing
from glassformer.errors import ConfigError, MissingDependencyError, install_command
from glassformer.system.machine import LOOPBACK

if TYPE_CHECKING:
    from glassformer.serving.limits import Limits
    from glassformer.serving.log import ServiceLog
    from glassformer.serving.models import ServedModel
    from glassformer.serving.service import Service

__all__ = ["serve_command"]

AccessLog = Literal["requests", "texts", "nothing"]
PORT = 5000
"""LibreTranslate's port, which LibreTranslate's clients use by default."""


def serve_command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN…",
            parser=run_folder,
            help="Run directories, exported folders, files of `tune`, or demo, the model in the package.",
        ),
    ] = None,
    *,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Listen on this address.")] = LOOPBACK,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="Listen on this port; 0 = any free port.")
    ] = PORT,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            "--languages",
            metavar="SOURCE:TARGET",
            help="Languages of a run whose configuration does not name them, such as en:fr. Repeat for each run, in "
            "order.",
        ),
    ] = None,
    computing: Computing,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SECTION.NAME=VALUE",
            help="Change a limit, such as serving.rate=100/minute, or a decoding setting of all runs. Repeatable.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            help="Answer only requests with a key from FILE, which is read again when it changes.",
        ),
    ] = None,
    new_key: Annotated[
        str | None,
        typer.Option("--new-key", metavar="NAME", help="Add a new key to the file of --keys, print the key, and exit."),
    ] = None,
    behind_proxy: Annotated[
        int,
        typer.Option(
            "--behind-proxy",
            min=0,
            metavar="N",
            help="Trust N reverse proxies: read a client's address from the N-th entry of X-Forwarded-For, "
            "counted from the end.  [default: 0, the address of the connection]",
            show_default=False,
        ),
    ] = 0,
    log: Annotated[
        AccessLog,
        typer.Option("--log", help="Log each request to stderr as a line of JSON; texts = including its texts."),
    ] = "requests",
) -> None:
    """Serve models over HTTP: LibreTranslate's API, DeepL's, and our own.

    The service runs until Ctrl-C or SIGTERM, and then completes the requests in progress. By default, only this machine
    can reach the service; see --host. Limits are settings, such as --set serving.characters=5000.
    """
    if new_key is not None:
        _add_key(keys, new_key)
        return
    if not runs:
        raise ConfigError("RUN: expected the folder of a run, such as runs/demo, got nothing")
    try:
        from glassformer.serving.app import Application
        from glassformer.serving.limits import SECTION, Keys, Limits
        from glassformer.serving.log import ServiceLog
        from glassformer.serving.server import listen
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"serving needs {error.name}: {install_command('serve')}") from error
    from glassformer.recipes.toml import changed_settings, decoding_changes, section_changes

    of_serving = [one for one in overrides or () if one.startswith(f"{SECTION}.")]
    of_decoding = [one for one in overrides or () if one not in of_serving]
    limits = changed_settings(SECTION, Limits(), section_changes(SECTION, of_serving, f"{SECTION}.texts=100"))
    settings = decoding_changes(of_decoding)
    written = ServiceLog(None if log == "nothing" else sys.stderr, has_texts=log == "texts")
    service = _service(runs, languages or [], {**computing._asdict(), "settings": settings}, limits, written)
    service.keys, service.proxies = (Keys(keys) if keys else None), behind_proxy
    listen(Application(service), host, port, limits, on_start=_say(service))


def _add_key(keys: Path | None, name: str) -> None:
    from glassformer.serving.limits import add_key

    if keys is None:
        raise ConfigError("--new-key needs --keys FILE; give the file to which to add the key")
    typer.echo(add_key(keys, name))


def _service(
    runs: list[Path], languages: list[str], how: dict[str, Any], limits: "Limits", log: "ServiceLog"
) -> "Service":
    from glassformer.serving.limits import Rates
    from glassformer.serving.metrics import Counters
    from glassformer.serving.models import Models
    from glassformer.serving.service import Service

    if languages and len(languages) != len(runs):
        raise ConfigError(f"--languages: expected one pair for each of {len(runs)} runs, got {len(languages)}")
    metrics = Counters()
    pairs = languages or [""] * len(runs)
    models = [_model(run, pair, how, limits, metrics, log) for run, pair in zip(runs, pairs, strict=True)]
    return Service(models=Models(models), limits=limits, rates=Rates(limits.rate), metrics=metrics, log=log)


def _model(
    run: Path, pair: str, how: dict[str, Any], limits: "Limits", metrics: Any, log: "ServiceLog"
) -> "ServedModel":
    from glassformer.bundle import Bundle
    from glassformer.recipes.toml import changed_settings
    from glassformer.serving.models import ServedModel, code_of
    from glassformer.serving.process import LoadedTranslator, ModelProcess
    from glassformer.translating.combination import Combination

    combination = Combination.named(run)
    bundle = Bundle.load(combination.run)
    data = bundle.configuration.data
    source, _, target = pair.partition(":") if pair else (data.source_language, "", data.target_language)
    if not source or not target:
        raise ConfigError(f"{run} does not name its languages; give them, for example by --languages en:fr")
    source, target = code_of(source), code_of(target)
    decoding = changed_settings("decoding", bundle.configuration.decoding, combination.settings | how["settings"])
    settings = {"max_source": min(decoding.max_source, limits.sentence), **how["settings"]}
    load = LoadedTranslator(run, {**how, "settings": settings})
    process = ModelProcess(f"{source}-{target}", load, limits, metrics, log)
    return ServedModel(source=source, target=target, process=process, beam_size=decoding.beam_size)


def _say(service: "Service") -> Any:
    def say(url: str) -> None:
        directions = ", ".join(one.name for one in service.models.all)
        typer.echo(f"serving {directions}: {url}  (Ctrl-C ends it)", err=True)

    return say
