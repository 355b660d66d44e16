"""Measure pre-norm and post-norm, with and without warm-up, in models of 6 + 6 layers that learn to copy."""

from glassformer.watch.inspection.split_study import split_examples, split_measure
from laboratory import VARIANTS, arguments, curve, say, trained, write

MODELS = ("post-warm-up", "post", "pre-warm-up", "pre")


def main() -> None:
    asked = arguments(__doc__)
    curves: dict[str, list] = {name: [] for name in MODELS}
    final: dict[str, list[float]] = {name: [] for name in MODELS}
    for seed in asked.seeds:
        for name in MODELS:
            translator = trained(name, seed)
            examples = split_examples(translator.bundle, "test", limit=asked.limit)
            curves[name].append(curve(name, seed))
            final[name].append(split_measure(translator.model, translator.bundle, examples)()["exact"])
            say(f"{name}, seed {seed}: {final[name][-1]} %")
    settings = {name: list(VARIANTS[name].settings) for name in MODELS}
    write("norms", {"settings": settings, "curves": curves, "final": {"exact": final}}, asked)


main()
