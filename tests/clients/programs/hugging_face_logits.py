"""Logits of exported folders by Hugging Face's transformers in float64; run in the environment "transformers".

{"folders": [FOLDER, …], "source": [[id, …], …], "target": [[id, …], …]} → for each folder the logits (B, T, V).
"""

import json
import math
import sys

import torch
import transformers


def sinusoids(table):
    """Replace the position table by a table in float64, because transformers computes it in float32."""
    length, width = table.shape
    angles = torch.arange(length, dtype=torch.float64)[:, None] * torch.exp(
        -math.log(10000.0) * torch.arange(0, width, 2, dtype=torch.float64) / width
    )
    exact = torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width]
    assert (table - exact).abs().max() < 1e-3, (table - exact).abs().max()
    table.copy_(exact)


@torch.no_grad()
def logits(folder, source, target):
    torch.manual_seed(1)
    loaded, missing = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert not any(missing.values()), missing
    model = loaded.double().eval()
    for stack in (model.model.encoder, model.model.decoder):
        sinusoids(stack.embed_positions.weight)
    source, target = torch.tensor(source), torch.tensor(target)
    mask = (source != 0).long()
    return model(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits.tolist()


asked = json.load(sys.stdin)
json.dump([logits(folder, asked["source"], asked["target"]) for folder in asked["folders"]], sys.stdout)
