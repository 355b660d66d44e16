"""`tokenizer.json` gives our tokenizers' ids and texts in the libraries that read it."""

from itertools import product

import pytest

from cuts import HIDDEN, KINDS, LEANING, ODD, sentences, trained
from glassformer.interop.huggingface.fast_tokenizer import fast_tokenizer

pytestmark = pytest.mark.client

SPECIAL = ("<eos>", "<pad>")
"""Texts that the libraries read as special tokens."""
TEXTS = [
    *sentences("test"),
    *(text for text in [*ODD, *LEANING, *HIDDEN] if not any(name in text for name in SPECIAL)),
]


CASES = [*product(["onnx"], KINDS), *product(["node"], [kind for kind in KINDS if kind != "unigram with bytes"])]
"""The library of transformers.js knows bytes only for BPE."""


def is_known_difference(library, kind, text):
    """Return whether a text is cut differently for a reason in the docstring of `fast_tokenizer`'s module."""
    return (
        (kind == "words" and "’" in text)
        or (kind == "unigram with bytes" and "<0x" in text)
        or (library == "node" and kind.endswith("bytes") and "\ufeff" in text)
    )


@pytest.mark.parametrize(("library", "kind"), CASES)
def test_the_libraries_cut_and_join_as_we_do(ask, library, kind):
    tokenizer = trained(kind)
    ids = tokenizer.encode_all(TEXTS)
    found = ask(
        library, "fast_tokenizer", tokenizer=fast_tokenizer(tokenizer), texts=TEXTS, ids=[[*one, 2] for one in ids]
    )
    ours = zip(TEXTS, ids, tokenizer.decode_all(ids), strict=True)
    different = [
        text
        for (text, one, joined), theirs, their_text in zip(ours, found["ids"], found["texts"], strict=True)
        if (theirs, their_text) != ([*one, 2], joined) and not is_known_difference(library, kind, text)
    ]
    assert not different
    assert len(TEXTS) > 1000
