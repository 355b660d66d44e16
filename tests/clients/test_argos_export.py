"""Exported packages translate in Argos like the runs in glassformer."""

from dataclasses import replace

import pytest

import glassformer as gf
from glassformer.interop.argos.writer import export_argos
from glassformer.interop.exporting import ExportOptions
from glassformer.translating.translation import Translation
from interop.small_runs import some, write_run

pytestmark = pytest.mark.client


@pytest.fixture
def argos(client):
    """Return options that verify an export in the environment of Argos."""
    return ExportOptions(quantization="float32", python=str(client("argos") / "bin/python"), probes=some(40))


def trained(folder, kind="unigram", **settings):
    """Return a run that has learned to translate word by word, with languages."""
    bundle = write_run(folder, kind=kind, joint=True, **settings)
    data = replace(bundle.configuration.data, source_language="en", target_language="fr")
    return replace(bundle, configuration=replace(bundle.configuration, data=data))


@pytest.mark.parametrize("settings", [{"kind": "bpe"}, {"norm": "pre", "output_bias": True}], ids=str)
def test_an_export_is_verified_by_argos(argos, tmp_path, settings):
    bundle = trained(tmp_path / "run", **settings)
    found = export_argos(bundle, tmp_path / "out.argosmodel", argos)
    assert (found.outputs, found.equal, found.cut_differently) == (40, 40, 0)
    assert found.largest <= 1e-4
    narrow = export_argos(bundle, tmp_path / "out.argosmodel", replace(argos, quantization="int8"))
    assert narrow.mean <= 0.1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.argosmodel", "run"]


def test_argos_translates_as_the_command_does(ask, tmp_path):
    # trained long enough that outputs end; otherwise, the best output may be missing from a list
    bundle = trained(tmp_path / "run", updates=900)
    bundle.save_configuration()
    export_argos(bundle, tmp_path / "out.argosmodel", ExportOptions(quantization="float32", verified=False))
    texts = some(200, 3)
    theirs = ask("argos", "argos", package=str(tmp_path / "out.argosmodel"), languages=["en", "fr"], texts=texts)
    translator = gf.Translator.load(bundle.folder, engine="ctranslate2")
    ours = translator.translate(texts, beam_size=4, length_penalty=0.2, extra_length=256, n_best=4)
    best = [max((one, *one.alternatives), key=score_of_argos) for one in ours]
    assert [one.text for one in best] == theirs
    assert sum(one.text == text for one, text in zip(ours, theirs, strict=True)) >= 195


def score_of_argos(output: Translation) -> float:
    """Return CTranslate2's score, by which Argos chooses; the command divides by the paper's ((5 + n) / 6)^α."""
    return output.log_prob / len(output.tokens) ** 0.2
