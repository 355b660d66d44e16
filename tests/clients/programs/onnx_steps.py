"""Compute with a folder in onnxruntime: read {"folder", "source", "target"}, and print logits (B, T, V) as JSON.

"source" and "target" are lists of lists of ids, padded with 0. "first" are the logits from decoder_model.onnx. "merged"
and "next" are the logits computed token by token, with decoder_model_merged.onnx or decoder_with_past_model.onnx.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

asked = json.load(sys.stdin)
graphs = {}
for path in Path(asked["folder"], "onnx").glob("*.onnx"):
    onnx.checker.check_model(path, full_check=True)
    graphs[path.stem.removesuffix("_quantized")] = onnxruntime.InferenceSession(path)
source, target = np.array(asked["source"]), np.array(asked["target"])
mask = (source != 0).astype(np.int64)


def run(name, **inputs):
    return dict(zip([one.name for one in graphs[name].get_outputs()], graphs[name].run(None, inputs), strict=True))


memory = run("encoder_model", input_ids=source, attention_mask=mask)["last_hidden_state"]
seen = {"encoder_attention_mask": mask}


def stepwise(later):
    """Return the logits computed token by token; from the second token on, with the graph `later`."""
    cache = {
        one.name: np.zeros(
            [len(source) if size == "batch_size" else size if isinstance(size, int) else 0 for size in one.shape],
            np.float32,
        )
        for one in graphs["decoder_model_merged"].get_inputs()
        if one.name.startswith("past_key_values.")
    }
    logits = []
    for place in range(target.shape[1]):
        name = later if place else "decoder_model_merged"
        more = {"encoder_hidden_states": memory, "use_cache_branch": np.array([place > 0])}
        found = run(name, input_ids=target[:, [place]], **seen, **cache, **(more if name.endswith("merged") else {}))
        logits.append(found.pop("logits")[:, 0])
        cache |= {key.replace("present", "past_key_values"): value for key, value in found.items()}
    return np.stack(logits, 1).tolist()


first = run("decoder_model", input_ids=target, encoder_hidden_states=memory, **seen)["logits"].tolist()
json.dump(
    {"first": first, "merged": stepwise("decoder_model_merged"), "next": stepwise("decoder_with_past_model")},
    sys.stdout,
)
