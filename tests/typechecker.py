"""What checks every call of glassformer during the tests: beartype, and jaxtyping's shapes through it."""

from beartype import BeartypeConf, beartype

# An int is welcome where a float is expected, as PEP 484 and mypy have it.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
