"""Logits of an exported folder by TransformerLens, and the number of its hook points.

{"folder": FOLDER, "source": [[id, …], …], "target": [[id, …], …]} → {"logits": (B, T, V), "hooks": number}
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformer_lens.model_bridge import TransformerBridge

asked = json.load(sys.stdin)
out = sys.stdout
sys.stdout = sys.stderr  # TransformerLens prints, but stdout carries our results
model = TransformerBridge.boot_transformers(asked["folder"], device="cpu", dtype=torch.float32)
with torch.no_grad():
    logits = model(torch.tensor(asked["source"]), decoder_input=torch.tensor(asked["target"]))
json.dump({"logits": logits.tolist(), "hooks": len(model.hook_dict)}, out)
out.flush()
