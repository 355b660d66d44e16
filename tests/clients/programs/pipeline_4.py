"""Translate with transformers < 5: with its pipeline, and with an ONNX model that optimum-onnx makes from the folder.

{"folder": FOLDER, "texts": [TEXT, …]} → {"pipeline": [TEXT, …], "optimum": [TEXT, …]}, all by greedy search.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from optimum.onnxruntime import ORTModelForSeq2SeqLM
from transformers import AutoTokenizer, pipeline

asked = json.load(sys.stdin)
folder, texts = asked["folder"], asked["texts"]
translate = pipeline("translation", model=folder, tokenizer=folder, device="cpu")
written = [one["translation_text"] for one in translate(texts, num_beams=1)]

tokenizer = AutoTokenizer.from_pretrained(folder)
model = ORTModelForSeq2SeqLM.from_pretrained(folder, export=True)
outputs = [model.generate(**tokenizer(text, return_tensors="pt"), num_beams=1)[0] for text in texts]
optimum = tokenizer.batch_decode(outputs, skip_special_tokens=True)
json.dump({"pipeline": written, "optimum": optimum}, sys.stdout)
