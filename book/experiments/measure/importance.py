"""Measure whether a word that gets much attention also matters: compare attention with the effect of hiding it."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import glassformer as gf
from glassformer.corpus.tasks import Example
from glassformer.watch.inspection import head_study, outputs
from laboratory import arguments, say, trained, write
from quality import splits

SENTENCES = 300
POINTS = 150
"""The number of steps of the first seed that are kept for a picture."""
MATTERS = 0.1
"""A step depends on its source noticeably when hiding some token costs more than this, in nats."""
GUESSES = ("cross", "last layer", "rollout", "gradient", "cross, hidden there")
Matrix = NDArray[np.float64]


def main() -> None:
    asked = arguments(__doc__)
    limit = asked.limit or SENTENCES
    results: dict[str, list[Any]] = {"words": [], "heads": [], "heads_rank": []}
    points: list[dict[str, Any]] = []
    for seed in asked.seeds:
        translator, examples = trained("demo", seed), splits(seed, limit)["test"]
        steps = [step for example in examples for step in studied(translator, example)]
        results["words"].append(summary(steps))
        if seed == asked.seeds[0]:
            points = [kept(step) for step in steps[:: max(1, len(steps) // POINTS)]]
        heads = list(studied_heads(translator, examples))
        results["heads"].append(heads)
        results["heads_rank"].append(ranks_of_heads(heads))
        say(f"seed {seed}: {results['words'][-1]}, {results['heads_rank'][-1]}")
    write("importance", {"sentences": limit, **results, "points": points}, asked)


# Words: what the model looks at while it writes a token, and the cost of hiding it.


def studied(translator: gf.Translator, example: Example) -> list[dict[str, Any]]:
    """Return, for each token that greedy search writes, the attention to each source token and the effect of hiding it."""
    bundle, model = translator.bundle, translator.model
    source = [*bundle.source_tokenizer.encode(example.source), model.config.eos_id]
    [translation] = translator.translate([example.source], beam_size=1)
    output = [*bundle.target_tokenizer.encode(translation.text), model.config.eos_id]
    guesses = looks(model, source, output)
    everywhere = effects(model, source, output, ("encoder.layers.*.self_attention", "decoder.layers.*.cross_attention"))
    crossing = effects(model, source, output, ("decoder.layers.*.cross_attention",))
    linked = [*example.origins, 0] if translation.text == example.target else [0] * len(output)
    return [
        {
            "token": bundle.target_tokenizer.tokens([output[step]])[0],
            "effect": everywhere[step],
            "effect, hidden there": crossing[step],
            "origins": linked[step],
            **{name: weights[step] for name, weights in guesses.items()},
        }
        for step in range(len(output))
    ]


def looks(model: gf.Transformer, source: Sequence[int], output: Sequence[int]) -> dict[str, Matrix]:
    """Return guesses at the importance of source tokens (columns) for each token of the output (rows).

    "cross" is the mean over the heads and layers of cross-attention, "last layer" that over the heads of the last one;
    "rollout" follows the encoder's attention back to the words; "gradient" is |gradient · embedding| of log p.
    """
    with gf.record(model, ["*.weights", "source.embedding"]) as trace:
        logits = model(torch.tensor([source]), torch.tensor([[model.config.bos_id, *output[:-1]]]))
    layers = [trace[f"decoder.layers.{i}.cross_attention.weights"][0].mean(0) for i in range(len(model.decoder.layers))]
    cross = torch.stack(layers).mean(0)
    rolled = torch.eye(len(source))
    for i in range(len(model.encoder.layers)):
        weights = trace[f"encoder.layers.{i}.self_attention.weights"][0].mean(0)
        rolled = (weights + torch.eye(len(source))) / 2 @ rolled
    given = logits[0].log_softmax(-1)[range(len(output)), list(output)]
    embedding = trace["source.embedding"]
    gradients = [torch.autograd.grad(one, embedding, retain_graph=True)[0][0] for one in given]
    gradient = torch.stack([(each * embedding[0]).sum(-1).abs() for each in gradients])
    guesses = {"cross": cross, "last layer": layers[-1], "rollout": cross @ rolled, "gradient": gradient}
    return {name: weights.detach().double().numpy() for name, weights in guesses.items()}


@torch.no_grad()
def effects(model: gf.Transformer, source: Sequence[int], output: Sequence[int], attentions: Sequence[str]) -> Matrix:
    """Return by how many nats log p of each output token (rows) falls when each source token (columns) is hidden.

    All copies of the sentence run side by side; in each copy, a different token is excluded from the keys.
    """
    S = len(source)
    hidden = torch.cat([torch.zeros(1, S, dtype=torch.bool), torch.eye(S, dtype=torch.bool)])[:, None, None]

    def hide(scores: Tensor) -> Tensor:
        return scores.masked_fill(hidden, -torch.inf)

    target_input = torch.tensor([[model.config.bos_id, *output[:-1]]]).expand(S + 1, -1)
    with gf.intervene(model, {f"{name}.scores": hide for name in attentions}):
        log_probs = model(torch.tensor([source]).expand(S + 1, -1), target_input).log_softmax(-1)
    given = log_probs.gather(-1, torch.tensor(output).expand(S + 1, -1)[..., None])[..., 0].double()
    return (given[0] - given[1:]).T.numpy()


def summary(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how well each guess finds what matters.

    "rank" is the mean of the steps' rank correlations, "overall" the rank correlation over all (step, token) together,
    "first" the share of steps, in %, whose token with the highest guess is the most important one. "chance" is the
    share that random guessing would find. Only "steps" and "helpful_when_hidden" include the steps that do not depend
    on their source noticeably.
    """
    strong = [step for step in steps if step["effect"].max() > MATTERS]
    found = {}
    for name in GUESSES:
        key, against = (name, "effect") if name in steps[0] else ("cross", "effect, hidden there")
        found[name] = {
            "rank": fmean(spearman(step[key], step[against]) for step in strong),
            "overall": spearman(*(np.concatenate([step[one] for step in strong]) for one in (key, against))),
            "first": 100 * fmean(step[key].argmax() == step[against].argmax() for step in strong),
        }
    linked = [step for step in strong if step["origins"]]
    return {
        "steps": len(steps),
        "strong": len(strong),
        "guesses": found,
        "chance": 100 * fmean(1 / len(step["effect"]) for step in strong),
        "most_important_is_origin": 100
        * fmean(bool(step["origins"] >> int(step["effect"].argmax()) & 1) for step in linked),
        "most_attended_is_origin": 100
        * fmean(bool(step["origins"] >> int(step["cross"].argmax()) & 1) for step in linked),
        "little_attention_great_effect": great(strong),
        "rank_beside_origin": fmean(beside(step) for step in linked if len(beside_origin(step)) > 2),
        "cost_of_first": fmean(float(step["effect"].max()) for step in strong),
        "cost_of_first_hidden_there": fmean(float(step["effect, hidden there"].max()) for step in strong),
        "helpful_when_hidden": 100 * fmean(float((step["effect"] < -MATTERS).any()) for step in steps),
    }


