"""The errata's table "You have code that runs": each row's test must fail on wrong code and pass on right code."""

import math
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
import torch
from chapters import BOOK
from torch import Tensor, nn
from torch.nn import functional as F

import glassformer as gf
from glassformer.model.masks import causal_mask
from glassformer.watch.inspection import plant

V, D, HEADS, DK, BOS = 11, 512, 8, 64, 1
TGT = torch.tensor([[BOS, 4, 5, 6, 2, 0], [BOS, 7, 2, 0, 0, 0]])  # <eos> is 2, padding is 0
FRONT = torch.tensor([[0, BOS, 4, 5, 6, 2], [0, 0, 0, BOS, 7, 2]])
Names = dict[str, Any]


def weights_of(fill: float, mask: Tensor) -> Names:
    """Return the weights of random scores of 3 heads, 6 queries and 6 keys, some of them masked."""
    scores = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    return {"weights": scores.masked_fill(mask == 0, fill).softmax(-1), "mask": mask}


def masks() -> list[Tensor]:
    """Return masks of the shapes (B, 1, 1, S) and (B, 1, T, S), as booleans and as numbers."""
    columns = (TGT != 0)[:, None, None]
    return [columns, columns & causal_mask(6), columns.int()]


def masked_scores() -> tuple[list[Names], list[Names]]:
    softened = [weights_of(0.0, mask) for mask in masks()]
    nothing_to_see = weights_of(-1e9, torch.zeros(2, 1, 1, 6, dtype=torch.bool))
    return [*softened, nothing_to_see], [weights_of(-1e9, mask) for mask in masks()]


def rows_or_columns() -> tuple[list[Names], list[Names]]:
    nopeak = torch.ones(1, 6, 6, dtype=torch.bool).tril()
    wrong = [{"tgt": tgt, "tgt_mask": (tgt != 0)[:, None, :, None] & nopeak} for tgt in (TGT, FRONT)]
    return wrong, [{"tgt": tgt, "tgt_mask": (tgt != 0)[:, None, None, :] & nopeak} for tgt in (TGT, FRONT)]


def embedded(factor: float, std: float = 1.0) -> Names:
    """Return the embedding rows of 6 words, times a factor, under the name x."""
    torch.manual_seed(1)
    table = nn.Embedding(V, D)
    nn.init.normal_(table.weight, std=std)
    return {"x": table(torch.arange(3, 9)) * factor}


def without_a_factor() -> tuple[list[Names], list[Names]]:
    return [embedded(1.0, std=D**-0.5)], [embedded(1.0)]


def with_a_factor() -> tuple[list[Names], list[Names]]:
    return [embedded(math.sqrt(D))], [embedded(math.sqrt(D), std=D**-0.5)]


def exponent() -> tuple[list[Names], list[Names]]:
    """The shapes are (T, D), (1, T, D) and (T, 1, D): all three occur in tutorials."""
    i, position = torch.arange(0, D, 2), torch.arange(100)[:, None]
    tables = []
    for angles in (position / 10000 ** (2 * i / D), position / 10000 ** (i / D)):
        pe = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        tables.append([{"pe": each, "d": D} for each in (pe, pe[None], pe[:, None])])
    return tables[0], tables[1]


def shifted() -> tuple[list[Names], list[Names]]:
    def pair(read: Tensor, said: Tensor) -> Names:
        return {"read": read, "said": said, "bos": BOS}

    not_shifted, no_bos = pair(TGT[:, :-1], TGT[:, :-1]), pair(TGT[:, 1:-1], TGT[:, 2:])
    return [not_shifted, no_bos], [pair(TGT[:, :-1], TGT[:, 1:])]


def random_batches() -> tuple[list[Names], list[Names]]:
    wrong = [loss_of_random_batches(shift=0), loss_of_random_batches("no_causal_mask")]
    return [{"loss": loss, "V": V} for loss in wrong], [{"loss": loss_of_right_code(), "V": V}]


def small_model() -> gf.Transformer:
    torch.manual_seed(1)
    sizes = {"d_model": 32, "heads": 4, "d_ff": 64, "dropout": 0.0, "encoder_layers": 1, "decoder_layers": 1}
    return gf.Transformer(gf.ModelConfig(vocab_size=V, **sizes))


def loss_of_random_batches(
    *mistakes: str, shift: int = 1, batches: Callable[[], Iterable[Tensor]] = lambda: drawn()
) -> float:
    """Return the mean of the last 20 losses of a training; each loss is computed before the update on its batch."""
    model, losses = small_model(), []
    adam = torch.optim.Adam(model.parameters(), lr=5e-3)
    with plant(model, *mistakes):
        for source, target in batches():
            logits = model(source, target[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), target[:, shift:][:, : logits.shape[1]].flatten())
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
    return sum(losses[-20:]) / 20


@cache
def loss_of_right_code() -> float:
    return loss_of_random_batches()


def drawn(steps: int = 300) -> Iterable[Tensor]:
    """Yield source and target of each step: ids from 1 to V − 1, all independent of each other."""
    return (torch.randint(1, V, (2, 8, 7)) for _ in range(steps))


