"""The page's modules in Node: the tests of web/, and tests that also need Python."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import traces
from cuts import every_character, tokenizers
from glassformer.watch.explorer.payload import rounded
from glassformer.watch.inspection import MISTAKES
from models import random_model, with_new_activations
from traces import CHANGES, KINDS, SOURCE, TARGET, payload_of

# most of the time goes into writing Python's results; `make test-web` runs web/tests alone
pytestmark = pytest.mark.slow

FILES = sorted((Path(__file__).parents[3] / "web" / "tests").glob("*.test.ts"))
REPEATED = {
    "arithmetic": "terms of every point add up under (mistakes: pre$|mistakes: post, one layer|changes: post)",
    "opening": "the page measures what Python has measured: pair, (I|The black)",
    "recorded": "all arithmetic without a matrix agrees with the recorded numbers: post$",
    "turning": "the search: paper, (a mistake|the decoder)",
}
"""For each file, a pattern of the tests that take long and repeat a fact with another model or sentence."""
EXPLAINED = ["paper", "post, halves, gelu, output of its own", "pre, learned, gelu", "pre, interleaved, silu"]
EXPLAINED += with_new_activations(KINDS[kind] for kind in EXPLAINED)
"""Kinds of models that together cover every formula."""
CHANGED: list[dict[str, Any]] = [
    {},
    CHANGES["a row that may look nowhere"] | CHANGES["rows of weights by hand"] | CHANGES["no positions"],
    CHANGES["rows of another sentence: logits"] | CHANGES["ablated heads"] | CHANGES["no scale"],
    *({"mistakes": [mistake]} for mistake in MISTAKES),
    {"mistakes": ["no_embedding_scale", "doubled_exponent", "mask_zero"]},
    {"mistakes": ["mask_after_softmax", "double_softmax", "no_transpose", "unbiased_norm"]},
]


@pytest.fixture(scope="session")
def written(made_once: Callable[..., Path]) -> Path:
    """Return the folder of Python's results."""
    return made_once("traces", traces.main)


def test_the_modules_pass_their_tests(npm, written):
    """One process runs all files, because starting Node and reading the modules takes most of the time."""
    skipped = f"--test-skip-pattern={'|'.join(REPEATED.values())}"
    files = [f"tests/{path.name}" for path in FILES]
    found = npm("test", "--test-isolation=none", skipped, *files, TRACES=str(written))
    assert int(re.search(r"\bpass (\d+)$", found, re.MULTILINE)[1]) > 280


@pytest.mark.long
@pytest.mark.parametrize("name", REPEATED)
def test_the_modules_pass_the_tests_that_repeat_a_fact(npm, written, name):
    npm("test", f"tests/{name}.test.ts", TRACES=str(written))


@pytest.mark.long
def test_a_thousand_texts_of_each_sort_are_split_as_in_python(npm, tmp_path):
    made = tokenizers(1000) | {"every character": every_character()}
    (tmp_path / "tokenizers.json").write_text(json.dumps(made), encoding="utf-8")
    npm("test", "tests/tokenizers.test.ts", TRACES=str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "library"),
    [
        pytest.param(kind, library, marks=[] if number % 2 == place else [pytest.mark.long])
        for number, kind in enumerate(EXPLAINED)
        for place, library in enumerate(("numpy", "torch"))
    ],
)
def test_snippets_run_as_pasted_and_give_the_number(npm, seed, kind, library):
    payload = payload_of(rounded(random_model(**KINDS[kind])))
    sentence = {"sourceIds": SOURCE, "targetIds": TARGET}
    asked = {"payload": payload, "sentence": sentence, "changes": CHANGED, "library": library}
    for value, code in json.loads(npm("snippets", given=json.dumps(asked))):
        assert result_of(code) == pytest.approx(value, rel=1e-5, abs=1e-6), code


def result_of(code: str) -> float:
    """Return the number that a snippet computes, after its own comparison."""
    names: dict[str, Any] = {"print": lambda *_: None}
    exec(code, names)
    return float(names["result"])


def test_snippets_of_a_recording_run_as_pasted(npm, written):
    page = json.loads((written / "recorded.json").read_text(encoding="utf-8"))["post"]["payload"]
    sentence = {"sourceIds": page["trace"]["source_ids"], "targetIds": page["trace"]["target_ids"]}
    asked = {"payload": page, "sentence": sentence, "changes": [{}], "library": "numpy"}
    made = json.loads(npm("snippets", given=json.dumps(asked)))
    assert len(made) > 60
    for value, code in made:
        # the recorded numbers have half precision
        assert result_of(code) == pytest.approx(value, rel=1e-2, abs=2e-2), code
