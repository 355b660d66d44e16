"""What all exports share."""

import pytest

from glassformer.errors import ConfigError
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.formats import FORMATS
from interop.huggingface.test_writer import a_run


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", FORMATS)
def test_an_unknown_number_format_is_one_sentence(tmp_path, name):
    run = a_run(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"^quantization: expected float32.* for .*, got 'float31' \(did you mean"):
        FORMATS[name].export(run, tmp_path / "out", ExportOptions(quantization="float31", probes=["the cat"]))
    assert not (tmp_path / "out").exists()
