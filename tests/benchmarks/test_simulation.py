import json
import math
from pathlib import Path

import pytest
from benchmarks.simulation import (
    Cluster,
    Network,
    Training,
    fitted,
    ring_seconds,
    simulate,
    simulate_training,
    young_interval,
)

from benchmarks import results, simulation, two_nodes


def test_without_failures_and_spread_the_makespan_has_a_closed_form():
    cluster = Cluster(workers=7, seconds_per_part=5, start=3, stop=2, latency=0.25)
    for parts in (1, 7, 22):
        assert simulate(cluster, [1.0] * parts).makespan == 3 + math.ceil(parts / 7) * (5 + 4 * 0.25) + 2


def test_a_worker_waits_between_its_parts():
    assert simulate(Cluster(workers=1, seconds_per_part=5, gap=0.5), [1.0] * 3).makespan == 3 * 5 + 2 * 0.5


def test_a_slow_driver_or_store_bounds_the_makespan():
    driver = simulate(Cluster(workers=50, seconds_per_part=1, dispatch=0.5), [1.0] * 101)
    assert driver.makespan == pytest.approx(101 * 0.5 + 1)
    store = simulate(Cluster(workers=50, seconds_per_part=0, requests_per_second=8), [1.0] * 100)
    assert store.makespan == pytest.approx(400 / 8)
    assert store.busiest <= 9


@pytest.mark.parametrize("seed", range(5))
def test_every_part_is_completed_exactly_once_despite_failures(seed):
    cluster = Cluster(workers=11, seconds_per_part=5, spread=0.4, restart={"actor": 2, "node": 7}, mtbf=40)
    found = simulate(cluster, [1.0] * 103, seed)
    assert found.failures > 10
    assert dict(found.done) == dict.fromkeys(range(103), 1)
    assert simulate(cluster, [1.0] * 103, seed) == found
    assert simulate(cluster, [1.0] * 103, seed + 1) != found


def test_waste_and_makespan_grow_with_the_rate_of_failures():
    runs = []
    for mtbf in (math.inf, 400, 100, 25):
        cluster = Cluster(workers=5, seconds_per_part=5, restart={"actor": 2, "node": 7}, mtbf=mtbf)
        several = [simulate(cluster, [1.0] * 101, seed) for seed in range(10)]
        runs.append((sum(run.wasted for run in several), sum(run.makespan for run in several)))
    assert runs[0][0] == 0
    assert runs == sorted(set(runs))


def test_a_kill_at_a_known_moment_costs_its_part_and_the_restart():
    cluster = Cluster(workers=1, seconds_per_part=5, restart={"actor": 2, "node": 7})
    found = simulate(cluster, [1.0] * 3, kills=[(8, "actor"), (11, "node")])
    assert found.wasted == 3 + 1
    assert found.makespan == 11 + 7 + 2 * 5


def test_the_fit_finds_mean_and_spread_of_the_times_that_are_drawn():
    run = simulation._Run(Cluster(workers=1, seconds_per_part=5, spread=0.3), [1.0], 0, None)
    mean, spread = fitted([run._service() for _ in range(20_000)])
    assert mean == pytest.approx(5, rel=0.01)  # the tolerance is four standard errors
    assert spread == pytest.approx(0.3, rel=0.02)


def test_training_without_failures_only_pays_for_checkpoints():
    training = Training(work=1000, interval=300, checkpoint=5, restart=60, mtbf=math.inf)
    assert simulate_training(training) == (1000 + 4 * 5, 0)


def test_youngs_interval_loses_less_than_a_third_or_three_times_of_it():
    best = young_interval(5, 4000)
    means = [
        sum(
            simulate_training(Training(work=1e5, interval=factor * best, checkpoint=5, restart=60, mtbf=4000), seed)[0]
            for seed in range(30)
        )
        for factor in (1 / 3, 1, 3)
    ]
    assert means[1] < min(means[0], means[2])


def test_the_times_of_a_cluster_are_those_of_the_observed_attempts():
    attempts = [["0-f-0-10", 4, 9], ["0-f-10-20", 6, 11], ["0-f-20-30", 9.5, None], ["0-f-30-40", 11.5, 16.5]]
    attempts += [["0-f-20-30", 15, 20]]
    seen = {"part_bytes": 10, "attempts": attempts, "kills": [[12, "actor"]], "makespan": 21.5, "driver": 0.1}
    cluster = simulation.calibrated(seen)
    assert (cluster.seconds_per_part, cluster.spread) == (pytest.approx(5), pytest.approx(0))
    assert (cluster.start, cluster.gap, cluster.restart["actor"], cluster.stop) == (5, 0.5, 3, 1.5)
    assert cluster.dispatch == 0.1


def test_kills_are_drawn_at_the_rate_of_the_seed():
    kills = two_nodes.kills_of(1, mtbf=60, until=60_000)
    assert kills == two_nodes.kills_of(1, mtbf=60, until=60_000)
    assert len(kills) == pytest.approx(2000, abs=4 * math.sqrt(2000))


def test_a_ring_sends_each_number_about_twice():
    """Each of n ranks sends 1/n of the numbers 2(n − 1) times."""
    network = Network(bandwidth=1e9, latency=1e-5)
    assert ring_seconds(4e9, 2, network) == pytest.approx(4.0 + 2e-5)
    assert ring_seconds(4e9, 5, network) == pytest.approx(8 * (0.8 + 1e-5))
    assert ring_seconds(4e9, 1, network) == 0


@pytest.mark.slow
def test_the_page_and_the_stored_figures_are_those_of_the_simulation():
    stored = results.read(simulation.NAME)
    given = simulation.options().parse_args([])
    assert vars(given) == stored["assumptions"]
    observed = results.read(two_nodes.NAME)
    assert json.loads(json.dumps(simulation.predictions(observed))) == stored["validation"]
    cluster = simulation.calibrated(observed["calibration"])
    for row in stored["translation"]:
        if row["parts"] <= 1000:
            how = (simulation.LINES, row["nodes"], row["lines_per_part"], given, cluster)
            assert simulation.plan_translation(*how) == row
    assert [simulation.plan_training(gpus, given) for gpus in simulation.GPUS] == stored["training"]
    text = Path(simulation.PAGE).read_text(encoding="utf-8")
    assert simulation.page(text, simulation.tables(stored)) == text
    assert all(table in text for table in simulation.tables(stored).values())
