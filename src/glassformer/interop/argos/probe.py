"""The probe program that verifies an exported package with Argos Translate: python -I probe.py FILE.

Each text is translated as one sentence, because Argos would have to download a file to split texts into sentences.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__: list[str] = []

_NO_END, _END, _UNKNOWN = 0, 2, 3
"""The id that ends a source if sources have no `<eos>`, as in some imported models; the id of `<eos>`; and the id of
`<unk>`."""


class _OneSentence:
    """A sentence splitter that does not split."""

    def split_sentences(self, text: str) -> list[str]:
        """Return the text as its only sentence."""
        return [text]


def _answers(file: str, sources: list[str], targets: list[list[int]]) -> dict[str, Any]:
    import ctranslate2
    from argostranslate import package, translate

    package.install_from_path(Path(file))
    [installed] = package.get_installed_packages()
    model = installed.package_path / "model"
    tokens = json.loads(next(model.glob("*vocabulary.json")).read_text(encoding="utf-8"))
    ids = {token: id for id, token in enumerate(tokens)}
    end = _END if json.loads((model / "config.json").read_text(encoding="utf-8"))["add_source_eos"] else _NO_END
    translator = ctranslate2.Translator(str(model), inter_threads=1, intra_threads=1)
    pieces = [installed.tokenizer.encode(text) for text in sources]
    wanted = [[tokens[id] for id in target[:-1]] for target in targets]
    scores = translator.score_batch(pieces, wanted, max_input_length=0)
    texts = [
        translate.apply_packaged_translation(installed, text, translator, _OneSentence(), 1)[0].value
        for text in sources
    ]
    return {
        "source_ids": [[*(ids.get(piece, _UNKNOWN) for piece in some), end] for some in pieces],
        "log_probs": [one.log_probs for one in scores],
        "texts": texts,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        # Argos creates its folders and reads its settings when it is imported. A beam of 1 is greedy search.
        os.environ |= {f"XDG_{name}_HOME": f"{home}/{name}" for name in ("DATA", "CONFIG", "CACHE")}
        os.environ |= {"ARGOS_PACKAGES_DIR": f"{home}/packages", "ARGOS_BEAM_SIZE": "1"}
        answers = _answers(sys.argv[1], **json.load(sys.stdin))
    sys.stdout.write(json.dumps(answers) + "\n")
