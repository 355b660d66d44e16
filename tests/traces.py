"""Python's results for the explorer's tests in Node; `python tests/traces.py FOLDER` writes the files."""

import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict
from itertools import combinations, cycle, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

import glassformer as gf
from cuts import tokenizers
from glassformer.decoding.beam import search_tree
from glassformer.decoding.hypothesis import max_length
from glassformer.decoding.sampling import draw
from glassformer.decoding.transformer_step import TransformerStep
from glassformer.model.taps import points
from glassformer.recipes.configuration import DecodingConfig
from glassformer.recipes.toml import from_dict
from glassformer.text.tokenizer import train_tokenizers
from glassformer.watch.explorer.packing import as_base64, dequantised, pack, quantised
from glassformer.watch.explorer.payload import mistake_data, payload, point_data, recorded_payload, rounded
from glassformer.watch.inspection import MISTAKES, plant
from glassformer.watch.inspection.changes import Changes, changed
from glassformer.watch.inspection.edits import attentions
from models import pair_translator, random_model, random_translator, with_new_activations

Trace = dict[str, Tensor]

SOURCE, TARGET = [4, 9, 5, 17, 3, 2], [1, 7, 20, 5, 11]
PRE_LEARNED = {"norm": "pre", "positions": "learned"}
JOINT = {"source_vocab_size": 23, "target_vocab_size": 23}

KINDS: dict[str, dict[str, Any]] = {
    "paper": {},
    "post, halves, gelu, output of its own": {"positions": "halves", "activation": "gelu", "tie_output": False},
    "post, learned, silu, one matrix": {
        **JOINT,
        "positions": "learned",
        "activation": "silu",
        "tie_embeddings": True,
        "max_length": 29,
    },
    "post, no positions, joint, output of its own": {
        **JOINT,
        "positions": "none",
        "tie_embeddings": True,
        "tie_output": False,
    },
    "pre, interleaved, silu": {"norm": "pre", "activation": "silu"},
    "pre, halves, one matrix": {**JOINT, "norm": "pre", "positions": "halves", "tie_embeddings": True},
    "pre, learned, gelu": {**PRE_LEARNED, "activation": "gelu", "max_length": 7},
    "pre, no positions, one head": {"norm": "pre", "positions": "none", "heads": 1, "encoder_layers": 1},
    "post, final norms, output bias": {"final_norm": True, "output_bias": True},
    "pre, no final norms, output bias": {"norm": "pre", "final_norm": False, "output_bias": True, "tie_output": False},
    "even width, three layers": {"d_model": 12, "positions": "halves", "decoder_layers": 3},
}
KINDS |= with_new_activations(KINDS.values())


def words(count: int) -> dict[str, Any]:
    """Return a tokenizer with `count` words."""
    return {"kind": "words", "tokens": ["<pad>", "<bos>", "<eos>", "<unk>", *(f"w{id}" for id in range(4, count))]}


def payload_of(model: gf.Transformer) -> dict[str, Any]:
    """Return the payload of a model without a run."""
    return {
        "config": model.config.to_dict(),
        "points": point_data(model.config),
        "mistakes": mistake_data(model.config),
        "decoding": asdict(DecodingConfig()),
        "source": words(model.config.source_vocab_size),
        "target": words(model.config.target_vocab_size),
        "weights": pack(dict(model.named_parameters()), "float16"),
        "checkpoints": [],
        "openings": {},
        "trace": None,
    }


@torch.no_grad()
def python_trace(model: gf.Transformer, source: Sequence[int], target: Sequence[int]) -> Trace:
    """Return PyTorch's points of one sentence, without the batch axis."""
    with gf.record(model) as trace:
        model(torch.tensor([list(source)]), torch.tensor([list(target)]))
    return {name: value if name.endswith(".positions") else value.squeeze(0) for name, value in trace.items()}


