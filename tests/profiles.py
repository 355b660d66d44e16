"""The number of examples that hypothesis tries; a profile tries the same examples in every run.

`make quick` tries a tenth of the examples, `make test` a quarter, and `make test-all` and a plain `pytest` all.
`--hypothesis-profile=explore` looks for new examples.
"""

from hypothesis import HealthCheck, Phase, settings

__all__ = ["scaled"]

# Function-scoped fixtures set a default dtype and a random seed, which all examples of a test may share.
SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}
ALL = 100

settings.register_profile("quick", max_examples=ALL // 10, derandomize=True, **SHARED)
settings.register_profile("some", max_examples=ALL // 4, derandomize=True, **SHARED)
settings.register_profile("all", max_examples=ALL, derandomize=True, **SHARED)
# A failure ends the test at once, without a search for the smallest failing example.
settings.register_profile("mutations", settings.get_profile("all"), phases=[Phase.explicit, Phase.generate])
settings.register_profile("explore", max_examples=5 * ALL, **SHARED)
settings.load_profile("all")


def scaled(examples: int) -> settings:
    """Return settings for this number of examples in `make test-all`, and the profile's share elsewhere."""
    return settings(max_examples=max(2, examples * settings().max_examples // ALL))
