"""A reader's file in a process of its own: each broken or hostile file gives one sentence with its line."""

import re
from pathlib import Path

import pytest

from glassformer.errors import DataError
from glassformer.watch.capstone import check_file
from glassformer.watch.capstone.reading import Mine, RejectedError

SOLUTION = Path(__file__).parents[3] / "book" / "capstone" / "mine.py"
STEPS = re.split(r"(?=^# Step \d+)", SOLUTION.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
"""The solution's steps, in order."""


@pytest.fixture
def checked(tmp_path):
    """Return a function that checks a file with this text, with a short time limit."""

    def check(text, seconds=20):
        path = tmp_path / "mine.py"
        path.write_text(text, encoding="utf-8")
        return check_file(path, seconds=seconds, training_seconds=seconds)

    return check


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x = 1\ndef f(:\n", 2, "syntax error: invalid syntax"),
        ("x = '\0'", 1, "syntax error: source code"),
        ("(" * 5000, 1, "syntax error: too many nested"),
        ("import torch\nimport numpy as np", 2, "expected imports of torch and the standard library, got 'numpy'"),
        ("def f():\n    from glassformer import model", 2, "got 'glassformer'"),
        ("from . import other", 1, "got '.'"),
        ("import sys\n\nsys.exit(3)", 3, "the file: calls sys.exit; return instead"),
        ("a = 1\n1 / 0", 2, "the file: ZeroDivisionError: division by zero"),
        ("def f():\n    return f()\nf()", 2, "the file: RecursionError: maximum recursion"),
        ("import torch\ntorch.ones(2, 3) @ torch.ones(2, 3)", 2, "the file: RuntimeError: mat1 and mat2"),
        ("raise KeyboardInterrupt", 1, "the file: KeyboardInterrupt"),
    ],
)
def test_a_file_that_cannot_be_loaded_gives_a_sentence_with_its_line(tmp_path, text, line, message):
    with pytest.raises(RejectedError) as raised:
        Mine(tmp_path / "mine.py", text)
    assert (raised.value.line, message in raised.value.message) == (line, True), raised.value.message
    assert "\n" not in raised.value.message


@pytest.mark.long
def test_an_empty_file_is_a_beginning(checked):
    found = checked("")
    assert found.passed
    assert found.passed_steps == ()
    assert found.next.signature == "attention(query, key, value, mask)"
    assert found.to_dict()["next_step"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("while True:\n    pass", (1, 2), "the file: takes too long; look for an endless loop"),
        pytest.param(
            "def attention(query, key, value, mask):\n    while True:\n        query = query + 1",
            (2, 3),
            "attention: takes too long",
            marks=pytest.mark.long,
        ),
        pytest.param("import os\nos._exit(0)", (None,), "the file: ended the process", marks=pytest.mark.long),
        pytest.param(
            "rows = []\nwhile True:\n    rows.append('x' * 10**8)",
            (3,),
            "the file: needs more memory than the check allows",
            marks=pytest.mark.long,
        ),
        ("import torch\nx = torch.ones(10**12)", (2,), "the file: needs more memory than the check allows"),
    ],
    ids=["loop", "loop in a step", "exit", "memory", "tensor"],
)
def test_a_file_that_does_not_end_is_stopped(checked, text, line, message):
    found = checked(text, seconds=20 if "memory" in message else 2)
    assert message in found.message
    assert found.line in line
    assert not found.passed


@pytest.mark.slow
def test_prints_and_a_name_with_a_typing_error_are_noted_and_harmless(checked):
    steps = "".join(STEPS[:2]).replace("class MultiHeadAttention", "class MultiheadAttention")
    found = checked('import os\nprint("hello", flush=True)\nos.write(1, b"raw")\n' + steps)
    assert found.passed
    assert len(found.passed_steps) == 1
    assert found.notes == (
        "mine.py, line 2: prints 'hello'; the check shows no output",
        "MultiHeadAttention is missing (did you mean 'MultiheadAttention'?)",
    )
    assert found.next.title == "MultiHeadAttention"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "old", "new", "message"),
    [
        (1, "weights @ value, weights", "weights @ value", "attention: expected (output, weights), got 'Tensor'"),
        (
            1,
            "weights @ value, weights",
            "weights @ value, weights[0]",
            "weights: expected shape (2, 3, 5, 7), got (3, 5, 7)",
        ),
        (1, "math.sqrt(query.shape[-1])", "(0 // 0)", "attention: ZeroDivisionError"),
        (1, "math.sqrt", "math.squareroot", "AttributeError: module 'math' has no attribute 'squareroot'"),
        (1, "/ math.sqrt", "* math.nan / math.sqrt", "at [0, 0, 1], got NaN"),
        (1, "(query, key, value, mask)", "(query, key, value)", "attention: TypeError: attention() takes 3 positional"),
        (
            2,
            "self.output = nn",
            "self.out = nn",
            "MultiHeadAttention lacks the weight 'output.weight' (did you mean 'out.weight'?)",
        ),
        (
            2,
            "value = nn.Linear(d_model, d_model)",
            "value = nn.Linear(d_model, 4)",
            "expected 'value.weight' with shape (12, 12), got (4, 12)",
        ),
        (
            4,
            "self.contract = nn",
            "self.spare = nn.Linear(2, 2)\n        self.contract = nn",
            "has a weight that the reference lacks: 'spare.weight'",
        ),
        (
            8,
            "for _ in range(layers))\n        self.output",
            "for _ in range(1))\n        self.output",
            "expected 2 layers in each stack",
        ),
        (
            8,
            "vocab_size, d_model)\n        for embedding",
            "vocab_size + 1, d_model)\n        for embedding",
            "expected shape (14, 12) for output.weight",
        ),
        (
            9,
            "-right[target != 0].mean()",
            "torch.tensor(-right[target != 0].mean().item())",
            "loss: the result has no gradient",
        ),
        (
            8,
            "super().__init__()\n        self.source",
            "super().__init__()\n        d_model *= 2\n        self.source",
            "expected the sizes",
        ),
        (10, "written[:, 1:]", "written", "greedy: expected shape (4, 7), got (4, 8)"),
        (10, "logits[:, -1:]", "logits[:, :1]", "greedy: the first token that differs is at ["),
        (11, "range(600)", "range(3)", "train: expected exact copies of at least 99% of 200 unseen sequences, got 0"),
        (11, "return model", "return None", "train: expected a Transformer, got 'NoneType'"),
    ],
)
def test_a_wrong_step_gives_a_sentence_with_its_line(tmp_path, step, old, new, message):
    steps = list(STEPS[:step])
    assert old in steps[-1]
    steps[-1] = steps[-1].replace(old, new).replace("range(600)", "range(3)")
    text = "".join(steps)
    found = attempted(tmp_path, text, step)
    assert message in found.message
    assert "".join(STEPS[: step - 1]).count("\n") < found.line <= text.count("\n")