def traced(model: gf.Transformer, source: Sequence[int], target: Sequence[int]) -> dict[str, Any]:
    """Return a sentence and all its points."""
    packed = pack(python_trace(model, source, target), "float32")
    return {"source_ids": source, "target_ids": target, "points": packed["tensors"], "data": packed["data"]}


def forward() -> dict[str, Any]:
    """Return, for each kind of model, its payload and all points of a sentence."""
    models = {kind: rounded(random_model(**settings)) for kind, settings in KINDS.items()}
    return {kind: payload_of(model) | {"trace": traced(model, SOURCE, TARGET)} for kind, model in models.items()}


def mistakes() -> dict[str, Any]:
    """Return, for models that show different mistakes, sentences under each mistake and each pair of mistakes."""
    sentences = [(SOURCE, TARGET), ([4, 2], TARGET), ([4, 0, 5, 2, 0], [1, 0, 4])]
    each = [((mistake,), *sentence) for mistake in MISTAKES for sentence in sentences]
    pairs = [(pair, SOURCE, TARGET) for pair in combinations(MISTAKES, 2)]
    small = {"positions": "halves", "encoder_layers": 1, "decoder_layers": 1}
    return {
        "post": planted({}, each),
        "pre": planted({"norm": "pre"}, each),
        "post, one layer": planted(small, pairs),
        "pre, one layer": planted({"norm": "pre", **small}, pairs),
        "one wide head, learned positions": planted({"positions": "learned", "heads": 1, "d_k": 11}, []),
        "narrow heads, no positions": planted({"positions": "none", "d_k": 1}, []),
    }


def planted(settings: dict[str, Any], cases: Sequence[tuple[Sequence[str], list[int], list[int]]]) -> dict[str, Any]:
    """Return a model's payload, and all points of sentences under mistakes: (mistakes, source, target)."""
    model = rounded(random_model(**settings))
    traces = []
    for ids, source, target in cases:
        with plant(model, *ids):
            traces.append({"mistakes": ids, **traced(model, source, target)})
    return payload_of(model) | {"cases": traces}


# Searches

SOURCES = [[4, 9, 5, 17, 3, 2], [18, 2], [5, 5, 6, 7, 8, 9, 10, 11, 12, 2]]
PREFIXES = [[], [7], [3, 20, 5]]
ALPHAS = [0.0, 0.6, 2.0, -1.0]


def searched(model: gf.Transformer, source: list[int], prefix: list[int], beam_size: int, alpha: float) -> Any:
    """Return one search: its request, and Python's result with all candidates."""
    hypotheses, tree = search_tree(
        TransformerStep(model, torch.tensor([source])),
        max_length=max_length(model.config, len(source), DecodingConfig().extra_length),
        n_best=beam_size,
        prefix=prefix,
        beam_size=beam_size,
        length_penalty=alpha,
    )
    return {
        "asked": {"sourceIds": source, "prefixIds": prefix, "beamSize": beam_size, "lengthPenalty": alpha},
        "hypotheses": [asdict(one) for one in hypotheses],
        "tree": [asdict(node) for node in tree.nodes],
    }


def search() -> dict[str, Any]:
    """Return searches by two kinds of models, and by a model whose outputs end at different lengths."""
    kinds: dict[str, dict[str, Any]] = {"paper": {}, "pre, learned": {**PRE_LEARNED, "max_length": 12}}
    made = {}
    for name, settings in kinds.items():
        model, cases = rounded(random_model(**settings)), []
        for beam_size in (1, 3, 4):
            asked = zip(product(SOURCES, PREFIXES), cycle(ALPHAS), strict=False)
            cases += [searched(model, source, prefix, beam_size, alpha) for (source, prefix), alpha in asked]
        made[name] = {"payload": payload_of(model), "cases": cases}
    sharp = random_model(tie_output=False)
    sharp.output.weight.data.mul_(4)  # a random model hardly prefers one token to another
    sharp = rounded(sharp)
    cases = [searched(sharp, source, [], beam_size, 0.6) for source in SOURCES for beam_size in (2, 4, 7)]
    return made | {"sharp": {"payload": payload_of(sharp), "cases": cases}}


