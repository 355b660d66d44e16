"""The type checker of calls during the tests: beartype, which also checks jaxtyping's shapes."""

from beartype import BeartypeConf, beartype

# An int is allowed for a float, as in PEP 484 and mypy.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
