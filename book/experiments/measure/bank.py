"""Measure where the sense of an ambiguous word is read: hidden words, blanked words, heads off, and its vectors."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

import glassformer as gf
from choices import Choices, attentions, hidden, senses, share, task_examples
from glassformer.corpus.tasks.world.ambiguous import AMBIGUOUS
from glassformer.watch.inspection import combine, heads_of, without_heads
from laboratory import arguments, say, trained, write

WORDS = tuple(AMBIGUOUS)


def by_word(choices: Choices, margins: Tensor) -> dict[str, float]:
    """Return the share of sentences whose right sense is the more probable one, in %, for each word and for all."""
    return {word: share(margins[choices.of(word)]) for word in WORDS} | {"all": share(margins)}


def blanked(choices: Choices) -> Mapping[str, Any]:
    """Return the edit that blanks the written words that the other sentence of the pair does not have."""
    cells = choices.written("telling")[..., None]
    return {"target.embedding": lambda x: x.masked_fill(cells, 0.0)}


def hiding(choices: Choices) -> dict[str, Any]:
    """Return the share of right senses with words hidden: at once, and one by one."""
    encoder, cross = (attentions(choices.model, which) for which in ("encoder", "cross"))
    where = {"nowhere": [], "encoder": encoder, "cross": cross, "both": encoder + cross}
    found: dict[str, Any] = {}
    for written, blank in (("read", {}), ("blanked", blanked(choices))):
        found[written] = {
            role: {
                place: by_word(choices, choices.margins(combine(hidden(names, choices.at(role)), blank)))
                for place, names in where.items()
            }
            for role in ("telling", "word")
        }
    return found


def one_by_one(choices: Choices) -> Tensor:
    """Return the effect of each source word, (sentence, position): by how many nats the margin falls without its key.

    The written words that tell the sense are blanked, so that the source alone decides.
    """
    names, blank = attentions(choices.model, "encoder", "cross"), blanked(choices)
    whole = choices.margins(blank)
    columns = []
    for position in range(choices.source.shape[1]):
        key = torch.zeros(choices.source.shape, dtype=torch.bool)
        key[:, position] = True
        columns.append(whole - choices.margins(combine(hidden(names, key), blank)))
    return torch.stack(columns, 1)


def by_role(choices: Choices, falls: Tensor) -> dict[str, Any]:
    """Return the mean fall of the margin by role for each word, and word by word for the sentences with "bank"."""
    whole = choices.margins(blanked(choices))[:, None]
    found: dict[str, Any] = {}
    for word in WORDS:
        chosen = choices.of(word)[:, None]
        found[word] = {
            role: {
                "fall": falls[cells].mean().item(),
                "right": share((whole - falls)[cells]),
            }
            for role in ("telling", "word", "other")
            if (cells := choices.at(role) & chosen).any()
        }
    return {"words": found, "bank": _bank(choices, falls)}


def _bank(choices: Choices, falls: Tensor) -> dict[str, float]:
    """Return the mean fall for each word of "… swam across the river to get to the bank"."""
    roles: dict[str, list[float]] = {}
    for choice, row in zip(choices.each, falls.tolist(), strict=True):
        if choice.kind != "bank":
            continue
        verb, place, bank = choice.roles["telling"][0], choice.roles["telling"][-1], choice.roles["word"][0]
        named = {verb: "verb", verb + 1: "across", place: "place", bank: "bank"}
        named |= dict.fromkeys(range(place + 1, place + 4), "to get to")
        named |= {len(choice.words) - 2: "full stop", len(choice.words) - 1: "<eos>"}
        for position in range(len(choice.words)):
            role = named.get(position) or ("before the verb" if position < verb else "other")
            roles.setdefault(role, []).append(row[position])
    return {role: sum(each) / len(each) for role, each in roles.items()}


def correlations(choices: Choices, falls: Tensor) -> dict[str, Any]:
    """Return how well attention weights predict the falls, for "bank" and for all, by head and for the mean of the heads.

    The weights are the encoder's, from the ambiguous word, and cross-attention's as its translation begins; the word
    itself is left out. "rank" is Spearman's correlation over the words of a sentence, "top" in how many sentences, in
    %, the word with most weight is the word with the largest fall; both are means over sentences. "telling" is the
    weight on the words that tell the sense.
    """
    trace, rows = choices.trace("*.weights"), torch.arange(len(choices.each))
    word = choices.at("word").int().argmax(1)
    bank, told = choices.of("bank"), choices.at("telling").any(1)
    found: dict[str, Any] = {}
    for name in attentions(choices.model, "encoder", "cross"):
        weights = trace[f"{name}.weights"][rows, :, choices.last if ".cross_" in name else word]
        weights = torch.cat([weights, weights.mean(1, keepdim=True)], 1)  # the last row is the mean of the heads
        ranks, tops = torch.zeros(weights.shape[:2]), torch.zeros(weights.shape[:2])
        for row, choice in enumerate(choices.each):
            others = [place for place in range(len(choice.words)) if place != word[row]]
            for head in range(weights.shape[1]):
                ranks[row, head] = _spearman(weights[row, head, others], falls[row, others])
            tops[row] = (weights[row][:, others].argmax(1) == falls[row, others].argmax()).float()
        telling = (weights * choices.at("telling")[:, None]).sum(-1)
        found[name] = {
            which: {
                "rank": ranks[chosen].mean(0).tolist(),
                "top": (100 * tops[chosen].mean(0)).tolist(),
                "telling": telling[chosen].mean(0).tolist(),
            }
            for which, chosen in (("bank", bank), ("all", told))
        }
    even = torch.tensor([len(one.roles["telling"]) / len(one.words) for one in choices.each])
    return {"attentions": found, "even": {"bank": even[bank].mean().item(), "all": even[told].mean().item()}}


def looks(choices: Choices) -> dict[str, Any]:
    """Return the mean weights of each head of the encoder from "bank" to the verb and to the place."""
    rows = torch.tensor([row for row, one in enumerate(choices.each) if one.kind == "bank"])
    trace = choices.trace("encoder.*.weights")
    places = {
        "verb": torch.tensor([choices.each[row].roles["telling"][0] for row in rows]),
        "place": torch.tensor([choices.each[row].roles["telling"][-1] for row in rows]),
    }
    bank = choices.at("word").int().argmax(1)[rows]
    return {
        name: {word: trace[f"{name}.weights"][rows, :, bank, place].mean(0).tolist() for word, place in places.items()}
        for name in attentions(choices.model, "encoder")
    }


def _spearman(one: Tensor, other: Tensor) -> float:
    ranks = torch.stack([one.argsort().argsort(), other.argsort().argsort()]).float()
    return torch.corrcoef(ranks)[0, 1].item()


def ablations(choices: Choices) -> dict[str, Any]:
    """Return the share of right senses, and the margin, with each head off, and with all heads of an attention off."""
    rows = []
    for which in ("encoder", "decoder", "cross"):
        for name, head in heads_of(choices.model, which):
            margins = choices.margins(without_heads({name: [head]}))
            means = {"bank": margins[choices.of("bank")].mean().item(), "all": margins.mean().item()}
            place = {"set": which, "layer": int(name.split(".")[2]), "head": head}
            rows.append({**place, "right": by_word(choices, margins), "margin": means})
    encoder, cross = (attentions(choices.model, which) for which in ("encoder", "cross"))
    everything = range(choices.model.config.heads)
    blocks = {
        name: by_word(choices, choices.margins(without_heads(dict.fromkeys(names, everything))))
        for name, names in {"encoder": encoder, **{one: [one] for one in encoder + cross}}.items()
    }
    whole = choices.margins()
    return {
        "whole": {"bank": whole[choices.of("bank")].mean().item(), "all": whole.mean().item()},
        "heads": rows,
        "blocks": blocks,
    }


def vectors(choices: Choices) -> dict[str, dict[str, float]]:
    """Return how often a vector of the ambiguous word is nearest to the mean of its own sense, in %, at each point.

    The means are taken over all other pairs; a tie counts as one half. Pairs of the same two senses are compared.
    """
    normed = [name for name in gf.points(choices.model) if name.startswith("encoder.") and name.endswith(".normed")]
    points = ["source.embedding", "source.input", *normed]
    trace, rows = choices.trace(points), torch.arange(len(choices.each))
    word = choices.at("word").int().argmax(1)
    sense = [(one.kind, one.sense) for one in choices.each]
    found: dict[str, dict[str, float]] = {}
    for point in points:
        vector = trace[point][rows, word].double()
        hits: dict[str, list[float]] = {}
        for first in range(0, len(vector), 2):
            pair = (first, first + 1)
            kind = choices.each[first].kind
            others = [i for i in rows.tolist() if choices.each[i].kind == kind and i not in pair]
            mine = [[i for i in others if sense[i] == sense[member]] for member in pair]
            if not all(mine):
                continue
            means = torch.stack([vector[each].mean(0) for each in mine])
            for side, member in enumerate(pair):
                own, other = ((vector[member] - means[s]).norm().item() for s in (side, 1 - side))
                hits.setdefault(kind, []).append(0.5 if abs(own - other) < 1e-9 else float(own < other))
        found[point] = {kind: 100 * sum(each) / len(each) for kind, each in hits.items()}
        if found[point]:  # with a small --limit, a sense may have no second pair to compare with
            found[point]["all"] = sum(found[point].values()) / len(found[point])
    return found


namespace = arguments(__doc__)
results = {}
for seed in namespace.seeds:
    say(f"seed {seed}")
    translator = trained("demo", seed)
    examples = [
        example
        for word in WORDS
        for example in task_examples("senses", seed, kind=word, limit=namespace.limit and namespace.limit // len(WORDS))
    ]
    choices = senses(translator, examples)
    falls = one_by_one(choices)
    results[str(seed)] = {
        "sentences": len(examples),
        "hidden": hiding(choices),
        "prefix of the partner": by_word(choices, senses(translator, examples, prefix_of_partner=True).margins()),
        "one by one": by_role(choices, falls),
        "correlations": correlations(choices, falls),
        "looks": looks(choices),
        "ablations": ablations(choices),
        "vectors": vectors(choices),
    }
write("bank", {"results": results}, namespace)
