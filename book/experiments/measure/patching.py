"""Patching "tired" into "wide", layer by layer: how much of the choice of the pronoun comes back, by role and point."""

import torch
from torch import Tensor

import glassformer as gf
from choices import Choices, attentions, pronouns, task_examples
from laboratory import arguments, say, trained, write


def patched(choices: Choices, point: str, cells: Tensor, donor: Tensor, heads: list[int] | None = None) -> Tensor:
    """Return the margins with these cells of a point taken from the other sentence of the pair."""

    def edit(x: Tensor) -> Tensor:
        if heads is None:
            return torch.where(cells[..., None], donor, x)
        chosen = torch.zeros(x.shape[1], dtype=torch.bool)
        chosen[heads] = True
        return torch.where(cells[:, None, :, None] & chosen[:, None, None], donor, x)

    return choices.margins({point: edit})


def points(model: gf.Transformer, stack: str) -> list[str]:
    """Return the residual stream's points in one stack: its input and the output of each sub-layer."""
    normed = [name for name in gf.points(model) if name.startswith(stack) and name.endswith(".normed")]
    return ["source.input" if stack == "encoder" else "target.input", *normed]


def measured(choices: Choices) -> dict[str, object]:
    """Return the mean effect, in both directions, over the pairs that the model gets right: 0 is nothing, 1 is all."""
    model, own = choices.model, choices.margins()
    partner = torch.arange(len(own)).view(-1, 2).flip(1).flatten()
    fair = (own > 0) & (own[partner] > 0)

    def effects(margins: Tensor) -> dict[str, float]:
        effect = (own - margins) / (
            own + own[partner]
        )  # 0: the margin stays; 1: it becomes −own[partner], the partner's own preference
        members = {f"into {kind}": choices.of(kind) & fair for kind in ("animal", "place")}
        return {"all": effect[fair].mean().item()} | {name: effect[who].mean().item() for name, who in members.items()}

    encoder, decoder = points(model, "encoder"), points(model, "decoder")
    heads = [f"{name}.heads" for name in attentions(model, "decoder", "cross")]
    trace = choices.trace([*encoder, *decoder, *heads])
    last = torch.zeros(choices.target.shape, dtype=torch.bool)
    last[torch.arange(len(own)), choices.last] = True
    animal, place = choices.written("animal"), choices.written("place")
    rest = (torch.arange(last.shape[1]) < choices.last[:, None]) & ~animal & ~place
    rows = {"animal": animal, "place": place, "rest": rest, "last": last}
    return {
        "sentences": len(own),
        "fair": int(fair.sum()),
        "encoder": {
            point: {
                role: effects(patched(choices, point, choices.at(role), trace[point][partner]))
                for role in choices.each[0].roles
            }
            for point in encoder
        },
        "decoder": {
            point: {
                name: effects(patched(choices, point, cells, trace[point][partner])) for name, cells in rows.items()
            }
            for point in decoder
        },
        "heads": {
            point: [
                effects(patched(choices, point, last, trace[point][partner], [head]))
                for head in range(model.config.heads)
            ]
            for point in heads
        },
    }


namespace = arguments(__doc__)
results = {}
for seed in namespace.seeds:
    say(f"seed {seed}")
    examples = task_examples("coreference", seed, kind="unequal", limit=namespace.limit)
    results[str(seed)] = measured(pronouns(trained("demo", seed), examples))
write("patching", {"results": results}, namespace)
