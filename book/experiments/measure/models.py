"""Train every model of the experiments: 33 training runs, about an hour and a half on two cores.

Each experiment also trains the models that it needs and does not find.
"""

from laboratory import SEEDS, VARIANTS, trained

for name in VARIANTS:
    for seed in SEEDS:
        trained(name, seed)
