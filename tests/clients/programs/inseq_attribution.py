"""Attributions of an exported folder by Inseq.

{"folder": FOLDER, "texts": [TEXT, …]} → {"texts": [TEXT, …], "attributed": [number of target tokens, …]}
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import inseq

asked = json.load(sys.stdin)
out = sys.stdout
sys.stdout = sys.stderr  # Inseq prints, but stdout carries our results
model = inseq.load_model(asked["folder"], "saliency")
results = [
    model.attribute(text, generation_args={"num_beams": 1, "max_new_tokens": 60}, show_progress=False)
    for text in asked["texts"]
]
attributed = [result.sequence_attributions[0].source_attributions.shape[1] for result in results]
written = [result.info["generated_texts"][0] for result in results]
json.dump({"texts": written, "attributed": attributed}, out)
out.flush()
