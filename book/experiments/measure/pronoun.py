"""Measure which heads decide what "it" is: switch off each head in turn, then the strongest together; see where they look."""

from collections.abc import Mapping
from typing import Any

import torch

import glassformer as gf
from choices import Choices, attentions, pronouns, share, task_examples
from glassformer.corpus.tasks import Example
from glassformer.watch.inspection import head_study, without_heads
from glassformer.watch.inspection.split_study import split_measure
from laboratory import arguments, say, trained, write


def measured(translator: gf.Translator, examples: list[Example], *, whole_sentences: bool) -> dict[str, Any]:
    """Return the effect on the pronoun of each head, the strongest heads together, and all heads of an attention.

    With `whole_sentences`, also the effect on the whole translation, which takes longer.
    """
    model, choices = translator.model, pronouns(translator, examples)
    split = split_measure(model, translator.bundle, examples)
    rows = [
        effect.row()
        for effect in head_study(model, lambda: {**(split() if whole_sentences else {}), **pronoun(choices)})
    ]
    whole, heads = {**split(), **pronoun(choices)}, sorted(rows[1:], key=lambda row: row["pronoun margin"])
    together: dict[str, list[int]] = {}
    removed = []
    for row in heads[:6]:
        end = "cross_attention" if row["set"] == "cross" else "self_attention"
        stack = "encoder" if row["set"] == "encoder" else "decoder"
        together.setdefault(f"{stack}.layers.{row['layer']}.{end}", []).append(row["head"])
        added = {"set": row["set"], "layer": row["layer"], "head": row["head"]}
        removed.append(added | pronoun(choices, without_heads(together)))
    everything = range(model.config.heads)
    blocks = {
        name: pronoun(choices, without_heads({name: everything}))
        for name in attentions(model, "encoder", "decoder", "cross")
    }
    blocks["all of the encoder"] = pronoun(
        choices, without_heads(dict.fromkeys(attentions(model, "encoder"), everything))
    )
    return {
        "sentences": len(examples),
        "whole": {name: whole[name] for name in WHOLE if name in whole},
        "heads": [{name: row[name] for name in ("set", "layer", "head", *WHOLE) if name in row} for row in rows[1:]],
        "removed": removed,
        "blocks": blocks,
    }


WHOLE = ("exact", "pairs", "decided", "margin", "pronoun", "pronoun margin", "animal", "place")


def pronoun(choices: Choices, edits: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Return how often the pronoun is right, in %: in all sentences, where it is the animal, where it is the place."""
    margins = choices.margins(edits)
    members = {member: share(margins[choices.of(member)]) for member in ("animal", "place")}
    return {"pronoun": share(margins), "pronoun margin": margins.mean().item(), **members}


def looks(choices: Choices) -> dict[str, Any]:
    """Return each head's mean weights by role: in the decoder when it writes the pronoun, in the encoder from "it".

    In the decoder's self-attention, the roles are the French phrases of the animal and of the place.
    """
    rows = torch.arange(len(choices.each))
    it = choices.at("it").int().argmax(1)
    trace = choices.trace("*.weights")
    roles = {role: choices.at(role) for role in choices.each[0].roles}
    written = {role: choices.written(role) for role in ("animal", "place")}
    found: dict[str, Any] = {}
    for name in attentions(choices.model, "encoder", "decoder", "cross"):
        weights = trace[f"{name}.weights"][rows, :, it if name.startswith("encoder") else choices.last]
        cells = written if name.startswith("decoder") and ".self_" in name else roles
        found[name] = {
            member: [
                {role: (head * where)[choices.of(member)].sum(1).mean().item() for role, where in cells.items()}
                for head in weights.unbind(1)
            ]
            for member in ("animal", "place")
        }
    return found


namespace = arguments(__doc__)
results = {}
for seed in namespace.seeds:
    translator = trained("demo", seed)
    found = {}
    for kind in ("unequal", "equal"):
        say(f"seed {seed}: {kind}")
        examples = task_examples("coreference", seed, kind=kind, limit=namespace.limit)
        found[kind] = measured(translator, examples, whole_sentences=kind == "unequal")
        if kind == "unequal":
            found["looks"] = looks(pronouns(translator, examples))
    results[str(seed)] = found
write("pronoun", {"results": results}, namespace)
