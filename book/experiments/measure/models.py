"""Train every model that the experiments look at: 33 trainings, about an hour and a half on two cores.

They can also be left to the experiments, each of which trains those that it misses.
"""

from laboratory import SEEDS, VARIANTS, trained

for name in VARIANTS:
    for seed in SEEDS:
        trained(name, seed)
