"""The probe program that verifies an exported folder with Hugging Face's transformers: python -I probe.py FOLDER."""

import json
import sys
from typing import Any

import sentencepiece  # noqa: F401  # the tokenizer needs it, and reports a missing package at great length
import transformers

__all__: list[str] = []

TOGETHER = 16
"""Number of sentences in a batch."""


def _answers(folder: str, sources: list[str], targets: list[list[int]]) -> dict[str, Any]:
    import torch

    torch.set_grad_enabled(False)
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    answers: dict[str, list[Any]] = {"source_ids": [], "log_probs": [], "texts": []}
    for begin in range(0, len(sources), TOGETHER):
        some, wanted = sources[begin : begin + TOGETHER], targets[begin : begin + TOGETHER]
        batch = tokenizer(some, return_tensors="pt", padding=True)
        longest = max(map(len, wanted))
        labels = torch.tensor([[*ids, *[model.config.eos_token_id] * (longest - len(ids))] for ids in wanted])
        start = torch.full((len(some), 1), model.config.decoder_start_token_id)
        inputs = torch.cat([start, labels[:, :-1]], dim=1)
        logits = model(**_known(batch), decoder_input_ids=inputs).logits
        log_probs = logits.log_softmax(-1).gather(-1, labels[:, :, None])[:, :, 0]
        written = model.generate(**_known(batch), num_beams=1, do_sample=False, max_new_tokens=longest)
        answers["source_ids"] += [tokenizer(text)["input_ids"] for text in some]
        answers["log_probs"] += [row[: len(ids)].tolist() for row, ids in zip(log_probs, wanted, strict=True)]
        answers["texts"] += tokenizer.batch_decode(written, skip_special_tokens=True)
    return answers


def _known(batch: Any) -> dict[str, Any]:
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_answers(sys.argv[1], **json.load(sys.stdin))) + "\n")
