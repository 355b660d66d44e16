"""Compute with Marian and Pegasus in transformers: read {"questions"} as JSON, and print a list of answers.

A question is {"make", "folder", "sources", "targets", "texts"}. "make", if given, is {"config", "half", "shard",
"seed"}: a small model that is written to the folder first. An answer is {"single", "double": log probabilities of each
target's tokens in float32 and float64, "greedy" and "beam": ids without the start token, in float64, "ids",
"target_ids" and "decoded" of texts}.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoTokenizer, MarianConfig, MarianMTModel, PegasusConfig, PegasusForConditionalGeneration
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
STEPS, WARMUP, RATE = 200, 30, 1e-2
KINDS = {"marian": (MarianConfig, MarianMTModel), "pegasus": (PegasusConfig, PegasusForConditionalGeneration)}


def log_probs(model, source, target, start):
    logits = model(torch.tensor([source]), decoder_input_ids=torch.tensor([[start, *target[:-1]]])).logits
    return logits.log_softmax(-1)[0].gather(-1, torch.tensor(target)[:, None])[:, 0].tolist()


def search(model, sources, beams):
    model.generation_config.forced_eos_token_id = None
    options = {"num_beams": beams, "length_penalty": 0.0, "early_stopping": "never"} if beams > 1 else {}
    longest = max(map(len, sources))
    pad, end = model.config.pad_token_id, model.config.eos_token_id
    rows = torch.tensor([[*source, *[pad] * (longest - len(source))] for source in sources])
    lengths = torch.tensor([[len(source)] for source in sources])
    # A <pad> inside a source is an ordinary token, so the mask is made from the lengths.
    mask = (torch.arange(longest)[None] < lengths).long()
    most = {"max_new_tokens": longest + 20, "max_length": None}
    written = model.generate(rows, attention_mask=mask, **most, **options, do_sample=False, bad_words_ids=None)
    outputs = [one[1:] for one in written.tolist()]
    return [one[: one.index(end) + 1] if end in one else one for one in outputs]


def make(folder, config, half=False, shard="1GB", seed=1):
    """Write a model that has learned a little to copy, so that its outputs differ from each other, and end."""
    torch.manual_seed(seed)
    settings = dict(config)
    kind, model_class = KINDS[settings.pop("model_type")]
    model = model_class(kind(**settings, init_std=0.1)).train()
    if not settings["scale_embedding"]:
        model.get_input_embeddings().weight.data *= settings["d_model"] ** 0.5
    ids, end, start = model.config, model.config.eos_token_id, model.config.decoder_start_token_id
    words = torch.tensor([id for id in range(ids.vocab_size) if id not in (ids.pad_token_id, end, start)])
    optimiser = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = RATE * min(1, step / WARMUP)
        text = torch.cat([words[torch.randint(len(words), (32, 2 + step % 7))], torch.full((32, 1), end)], 1)
        before = torch.cat([torch.full((32, 1), start), text[:, :-1]], 1)
        logits = model(text, decoder_input_ids=before).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), text.flatten()).backward()
        optimiser.step()
        optimiser.zero_grad()
    with torch.no_grad():
        model.final_logits_bias.copy_(0.3 * torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, ids.pad_token_id] = -20  # never generated, as in published models
    (model.half() if half else model).save_pretrained(folder, max_shard_size=shard)


def answer(asked):
    folder, found = Path(asked["folder"]), {}
    if "make" in asked:
        make(folder, **asked["make"])
    if asked.get("sources"):
        kind = json.loads((folder / "config.json").read_text())["model_type"]
        model = KINDS[kind][1].from_pretrained(folder, dtype=torch.float32).eval()
        with torch.no_grad():
            start = model.config.decoder_start_token_id
            pairs = list(zip(asked["sources"], asked["targets"], strict=True))
            found["single"] = [log_probs(model, *pair, start) for pair in pairs]
            model.double()
            found["double"] = [log_probs(model, *pair, start) for pair in pairs]
            found["greedy"] = search(model, asked["sources"], 1)
            found["beam"] = search(model, asked["sources"], 4)
    if asked.get("texts"):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        found["ids"] = tokenizer(asked["texts"]).input_ids
        found["target_ids"] = tokenizer(text_target=asked["texts"]).input_ids
        found["decoded"] = tokenizer.batch_decode(found["target_ids"], skip_special_tokens=True)
    return found


json.dump([answer(asked) for asked in json.load(sys.stdin)["questions"]], sys.stdout)
