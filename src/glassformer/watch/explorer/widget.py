"""The explorer in a notebook: a live cell if anywidget is installed, otherwise a page in the output."""

import sys
import warnings
from collections.abc import Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.built_in import BUILT_IN
from glassformer.errors import DataError, MissingDependencyError, install_command
from glassformer.translator import Translator
from glassformer.watch.explorer.payload import MOST_CHECKPOINTS, payload, recorded_payload
from glassformer.watch.explorer.standalone import page_html, translation

if TYPE_CHECKING:
    from glassformer.watch.explorer.figure import AttentionFamily
    from glassformer.watch.explorer.notebook import LiveExplorer
    from glassformer.watch.pictures import Picture

__all__ = ["StaticExplorer", "explore", "somebody_watches"]

IFRAME = """<iframe srcdoc="{page}" title="{title}" sandbox="allow-scripts allow-downloads allow-popups" \
allow="clipboard-write" style="width: 100%; height: 45rem; border: 1px solid #8888; resize: vertical"></iframe>"""


class StaticExplorer:
    """The explorer as a page in a notebook's output, which needs neither a kernel nor a network.

    For a small model, the page itself computes. For a larger model, the page shows a recording; if the recording is too
    large, the output is an explanation of the problem.
    """

    def __init__(self, translator: Translator, shown: Mapping[str, Any], translation: str, problem: str = "") -> None:
        self._translator = translator
        self._shown, self._translation, self._problem = shown, translation, problem

    def figure(self, family: "AttentionFamily", layer: int = -1, head: int = 0) -> "Picture":
        """Return an SVG picture of one head's weights for the first sentence; `save` writes it to a file.

        Args:
            family: "encoder" for the encoder's self-attention, "decoder" for the decoder's, "cross" for
                cross-attention.
            layer: The layer, from 0; by default, the last layer.
            head: The head, from 0.

        Raises:
            ConfigError: the family, the layer or the head does not exist.

        >>> gf.explore("runs/demo", "A cat sleeps.").figure("cross", 1, 3).save("cross.svg")    # doctest: +SKIP
        """
        # imported here because pictures need matplotlib and pages do not
        from glassformer.watch.explorer.figure import head_figure

        return head_figure(self._translator, self._shown, self._translation, family, layer, head)

    def __repr__(self) -> str:
        return f"explorer of {self._shown['name']}: {self._shown['sentence']} → {self._translation}"

    def _repr_html_(self) -> str:
        if self._problem:
            return f"<p>{escape(self._problem)}</p>"
        page = page_html(self._shown, self._translation)
        return IFRAME.format(page=escape(page), title=escape(f"glassformer: {self._shown['sentence']}"))


def explore(
    translator: Translator | str | Path = BUILT_IN, text: str = "", *, live: bool | None = None, story: bool = False
) -> "StaticExplorer | LiveExplorer":
    """Return the explorer of a translator, or of a run, for display in a notebook cell.

    Args:
        translator: The translator, or the folder of a run; by default, the model in the package.
        text: The first sentence; by default, an example of the run's task or frequent words.
        live: Whether Python answers the cell's questions, which large models and snapshots of the training need. The
            default is True if anywidget is installed and a user runs the notebook; a notebook that a program executes
            (nbconvert, Quarto, Jupyter Book) gets a static page.
        story: Whether the cell begins with the first chapter, in which the reader moves a head's attention to another
            word.

    Raises:
        MissingDependencyError: `live` is True, and anywidget is not installed.
        DataError: the text cannot be translated.
        CheckpointError: the folder is not a run.

    >>> import glassformer as gf
    >>> gf.explore("demo", "The animal slept in the park.")                          # doctest: +SKIP
    explorer of demo: The animal slept in the park. → L'animal dormait dans le parc.
    """
    if not isinstance(translator, Translator):
        translator = Translator.load(translator)
    installed = find_spec("anywidget") is not None
    if live and not installed:
        raise MissingDependencyError(
            f"live=True needs anywidget, which is not installed; {install_command('notebook')}"
        )
    shown = payload(translator, text, checkpoints=MOST_CHECKPOINTS, host="cell", story="always" if story else "never")
    shown["host"] = None
    static = _static(translator, shown)
    if live or (live is None and installed and somebody_watches()):
        from glassformer.watch.explorer.notebook import LiveExplorer

        return LiveExplorer(translator, shown, static)
    if live is None and not installed and shown["weights"] is None:
        warnings.warn(
            f"{shown['name']} is too large for a page: without anywidget, the explorer shows a recording, which cannot "
            f"be changed; {install_command('notebook')}",
            stacklevel=2,
        )
    return static


def _static(translator: Translator, shown: Mapping[str, Any]) -> StaticExplorer:
    """Return the page for readers without a kernel; for a large model, the page shows a recording, if one fits."""
    words = translation(translator, shown)
    if shown["weights"] is not None:
        return StaticExplorer(translator, {**shown, "checkpoints": []}, words)
    try:
        return StaticExplorer(translator, recorded_payload(translator, shown["sentence"]), words)
    except DataError as error:
        return StaticExplorer(translator, shown, words, problem=str(error))


def somebody_watches() -> bool:
    """Return whether a user runs the notebook; a program that runs it could not answer an `input()`."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return True
    request = kernel.get_parent("shell").get("content", {})
    return bool(request.get("allow_stdin", True))