def view() -> tuple[list[Names], list[Names]]:
    k = torch.randn(2, 5, HEADS * DK)
    heads = k.view(2, HEADS, 5, DK), k.view(2, 5, HEADS, DK).transpose(1, 2)
    wrong, right = ({"heads": each, "k": k, "dk": DK} for each in heads)
    return [wrong], [right]


def last_softmax() -> tuple[list[Names], list[Names]]:
    with torch.no_grad():
        logits = small_model()(TGT, TGT)
    return [{"output": logits.softmax(-1)}], [{"output": logits}, {"output": logits.log_softmax(-1)}]


def padding_in_the_loss() -> tuple[list[Names], list[Names]]:
    """Right: padding is ignored. Wrong: padding counts, or id 0 is ignored although another id is the padding."""
    return [losses_with_more_padding(-100), losses_with_more_padding(3)], [losses_with_more_padding(0)]


def losses_with_more_padding(ignored: int) -> Names:
    model, longer = small_model().eval(), F.pad(TGT, (0, 1))
    measure = nn.CrossEntropyLoss(ignore_index=ignored)
    with torch.no_grad():
        losses = [measure(model(TGT, tgt[:, :-1]).flatten(0, 1), tgt[:, 1:].flatten()) for tgt in (TGT, longer)]
    return dict(zip(("loss", "longer"), losses, strict=True))


def pre_norm() -> tuple[list[Names], list[Names]]:
    norm, x, sublayer = nn.LayerNorm(D), 3 + 2 * torch.randn(2, 5, D), torch.zeros_like
    normalised = norm(x)
    return [{"x": x, "out": normalised + sublayer(normalised)}], [{"x": x, "out": x + sublayer(norm(x))}]


CODE = {
    "scores.masked_fill(mask == 0, -1e9)": masked_scores,
    "tgt_mask = (tgt != 0)[:, None, :, None] & nopeak": rows_or_columns,
    "nn.Embedding(V, d), then no factor": without_a_factor,
    "nn.Embedding(V, d), then * math.sqrt(d)": with_a_factor,
    "i from range(0, d, 2), then 10000 ** (2 * i / d)": exponent,
    "model(src, tgt[:, :-1]), loss against tgt[:, 1:]": shifted,
    "torch.randint(1, V, (64, 100)) once, before the loop": random_batches,
    "k.view(B, h, S, dk)": view,
    "a last softmax, then nn.CrossEntropyLoss()": last_softmax,
    "nn.CrossEntropyLoss(ignore_index=0)": padding_in_the_loss,
    "x = x + sublayer(norm(x))": pre_norm,
}
"""For each row, a function that returns the variables that the row's test reads: from wrong code, and from right code.
"""


def rows(text: str) -> list[tuple[str, str]]:
    """Return the first cell, without marks of code, and the test of each row of the table in a page's text."""
    table = re.search(r"\|---\|---\|---\|---\|\n((?:(?:# )?\|.*\n)+)", text)
    assert table
    cells = [line.removeprefix("# ").strip("|").split(" | ") for line in table[1].splitlines()]
    return [(row[0].strip().replace("`", ""), re.findall(r"`([^`]+)`", row[-1])[-1]) for row in cells]


ROWS = rows((BOOK / "errata.py").read_text(encoding="utf-8"))


def test_each_row_has_code_and_the_chinese_table_has_the_same_tests():
    assert [name for name, _ in ROWS] == [*CODE]
    chinese = rows((BOOK / "zh" / "errata.md").read_text(encoding="utf-8"))
    assert [test for _, test in chinese] == [test for _, test in ROWS]


def row(name: str, test: str) -> Any:
    """Return the parameters of a row's test, which is slow if its code is trained."""
    return pytest.param(name, test, marks=[pytest.mark.slow] if CODE[name] is random_batches else [], id=name)


@pytest.mark.parametrize(("name", "test"), [row(*one) for one in ROWS])
def test_the_test_of_a_row_fails_on_wrong_code_and_passes_on_right_code(name, test):
    known = {"torch": torch, "math": math, "gf": gf}
    wrong, right = CODE[name]()
    assert [bool(eval(test, known | names)) for names in wrong] == [False] * len(wrong)
    assert [bool(eval(test, known | names)) for names in right] == [True] * len(right)


@pytest.mark.slow
def test_a_fixed_batch_is_learned_by_heart_and_new_copies_are_learned():
    """Check the row about the random batch: the mean of 20 batches with 48 tokens is off by about 0.01."""
    torch.manual_seed(2)
    fixed = torch.randint(1, V, (2, 8, 7))
    copies = [one[:1].expand(2, -1, -1) for one in drawn()]
    assert loss_of_random_batches(batches=lambda: [fixed] * 150) < 0.1
    assert loss_of_right_code() > math.log(V - 1) - 0.03
    assert loss_of_random_batches(batches=lambda: copies) < 0.5 * math.log(V - 1)
