"""Write a random MarianMTModel into a folder that holds vocab.json, source.spm and target.spm.

Reads {"folder", "fields"} as JSON; `fields` are fields of MarianConfig. The vocabulary begins with </s> and <unk> and
ends with <pad>, whose row is zero, as in OPUS-MT.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import MarianConfig, MarianMTModel

asked = json.load(sys.stdin)
folder = Path(asked["folder"])
vocabulary = json.loads((folder / "vocab.json").read_text())
pad, size = vocabulary["<pad>"], len(vocabulary)
sizes = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37}
heads = {"encoder_attention_heads": 3, "decoder_attention_heads": 3}
ids = {"pad_token_id": pad, "eos_token_id": 0, "decoder_start_token_id": pad, "forced_eos_token_id": 0}
torch.manual_seed(5)
model = MarianMTModel(MarianConfig(vocab_size=size, **sizes, **heads, **ids, **asked["fields"])).eval()
with torch.no_grad():
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.2)
    model.model.shared.weight[pad] = 0
    model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
model.save_pretrained(folder)
(folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
json.dump({"size": size}, sys.stdout)