def beside(step: dict[str, Any]) -> float:
    """Return the rank correlation of attention and effect among the tokens that the written word does not come from."""
    others = beside_origin(step)
    return spearman(step["cross"][others], step["effect"][others])


def beside_origin(step: dict[str, Any]) -> list[int]:
    """Return the places of the source tokens that the written word does not come from."""
    return [place for place in range(len(step["effect"])) if not step["origins"] >> place & 1]


def great(steps: Sequence[dict[str, Any]]) -> float:
    """Return the share, in %, of tokens with an effect above 1 nat that get less attention than an even share."""
    small = [
        bool(weight < 1 / len(step["cross"]))
        for step in steps
        for weight, effect in zip(step["cross"], step["effect"], strict=True)
        if effect > 1
    ]
    return 100 * fmean(small)


def kept(step: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a step that a picture needs."""
    return {
        "token": step["token"],
        "attention": [round(float(weight), 4) for weight in step["cross"]],
        "effect": [round(float(effect), 4) for effect in step["effect"]],
        "origins": [place for place in range(len(step["effect"])) if step["origins"] >> place & 1],
    }


def spearman(one: Matrix, other: Matrix) -> float:
    """Return the rank correlation of two rows of numbers; equal numbers share the mean of their ranks."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def ranks(values: Matrix) -> Matrix:
    """Return the rank of each number, starting with the smallest; equal numbers get the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


# Heads: how sharply each looks, and the cost of taking it away.


def studied_heads(translator: gf.Translator, examples: Sequence[Example]) -> list[dict[str, Any]]:
    """Return, for each head, how sharply it looks and by how much log p of a reference falls without it."""
    model, bundle = translator.model, translator.bundle
    eos_id = model.config.eos_id
    given = [
        ([*bundle.source_tokenizer.encode(one.source), eos_id], [*bundle.target_tokenizer.encode(one.target), eos_id])
        for one in examples
    ]
    largest, entropy = sharpness(model, given)
    _, *effects = head_study(model, lambda: {"log_prob": fmean(one.log_prob for one in outputs(model, given))})
    names = {"encoder": "encoder.layers.{}.self_attention", "decoder": "decoder.layers.{}.self_attention"}
    names["cross"] = "decoder.layers.{}.cross_attention"
    return [
        {
            "set": effect.which,
            "layer": effect.layer,
            "head": effect.head,
            "largest": largest[names[effect.which].format(effect.layer)][effect.head],
            "entropy": entropy[names[effect.which].format(effect.layer)][effect.head],
            "effect": -effect.changes["log_prob"],
        }
        for effect in effects
    ]


@torch.no_grad()
def sharpness(model: gf.Transformer, given: Sequence[Any]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the mean largest weight, and the mean entropy in nats, of each head of each attention."""
    largest: dict[str, list[Tensor]] = {}
    entropy: dict[str, list[Tensor]] = {}
    for source, output in given:
        with gf.record(model, "*.weights") as trace:
            model(torch.tensor([source]), torch.tensor([[model.config.bos_id, *output[:-1]]]))
        for point, weights in trace.items():
            name = point.removesuffix(".weights")
            largest.setdefault(name, []).append(weights[0].amax(-1))
            entropy.setdefault(name, []).append(torch.special.entr(weights[0]).sum(-1))
    return _means(largest), _means(entropy)


def _means(rows: dict[str, list[Tensor]]) -> dict[str, list[float]]:
    """Return the mean over all rows of all sentences, for each head."""
    return {name: torch.cat(some, dim=-1).mean(-1).tolist() for name, some in rows.items()}


def ranks_of_heads(heads: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the rank correlation of sharpness and effect, for all heads and for the heads of each attention."""
    found = {}
    for which in ("all", "encoder", "decoder", "cross"):
        some = [head for head in heads if which in ("all", head["set"])]
        largest, entropy, effect = (np.array([head[key] for head in some]) for key in ("largest", "entropy", "effect"))
        found[which] = {"largest": spearman(largest, effect), "entropy": spearman(entropy, effect)}
    return found


main()
