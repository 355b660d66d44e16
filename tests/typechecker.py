"""The type checker for calls during tests: beartype, which also checks jaxtyping's shapes."""

from beartype import BeartypeConf, beartype

# Like PEP 484 and mypy, accept an int where a float is expected.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
