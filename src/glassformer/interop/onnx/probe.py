"""The probe program that verifies an exported folder with onnxruntime and tokenizers: python -I probe.py FOLDER."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

__all__: list[str] = []

_TOGETHER = 16
"""Number of sentences in a batch."""


class _Model:
    """The graphs of an exported folder, and the settings for its search."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        never = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))["bad_words_ids"]
        self.never = [id for [id] in never]
        [end] = {path.stem.removeprefix("encoder_model") for path in folder.glob("onnx/encoder_model*.onnx")}
        names = ("encoder_model", "decoder_model", "decoder_model_merged")
        self.graphs = {name: onnxruntime.InferenceSession(folder / "onnx" / f"{name}{end}.onnx") for name in names}

    def run(self, name: str, **inputs: Any) -> dict[str, Any]:
        graph = self.graphs[name]
        return dict(zip((one.name for one in graph.get_outputs()), graph.run(None, inputs), strict=True))

    def encode(self, sources: list[list[int]]) -> dict[str, Any]:
        ids = _padded(sources, self.config["pad_token_id"])
        mask = (ids != self.config["pad_token_id"]).astype(np.int64)
        memory = self.run("encoder_model", input_ids=ids, attention_mask=mask)["last_hidden_state"]
        return {"encoder_hidden_states": memory, "encoder_attention_mask": mask}

    def score(self, memory: dict[str, Any], targets: list[list[int]]) -> list[list[float]]:
        ids = _padded(targets, self.config["eos_token_id"])
        start = np.full((len(ids), 1), self.config["decoder_start_token_id"])
        logits = self.run("decoder_model", input_ids=np.hstack([start, ids[:, :-1]]), **memory)["logits"]
        log_probs = np.take_along_axis(_log_softmax(logits), ids[:, :, None], -1)[:, :, 0]
        return [row[: len(target)].tolist() for row, target in zip(log_probs, targets, strict=True)]

    def greedy(self, memory: dict[str, Any], longest: int) -> list[list[int]]:
        """Return the outputs of greedy search, step by step with the cache, without `<eos>`."""
        rows = len(memory["encoder_attention_mask"])
        cache = {
            one.name: np.zeros([_size(one.shape[0], rows), *(_size(size, 0) for size in one.shape[1:])], np.float32)
            for one in self.graphs["decoder_model_merged"].get_inputs()
            if one.name.startswith("past_key_values.")
        }
        newest = np.full((rows, 1), self.config["decoder_start_token_id"])
        written: list[list[int]] = [[] for _ in range(rows)]
        going = set(range(rows))
        for step in range(longest):
            fed = {**memory, **cache, "use_cache_branch": np.array([step > 0])}
            found = self.run("decoder_model_merged", input_ids=newest, **fed)
            logits = found.pop("logits")[:, -1]
            logits[:, self.never] = -np.inf
            newest = logits.argmax(-1)[:, None]
            going -= {row for row in going if newest[row, 0] == self.config["eos_token_id"]}
            for row in going:
                written[row].append(int(newest[row, 0]))
            if not going:
                break
            cache = {name.replace("present", "past_key_values"): value for name, value in found.items()}
        return written


def _size(size: int | str, otherwise: int) -> int:
    return size if isinstance(size, int) else otherwise


def _padded(rows: list[list[int]], id: int) -> Any:
    longest = max(map(len, rows))
    return np.array([[*row, *[id] * (longest - len(row))] for row in rows])


def _log_softmax(logits: Any) -> Any:
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _tokenizer(folder: Path, side: str) -> Tokenizer:
    own = folder / f"{side}_tokenizer.json"
    return Tokenizer.from_file(str(own if own.exists() else folder / "tokenizer.json"))


def _answers(folder: Path, sources: list[str], targets: list[list[int]]) -> dict[str, Any]:
    model, source, target = _Model(folder), _tokenizer(folder, "source"), _tokenizer(folder, "target")
    end, pad = model.config["eos_token_id"], model.config["pad_token_id"]
    answers: dict[str, list[Any]] = {"source_ids": [], "log_probs": [], "texts": []}
    for begin in range(0, len(sources), _TOGETHER):
        some, wanted = sources[begin : begin + _TOGETHER], targets[begin : begin + _TOGETHER]
        ids = [one.ids for one in source.encode_batch(some)]
        ids = [
            one if one[-1:] == [end] else [*one, pad] for one in ids
        ]  # sources without an end token end with <pad> instead
        memory = model.encode(ids)
        answers["source_ids"] += ids
        answers["log_probs"] += model.score(memory, wanted)
        answers["texts"] += target.decode_batch(model.greedy(memory, max(map(len, wanted))))
    return answers


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_answers(Path(sys.argv[1]), **json.load(sys.stdin))) + "\n")
