"""The trained demo in another program."""

from collections.abc import Callable
from pathlib import Path

import pytest

from end_to_end.test_demo import train_demo
from glassformer.bundle import Bundle
from glassformer.interop.export import ExportOptions
from glassformer.interop.onnx.export import export_onnx
from glassformer.translator import Translator

pytestmark = [pytest.mark.client, pytest.mark.long]

TEXT = "The animal didn't cross the street because it was too {}."


def test_the_pronoun_survives_in_onnxruntime(
    client: Callable[[str], Path], made_once: Callable[..., Path], tmp_path: Path
):
    """The demo has words and two vocabularies, so its folder has two tokenizers."""
    folder = made_once("demo", train_demo) / "demo"
    texts = [TEXT.format(word) for word in ("tired", "wide")]
    ours = [one.text for one in Translator.load(folder).translate(texts, beam_size=1)]
    assert ["qu'il était" in ours[0], "qu'elle était trop large" in ours[1]] == [True, True]
    options = ExportOptions(probes=texts, python=str(client("onnx") / "bin/python"))
    found = export_onnx(Bundle.load(folder), tmp_path / "out", options)
    assert (found.equal, found.outputs, found.cut_differently) == (2, 2, 0)
    assert found.largest < 1e-4