# Changes

OTHER = {"source_ids": [6, 8, 2], "target_ids": [1, 9, 12, 4, 4, 8]}
ENCODER, DECODER, CROSS = (
    "encoder.layers.1.self_attention",
    "decoder.layers.0.self_attention",
    "decoder.layers.1.cross_attention",
)
NOWHERE = [[2, key, False] for key in range(6)]
CHANGES: dict[str, dict[str, Any]] = {
    "ablated heads": {"ablated": {CROSS: [0, 2], ENCODER: [1]}},
    "an unblocked future position": {"masks": {DECODER: [[1, 4, True], [3, 0, False]]}},
    "a row that may look nowhere": {
        "masks": {CROSS: [*NOWHERE, [4, 1, False], [4, 2, False], [9, 0, False], [0, 9, True]]}
    },
    "rows of weights by hand": {
        "overrides": {ENCODER: [[1, 3, [0.25, 0, 0.75]], [0, 6, [1]]], CROSS: [[2, 0, [0, 1, 2, 3, 4, 5, 6, 7]]]}
    },
    **{
        f"rows of another sentence: {point}": {"patches": [{"point": point, **OTHER, **rows}]}
        for point, rows in {
            "encoder.output": {"positions": [[1, 2], [5, 0], [0, 3], [6, 0]]},
            "source.positions": {"positions": [[4, 1]]},
            f"{CROSS}.query": {"positions": [[3, 5]]},
            f"{CROSS}.heads": {"positions": [[4, 0]], "heads": [1]},
            "decoder.layers.1.feed_forward.hidden": {"positions": [[0, 5]]},
            "logits": {"positions": [[2, 1]]},
        }.items()
    },
    "patches after ablation": {
        "patches": [
            {"point": f"{CROSS}.heads", "positions": [[1, 1]], **OTHER},
            {"point": "target.input", "positions": [[2, 3]], **OTHER},
        ],
        "ablated": {CROSS: [0, 1]},
    },
    "no positions": {"positions": False},
    "no scale": {"scale": False},
}
DRAWS = 15


def drawn(draw: random.Random, model: gf.Transformer) -> dict[str, Any]:
    """Return random changes of every kind, in Python's format."""
    names = [name.removesuffix(".weights") for name in points(model) if name.endswith(".weights")]

    def some(make: Callable[[], Any]) -> dict[str, Any]:
        return {name: [make() for _ in range(draw.randint(1, 3))] for name in draw.sample(names, 2)}

    rows = draw.choice(["encoder.output", "source.input", f"{CROSS}.query", "decoder.layers.0.feed_forward.added"])
    return {
        "ablated": some(lambda: draw.randrange(3)),
        "masks": some(lambda: [draw.randrange(6), draw.randrange(6), draw.random() < 0.5]),
        "overrides": some(lambda: [draw.randrange(3), draw.randrange(6), [draw.random() for _ in range(4)]]),
        "patches": [{"point": rows, **OTHER, "positions": [[1, 2], [3, 0]]}] if draw.random() < 0.5 else [],
        "positions": draw.random() < 0.7,
        "scale": draw.random() < 0.7,
        "mistakes": draw.sample([*MISTAKES], draw.randint(0, 3)),
    }


