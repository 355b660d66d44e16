"""Write a web page that translates inside the browser, with an exported model and transformers.js."""

import json
import shutil
from pathlib import Path
from typing import Any

from glassformer.bundle import Bundle
from glassformer.decoding.hypothesis import EXTRA_LENGTH
from glassformer.errors import ConfigError
from glassformer.interop.ctranslate2.model import positions_of

__all__ = ["RUNTIME_COMMAND", "check_runtime", "write_onnx_page"]

RUNTIME_COMMAND = "npm i @huggingface/transformers@4.3.1 --ignore-scripts"
"""The command that installs the packages with the page's runtime files."""

_TEMPLATE = Path(__file__).parent / "browser.html"
SETTINGS = "{{settings}}"
"""The text in the template that is replaced by the page's settings."""
_RUNTIME = {
    "transformers.js": "@huggingface/transformers/dist/transformers.web.min.js",
    "transformers-LICENSE": "@huggingface/transformers/LICENSE",
    "onnxruntime.mjs": "onnxruntime-web/dist/ort.wasm.bundle.min.mjs",
    "ort-wasm-simd-threaded.wasm": "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
}
"""The runtime files of a page, and their paths in `node_modules`."""


def check_runtime(runtime: Path) -> None:
    """Refuse a folder `node_modules` without the files that a page needs.

    Raises:
        ConfigError: a file is missing; the message names the command that installs it.
    """
    for name in _RUNTIME.values():
        if not (runtime / name).is_file():
            raise ConfigError(
                f"--page: {runtime / name} does not exist; run `{RUNTIME_COMMAND}` and give its folder node_modules"
            )


def write_onnx_page(bundle: Bundle, folder: Path, runtime: Path, dtype: str) -> None:
    """Write `index.html` and `runtime/` into the folder of an exported model.

    `dtype` is transformers.js's name of the model's number format.

    Raises:
        OSError: a file cannot be written.
    """
    (folder / "runtime").mkdir()
    for name, source in _RUNTIME.items():
        shutil.copyfile(runtime / source, folder / "runtime" / name)
    page = _TEMPLATE.read_text(encoding="utf-8").replace(SETTINGS, _script_text(_settings(bundle, dtype)))
    (folder / "index.html").write_text(page, encoding="utf-8", newline="\n")


def _settings(bundle: Bundle, dtype: str) -> dict[str, Any]:
    data, longest = bundle.configuration.data, positions_of(bundle.model_config)
    return {
        "source": data.source_language,
        "target": data.target_language,
        "dtype": dtype,
        "longest": longest,
        "extra": EXTRA_LENGTH,
    }


def _script_text(values: dict[str, Any]) -> str:
    """Return the values as JSON that is safe inside an HTML script element."""
    return json.dumps(values, ensure_ascii=False).replace("<", "\\u003c")