def attempted(tmp_path, text, step):
    """Check a step of a file in this process; return the error."""
    import torch

    from glassformer.watch.capstone.attempts import ATTEMPTS

    mine = Mine(tmp_path / "mine.py", text)
    torch.set_default_dtype(torch.float64)
    try:
        with mine.blamed("the step"):
            ATTEMPTS[step - 1](mine)
    except RejectedError as error:
        return error
    finally:
        torch.set_default_dtype(torch.float32)
    return None


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    for name, content in {"latin.py": "é".encode("latin-1"), "large.py": b"#" * (1 << 21)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="expected"):
            check_file(tmp_path / name)
    with pytest.raises(DataError, match="expected a Python file, got nothing"):
        check_file(tmp_path / "missing.py")
    with pytest.raises(DataError, match="got a folder"):
        check_file(tmp_path)


@pytest.mark.long
def test_the_solution_solves_the_copy_task_on_one_core_within_two_minutes():
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = check_file(SOLUTION)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (found.message, found.next) == ("", None)
    assert len(found.passed_steps) == 11
    exact = int(re.search(r"^(\d+) of 200 unseen", found.passed_steps[-1])[1])
    assert exact >= 198
    assert after.ru_utime - before.ru_utime < 120


@pytest.mark.long
def test_the_searches_of_the_library_copy_with_the_trained_solution(tmp_path):
    """One of the task's 13 ids is `<eos>`, which is not a symbol; a search stops at `<eos>` and nowhere else."""
    import torch

    import glassformer as gf
    from glassformer.decoding import beam_search, greedy, sample
    from glassformer.decoding.transformer_step import TransformerStep

    torch.manual_seed(1)
    trained = Mine(tmp_path / "mine.py", SOLUTION.read_text(encoding="utf-8")).make("train")
    model = gf.import_module(trained, heads=4, positions="interleaved", dropout=0.0, pad_id=0, bos_id=1, eos_id=2)
    source = torch.randint(3, 13, (100, 11), generator=torch.Generator().manual_seed(2))
    source[:, -1] = 2
    step, longest, expected = TransformerStep(model, source), [15] * 100, [tuple(row) for row in source.tolist()]
    found = {
        "greedy": greedy(step, max_lengths=longest),
        "beam": [best for [best] in beam_search(step, max_lengths=longest, beam_size=4)],
        "sample": sample(step, max_lengths=longest, seeds=range(100)),
    }
    exact = {
        name: sum(one.tokens == right for one, right in zip(ones, expected, strict=True))
        for name, ones in found.items()
    }
    assert min(exact["greedy"], exact["beam"]) >= 99
    assert exact["sample"] >= 90  # sampling draws an improbable token now and then


def test_the_words_of_the_solution_do_not_drown_its_positions(tmp_path):
    """The solution must not commit the errata's "Embeddings that drown the positions"."""
    import torch

    torch.manual_seed(1)
    text = SOLUTION.read_text(encoding="utf-8")
    # the training starts from the weights of step 8, without initialising them again
    assert "init" not in text[text.index("# Step 11") :]
    model = Mine(tmp_path / "mine.py", text).make("Transformer", 13, 64, 4, 128, 2)
    for embedding in (model.source_embedding, model.target_embedding):
        # The estimate from 832 draws with a standard deviation of 1 has a standard deviation of 1 / √1664 = 0.025.
        assert abs(float(embedding.weight.detach().std()) * 8 - 1) < 0.1


def test_the_solution_makes_its_tensors_on_the_device_of_the_model(tmp_path):
    """The solution must not commit the errata's "A tensor on the wrong device"."""
    import torch

    mine = Mine(tmp_path / "mine.py", SOLUTION.read_text(encoding="utf-8"))
    model = mine.make("Transformer", 13, 64, 4, 128, 2).to("meta")  # a device without numbers, and not the CPU
    source, target_input = torch.ones(2, 5, 7, dtype=torch.long, device="meta")
    assert model(source, target_input).device.type == "meta"
    assert mine.make("target_mask", target_input).device.type == "meta"
    assert mine.make("greedy", model, source, 3).device.type == "meta"
