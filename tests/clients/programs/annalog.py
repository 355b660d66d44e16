"""Compute with the model of `annalog`: read {"source", "longest"} as JSON, print {"single", "double", "greedy"}.

The results are logits in float32 and in float64, and the output of greedy search. Importing the whole package would
need rdkit, so only the module with the network is imported.
"""

import importlib.util
import json
import sys
import types
from pathlib import Path

import torch

sys.path.remove(str(Path(__file__).parent))  # this file would hide the package of the same name
package = types.ModuleType("annalog")
package.__path__ = importlib.util.find_spec("annalog").submodule_search_locations
sys.modules["annalog"] = package
from annalog.model_files import seq2seq_attention as tutorial  # noqa: E402 – needs the module made above

PAD, START, END = 1, 2, 3
state = torch.load(Path(package.__path__[0]) / "ckpt_and_vocab/Lev_extended.pt", map_location="cpu", weights_only=True)
sizes = (256, 3, 8, 512, 0.1, "cpu", 102)
model = tutorial.Seq2Seq(tutorial.Encoder(59, *sizes), tutorial.Decoder(59, *sizes), PAD, PAD, "cpu")
model.load_state_dict(state)
model.eval()


@torch.no_grad()
def greedy(source, longest):
    """Return the ids that greedy search writes after the start token, including the end token."""
    written = [START]
    while len(written) <= longest and (written[-1] != END or len(written) == 1):
        written.append(int(model(torch.tensor([source]), torch.tensor([written]))[0][0, -1].argmax()))
    return written[1:]


asked = json.load(sys.stdin)
found = {"greedy": [greedy(one, asked["longest"]) for one in asked["source"]]}
for name, dtype in (("single", torch.float32), ("double", torch.float64)):
    model.to(dtype)
    pairs = zip(asked["source"], found["greedy"], strict=True)
    with torch.no_grad():
        found[name] = [
            model(torch.tensor([source]), torch.tensor([[START, *target]]))[0][0].tolist() for source, target in pairs
        ]
json.dump(found, sys.stdout)
