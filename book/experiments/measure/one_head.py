"""Measure one wide head against eight narrow ones, with the same total width and the same number of parameters."""

from laboratory import VARIANTS, arguments, curve, say, trained, write
from quality import per_seed, quality, splits

MODELS = ("short", "one-head")


def main() -> None:
    asked = arguments(__doc__)
    found: dict[str, list] = {name: [] for name in MODELS}
    parameters: dict[str, list[int]] = {name: [] for name in MODELS}
    for seed in asked.seeds:
        examples = splits(seed, asked.limit)
        for name in MODELS:
            translator = trained(name, seed)
            with VARIANTS[name].change(translator.model):
                found[name].append(quality(translator, examples))
            parameters[name].append(sum(weight.numel() for weight in translator.model.parameters()))
            say(f"{name}, seed {seed}: {found[name][-1]['exact']}")
    assert parameters["short"] == parameters["one-head"], "a fair comparison needs the same number of parameters"
    models = {
        name: {
            **per_seed(found[name]),
            "curve": [curve(name, seed) for seed in asked.seeds],
            "parameters": parameters[name],
        }
        for name in MODELS
    }
    write("one_head", {"models": models}, asked)


main()
