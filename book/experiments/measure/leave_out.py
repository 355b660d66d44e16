"""Measure what is lost when the feed-forward network, the residual connection or the norm is left out."""

from laboratory import arguments, curve, say, trained, write

MODELS = ("small", "small-no-feed-forward", "small-no-residual", "small-no-norm")


def main() -> None:
    asked = arguments(__doc__)
    curves = {name: [] for name in MODELS}
    for seed in asked.seeds:
        for name in MODELS:
            trained(name, seed)
            curves[name].append(curve(name, seed))
            say(f"{name}, seed {seed}: {curves[name][-1][-1]}")
    write("leave_out", {"models": curves}, asked)


main()