def traced_under(model: gf.Transformer, changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes with all points of the sentence under them."""
    with changed(model, Changes.from_dict(changes)):
        return {"changes": changes, **traced(model, SOURCE, TARGET)}


def changes() -> dict[str, Any]:
    """Return, for each order of the norms, a model and its points under named and random changes."""
    made = {}
    for norm in ("post", "pre"):
        model, draw = rounded(random_model(norm=norm)), random.Random(f"changes {norm}")
        named = CHANGES | {f"drawn, {count}": drawn(draw, model) for count in range(DRAWS)}
        cases = {name: traced_under(model, changes) for name, changes in named.items()}
        made[norm] = {"payload": payload_of(model) | {"trace": traced(model, SOURCE, TARGET)}, "cases": cases}
    return made


# Reasons for a word

REASONS: dict[str, dict[str, Any]] = {
    "post": {},
    "pre": {"norm": "pre"},
    "post, final norms, output bias, gelu": {"final_norm": True, "output_bias": True, "activation": "gelu"},
    "post, output of its own, silu, learned": {
        **JOINT,
        "tie_embeddings": True,
        "tie_output": False,
        "activation": "silu",
        "positions": "learned",
    },
    "pre, no final norms, output bias, output of its own": {
        "norm": "pre",
        "final_norm": False,
        "output_bias": True,
        "tie_output": False,
    },
}
UNDER: list[dict[str, Any]] = [
    {},
    {
        "ablated": {CROSS: [1], ENCODER: [0]},
        "masks": {DECODER: [[2, 0, False]]},
        "overrides": {CROSS: [[2, 2, [0.5, 0.25]]]},
        "positions": False,
        "patches": [{"point": "encoder.output", "positions": [[1, 2]], **OTHER}],
    },
]
PLACE = 2
"""The index of the explained word in TARGET[1:]."""


def reasons() -> dict[str, Any]:
    """Return, for kinds of models and changes, the reasons for one word: rivals, heads, source words, direct parts."""
    made = {}
    for kind, settings in REASONS.items():
        model = rounded(random_model(**settings))
        made[kind] = {"payload": payload_of(model), "cases": [explained(model, changes) for changes in UNDER]}
    return made


@torch.no_grad()
def explained(model: gf.Transformer, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the reasons for the word at PLACE under changes, with direct parts in float64."""
    word = TARGET[PLACE + 1]
    plain = last_row(model, changes)
    rivals = [id for id in plain.argsort(descending=True).tolist() if id != word][:10]

    def margin(row: Tensor) -> float:
        return (row[word] - row[rivals[0]]).item()

    ablated = changes.get("ablated", {})
    heads = []
    for name, head in ((name, head) for name in attentions(model) for head in range(model.config.heads)):
        if head not in ablated.get(name, []):
            without = changes | {"ablated": ablated | {name: [*ablated.get(name, []), head]}}
            heads.append([name, head, margin(last_row(model, without)) - margin(plain)])
    hidden = [margin(last_row(model, changes, position)) for position in range(len(SOURCE))]
    return {
        "changes": changes,
        "word": [word, plain[word].item()],
        "rivals": [[id, plain[id].item()] for id in rivals],
        "heads": heads,
        "sources": [one - margin(plain) for one in hidden],
        "direct": direct_parts(deepcopy(model).double(), changes, word, rivals[0], SOURCE, TARGET[: PLACE + 1]),
    }


def last_row(model: gf.Transformer, changes: dict[str, Any], hidden: int = -1) -> Tensor:
    """Return the log probabilities at PLACE under changes; nothing may attend to the source position `hidden`."""

    def hide(scores: Tensor) -> Tensor:
        return scores.masked_fill(torch.arange(scores.shape[-1]) == hidden, -math.inf)

    names = [name for name in attentions(model) if name.startswith("encoder") or name.endswith("cross_attention")]
    with changed(model, Changes.from_dict(changes)), gf.intervene(model, {f"{name}.scores": hide for name in names}):
        return model(torch.tensor([SOURCE]), torch.tensor([TARGET[: PLACE + 1]])).log_softmax(-1)[0, -1]


@torch.no_grad()
def direct_parts(
    model: gf.Transformer,
    changes: dict[str, Any],
    word: int,
    rival: int,
    source: Sequence[int],
    target: Sequence[int],
) -> dict[str, float]:
    """Return the parts of logit(word) − logit(rival) in the last row of a target.

    Each part passes through the norms with the mean and variance of the whole stream. A head has the name "attention
    head"; the other parts have the name of their sub-layer, or "input", "biases" and "norms".
    """
    with changed(model, Changes.from_dict(changes)):
        trace = python_trace(model, source, target)
    parts = {"input": trace["target.input"][-1], "biases": torch.zeros(()), "norms": torch.zeros(())}
    post = model.config.norm == "post"
    for number, layer in enumerate(model.decoder.layers):
        for kind in ("self_attention", "cross_attention"):
            name, part = f"decoder.layers.{number}.{kind}", getattr(layer, kind)
            values, matrix = trace[f"{name}.heads"][:, -1], part.output_projection.weight
            for head, (value, columns) in enumerate(zip(values, matrix.split(model.config.d_v, 1), strict=True)):
                parts[f"{name} {head}"] = columns @ value
            parts["biases"] = parts["biases"] + part.output_projection.bias
            parts = normed(parts, getattr(layer, f"{kind}_residual").norm) if post else parts
        name, contract = f"decoder.layers.{number}.feed_forward", layer.feed_forward.contract
        parts[name] = contract.weight @ trace[f"{name}.activated"][-1]
        parts["biases"] = parts["biases"] + contract.bias
        parts = normed(parts, layer.feed_forward_residual.norm) if post else parts
    parts = normed(parts, model.decoder.norm) if model.config.final_norm else parts
    direction = model.output.weight[word] - model.output.weight[rival]
    found = {name: (part * direction).sum().item() for name, part in parts.items()}
    if model.output.bias is not None:
        found["biases"] += (model.output.bias[word] - model.output.bias[rival]).item()
    logits = trace["logits"][-1]
    assert abs(sum(found.values()) - (logits[word] - logits[rival]).item()) < 1e-9
    return found


def normed(parts: Trace, norm: torch.nn.LayerNorm) -> Trace:
    """Return the parts of a norm's result; its bias joins the part "norms"."""
    deviation = (sum(parts.values(), torch.zeros(())).var(correction=0) + norm.eps).sqrt()
    made = {name: (part - part.mean()) / deviation * norm.weight for name, part in parts.items()}
    return made | {"norms": made["norms"] + norm.bias}


# Unusual sentences, and numbers


def sentences() -> dict[str, Any]:
    """Return payloads with all points of a sentence: with padding, with many words, and from a checkpoint."""
    asked = {
        "padding": ({}, [4, 0, 9, 2, 0, 0], [1, 7, 0, 5, 0]),
        "nothing but padding": ({}, [0, 0], [1, 4]),
        "long": (
            {"d_model": 31, "d_ff": 37},
            [4 + 3 * i % 15 for i in range(97)],
            [1, *(4 + 5 * i % 19 for i in range(88))],
        ),
    }
    made = {}
    for name, (settings, source, target) in asked.items():
        model = rounded(random_model(**settings))
        made[name] = payload_of(model) | {"trace": traced(model, source, target)}
    return made | {"checkpoint": payload_of(rounded(random_model())) | shrunk_checkpoint()}


def shrunk_checkpoint() -> dict[str, Any]:
    """Return a checkpoint as a page stores it, its weights as Python reads them, and all points of a sentence."""
    model, parts = rounded(random_model()), []
    for weight in model.parameters():
        shrunk = quantised(weight.detach().numpy())
        weight.data = torch.from_numpy(dequantised(shrunk))
        parts.extend(shrunk)
    return {
        "checkpoints": [{"step": 64, "data": as_base64(parts), "loss": 0.0}],
        "read": pack(dict(model.named_parameters()), "float32"),
        "trace": traced(model, SOURCE, TARGET),
    }


RECORDED: dict[str, dict[str, Any]] = {
    "post": {},
    "pre, learned, gelu": {**PRE_LEARNED, "activation": "gelu"},
    "post, final norms, silu, output bias": {"final_norm": True, "output_bias": True, "activation": "silu"},
    "few words": {"target": "le chat noir dort ."},
}


def recorded() -> dict[str, Any]:
    """Return, for some kinds of models, a recorded page's payload, its translation, and all of PyTorch's points."""
    sentence, many = "the black cat sleeps .", " ".join(f"w{number}" for number in range(300))
    made = {}
    for kind, settings in RECORDED.items():
        with TemporaryDirectory() as folder:
            translator = random_translator(Path(folder), **{"target": many, "extra_length": 3, **settings})
        if translator.model.output.bias is not None:
            translator.model.output.bias.data[1] = -1e9  # imported models have this bias
        page = recorded_payload(translator, sentence)
        [output] = translator.translate([sentence])
        trace = traced(translator.model, page["trace"]["source_ids"], page["trace"]["target_ids"])
        made[kind] = {"payload": page, "text": output.text, "trace": trace}
    return made


def openings() -> dict[str, Any]:
    """Return pages of small models, with the highlights that each page shows when a sentence opens."""
    sentence, lines = "the cat sees a big black dog .", ["the black cat sleeps .", "a big dog sees the cat !"]
    kinds: dict[str, dict[str, Any]] = {"post": {}, "pre": {"norm": "pre"}, "two heads": {"seed": 6, "heads": 2}}
    for kind in ("characters", "bpe"):
        tokenizer = {"kind": kind, "vocab_size": 40, "joint": False}
        configuration = from_dict({"data": {"source": "a.tsv"}, "tokenizer": tokenizer})
        kinds[kind] = {"tokenizers": train_tokenizers(lines, lines, configuration.tokenizer), "extra_length": 5}
    with TemporaryDirectory() as folder:
        translators = {kind: random_translator(Path(folder), **settings) for kind, settings in kinds.items()}
        translators["an output that ends at once"] = random_translator(Path(folder), output_bias=True)
        translators["an output that ends at once"].model.output.bias.data[2] = 60
        pages = {kind: payload(one, sentence) for kind, one in translators.items()}
        pages["pair"] = payload(pair_translator(Path(folder)))
    return {kind: page | {"strings": {"en": {}, "zh": {}}, "styles": ""} for kind, page in pages.items()}


def numbers() -> dict[str, Any]:
    """Return the half-precision number of each pattern of 16 bits, and the error function at 2001 points."""
    x = torch.linspace(-7, 7, 2001, dtype=torch.float64)
    halves = torch.arange(65536).to(torch.uint16).view(torch.float16).float()
    return {"halves": pack({"": halves}, "float32")["data"], "x": x.tolist(), "erf": torch.erf(x).tolist()}


def sampling() -> dict[str, Any]:
    """Return the shares of words among 20 000 evenly spaced draws, with some settings."""
    log_probs = (3 * torch.randn(40, generator=torch.Generator().manual_seed(0))).log_softmax(0)
    heights = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    cases = []
    for temperature, top_k, top_p in product((0.0, 0.3, 1.0, 2.0), (0, 1, 5, 60), (0.3, 0.9, 1.0)):
        rows = log_probs.double().expand(len(heights), -1)
        tokens = draw(rows, heights, temperature=temperature, top_k=top_k, top_p=top_p)
        shares = tokens.bincount(minlength=len(log_probs)) / len(heights)
        settings = {"temperature": temperature, "topK": top_k, "topP": top_p}
        cases.append({"settings": settings, "shares": shares.tolist()})
    return {"logProbs": log_probs.tolist(), "cases": cases}


def main(folder: Path) -> None:
    """Write a file for each test of `web/tests` that compares with Python."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(20170612)
    torch.set_num_threads(1)  # with such small tensors, threads would only wait for each other
    for made in (
        forward,
        mistakes,
        search,
        changes,
        reasons,
        sentences,
        recorded,
        openings,
        numbers,
        sampling,
        tokenizers,
    ):
        (folder / f"{made.__name__}.json").write_text(json.dumps(made()), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
