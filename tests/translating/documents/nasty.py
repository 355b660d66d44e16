"""Files that are hard to read and to rebuild, made of pieces."""

import random
from collections.abc import Iterator
from pathlib import Path

from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers
from glassformer.translating.documents.document import Document
from glassformer.translating.documents.sentences import DocumentSentences
from models import random_translator

WRITTEN = "aé日 <b>&\"'\\{}[]()%$#*_`|~-+=.,:;!?/0123\u2028\u00a0\ufffd"
"""The characters that the random model writes; no character may become markup."""

CHUNKS = {
    ".txt": [
        "One line.",
        "  indented",
        "\tTab",
        "",
        " ",
        "-- ",
        "e.g. this one. Two",
        "é 日本。",
        "\x0cpage",
        "&amp; <b>",
    ],
    ".html": [
        *(
            "<!DOCTYPE html>",
            "<p>",
            "</p>",
            "<p title='a b'>Text",
            "<b>bold <i>both</b></i>",
            "<em>one <u>two</u></em> three",
            "&eacute;&#233;&nbsp;x &bad",
        ),
        *(
            "<br/>",
            "<img alt=pic src=x>",
            "<script>if (a<b) '<p>'</script>",
            "<pre>\n keep  </pre>",
            "<!-- <p>x --> y",
            "<td",
        ),
        *(
            "<code>x < y</code> text",
            '<span translate="no">keep <span>k</span></span>',
            "<![CDATA[x]]>",
            "<?php x ?>",
            "a < b",
        ),
        *(
            '<a href="?a=1&b=2" TITLE=hi>link</a>',
            "<style>p{}</style>",
            "</div></b>",
            "<textarea>\nx</textarea>",
            "\t ",
            "é日本",
        ),
    ],
}


def _text(chance: random.Random, suffix: str) -> str:
    pieces = chance.choices(CHUNKS[suffix], k=chance.randint(2, 12))
    return "".join(f"{one}{chance.choice(['', chr(10)])}\n" for one in pieces)


def nasty_files(count: int = 200) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file; the formats take turns, and the files never change."""
    for number in range(count):
        chance, suffix = random.Random(number), list(CHUNKS)[number % len(CHUNKS)]
        text, ending = _text(chance, suffix), chance.choice(["\n", "\n", "\r\n"])
        mark, last = chance.choice(["", "", "\ufeff"]), chance.choice(["", "\n"])
        yield f"{number}{suffix}", f"{mark}{text.rstrip(chr(10))}{last}".replace("\n", ending).encode()


def translated_files(folder: Path) -> dict[str, tuple[bytes, bytes]]:
    """Return each nasty file before and after its translation by a random model; the model's run is in `folder`.

    The model reads and writes characters. Its attention decides the word links, and thus the places of tags.
    """
    files = {name: (data, DocumentSentences(Document.read(name, data), "en")) for name, data in nasty_files()}
    read = "".join(sorted({*b"".join(data for data, _ in files.values()).decode()} - {"\n", "\r"}))
    tokenizers = train_tokenizers([read], [WRITTEN], TokenizerConfig(kind="characters", joint=False))
    model = random_translator(folder, tokenizers=tokenizers, extra_length=20, encoder_layers=1, decoder_layers=1)
    wanted = [text for _, document in files.values() for text in document.wanted]
    found = iter(model.translate(wanted, links=True, sample=True, prefix="a"))
    return {
        name: (data, document.rebuilt([next(found) for _ in document.wanted])[0])
        for name, (data, document) in files.items()
    }
