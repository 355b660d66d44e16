"""Translations of texts by Argos Translate with an installed package, one sentence a line.

{"package": FILE, "languages": [FROM, TO], "texts": [TEXT, …]} → the translations. Argos' sentence splitters need files
from the network, so a splitter into lines replaces them; everything else is Argos' own code.
"""

import json
import os
import sys
import tempfile

asked = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as home:
    os.environ |= {f"XDG_{name}_HOME": f"{home}/{name}" for name in ("DATA", "CONFIG", "CACHE")}
    os.environ["ARGOS_PACKAGES_DIR"] = f"{home}/packages"

    from argostranslate import package, sbd, translate

    sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]
    package.install_from_path(asked["package"])
    answers = [translate.translate(text, *asked["languages"]) for text in asked["texts"]]
json.dump(answers, sys.stdout)
