"""The explorer as a live notebook cell; Python answers its questions. Needs anywidget (the extra `notebook`)."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anywidget

from glassformer.errors import GlassformerError
from glassformer.translator import Translator
from glassformer.watch.explorer.module import explorer_module
from glassformer.watch.explorer.packing import number_bytes
from glassformer.watch.explorer.remote import Remote
from glassformer.watch.explorer.widget import StaticExplorer

if TYPE_CHECKING:
    from glassformer.watch.explorer.figure import AttentionFamily
    from glassformer.watch.pictures import Picture

__all__ = ["LiveExplorer"]

NUMBERS = ("weights", "trace")
"""The parts of a payload whose "data" is sent as bytes."""


class LiveExplorer(anywidget.AnyWidget):
    """The explorer in a notebook cell, which sends its questions to the notebook's kernel.

    The cell's output also contains the static page, for readers without a kernel. Numbers are sent as message buffers
    when a view asks for them. If the numbers were synchronised traits of the widget, the notebook would store them
    twice.
    """

    _esm = explorer_module()

    def __init__(self, translator: Translator, shown: Mapping[str, Any], static: StaticExplorer) -> None:
        super().__init__()
        self._shown, self._static, self._remote = shown, static, Remote(translator)
        self.on_msg(self._hear)

    def __repr__(self) -> str:
        return repr(self._static)

    def figure(self, family: "AttentionFamily", layer: int = -1, head: int = 0) -> "Picture":
        """Return an SVG picture of one head's weights for the first sentence, as `StaticExplorer.figure` does."""
        return self._static.figure(family, layer, head)

    def answer(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer to a view's question, and its buffers; the answer repeats the "id" of the question."""
        try:
            header, buffers = self._payload() if message.get("kind") == "payload" else self._asked(message)
        except GlassformerError as error:
            header, buffers = {"error": str(error)}, []
        return {**header, "id": message.get("id")}, buffers

    def _payload(self) -> tuple[dict[str, Any], list[bytes]]:
        """Return the payload, and its numbers as buffers; {"buffer": n} in the payload refers to the n-th buffer."""
        shown, buffers = dict(self._shown), list[bytes]()
        for name in NUMBERS:
            if shown[name] is not None:
                shown[name] = {**shown[name], "data": {"buffer": len(buffers)}}
                buffers.append(base64.b64decode(self._shown[name]["data"]))
        return {"payload": shown}, buffers

    def _asked(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        header, arrays = self._remote.answer(message)
        return header, [b"".join(map(number_bytes, arrays))]

    def _hear(self, _widget: object, message: Mapping[str, Any], _buffers: object) -> None:
        self.send(*self.answer(message))

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "text/html": self._static._repr_html_()}, metadata
